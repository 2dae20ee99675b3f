//! Recognizes output of another tool that was imported before, by its content.

use record::{RunId, Summary};
use rusqlite::Transaction;

use crate::columns::run_id;
use crate::document::{StoredDocument, StoredRun};

/// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv): it only selects candidates for a full comparison.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Hash of everything that a tool reported, not of the file: surrounding text, another name and another encoding do not
/// make it another run.
pub(crate) fn hash(summary: &Summary) -> i64 {
    // A summary that cannot be written is refused when it is packed.
    fnv(&serde_json::to_vec(summary).unwrap_or_default()).cast_signed()
}

/// Records the hash of a run's report.
pub(crate) fn note(change: &Transaction<'_>, run: i64, summary: &Summary) -> rusqlite::Result<()> {
    let sql = "INSERT INTO reports (run, hash) VALUES (?1, ?2)";
    change.execute(sql, [run, hash(summary)]).map(drop)
}

/// The run that was already imported from the same report.
pub(crate) fn saved_run(
    change: &Transaction<'_>,
    summary: &Summary,
) -> rusqlite::Result<Option<RunId>> {
    let mut statement = change.prepare_cached(
        "SELECT id, form, size, body
         FROM reports JOIN runs ON number = reports.run JOIN documents USING (run)
         WHERE hash = ?1 ORDER BY number",
    )?;
    let mut rows = statement.query([hash(summary)])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        // A run that cannot be read is treated as a different one.
        if let Ok(StoredRun::Imported(run)) = StoredDocument::of_row(row, 1)?.unpack(&id)
            && run.summary == *summary
        {
            return Ok(Some(run_id(&id)));
        }
    }
    Ok(None)
}
