//! Blocks of samples as rows of the ledger.

use record::sample::RecordedInterval;
use rusqlite::{Row, Transaction, params};

use super::packed::PackedSamples;
use super::unpack;
use crate::columns::sortable;
use crate::{Error, Ledger, Result};

/// A row of the ledger with a packed block of samples.
pub(super) struct StoredBlock {
    pub(super) number: i64,
    pub(super) recording: i64,
    pub(super) step: u32,
    /// End of its first sample, in nanoseconds since the recording's first reading.
    pub(super) elapsed: i64,
    /// Start of its first sample.
    pub(super) began: String,
    pub(super) body: Vec<u8>,
}

impl StoredBlock {
    /// The columns that [`StoredBlock::of`] reads, in order.
    const COLUMNS: &str = "number, recording, step, elapsed, began, body";

    fn of(row: &Row<'_>) -> rusqlite::Result<StoredBlock> {
        Ok(StoredBlock {
            number: row.get(0)?,
            recording: row.get(1)?,
            step: row.get(2)?,
            elapsed: row.get(3)?,
            began: row.get(4)?,
            body: row.get(5)?,
        })
    }
}

impl Ledger {
    /// Replaces blocks that were read before by blocks of samples. If another process has replaced any of them since,
    /// nothing changes: the same samples would otherwise be stored twice.
    pub(super) fn replace(&self, blocks: &[StoredBlock], samples: &[PackedSamples]) -> Result<()> {
        self.demand_writable()?;
        let replaced = || {
            let change = self.change()?;
            for block in blocks {
                let deleted = change.execute(
                    "DELETE FROM blocks
                     WHERE number = ?1 AND recording = ?2 AND step = ?3 AND began = ?4",
                    params![block.number, block.recording, block.step, block.began],
                )?;
                if deleted == 0 {
                    return change.rollback();
                }
            }
            if let Some(block) = blocks.first() {
                insert(&change, block.recording, samples)?;
            }
            change.commit()
        };
        replaced().map_err(|error| self.explain(error))
    }

    /// The samples of a block.
    pub(super) fn unpacked(&self, block: &StoredBlock) -> Result<Vec<RecordedInterval>> {
        unpack(block.step, &block.body).map_err(|detail| Error::UnreadableRecording {
            path: self.path.clone(),
            number: block.recording,
            began: block.began.clone(),
            detail,
        })
    }

    /// Blocks of a recording and a step in order; those that began within the time, if one is given.
    pub(super) fn bodies(
        &self,
        recording: i64,
        step: u32,
        within: Option<(&str, &str)>,
    ) -> Result<Vec<StoredBlock>> {
        let (from, to) = within.unzip();
        let read = || {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {} FROM blocks
                 WHERE recording = ?1 AND step = ?2
                   AND (?3 IS NULL OR began >= ?3) AND (?4 IS NULL OR began < ?4)
                 ORDER BY elapsed, number",
                StoredBlock::COLUMNS
            ))?;
            let rows = statement.query_map(params![recording, step, from, to], StoredBlock::of)?;
            rows.collect::<rusqlite::Result<Vec<StoredBlock>>>()
        };
        read().map_err(|error| self.explain(error))
    }

    /// The last block of a step before another block of the same recording, if it ends after this time.
    pub(super) fn last_before(
        &self,
        block: &StoredBlock,
        step: u32,
        time: &str,
    ) -> Result<Option<StoredBlock>> {
        let read = || {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {} FROM blocks
                 WHERE recording = ?1 AND step = ?2 AND elapsed < ?3 AND ended > ?4
                 ORDER BY elapsed DESC, number DESC LIMIT 1",
                StoredBlock::COLUMNS
            ))?;
            let asked = params![block.recording, step, block.elapsed, time];
            let mut rows = statement.query_map(asked, StoredBlock::of)?;
            rows.next().transpose()
        };
        read().map_err(|error| self.explain(error))
    }

    /// The block with this number, if it still exists and the number was not reused.
    pub(super) fn body(
        &self,
        number: i64,
        recording: i64,
        step: u32,
        began: &str,
    ) -> Result<Option<StoredBlock>> {
        let read = || {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {} FROM blocks
                 WHERE number = ?1 AND recording = ?2 AND step = ?3 AND began = ?4",
                StoredBlock::COLUMNS
            ))?;
            let mut rows =
                statement.query_map(params![number, recording, step, began], StoredBlock::of)?;
            rows.next().transpose()
        };
        read().map_err(|error| self.explain(error))
    }

    /// Makes a change in one transaction.
    pub(super) fn changed<T>(
        &self,
        make: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.demand_writable()?;
        let changed = || {
            let change = self.change()?;
            let made = make(&change)?;
            change.commit()?;
            Ok(made)
        };
        changed().map_err(|error| self.explain(error))
    }
}

/// Adds blocks to a recording.
pub(super) fn insert(
    change: &Transaction<'_>,
    recording: i64,
    samples: &[PackedSamples],
) -> rusqlite::Result<()> {
    for packed in samples {
        change.execute(
            "INSERT INTO blocks (recording, step, elapsed, began, ended, samples, rows, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                recording,
                packed.step,
                i64::try_from(packed.elapsed.0).unwrap_or(i64::MAX),
                sortable(packed.began),
                sortable(packed.ended),
                packed.samples as i64,
                packed.rows as i64,
                packed.body,
            ],
        )?;
    }
    Ok(())
}
