//! The clock that times requests.
//!
//! Reading the time-stamp counter costs less than half of a `clock_gettime` call. It is used where
//! the processor reports that it runs at a constant rate in all states (invariant TSC: CPUID leaf 0x80000007,
//! EDX bit 8; AMD64 Architecture Programmer's Manual volume 3, Intel SDM volume 3 section 17.17) and
//! where it agreed with the monotonic clock in a test.

#![allow(unsafe_code)]

mod monotonic;
#[cfg(target_arch = "x86_64")]
mod tsc;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use record::{ClockKind, CpuTime, Nanos};
use rustix::time::{ClockId, clock_gettime};

pub(crate) use monotonic::monotonic_nanos;

/// A clock that counts ticks of a known length.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    kind: ClockKind,
    nanos_per_tick: f64,
}

impl Clock {
    /// The best clock of this machine. The first call takes 20 ms to test it; later ones return the result.
    pub fn best() -> Clock {
        static BEST_CLOCK: OnceLock<Clock> = OnceLock::new();
        *BEST_CLOCK.get_or_init(|| invariant_counter().unwrap_or(Clock::monotonic()))
    }

    /// The monotonic clock, whose tick is a nanosecond.
    pub fn monotonic() -> Clock {
        Clock {
            kind: ClockKind::Monotonic,
            nanos_per_tick: 1.0,
        }
    }

    /// Kind of this clock.
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// Length of a tick, in nanoseconds.
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

    /// Number of ticks in a span of time.
    pub fn ticks(&self, span: Nanos) -> u64 {
        (span.0 as f64 / self.nanos_per_tick).round() as u64
    }

    /// Length of a number of ticks.
    pub fn span(&self, ticks: u64) -> Nanos {
        Nanos((ticks as f64 * self.nanos_per_tick).round() as u64)
    }
}

#[cfg(target_arch = "x86_64")]
fn invariant_counter() -> Option<Clock> {
    tsc::nanos_per_tick().map(|nanos_per_tick| Clock {
        kind: ClockKind::Tsc,
        nanos_per_tick,
    })
}

/// `None` on other processors, where the monotonic clock reads the processor's counter without a system call.
#[cfg(not(target_arch = "x86_64"))]
fn invariant_counter() -> Option<Clock> {
    None
}

/// Measures the busy share of a thread's time: it ran, or waited for a processor. On a busy host that wait is long,
/// and it is not a wait for the disk.
pub(crate) struct BusyTime {
    schedstat: Option<File>,
    before: ThreadCounters,
}

/// Counters of one thread, read at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadCounters {
    /// The moment, in nanoseconds.
    pub now: u64,
    /// Nanoseconds in which it ran or waited for a processor. Time stolen by a hypervisor may be missing
    /// (CONFIG_PARAVIRT_TIME_ACCOUNTING).
    pub busy: u64,
    /// Number of times that it slept (getrusage(2), ru_nvcsw); `None` if the kernel does not count them.
    pub sleeps: Option<u64>,
}

impl ThreadCounters {
    /// The busy share of the time since `before`, 0 to 1. Both counters are read at the same moments, so that a late
    /// reading at the end of a window does not change the share.
    pub(crate) fn busy_share_since(self, before: ThreadCounters) -> f64 {
        // A thread that never slept never waited for the disk, even if stolen time is missing.
        if self.sleeps.is_some() && self.sleeps == before.sleeps {
            return 1.0;
        }
        let passed = self.now.saturating_sub(before.now).max(1);
        (self.busy.saturating_sub(before.busy) as f64 / passed as f64).min(1.0)
    }
}

impl BusyTime {
    /// The busy time of the calling thread.
    pub(crate) fn of_this_thread() -> BusyTime {
        let mut busy = BusyTime {
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
            before: ThreadCounters::default(),
        };
        busy.before = busy.counters();
        busy
    }

    /// The busy share of the time since the last call, 0 to 1.
    pub(crate) fn share(&mut self) -> f64 {
        let now = self.counters();
        now.busy_share_since(std::mem::replace(&mut self.before, now))
    }

