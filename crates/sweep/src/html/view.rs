//! Data of the page.

use record::Run;

use crate::{Decision, SweepRecord};

/// Data of the page.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) record: &'a SweepRecord,
    pub(super) decision: &'a Decision,
    /// The runs of the winner and its ties, each with its label.
    pub(super) finalists: &'a [(String, Run)],
}
