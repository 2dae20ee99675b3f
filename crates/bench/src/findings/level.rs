//! Findings about the level of the rate: whether it is steady, precise, and limited by the disk itself.

use record::{Direction, Finding, FindingCode, Flow, Histogram, Phase, Run, Severity, StopReason};
use study::alternation::{self, Alternation};
use study::level::find_drop;
use study::plateau::{self, LimitedQuantity, Throughput};
use study::steady::{self, Reason};

use super::finding::{advice_for_longer_phase, finding};
use super::trouble;
use crate::figures::{FlowFigures, PhaseFigures};
use ui::format::{number, percent};

/// An open loop keeps its rate if at least this share of the due requests completed.
const RATE_KEPT_SHARE: f64 = 0.95;
/// Width of an interval that gets a note where no precision was requested.
const NOTE_INTERVAL_WIDTH: f64 = 0.10;
/// Width of an interval that gets a warning: too wide to decide which of two disks is faster where one is twice as
/// fast.
const WARN_INTERVAL_WIDTH: f64 = 0.50;
/// Names of phases whose latency is that of a request that does not queue.
const BASE_PHASES: [&str; 2] = ["seek", "seek-1"];

/// The finding that the level wanders or drifts, so that the mean describes no part of the phase.
pub(super) fn unsteady(phase: &Phase, figures: &PhaseFigures) -> Option<Finding> {
    let slices = phase.slice_ops();
    if let Some(found) = alternation::find(&slices) {
        return Some(alternating(phase, found));
    }
    let steadiness = steady::assess(slices.get(figures.warmup_slices..)?);
    let how = match steadiness.reason {
        Reason::Level | Reason::TooFew => return None,
        Reason::Drift => drifted(phase, slices.get(figures.warmup_slices..)?),
        Reason::Bend => "The rate rose and fell over the phase".to_owned(),
        Reason::Step => "The rate changed from one level to another".to_owned(),
    };
    Some(finding(
        FindingCode::Unsteady,
        Severity::Warn,
        Some(phase),
        format!(
            "{how}, so its mean describes no moment of it. To measure longer, {}.",
            advice_for_longer_phase(phase)
        ),
    ))
}

/// The finding that the rate alternates between two levels.
fn alternating(phase: &Phase, found: Alternation) -> Finding {
    let slice_s = phase.slice_seconds();
    finding(
        FindingCode::Unsteady,
        Severity::Warn,
        Some(phase),
        format!(
            "The rate alternated between {} and {} IOPS and changed {} times, so its mean describes \
             no moment of it: a limit is raised and lowered, credit is earned and used up, or another load starts and stops. Plan with the lower level, and look for what changes (disksmith \
             watch).",
            number(found.low / slice_s),
            number(found.high / slice_s),
            found.changes
        ),
    )
}

/// Drift of a rate as a clause, by the means of the first and the last fifth: a fitted line may fall below zero.
fn drifted(phase: &Phase, slices: &[f64]) -> String {
    let fifth = (slices.len() / 5).max(1);
    let rate = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64 / phase.slice_seconds();
    let first = rate(&slices[..fifth]);
    let last = rate(&slices[slices.len() - fifth..]);
    format!(
        "The rate {} from {} to {} a second over the phase",
        if last < first { "fell" } else { "rose" },
        number(first),
        number(last)
    )
}

/// The finding that an open loop fell behind its rate: the latencies grow for as long as it lasts.
pub(super) fn behind_rate(phase: &Phase, figures: &PhaseFigures) -> Option<Finding> {
    let rate = phase.workload.rate_per_s?;
    let ops: u64 = phase.windows.iter().map(record::Window::ops).sum();
    // A disk that stalled for a while, and keeps the rate otherwise, is not overloaded.
    let seconds = trouble::answering_seconds(phase).max(phase.slice_seconds());
    let came_back = ops as f64 / seconds;
    // Poisson arrivals differ from their mean by chance; a shortfall of three standard deviations is no longer chance.
    let by_chance = 3.0 * (rate / seconds).sqrt();
    // The burst at the start of a limited device is not part of its sustained rate.
    let settled: f64 = [Direction::Read, Direction::Write]
        .into_iter()
        .filter_map(|direction| figures.flow(direction))
        .map(|flow| flow.iops.mean)
        .sum();
    (came_back < rate * RATE_KEPT_SHARE && came_back < rate - by_chance).then(|| {
        finding(
            FindingCode::Unsteady,
            Severity::Warn,
            Some(phase),
            format!(
                "Overload: {} requests a second were due and {} completed, so requests queue up \
                 and the latencies grow as long as this continues. Give a lower {}, or use a \
                 faster disk.",
                number(rate),
                number(settled),
                match thinks(phase) {
                    true => "rate or shorter pauses",
                    false => "--rate",
                }
            ),
        )
    })
}

