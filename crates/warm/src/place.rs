//! Where the warming of a volume stands: what the ledger keeps of it.

use std::path::Path;

use jiff::Timestamp;
use ledger::LongWork;
use linux::Root;
use linux::block::{self, DevNum, Devices};
use record::{Bytes, Ranges};
use serde::{Deserialize, Serialize};

use reader::Attached;

/// How a start of a warming ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Before its end.
    Midway,
    /// As it was asked to, which left something out.
    AsAsked,
    /// With the whole volume.
    Whole,
}

/// The warming of one volume, and how far it is. Ranges are bytes of the volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The path by which the volume was named last. After a reboot it may have another.
    pub path: String,
    /// The size that the volume had.
    pub size: Bytes,
    /// What is fetched at once.
    pub block: Bytes,
    /// What was read.
    pub done: Ranges,
    /// What could not be read.
    pub unreadable: Ranges,
    /// Whether the whole volume was to be read, and not only what is used, named or held.
    pub whole: bool,
    /// The attachment, of a volume whose name is not enough to know it by.
    #[serde(default)]
    pub attached: Option<Attached>,
    /// Whether the last start ended as it was asked to: not by a signal, a kill or trouble.
    #[serde(default)]
    pub ended: bool,
    /// When it was first begun.
    pub began: Timestamp,
    /// How long it was worked on, over all starts, in seconds.
    pub ran_s: f64,
    /// How often it was started.
    pub starts: u32,
}

impl LongWork for Kept {
    const KIND: &'static str = "warm";
    const FORM: u32 = 1;
}

/// Keeps how a warming stands.
pub(crate) type Keeper = job::keeper::Keeper<Kept>;

/// The disks that a ledger of this path lies on: its commits are writes there that are no stranger's.
/// Empty where that is not known.
pub(crate) fn below_ledger(root: &Root, devices: &Devices, path: &Path) -> Vec<DevNum> {
    let Some(folder) = path.ancestors().skip(1).find(|folder| folder.exists()) else {
        return Vec::new();
    };
    let Ok(place) = block::place_of(root, devices, folder) else {
        return Vec::new();
    };
    let of = |number: DevNum| {
        let below = devices.below(number).into_iter().map(|below| below.number);
        std::iter::once(number).chain(below).collect::<Vec<_>>()
    };
    place.devices.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use ledger::{Ledger, Owner, OwnerLiveness};

    use super::*;

    fn state(done: std::ops::Range<u64>) -> Kept {
        Kept {
            path: "/dev/vda".to_owned(),
            size: Bytes(1000),
            block: Bytes(100),
            done: Ranges::from(done),
            unreadable: Ranges::new(),
            whole: true,
            attached: None,
            ended: false,
            began: Timestamp::UNIX_EPOCH,
            ran_s: 1.5,
            starts: 1,
        }
    }

    fn owner() -> Owner {
        Owner {
            host: "db".to_owned(),
            machine: String::new(),
            boot: "b".to_owned(),
            namespace: String::new(),
            pid: 7,
            started: 1,
        }
    }

    #[test]
    fn the_last_state_is_there_when_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let mut ledger = Ledger::open(path.clone()).unwrap();
        let claim = ledger.begin_work("vol1", &owner(), &state(0..0), |_| OwnerLiveness::Dead);
        let keeper = Keeper::start(ledger, claim.unwrap()).unwrap();
        // Whether each is taken depends on the disk; the first is.
        assert!(keeper.keep(&state(0..100)));
        for end in 2..5 {
            keeper.keep(&state(0..100 * end));
        }
        while keeper.is_writing() {
            std::thread::yield_now();
        }
        keeper.end(&state(0..900), false).unwrap();
        let ledger = Ledger::open(path).unwrap();
        let work = ledger.work::<Kept>("vol1").unwrap().unwrap();
        assert_eq!(work.document, state(0..900));
        assert_eq!(work.summary.finished, None);
    }

    #[test]
    fn work_that_was_taken_away_is_an_error_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let mut ledger = Ledger::open(path.clone()).unwrap();
        let claim = ledger.begin_work("vol1", &owner(), &state(0..0), |_| OwnerLiveness::Dead);
        let keeper = Keeper::start(ledger, claim.unwrap()).unwrap();
        let mut other = Ledger::open(path).unwrap();
        other
            .remove_work(Kept::KIND, "vol1", |_| OwnerLiveness::Dead)
            .unwrap();
        let error = keeper.end(&state(0..900), true).unwrap_err();
        assert!(error.to_string().contains("no longer"), "{error}");
    }
}
