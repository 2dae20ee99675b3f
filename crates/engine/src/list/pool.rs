//! Requests by threads with blocking pread and pwrite, if io_uring is not available. There are as many threads as the
//! highest number of requests in flight.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

use record::Nanos;
use rustix::io::ReadWriteFlags;

use crate::clock::Clock;
use crate::discard::discard;
use crate::job::EngineError;
use crate::list::memory::ListBuffers;
use crate::list::submitter::{SlotCompletion, Stopwatch, Submitter};
use crate::list::{Errno, List, Op, Request};

/// State that the threads of a list share.
pub(super) struct PoolState<'a> {
    files: &'a [&'a File],
    stopwatch: Stopwatch,
    queue: Mutex<Queue>,
    /// Notified when a call is queued, and when the queue is closed.
    queued: Condvar,
}

#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    closed: bool,
}

/// A call for a thread.
#[derive(Clone, Copy)]
struct Call {
    slot: u32,
    /// The buffer that it reads into or writes from; null for a flush or a discard.
    address: Address,
    request: Request,
}

/// Address of a buffer.
#[derive(Clone, Copy)]
struct Address(*mut u8);

// SAFETY: it points into the list's buffers, which all threads may use; `Call::execute`
// describes which of them uses which buffer and when.
unsafe impl Send for Address {}

impl Call {
    /// Makes the call; returns the number of bytes transferred, or an error number.
    fn execute(self, files: &[&File]) -> Result<usize, Errno> {
        let Request { offset, len, .. } = self.request;
        // The loop checks that the file exists.
        let file = files
            .get(usize::from(self.request.file))
            .ok_or(Errno::BADF)?;
        loop {
            let moved = match self.request.op {
                Op::Read => {
                    // SAFETY: the buffer is at least as long as the request (the loop checks that), and nothing reads
                    // its contents, even if slots share one. The mapping outlives the threads.
                    let buffer =
                        unsafe { std::slice::from_raw_parts_mut(self.address.0, len as usize) };
                    rustix::io::pread(file.as_fd(), buffer, offset)
                }
                Op::Write | Op::WriteDurable => {
                    // SAFETY: the buffer is as long as the largest request, and a change of it during the write is
                    // harmless (`Buffers::stamp`). The mapping outlives the threads.
                    let buffer =
                        unsafe { std::slice::from_raw_parts(self.address.0, len as usize) };
                    let flags = match self.request.op {
                        Op::WriteDurable => ReadWriteFlags::DSYNC,
                        _ => ReadWriteFlags::empty(),
                    };
                    let buffers = [std::io::IoSlice::new(buffer)];
                    rustix::io::pwritev2(file.as_fd(), &buffers, offset, flags)
                }
                Op::Flush => rustix::fs::fdatasync(file.as_fd()).map(|()| 0),
                // As in a ring, the length is not returned: it may be up to 4 GiB, which a result cannot represent.
                Op::Discard => discard(file, offset, len).map(|()| 0),
            };
            if moved != Err(Errno::INTR) {
                return moved;
            }
        }
    }
}