/// True if the threads pause by themselves.
fn thinks(phase: &Phase) -> bool {
    let details = phase.workload.details.as_deref();
    details.is_some_and(|details| details.think.is_some())
}

/// The finding that the rate had one level and then a lower one: burst credit was spent.
pub(super) fn burst(phase: &Phase) -> Option<Finding> {
    let slices = phase.slice_ops();
    let step = find_drop(&slices)?;
    let slice_s = phase.slice_seconds();
    Some(finding(
        FindingCode::Burst,
        Severity::Warn,
        Some(phase),
        format!(
            "{} IOPS for the first {} s, then {}: burst credit or a fast cache was used up, and \
             the lower level is the sustained one.",
            number(step.before.mean / slice_s),
            number(step.at as f64 * slice_s),
            number(step.after.mean / slice_s),
        ),
    ))
}

/// The finding that the rate is a plateau too flat to be the disk's own limit.
pub(super) fn capped(run: &Run, phase: &Phase, figures: &PhaseFigures) -> Option<Finding> {
    let open_loop = phase.workload.rate_per_s.is_some();
    // An open loop that keeps its rate is as flat as its schedule, and a job with pauses as flat as the pauses.
    let by_schedule = || thinks(phase) || behind_rate(phase, figures).is_none();
    if phase.sync.is_some() || (open_loop && by_schedule()) {
        return None;
    }
    let warmup = figures.warmup_slices;
    let ops = phase.slice_ops();
    let bytes: Vec<f64> = ops
        .iter()
        .map(|ops| ops * phase.workload.block.0 as f64)
        .collect();
    let plateau = plateau::assess(&Throughput {
        ops: ops.get(warmup..)?,
        bytes: bytes.get(warmup..)?,
        slice_s: phase.slice_seconds(),
        // In an overloaded open loop more requests are due than complete, however many are in flight.
        depth: match open_loop {
            true => 1.0,
            false => phase.workload.in_flight() as f64,
        },
        mean_latency_s: mean_latency(phase)?,
        base_latency_s: base_latency(run, phase),
    })?;
    let mib = number(plateau.bytes_per_s / (1 << 20) as f64);
    let level = match plateau.capped {
        LimitedQuantity::Ops => format!("{} IOPS", number(plateau.ops_per_s)),
        LimitedQuantity::Bytes => format!("{mib} MiB/s"),
        LimitedQuantity::Either => format!("{} IOPS or {mib} MiB/s", number(plateau.ops_per_s)),
    };
    Some(finding(
        FindingCode::Capped,
        Severity::Note,
        Some(phase),
        format!(
            "The rate is constant at {level} while requests queue, too steady to be the disk's own limit. A volume \
             or instance with a higher limit would give more."
        ),
    ))
}

/// The mean latency of reads and writes together, in seconds.
fn mean_latency(phase: &Phase) -> Option<f64> {
    let flows = [Direction::Read, Direction::Write];
    let (mut sum, mut count) = (0.0, 0.0);
    for flow in flows
        .into_iter()
        .filter_map(|direction| phase.flow(direction))
    {
        let times = from_submission(flow);
        sum += times.mean() * times.count() as f64;
        count += times.count() as f64;
    }
    (count > 0.0).then(|| sum / count / 1e9)
}

/// Latencies from submission, without the time that requests were overdue.
fn from_submission(flow: &Flow) -> &Histogram {
    flow.service.as_ref().unwrap_or(&flow.latency)
}

