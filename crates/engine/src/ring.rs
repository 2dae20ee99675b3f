//! An io_uring ring with registered files, timers and all features that the kernel grants. The caller provides the
//! requests and their buffers.

#![allow(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};
use record::Nanos;

use crate::backend::Completion;
use crate::buffers::Buffers;
use crate::clock::Clock;

/// User data of a timer's completion, which has no slot.
const TIMER: u64 = u64::MAX;

/// Features that the kernel granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingFeatures {
    /// Single issuer with deferred task run (Linux 6.1): completions are processed during waits, and
    /// do not interrupt the thread.
    pub deferred: bool,
    /// True if the submission queue has no index array (Linux 6.6).
    pub no_array: bool,
    /// True if the buffers are pinned once instead of at each request; `None` if that was not requested.
    pub fixed_buffers: Option<bool>,
}

impl RingFeatures {
    /// Names of the features that were not granted.
    pub(crate) fn missing(self) -> Option<String> {
        let missing: Vec<&str> = [
            (self.deferred, "deferred task run"),
            (self.no_array, "no SQ array"),
            (
                self.fixed_buffers != Some(false),
                "registered buffers (raise the limit on locked memory, ulimit -l)",
            ),
        ]
        .into_iter()
        .filter_map(|(granted, what)| (!granted).then_some(what))
        .collect();
        (!missing.is_empty()).then(|| format!("the kernel did not grant: {}", missing.join(", ")))
    }
}

/// Checks that the kernel permits a ring for `slots` requests. Containers often refuse it by seccomp, others by
/// `kernel.io_uring_disabled`, and before Linux 5.12 the limit on locked memory may.
///
/// # Errors
/// The kernel's error.
pub(crate) fn probe(slots: u32) -> io::Result<()> {
    build(entries(slots)).map(drop)
}

/// The queue's length for `slots` requests, with room for the timers of the slice and of the next
/// arrival.
fn entries(slots: u32) -> u32 {
    (slots + 2).next_power_of_two()
}

