//! Work that md does not begin before the check has ended.

use linux::md::competing::CompetingArray;
use linux::md::sync::Sync;
use record::sample::SyncAction;

/// Work that md waits to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PendingWork {
    /// A recovery, resync or reshape of another array that shares a disk with this one: md works on one of these
    /// arrays at a time, and a check that waits at its `sync_max` counts as working.
    Competing(CompetingArray),
    /// The replacement of a member of this array by a spare.
    Replacement,
}

impl PendingWork {
    /// Description, as a clause.
    pub(crate) fn sentence(&self) -> String {
        match self {
            PendingWork::Competing(CompetingArray { name, action }) => format!(
                "md has to do a {} of /dev/{name}, which shares a disk with it, has priority, and is not throttled",
                action.name()
            ),
            PendingWork::Replacement => {
                "md has to replace one of its members by a spare, which has priority, and is not throttled"
                    .to_owned()
            }
        }
    }
}

/// Detector of work that md waits to do until the check of an array has ended.
#[derive(Clone, Debug)]
pub(crate) struct PendingWorkDetector {
    sync: Sync,
    /// True if md had not replaced a member before the check although it was idle, for example because the spare is too
    /// small.
    left: bool,
}

impl PendingWorkDetector {
    /// Detector for an array whose check has not begun yet.
    pub(crate) fn before(sync: &Sync) -> PendingWorkDetector {
        PendingWorkDetector {
            left: sync.is_to_replace(),
            sync: sync.clone(),
        }
    }

    /// Work that md waits to do now. A check of another array does not count: it may wait.
    pub(crate) fn now(&self) -> Option<PendingWork> {
        let mut beside = self.sync.competing().into_iter();
        if let Some(one) = beside.find(|one| makes_whole(one.action)) {
            return Some(PendingWork::Competing(one));
        }
        (!self.left && self.sync.is_to_replace()).then_some(PendingWork::Replacement)
    }
}

/// True if md recovers, resyncs or reshapes an array, which nothing should delay.
pub(crate) fn makes_whole(action: SyncAction) -> bool {
    matches!(
        action,
        SyncAction::Recover | SyncAction::Resync | SyncAction::Reshape
    )
}
