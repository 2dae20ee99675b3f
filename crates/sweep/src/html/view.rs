//! Data of the page.

use record::Run;

use crate::{Decided, SweepRecord};

/// Data of the page.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) record: &'a SweepRecord,
    pub(super) decided: &'a Decided,
    /// The winner's run and those of its ties, each with what it is called.
    pub(super) finalists: &'a [(String, Run)],
}
