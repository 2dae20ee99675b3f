//! What md does not begin before the check has ended.

use linux::md::beside::Beside;
use linux::md::sync::{Action, Sync};

/// What md waits to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// To make an array whole that shares a disk with this one: of such md works on one at a time, and a
    /// check that stands at its fence counts as at work.
    Beside(Beside),
}

impl Waits {
    /// What md waits to do until the check of this array has ended. The check of another array may wait.
    pub(in crate::scrub) fn of(sync: &Sync) -> Option<Waits> {
        let mut beside = sync.beside().into_iter();
        beside
            .find(|one| makes_whole(one.action))
            .map(Waits::Beside)
    }

    /// What it is, in a sentence without its end.
    pub(in crate::scrub) fn sentence(&self) -> String {
        match self {
            Waits::Beside(Beside { name, action }) => format!(
                "md has a {} of /dev/{name} to do, which shares a disk with it and comes first; nothing \
                 holds it back",
                action.word()
            ),
        }
    }
}

/// Whether md makes an array whole, or moves it, which nothing should hold back.
pub(in crate::scrub) fn makes_whole(action: Action) -> bool {
    matches!(action, Action::Recover | Action::Resync | Action::Reshape)
}
