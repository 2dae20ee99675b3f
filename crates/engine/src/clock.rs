//! The clock that times requests.
//!
//! Reading the time-stamp counter costs less than half of a `clock_gettime` call. It is used where
//! the processor says that it runs at one rate in all states (invariant TSC: CPUID leaf 0x80000007,
//! EDX bit 8; AMD64 Architecture Programmer's Manual volume 3, Intel SDM volume 3 section 17.17) and
//! where it agreed with the monotonic clock when tested.

#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use record::{ClockKind, CpuTime, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// How long the two clocks are compared: long enough that an error of 100 ns in reading the pair
/// is 5 parts in a million.
const COMPARED: Duration = Duration::from_millis(10);
/// By how much the two halves of the comparison may differ.
const TOLERANCE: f64 = 200e-6;

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
        *BEST.get_or_init(|| tsc().unwrap_or(Clock::monotonic()))
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
            ClockKind::Tsc => read_tsc(),
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

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn monotonic_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time that the calling thread has used, in nanoseconds.
pub(crate) fn thread_cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Processor time that this process has used, with the kernel threads that io_uring runs in its
/// name (getrusage(2)).
pub(crate) fn process_cpu_time() -> CpuTime {
    // SAFETY: a rusage of zeros is a valid one, and the call writes to nothing else. It cannot
    // fail for the calling process.
    let usage = unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    CpuTime {
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_tsc() -> u64 {
    // SAFETY: RDTSC is there on every x86-64 processor and touches no memory. Linux leaves it
    // enabled for user mode unless a process asks otherwise (PR_SET_TSC), which this one does not.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc() -> Option<Clock> {
    None
}

/// The time-stamp counter, if it is invariant and two comparisons with the monotonic clock agree.
#[cfg(target_arch = "x86_64")]
fn tsc() -> Option<Clock> {
    use core::arch::x86_64::__cpuid;

    let invariant =
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    if !invariant {
        return None;
    }
    let start = paired_reading();
    thread::sleep(COMPARED);
    let middle = paired_reading();
    thread::sleep(COMPARED);
    let end = paired_reading();
    nanos_per_tick(start, middle, end).map(|nanos_per_tick| Clock {
        kind: ClockKind::Tsc,
        nanos_per_tick,
    })
}

/// What both clocks said at one moment: ticks and nanoseconds.
type Pair = (u64, u64);

/// The length of a tick, if the two halves of the comparison agree on it.
fn nanos_per_tick(start: Pair, middle: Pair, end: Pair) -> Option<f64> {
    let ratio = |from: Pair, to: Pair| {
        let ticks = to.0.checked_sub(from.0).filter(|ticks| *ticks > 0)?;
        Some(to.1.checked_sub(from.1)? as f64 / ticks as f64)
    };
    let (first, second) = (ratio(start, middle)?, ratio(middle, end)?);
    let agreed = (first / second - 1.0).abs() <= TOLERANCE;
    // A tick between 0.05 ns (20 GHz) and 100 ns (10 MHz): anything else is not a clock.
    let plausible = (0.05..=100.0).contains(&first);
    (agreed && plausible).then(|| ratio(start, end))?
}

/// Reads both clocks as close together as can be: the tightest of several tries, so that an
/// interrupt between the two does not count.
#[cfg(target_arch = "x86_64")]
fn paired_reading() -> Pair {
    let mut best = (u64::MAX, (0, 0));
    for _ in 0..20 {
        let before = read_tsc();
        let nanos = monotonic_nanos();
        let after = read_tsc();
        let apart = after.saturating_sub(before);
        if apart < best.0 {
            best = (apart, (before + apart / 2, nanos));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
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
    fn a_counter_that_changes_its_rate_is_refused() {
        assert_eq!(nanos_per_tick((0, 0), (1000, 500), (2000, 1000)), Some(0.5));
        assert_eq!(nanos_per_tick((0, 0), (1000, 500), (2100, 1000)), None);
        assert_eq!(nanos_per_tick((0, 0), (1000, 500), (900, 1000)), None);
        assert_eq!(nanos_per_tick((0, 0), (0, 500), (0, 1000)), None);
        assert_eq!(nanos_per_tick((0, 0), (1, 500), (2, 1000)), None);
    }

    #[test]
    fn ticks_and_spans_are_inverse() {
        let clock = Clock::best();
        let hour = Nanos::from_secs(3600);
        let back = clock.span(clock.ticks(hour));
        assert!(back.0.abs_diff(hour.0) < 1_000);
    }
}
