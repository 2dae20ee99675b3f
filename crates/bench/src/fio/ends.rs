//! Reasons for which a stream ends others at the same time: a missed rate, a steady state, or the end of another
//! stream.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use engine::{Control, Observer};
use fiojob::ExitWhat;
use record::{Direction, Phase, RateFloor, Window};

use super::steady::SteadyGroup;
use super::stream::Stream;
use ui::format::number;

/// State by which the streams between two walls end each other.
pub(super) struct StreamEnds {
    /// Flags by stream, set when the stream is to end.
    ended: Vec<AtomicBool>,
    /// Index in `groups` of the steady-state rule that a stream is judged by, by stream.
    steady: Vec<Option<usize>>,
    groups: Vec<SteadyGroup>,
    /// Set when the jobs after this wall must not begin.
    all: AtomicBool,
}

impl StreamEnds {
    pub(super) fn of(streams: &[Stream]) -> StreamEnds {
        let mut known: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
        for (index, stream) in streams.iter().enumerate() {
            if rule(stream).is_none() {
                continue;
            }
            let same = known.iter_mut().find(|(group, members)| {
                group.is_some()
                    && *group == stream.group
                    && rule(&streams[members[0]]) == rule(stream)
            });
            match same {
                Some((_, members)) => members.push(index),
                None => known.push((stream.group, vec![index])),
            }
        }
        let mut steady = vec![None; streams.len()];
        let mut groups = Vec::new();
        for (number, (_, members)) in known.iter().enumerate() {
            members
                .iter()
                .for_each(|member| steady[*member] = Some(number));
            let rule = rule(&streams[members[0]]);
            groups.extend(rule.map(|rule| SteadyGroup::new(rule, members.len())));
        }
        StreamEnds {
            ended: streams.iter().map(|_| AtomicBool::new(false)).collect(),
            steady,
            groups,
            all: AtomicBool::new(false),
        }
    }

    /// Marks stream `index` as ended, with the streams that end with it.
    pub(super) fn end(&self, index: usize, streams: &[Stream]) {
        let stream = &streams[index];
        let Some(what) = stream.exits else { return };
        for (other, flag) in streams.iter().zip(&self.ended) {
            if what != ExitWhat::Group || other.number == stream.number {
                flag.store(true, Relaxed);
            }
        }
        if what == ExitWhat::All {
            self.all.store(true, Relaxed);
        }
    }

    /// True if the jobs after this wall must not begin.
    pub(super) fn ends_all(&self) -> bool {
        self.all.load(Relaxed)
    }

    /// The observer of stream `index`, which applies its rules before `inner`.
    pub(super) fn watch<'a>(
        &'a self,
        index: usize,
        stream: &Stream,
        inner: &'a mut dyn Observer,
    ) -> Rules<'a> {
        let floor = stream
            .workload
            .details
            .as_ref()
            .and_then(|details| details.floor);
        Rules {
            inner,
            ended: &self.ended[index],
            steady: self.steady[index].and_then(|group| self.groups.get(group)),
            floor: floor.map(RateFloorWatch::new),
        }
    }
}

fn rule(stream: &Stream) -> Option<record::SteadyState> {
    stream
        .workload
        .details
        .as_ref()
        .and_then(|details| details.steady_state)
}

/// Observes the windows of a stream, and ends it by its rules.
pub(super) struct Rules<'a> {
    inner: &'a mut dyn Observer,
    ended: &'a AtomicBool,
    steady: Option<&'a SteadyGroup>,
    floor: Option<RateFloorWatch>,
}

impl Rules<'_> {
    /// Adds the results of the rules to a phase that has ended.
    pub(super) fn finish(self, phase: &mut Phase) {
        phase.outcome.steady = self.steady.and_then(SteadyGroup::outcome);
        phase.outcome.floor_missed = self.floor.and_then(|floor| floor.missed);
    }
}

impl Observer for Rules<'_> {
    fn begin(&mut self) {
        self.inner.begin();
    }

    fn window(&mut self, window: &mut Window) -> Control {
        let control = self.inner.window(window);
        let is_steady = self.steady.is_some_and(|steady| steady.window(window));
        let is_low = self
            .floor
            .as_mut()
            .is_some_and(|floor| floor.window(window));
        match is_steady || is_low || self.ended.load(Relaxed) {
            true => Control::StopByRule,
            false => control,
        }
    }
}

/// Seconds at the start in which fio does not judge a rate (`__check_min_rate` in its `backend.c`).
const SETTLE_S: f64 = 2.0;

/// Minimum rate of a stream. As in fio it is judged when a request completes, so that the rate may be below one
/// request a cycle.
struct RateFloorWatch {
    floor: RateFloor,
    /// Time from which requests are counted, in seconds; `None` before the first request after [`SETTLE_S`].
    since_s: Option<f64>,
    /// Requests and bytes since then, of reads and writes.
    sums: [(u64, u64); 2],
    missed: Option<String>,
}

impl RateFloorWatch {
    fn new(floor: RateFloor) -> RateFloorWatch {
        RateFloorWatch {
            floor,
            since_s: None,
            sums: [(0, 0); 2],
            missed: None,
        }
    }

