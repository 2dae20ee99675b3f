//! io_uring: one ring a worker, built on the worker's own thread, with the file and the buffers
//! registered.

#![allow(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};
use record::{Direction, Nanos};

use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::{BusyTime, Clock};
use crate::random::Random;

/// Marks the answer of a timer, which belongs to no slot.
const TIMER: u64 = u64::MAX;

/// Which features the kernel granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    /// Single issuer with deferred task run (Linux 6.1): answers are processed when we wait, not
    /// whenever the kernel interrupts us.
    pub deferred: bool,
    /// No index array between us and the submission queue (Linux 6.6).
    pub no_array: bool,
    /// The buffers are pinned once instead of at each request.
    pub fixed_buffers: bool,
}

impl Granted {
    /// What was not granted, in words.
    pub(crate) fn missing(self) -> Option<String> {
        let missing: Vec<&str> = [
            (self.deferred, "deferred task run"),
            (self.no_array, "no SQ array"),
            (
                self.fixed_buffers,
                "registered buffers (raise the limit on locked memory, ulimit -l)",
            ),
        ]
        .into_iter()
        .filter_map(|(granted, what)| (!granted).then_some(what))
        .collect();
        (!missing.is_empty()).then(|| format!("the kernel did not grant: {}", missing.join(", ")))
    }
}

/// Whether a ring for `slots` requests can be had here: containers often refuse it by seccomp,
/// `kernel.io_uring_disabled` by setting, and before Linux 5.12 the limit on locked memory.
///
/// # Errors
/// What the kernel said.
pub(crate) fn probe(slots: u32) -> io::Result<()> {
    build(entries(slots)).map(drop)
}

/// The queue's length for `slots` requests, with room for the timers of the slice and of the next
/// arrival.
fn entries(slots: u32) -> u32 {
    (slots + 2).next_power_of_two()
}

