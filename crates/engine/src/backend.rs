//! The interface to the kernel of a worker, which tests replace by a simulated disk.

use std::io;

use record::Direction;

/// The interface to the kernel of one worker.
pub(crate) trait Backend {
    /// The clock, in ticks.
    fn now(&self) -> u64;
    /// The share of the time since the last call in which this thread ran or waited for a processor, 0 to 1.
    fn busy_share(&mut self) -> f64;
    /// Queues a request of `bytes` bytes at a position (see `positions::in_file`). Each slot has at most one request.
    fn push(&mut self, slot: u32, direction: Direction, position: u64, bytes: u32);
    /// The data of a slot without a request in flight: the data of its next write, or of its last read.
    fn data(&mut self, slot: u32, bytes: u32) -> &mut [u8];
    /// Submits what was queued, and waits for a completion or until the clock shows `wake_at`.
    fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()>;
    /// Appends the completions that have arrived.
    fn reap(&mut self, into: &mut Vec<Completion>);
}

/// Completion of a request: bytes transferred, or a negative error number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub slot: u32,
    pub result: i32,
}
