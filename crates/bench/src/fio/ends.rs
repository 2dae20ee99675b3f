//! Ends of streams that run at the same time: by a rate that is missed, a steady state, or another that ended.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use engine::{Control, Observer};
use fiojob::ExitWhat;
use record::{Direction, Floor, Phase, Window};

use super::steady::SteadyGroup;
use super::stream::Stream;
use ui::format::number;

/// State by which the streams between two walls end each other.
pub(super) struct Ends {
    /// By stream: set when it is to end.
    ended: Vec<AtomicBool>,
    /// By stream, the steady state of those that it is reported with.
    steady: Vec<Option<usize>>,
    groups: Vec<SteadyGroup>,
    /// Set when the jobs behind this wall are not to begin.
    all: AtomicBool,
}

impl Ends {
    pub(super) fn of(streams: &[Stream]) -> Ends {
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
        Ends {
            ended: streams.iter().map(|_| AtomicBool::new(false)).collect(),
            steady,
            groups,
            all: AtomicBool::new(false),
        }
    }

    /// Stream `index` has ended: others may have to.
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

    /// True if the jobs behind this wall are not to begin.
    pub(super) fn ends_all(&self) -> bool {
        self.all.load(Relaxed)
    }

    /// Watches stream `index`, beside `inner`.
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
            floor: floor.map(FloorWatch::new),
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

/// Sees the windows of a stream, and ends it by its rules.
pub(super) struct Rules<'a> {
    inner: &'a mut dyn Observer,
    ended: &'a AtomicBool,
    steady: Option<&'a SteadyGroup>,
    floor: Option<FloorWatch>,
}

impl Rules<'_> {
    /// Adds to a phase, which has ended, what the rules saw.
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

/// A rate that a stream must have.
struct FloorWatch {
    floor: Floor,
    seconds: f64,
    /// Requests and bytes of the cycle, of reads and writes.
    sums: [(u64, u64); 2],
    missed: Option<String>,
}

impl FloorWatch {
    fn new(floor: Floor) -> FloorWatch {
        FloorWatch {
            floor,
            seconds: 0.0,
            sums: [(0, 0); 2],
            missed: None,
        }
    }

    /// True if the rate of a cycle that ends with this window is missed.
    fn window(&mut self, window: &Window) -> bool {
        self.seconds += window.seconds;
        for (direction, sums) in [Direction::Read, Direction::Write]
            .into_iter()
            .zip(&mut self.sums)
        {
            for slice in window.flow(direction).iter().flat_map(|flow| &flow.slices) {
                sums.0 += slice.ops;
                sums.1 += slice.bytes;
            }
        }
        // Windows that were cut short say nothing of a rate.
        if self.seconds + 1e-6 < self.floor.cycle.as_secs_f64().max(1.0) {
            return false;
        }
        let [read, write] = self.sums;
        let rates = [
            ("reads a second", read.0, self.floor.read_ops),
            ("writes a second", write.0, self.floor.write_ops),
            ("bytes read a second", read.1, self.floor.read_bytes),
            ("bytes written a second", write.1, self.floor.write_bytes),
        ];
        let low = rates.into_iter().find(|(_, seen, wanted)| {
            *wanted > 0 && (*seen as f64) < *wanted as f64 * self.seconds
        });
        if let Some((what, seen, wanted)) = low {
            self.missed = Some(format!(
                "{} {what} in the second before {}, and at least {} were asked for",
                number(seen as f64 / self.seconds),
                number(window.t_s + window.seconds),
                number(wanted as f64)
            ));
        }
        (self.seconds, self.sums) = (0.0, [(0, 0); 2]);
        low.is_some()
    }
}
