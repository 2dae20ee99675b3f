//! Whether there is one figure to give: a steady level, known precisely, that is the disk's own.

use record::{Code, Direction, Finding, Phase, Run, Severity, Stopped};
use study::level::find_drop;
use study::plateau::{self, Capped, Throughput};
use study::steady::{self, Reason};

use super::{finding, longer};
use crate::bench::conclusion::{FlowFigures, PhaseFigures};
use crate::render::relative;
use crate::render::words::{number, percent};

/// An open loop keeps its rate when this share of it came back.
const KEPT: f64 = 0.95;
/// An interval wider than this is a warning; narrower, but wider than asked for, a note.
const WIDE: f64 = 0.10;
/// The phases of suites that say how long a request takes that does not wait.
const BASE_PHASES: [&str; 2] = ["seek", "seek-1"];

/// The level wanders or drifts, so that the mean describes no moment of it.
pub(super) fn unsteady(phase: &Phase, figures: &PhaseFigures) -> Option<Finding> {
    let slices = phase.slice_ops();
    let steadiness = steady::assess(slices.get(figures.warmup_slices..)?);
    let how = match steadiness.reason {
        Reason::Level | Reason::TooFew => return None,
        Reason::Drift => drifted(phase, slices.get(figures.warmup_slices..)?),
        Reason::Bend => "The rate rose and fell over the phase".to_owned(),
        Reason::Step => "The rate changed from one level to another".to_owned(),
    };
    Some(finding(
        Code::Unsteady,
        Severity::Warn,
        Some(phase),
        format!(
            "{how}, so its mean describes no moment of it. {}.",
            match phase.workload.calls() {
                None => "Measure longer (--seconds)".to_owned(),
                Some(_) => format!("To measure longer, {}", longer(phase)),
            }
        ),
    ))
}

/// How a rate drifted, by the means of the first and the last fifth: the share that a line fitted to it falls by
/// may be more than all.
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

/// An open loop fell behind its rate: the latencies grow for as long as it lasts.
pub(super) fn behind_rate(phase: &Phase) -> Option<Finding> {
    let rate = phase.workload.rate_per_s?;
    let ops: u64 = phase.windows.iter().map(record::Window::ops).sum();
    let came_back = ops as f64 / phase.seconds;
    // Poisson arrivals differ from their mean by chance; three deviations are no chance.
    let by_chance = 3.0 * (rate / phase.seconds).sqrt();
    (came_back < rate * KEPT && came_back < rate - by_chance).then(|| {
        finding(
            Code::Unsteady,
            Severity::Warn,
            Some(phase),
            format!(
                "{} requests a second were due and {} came back: requests queue up, and the \
                 latencies grow for as long as this goes on.",
                number(rate),
                number(came_back)
            ),
        )
    })
}

/// A level, and then a lower one: burst credit was spent.
pub(super) fn burst(phase: &Phase) -> Option<Finding> {
    let slices = phase.slice_ops();
    let step = find_drop(&slices)?;
    let slice_s = phase.slice_seconds();
    Some(finding(
        Code::Burst,
        Severity::Warn,
        Some(phase),
        format!(
            "{} IOPS for the first {} s, then {}: burst credit or a fast cache was spent, and the \
             lower level is what lasts.",
            number(step.before.mean / slice_s),
            number(step.at as f64 * slice_s),
            number(step.after.mean / slice_s),
        ),
    ))
}

/// A plateau too flat to be the disk's own.
pub(super) fn capped(run: &Run, phase: &Phase, figures: &PhaseFigures) -> Option<Finding> {
    if phase.workload.rate_per_s.is_some() || phase.sync.is_some() {
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
        depth: phase.workload.in_flight() as f64,
        mean_latency_s: mean_latency(phase)?,
        base_latency_s: base_latency(run, phase),
    })?;
    let mib = number(plateau.bytes_per_s / (1 << 20) as f64);
    let level = match plateau.capped {
        Capped::Ops => format!("{} IOPS", number(plateau.ops_per_s)),
        Capped::Bytes => format!("{mib} MiB/s"),
        Capped::Either => format!("{} IOPS or {mib} MiB/s", number(plateau.ops_per_s)),
    };
    Some(finding(
        Code::Capped,
        Severity::Note,
        Some(phase),
        format!(
            "The rate is too flat to be the disk's own: something holds it at {level}. A volume \
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
        sum += flow.latency.mean() * flow.latency.count() as f64;
        count += flow.latency.count() as f64;
    }
    (count > 0.0).then(|| sum / count / 1e9)
}

/// How long a request takes that does not wait: from the phase with one in flight, where it ran,
/// else the fastest of this one.
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
        .map(|flow| flow.latency.quantile(0.01))
        .min();
    let base = match (alone, fastest) {
        (Some(alone), Some(fastest)) => alone.min(fastest),
        (one, other) => one.or(other)?,
    };
    Some(base as f64 / 1e9)
}

