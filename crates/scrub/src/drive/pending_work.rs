//! Work that md does not begin before the check has ended.

use linux::md::competing::CompetingArray;
use linux::md::sync::Sync;
use record::sample::SyncAction;

/// Work that md waits to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PendingWork {
    /// A recovery, resync or reshape of another array that shares a disk with this one: md works on one of them at a
    /// time, and a check that has reached its `sync_max` counts as at work.
    Competing(CompetingArray),
    /// The replacement of a member of this array by a spare.
    Replacement,
}

impl PendingWork {
    /// Description, a sentence without its end.
    pub(crate) fn sentence(&self) -> String {
        match self {
            PendingWork::Competing(CompetingArray { name, action }) => format!(
                "md has a {} of /dev/{name} to do, which shares a disk with it and comes first, and is not throttled",
                action.name()
            ),
            PendingWork::Replacement => {
                "md has one of its members to replace by a spare, which comes first, and is not throttled"
                    .to_owned()
            }
        }
    }
}

/// Looks for what md waits to do until the check of an array has ended.
#[derive(Clone, Debug)]
pub(crate) struct PendingWorkDetector {
    sync: Sync,
    /// True if md has not replaced a member though it was idle, for example because the spare is too small.
    left: bool,
}

impl PendingWorkDetector {
    /// State before the check begins.
    pub(crate) fn before(sync: &Sync) -> PendingWorkDetector {
        PendingWorkDetector {
            left: sync.is_to_replace(),
            sync: sync.clone(),
        }
    }

    /// Work that md waits to do at this moment. The check of another array may wait.
    pub(crate) fn now(&self) -> Option<PendingWork> {
        let mut beside = self.sync.competing().into_iter();
        if let Some(one) = beside.find(|one| makes_whole(one.action)) {
            return Some(PendingWork::Competing(one));
        }
        (!self.left && self.sync.is_to_replace()).then_some(PendingWork::Replacement)
    }
}

/// True if md makes an array whole, or reshapes it, which nothing should delay.
pub(crate) fn makes_whole(action: SyncAction) -> bool {
    matches!(
        action,
        SyncAction::Recover | SyncAction::Resync | SyncAction::Reshape
    )
}
