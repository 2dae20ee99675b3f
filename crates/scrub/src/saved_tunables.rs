//! The tunables before a scrub, and their restoration.

use linux::md::sync::{Sectors, SpeedLimit, Sync, SyncMax, Tunable};
use record::sample::SyncAction;
use serde::{Deserialize, Serialize};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::drive;

/// Size of the stripe cache, in stripes, that a check needs to keep all members busy.
pub(crate) const STRIPE_CACHE_SIZE: u64 = 1024;
/// Number of requests that md issues at once beside a foreground: the minimum.
pub(crate) const DEPTH: u64 = 1;
/// Time limit for md to end its check.
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
    /// Text that the file shows as long as no other program has written to it; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<String>,
}

/// Former values of all tunables that a scrub changes, and the action that it begins.
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
    /// The scrub that has changed them. It restores the tunables that still have the values it sets, and the bounds
    /// of its check.
    Scrub {
        /// A tunable that another program has changed, and that is left.
        but_for: Option<Tunable>,
        /// True if md's check is the scrub's own, and is ended.
        ends: bool,
        /// True if the bounds of md's check are those that the scrub set; during direct comparison they are the former
        /// ones.
        window_set: bool,
    },
    /// Another process, after the scrub was killed. Later changes are not known, so only tunables are restored that
    /// still have the values a scrub sets; and a check counts as the scrub's only if `sync_max` is a number, which no
    /// other program leaves.
    Another,
}

/// Result of restoring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RestoreResult {
    /// Tunables that could not be restored, as one sentence each.
    pub failed: Vec<String>,
    /// Tunables that cannot be restored before md has finished its current action.
    pub later: Option<SavedTunables>,
}

impl RestoreResult {
    /// True if all tunables are restored.
    pub(crate) fn is_all(&self) -> bool {
        self.failed.is_empty() && self.later.is_none()
    }

    /// Tunables that are not restored, as clauses.
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
    /// Reads the current tunables.
    ///
    /// # Errors
    /// A sentence, when a tunable that is needed to pace a check is missing, or when the values look like those of a
    /// killed scrub.
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

    /// Sign that these values were left by a killed scrub that is not in this ledger, as a clause; `None` where there
    /// is none.
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

    /// Note on a check that another program has left in the middle: any other check begins there, and does not cover
    /// the positions before.
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

    /// Former `sync_min`, at which checks begin.
    pub(crate) fn min(&self) -> Sectors {
        let write = self.write_of(Tunable::Min);
        Sectors(write.and_then(|write| write.parse().ok()).unwrap_or(0))
    }

    fn write_of(&self, tunable: Tunable) -> Option<&str> {
        self.of(tunable).map(|setting| setting.write.as_str())
    }

    /// Restores all tunables that the scrub changed. Its check is ended first; other work of md continues at full
    /// speed at once. For an array that no longer exists there is nothing to restore.
    pub(crate) fn put_back(&self, sync: &Sync, by: RestoredBy) -> RestoreResult {
        let window_set = self.of(Tunable::Max).is_some() && is_window_set(sync);
        let ends = match by {
            RestoredBy::Scrub { ends, .. } => ends,
            RestoredBy::Another => window_set,
        };
        if ends {
            self.end_check(sync);
        }
        // Tunables that delay a recovery are restored first. `sync_min` cannot be written while md works (EBUSY), and
        // affects only checks.
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
            // `sync_max` must not be below `sync_min`, which is restored by now.
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

    /// `sync_min`, to be restored when md has finished its current action; `None` if md is idle, or checks, which would
    /// still change it.
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

    /// Ends the scrub's check, if it still runs.
    fn end_check(&self, sync: &Sync) {
        let ours = if self.repairs {
            SyncAction::Repair
        } else {
            SyncAction::Check
        };
        let until = Instant::now() + TIMEOUT;
        let is_ours = || sync.state().is_ok_and(|state| state.action == ours);
        while is_ours() && Instant::now() < until {
            // An error means that it has ended meanwhile, which the next poll shows. md ignores the request until its
            // thread has begun.
            let _ = sync.write_sync_action(SyncAction::Idle);
            sleep(POLL);
        }
    }
}

/// True if a scrub's tunables slow down md: `sync_max` is a number, or a speed limit has a value that a scrub sets.
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

/// True if a tunable has the value that the scrub set.
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
        // These are always stored with the text that they show.
        (Tunable::SuspendLo | Tunable::SuspendHi, _) => false,
    }
}

#[cfg(test)]
pub(super) mod tests;
