//! Counters of a worker, in clock ticks, slice by slice and window by window. They belong to one worker and
//! need no atomics; a window is passed on when it is complete.

use record::{CpuTime, Direction, Histogram, Slice, Workload};

/// Number of slices in a window.
pub(crate) const SLICES: usize = 10;

/// Counts of one direction in one window.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowTally {
    /// Complete slices, and at the end of a phase a shortened one.
    pub slices: Vec<Slice>,
    /// Latency in ticks, from the scheduled time.
    pub latency: Histogram,
    /// Open loop: latency in ticks, from submission.
    pub service: Option<Histogram>,
    current: Slice,
}

impl FlowTally {
    fn new(open_loop: bool) -> FlowTally {
        FlowTally {
            slices: Vec::with_capacity(SLICES),
            service: open_loop.then(Histogram::new),
            ..FlowTally::default()
        }
    }

    /// Adds another worker's counts of the same window.
    pub(crate) fn merge(&mut self, other: &FlowTally) {
        if self.slices.len() < other.slices.len() {
            self.slices.resize(other.slices.len(), Slice::default());
        }
        for (mine, theirs) in self.slices.iter_mut().zip(&other.slices) {
            mine.ops += theirs.ops;
            mine.bytes += theirs.bytes;
        }
        self.latency.merge(&other.latency);
        if let (Some(mine), Some(theirs)) = (&mut self.service, &other.service) {
            mine.merge(theirs);
        }
    }
}

/// The directions that a workload uses, each with its own counts.
pub(crate) type Flows = [Option<FlowTally>; 5];

/// Empty counts for the directions that `workload` uses.
pub(crate) fn flows_for(workload: &Workload) -> Flows {
    let open_loop = workload.rate_per_s.is_some();
    Direction::ALL.map(|direction| {
        let used = match direction {
            Direction::Read => workload.reads(),
            Direction::Write => workload.writes(),
            Direction::Sync => workload.sync_every > 0 || workload.sync_at_end,
            Direction::Commit => workload.sync_every > 0,
            Direction::Trim => workload.trims_first(),
        };
        // Only reads and writes have due times, which may differ from the time of submission.
        let timed_twice = open_loop && matches!(direction, Direction::Read | Direction::Write);
        used.then(|| FlowTally::new(timed_twice))
    })
}

/// Adds `other` to `flows`, direction by direction.
pub(crate) fn merge_flows(flows: &mut Flows, other: &Flows) {
    for (mine, theirs) in flows.iter_mut().zip(other) {
        if let (Some(mine), Some(theirs)) = (mine, theirs) {
            mine.merge(theirs);
        }
    }
}

/// Number of completed reads and writes.
pub(crate) fn ops_of(flows: &Flows) -> u64 {
    [Direction::Read, Direction::Write]
        .into_iter()
        .filter_map(|direction| flows[direction as usize].as_ref())
        .flat_map(|flow| &flow.slices)
        .map(|slice| slice.ops)
        .sum()
}

/// Counts of one worker in one window.
#[derive(Debug)]
pub(crate) struct WindowTally {
    /// Number of the window, from 0.
    pub index: usize,
    /// Measured length of the window, in ticks.
    pub ticks: u64,
    /// The counts.
    pub flows: Flows,
    /// Number of requests in flight or due at its end.
    pub in_flight: u64,
    /// The share of the time in which the worker ran or waited for a processor.
    pub busy_share: f64,
    /// Processor time of the worker's thread.
    pub cpu: CpuTime,
}

/// Start times of slices and windows, the same for all workers of a phase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timetable {
    /// The phase's start, in ticks.
    pub start: u64,
    /// The length of a slice, in ticks.
    pub slice: u64,
    /// Maximum number of slices of the phase.
    pub slices: u64,
}

impl Timetable {
    /// The tick at which slice `index` ends.
    pub(crate) fn slice_end(&self, index: u64) -> u64 {
        self.start + (index + 1) * self.slice
    }

    /// The latest tick at which the phase ends.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.slices * self.slice
    }
}

/// Counters of a worker.
pub(crate) struct Tally {
    timetable: Timetable,
    slice: u64,
    slice_end: u64,
    flows: Flows,
    empty: Flows,
}

