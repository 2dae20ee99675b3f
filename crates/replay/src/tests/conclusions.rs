//! Tests of the findings of a replay.

use record::{Finding, FindingCode, Replay, Severity};

use super::*;
use crate::conclude;

/// The finding with this code, if a replay has it.
fn found(replay: &Replay, code: FindingCode) -> Option<Finding> {
    let mut findings = conclude::findings(replay).into_iter();
    findings.find(|finding| finding.code == code)
}

#[test]
fn a_trace_is_as_doubtful_here_as_where_it_is_shown() {
    let ios: Vec<Io> = (0..1000).map(|n| read(n * 10, n * 4096, 4096)).collect();
    let mut played = replayed(ios, 1, settings(Pace::Asap), &volume(10));
    let severity =
        |replay: &Replay| found(replay, FindingCode::LostEvents).map(|lost| lost.severity);
    for (lost, ambiguous, cut_off, expected) in [
        (0, 0, false, None),
        (1, 0, false, Some(Severity::Warn)),
        (0, 10, false, Some(Severity::Warn)),
        (0, 11, false, Some(Severity::Invalid)),
        (20, 1, false, Some(Severity::Invalid)),
        (0, 0, true, Some(Severity::Warn)),
    ] {
        let trace = &mut played.replay.trace;
        (trace.lost, trace.ambiguous, trace.cut_off) = (lost, ambiguous, cut_off);
        assert_eq!(severity(&played.replay), expected, "{lost} {ambiguous}");
    }
}

#[test]
fn what_is_clipped_is_not_advised_to_take_the_map_that_it_has() {
    let reads: Vec<Io> = (0..40_000).map(|n| read(n, n << 16, 4096)).collect();
    for map in [OffsetMap::Exact, OffsetMap::Compact] {
        let settings = ReplaySettings {
            map,
            ..settings(Pace::Asap)
        };
        let played = replayed(reads.clone(), 1, settings, &volume(10));
        assert!(played.replay.counts.clipped > 0);
        let clipped = found(&played.replay, FindingCode::Clipped).unwrap();
        let advised = clipped.text.contains("--map");
        assert_eq!(advised, map == OffsetMap::Exact, "{clipped:?}");
    }
}

#[test]
fn a_speed_is_named_where_it_counts() {
    for (pace, named) in [(Pace::Recorded, true), (Pace::Asap, false)] {
        let fast = ReplaySettings {
            speed: 1000.0,
            ..settings(pace)
        };
        let played = replayed(vec![read(0, 0, 4096)], 1, fast, &volume(10));
        let sentences = views::sentences(&ReplayAnswer::of(&played.replay));
        assert_eq!(
            sentences[0].contains("times as fast"),
            named,
            "{sentences:?}"
        );
    }
}

#[test]
fn why_there_are_no_commits_depends_on_the_disk_and_on_names_and_discards_are_no_writes() {
    let no_commits =
        |replay: &Replay| found(replay, FindingCode::NoCommits).map(|finding| finding.text);
    let with = |last: Io| {
        let settings = ReplaySettings {
            discards: true,
            ..settings(Pace::Asap)
        };
        let ios = vec![read(0, 0, 4096), last];
        replayed(ios, 1, settings, &volume(10)).replay
    };
    let io = write(1, 8192, 4096);
    let mut replay = with(io);
    for (has_flushes, written_through, written_names, words) in [
        (false, false, false, "Its format has none"),
        (true, false, false, "made none of them durable"),
        (true, false, true, "made none of them durable"),
        (true, true, false, "`trace record --dataset`"),
        (true, true, true, "MariaDB"),
    ] {
        replay.trace.has_flushes = has_flushes;
        replay.trace.has_written_through = written_through;
        replay.trace.has_written_names = written_names;
        let text = no_commits(&replay).unwrap();
        assert!(text.contains(words), "{text}");
    }
    let discard = Io {
        op: trace::Op::Discard,
        ..io
    };
    let durable = Io { fua: true, ..io };
    for last in [discard, durable, flush(1)] {
        assert_eq!(no_commits(&with(last)), None, "{last:?}");
    }
}

#[test]
fn ios_that_the_target_holds_up_are_late_where_they_have_a_time() {
    let ios: Vec<Io> = (0..8)
        .map(|at| took(read(at, at * 4096, 4096), 1))
        .collect();
    for (pace, depth, late) in [
        (Pace::Recorded, 1, true),
        (Pace::Recorded, 8, false),
        (Pace::Asap, 1, false),
    ] {
        let settings = ReplaySettings {
            depth,
            ..settings(pace)
        };
        let played = replayed(ios.clone(), 1, settings, &volume(1000));
        let found = found(&played.replay, FindingCode::Late);
        assert_eq!(found.is_some(), late, "{pace:?} {depth}: {found:?}");
        if let Some(found) = found {
            assert_eq!(found.severity, Severity::Warn);
            assert!(found.text.contains("Give a greater --depth"), "{found:?}");
        }
    }
}

/// 100 reads a second, and for a third of the time 1,000 a second, evenly.
#[test]
fn a_recording_that_queued_at_an_even_rate_was_behind_a_cap() {
    for (busy_us, capped) in [(8000, true), (500, false)] {
        let quiet = |from: u64| (0..2000).map(move |n| took(read(from + n * 10_000, 0, 4096), 500));
        let busy = (0..20_000).map(|n| took(read(20_000_000 + n * 1000, 0, 4096), busy_us));
        let ios = quiet(0).chain(busy).chain(quiet(40_000_000)).collect();
        let played = replayed(ios, 1, settings(Pace::Recorded), &volume(100));
        let text = found(&played.replay, FindingCode::BehindACap).map(|finding| finding.text);
        assert_eq!(text.is_some(), capped, "{busy_us}: {text:?}");
        let has_level = |text: &String| text.contains("constant at 1,000 IOPS");
        assert!(text.as_ref().is_none_or(has_level), "{text:?}");
    }
}

/// Three of five reads repeat an earlier offset, which the volume answers at once.
#[test]
fn reads_of_a_cache_that_was_cold_when_they_were_recorded_are_reported() {
    let recorded = |n: u64| 400 + n * 37 % 200;
    let place = |n: u64| if n % 5 < 3 { 0 } else { n << 19 };
    let ios: Vec<Io> = (0..1000)
        .map(|n| took(read(n * 2000, place(n), 4096), recorded(n)))
        .collect();
    for (cached_us, fetched_us, warmer) in [(25, 475, true), (500, 0, false)] {
        let model = volume(cached_us).volume().clone();
        let target = SimulatedVolume::new(VolumeModel {
            cold_latency: Nanos(fetched_us * 1000),
            ..model
        });
        let played = replayed(ios.clone(), 1, settings(Pace::Recorded), &target);
        let text = found(&played.replay, FindingCode::CacheWarmer).map(|finding| finding.text);
        assert_eq!(text.is_some(), warmer, "{text:?}");
        // The first read of each offset is cold, too.
        let has_share = |text: &String| text.contains("59.9");
        assert!(text.as_ref().is_none_or(has_share), "{text:?}");
    }
}
