//! Warning of a deadline that cannot be met.

use job::{EtaEstimator, ProgressLine};
use ui::units::span;

use super::start_times::DueTime;

/// A deadline, with the estimate of the time at which the work will be done.
#[derive(Debug)]
pub(super) struct Deadline {
    due: Option<DueTime>,
    /// True if the deadline has priority over the latency targets.
    wins: bool,
    eta: EtaEstimator,
    path: String,
}

impl Deadline {
    /// Deadline of the work on the array or disk `path`, of which `done` bytes are already done.
    pub(super) fn new(path: String, due: Option<DueTime>, wins: bool, done: u64) -> Deadline {
        Deadline {
            due,
            wins,
            eta: EtaEstimator::new(done),
            path,
        }
    }

    /// Recent rate in bytes a second, where `done` bytes are done now; `None` while there is no progress.
    pub(super) fn rate(&mut self, now_s: f64, done: u64) -> Option<f64> {
        self.eta.rate(now_s, done)
    }

    /// Reports that the deadline cannot be met with `left` bytes to do at this rate in bytes a second.
    pub(super) fn report_if_late(
        &mut self,
        now_s: f64,
        left: u64,
        rate: Option<f64>,
        line: &ProgressLine,
    ) {
        let (Some(due), Some(rate)) = (&self.due, rate) else {
            return;
        };
        let (needs_s, has_s) = (left as f64 / rate, due.left().as_secs_f64());
        if self.eta.must_warn(now_s, needs_s, has_s) {
            // A warning that could not be shown is repeated.
            if line.report(late_warning(&self.path, needs_s, has_s, self.wins)) {
                self.eta.warned(now_s);
            }
        }
    }
}

/// Clause that states which of latency target and deadline is kept where both cannot be.
pub(super) fn kept_of_both(deadline_wins: bool) -> &'static str {
    if deadline_wins {
        "it checks faster than the latency target allows (--deadline-wins)"
    } else {
        "the latency target and --by cannot both be met. The latency target is kept; --deadline-wins would keep --by"
    }
}

/// Warning that the deadline and the latency target cannot both be met: `left` seconds of work, `available` seconds
/// until the deadline. It states which of the two is kept.
fn late_warning(path: &str, left: f64, available: f64, deadline_wins: bool) -> String {
    let (left, available) = (span(left), span(available));
    let kept = kept_of_both(deadline_wins);
    format!("disksmith: {path} needs {left} more at this pace, and there are {available}: {kept}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_names_which_of_the_two_is_kept() {
        let message = late_warning("/dev/md0", 7200.0, 3600.0, false);
        assert!(message.contains("The latency target is kept"), "{message}");
        let message = late_warning("/dev/md0", 7200.0, 3600.0, true);
        assert!(
            message.contains("faster than the latency target allows"),
            "{message}"
        );
    }
}
