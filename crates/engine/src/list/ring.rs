//! Requests through io_uring.

#![allow(unsafe_code)]

use std::io;
use std::mem::ManuallyDrop;

use io_uring::opcode;

use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::job::EngineError;
use crate::list::submitter::{Completed, Stopwatch, Submitter};
use crate::list::{List, Op, Request};
use crate::ring::{FILE, Ring, RingFeatures};
use record::Nanos;

/// A list's ring. Its buffers are not registered: pinning them costs little next to requests of
/// hundreds of kibibytes, and to have all of them pinned would take memory for the greatest depth.
pub(super) struct Ringed {
    ring: Ring,
    /// Given back only when nothing is in flight: the kernel may use it until then.
    buffers: ManuallyDrop<Buffers>,
    op: Op,
    stopwatch: Stopwatch,
}

impl Ringed {
    /// For a list, on the thread that will run it, with `buffers` for its deed.
    ///
    /// # Errors
    /// The kernel's error when it refused the ring.
    pub(super) fn new(list: &List<'_>, buffers: Buffers, clock: Clock) -> io::Result<Ringed> {
        let ring = Ring::new(&[list.file], list.most_in_flight, clock)?;
        // The kernel takes a large request in several pieces, and without waiting it takes none.
        ring.let_block(list.most_in_flight);
        Ok(Ringed {
            ring,
            buffers: ManuallyDrop::new(buffers),
            op: list.op,
            stopwatch: Stopwatch::start(clock),
        })
    }

    /// Features that the kernel granted.
    pub(super) fn granted(&self) -> RingFeatures {
        self.ring.granted()
    }
}

impl Drop for Ringed {
    fn drop(&mut self) {
        if self.ring.in_flight() == 0 {
            // SAFETY: nothing uses the buffers after this, and the kernel has no request on them.
            // Otherwise, as after a failure of the ring, their memory is left to the process's end.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

impl Submitter for Ringed {
    fn now(&self) -> Nanos {
        self.stopwatch.now()
    }

    fn push(&mut self, slot: u32, request: &Request) {
        let address = self.buffers.address(slot);
        let entry = match self.op {
            Op::Read => opcode::Read::new(FILE, address, request.len)
                .offset(request.offset)
                .build(),
            Op::WriteZeros => opcode::Write::new(FILE, address, request.len)
                .offset(request.offset)
                .build(),
        };
        // SAFETY: the request is not longer than a buffer (the loop checks that), and the buffers
        // stay in place until the completion has arrived. A slot that reads has a buffer of its own, which
        // is never read; slots that write share one, which is never changed.
        unsafe { self.ring.push(slot, entry) };
    }

    fn submit_and_wait(&mut self, wake_at: Nanos) -> Result<(), EngineError> {
        self.ring
            .submit_and_wait(self.stopwatch.ticks_at(wake_at))
            .map_err(EngineError::Ring)
    }

    fn reap(&mut self, into: &mut Vec<Completed>) {
        let at = self.stopwatch.now();
        self.ring.reap(|completion| {
            into.push(Completed {
                slot: completion.slot,
                result: completion.result,
                at,
            });
        });
    }
}