/// Builds a ring with all features that the kernel grants.
fn build(entries: u32) -> io::Result<(IoUring, RingFeatures)> {
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
            // Linux 5.19: completions do not interrupt the thread, but wait for its next call.
            builder.setup_coop_taskrun();
        }
        match builder.build(entries) {
            Ok(ring) => {
                let granted = RingFeatures {
                    deferred,
                    no_array,
                    fixed_buffers: None,
                };
                return Ok((ring, granted));
            }
            // Older kernels refuse unknown flags with EINVAL; any other error is final.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

/// A ring, for use on the thread that created it.
pub(crate) struct Ring {
    ring: IoUring,
    /// Number of queued requests whose completions were not yet taken.
    in_flight: u32,
    clock: Clock,
    granted: RingFeatures,
    /// Wake-up times of the timers that are set, the earliest first.
    timers: BinaryHeap<Reverse<u64>>,
    timespec: Box<types::Timespec>,
}

impl Ring {
    /// Builds a ring for `slots` requests on `files`. Called on the thread that will use it.
    ///
    /// # Errors
    /// When the kernel refuses the ring.
    pub(crate) fn new(files: &[&File], slots: u32, clock: Clock) -> io::Result<Ring> {
        let (ring, granted) = build(entries(slots))?;
        let mut submitter = ring.submitter();
        let files: Vec<_> = files.iter().map(|file| file.as_raw_fd()).collect();
        submitter.register_files(&files)?;
        // Saves a lookup in each call; older kernels do not support it.
        let _ = submitter.register_ring_fd();
        Ok(Ring {
            ring,
            in_flight: 0,
            clock,
            granted,
            timers: BinaryHeap::new(),
            timespec: Box::new(types::Timespec::new()),
        })
    }

    /// Makes the kernel pin the buffers once instead of at each request. False if it refuses, as with a low limit on
    /// locked memory.
    ///
    /// # Safety
    /// The buffers must stay in place until nothing is in flight.
    pub(crate) unsafe fn register(&mut self, buffers: &Buffers) -> bool {
        let (base, length) = buffers.whole();
        let whole = [libc::iovec {
            iov_base: base.cast(),
            iov_len: length,
        }];
        // SAFETY: the mapping stays until nothing is in flight, and the kernel pins its pages.
        let fixed = unsafe { self.ring.submitter().register_buffers(&whole) }.is_ok();
        self.granted.fixed_buffers = Some(fixed);
        fixed
    }

    /// Permits `most` requests to block in the kernel at once. Requests that cannot be queued at the device without
    /// waiting, such as those that the kernel splits, are passed to kernel threads, of which there are otherwise four
    /// a processor, whatever the ring's length (io_uring_register(2), IORING_REGISTER_IOWQ_MAX_WORKERS, Linux 5.15).
    pub(crate) fn allow_blocking(&self, most: u32) {
        // Older kernels have their own limit.
        let _ = self
            .ring
            .submitter()
            .register_iowq_max_workers(&mut [most, 0]);
    }

    /// Features that the kernel granted.
    pub(crate) fn granted(&self) -> RingFeatures {
        self.granted
    }

    /// Number of queued requests whose completions were not yet taken.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Queues a slot's request.
    ///
    /// # Safety
    /// The request's buffer must stay in place until its completion was taken, and nothing but the kernel may depend
    /// on its contents until then.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, slot: u32, entry: squeue::Entry) {
        self.in_flight += 1;
        // SAFETY: as the caller promised.
        unsafe { self.queue(&entry.user_data(u64::from(slot))) };
    }

    /// Queues an entry.
    ///
    /// # Safety
    /// Memory that the entry points to must stay valid until its completion has arrived.
    unsafe fn queue(&mut self, entry: &squeue::Entry) {
        // SAFETY: as the caller promised.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            // There is room for every slot and the usual timers; if the queue is full anyway, submitting makes room. A
            // ring that fails here returns its error from the next wait.
            if self.ring.submit().is_err() {
                return;
            }
        }
    }

    /// Sets a timer, unless an earlier one is set. Timers are cheaper than a timeout for each wait, and older kernels
    /// support them too.
    fn wake_by(&mut self, wake_at: u64) {
        if self.timers.peek().is_some_and(|set| set.0 <= wake_at) {
            return;
        }
        let span = self.clock.span(wake_at.saturating_sub(self.clock.now()));
        *self.timespec = types::Timespec::from(std::time::Duration::from(span.max(Nanos(1))));
        let entry = opcode::Timeout::new(&*self.timespec)
            .build()
            .user_data(TIMER);
        // SAFETY: the time is on the heap and lives as long as the ring. The kernel copies it when
        // the entry is submitted, which is before the next change.
        unsafe { self.queue(&entry) };
        self.timers.push(Reverse(wake_at));
    }

    /// Submits what was queued, and waits for a completion or until the clock shows `wake_at`.
    ///
    /// # Errors
    /// When the ring itself fails.
    #[inline]
    pub(crate) fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()> {
        self.wake_by(wake_at);
        ignore_transient(self.ring.submit_and_wait(1))
    }

    /// Submits what was queued, and processes completions without waiting.
    ///
    /// # Errors
    /// When the ring itself fails.
    #[inline]
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        let queued = self.ring.submission().len() as u32;
        if queued == 0 && self.in_flight == 0 {
            return Ok(());
        }
        // With deferred task run, completions are posted only when they are requested.
        const GETEVENTS: u32 = 1;
        // SAFETY: the queued entries are sound, as the callers of `push` promised, and no signal mask is given.
        let entered = unsafe {
            let submitter = self.ring.submitter();
            submitter.enter::<libc::sigset_t>(queued, 0, GETEVENTS, None)
        };
        ignore_transient(entered)
    }

    /// Takes the completions that have arrived.
    #[inline(always)]
    pub(crate) fn reap(&mut self, mut take: impl FnMut(Completion)) {
        for entry in self.ring.completion() {
            if entry.user_data() == TIMER {
                self.timers.pop();
            } else {
                self.in_flight -= 1;
                take(Completion {
                    slot: entry.user_data() as u32,
                    result: entry.result(),
                });
            }
        }
    }
}

/// The result of a system call on the ring. After a signal or a temporary lack of memory, the queued entries stay
/// queued, and the next call submits them.
fn ignore_transient(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
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

impl Drop for Ring {
    /// Unregisters the files. The kernel frees a ring some time after it was closed, even after the process has ended,
    /// and until then registered files would keep their file system busy: `umount` immediately after a run would fail,
    /// and a device would stay claimed.
    fn drop(&mut self) {
        let _ = self.ring.submitter().unregister_files();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A limit of 0 changes nothing and returns the present one.
    #[test]
    fn the_limit_of_blocking_requests_is_set() {
        let file = File::open("/dev/null").unwrap();
        let Ok(ring) = Ring::new(&[&file], 8, Clock::monotonic()) else {
            skip::skipped("io_uring is refused here");
            return;
        };
        let limit = || {
            let mut most = [0, 0];
            let submitter = ring.ring.submitter();
            submitter
                .register_iowq_max_workers(&mut most)
                .map(|()| most[0])
        };
        if limit().is_err() {
            skip::skipped("this kernel cannot set the limit (Linux 5.15 can)");
            return;
        }
        ring.allow_blocking(777);
        assert_eq!(limit().unwrap(), 777);
    }
}