/// The phase ended before the interval was narrow enough.
pub(super) fn short(phase: &Phase, figures: &PhaseFigures) -> Option<Finding> {
    let wanted = phase.workload.precision;
    let main = figures.flows.first()?;
    let width = main.iops.half_width();
    let (severity, why) = match (phase.stopped, width) {
        (Stopped::Signal, _) => (Severity::Warn, "A signal ended the phase early".to_owned()),
        (Stopped::Precise, _) => return None,
        _ if phase.windows.is_empty() => return None,
        (_, Some(width)) if width <= wanted => return None,
        // What was not asked for is not missed, unless the figure is worth little without it.
        (_, Some(width)) if wanted == 0.0 && width > WIDE => (
            Severity::Warn,
            format!(
                "After {} s the rate was known only to be {}",
                number(phase.seconds),
                within(main)
            ),
        ),
        _ if wanted == 0.0 => return None,
        (_, Some(width)) => (
            if width > WIDE {
                Severity::Warn
            } else {
                Severity::Note
            },
            format!(
                "After {} s the rate was known to be {}, not to ±{}",
                number(phase.seconds),
                within(main),
                percent(wanted)
            ),
        ),
        (_, None) => (
            Severity::Warn,
            format!("{} s say too little for an interval", number(phase.seconds)),
        ),
    };
    Some(finding(
        Code::Short,
        severity,
        Some(phase),
        match phase.stopped {
            Stopped::Signal => format!("{why}."),
            _ => format!("{why}; {} to know it better.", longer(phase)),
        },
    ))
}

/// The rate of a flow with its interval: `11,908 IOPS ±4 %`, `between 120 and 23,000 IOPS`.
fn within(flow: &FlowFigures) -> String {
    let iops = &flow.iops;
    match relative::width(iops, number) {
        Some(width) if width.starts_with('±') => format!("{} IOPS {width}", number(iops.mean)),
        Some(bounds) => format!("between {} IOPS", bounds.replacen(" to ", " and ", 1)),
        None => format!("{} IOPS", number(iops.mean)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::{self, Made};
    use super::*;

    fn codes(run: &Run) -> Vec<(Code, Severity)> {
        made::codes(run)
    }

    #[test]
    fn a_steady_disk_has_no_finding() {
        for seed in 0..20 {
            let run = Made::steady(1000.0).seed(seed).run();
            assert_eq!(codes(&run), [], "seed {seed}");
        }
    }

    #[test]
    fn a_rate_that_drifts_is_unsteady() {
        let run = Made::new(|t| 1000.0 * (1.0 - 0.05 * t)).run();
        let found = codes(&run);
        assert!(
            found.contains(&(Code::Unsteady, Severity::Warn)),
            "{found:?}"
        );
    }

    #[test]
    fn a_drift_is_told_by_both_rates_and_never_falls_by_more_than_all() {
        for (begin, slope, word) in [(1.0, -0.119, "fell"), (0.05, 0.119, "rose")] {
            let run = Made::new(move |t| 1000.0 * (begin + slope * t)).run();
            let conclusion = made::conclude(&run);
            let found = conclusion
                .findings
                .iter()
                .find(|f| f.code == Code::Unsteady);
            let text = &found.unwrap().text;
            assert!(
                text.starts_with(&format!("The rate {word} from ")),
                "{text}"
            );
            assert!(!text.contains('%'), "{text}");
        }
    }

    #[test]
    fn a_spent_burst_is_told_with_both_levels_and_the_time() {
        let run = Made::new(|t| if t < 4.0 { 3000.0 } else { 400.0 }).run();
        let conclusion = made::conclude(&run);
        let burst = conclusion.findings.iter().find(|f| f.code == Code::Burst);
        let text = &burst.unwrap().text;
        assert!(text.contains("for the first 4.0 s, then 4"), "{text}");
        assert!(!codes(&run).iter().any(|(code, _)| *code == Code::Unsteady));
        assert!(!codes(&run).iter().any(|(code, _)| *code == Code::Capped));
    }

    #[test]
    fn a_plateau_with_waiting_requests_is_capped() {
        let run = Made::capped(400.0).run();
        assert_eq!(codes(&run), [(Code::Capped, Severity::Note)]);
        let text = &made::conclude(&run).findings[0].text;
        assert!(text.contains("400 IOPS or"), "{text}");
        // The same flat rate in an open loop is what was asked for.
        let mut run = run;
        run.phases[0].workload.rate_per_s = Some(400.0);
        assert_eq!(codes(&run), []);
    }

    #[test]
    fn an_interval_that_stayed_wide_is_short() {
        let run = Made::steady(1000.0).noise(0.6).run();
        let found = codes(&run);
        assert!(
            found.iter().any(|(code, _)| *code == Code::Short),
            "{found:?}"
        );
        // Without a precision asked for, only one that says nothing is.
        for (noise, short) in [(0.2, false), (2.0, true)] {
            let mut run = Made::steady(1000.0).noise(noise).run();
            run.phases[0].workload.precision = 0.0;
            let found = codes(&run);
            let said = found.iter().any(|(code, _)| *code == Code::Short);
            assert_eq!(said, short, "{noise}: {found:?}");
        }
    }

    #[test]
    fn a_phase_that_a_signal_ended_is_short() {
        let mut run = Made::steady(1000.0).run();
        run.phases[0].stopped = Stopped::Signal;
        assert_eq!(codes(&run), [(Code::Short, Severity::Warn)]);
    }

    #[test]
    fn an_open_loop_that_falls_behind_is_unsteady() {
        let mut run = Made::steady(1000.0).run();
        run.phases[0].workload.rate_per_s = Some(1500.0);
        assert_eq!(codes(&run), [(Code::Unsteady, Severity::Warn)]);
        run.phases[0].workload.rate_per_s = Some(1010.0);
        assert_eq!(codes(&run), []);
    }
}
