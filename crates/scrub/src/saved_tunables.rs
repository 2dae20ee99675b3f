//! The tunables as they were before a scrub, and how they are restored.

use linux::md::sync::{Sectors, SpeedLimit, Sync, SyncMax, Tunable};
use record::sample::SyncAction;
use serde::{Deserialize, Serialize};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::drive;

/// Size of the stripe cache, in stripes, with which a check has work for all members.
pub(crate) const STRIPE_CACHE_SIZE: u64 = 1024;
/// Number of requests that md issues at once beside a foreground: as few as it can.
pub(crate) const DEPTH: u64 = 1;
/// Time limit for md to end what it is told to end, or what it ends by itself.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two polls.
const POLL: Duration = Duration::from_millis(20);

/// Former value of a tunable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// The file's name in the array's folder `md`.
    pub file: String,
    /// Text to write to restore it.
    pub write: String,
    /// Text that it shows for as long as no other program has written to it; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<String>,
}

/// Former values of all tunables that a scrub changes, and the action that it let md do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedTunables {
    /// Former value of each tunable that is still to be restored.
    pub settings: Vec<Setting>,
    /// True if md repairs, false if it only checks.
    pub repairs: bool,
}

/// Process that restores tunables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestoredBy {
    /// The scrub that has turned them. Its own are those that are still as it sets them, and the ends of its
    /// check, but for one to which another program has written. With `ends` the check is its own too, and is
    /// ended.
    Scrub {
        but_for: Option<Tunable>,
        ends: bool,
        /// True if the bounds of md's check are as the scrub set them; without md they are as they were.
        window_set: bool,
    },
    /// Another process, after the scrub was killed. Changes since are not known, so that only those are restored
    /// that are still as a scrub sets them; and a check is only its own where it stands between a position and a
    /// finite `sync_max`, which nothing else leaves.
    Another,
}

/// Result of restoring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RestoreResult {
    /// Tunables that could not be restored, as a sentence each.
    pub failed: Vec<String>,
    /// Tunables that cannot be restored before md has finished its present action.
    pub later: Option<SavedTunables>,
}

impl RestoreResult {
    /// True if all is as it was.
    pub(crate) fn is_all(&self) -> bool {
        self.failed.is_empty() && self.later.is_none()
    }

    /// Tunables that are not as they were, in sentences.
    pub(crate) fn left(&self) -> Vec<String> {
        let later = self.later.iter().flat_map(|old| &old.settings);
        let later = later.map(|setting| {
            format!(
                "{} is {} until md has done what it does now, and is put back then (by the guard that \
                 waits for it, or else by the next 'disksmith scrub --status')",
                setting.file,
                setting.shows.as_deref().unwrap_or_default()
            )
        });
        self.failed.iter().cloned().chain(later).collect()
    }
}

impl SavedTunables {
    /// Reads the present tunables.
    ///
    /// # Errors
    /// A sentence, when one without which nothing can be steered is not there, or is no longer as
    /// the kernel sets it at the start.
    pub(crate) fn read(sync: &Sync, repairs: bool) -> Result<SavedTunables, String> {
        let mut settings = Vec::new();
        for tunable in Tunable::ALL {
            let shown = sync.tunable(tunable);
            let Some(write) = shown.as_deref().and_then(|shown| tunable.to_write(shown)) else {
                if matches!(tunable, Tunable::IoDepth | Tunable::StripeCache) {
                    continue;
                }
                return Err(format!(
                    "the kernel shows no usable {} of it, so that a check could not be paced; this \
                     needs Linux 2.6.30 or later and /sys",
                    tunable.file()
                ));
            };
            settings.push(Setting {
                file: tunable.file().to_owned(),
                write,
                shows: None,
            });
        }
        Ok(SavedTunables { settings, repairs })
    }

