//! A volume in virtual time, for tests of request sources. Its blocks are cold until their first read, like those of a
//! cloud volume restored from a snapshot, and it records all requests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use record::{Bytes, ClockKind, CpuTime, EngineKind, EngineUsed, Nanos};

use crate::job::EngineError;
use crate::list::drive::{Limits, drive};
use crate::list::real::check_figures;
use crate::list::submitter::{SlotCompletion, Submitter};
use crate::list::{Errno, List, ListEngine, ListSummary, Op, Request, RequestSource};

/// Properties of a simulated volume.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeModel {
    /// Size of the volume. Requests beyond it are short or fail, as on a real device.
    pub size: Bytes,
    /// Limit of requests a second; requests beyond it queue.
    pub iops: f64,
    /// Limit of bytes a second.
    pub bytes_per_s: f64,
    /// Time from dispatch to completion of a request whose blocks are warm.
    pub latency: Nanos,
    /// Number of bytes fetched at once when a part of them is read.
    pub block: Bytes,
    /// Time to fetch a block, on top of the latency.
    pub cold_latency: Nanos,
    /// Number of blocks fetched at the same time; others wait.
    pub fetches: u32,
    /// Ranges of bytes whose requests fail with EIO.
    pub bad: Vec<Range<u64>>,
    /// Virtual time at which the volume is detached: from then on each result is ENODEV.
    pub detached_at: Option<Nanos>,
    /// Time range in which a foreground reads: warm pages, one after the other, each as soon as the one before has
    /// completed.
    pub foreground: Option<Range<Nanos>>,
}

/// Size of the foreground's requests, in bytes.
pub const FOREGROUND_REQUEST_BYTES: u32 = 4096;

impl VolumeModel {
    /// A cold volume of this size with limits of 3,000 IOPS and 125 MiB/s and a latency of 500 us, which fetches up to
    /// 256 blocks of 512 KiB at once, each in 30 ms.
    pub fn cold(size: Bytes) -> VolumeModel {
        VolumeModel {
            size,
            iops: 3_000.0,
            bytes_per_s: Bytes::mib(125).0 as f64,
            latency: Nanos(500_000),
            block: Bytes::kib(512),
            cold_latency: Nanos(30_000_000),
            fetches: 256,
            bad: Vec::new(),
            detached_at: None,
            foreground: None,
        }
    }
}

/// A request to the volume, with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedRequest {
    /// The request as issued.
    pub request: Request,
    /// Time of issue, in virtual time since the volume was created.
    pub began: Nanos,
    /// Time of completion, in virtual time since the volume was created.
    pub completed: Nanos,
    /// Bytes transferred, or the error number.
    pub result: Result<u32, Errno>,
}

/// An engine that runs lists on one simulated volume, whatever file they name. The volume's time continues from one
/// list to the next, so that only one may run at a time.
pub struct SimulatedVolume {
    volume: VolumeModel,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Nanos,
    /// Time at which the volume can dispatch the next request.
    next_dispatch: Nanos,
    /// Time at which each block that is not cold was or will be fetched.
    fetched_at: BTreeMap<u64, Nanos>,
    /// End of each fetch that is under way.
    fetches: BinaryHeap<Reverse<Nanos>>,
    requests: Vec<SimulatedRequest>,
    /// Issue and completion of each request of the foreground.
    foreground: Vec<Range<Nanos>>,
}

impl SimulatedVolume {
    /// A volume whose blocks are all cold.
    pub fn new(volume: VolumeModel) -> SimulatedVolume {
        SimulatedVolume {
            volume,
            state: Mutex::default(),
        }
    }

    /// Properties of the volume.
    pub fn volume(&self) -> &VolumeModel {
        &self.volume
    }

    /// All issued requests, in order.
    pub fn requests(&self) -> Vec<SimulatedRequest> {
        self.state().requests.clone()
    }

    /// Issue and completion of each completed foreground request.
    pub fn foreground_requests(&self) -> Vec<Range<Nanos>> {
        let mut state = self.state();
        let now = state.now;
        self.issue_foreground(&mut state, now);
        let completed = state.foreground.iter().filter(|one| one.end <= now);
        completed.cloned().collect()
    }

    /// Issues the foreground's requests up to `until`, before any later request of a list.
    fn issue_foreground(&self, state: &mut State, until: Nanos) {
        let Some(reads) = &self.volume.foreground else {
            return;
        };
        loop {
            let began = state.foreground.last().map_or(reads.start, |one| one.end);
            if began > until || began >= reads.end {
                return;
            }
            let completed = self.dispatch(state, u64::from(FOREGROUND_REQUEST_BYTES), began);
            state.foreground.push(began..completed);
        }
    }

    /// Dispatches a request of `bytes` bytes, and returns the time of its completion if its blocks are warm.
    fn dispatch(&self, state: &mut State, bytes: u64, began: Nanos) -> Nanos {
        let takes = (1.0 / self.volume.iops).max(bytes as f64 / self.volume.bytes_per_s);
        // The last byte is transferred when the next request can be dispatched.
        state.next_dispatch = state.next_dispatch.max(began) + Nanos((takes * 1e9) as u64);
        state.next_dispatch + self.volume.latency
    }

    /// Number of blocks that are still cold.
    pub fn cold_blocks(&self) -> u64 {
        let blocks = self.volume.size.0.div_ceil(self.volume.block.0);
        blocks - self.state().fetched_at.len() as u64
    }