    fn counters(&self) -> ThreadCounters {
        let now = monotonic_nanos();
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let ran = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        ThreadCounters {
            now,
            busy: ran + self.run_delay_nanos(),
            // A kernel without one of the counters may report the other as zeros.
            sleeps: self
                .schedstat
                .is_some()
                .then(|| usage(libc::RUSAGE_THREAD).ru_nvcsw as u64),
        }
    }

    /// Time on a run queue without running, in nanoseconds: the second number of schedstat (Linux,
    /// Documentation/scheduler/sched-stats.rst). The first is the run time, which is not up to date. 0 if the kernel
    /// does not count it.
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

/// Processor time of this process, including the kernel threads that io_uring runs on its behalf (getrusage(2)).
pub(crate) fn process_cpu_time() -> CpuTime {
    cpu_time(libc::RUSAGE_SELF)
}

/// Processor time of the calling thread, without the kernel threads that io_uring runs on its behalf; fio counts it
/// like this for each of its jobs.
pub(crate) fn thread_cpu_time() -> CpuTime {
    cpu_time(libc::RUSAGE_THREAD)
}

/// The processor time `one` minus `other`.
pub(crate) fn cpu_since(one: CpuTime, other: CpuTime) -> CpuTime {
    CpuTime {
        user_s: one.user_s - other.user_s,
        system_s: one.system_s - other.system_s,
    }
}

fn usage(whose: libc::c_int) -> libc::rusage {
    // SAFETY: a rusage of zeros is a valid one, and the call writes to nothing else. It cannot
    // fail for the calling process or thread.
    unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(whose, &mut usage);
        usage
    }
}

fn cpu_time(whose: libc::c_int) -> CpuTime {
    let usage = usage(whose);
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
        // A reading of one clock between two readings of the other, however long a busy host takes for them.
        let readings = || [monotonic_nanos(), clock.now(), monotonic_nanos()];
        let before = readings();
        thread::sleep(Duration::from_millis(50));
        let after = readings();
        let counted = clock.span(after[1] - before[1]).0 as f64;
        let least = (after[0] - before[2]) as f64;
        let most = (after[2] - before[0]) as f64;
        let is_so = (0.99 * least..=1.01 * most).contains(&counted);
        assert!(is_so, "{counted}, not from {least} to {most}");
    }

    const MS: u64 = 1_000_000;

    fn spent(now: u64, busy: u64, sleeps: u64) -> ThreadCounters {
        ThreadCounters {
            now: now * MS,
            busy: busy * MS,
            sleeps: Some(sleeps),
        }
    }

    #[test]
    fn a_share_is_of_the_time_that_passed_whenever_it_is_requested() {
        // 30 ms late for the end of the first second, 20 ms for that of the second one.
        let at = [spent(0, 0, 0), spent(1030, 515, 9), spent(2020, 1010, 17)];
        for pair in at.windows(2) {
            assert_eq!(pair[1].busy_share_since(pair[0]), 0.5);
        }
    }

    #[test]
    fn a_thread_that_never_slept_was_busy_even_with_half_its_time_stolen() {
        let (before, now) = (spent(0, 0, 3), spent(1000, 500, 3));
        assert_eq!(now.busy_share_since(before), 1.0);
        let slept = spent(1000, 500, 4);
        assert_eq!(slept.busy_share_since(before), 0.5);
        // If sleeps are not counted, their absence means nothing.
        let unknown = |spent: ThreadCounters| ThreadCounters {
            sleeps: None,
            ..spent
        };
        assert_eq!(unknown(now).busy_share_since(unknown(before)), 0.5);
    }

    #[test]
    fn a_thread_that_only_computes_is_busy_all_the_time_and_one_that_sleeps_is_not() {
        let mut busy = BusyTime::of_this_thread();
        let began = monotonic_nanos();
        while monotonic_nanos() - began < 50 * MS {}
        let share = busy.share();
        assert!(share == 1.0 || busy.schedstat.is_none(), "{share}");
        // However late it is woken, the share of a long sleep in which it does not sleep is small on any host, and
        // never all of it.
        thread::sleep(Duration::from_millis(200));
        assert!(busy.share() < 1.0);
    }

    #[test]
    fn ticks_and_spans_are_inverse() {
        let clock = Clock::best();
        let hour = Nanos::from_secs(3600);
        let back = clock.span(clock.ticks(hour));
        assert!(back.0.abs_diff(hour.0) < 1_000);
    }
}