impl Tally {
    pub(crate) fn new(workload: &Workload, timetable: Timetable) -> Tally {
        let empty = flows_for(workload);
        Tally {
            timetable,
            slice: 0,
            slice_end: timetable.slice_end(0),
            flows: empty.clone(),
            empty,
        }
    }

    /// End of the current slice.
    #[inline(always)]
    pub(crate) fn slice_end(&self) -> u64 {
        self.slice_end
    }

    /// Counts one completion.
    #[inline(always)]
    pub(crate) fn record(&mut self, direction: Direction, bytes: u64, latency: u64) {
        if let Some(flow) = &mut self.flows[direction as usize] {
            flow.current.ops += 1;
            flow.current.bytes += bytes;
            flow.latency.record(latency);
        }
    }

    /// Open loop: counts the latency of one completion from its submission.
    pub(crate) fn record_service(&mut self, direction: Direction, latency: u64) {
        if let Some(FlowTally {
            service: Some(service),
            ..
        }) = &mut self.flows[direction as usize]
        {
            service.record(latency);
        }
    }

    /// Closes every slice that ended by `now`. A complete window is passed to `hand_on`; after a stall there may be
    /// several.
    pub(crate) fn advance(&mut self, now: u64, mut hand_on: impl FnMut(usize, u64, Flows)) {
        while now >= self.slice_end && self.slice < self.timetable.slices {
            self.close_slice();
            let in_window = self.slice % SLICES as u64;
            if in_window == 0 || self.slice == self.timetable.slices {
                let slices = if in_window == 0 {
                    SLICES as u64
                } else {
                    in_window
                };
                let index = (self.slice - slices) / SLICES as u64;
                let flows = std::mem::replace(&mut self.flows, self.empty.clone());
                hand_on(index as usize, slices * self.timetable.slice, flows);
            }
        }
    }

    /// The window that is shortened at `now`: its index, its length and its counts.
    pub(crate) fn cut(mut self, now: u64) -> (usize, u64, Flows) {
        let index = self.slice / SLICES as u64;
        let began = self.timetable.start + index * SLICES as u64 * self.timetable.slice;
        self.close_slice();
        (index as usize, now.saturating_sub(began), self.flows)
    }

    fn close_slice(&mut self) {
        for flow in self.flows.iter_mut().flatten() {
            flow.slices.push(std::mem::take(&mut flow.current));
        }
        self.slice += 1;
        self.slice_end = self.timetable.slice_end(self.slice);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use record::Nanos;

    pub(crate) fn workload() -> Workload {
        Workload {
            longest: Nanos::from_secs(3),
            shortest: Nanos::from_secs(3),
            ..Workload::default()
        }
    }

    const TIMETABLE: Timetable = Timetable {
        start: 1000,
        slice: 10,
        slices: 25,
    };

    #[test]
    fn a_stall_hands_on_several_windows_the_last_one_short() {
        let mut tally = Tally::new(&workload(), TIMETABLE);
        tally.record(Direction::Read, 4096, 7);
        let mut seen = Vec::new();
        tally.advance(1_000_000, |index, ticks, flows| {
            let flow = flows[0].clone().unwrap();
            seen.push((index, ticks, flow.slices.len(), ops_of(&flows)));
        });
        assert_eq!(seen, [(0, 100, 10, 1), (1, 100, 10, 0), (2, 50, 5, 0)]);
    }

    #[test]
    fn a_cut_window_keeps_its_counts() {
        let mut tally = Tally::new(&workload(), TIMETABLE);
        tally.advance(1103, |_, _, _| {});
        tally.record(Direction::Read, 4096, 7);
        let (index, ticks, flows) = tally.cut(1104);
        assert_eq!((index, ticks, ops_of(&flows)), (1, 4, 1));
    }

    #[test]
    fn a_direction_that_is_not_used_counts_nothing() {
        let mut tally = Tally::new(&workload(), TIMETABLE);
        tally.record(Direction::Write, 4096, 7);
        let (_, _, flows) = tally.cut(1001);
        assert!(flows[Direction::Write as usize].is_none());
        assert_eq!(ops_of(&flows), 0);
    }
}
