//! Causes of stalls of the thread that issues: it waits for a processor, or the kernel holds it in a system call.

use std::fs;

/// The kernel's account of the calling thread: time on a processor, time in which it waited for one, and stretches
/// (Documentation/scheduler/sched-stats.rst).
const SCHEDSTAT: &str = "/proc/thread-self/schedstat";

/// Stalls of the calling thread.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    /// Time for which it had waited for a processor at the last stall.
    waited: u64,
}

impl Stalls {
    /// True if a stall of so many nanoseconds was spent in the kernel, and not in waiting for a processor. Where the
    /// kernel keeps no account, it is not known, and the host is blamed.
    pub(crate) fn is_of_the_kernel(&mut self, stall: u64) -> bool {
        let account = fs::read_to_string(SCHEDSTAT).ok();
        let Some(waited) = account.as_deref().and_then(waited) else {
            return false;
        };
        let since = waited.saturating_sub(std::mem::replace(&mut self.waited, waited));
        since < stall / 2
    }
}

/// Time in which a thread waited for a processor.
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
