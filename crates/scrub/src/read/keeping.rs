//! When how the reading of a member stands is kept.
//!
//! The ledger may lie on what is read, where each time is a commit of some ten requests: they are not to be the
//! company that holds the reading back. So all that is read takes turns.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use record::Nanos;

use super::kept::Kept;
use job::keeper::Keeper;

/// How often it is kept.
const KEEPS: Nanos = Nanos(10_000_000_000);
/// So soon at first.
const KEEPS_FIRST: Nanos = Nanos(2_000_000_000);
/// So long lies between two turns: of the thirty requests in three seconds that are nobody, two commits leave some to
/// the file system.
const TURN: Nanos = Nanos(2_500_000_000);

/// The turns of all members and disks that are read at once.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// So many take part.
    of: AtomicU64,
    last: Mutex<Option<Nanos>>,
}

impl Turns {
    /// After how long a member is kept again that has been read for so long: a kill then costs no more than half of
    /// what was read since the start, or [`KEEPS`]; or as long as all turns take, so that nobody is left out.
    fn again(&self, ran: Nanos) -> Nanos {
        let own = (ran.0 / 2).clamp(KEEPS_FIRST.0, KEEPS.0);
        Nanos(own.max(self.of.load(Relaxed) * TURN.0))
    }

    /// Whether it is anybody's turn, who then has it.
    fn take(&self, now: Nanos) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = last.is_none_or(|last| now.0.saturating_sub(last.0) >= TURN.0);
        if is_free {
            *last = Some(now);
        }
        is_free
    }
}

/// Keeps how the reading of one member stands.
pub(crate) struct Keeping {
    keeper: Keeper<Kept>,
    turns: Arc<Turns>,
    last: Option<Nanos>,
}

impl Keeping {
    /// In turn with all that share `turns`.
    pub(crate) fn new(keeper: Keeper<Kept>, turns: &Arc<Turns>) -> Keeping {
        turns.of.fetch_add(1, Relaxed);
        Keeping {
            keeper,
            turns: Arc::clone(turns),
            last: None,
        }
    }

    /// Whether it is to be kept now, after it has been read for so long.
    pub(crate) fn is_due(&mut self, ran: Nanos) -> bool {
        is_due(&mut self.last, &self.turns, ran)
    }

    /// Keeps how it stands, without waiting for that.
    pub(crate) fn keep(&self, kept: &Kept) {
        // A state that is not taken is in the next one too.
        self.keeper.keep(kept);
    }

    /// Keeps how it stands in the end, as finished or not.
    ///
    /// # Errors
    /// What has gone wrong with keeping, now or earlier.
    pub(crate) fn end(self, kept: &Kept, finished: bool) -> anyhow::Result<()> {
        self.turns.of.fetch_sub(1, Relaxed);
        self.keeper.end(kept, finished)
    }
}

fn is_due(last: &mut Option<Nanos>, turns: &Turns, ran: Nanos) -> bool {
    let is_time = match *last {
        Some(last) => ran.0.saturating_sub(last.0) >= turns.again(ran).0,
        None => ran >= KEEPS_FIRST,
    };
    let is_due = is_time && turns.take(ran);
    if is_due {
        *last = Some(ran);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When each of so many members was kept that were read for so many seconds, in milliseconds.
    fn kept(of: usize, seconds: u64) -> Vec<Vec<u64>> {
        let turns = Turns {
            of: AtomicU64::new(of as u64),
            ..Turns::default()
        };
        let mut last = vec![None; of];
        let mut kept = vec![Vec::new(); of];
        for ms in (250..1000 * seconds).step_by(250) {
            for (last, kept) in last.iter_mut().zip(&mut kept) {
                if is_due(last, &turns, Nanos(ms * 1_000_000)) {
                    kept.push(ms);
                }
            }
        }
        kept
    }

    #[test]
    fn who_is_alone_is_kept_soon_and_then_each_ten_seconds() {
        assert_eq!(kept(1, 45)[0], [2000, 4500, 9000, 18_000, 28_000, 38_000]);
    }

    #[test]
    fn members_take_turns_and_none_is_left_out() {
        for of in [2, 4, 8, 24] {
            let kept = kept(of, 300);
            let mut all = kept.concat();
            all.sort_unstable();
            assert!(all.windows(2).all(|two| two[1] - two[0] >= 2500), "{of}");
            for one in &kept {
                assert!(one[0] <= 2000 + 2500 * of as u64, "{one:?}");
                let longest = one.windows(2).map(|two| two[1] - two[0]).max();
                let allowed = 10_000.max(2500 * of as u64) + 2500;
                assert!(longest.is_some_and(|longest| longest <= allowed), "{one:?}");
            }
        }
    }
}
