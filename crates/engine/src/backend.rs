//! The kernel's side of a worker, which a simulated disk stands in for in tests.

use std::io;

use record::Direction;

/// The way to the kernel, for one worker.
pub(crate) trait Backend {
    /// The clock, in ticks.
    fn now(&self) -> u64;
    /// The share of the time since the last call in which this thread ran or waited for a processor.
    fn busy_share(&mut self) -> f64;
    /// Queues a request of `bytes` bytes at a place (see `places::in_file`). There is room for one
    /// in each slot.
    fn push(&mut self, slot: u32, direction: Direction, place: u64, bytes: u32);
    /// The data of a slot that has no request in flight: what its next write holds, or what its last read
    /// brought.
    fn data(&mut self, slot: u32, bytes: u32) -> &mut [u8];
    /// Submits what was queued, and waits until an answer is there or the clock shows `wake_at`.
    fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()>;
    /// Takes the answers that are there.
    fn reap(&mut self, into: &mut Vec<Completion>);
}

/// An answer: bytes moved, or a negative error number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub slot: u32,
    pub result: i32,
}
