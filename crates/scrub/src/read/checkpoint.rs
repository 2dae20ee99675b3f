//! The checkpoint of the reading of one member or disk, and the conditions for continuing from it.

use jiff::Timestamp;
use ledger::LongWork;
use record::Ranges;
use serde::{Deserialize, Serialize};

use reader::{DiskAttachment, VolumeKey};

/// The reading of one member or disk. Ranges are in bytes of the disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The path by which the disk was last named.
    pub path: String,
    /// Key by which the ledger knows the disk itself.
    pub disk: String,
    /// Attachment of a disk that only its path identifies.
    pub attached: Option<DiskAttachment>,
    /// Ranges to be read: the array's data on a member, or the whole disk.
    pub whole: Ranges,
    /// Ranges that were read.
    pub done: Ranges,
    /// Ranges that could not be read.
    pub unreadable: Ranges,
    /// Time of the first start.
    pub began: Timestamp,
    /// Duration of all starts together, in seconds.
    pub ran_s: f64,
    /// Number of starts.
    pub starts: u32,
}

impl LongWork for Checkpoint {
    const KIND: &'static str = "scrub-read";
    const FORM: u32 = 1;
}

impl Checkpoint {
    /// Checkpoint at the beginning of reading `whole` of a disk with this key.
    pub(crate) fn fresh(path: String, key: &VolumeKey, whole: Ranges) -> Checkpoint {
        let attached = match key {
            VolumeKey::Path(_, attached) => attached.clone(),
            // A unique name is enough: the reading may continue after a reboot, whatever the disk held before.
            VolumeKey::Ebs(_) | VolumeKey::Unique(..) => None,
        };
        Checkpoint {
            path,
            disk: key.text().to_owned(),
            attached,
            whole,
            done: Ranges::new(),
            unreadable: Ranges::new(),
            began: Timestamp::now(),
            ran_s: 0.0,
            starts: 1,
        }
    }

    /// True if the ranges that were read before are valid for this disk. A member is identified by the array's id and
    /// its slot; a replaced disk is noticed if disks have unique names, and within one boot. A single disk without a
    /// unique name is identified only while it stays attached.
    pub(crate) fn continues_from(&self, before: &Checkpoint, is_member: bool) -> bool {
        if self.whole != before.whole {
            return false;
        }
        match (&self.attached, &before.attached) {
            (Some(now), Some(then)) if now.boot == then.boot => now.diskseq == then.diskseq,
            (Some(_), Some(_)) => is_member,
            (None, None) => self.disk == before.disk && (is_member || !self.disk.starts_with('/')),
            _ => false,
        }
    }

    /// Takes over the ranges that were read before.
    pub(crate) fn take_over(&mut self, before: &Checkpoint) {
        self.done = before.done.intersect(&self.whole);
        self.began = before.began;
        self.ran_s = before.ran_s;
        self.starts = before.starts.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(key: &VolumeKey) -> Checkpoint {
        Checkpoint::fresh("/dev/sdb".to_owned(), key, Ranges::from(0..1000))
    }

    #[test]
    fn only_the_same_disk_or_the_same_place_in_an_array_goes_on() {
        let path = |boot: &str, diskseq| {
            let boot = boot.to_owned();
            checkpoint(&VolumeKey::Path(
                "/dev/sdb".to_owned(),
                Some(DiskAttachment { boot, diskseq }),
            ))
        };
        let now = path("b", 3);
        for (before, member, disk) in [
            (path("b", 3), true, true),
            (path("b", 4), false, false),
            (path("a", 9), true, false),
            (
                checkpoint(&VolumeKey::Unique("naa.6".to_owned(), None)),
                false,
                false,
            ),
            (
                checkpoint(&VolumeKey::Path("/dev/sdb".to_owned(), None)),
                false,
                false,
            ),
        ] {
            assert_eq!(now.continues_from(&before, true), member, "{before:?}");
            assert_eq!(now.continues_from(&before, false), disk, "{before:?}");
        }
        let named =
            |name: &str| checkpoint(&VolumeKey::Unique(name.to_owned(), path("b", 3).attached));
        assert!(named("naa.6").continues_from(&named("naa.6"), false));
        assert!(!named("naa.6").continues_from(&named("naa.7"), true));
        let mut grown = path("b", 3);
        grown.whole = Ranges::from(0..2000);
        assert!(!grown.continues_from(&now, true));
    }
}
