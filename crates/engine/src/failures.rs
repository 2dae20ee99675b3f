//! Failed requests, whose errors end the phase unless the job declares them non-fatal.

use record::{Direction, FailedRequests, NonFatal, Workload};
use rustix::io::Errno;

use crate::job::EngineError;

/// Non-fatal failures of a worker.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    counted: FailedRequests,
}

impl Failures {
    /// Counts a failed request of `workload` with the negative error number `result`, unless `error` ends the phase.
    /// As in fio, all requests except reads use the setting for writes.
    ///
    /// # Errors
    /// The error that ends the phase.
    pub(crate) fn add(
        &mut self,
        workload: &Workload,
        direction: Direction,
        result: i32,
        error: EngineError,
    ) -> Result<(), EngineError> {
        let details = workload.details.as_deref();
        let Some(NonFatal { reads, writes }) =
            details.and_then(|details| details.non_fatal.as_ref())
        else {
            return Err(error);
        };
        let counted = &mut self.counted;
        let is_first = counted.count() == 0;
        let (numbers, count) = match direction {
            Direction::Read => (reads, &mut counted.reads),
            Direction::Write if !workload.trims() => (writes, &mut counted.writes),
            Direction::Write | Direction::Trim => (writes, &mut counted.trims),
            Direction::Sync | Direction::Commit => (writes, &mut counted.syncs),
        };
        if !numbers.contains(&result.saturating_neg()) {
            return Err(error);
        }
        *count += 1;
        if is_first {
            counted.first = error.to_string();
        }
        Ok(())
    }

    /// Counts a request at byte `offset` that took longer than its job allows, as ETIMEDOUT like fio.
    ///
    /// # Errors
    /// The error that ends the phase.
    #[cold]
    pub(crate) fn add_late(
        &mut self,
        workload: &Workload,
        direction: Direction,
        offset: u64,
    ) -> Result<(), EngineError> {
        let details = workload.details.as_deref();
        let longest = details.and_then(|details| details.max_latency);
        let longest = longest.unwrap_or_default();
        let error = EngineError::Late {
            direction: match workload.trims() {
                true => Direction::Trim,
                false => direction,
            },
            offset,
            longest: match direction {
                Direction::Read => longest.reads,
                _ => longest.writes,
            },
        };
        let result = -Errno::TIMEDOUT.raw_os_error();
        self.add(workload, direction, result, error)
    }

    /// Counts of all failures.
    pub(crate) fn counted(self) -> FailedRequests {
        self.counted
    }
}
