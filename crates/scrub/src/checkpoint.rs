//! Checkpoint of a scrub in the ledger, by the array's id: progress, results, and the former tunables while
//! they are changed.

use domain::raid::MdLevel;
use jiff::{SignedDuration, Timestamp};
use ledger::LongWork;
use linux::md::sync::Sectors;
use record::{Bytes, Ranges};
use serde::{Deserialize, Serialize};

use super::health::Errors;
use super::repair::{Intent, RepairTotals};
use super::saved_tunables::SavedTunables;

/// Age after which a checkpoint is out of date.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(60 * 24);

/// The scrub of one array. Positions are sectors of 512 bytes, as md counts them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// Path of the array's device node when it was last named.
    pub path: String,
    /// RAID level of the array.
    pub level: MdLevel,
    /// Layout of the data over the members, as the kernel names it; empty where it was not stored.
    #[serde(default)]
    pub shape: String,
    /// Identities of the members, in the order of their slots; empty for a member without a unique name.
    #[serde(default)]
    pub members: Vec<String>,
    /// Time of the last progress.
    #[serde(default)]
    pub moved: Option<Timestamp>,
    /// True if md repairs mismatches.
    pub repairs: bool,
    /// Position up to which the array is checked.
    pub done: u64,
    /// Position at which the check ends; 0 until it is known.
    pub of: u64,
    /// Number of sectors that differed, up to `done`.
    pub mismatches: u64,
    /// Ranges of positions that contain the mismatches, and are wider than these. Empty for a repair by md.
    #[serde(default)]
    pub places: Ranges,
    /// A write to members, from the other members, that was in progress.
    #[serde(default)]
    pub rewriting: Option<Intent>,
    /// Totals of the repair from the other members; `None` where none was requested.
    #[serde(default)]
    pub repaired: Option<RepairTotals>,
    /// Read errors of the members since the scrub began.
    #[serde(default)]
    pub errors: Errors,
    /// Time of the first start.
    pub began: Timestamp,
    /// Duration of all starts together, in seconds.
    pub ran_s: f64,
    /// Number of starts.
    pub starts: u32,
    /// The tunables before the scrub changed them; `None` while they are unchanged.
    pub old: Option<SavedTunables>,
    /// Id of the boot in which the tunables were changed; a reboot resets them.
    pub boot: String,
}

impl LongWork for Checkpoint {
    const KIND: &'static str = "scrub";
    const FORM: u32 = 1;
}

impl Checkpoint {
    /// Share of the array that is checked, from 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        match self.of {
            0 => 0.0,
            of => (self.done as f64 / of as f64).min(1.0),
        }
    }

    /// Mean rate so far, in bytes of md's positions a second; `None` before any progress.
    pub(crate) fn rate(&self) -> Option<f64> {
        let rate = Sectors(self.done).bytes().0 as f64 / self.ran_s;
        (self.done > 0 && rate.is_finite()).then_some(rate)
    }

    /// Number of sectors that still differ, without those that a repair has rewritten.
    pub(crate) fn left(&self) -> u64 {
        match self.repaired {
            _ if self.repairs => 0,
            Some(sum) => Sectors::of(Bytes(sum.left)).0,
            None => self.mismatches,
        }
    }

    /// Time at which the check ended; `None` while it is not done. `finished` is the end of the job, which a later
    /// repair may have reopened.
    pub(crate) fn checked(&self, finished: Option<Timestamp>) -> Option<Timestamp> {
        let is_done = self.of > 0 && self.done >= self.of;
        finished.or(self.moved.filter(|_| is_done))
    }

    /// The ranges that contain mismatches, in bytes of md's positions.
    pub(crate) fn places_in_bytes(&self) -> Ranges {
        let bytes = |sectors: u64| Sectors(sectors).bytes().0;
        let places = self.places.iter();
        places
            .map(|range| bytes(range.start)..bytes(range.end))
            .collect()
    }

    /// Reason why the scrub `fresh`, begun at `now`, does not continue from this checkpoint, as the end of a sentence;
    /// `None` where it continues.
    pub(crate) fn is_past(&self, fresh: &Checkpoint, now: Timestamp) -> Option<&'static str> {
        // At a level with parity the end position is the same when members are added.
        let is_same = self.level == fresh.level && self.of == fresh.of && self.shape == fresh.shape;
        let is_old = |moved| now.duration_since(moved) > MAX_AGE;
        if self.repairs != fresh.repairs {
            Some("as another kind of work")
        } else if !is_same || self.shape.is_empty() {
            Some("while the array had another shape")
        } else if self.members != fresh.members {
            Some("with other members")
        } else if self.moved.is_none_or(is_old) {
            Some("and left more than 60 days ago")
        } else if self.done == 0 || self.done >= self.of {
            Some("and has no position to resume from")
        } else {
            None
        }
    }
}

#[cfg(test)]
pub(super) fn example() -> Checkpoint {
    Checkpoint {
        path: "/dev/md0".to_owned(),
        level: domain::raid::Level::Ten.into(),
        shape: "raid10 over 4, chunk 65536, layout 258".to_owned(),
        members: vec!["a".to_owned(), "b".to_owned()],
        moved: Some(Timestamp::UNIX_EPOCH),
        repairs: false,
        done: 1024,
        of: 4096,
        mismatches: 3,
        places: Ranges::new(),
        rewriting: None,
        repaired: None,
        errors: Errors::default(),
        began: Timestamp::UNIX_EPOCH,
        ran_s: 2.0,
        starts: 1,
        old: None,
        boot: "b".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use domain::raid::Level;

    use super::*;

    #[test]
    fn only_the_same_work_goes_on() {
        let days = |days: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * days);
        let past = |change: fn(&mut Checkpoint)| {
            let mut fresh = example();
            change(&mut fresh);
            example().is_past(&fresh, days(59))
        };
        assert_eq!(past(|_| ()), None);
        for (change, why) in [
            (
                (|fresh| fresh.repairs = true) as fn(&mut Checkpoint),
                "another kind",
            ),
            (|fresh| fresh.of = 8192, "another shape"),
            (|fresh| fresh.level = Level::Six.into(), "another shape"),
            // `mdadm --grow --raid-devices=5` at a level with parity: the end position is the same.
            (
                |fresh| fresh.shape = "raid10 over 5, chunk 65536, layout 258".to_owned(),
                "another shape",
            ),
            (|fresh| fresh.members[1] = "c".to_owned(), "other members"),
        ] {
            let message = past(change).unwrap_or_default();
            assert!(message.contains(why), "{why}: {message}");
        }
        assert!(example().is_past(&example(), days(61)).is_some());
        // As stored by an older version.
        let unknown = Checkpoint {
            shape: String::new(),
            ..example()
        };
        assert!(unknown.is_past(&unknown, days(0)).is_some());
        let fresh = Checkpoint {
            done: 0,
            ..example()
        };
        assert!(fresh.is_past(&fresh, days(0)).is_some());
        assert_eq!((fresh.rate(), fresh.share()), (None, 0.0));
    }
}
