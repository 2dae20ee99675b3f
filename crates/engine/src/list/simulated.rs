//! A volume in virtual time, for tests of what feeds lists: its blocks are cold until they are
//! first read, as those of a cloud volume made from a snapshot are, and it keeps account of what it
//! was asked. Hours of it pass in moments.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use record::{Bytes, ClockKind, CpuTime, EngineKind, EngineUsed, Nanos};

use crate::job::EngineError;
use crate::list::drive::{Limits, drive};
use crate::list::real::check_figures;
use crate::list::submitter::{Completed, Submitter};
use crate::list::{Errno, List, ListEnd, Lister, Op, Request, RequestSource};

/// Properties of a simulated volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// Requests beyond it are cut short or fail as on a device.
    pub size: Bytes,
    /// Requests a second that it takes. One that comes sooner waits its turn.
    pub iops: f64,
    /// Bytes a second that it moves.
    pub bytes_per_s: f64,
    /// From a request's turn to its answer, if its blocks are warm.
    pub latency: Nanos,
    /// Bytes fetched at once when a part of them is read.
    pub block: Bytes,
    /// Time to fetch a block, on top of the latency.
    pub cold_latency: Nanos,
    /// Number of blocks fetched at the same time; others wait.
    pub fetches: u32,
    /// Requests that touch one of these ranges of bytes fail with EIO.
    pub bad: Vec<Range<u64>>,
    /// Time at which it is detached, in virtual time since it was made: from then on each result is ENODEV.
    pub gone_at: Option<Nanos>,
    /// Span of virtual time in which another program reads: always one warm page after the other, as soon as
    /// the one before is there.
    pub stranger: Option<Range<Nanos>>,
}

/// Size of the other program's requests, in bytes.
pub const STRANGERS_BYTES: u32 = 4096;

impl Volume {
    /// A cold volume of this size that takes 3,000 requests and 125 MiB a second, answers in 500 us
    /// and fetches up to 256 blocks of 512 KiB at once, each in 30 ms.
    pub fn cold(size: Bytes) -> Volume {
        Volume {
            size,
            iops: 3_000.0,
            bytes_per_s: Bytes::mib(125).0 as f64,
            latency: Nanos(500_000),
            block: Bytes::kib(512),
            cold_latency: Nanos(30_000_000),
            fetches: 256,
            bad: Vec::new(),
            gone_at: None,
            stranger: None,
        }
    }
}

/// A request that was made, as the volume saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedRequest {
    /// The request.
    pub request: Request,
    /// Time of issue, in virtual time since the volume was made.
    pub began: Nanos,
    /// Time of completion, likewise.
    pub answered: Nanos,
    /// Bytes moved, or what went wrong.
    pub result: Result<u32, Errno>,
}

/// Runs lists on one simulated volume, whatever file they name. The volume's time continues from one
/// list to the next, so only one may run at once.
pub struct SimulatedList {
    volume: Volume,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Nanos,
    /// Time at which the next request has its turn.
    turn: Nanos,
    /// Time at which each block that is not cold was or will be there.
    there: BTreeMap<u64, Nanos>,
    /// End of each fetch that is under way.
    fetches: BinaryHeap<Reverse<Nanos>>,
    made: Vec<SimulatedRequest>,
    /// Issue and completion of each request of the other program.
    strangers: Vec<Range<Nanos>>,
}

impl SimulatedList {
    /// A volume whose blocks are all cold.
    pub fn new(volume: Volume) -> SimulatedList {
        SimulatedList {
            volume,
            state: Mutex::default(),
        }
    }

    /// Properties of the volume.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// All requests that were made, in the order in which they were issued.
    pub fn made(&self) -> Vec<SimulatedRequest> {
        self.state().made.clone()
    }

    /// Issue and completion of each request of the other program that is complete by now.
    pub fn strangers(&self) -> Vec<Range<Nanos>> {
        let mut state = self.state();
        let now = state.now;
        self.let_the_stranger_read(&mut state, now);
        let answered = state.strangers.iter().filter(|one| one.end <= now);
        answered.cloned().collect()
    }

    /// Issues what the stranger asks for up to a moment, which is before any later request of ours.
    fn let_the_stranger_read(&self, state: &mut State, until: Nanos) {
        let Some(reads) = &self.volume.stranger else {
            return;
        };
        loop {
            let began = state.strangers.last().map_or(reads.start, |one| one.end);
            if began > until || began >= reads.end {
                return;
            }
            let answered = self.take(state, u64::from(STRANGERS_BYTES), began);
            state.strangers.push(began..answered);
        }
    }

