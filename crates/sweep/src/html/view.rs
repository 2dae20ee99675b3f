//! Data of the page.

use record::Run;

use crate::{SweepDecision, SweepRecord};

/// Data of the page.
#[derive(Clone, Copy)]
pub(super) struct PageView<'a> {
    pub(super) record: &'a SweepRecord,
    pub(super) decision: &'a SweepDecision,
    /// The runs of the winner and its ties, each with its label.
    pub(super) finalists: &'a [(String, Run)],
}
