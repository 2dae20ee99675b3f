//! The figures of one round: plain means over all of it, without a warm-up, since rounds follow each
//! other.

use record::{Direction, Flow, Histogram, Phase};

/// Requests that took longer than this to come back when the time was up, in seconds, may have been stuck,
/// and not only on their way.
const STUCK_S: f64 = 0.9;
/// They were, where that is so many times as long as a request took on average.
const STUCK: f64 = 3.0;

use sweep::{Figure, Metric};

/// A figure of a round; `None` where its phase did not run, or nothing came back whose time could be
/// told.
pub(super) fn value_of(phases: &[Phase], figure: &Figure) -> Option<f64> {
    let phase = phases.iter().find(|phase| phase.name == figure.phase)?;
    let flows = flows(phase, figure);
    let per_second = |of: fn(&Flow) -> u64| {
        let sum: u64 = flows.iter().map(|flow| of(flow)).sum();
        let seconds = seconds(phase, &flows);
        (seconds > 0.0).then(|| sum as f64 / seconds)
    };
    let quantile = |share: f64| {
        let latency = latency(&flows);
        (!latency.is_empty()).then(|| latency.quantile(share) as f64)
    };
    match figure.metric {
        Metric::Iops => per_second(|flow| flow.ops),
        Metric::Bytes => per_second(|flow| flow.bytes),
        Metric::Mean => {
            let latency = latency(&flows);
            (!latency.is_empty()).then(|| latency.mean())
        }
        Metric::P50 => quantile(0.50),
        Metric::P90 => quantile(0.90),
        Metric::P95 => quantile(0.95),
        Metric::P99 => quantile(0.99),
        Metric::P99_9 => quantile(0.999),
    }
}

/// How long a phase took, in seconds. A disk that was stuck when the time was up was so for its whole
/// silence, and not only for what of it lay before the end.
fn seconds(phase: &Phase, flows: &[&Flow]) -> f64 {
    let drain = phase.drain_seconds;
    let usual = latency(flows);
    let usual_s = if usual.is_empty() {
        0.0
    } else {
        usual.mean() / 1e9
    };
    let is_stuck = drain >= STUCK_S && drain > STUCK * usual_s;
    phase.seconds + if is_stuck { drain } else { 0.0 }
}

/// The flows that a figure is of. Over all directions these are the reads and writes, or the commits
/// where there are any, of which only the bytes are those of the writes.
fn flows<'a>(phase: &'a Phase, figure: &Figure) -> Vec<&'a Flow> {
    if let Some(direction) = figure.direction {
        let own = |(of, flow): (Direction, &'a Flow)| (of == direction).then_some(flow);
        return phase.directions().filter_map(own).collect();
    }
    match &phase.commit {
        Some(commits) if figure.metric != Metric::Bytes => vec![commits],
        _ => [&phase.read, &phase.write].into_iter().flatten().collect(),
    }
}

fn latency(flows: &[&Flow]) -> Histogram {
    let mut merged = Histogram::new();
    flows.iter().for_each(|flow| merged.merge(&flow.latency));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::views::sample;

    fn value(name: &str) -> Option<f64> {
        let (run, _) = sample::database_run(7);
        value_of(&run.phases, &name.parse().unwrap())
    }

    #[test]
    fn rates_are_over_the_whole_round_and_latencies_of_all_requests() {
        let (run, _) = sample::database_run(7);
        let mixed = run.phases.iter().find(|phase| phase.name == "page-mixed");
        let mixed = mixed.unwrap();
        let (read, write) = (mixed.read.as_ref().unwrap(), mixed.write.as_ref().unwrap());
        let rate = (read.ops + write.ops) as f64 / mixed.seconds;
        assert_eq!(value("page-mixed.iops"), Some(rate));
        assert_eq!(
            value("page-mixed.read.bytes"),
            Some(read.bytes as f64 / mixed.seconds)
        );
        let p99 = value("page-mixed.write.p99").unwrap();
        assert_eq!(p99, write.latency.quantile(0.99) as f64);
        assert!(value("page-mixed.mean").unwrap() > 0.0);
    }

    #[test]
    fn a_silence_over_the_end_counts_as_a_whole() {
        let (mut run, _) = sample::database_run(7);
        let figure = format!("{}.iops", run.phases[0].name).parse().unwrap();
        run.phases[0].drain_seconds = 0.0;
        let before = value_of(&run.phases, &figure).unwrap();
        let seconds = run.phases[0].seconds;
        run.phases[0].drain_seconds = 0.5;
        assert_eq!(value_of(&run.phases, &figure), Some(before));
        run.phases[0].drain_seconds = 3.0 * seconds;
        let after = value_of(&run.phases, &figure).unwrap();
        assert!((after / before - 0.25).abs() < 1e-9, "{before} {after}");
    }

    #[test]
    fn what_was_not_measured_has_no_figure_and_what_came_to_nothing_has_zero() {
        assert_eq!(value("dance.iops"), None);
        assert_eq!(value("page-read.write.p99"), None);
        let (mut run, _) = sample::database_run(7);
        run.phases[0].read = None;
        let figure = |name: &str| format!("{}.{name}", run.phases[0].name).parse().unwrap();
        assert_eq!(value_of(&run.phases, &figure("iops")), Some(0.0));
        assert_eq!(value_of(&run.phases, &figure("p99")), None);
    }
}
