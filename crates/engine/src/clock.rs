//! The clock that times requests.
//!
//! Reading the time-stamp counter costs less than half of a `clock_gettime` call. It is used where
//! the processor says that it runs at one rate in all states (invariant TSC: CPUID leaf 0x80000007,
//! EDX bit 8; AMD64 Architecture Programmer's Manual volume 3, Intel SDM volume 3 section 17.17) and
//! where it agreed with the monotonic clock when tested.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod tsc;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use record::{ClockKind, CpuTime, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// Counts ticks, and knows how long one is.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    kind: ClockKind,
    nanos_per_tick: f64,
}

impl Clock {
    /// The best clock of this machine. The first call takes 20 ms to test it, later ones nothing.
    pub fn best() -> Clock {
        static BEST: OnceLock<Clock> = OnceLock::new();
        *BEST.get_or_init(|| invariant_counter().unwrap_or(Clock::monotonic()))
    }

    /// The monotonic clock, whose tick is a nanosecond.
    pub fn monotonic() -> Clock {
        Clock {
            kind: ClockKind::Monotonic,
            nanos_per_tick: 1.0,
        }
    }

    /// Which clock this is.
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// How long a tick is, in nanoseconds.
    pub fn nanos_per_tick(&self) -> f64 {
        self.nanos_per_tick
    }

    /// Ticks since some moment in the past.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self.kind {
            #[cfg(target_arch = "x86_64")]
            ClockKind::Tsc => tsc::read(),
            _ => monotonic_nanos(),
        }
    }

    /// How many ticks a span of time is.
    pub fn ticks(&self, span: Nanos) -> u64 {
        (span.0 as f64 / self.nanos_per_tick).round() as u64
    }

    /// How long a number of ticks is.
    pub fn span(&self, ticks: u64) -> Nanos {
        Nanos((ticks as f64 * self.nanos_per_tick).round() as u64)
    }
}

#[cfg(target_arch = "x86_64")]
fn invariant_counter() -> Option<Clock> {
    tsc::clock()
}

/// Elsewhere the monotonic clock reads the processor's counter without a call into the kernel.
#[cfg(not(target_arch = "x86_64"))]
fn invariant_counter() -> Option<Clock> {
    None
}

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn monotonic_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Tells how long the thread that made it ran, or wanted to and had no processor. On a busy host
/// the second is much, and it is no wait for the disk.
pub(crate) struct BusyTime {
    schedstat: Option<File>,
}

impl BusyTime {
    /// For the calling thread.
    pub(crate) fn of_this_thread() -> BusyTime {
        BusyTime {
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
        }
    }

    /// Nanoseconds until now.
    pub(crate) fn nanos(&self) -> u64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 + self.run_delay_nanos()
    }

    /// Time on a run queue without running: the second number of schedstat (Linux,
    /// Documentation/scheduler/sched-stats.rst). The first one is the time that it ran, but not up
    /// to now. 0 where the kernel does not count it.
    fn run_delay_nanos(&self) -> u64 {
        let mut text = [0; 80];
        let read = self
            .schedstat
            .as_ref()
            .and_then(|file| file.read_at(&mut text, 0).ok());
        let text = std::str::from_utf8(&text[..read.unwrap_or(0)]).unwrap_or_default();
        let delay = text.split_whitespace().nth(1);
        delay.and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
    }
}

/// Processor time that this process has used, with the kernel threads that io_uring runs in its
/// name (getrusage(2)).
pub(crate) fn process_cpu_time() -> CpuTime {
    cpu_time(libc::RUSAGE_SELF)
}

/// Processor time that the calling thread has used, without kernel threads that io_uring runs in
/// its name: so fio counts it for each of its jobs.
pub(crate) fn thread_cpu_time() -> CpuTime {
    cpu_time(libc::RUSAGE_THREAD)
}

/// The processor time of `one` less that of `other`.
pub(crate) fn cpu_since(one: CpuTime, other: CpuTime) -> CpuTime {
    CpuTime {
        user_s: one.user_s - other.user_s,
        system_s: one.system_s - other.system_s,
    }
}

fn cpu_time(whose: libc::c_int) -> CpuTime {
    // SAFETY: a rusage of zeros is a valid one, and the call writes to nothing else. It cannot
    // fail for the calling process or thread.
    let usage = unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(whose, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    CpuTime {
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_best_clock_agrees_with_the_monotonic_one() {
        let clock = Clock::best();
        let (ticks, nanos) = (clock.now(), monotonic_nanos());
        thread::sleep(Duration::from_millis(50));
        let counted = clock.span(clock.now() - ticks).0 as f64;
        let passed = (monotonic_nanos() - nanos) as f64;
        assert!((counted / passed - 1.0).abs() < 0.01, "{counted} {passed}");
    }

    #[test]
    fn ticks_and_spans_are_inverse() {
        let clock = Clock::best();
        let hour = Nanos::from_secs(3600);
        let back = clock.span(clock.ticks(hour));
        assert!(back.0.abs_diff(hour.0) < 1_000);
    }
}
