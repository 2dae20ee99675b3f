//! The figures of one round: means over the whole round. A slow start is included, since rounds follow each other and
//! a host may be slow in one of twenty. A burst at the start is left out: a cap that was idle between two rounds
//! permits it each time.

use record::{Direction, Flow, Histogram, Phase};
use study::steady::burst_end;

/// Time after the end of a round from which requests in flight may be stuck, in seconds.
const STUCK_S: f64 = 0.9;
/// Multiple of the mean latency from which they count as stuck.
const STUCK_LATENCY_FACTOR: f64 = 3.0;

use sweep::{Figure, Metric};

/// A figure of a round; `None` if its phase did not run, or no request with a known latency completed.
///
/// The figures of a trace are those of its reads and writes; its commits are some of these.
pub(super) fn value_of(phases: &[Phase], figure: &Figure) -> Option<f64> {
    let phase = phases.iter().find(|phase| phase.name == figure.phase)?;
    let flows = flows(phase, figure);
    let latency = latency(&flows);
    let per_second = |of: fn(&Flow) -> u64, rates: fn(&Phase, Direction) -> Vec<f64>| {
        let burst = burst_end(&phase.slice_ops());
        let in_burst = |(direction, _): &(Direction, &Flow)| -> f64 {
            let burst = rates(phase, *direction).into_iter().take(burst);
            burst.sum::<f64>() * phase.slice_seconds()
        };
        let all: u64 = flows.iter().map(|(_, flow)| of(flow)).sum();
        let sum = all as f64 - flows.iter().map(in_burst).sum::<f64>();
        let seconds = seconds(phase, &latency) - burst as f64 * phase.slice_seconds();
        (seconds > 0.0).then(|| sum / seconds)
    };
    let quantile = |share: f64| (!latency.is_empty()).then(|| latency.quantile(share) as f64);
    match figure.metric {
        Metric::Iops => per_second(|flow| flow.ops, Phase::slice_rates),
        Metric::Bytes => per_second(|flow| flow.bytes, Phase::slice_byte_rates),
        Metric::Mean => (!latency.is_empty()).then(|| latency.mean()),
        Metric::P50 => quantile(0.50),
        Metric::P90 => quantile(0.90),
        Metric::P95 => quantile(0.95),
        Metric::P99 => quantile(0.99),
        Metric::P99_9 => quantile(0.999),
    }
}

/// Length of a phase, in seconds. If a disk was stuck at the end of the time, its whole silence counts, and not only
/// the part before the end.
fn seconds(phase: &Phase, usual: &Histogram) -> f64 {
    let drain = phase.drain_seconds;
    let usual_s = if usual.is_empty() {
        0.0
    } else {
        usual.mean() / 1e9
    };
    let is_stuck = drain >= STUCK_S && drain > STUCK_LATENCY_FACTOR * usual_s;
    phase.seconds + if is_stuck { drain } else { 0.0 }
}

/// The flows that a figure includes. Over all directions these are the reads and writes, or the commits if there are
/// any; their bytes are those of the writes.
fn flows<'a>(phase: &'a Phase, figure: &Figure) -> Vec<(Direction, &'a Flow)> {
    let is_asked = |of: Direction| match (figure.direction, &phase.commit) {
        (Some(direction), _) => of == direction,
        (None, Some(_)) if figure.metric != Metric::Bytes && phase.name != bench::REPLAY => {
            of == Direction::Commit
        }
        (None, _) => matches!(of, Direction::Read | Direction::Write),
    };
    phase.directions().filter(|(of, _)| is_asked(*of)).collect()
}

fn latency(flows: &[(Direction, &Flow)]) -> Histogram {
    let mut merged = Histogram::new();
    for (_, flow) in flows {
        merged.merge(&flow.latency);
    }
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

    /// The value of page-read.iops and .bytes if the first slice has `times` times its requests.
    fn with_first_slice(times: u64) -> [f64; 2] {
        let (mut run, _) = sample::database_run(7);
        let phase = run.phases.iter_mut().find(|one| one.name == "page-read");
        let phase = phase.unwrap();
        let slice = &mut phase.windows[0].read.as_mut().unwrap().slices[0];
        let flow = phase.read.as_mut().unwrap();
        flow.ops = flow.ops - slice.ops + times * slice.ops;
        flow.bytes = flow.bytes - slice.bytes + times * slice.bytes;
        slice.ops *= times;
        slice.bytes *= times;
        ["iops", "bytes"].map(|metric| {
            let figure = format!("page-read.{metric}").parse().unwrap();
            value_of(&run.phases, &figure).unwrap()
        })
    }

    #[test]
    fn a_burst_at_the_start_is_left_out_and_a_slow_start_is_not() {
        let without = with_first_slice(1);
        let burst = with_first_slice(20);
        let slow = with_first_slice(0);
        for (at, without) in without.into_iter().enumerate() {
            assert!((burst[at] / without - 1.0).abs() < 0.005, "{burst:?}");
            assert!(slow[at] < without * 0.995, "{slow:?} {without}");
        }
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
    fn a_phase_that_was_not_measured_has_no_figure_and_an_empty_one_has_zero() {
        assert_eq!(value("dance.iops"), None);
        assert_eq!(value("page-read.write.p99"), None);
        let (mut run, _) = sample::database_run(7);
        run.phases[0].read = None;
        let figure = |name: &str| format!("{}.{name}", run.phases[0].name).parse().unwrap();
        assert_eq!(value_of(&run.phases, &figure("iops")), Some(0.0));
        assert_eq!(value_of(&run.phases, &figure("p99")), None);
    }
}