    /// Takes so many bytes in their turn, and says when the last of them is there, if it is warm.
    fn take(&self, state: &mut State, bytes: u64, began: Nanos) -> Nanos {
        let takes = (1.0 / self.volume.iops).max(bytes as f64 / self.volume.bytes_per_s);
        // The last byte moves when the next request has its turn.
        state.turn = state.turn.max(began) + Nanos((takes * 1e9) as u64);
        state.turn + self.volume.latency
    }

    /// Number of blocks that were never touched.
    pub fn cold_blocks(&self) -> u64 {
        let blocks = self.volume.size.0.div_ceil(self.volume.block.0);
        blocks - self.state().there.len() as u64
    }

    /// The volume's time.
    pub fn now(&self) -> Nanos {
        self.state().now
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request that is issued at `began`, and gives its fate.
    fn make(&self, request: Request, began: Nanos) -> SimulatedRequest {
        let mut state = self.state();
        self.let_the_stranger_read(&mut state, began);
        let turn = state.turn.max(began);
        let span = self.span_of(&request);
        let mut answered = self.take(&mut state, span, began);
        let mut result = self.result_of(&request, span);
        if result.is_ok() {
            let there = self.touch(&mut state, request.op, request.offset, span, turn);
            answered = answered.max(there + self.volume.latency);
        }
        if let Some(gone) = self.volume.gone_at.filter(|gone| *gone <= answered) {
            result = Err(Errno::NODEV);
            answered = gone.max(began);
        }
        let made = SimulatedRequest {
            request,
            began,
            answered,
            result,
        };
        state.made.push(made);
        made
    }

    /// Number of a request's bytes that lie on the volume.
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

    /// Makes the blocks of a request warm, and gives the time when the last of them is there. A
    /// block that is overwritten as a whole need not be fetched.
    fn touch(&self, state: &mut State, op: Op, offset: u64, span: u64, turn: Nanos) -> Nanos {
        let block = self.volume.block.0;
        let end = offset + span;
        let mut last = turn;
        for index in offset / block..end.div_ceil(block) {
            let starts = index * block;
            let ends = (starts + block).min(self.volume.size.0);
            let is_covered = offset <= starts && ends <= end;
            let there = match state.there.get(&index) {
                Some(there) => *there,
                None if op != Op::Read && is_covered => turn,
                None => self.fetch(state, turn),
            };
            state.there.insert(index, there);
            last = last.max(there);
        }
        last
    }

    /// Begins to fetch a block at `turn`, or when one of the fetches under way is over. When it
    /// will be there.
    fn fetch(&self, state: &mut State, turn: Nanos) -> Nanos {
        let mut begins = turn;
        if state.fetches.len() >= self.volume.fetches.max(1) as usize
            && let Some(Reverse(over)) = state.fetches.pop()
        {
            begins = begins.max(over);
        }
        let there = begins + self.volume.cold_latency;
        state.fetches.push(Reverse(there));
        there
    }
}

impl Lister for SimulatedList {
    fn run(&self, list: &List<'_>, feed: &mut dyn RequestSource) -> Result<ListEnd, EngineError> {
        check_figures(list)?;
        let limits = Limits {
            alignments: vec![512; list.files.len()],
            memory: list.memory,
            largest: list.largest.0,
        };
        let start = self.now();
        let mut way = Simulation {
            lister: self,
            start,
            now: Nanos(0),
            issued: 0,
            in_flight: BinaryHeap::new(),
        };
        let ended = drive(list, limits, &mut way, feed);
        self.state().now = start + way.now;
        let kind = EngineUsed {
            kind: EngineKind::Scripted,
            clock: ClockKind::Monotonic,
            detail: String::new(),
        };
        Ok(ListEnd {
            kind,
            ended: ended?,
            cpu: CpuTime::default(),
        })
    }
}

/// One list's way to the volume.
struct Simulation<'a> {
    lister: &'a SimulatedList,
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
        let made = self.lister.make(*request, began);
        let result = match made.result {
            Ok(moved) => moved as i32,
            Err(errno) => -errno.raw_os_error(),
        };
        let at = made.answered - self.start;
        self.issued += 1;
        self.in_flight
            .push(Reverse((at, self.issued, slot, result)));
    }

    fn submit_and_wait(&mut self, wake_at: Nanos) -> Result<(), EngineError> {
        let first = self.in_flight.peek().map(|Reverse((at, ..))| *at);
        let until = first.map_or(wake_at, |first| first.min(wake_at));
        self.now = self.now.max(until);
        self.lister.state().now = self.start + self.now;
        Ok(())
    }

    fn submit(&mut self, until: Nanos) -> Result<(), EngineError> {
        self.submit_and_wait(until)
    }

    fn reap(&mut self, into: &mut Vec<Completed>) {
        while let Some(Reverse((at, _, slot, result))) = self.in_flight.peek().copied()
            && at <= self.now
        {
            self.in_flight.pop();
            into.push(Completed { slot, result, at });
        }
    }
}
