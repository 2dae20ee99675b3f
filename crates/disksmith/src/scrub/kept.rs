//! What the ledger holds of the scrub of an array, by the array's id: how far it is, what it found,
//! and the knobs as they were, while they are turned.

use jiff::Timestamp;
use ledger::LongWork;
use linux::md::sync::Sectors;
use record::Ranges;
use serde::{Deserialize, Serialize};

use super::health::Errors;
use super::old::Old;

/// The scrub of one array. Positions are sectors of 512 bytes, as md counts them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The array's node when it was named last.
    pub path: String,
    /// Its level.
    pub level: String,
    /// Whether what differs is written anew.
    pub repairs: bool,
    /// Up to where it is done.
    pub done: u64,
    /// Where its end is; 0 until that is known.
    pub of: u64,
    /// Sectors that differed, up to there.
    pub mismatches: u64,
    /// Where they are: ranges of positions, wider than what differs. None of a repair.
    #[serde(default)]
    pub places: Ranges,
    /// What the members could not read since it was begun.
    #[serde(default)]
    pub errors: Errors,
    /// When it was first begun.
    pub began: Timestamp,
    /// How long it ran, over all starts, in seconds.
    pub ran_s: f64,
    /// How often it was started.
    pub starts: u32,
    /// The knobs as they were; `None` while they are.
    pub old: Option<Old>,
    /// The boot in which they were turned: the next one has them as they were.
    pub boot: String,
}

impl LongWork for Kept {
    const KIND: &'static str = "scrub";
    const FORM: u32 = 1;
}

impl Kept {
    /// The share that is done.
    pub(crate) fn share(&self) -> f64 {
        match self.of {
            0 => 0.0,
            of => (self.done as f64 / of as f64).min(1.0),
        }
    }

    /// Bytes a second so far, as md counts positions; `None` before anything was done.
    pub(crate) fn rate(&self) -> Option<f64> {
        let rate = Sectors(self.done).bytes().0 as f64 / self.ran_s;
        (self.done > 0 && rate.is_finite()).then_some(rate)
    }

    /// The ranges in which mismatches are, in bytes of the check's positions.
    pub(crate) fn places_in_bytes(&self) -> Ranges {
        let bytes = |sectors: u64| Sectors(sectors).bytes().0;
        let places = self.places.iter();
        places
            .map(|range| bytes(range.start)..bytes(range.end))
            .collect()
    }

    /// Whether a scrub of this array, now of this level and this end, goes on from here.
    pub(crate) fn goes_on(&self, level: &str, of: u64, repairs: bool) -> bool {
        self.level == level
            && self.repairs == repairs
            && self.done > 0
            && self.of == of
            && self.done < of
    }
}

#[cfg(test)]
pub(super) fn example() -> Kept {
    Kept {
        path: "/dev/md0".to_owned(),
        level: "raid10".to_owned(),
        repairs: false,
        done: 1024,
        of: 4096,
        mismatches: 3,
        places: Ranges::new(),
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
    use super::*;

    #[test]
    fn only_the_same_work_goes_on() {
        let kept = example();
        assert!(kept.goes_on("raid10", 4096, false));
        assert!(!kept.goes_on("raid10", 4096, true), "a repair is another");
        assert!(!kept.goes_on("raid10", 8192, false), "it was grown");
        assert!(!kept.goes_on("raid6", 4096, false));
        let fresh = Kept { done: 0, ..kept };
        assert!(!fresh.goes_on("raid10", 4096, false));
        assert_eq!((fresh.rate(), fresh.share()), (None, 0.0));
    }
}