    /// Reason for which these values cannot be somebody's intent, if they were left by a killed scrub of
    /// which nothing else is known.
    pub(crate) fn left_over(sync: &Sync) -> Option<String> {
        let folder = sync.folder().display();
        let number = |tunable| sync.tunable(tunable)?.trim().parse::<u64>().ok();
        let (low, high) = (number(Tunable::SuspendLo), number(Tunable::SuspendHi));
        if let (Some(low), Some(high)) = (low, high)
            && low < high
        {
            return Some(format!(
                "writes to its sectors {low} to {high} wait (suspend_lo and suspend_hi): a reshape needs that, \
                 or a repair was killed whose ledger is gone. If nothing is at work on it: echo 0 > \
                 {folder}/suspend_hi; echo 0 > {folder}/suspend_lo"
            ));
        }
        let max = sync.tunable(Tunable::Max).unwrap_or_default();
        matches!(SyncMax::parse(&max), Some(SyncMax::At(_))).then(|| {
            format!(
                "its sync_max is {max}, not 'max': something has stopped there and not put it back, \
                 such as a scrub that was killed and whose ledger is gone, and no recovery would get \
                 past it. Put it back first: echo idle > {folder}/sync_action; echo 0 > \
                 {folder}/sync_min; echo max > {folder}/sync_max; echo system > \
                 {folder}/sync_speed_min; echo system > {folder}/sync_speed_max"
            )
        })
    }

    /// Note on a check that another program has left in the middle: a later one begins there, and says nothing
    /// of what lies before.
    pub(crate) fn interrupted_check_note(&self, sync: &Sync) -> Option<String> {
        let from = self.write_of(Tunable::Min).filter(|write| *write != "0")?;
        Some(format!(
            "Its sync_min is {from}, where somebody's check was left, and is that again afterwards: any \
             other check begins there, and does not see what lies before (echo 0 > {} ends that).",
            sync.folder().join(Tunable::Min.file()).display()
        ))
    }

    fn of(&self, tunable: Tunable) -> Option<&Setting> {
        self.settings
            .iter()
            .find(|setting| setting.file == tunable.file())
    }

    /// Former start of a check.
    pub(crate) fn min(&self) -> Sectors {
        let write = self.write_of(Tunable::Min);
        Sectors(write.and_then(|write| write.parse().ok()).unwrap_or(0))
    }

    fn write_of(&self, tunable: Tunable) -> Option<&str> {
        self.of(tunable).map(|setting| setting.write.as_str())
    }

    /// Restores everything that is a scrub's own. Its check is ended first; anything else that md does is let
    /// go at once. Of an array that does not exist any more there is nothing to restore.
    pub(crate) fn put_back(&self, sync: &Sync, by: RestoredBy) -> RestoreResult {
        let window_set = self.of(Tunable::Max).is_some() && is_window_set(sync);
        let ends = match by {
            RestoredBy::Scrub { ends, .. } => ends,
            RestoredBy::Another => window_set,
        };
        if ends {
            self.end_check(sync);
        }
        // What holds back a recovery goes first. Where a check begins cannot be set while md works
        // (EBUSY), and matters to a check only.
        let order = [
            Tunable::SuspendHi,
            Tunable::SuspendLo,
            Tunable::SpeedMax,
            Tunable::SpeedMin,
            Tunable::Max,
            Tunable::IoDepth,
            Tunable::Min,
            Tunable::StripeCache,
        ];
        let turn = |tunable: &Tunable| match self.of(*tunable) {
            Some(setting) if is_own(*tunable, setting, sync, by, window_set) => {
                sync.turn(*tunable, &setting.write).is_err()
            }
            _ => false,
        };
        let mut failed: Vec<Tunable> = order.into_iter().filter(turn).collect();
        if failed.contains(&Tunable::Max) {
            // It may not be below sync_min, which is back by now.
            failed.retain(|tunable| *tunable != Tunable::Max || turn(tunable));
        }
        if !sync.is_there() {
            return RestoreResult::default();
        }
        let later = self.later(sync).filter(|_| failed.contains(&Tunable::Min));
        failed.retain(|tunable| *tunable != Tunable::Min || later.is_none());
        RestoreResult {
            failed: failed
                .into_iter()
                .map(|tunable| self.sentence(tunable, sync))
                .collect(),
            later,
        }
    }