    /// True if the rate up to the last request of this window is missed.
    fn window(&mut self, window: &Window) -> bool {
        let Some(now_s) = self.count(window).filter(|now_s| *now_s >= SETTLE_S) else {
            return false;
        };
        if let Some(since_s) = self.since_s {
            // Slices add up to about a cycle. With a cycle below a second, the last, shortened window would be judged.
            if now_s - since_s + 1e-6 < self.floor.cycle.as_secs_f64().max(1.0) {
                return false;
            }
            self.missed = self.low(since_s, now_s);
        }
        self.since_s = Some(now_s);
        self.sums = [(0, 0); 2];
        self.missed.is_some()
    }

    /// Counts the requests of a window. Returns the end of the last slice in which one completed, in seconds.
    fn count(&mut self, window: &Window) -> Option<f64> {
        let mut last = None;
        for (direction, sums) in [Direction::Read, Direction::Write]
            .into_iter()
            .zip(&mut self.sums)
        {
            let slices = window.flow(direction).into_iter();
            let slices = slices.flat_map(|flow| &flow.slices).zip(1u32..);
            for (slice, number) in slices.filter(|(slice, _)| slice.ops > 0) {
                sums.0 += slice.ops;
                sums.1 += slice.bytes;
                last = last.max(Some(number));
            }
        }
        // The last slice of a shortened window is incomplete.
        last.map(|slices| {
            window.t_s + (f64::from(slices) * window.slice_seconds).min(window.seconds)
        })
    }

    /// The rate that was too low between two times, as a clause.
    fn low(&self, since_s: f64, now_s: f64) -> Option<String> {
        let [read, write] = self.sums;
        let rates = [
            ("reads a second", read.0, self.floor.read_ops),
            ("writes a second", write.0, self.floor.write_ops),
            ("bytes read a second", read.1, self.floor.read_bytes),
            ("bytes written a second", write.1, self.floor.write_bytes),
        ];
        let seen =
            rates.map(|(what, sum, wanted)| (what, sum as f64 / (now_s - since_s), wanted as f64));
        let (what, seen, wanted) = seen.into_iter().find(|(_, seen, wanted)| seen < wanted)?;
        Some(format!(
            "{} {what} between {} s and {} s, and at least {} were asked for",
            number(seen),
            number(since_s),
            number(now_s),
            number(wanted)
        ))
    }
}

#[cfg(test)]
mod tests {
    use record::{Nanos, Slice, WindowFlow};

    use super::*;

    /// Judges a job that reads blocks of 4 KiB at these times, in tenths of a second, for `seconds` seconds.
    fn missed(read_bytes: u64, tenths: &[usize], seconds: usize) -> Option<String> {
        let mut watch = RateFloorWatch::new(RateFloor {
            read_bytes,
            cycle: Nanos::from_secs(1),
            ..RateFloor::default()
        });
        for second in 0..seconds {
            let slice = |tenth| {
                let ops = tenths
                    .iter()
                    .filter(|at| **at == 10 * second + tenth)
                    .count() as u64;
                Slice {
                    ops,
                    bytes: 4096 * ops,
                }
            };
            let window = Window {
                t_s: second as f64,
                seconds: 1.0,
                slice_seconds: 0.1,
                read: Some(WindowFlow {
                    slices: (0..10).map(slice).collect(),
                    ..WindowFlow::default()
                }),
                ..Window::default()
            };
            if watch.window(&window) {
                return watch.missed;
            }
        }
        None
    }

    #[test]
    fn a_rate_is_judged_when_a_request_comes_back() {
        // A request each 3.3 s is 1,250 bytes a second, and between two of them nothing is judged.
        assert_eq!(missed(1024, &[0, 33, 66, 99, 132], 20), None);
        let low = missed(1500, &[0, 33, 66, 99], 20).unwrap();
        assert_eq!(
            low,
            "1,241 bytes read a second between 3.4 s and 6.7 s, and at least 1,500 were asked for"
        );
        // A job that has stopped has missed the rate when it continues.
        let stopped: Vec<usize> = (0..40).chain([95]).collect();
        assert_eq!(missed(4096, &stopped, 9), None);
        assert!(missed(4096, &stopped, 10).is_some());
        // A job is given time to settle.
        assert_eq!(missed(40_960, &(18..80).collect::<Vec<_>>(), 9), None);
    }

    #[test]
    fn a_window_that_was_cut_short_misses_no_rate() {
        let mut watch = RateFloorWatch::new(RateFloor {
            read_ops: 15,
            cycle: Nanos(100_000_000),
            ..RateFloor::default()
        });
        let mut is_low = |t_s: f64, seconds: f64, slices: Vec<Slice>| {
            let flow = WindowFlow {
                slices,
                ..WindowFlow::default()
            };
            watch.window(&Window {
                t_s,
                seconds,
                slice_seconds: 0.1,
                read: Some(flow),
                ..Window::default()
            })
        };
        let slice = |ops| Slice { ops, bytes: 0 };
        // 20 reads a second, which end in the middle of a slice.
        assert!(!is_low(2.0, 1.0, vec![slice(2); 10]));
        assert!(!is_low(3.0, 1.0, vec![slice(2); 10]));
        assert!(!is_low(4.0, 0.05, vec![slice(1)]));
        // A job that becomes too slow has missed the rate.
        assert!(is_low(5.0, 1.0, vec![slice(1); 10]));
    }
}
