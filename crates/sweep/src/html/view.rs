//! Data of the page.

use record::Run;

use crate::{Decided, SweepRecord};

/// Data of the page.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) record: &'a SweepRecord,
    pub(super) decided: &'a Decided,
    /// The runs of the winner and its ties, each with its label.
    pub(super) finalists: &'a [(String, Run)],
}
