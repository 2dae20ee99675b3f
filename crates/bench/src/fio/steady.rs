//! A steady state that ends a phase, judged by the sums of all clones that are reported as one.

use std::sync::{Mutex, PoisonError};

use record::{Direction, Steady, SteadyFigure, SteadyState, Window};

/// The steady state of streams that are reported as one.
pub(super) struct SteadyGroup {
    rule: SteadyState,
    members: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// For each second, the number of streams that have reported it, and the sums of their counts.
    seconds: Vec<(usize, Sums)>,
    last: Option<Steady>,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    ops: f64,
    bytes: f64,
    /// Sum of the latencies of all requests, in nanoseconds.
    latency: f64,
    answers: f64,
}

impl SteadyGroup {
    pub(super) fn new(rule: SteadyState, members: usize) -> SteadyGroup {
        SteadyGroup {
            rule,
            members,
            state: Mutex::default(),
        }
    }

    /// Adds a complete window of one of the streams. True if the steady state is reached.
    pub(super) fn window(&self, window: &Window) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let second = window.t_s.round() as usize;
        if state.seconds.len() <= second {
            state.seconds.resize(second + 1, <(usize, Sums)>::default());
        }
        let (seen, sums) = &mut state.seconds[second];
        *seen += 1;
        add(sums, window);
        if *seen == self.members && state.last.is_none_or(|last| last.after_s.is_none()) {
            let judged = self.judge(&state.seconds[..=second], window.t_s + window.seconds);
            state.last = judged.or(state.last);
        }
        state.last.is_some_and(|last| last.after_s.is_some())
    }

    /// The last judgement.
    pub(super) fn outcome(&self) -> Option<Steady> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .last
    }

    /// The result by the figures of the last seconds; `None` if there are fewer seconds than the rule needs.
    fn judge(&self, seconds: &[(usize, Sums)], ended_s: f64) -> Option<Steady> {
        let whole = |span: record::Nanos| span.as_secs_f64().round() as usize;
        let interval = whole(self.rule.interval).max(1);
        let count = whole(self.rule.duration) / interval;
        let from = whole(self.rule.ramp);
        let after_ramp = seconds.get(from..)?;
        let needed = count * interval;
        if count < 2 || after_ramp.len() < needed || after_ramp.len() % interval != 0 {
            return None;
        }
        let values: Vec<f64> = after_ramp[after_ramp.len() - needed..]
            .chunks(interval)
            .map(|chunk| self.figure(chunk))
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let deviation = match self.rule.slope {
            true => slope(&values).abs(),
            false => values
                .iter()
                .map(|value| (value - mean).abs())
                .fold(0.0, f64::max),
        };
        let most = match self.rule.relative {
            true => self.rule.limit * mean,
            false => self.rule.limit,
        };
        Some(Steady {
            after_s: (deviation < most).then_some(ended_s),
            deviation,
            mean,
        })
    }

    fn figure(&self, seconds: &[(usize, Sums)]) -> f64 {
        let sum = |of: fn(&Sums) -> f64| seconds.iter().map(|(_, sums)| of(sums)).sum::<f64>();
        let length = seconds.len() as f64;
        match self.rule.of {
            SteadyFigure::Iops => sum(|sums| sums.ops) / length,
            SteadyFigure::Bandwidth => sum(|sums| sums.bytes) / length,
            SteadyFigure::Latency => sum(|sums| sums.latency) / sum(|sums| sums.answers).max(1.0),
        }
    }
}

fn add(sums: &mut Sums, window: &Window) {
    for direction in [Direction::Read, Direction::Write] {
        let Some(flow) = window.flow(direction) else {
            continue;
        };
        for slice in &flow.slices {
            sums.ops += slice.ops as f64;
            sums.bytes += slice.bytes as f64;
        }
        let answers = flow.latency.count() as f64;
        sums.latency += flow.latency.mean() * answers;
        sums.answers += answers;
    }
}

/// Slope per step of the least squares line through equally spaced values.
fn slope(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let mut above = 0.0;
    let mut below = 0.0;
    for (index, value) in values.iter().enumerate() {
        let x = index as f64 - middle;
        above += x * (value - mean);
        below += x * x;
    }
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Histogram, Nanos, Slice, WindowFlow};

    fn window(second: usize, ops: u64) -> Window {
        let mut latency = Histogram::new();
        (0..ops).for_each(|_| latency.record(1000));
        Window {
            t_s: second as f64,
            seconds: 1.0,
            slice_seconds: 0.1,
            read: Some(WindowFlow {
                slices: vec![Slice {
                    ops,
                    bytes: ops * 4096,
                }],
                latency,
            }),
            write: None,
            sync: None,
            commit: None,
            trim: None,
            in_flight: 0,
            idle_fraction: 0.5,
            device: None,
        }
    }

    fn rule(slope: bool, limit: f64) -> SteadyState {
        SteadyState {
            of: SteadyFigure::Iops,
            slope,
            limit,
            relative: true,
            duration: Nanos::from_secs(4),
            ramp: Nanos::from_secs(2),
            interval: Nanos::from_secs(1),
        }
    }

    /// The second after which the state is steady.
    fn steady_after(rule: SteadyState, ops: &[u64]) -> Option<f64> {
        let group = SteadyGroup::new(rule, 1);
        let ended = (ops.iter().enumerate()).find(|(at, ops)| group.window(&window(*at, **ops)));
        let after = group.outcome().and_then(|outcome| outcome.after_s);
        assert_eq!(ended.map(|(at, _)| at as f64 + 1.0), after);
        after
    }

    #[test]
    fn it_is_steady_when_the_last_seconds_after_the_ramp_are() {
        let ops = [100, 900, 500, 510, 490, 500, 500, 500];
        assert_eq!(steady_after(rule(false, 0.05), &ops), Some(6.0));
        assert_eq!(steady_after(rule(false, 0.01), &ops), None);
        let jump = [100, 100, 100, 300, 302, 300, 301, 300, 300];
        assert_eq!(steady_after(rule(false, 0.05), &jump), Some(7.0));
        // Values that swing up and down have no slope; a rise has one.
        let swings = [1, 1, 300, 500, 500, 300, 300, 500];
        assert_eq!(steady_after(rule(true, 0.05), &swings), Some(6.0));
        let rise = [1, 1, 300, 350, 400, 450, 500, 550];
        assert_eq!(steady_after(rule(true, 0.05), &rise), None);
    }

    #[test]
    fn clones_are_judged_by_their_sum() {
        let group = SteadyGroup::new(rule(false, 0.05), 2);
        let mut ended = None;
        for second in 0..8 {
            let mine = if second % 2 == 0 { 100 } else { 300 };
            assert!(!group.window(&window(second, mine)) || ended.is_some());
            if group.window(&window(second, 400 - mine)) && ended.is_none() {
                ended = Some(second);
            }
        }
        assert_eq!(ended, Some(5));
    }
}
