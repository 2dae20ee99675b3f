//! Causes of stalls of the issuing thread: it waits for a processor, or is blocked in a system call.

use std::fs;

/// The kernel's statistics of the calling thread: time on a processor, time waiting for one, and number of time slices
/// (Documentation/scheduler/sched-stats.rst).
const SCHEDSTAT: &str = "/proc/thread-self/schedstat";

/// Stalls of the calling thread.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    /// Total time in nanoseconds for which it had waited for a processor at the last stall.
    waited: u64,
}

impl Stalls {
    /// True if a stall of `stall` nanoseconds was spent in the kernel, not in waiting for a processor. If the kernel
    /// has no statistics, this is unknown, and the result is false.
    pub(crate) fn is_of_the_kernel(&mut self, stall: u64) -> bool {
        let account = fs::read_to_string(SCHEDSTAT).ok();
        let Some(waited) = account.as_deref().and_then(waited) else {
            return false;
        };
        let since = waited.saturating_sub(std::mem::replace(&mut self.waited, waited));
        since < stall / 2
    }
}

/// Time in nanoseconds for which a thread waited for a processor.
fn waited(account: &str) -> Option<u64> {
    account.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_in_the_kernel_is_no_wait_for_a_processor() {
        assert_eq!(waited("123 45 6\n"), Some(45));
        assert_eq!(waited(""), None);
        // Far longer than this thread has waited for a processor since its start.
        let mut stalls = Stalls::default();
        assert!(stalls.is_of_the_kernel(u64::MAX));
        assert!(!stalls.is_of_the_kernel(0));
    }
}