    /// Start of a check that is to be restored when md has finished its present action; `None` when that is
    /// nothing, or a check, which would still move it.
    fn later(&self, sync: &Sync) -> Option<SavedTunables> {
        let setting = self.of(Tunable::Min)?;
        let action = sync.state().ok()?.action;
        let moves = matches!(
            action,
            SyncAction::Idle | SyncAction::Check | SyncAction::Repair
        );
        (!moves).then(|| SavedTunables {
            settings: vec![Setting {
                shows: sync.tunable(Tunable::Min),
                ..setting.clone()
            }],
            repairs: self.repairs,
        })
    }

    fn sentence(&self, tunable: Tunable, sync: &Sync) -> String {
        format!(
            "{} could not be put back: echo {} > {}",
            tunable.file(),
            self.write_of(tunable).unwrap_or_default(),
            sync.folder().join(tunable.file()).display()
        )
    }

    /// Ends the check that was begun here, if it goes on.
    fn end_check(&self, sync: &Sync) {
        let ours = if self.repairs {
            SyncAction::Repair
        } else {
            SyncAction::Check
        };
        let until = Instant::now() + TIMEOUT;
        let is_ours = || sync.state().is_ok_and(|state| state.action == ours);
        while is_ours() && Instant::now() < until {
            // An error means that it has ended meanwhile, which is seen next. Before its thread has begun, md
            // takes no notice.
            let _ = sync.write_sync_action(SyncAction::Idle);
            sleep(POLL);
        }
    }
}

/// True if something of a scrub holds md back: a number in `sync_max`, or a speed limit as it sets them.
pub(super) fn is_held(sync: &Sync) -> bool {
    is_window_set(sync)
        || [Tunable::SpeedMin, Tunable::SpeedMax]
            .into_iter()
            .any(|tunable| {
                sync.tunable(tunable)
                    .is_some_and(|shown| is_limit_of_scrub(&shown))
            })
}

fn is_limit_of_scrub(shown: &str) -> bool {
    SpeedLimit::parse(shown).is_some_and(|speed| speed.local && drive::is_limit(speed.kib))
}

/// True if `sync_max` is a number.
pub(super) fn is_window_set(sync: &Sync) -> bool {
    let shown = sync.tunable(Tunable::Max);
    matches!(
        shown.as_deref().and_then(SyncMax::parse),
        Some(SyncMax::At(_))
    )
}

/// True if a tunable is as a scrub has left it.
fn is_own(
    tunable: Tunable,
    setting: &Setting,
    sync: &Sync,
    by: RestoredBy,
    window_set: bool,
) -> bool {
    let shown = sync.tunable(tunable);
    if setting.shows.is_some() {
        return shown == setting.shows;
    }
    let shown = shown.unwrap_or_default();
    match (tunable, by) {
        (_, RestoredBy::Scrub { but_for, .. }) if but_for == Some(tunable) => false,
        // At its end md has reset `sync_max`, and `sync_min` cannot be written while it works.
        (
            Tunable::Max | Tunable::Min,
            RestoredBy::Scrub {
                window_set: ends, ..
            },
        ) => ends,
        (Tunable::Max | Tunable::Min, RestoredBy::Another) => window_set,
        (Tunable::SpeedMin | Tunable::SpeedMax, _) => is_limit_of_scrub(&shown),
        (Tunable::IoDepth, _) => {
            SpeedLimit::parse(&shown).is_some_and(|depth| depth.local && depth.kib == DEPTH)
        }
        (Tunable::StripeCache, _) => shown.trim().parse() == Ok(STRIPE_CACHE_SIZE),
        // They are only set with a note of what they show then.
        (Tunable::SuspendLo | Tunable::SuspendHi, _) => false,
    }
}

#[cfg(test)]
pub(super) mod tests;
