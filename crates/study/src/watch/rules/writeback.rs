//! `writeback`: so much memory is dirty that the kernel throttles programs that write.
//!
//! It does so from the midpoint between the background limit and the hard limit (linux, mm/page-writeback.c,
//! `dirty_freerun_ceiling`): above it, each program that dirties memory is made to pause.

use record::sample::{Memory, SampleTime};
use record::{Bytes, Nanos, Severity, Subject};

use crate::watch::format::percent;
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Minimum time for which the condition must last.
const MIN_TIME: Nanos = Nanos::from_secs(3);

const ADVICE: &str = "Writes to files now proceed at the speed of the disks. Lower vm.dirty_background_bytes so that \
                      the kernel begins to write earlier and in smaller pieces, or find the \
                      program that writes.";

/// Rule for dirty memory.
#[derive(Default)]
pub(super) struct Writeback {
    since: Option<SampleTime>,
}

impl Rule for Writeback {
    fn is_instant(&self) -> bool {
        true
    }

    fn forget(&mut self) {
        self.since = None;
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        let full = now.sample.host.memory.as_ref().and_then(held_back);
        let Some((waiting, limit)) = full else {
            self.since = None;
            return;
        };
        let at = now.sample.at;
        let since = *self.since.get_or_insert(at.before(now.sample.length));
        if at.elapsed - since.elapsed < MIN_TIME {
            return;
        }
        let share = waiting.0 as f64 / limit.0 as f64;
        seen.push(Sighting {
            subject: Subject::Host,
            name: "host".to_owned(),
            severity: Severity::Warn,
            began: since,
            text: format!(
                "{waiting} of memory are dirty, {} of the limit of {limit}, and the kernel throttles programs that \
                 write.",
                percent(share)
            ),
            advice: ADVICE,
            figures: vec![
                ("waiting_bytes", waiting.0 as f64),
                ("limit_bytes", limit.0 as f64),
                ("share", share),
            ],
        });
    }
}

/// Dirty memory and its limit, if programs are throttled.
fn held_back(memory: &Memory) -> Option<(Bytes, Bytes)> {
    let limit = memory.limit.filter(|limit| limit.0 > 0)?;
    let waiting = memory.dirty? + memory.writeback.unwrap_or_default();
    let from = (memory.background_limit?.0.saturating_add(limit.0)) / 2;
    (waiting.0 >= from).then_some((waiting, limit))
}