/// Latency of a request that does not queue, in seconds: the median of the phase with one request in flight, if it
/// ran, otherwise the 1st percentile of this phase.
fn base_latency(run: &Run, phase: &Phase) -> Option<f64> {
    let alone = run
        .phases
        .iter()
        .find(|other| BASE_PHASES.contains(&other.name.as_str()) && other.name != phase.name)
        .filter(|other| other.workload.in_flight() == 1)
        .and_then(|other| other.read.as_ref())
        .map(|flow| flow.latency.quantile(0.5));
    let fastest = [Direction::Read, Direction::Write]
        .into_iter()
        .filter_map(|direction| phase.flow(direction))
        .map(|flow| from_submission(flow).quantile(0.01))
        .min();
    let base = match (alone, fastest) {
        (Some(alone), Some(fastest)) => alone.min(fastest),
        (one, other) => one.or(other)?,
    };
    Some(base as f64 / 1e9)
}

/// The finding that the phase ended before the interval was narrow enough.
pub(super) fn short(phase: &Phase, figures: &PhaseFigures) -> Option<Finding> {
    let wanted = phase.workload.precision;
    let main = figures.flows.first()?;
    let width = main.iops.half_width();
    let took = number(phase.seconds);
    let (severity, why) = match (phase.stopped, width) {
        (StopReason::Signal, _) => (Severity::Warn, "A signal ended the phase early".to_owned()),
        (StopReason::Precise, _) => return None,
        _ if phase.windows.is_empty() => return None,
        (_, Some(width)) if width <= wanted => return None,
        // A precision that was not requested is not missed, unless the figure is worth little without it.
        (_, Some(width)) if wanted == 0.0 && width <= NOTE_INTERVAL_WIDTH => return None,
        // A test of Bonnie++ takes as long as its work: no length of time makes it trusted.
        (_, None) if wanted == 0.0 && phase.workload.calls().is_some() => return None,
        (_, Some(width)) => {
            let severity = match width > WARN_INTERVAL_WIDTH {
                true => Severity::Warn,
                false => Severity::Note,
            };
            let missed = match wanted > 0.0 {
                true => format!(", not to ±{}", percent(wanted)),
                false => String::new(),
            };
            let known = rate_with_interval(main);
            (
                severity,
                format!("After {took} s the rate was known to be {known}{missed}"),
            )
        }
        (_, None) => (
            Severity::Warn,
            format!("{took} s are too short for an interval"),
        ),
    };
    Some(finding(
        FindingCode::Short,
        severity,
        Some(phase),
        match phase.stopped {
            StopReason::Signal => format!("{why}."),
            _ => format!(
                "{why}; {} to know it better.",
                advice_for_longer_phase(phase)
            ),
        },
    ))
}

