//! Limit on the requests and bytes of a phase.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use record::Workload;

/// Requests and bytes that the workers of a phase together may still issue.
pub(crate) struct Budget {
    ops: Option<AtomicU64>,
    bytes: Option<AtomicU64>,
}

impl Budget {
    /// The budget of a workload; `None` if it is unlimited.
    pub(crate) fn of(workload: &Workload) -> Option<Budget> {
        let bytes = workload.details.as_ref().and_then(|details| details.bytes);
        let limited = workload.ops.is_some() || bytes.is_some();
        limited.then(|| Budget {
            ops: workload.ops.map(AtomicU64::new),
            bytes: bytes.map(|bytes| AtomicU64::new(bytes.0)),
        })
    }

    /// Takes a request of `bytes` bytes from the budget; false if nothing is left. As in fio, the last request may
    /// exceed the remaining bytes.
    #[inline(always)]
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let one = |left: u64| left.checked_sub(1);
        let some = |left: u64| (left > 0).then(|| left.saturating_sub(bytes));
        self.ops
            .as_ref()
            .is_none_or(|ops| ops.fetch_update(Relaxed, Relaxed, one).is_ok())
            && self
                .bytes
                .as_ref()
                .is_none_or(|left| left.fetch_update(Relaxed, Relaxed, some).is_ok())
    }

    /// True if nothing is left of the requests or bytes.
    pub(crate) fn is_spent(&self) -> bool {
        let zero = |left: &AtomicU64| left.load(Relaxed) == 0;
        self.ops.as_ref().is_some_and(zero) || self.bytes.as_ref().is_some_and(zero)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::tests::workload;
    use record::{Bytes, JobOptions};

    #[test]
    fn a_budget_ends_with_its_requests_or_bytes_whichever_is_spent_first() {
        let mut workload = workload();
        assert!(Budget::of(&workload).is_none());
        workload.details = Some(Box::new(JobOptions {
            bytes: Some(Bytes(10_000)),
            ..JobOptions::default()
        }));
        let budget = Budget::of(&workload).unwrap();
        assert!(budget.take(4096) && budget.take(4096) && !budget.is_spent());
        assert!(
            budget.take(4096),
            "the last one may be larger than the rest"
        );
        assert!(budget.is_spent() && !budget.take(1));
        workload.ops = Some(1);
        let budget = Budget::of(&workload).unwrap();
        assert!(budget.take(4096) && budget.is_spent() && !budget.take(4096));
    }
}
