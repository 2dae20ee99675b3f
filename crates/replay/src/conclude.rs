//! Findings about a replay, derived from its measurements alone, so that an old run can be judged by new rules.

use record::{Direction, Finding, FindingCode, Histogram, OffsetMap, Pace, Replay, Severity};
use study::replay::cap::{self, Load};
use study::replay::warmth;
use trace::{Caveats, Class};
use ui::format::{latency, number, percent};

use crate::answer::late;

/// Name of a replay's phase.
const PHASE: &str = "replay";
/// Share of late I/Os from which figures may mislead.
const WARN_LATE_SHARE: f64 = 0.01;
/// Share of late I/Os from which the schedule was not kept.
const INVALID_LATE_SHARE: f64 = 0.25;
/// Shares of I/Os beyond the target's end from which a replay is doubtful, and invalid.
const CLIPPED_SHARES: (f64, f64) = (0.001, 0.1);

/// Reasons to doubt a replay.
pub fn findings(replay: &Replay) -> Vec<Finding> {
    [
        lateness(replay),
        lost(replay),
        clipped(replay),
        failed(replay),
        warmer(replay),
        behind_a_cap(replay),
        no_commits(replay),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn finding(code: FindingCode, severity: Severity, text: String) -> Finding {
    Finding {
        code,
        severity,
        phase: Some(PHASE.to_owned()),
        text,
    }
}

/// Severity by a share; a note below both bounds.
fn by_share(share: f64, (warn, invalid): (f64, f64)) -> Severity {
    match share {
        share if share >= invalid => Severity::Invalid,
        share if share >= warn => Severity::Warn,
        _ => Severity::Note,
    }
}

fn lateness(replay: &Replay) -> Option<Finding> {
    if replay.settings.pace == Pace::Asap || replay.lateness.is_empty() {
        return None;
    }
    let share = late(replay) as f64 / replay.lateness.count() as f64;
    if share < WARN_LATE_SHARE {
        return None;
    }
    let counts = &replay.counts;
    let most_were = |count: u64| count as f64 > 0.5 * late(replay) as f64;
    let why = if most_were(counts.full) {
        format!(
            "Most of them came while {} were in flight, the most that may be: the target is slower than the \
             recorded load asks. Their wait is in the latencies. Give a greater --depth, or --pace dependencies, by \
             which a slower disk slows the load.",
            replay.settings.depth
        )
    } else if most_were(counts.blocked) {
        "Most of them waited until the kernel had taken those before: the target's queue was full, or its file system \
         held a lock. Their wait is in the latencies. Replay on the device itself, or with a smaller --depth."
            .to_owned()
    } else if counts.starved > 0 {
        "The trace was not read fast enough: keep it on another disk than the target, and unpacked."
            .to_owned()
    } else {
        "This host did not issue them in time: its processors were busy.".to_owned()
    };
    let is_of_the_target = most_were(counts.full + counts.blocked);
    let severity = match share >= INVALID_LATE_SHARE && !is_of_the_target {
        true => Severity::Invalid,
        false => Severity::Warn,
    };
    Some(finding(
        FindingCode::Late,
        severity,
        format!(
            "{} of the I/Os were issued more than 1 ms after they were due, one in a hundred more than {}. {why}",
            percent(share),
            latency(replay.lateness.quantile(0.99)),
        ),
    ))
}

fn lost(replay: &Replay) -> Option<Finding> {
    let trace = &replay.trace;
    let caveats = Caveats {
        lost: trace.lost,
        ambiguous: trace.ambiguous,
        cut_off: trace.cut_off,
        ..Caveats::default()
    };
    let severity = caveats.severity(trace.ios)?;
    let share = |count: u64| percent(count as f64 / trace.ios.max(1) as f64);
    let mut text = format!(
        "The recorder of the trace lost {} events ({} of the I/Os), and {} completions ({}) fitted more than one request \
         or none. I/Os that it lost are not replayed.",
        number(trace.lost as f64),
        share(trace.lost),
        number(trace.ambiguous as f64),
        share(trace.ambiguous),
    );
    if trace.cut_off {
        text.push_str(" It was ended before it closed the file, so that the end is missing.");
    }
    Some(finding(FindingCode::LostEvents, severity, text))
}

fn clipped(replay: &Replay) -> Option<Finding> {
    let counts = &replay.counts;
    let share = counts.clipped as f64 / (counts.ios as f64).max(1.0);
    let advice = match replay.settings.map {
        OffsetMap::Exact => "Give --map compact or --map wrap, or a larger target.",
        OffsetMap::Wrap | OffsetMap::Compact => "Give a larger target.",
    };
    (counts.clipped > 0).then(|| {
        finding(
            FindingCode::Clipped,
            by_share(share, CLIPPED_SHARES),
            format!(
                "{} of {} I/Os lie beyond the end of the target and were left out ({}). {advice}",
                number(counts.clipped as f64),
                number(counts.ios as f64),
                percent(share),
            ),
        )
    })
}

fn no_commits(replay: &Replay) -> Option<Finding> {
    let trace = &replay.trace;
    // Discards are counted as writes.
    let discard = Class::Discard.name();
    let mut classes = replay.classes.iter();
    let has_writes =
        classes.any(|class| class.direction == Direction::Write && class.name != discard);
    let mut classes = replay.classes.iter();
    let has_commits = classes.any(|class| Class::is_durable_name(&class.name));
    let why = if !trace.has_flushes {
        "Its format has none: record with `disksmith trace record`."
    } else if !trace.has_written_through {
        "The workload made none of them durable, or the trace's format does not tell."
    } else if !trace.has_written_names {
        "A disk without a volatile write cache is sent none: `trace record --dataset` names the files, and writes of a \
         log file are commits then."
    } else {
        "Its disk has no volatile write cache and is sent none, and no write of at most 1 MiB was of a log file known by \
         name (MySQL, MariaDB, PostgreSQL)."
    };
    (has_writes && !has_commits).then(|| {
        finding(
            FindingCode::NoCommits,
            Severity::Note,
            format!(
                "The trace holds writes, but no flush and no write with FUA, so that there is no latency of commits. {why}"
            ),
        )
    })
}

fn failed(replay: &Replay) -> Option<Finding> {
    let failed: u64 = replay.classes.iter().map(|class| class.failed).sum();
    let before: u64 = replay
        .classes
        .iter()
        .map(|class| class.failed_recorded)
        .sum();
    (failed > before).then(|| {
        finding(
            FindingCode::Failed,
            Severity::Invalid,
            format!(
                "{} I/Os failed, and {} when they were recorded. Their latencies do not count. See the kernel's log.",
                number(failed as f64),
                number(before as f64)
            ),
        )
    })
}

fn warmer(replay: &Replay) -> Option<Finding> {
    let warmer = warmth::warmer(&replay.lone_recorded, &replay.lone_replayed)?;
    let now = warmer.replayed;
    Some(finding(
        FindingCode::CacheWarmer,
        Severity::Warn,
        format!(
            "Of the reads of at most 16 KiB that found nothing else in flight, {} took about {} and the others about {}: a cache \
             answered the fast ones. When they were recorded it was {}. The target's cache is warmer, and the \
             database's reads would take longer than these. Replay on a target larger than its caches, or drop them.",
            percent(now.fast_share),
            latency(now.fast),
            latency(now.slow),
            percent(warmer.recorded),
        ),
    ))
}

fn behind_a_cap(replay: &Replay) -> Option<Finding> {
    if replay.settings.pace == Pace::Asap || !replay.trace.has_completions {
        return None;
    }
    let load: Vec<Load> = replay
        .load
        .iter()
        .map(|slice| Load {
            ios: slice.recorded_ios as f64,
            bytes: slice.recorded_bytes as f64,
            in_flight: slice.recorded_in_flight,
        })
        .collect();
    let mut all = Histogram::new();
    let moving = replay
        .classes
        .iter()
        .filter(|class| class.direction != Direction::Sync);
    moving.for_each(|class| all.merge(&class.recorded));
    // At least a tenth of the requests does not queue, unless all of them do.
    let base_s = all.quantile(0.1) as f64 / 1e9 / replay.settings.speed;
    let held = cap::held(&load, replay.slice_seconds, base_s)?;
    let scale = replay.settings.speed;
    Some(finding(
        FindingCode::BehindACap,
        Severity::Warn,
        format!(
            "For {} of the time the recorded load was constant at {} IOPS and {} MiB/s while requests queued: a limit \
             of the disk that it was recorded on. The database would have asked for more, and sooner, on a faster \
             one, so that recorded times ask too little of the target. Compare with --pace dependencies, and record \
             on a disk without that limit.",
            percent(held.share),
            number(held.plateau.ops_per_s / scale),
            number(held.plateau.bytes_per_s / scale / f64::from(1 << 20)),
        ),
    ))
}