/// The rate of a flow with its interval: `11,908 IOPS ±4 %`, `between 120 and 23,000 IOPS`.
fn rate_with_interval(flow: &FlowFigures) -> String {
    let iops = &flow.iops;
    match iops.width(number) {
        Some(width) if width.starts_with('±') => format!("{} IOPS {width}", number(iops.mean)),
        Some(bounds) => format!("between {} IOPS", bounds.replacen(" to ", " and ", 1)),
        None => format!("{} IOPS", number(iops.mean)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_run::{self, TestRun};
    use super::*;

    fn codes(run: &Run) -> Vec<(FindingCode, Severity)> {
        test_run::codes(run)
    }

    #[test]
    fn a_steady_disk_has_no_finding() {
        for seed in 0..20 {
            let run = TestRun::steady(1000.0).seed(seed).run();
            assert_eq!(codes(&run), [], "seed {seed}");
        }
    }

    #[test]
    fn a_rate_that_drifts_is_unsteady() {
        let run = TestRun::new(|t| 1000.0 * (1.0 - 0.05 * t)).run();
        let found = codes(&run);
        assert!(
            found.contains(&(FindingCode::Unsteady, Severity::Warn)),
            "{found:?}"
        );
    }

    #[test]
    fn a_drift_is_reported_by_both_rates_and_never_falls_by_more_than_all() {
        for (begin, slope, word) in [(1.0, -0.119, "fell"), (0.05, 0.119, "rose")] {
            let run = TestRun::new(move |t| 1000.0 * (begin + slope * t)).run();
            let conclusion = test_run::conclude(&run);
            let found = conclusion
                .findings
                .iter()
                .find(|f| f.code == FindingCode::Unsteady);
            let text = &found.unwrap().text;
            assert!(
                text.starts_with(&format!("The rate {word} from ")),
                "{text}"
            );
            assert!(!text.contains('%'), "{text}");
        }
    }

    #[test]
    fn a_spent_burst_is_reported_with_both_levels_and_the_time() {
        let run = TestRun::new(|t| if t < 4.0 { 3000.0 } else { 400.0 }).run();
        let conclusion = test_run::conclude(&run);
        let burst = conclusion
            .findings
            .iter()
            .find(|f| f.code == FindingCode::Burst);
        let text = &burst.unwrap().text;
        assert!(text.contains("for the first 4.0 s, then 4"), "{text}");
        assert!(
            !codes(&run)
                .iter()
                .any(|(code, _)| *code == FindingCode::Unsteady)
        );
        assert!(
            !codes(&run)
                .iter()
                .any(|(code, _)| *code == FindingCode::Capped)
        );
    }

    #[test]
    fn a_plateau_with_waiting_requests_is_capped() {
        let run = TestRun::capped(400.0).run();
        assert_eq!(codes(&run), [(FindingCode::Capped, Severity::Note)]);
        let text = &test_run::conclude(&run).findings[0].text;
        assert!(text.contains("400 IOPS or"), "{text}");
        // In an open loop the same flat rate is the requested one.
        let mut run = run;
        run.phases[0].workload.rate_per_s = Some(400.0);
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn an_interval_that_stayed_wide_is_short() {
        let run = TestRun::steady(1000.0).noise(0.6).run();
        let found = codes(&run);
        assert!(
            found.iter().any(|(code, _)| *code == FindingCode::Short),
            "{found:?}"
        );
        // Without a requested precision, only an interval that says nothing is reported.
        for (noise, short) in [(0.2, false), (2.0, true)] {
            let mut run = TestRun::steady(1000.0).noise(noise).run();
            run.phases[0].workload.precision = 0.0;
            let found = codes(&run);
            let said = found.iter().any(|(code, _)| *code == FindingCode::Short);
            assert_eq!(said, short, "{noise}: {found:?}");
        }
    }

    #[test]
    fn a_phase_too_short_for_an_interval_is_short_also_where_none_was_asked_for() {
        for precision in [0.03, 0.0] {
            let mut run = TestRun::steady(1000.0).lasting(1).run();
            run.phases[0].workload.precision = precision;
            let found = codes(&run);
            assert!(
                found.contains(&(FindingCode::Short, Severity::Warn)),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_wide_interval_speaks_for_itself_unless_it_says_nothing() {
        let width = |noise: f64| {
            let run = TestRun::steady(1000.0).noise(noise).run();
            codes(&run)
                .into_iter()
                .find(|(code, _)| *code == FindingCode::Short)
        };
        assert_eq!(width(0.3), Some((FindingCode::Short, Severity::Note)));
        assert_eq!(width(0.7), Some((FindingCode::Short, Severity::Note)));
        let run = TestRun::new(|t| if t < 7.5 { 10.0 } else { 5000.0 }).run();
        assert!(codes(&run).contains(&(FindingCode::Short, Severity::Warn)));
    }

    #[test]
    fn a_cap_that_alternates_is_named_with_both_levels() {
        for stay in [1.0, 2.0] {
            let high = move |t: f64| (t / stay) as u64 % 2 == 1;
            let run = TestRun::new(move |t| if high(t) { 3000.0 } else { 300.0 }).run();
            let conclusion = test_run::conclude(&run);
            let found = conclusion
                .findings
                .iter()
                .find(|f| f.code == FindingCode::Unsteady);
            let text = &found
                .unwrap_or_else(|| panic!("{:?}", conclusion.findings))
                .text;
            assert!(text.starts_with("The rate alternated between 30"), "{text}");
        }
    }

    /// An open loop at `due` requests a second on a disk limited to `cap`; the run waits for the queue at the end.
    fn overloaded(cap: f64, due: f64) -> Run {
        let mut run = TestRun::capped(cap).run();
        let phase = &mut run.phases[0];
        phase.workload.rate_per_s = Some(due);
        phase.workload.depth = 4096;
        let mut queue = 0.0;
        for window in &mut phase.windows {
            queue += due - cap;
            window.in_flight = queue as u64;
        }
        phase.drain_seconds = f64::min(queue, 4096.0) / cap;
        let flow = phase.read.as_mut().unwrap();
        let mut service = Histogram::new();
        for percent in 1..=100_u32 {
            let waited = f64::from(percent) / 100.0 * phase.drain_seconds;
            service.record_many((waited * 1e9) as u64 + 1_000_000, flow.ops / 100);
        }
        service.record_many(1_000_000, flow.ops / 20);
        flow.service = Some(service);
        run
    }

    #[test]
    fn an_overloaded_open_loop_is_overload_and_no_stall() {
        for (cap, due) in [(300.0, 600.0), (3000.0, 3300.0), (100.0, 1000.0)] {
            let run = overloaded(cap, due);
            let found = codes(&run);
            let expected = [
                (FindingCode::Unsteady, Severity::Warn),
                (FindingCode::Capped, Severity::Note),
            ];
            assert_eq!(found, expected, "{cap} {due}");
            assert!(
                test_run::conclude(&run).findings[0]
                    .text
                    .starts_with("Overload")
            );
        }
        // A stall at the same time is reported too.
        let mut run = overloaded(300.0, 600.0);
        run.phases[0].drain_seconds += 5.0;
        let found: Vec<FindingCode> = codes(&run).into_iter().map(|(code, _)| code).collect();
        assert!(
            found.contains(&FindingCode::Stall) && found.contains(&FindingCode::Unsteady),
            "{found:?}"
        );
    }

    #[test]
    fn a_rate_that_pauses_do_not_allow_is_overload_and_no_limit_of_the_disk() {
        let mut run = overloaded(300.0, 600.0);
        run.phases[0].workload.details = Some(Box::new(record::JobOptions {
            think: Some(record::ThinkTime::default()),
            ..record::JobOptions::default()
        }));
        assert_eq!(codes(&run), [(FindingCode::Unsteady, Severity::Warn)]);
        let text = &test_run::conclude(&run).findings[0].text;
        assert!(
            text.ends_with("Give a lower rate or shorter pauses, or use a faster disk."),
            "{text}"
        );
    }

    #[test]
    fn a_job_that_ends_by_its_size_is_told_to_move_more() {
        let mut run = TestRun::steady(1000.0).lasting(1).run();
        let phase = &mut run.phases[0];
        phase.workload.details = Some(Box::new(record::JobOptions {
            options: vec![("rw".to_owned(), "read".to_owned())],
            ..record::JobOptions::default()
        }));
        for (stopped, advice) in [
            (StopReason::Time, "give the job a longer runtime"),
            (
                StopReason::Ops,
                "give the job a larger size, or runtime and time_based",
            ),
        ] {
            run.phases[0].stopped = stopped;
            let findings = test_run::conclude(&run).findings;
            let short = findings.iter().find(|it| it.code == FindingCode::Short);
            assert!(short.unwrap().text.contains(advice), "{findings:?}");
        }
    }

    #[test]
    fn an_overload_is_reported_by_the_rate_after_the_opening_burst() {
        let mut run = TestRun::new(|t| if t < 0.5 { 3000.0 } else { 300.0 }).run();
        run.phases[0].workload.rate_per_s = Some(800.0);
        let text = &test_run::conclude(&run).findings[0].text;
        let words = text.strip_prefix("Overload: 800 requests a second were due and ");
        let completed: f64 = words
            .and_then(|words| words.split(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("{text}"));
        assert!((completed / 300.0 - 1.0).abs() < 0.02, "{text}");
    }

    #[test]
    fn a_stall_of_an_open_loop_that_keeps_its_rate_otherwise_is_no_overload() {
        let mut run = TestRun::steady(1000.0).stalled(3..5).run();
        run.phases[0].workload.rate_per_s = Some(1000.0);
        let found: Vec<FindingCode> = codes(&run).into_iter().map(|(code, _)| code).collect();
        assert!(
            found.contains(&FindingCode::Stall) && !found.contains(&FindingCode::Unsteady),
            "{found:?}"
        );
    }

    #[test]
    fn a_phase_that_a_signal_ended_is_short() {
        let mut run = TestRun::steady(1000.0).run();
        run.phases[0].stopped = StopReason::Signal;
        assert_eq!(codes(&run), [(FindingCode::Short, Severity::Warn)]);
    }

    #[test]
    fn an_open_loop_that_falls_behind_is_unsteady() {
        let mut run = TestRun::steady(1000.0).run();
        run.phases[0].workload.rate_per_s = Some(1500.0);
        assert_eq!(codes(&run), [(FindingCode::Unsteady, Severity::Warn)]);
        run.phases[0].workload.rate_per_s = Some(1010.0);
        assert_eq!(codes(&run), []);
    }
}
