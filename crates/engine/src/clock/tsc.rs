//! The time-stamp counter of x86-64, where it is invariant.

use std::thread;
use std::time::Duration;

use super::monotonic::monotonic_nanos;

/// Duration of each half of the comparison of the two clocks: an error of 100 ns in reading the pair is then 10 parts
/// in a million.
const COMPARISON_TIME: Duration = Duration::from_millis(10);
/// Maximum relative difference between the two halves of the comparison.
const TOLERANCE: f64 = 200e-6;

#[inline(always)]
pub(super) fn read() -> u64 {
    // SAFETY: RDTSC is there on every x86-64 processor and touches no memory. Linux leaves it
    // enabled for user mode unless a process disables it (PR_SET_TSC), which this one does not.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Length of a tick in nanoseconds, if the counter is invariant and two comparisons with the monotonic clock agree.
pub(super) fn nanos_per_tick() -> Option<f64> {
    use core::arch::x86_64::__cpuid;

    let invariant =
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
    if !invariant {
        return None;
    }
    let start = paired_reading();
    thread::sleep(COMPARISON_TIME);
    let middle = paired_reading();
    thread::sleep(COMPARISON_TIME);
    let end = paired_reading();
    agreed_length(start, middle, end)
}

/// Readings of both clocks at one moment: ticks and nanoseconds.
type Pair = (u64, u64);

/// The length of a tick, if the two halves of the comparison agree on it.
fn agreed_length(start: Pair, middle: Pair, end: Pair) -> Option<f64> {
    let ratio = |from: Pair, to: Pair| {
        let ticks = to.0.checked_sub(from.0).filter(|ticks| *ticks > 0)?;
        Some(to.1.checked_sub(from.1)? as f64 / ticks as f64)
    };
    let (first, second) = (ratio(start, middle)?, ratio(middle, end)?);
    let agreed = (first / second - 1.0).abs() <= TOLERANCE;
    // A tick is between 0.05 ns (20 GHz) and 100 ns (10 MHz); other values are invalid.
    let plausible = (0.05..=100.0).contains(&first);
    (agreed && plausible).then(|| ratio(start, end))?
}

/// A reading of both clocks at nearly the same moment: the closest pair of several, so that an interrupt between the
/// two does not matter.
fn paired_reading() -> Pair {
    let mut best = (u64::MAX, (0, 0));
    for _ in 0..20 {
        let before = read();
        let nanos = monotonic_nanos();
        let after = read();
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
    fn a_counter_that_changes_its_rate_is_refused() {
        assert_eq!(agreed_length((0, 0), (1000, 500), (2000, 1000)), Some(0.5));
        assert_eq!(agreed_length((0, 0), (1000, 500), (2100, 1000)), None);
        assert_eq!(agreed_length((0, 0), (1000, 500), (900, 1000)), None);
        assert_eq!(agreed_length((0, 0), (0, 500), (0, 1000)), None);
        assert_eq!(agreed_length((0, 0), (1, 500), (2, 1000)), None);
    }
}
