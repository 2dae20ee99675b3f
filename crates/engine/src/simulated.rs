//! A simulated disk in simulated time, for tests of the loop.

use std::io;

use record::Direction;

use crate::backend::{Backend, Completion};
use crate::clock::ThreadCounters;

/// A disk that completes each request `latency` ticks after its submission, except during a stall. A tick is a
/// nanosecond.
pub(crate) struct SimulatedDisk {
    pub now: u64,
    pub latency: u64,
    /// A stall (start, end): requests that would complete within it complete at its end.
    pub stall: Option<(u64, u64)>,
    /// Time ranges in which the thread has no processor, in order.
    pub without_processor: Vec<(u64, u64)>,
    /// True if the thread computes during a request, as with data in memory; otherwise it sleeps.
    pub computes: bool,
    spent: ThreadCounters,
    /// Offset of requests that fail, and their negative error number.
    pub fails_at: Option<(u64, i32)>,
    /// Number of bytes transferred by each request; `None` for all.
    pub block: Option<i32>,
    queued: Vec<(u32, Direction, u64, u32)>,
    in_flight: Vec<(u64, Completion)>,
    pub syncs: u64,
    scratch: Vec<u8>,
}

impl SimulatedDisk {
    pub(crate) fn new(latency: u64) -> SimulatedDisk {
        SimulatedDisk {
            now: 0,
            latency,
            stall: None,
            without_processor: Vec::new(),
            computes: false,
            spent: ThreadCounters::default(),
            fails_at: None,
            block: None,
            queued: Vec::new(),
            in_flight: Vec::new(),
            syncs: 0,
            scratch: Vec::new(),
        }
    }

    fn answer_at(&self) -> u64 {
        let at = self.now + self.latency;
        match self.stall {
            Some((from, to)) if (from..to).contains(&at) => to,
            _ => at,
        }
    }
}

impl Backend for SimulatedDisk {
    fn now(&self) -> u64 {
        self.now
    }

    fn busy_share(&mut self) -> f64 {
        let spent = ThreadCounters {
            now: self.now,
            busy: if self.computes { self.now } else { 0 },
            sleeps: None,
        };
        spent.busy_share_since(std::mem::replace(&mut self.spent, spent))
    }

    fn push(&mut self, slot: u32, direction: Direction, position: u64, bytes: u32) {
        self.queued.push((slot, direction, position, bytes));
    }

    fn data(&mut self, _slot: u32, bytes: u32) -> &mut [u8] {
        self.scratch.resize(bytes as usize, 0);
        &mut self.scratch
    }

    fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()> {
        for (slot, direction, offset, bytes) in std::mem::take(&mut self.queued) {
            let result = match (direction, self.fails_at) {
                (Direction::Sync, _) => {
                    self.syncs += 1;
                    0
                }
                (_, Some((at, result))) if at == offset => result,
                _ => self.block.unwrap_or(bytes as i32),
            };
            self.in_flight
                .push((self.answer_at(), Completion { slot, result }));
        }
        let first = self.in_flight.iter().map(|(at, _)| *at).min();
        let wake_at = first.map_or(wake_at, |first| first.min(wake_at));
        self.now = self.now.max(wake_at);
        let mut late = self.without_processor.iter();
        if let Some((_, to)) = late.find(|(from, to)| (*from..*to).contains(&self.now)) {
            self.now = *to;
        }
        Ok(())
    }

    fn reap(&mut self, into: &mut Vec<Completion>) {
        let now = self.now;
        self.in_flight.retain(|(at, completion)| {
            let due = *at <= now;
            if due {
                into.push(*completion);
            }
            !due
        });
    }
}
