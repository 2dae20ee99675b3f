//! Data of a repair, for the ledger and the output.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::locate::BLOCK;

/// Method by which mismatches are repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RepairMethod {
    /// Wrong blocks of one member are rewritten from the other members.
    Others,
    /// md repairs, which does not know which member is wrong.
    Md,
    /// No repair, for this reason: the wrong member could be identified, and md's repair would ignore that.
    Not(String),
}

/// The outcome for a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlockResult {
    /// The block was rewritten, read again, and agrees with the others.
    Restored,
    /// The block agreed when it was read again, and was not written.
    Agrees,
    /// No single member is wrong there, so that nothing was written.
    Ambiguous,
    /// With two copies or one parity the wrong member cannot be identified, so nothing was written.
    Untold,
    /// Nothing was written, for this reason.
    Refused(String),
    /// The block was written, and is not known to agree with the others.
    Failed(String),
}

/// A rewrite in progress, as stored in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// The positions of the check.
    pub positions: Range<u64>,
    /// The slots of the members that are written to.
    pub slots: Vec<u32>,
}

/// Totals of a repair, as stored in the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RepairTotals {
    /// Number of bytes of the check's positions that were wrong on a member, and agree now.
    pub restored: u64,
    /// Number of bytes of the check's positions that still differ.
    pub left: u64,
}

/// Result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repaired {
    /// Result of each block, by its position.
    pub results: BTreeMap<u64, BlockResult>,
    /// Totals over all blocks.
    pub sum: RepairTotals,
    /// True if it was interrupted before its end.
    pub interrupted: bool,
    /// A problem that needs attention, as a clause.
    pub trouble: Option<String>,
}

impl Repaired {
    /// Result for a range of positions: the worst of its blocks. `None` where nothing was tried.
    pub(crate) fn result_at(&self, positions: &Range<u64>) -> Option<&BlockResult> {
        let results = blocks(positions).map(|block| self.results.get(&block));
        results
            .max_by_key(|result| result.map_or(u8::MAX, severity))
            .flatten()
    }
}

fn severity(result: &BlockResult) -> u8 {
    match result {
        BlockResult::Agrees => 0,
        BlockResult::Restored => 1,
        BlockResult::Untold => 2,
        BlockResult::Ambiguous => 3,
        BlockResult::Refused(_) => 4,
        BlockResult::Failed(_) => 5,
    }
}

/// Positions of the blocks that a range touches.
pub(crate) fn blocks(positions: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
    let first = positions.start / BLOCK * BLOCK;
    (first..positions.end).step_by(BLOCK as usize)
}

/// Consequence of a kill in the middle of a rewrite, as a sentence.
pub(crate) fn cut_off(intent: &Intent) -> String {
    let Range { start, end } = intent.positions;
    let slots: Vec<String> = intent.slots.iter().map(u32::to_string).collect();
    format!(
        "A repair was ended while it wrote to the member in slot {}, at positions {start} to {end} of the \
         check: each sector there is as it was, or as on the other members. 'scrub --repair' goes on.",
        slots.join(" and ")
    )
}
