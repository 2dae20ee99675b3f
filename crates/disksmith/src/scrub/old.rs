//! The knobs as they were before a scrub, and how they are put back.

use linux::md::sync::{Action, Knob, Sync, Until};
use serde::{Deserialize, Serialize};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// md has so long to end what it is told to end, or what it ends by itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(20);

/// What a knob was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// The file's name in the array's folder `md`.
    pub file: String,
    /// What must be written for it to be so again.
    pub write: String,
}

/// What all knobs that a scrub turns were, and what it let md do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Old {
    /// Each knob that there is.
    pub settings: Vec<Setting>,
    /// Whether md was told to write anew what differs.
    pub repairs: bool,
}

impl Old {
    /// Reads them.
    ///
    /// # Errors
    /// A sentence, when one without which nothing can be steered is not there, or is no longer as
    /// the kernel sets it at the start.
    pub(crate) fn read(sync: &Sync, repairs: bool) -> Result<Old, String> {
        let mut settings = Vec::new();
        for knob in Knob::ALL {
            let shown = sync.knob(knob);
            let Some(write) = shown.as_deref().and_then(|shown| knob.to_write(shown)) else {
                if knob == Knob::StripeCache {
                    continue;
                }
                return Err(format!(
                    "the kernel shows no usable {} of it, so that a check could not be paced; this \
                     needs Linux 2.6.30 or later and /sys",
                    knob.file()
                ));
            };
            settings.push(Setting {
                file: knob.file().to_owned(),
                write,
            });
        }
        Ok(Old { settings, repairs })
    }

    /// Why these cannot be what somebody wants them to be, if they were left by a scrub that was
    /// killed and of which nothing else is known.
    pub(crate) fn left_over(sync: &Sync) -> Option<String> {
        let folder = sync.folder().display();
        let max = sync.knob(Knob::Max).unwrap_or_default();
        matches!(Until::parse(&max), Some(Until::At(_))).then(|| {
            format!(
                "its sync_max is {max}, not 'max': something has stopped there and not put it back, \
                 such as a scrub that was killed and whose ledger is gone, and no recovery would get \
                 past it. Put it back first: echo idle > {folder}/sync_action; echo 0 > \
                 {folder}/sync_min; echo max > {folder}/sync_max; echo system > \
                 {folder}/sync_speed_min; echo system > {folder}/sync_speed_max"
            )
        })
    }

    fn write_of(&self, knob: Knob) -> Option<&str> {
        let is_own = |setting: &&Setting| setting.file == knob.file();
        let found = self.settings.iter().find(is_own);
        found.map(|setting| setting.write.as_str())
    }

    /// Puts all back, but for a knob that somebody else has turned since. A check that was begun
    /// here and goes on is ended first; anything else that md does is let go at once. What could not
    /// be put back, as a sentence each; none where the array is not there any more.
    pub(crate) fn put_back(&self, sync: &Sync, but_for: Option<Knob>) -> Vec<String> {
        // What holds back a recovery goes first.
        let mut failed: Vec<Knob> = Vec::new();
        let turn = |knob: Knob, failed: &mut Vec<Knob>| {
            let Some(write) = self.write_of(knob).filter(|_| but_for != Some(knob)) else {
                return;
            };
            if sync.turn(knob, write).is_err() {
                failed.push(knob);
            }
        };
        let ours = if self.repairs {
            Action::Repair
        } else {
            Action::Check
        };
        let until = Instant::now() + PATIENCE;
        let is_ours = || sync.look().is_ok_and(|look| look.action == ours);
        if is_ours() {
            // An error means that it has ended meanwhile, which is seen next.
            let _ = sync.act(Action::Idle);
            while is_ours() && Instant::now() < until {
                sleep(LOOK);
            }
        }
        for knob in [Knob::SpeedMax, Knob::SpeedMin, Knob::Max] {
            turn(knob, &mut failed);
        }
        // Where a check begins cannot be set while md works (EBUSY), and matters to a check only.
        turn(Knob::Min, &mut failed);
        turn(Knob::StripeCache, &mut failed);
        if failed.contains(&Knob::Max) {
            // It may not be below sync_min, which is back by now.
            failed.retain(|knob| *knob != Knob::Max);
            turn(Knob::Max, &mut failed);
        }
        let recovers = sync
            .look()
            .is_ok_and(|look| look.action != Action::Idle && look.action != ours);
        failed
            .into_iter()
            .filter(|knob| sync.is_there() && !(recovers && *knob == Knob::Min))
            .map(|knob| {
                format!(
                    "{} could not be put back: echo {} > {}",
                    knob.file(),
                    self.write_of(knob).unwrap_or_default(),
                    sync.folder().join(knob.file()).display()
                )
            })
            .collect()
    }
}