/// Builds a ring with the most that the kernel grants.
fn build(entries: u32) -> io::Result<(IoUring, bool, bool)> {
    let mut refusal = io::Error::from(io::ErrorKind::Unsupported);
    for (deferred, no_array, cooperative) in [
        (true, true, false),
        (true, false, false),
        (false, false, true),
        (false, false, false),
    ] {
        let mut builder = IoUring::builder();
        if deferred {
            builder.setup_single_issuer().setup_defer_taskrun();
        }
        if no_array {
            builder.setup_no_sqarray();
        }
        if cooperative {
            // Linux 5.19: answers do not interrupt us, but wait for our next call.
            builder.setup_coop_taskrun();
        }
        match builder.build(entries) {
            Ok(ring) => return Ok((ring, deferred, no_array)),
            // Flags that an older kernel does not know are EINVAL; anything else is final.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

/// A worker's ring.
pub(crate) struct Uring {
    ring: IoUring,
    /// Given back only when nothing is in flight: the kernel may write to it until then.
    buffers: ManuallyDrop<Buffers>,
    /// Requests that were queued and whose answers have not been taken.
    in_flight: u32,
    busy: BusyTime,
    clock: Clock,
    block: u32,
    fixed: bool,
    random: Random,
    granted: Granted,
    /// When the timers that are set will wake us, the earliest first.
    timers: BinaryHeap<Reverse<u64>>,
    timespec: Box<types::Timespec>,
}

impl Uring {
    /// Builds a ring for `slots` requests of `block` bytes on `file`. To be called on the thread
    /// that will use it.
    ///
    /// # Errors
    /// When the kernel refuses the ring or the memory.
    pub(crate) fn new(
        file: &File,
        block: u32,
        slots: u32,
        workers: u32,
        seed: u64,
        clock: Clock,
    ) -> io::Result<Uring> {
        let buffers = ManuallyDrop::new(Buffers::new(block as usize, slots, workers, seed)?);
        let (ring, deferred, no_array) = build(entries(slots))?;
        let mut submitter = ring.submitter();
        submitter.register_files(&[file.as_raw_fd()])?;
        // Saves a look-up in each call; older kernels do without.
        let _ = submitter.register_ring_fd();
        let (base, length) = buffers.whole();
        let whole = [libc::iovec {
            iov_base: base.cast(),
            iov_len: length,
        }];
        // SAFETY: the mapping stays until nothing is in flight, and the kernel pins its pages.
        // Refused where the limit on locked memory is low: then each request pins its buffer.
        let fixed = unsafe { submitter.register_buffers(&whole) }.is_ok();
        Ok(Uring {
            ring,
            buffers,
            in_flight: 0,
            busy: BusyTime::of_this_thread(),
            clock,
            block,
            fixed,
            random: Random::new(seed ^ 0x5374_616d_7073),
            granted: Granted {
                deferred,
                no_array,
                fixed_buffers: fixed,
            },
            timers: BinaryHeap::new(),
            timespec: Box::new(types::Timespec::new()),
        })
    }

    /// What the kernel granted.
    pub(crate) fn granted(&self) -> Granted {
        self.granted
    }

    #[inline(always)]
    fn entry(&self, slot: u32, direction: Direction, offset: u64) -> squeue::Entry {
        let file = types::Fixed(0);
        let address = self.buffers.address(slot);
        let block = self.block;
        match (direction, self.fixed) {
            (Direction::Read, true) => opcode::ReadFixed::new(file, address, block, 0)
                .offset(offset)
                .build(),
            (Direction::Read, false) => opcode::Read::new(file, address, block)
                .offset(offset)
                .build(),
            (Direction::Write, true) => opcode::WriteFixed::new(file, address, block, 0)
                .offset(offset)
                .build(),
            (Direction::Write, false) => opcode::Write::new(file, address, block)
                .offset(offset)
                .build(),
            (Direction::Sync | Direction::Commit, _) => opcode::Fsync::new(file)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
        }
    }

    fn queue(&mut self, entry: &squeue::Entry) {
        // SAFETY: the entry's buffer lies in `self.buffers` (or `self.timespec`), which stays in
        // place until the answer has come. What the buffer holds does not matter to us, so the
        // kernel may write to it at any time until then.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // There is room for every slot and the usual timers; should it be taken all the same,
            // the kernel makes some. A ring that fails here fails in the next wait, and says why.
            if self.ring.submit().is_err() {
                return;
            }
        }
    }

    /// Sets a timer unless one is set that wakes us as early. Timers are cheaper than a time limit
    /// on each wait, and older kernels have them too.
    fn wake_by(&mut self, wake_at: u64) {
        if self.timers.peek().is_some_and(|set| set.0 <= wake_at) {
            return;
        }
        let span = self.clock.span(wake_at.saturating_sub(self.clock.now()));
        *self.timespec = types::Timespec::from(std::time::Duration::from(span.max(Nanos(1))));
        // The kernel copies the time when the entry is submitted, which is before the next change.
        let entry = opcode::Timeout::new(&*self.timespec)
            .build()
            .user_data(TIMER);
        self.queue(&entry);
        self.timers.push(Reverse(wake_at));
    }
}

impl Drop for Uring {
    /// Gives the file back now. The kernel takes a ring apart some time after it was closed, also
    /// after the process has ended, and until then a file that is registered with it would keep its
    /// file system busy: `umount` right after a run would fail, and a device stay claimed.
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
        if self.in_flight == 0 {
            // SAFETY: nothing uses the buffers after this, and the kernel has no request on them.
            // Otherwise, as after a failure of the ring, their memory is left to the process's end.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

impl Backend for Uring {
    #[inline(always)]
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn busy_nanos(&self) -> u64 {
        self.busy.nanos()
    }

    #[inline(always)]
    fn push(&mut self, slot: u32, direction: Direction, offset: u64) {
        if direction == Direction::Write {
            self.buffers.stamp(slot, &mut self.random);
        }
        let entry = self
            .entry(slot, direction, offset)
            .user_data(u64::from(slot));
        self.in_flight += 1;
        self.queue(&entry);
    }

    #[inline]
    fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()> {
        self.wake_by(wake_at);
        match self.ring.submit_and_wait(1) {
            Ok(_) => Ok(()),
            // A signal came, or the kernel is short of memory for a moment: what was queued stays
            // queued, and the next round submits it.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) || error.raw_os_error() == Some(libc::EBUSY) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    #[inline(always)]
    fn reap(&mut self, into: &mut Vec<Completion>) {
        for entry in self.ring.completion() {
            if entry.user_data() == TIMER {
                self.timers.pop();
            } else {
                self.in_flight -= 1;
                into.push(Completion {
                    slot: entry.user_data() as u32,
                    result: entry.result(),
                });
            }
        }
    }
}