    /// The volume's time.
    pub fn now(&self) -> Nanos {
        self.state().now
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes a request issued at `began`.
    fn execute(&self, request: Request, began: Nanos) -> SimulatedRequest {
        let mut state = self.state();
        self.issue_foreground(&mut state, began);
        let dispatched = state.next_dispatch.max(began);
        let span = self.span_of(&request);
        let mut completed = self.dispatch(&mut state, span, began);
        let mut result = self.result_of(&request, span);
        if result.is_ok() {
            let fetched =
                self.fetch_blocks(&mut state, request.op, request.offset, span, dispatched);
            completed = completed.max(fetched + self.volume.latency);
        }
        if let Some(gone) = self.volume.detached_at.filter(|gone| *gone <= completed) {
            result = Err(Errno::NODEV);
            completed = gone.max(began);
        }
        let made = SimulatedRequest {
            request,
            began,
            completed,
            result,
        };
        state.requests.push(made);
        made
    }

    /// Number of a request's bytes that are on the volume.
    fn span_of(&self, request: &Request) -> u64 {
        let rest = self.volume.size.0.saturating_sub(request.offset);
        rest.min(u64::from(request.len))
    }

    fn result_of(&self, request: &Request, span: u64) -> Result<u32, Errno> {
        let (start, end) = (request.offset, request.offset + span);
        let is_bad = |bad: &Range<u64>| bad.start < end && start < bad.end;
        if self.volume.bad.iter().any(is_bad) {
            return Err(Errno::IO);
        }
        Ok(span as u32)
    }

    /// Warms the blocks of a request, and returns the time at which the last of them is fetched. A block that is
    /// completely overwritten need not be fetched.
    fn fetch_blocks(
        &self,
        state: &mut State,
        op: Op,
        offset: u64,
        span: u64,
        dispatched: Nanos,
    ) -> Nanos {
        let block = self.volume.block.0;
        let end = offset + span;
        let mut last = dispatched;
        for index in offset / block..end.div_ceil(block) {
            let starts = index * block;
            let ends = (starts + block).min(self.volume.size.0);
            let is_covered = offset <= starts && ends <= end;
            let fetched = match state.fetched_at.get(&index) {
                Some(fetched) => *fetched,
                None if op != Op::Read && is_covered => dispatched,
                None => self.fetch(state, dispatched),
            };
            state.fetched_at.insert(index, fetched);
            last = last.max(fetched);
        }
        last
    }

    /// Begins to fetch a block at `dispatched`, or at the end of one of the fetches in progress. Returns the time of
    /// its end.
    fn fetch(&self, state: &mut State, dispatched: Nanos) -> Nanos {
        let mut begins = dispatched;
        if state.fetches.len() >= self.volume.fetches.max(1) as usize
            && let Some(Reverse(over)) = state.fetches.pop()
        {
            begins = begins.max(over);
        }
        let fetched = begins + self.volume.cold_latency;
        state.fetches.push(Reverse(fetched));
        fetched
    }
}

impl ListEngine for SimulatedVolume {
    fn run(
        &self,
        list: &List<'_>,
        source: &mut dyn RequestSource,
    ) -> Result<ListSummary, EngineError> {
        check_figures(list)?;
        let limits = Limits {
            alignments: vec![512; list.files.len()],
            memory: list.memory,
            largest: list.largest.0,
        };
        let start = self.now();
        let mut submitter = Simulation {
            volume: self,
            start,
            now: Nanos(0),
            issued: 0,
            in_flight: BinaryHeap::new(),
        };
        let ended = drive(list, limits, &mut submitter, source);
        self.state().now = start + submitter.now;
        let kind = EngineUsed {
            kind: EngineKind::Scripted,
            clock: ClockKind::Monotonic,
            detail: String::new(),
        };
        Ok(ListSummary {
            kind,
            ended: ended?,
            cpu: CpuTime::default(),
        })
    }
}

/// Interface of one list to the volume.
struct Simulation<'a> {
    volume: &'a SimulatedVolume,
    /// The volume's time when the list began.
    start: Nanos,
    now: Nanos,
    issued: u64,
    /// Completions to come: time, order of issue, slot and result.
    in_flight: BinaryHeap<Reverse<(Nanos, u64, u32, i32)>>,
}

impl Submitter for Simulation<'_> {
    fn now(&self) -> Nanos {
        self.now
    }

    fn push(&mut self, slot: u32, request: &Request) {
        let began = self.start + self.now;
        let made = self.volume.execute(*request, began);
        let result = match made.result {
            Ok(moved) => moved as i32,
            Err(errno) => -errno.raw_os_error(),
        };
        let at = made.completed - self.start;
        self.issued += 1;
        self.in_flight
            .push(Reverse((at, self.issued, slot, result)));
    }

    fn submit_and_wait(&mut self, wake_at: Nanos) -> Result<(), EngineError> {
        let first = self.in_flight.peek().map(|Reverse((at, ..))| *at);
        let until = first.map_or(wake_at, |first| first.min(wake_at));
        self.now = self.now.max(until);
        self.volume.state().now = self.start + self.now;
        Ok(())
    }

    fn submit(&mut self, until: Nanos) -> Result<(), EngineError> {
        self.submit_and_wait(until)
    }

    fn reap(&mut self, into: &mut Vec<SlotCompletion>) {
        while let Some(Reverse((at, _, slot, result))) = self.in_flight.peek().copied()
            && at <= self.now
        {
            self.in_flight.pop();
            into.push(SlotCompletion { slot, result, at });
        }
    }
}