impl<'a> PoolState<'a> {
    /// The state for a list.
    pub(super) fn new(list: &List<'a>, clock: Clock) -> PoolState<'a> {
        PoolState {
            files: list.files,
            stopwatch: Stopwatch::start(clock),
            queue: Mutex::default(),
            queued: Condvar::new(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Body of a thread: makes queued calls until the queue is closed.
    fn work(&self, completions: &Sender<SlotCompletion>) {
        while let Some(call) = self.take() {
            let result = match call.execute(self.files) {
                Ok(moved) => moved as i32,
                Err(errno) => -errno.raw_os_error(),
            };
            // The pool receives completions until all threads have ended.
            let _ = completions.send(SlotCompletion {
                slot: call.slot,
                result,
                at: self.stopwatch.now(),
            });
        }
    }

    /// Waits for the next call.
    fn take(&self) -> Option<Call> {
        let mut queue = self.queue();
        loop {
            if let Some(call) = queue.calls.pop_front() {
                return Some(call);
            }
            if queue.closed {
                return None;
            }
            queue = self
                .queued
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The threads of a list, which end when it is dropped.
pub(super) struct Pool<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env PoolState<'env>,
    buffers: &'env ListBuffers,
    threads: u32,
    /// Number of queued requests whose completions were not yet taken.
    in_flight: u32,
    /// Error of a thread that could not be started.
    refused: Option<io::Error>,
    sender: Sender<SlotCompletion>,
    receiver: Receiver<SlotCompletion>,
    /// A completion that arrived during the wait.
    first: Option<SlotCompletion>,
}

impl<'scope, 'env> Pool<'scope, 'env> {
    /// A pool with one thread, using the list's memory.
    ///
    /// # Errors
    /// When not even one thread can be started.
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        shared: &'env PoolState<'env>,
        buffers: &'env ListBuffers,
    ) -> io::Result<Pool<'scope, 'env>> {
        let (sender, receiver) = channel();
        let mut pool = Pool {
            scope,
            shared,
            buffers,
            threads: 0,
            in_flight: 0,
            refused: None,
            sender,
            receiver,
            first: None,
        };
        pool.add_thread()?;
        Ok(pool)
    }

    fn add_thread(&mut self) -> io::Result<()> {
        let (shared, sender) = (self.shared, self.sender.clone());
        thread::Builder::new()
            .name(format!("io-{}", self.threads))
            // A small stack, since there may be a thousand threads, which keep nothing on it.
            .stack_size(128 << 10)
            .spawn_scoped(self.scope, move || shared.work(&sender))?;
        self.threads += 1;
        Ok(())
    }

    /// A remark if fewer threads could be started than requests should be in flight. Requests that wait for a thread
    /// are timed from their issue.
    pub(super) fn depth_note(&self) -> Option<String> {
        self.refused.as_ref().map(|error| {
            format!(
                "at most {} requests in flight, with a thread for each; more were refused ({error})",
                self.threads
            )
        })
    }
}

impl Drop for Pool<'_, '_> {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.queued.notify_all();
    }
}

impl Submitter for Pool<'_, '_> {
    fn now(&self) -> Nanos {
        self.shared.stopwatch.now()
    }

    fn push(&mut self, slot: u32, request: &Request) {
        let call = Call {
            slot,
            address: Address(match request.op {
                Op::Read => self.buffers.to_read(slot),
                Op::Write | Op::WriteDurable => self.buffers.to_write(slot, request.len),
                Op::Flush | Op::Discard => std::ptr::null_mut(),
            }),
            request: *request,
        };
        self.shared.queue().calls.push_back(call);
        self.in_flight += 1;
        if self.in_flight > self.threads && self.refused.is_none() {
            self.refused = self.add_thread().err();
        }
        self.shared.queued.notify_one();
    }

    fn submit_and_wait(&mut self, wake_at: Nanos) -> Result<(), EngineError> {
        let left = wake_at - self.now();
        self.first = self.receiver.recv_timeout(left.into()).ok();
        Ok(())
    }

    fn submit(&mut self, _: Nanos) -> Result<(), EngineError> {
        Ok(())
    }

    fn reap(&mut self, into: &mut Vec<SlotCompletion>) {
        for completion in self
            .first
            .take()
            .into_iter()
            .chain(self.receiver.try_iter())
        {
            self.in_flight -= 1;
            into.push(completion);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use record::Bytes;

    use super::*;
    use crate::job::IoInterface;
    use crate::list::BufferMode;

    #[test]
    fn there_are_as_many_threads_as_were_in_flight_and_they_end() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(16 << 20).unwrap();
        let list = List {
            files: &[&file],
            memory: BufferMode::Reads,
            max_in_flight: 16,
            largest: Bytes::mib(1),
            interface: IoInterface::Sync,
            interrupt: &AtomicBool::new(false),
        };
        let shared = PoolState::new(&list, Clock::monotonic());
        let buffers = ListBuffers::new(BufferMode::Reads, 1 << 20, 16).unwrap();
        let completions = thread::scope(|scope| {
            let mut pool = Pool::new(scope, &shared, &buffers).unwrap();
            let mut completions = Vec::new();
            for (round, most) in [(5, 5), (16, 16), (3, 16)] {
                for slot in 0..round {
                    let offset = u64::from(slot) << 20;
                    pool.push(slot, &Request::read(offset, 1 << 20, 0));
                }
                let wanted = completions.len() + round as usize;
                while completions.len() < wanted {
                    pool.submit_and_wait(Nanos::from_secs(3600)).unwrap();
                    pool.reap(&mut completions);
                }
                assert_eq!(pool.threads, most);
            }
            assert_eq!(pool.depth_note(), None);
            completions
        });
        assert!(
            completions
                .iter()
                .all(|completion| completion.result == 1 << 20)
        );
    }
}
