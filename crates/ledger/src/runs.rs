//! Runs: save, list, load, remove.

use jiff::Timestamp;
use record::{Finding, ImportedRun, Origin, Run, RunId, Summary, Verdict};
use rusqlite::{
    ErrorCode, OptionalExtension as _, Row, Transaction, TransactionBehavior, named_params, params,
};

use crate::columns::{json, json_at, run_id, sortable, word_at};
use crate::document::{StoredDocument, StoredRun};
use crate::error::is_misread;
use crate::{Error, Ledger, Result, report};

/// Filter of a list of runs. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Host of the runs.
    pub host: Option<String>,
    /// Target of the runs: the path as it was given to `bench`, or the block device, as `nvme1n1` or `/dev/nvme1n1`.
    pub target: Option<String>,
    /// Suite of the runs.
    pub suite: Option<String>,
    /// Earliest start of the runs.
    pub since: Option<Timestamp>,
    /// Verdict of the runs.
    pub verdict: Option<Verdict>,
    /// Maximum number of runs, the newest.
    pub limit: Option<u32>,
}

/// A run, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Name of the run.
    pub id: RunId,
    /// Time at which the run started.
    pub started: Timestamp,
    /// The host that it ran on.
    pub host: String,
    /// The target's path, as it was given.
    pub target: String,
    /// The block device below the target.
    pub device: Option<String>,
    /// The suite's name.
    pub suite: String,
    /// The names of the phases that ran, in order.
    pub phases: Vec<String>,
    /// Verdict of the findings in the stored conclusion.
    pub verdict: Verdict,
    /// Source of its figures.
    pub origin: Origin,
    /// True if a signal ended it early.
    pub interrupted: bool,
}

/// Columns of `runs` for a run that is saved.
struct RunColumns<'a> {
    id: &'a RunId,
    started: Timestamp,
    host: &'a str,
    target: &'a str,
    device: Option<&'a str>,
    suite: &'a str,
    phases: Vec<&'a str>,
    tool: Option<&'a String>,
    interrupted: bool,
    /// Report of another tool, if the run was imported.
    reported: Option<&'a Summary>,
}

/// Conclusion of a run: verdict and findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunConclusion {
    /// Verdict of the findings together.
    pub verdict: Verdict,
    /// The reasons to doubt or to act.
    pub findings: Vec<Finding>,
    /// Version of the program that drew the conclusion.
    pub disksmith: String,
}

/// Query for the columns that [`summary`] reads, shared by lists and searches.
const LIST: &str = "
    SELECT id, started, host, target, device, suite, phases, verdict, tool, interrupted
    FROM runs JOIN conclusions ON run = number
    WHERE (:host IS NULL OR host = :host)
      AND (:target IS NULL OR target = :target OR device = :target OR '/dev/' || device = :target)
      AND (:suite IS NULL OR suite = :suite)
      AND (:since IS NULL OR started >= :since)
      AND (:verdict IS NULL OR verdict = :verdict)
    ORDER BY started DESC, number DESC
    LIMIT :limit";

impl Ledger {
    /// Saves a run, with the conclusion of this version of the program.
    ///
    /// # Errors
    /// When the ledger cannot be written, or already has a run with this id.
    pub fn save(&mut self, run: &Run, verdict: Verdict, findings: &[Finding]) -> Result<()> {
        self.demand_writable()?;
        // Compressed before the lock is taken, so that other processes need not wait.
        let document = StoredDocument::pack(run)?;
        let phases: Vec<&str> = run.phases.iter().map(|phase| phase.name.as_str()).collect();
        let listed = RunColumns {
            id: &run.id,
            started: run.started,
            host: &run.machine.hostname,
            target: &run.target.path,
            device: run.target.device.as_deref(),
            suite: &run.suite,
            phases,
            tool: match &run.origin {
                Origin::Measured => None,
                Origin::Imported { tool } => Some(tool),
            },
            interrupted: run.interrupted,
            reported: None,
        };
        self.keep(&listed, &document, verdict, findings).map(drop)
    }

    /// Saves a run that was imported from another tool's output. An unknown host or target is listed as empty. The same
    /// report is saved once: returns the id of the run that already has it, or `None` if this run was saved.
    ///
    /// # Errors
    /// As [`save`](Ledger::save).
    pub fn save_imported(
        &mut self,
        run: &ImportedRun,
        verdict: Verdict,
        findings: &[Finding],
    ) -> Result<Option<RunId>> {
        self.demand_writable()?;
        let document = StoredDocument::pack_imported(run)?;
        let summary = &run.summary;
        let listed = RunColumns {
            id: &run.id,
            started: run.started(),
            host: summary.host.as_deref().unwrap_or_default(),
            target: summary.target.as_deref().unwrap_or_default(),
            device: None,
            suite: run.suite(),
            phases: summary
                .phases
                .iter()
                .map(|phase| phase.name.as_str())
                .collect(),
            tool: Some(&summary.tool),
            interrupted: false,
            reported: Some(summary),
        };
        self.keep(&listed, &document, verdict, findings)
    }

    fn keep(
        &self,
        listed: &RunColumns<'_>,
        document: &StoredDocument,
        verdict: Verdict,
        findings: &[Finding],
    ) -> Result<Option<RunId>> {
        let kept = self.insert(listed, document, verdict, findings);
        let kept = kept.map_err(|error| match error.sqlite_extended_error_code() {
            Some(rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE) => Error::AlreadySaved {
                path: self.path.clone(),
                id: listed.id.to_string(),
            },
            _ => self.explain(error),
        });
        // Data written to a file that was removed just then is lost.
        let earlier = kept?;
        self.demand_present()?;
        Ok(earlier)
    }

    fn insert(
        &self,
        listed: &RunColumns<'_>,
        document: &StoredDocument,
        verdict: Verdict,
        findings: &[Finding],
    ) -> rusqlite::Result<Option<RunId>> {
        let change = self.change()?;
        // Under the lock, so that two processes that import the same report at once save it once.
        if let Some(summary) = listed.reported
            && let Some(id) = report::saved_run(&change, summary)?
        {
            return Ok(Some(id));
        }
        change.execute(
            "INSERT INTO runs (id, started, host, target, device, suite, phases, tool, interrupted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                listed.id.as_str(),
                sortable(listed.started),
                listed.host,
                listed.target,
                listed.device,
                listed.suite,
                json(&listed.phases)?,
                listed.tool,
                listed.interrupted,
            ],
        )?;
        let number = change.last_insert_rowid();
        change.execute(
            "INSERT INTO documents (run, form, size, body) VALUES (?1, ?2, ?3, ?4)",
            params![number, document.form, document.size as i64, document.body],
        )?;
        conclude(&change, number, verdict, findings)?;
        if let Some(summary) = listed.reported {
            report::note(&change, number, summary)?;
        }
        change.commit()?;
        Ok(None)
    }

    /// Replaces the conclusion from a run, after it was studied again. Its measurements stay.
    ///
    /// # Errors
    /// When the ledger cannot be written, or `word` does not name one run (see
    /// [`find`](Ledger::find)).
    pub fn conclude(&mut self, word: &str, verdict: Verdict, findings: &[Finding]) -> Result<()> {
        self.demand_writable()?;
        let change = self.change().map_err(|error| self.explain(error))?;
        let (number, _) = self.locate(word)?;
        conclude(&change, number, verdict, findings)
            .and_then(|()| change.commit())
            .map_err(|error| self.explain(error))
    }

    /// The runs that `filter` lets through, newest first. Reads no documents.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<RunSummary>> {
        let rows: rusqlite::Result<Vec<RunSummary>> = (|| {
            let mut statement = self.connection.prepare_cached(LIST)?;
            let rows = statement.query_map(
                named_params! {
                    ":host": filter.host,
                    ":target": filter.target,
                    ":suite": filter.suite,
                    ":since": filter.since.map(sortable),
                    ":verdict": filter.verdict.map(Verdict::name),
                    ":limit": filter.limit.map_or(-1, i64::from),
                },
                summary,
            )?;
            rows.collect()
        })();
        rows.map_err(|error| self.explain(error))
    }

    /// The run that `word` names (see [`find`](Ledger::find)), as it was measured.
    ///
    /// # Errors
    /// When `word` does not name one run, it was imported, or its document is damaged or of a newer
    /// form.
    pub fn load(&self, word: &str) -> Result<Run> {
        match self.load_kept(word)? {
            StoredRun::Measured(run) => Ok(*run),
            StoredRun::Imported(run) => Err(Error::NotMeasured {
                id: run.id.to_string(),
                tool: run.summary.tool,
            }),
        }
    }

    /// The run that `word` names (see [`find`](Ledger::find)), measured or imported.
    ///
    /// # Errors
    /// When `word` does not name one run, or its document is damaged or of a newer form.
    pub fn load_kept(&self, word: &str) -> Result<StoredRun> {
        let view = self.view()?;
        let (number, id) = self.locate(word)?;
        let document = view
            .query_row(
                "SELECT form, size, body FROM documents WHERE run = ?1",
                [number],
                |row| StoredDocument::of_row(row, 0),
            )
            .optional()
            .map_err(|error| {
                let code = error.sqlite_error_code();
                // Damage to a page that only this document uses.
                match code == Some(ErrorCode::DatabaseCorrupt) || is_misread(&error) {
                    true => Ledger::lost_part_error(&id, "its document is damaged"),
                    false => self.explain(error),
                }
            })?;
        match document {
            Some(document) => document.unpack(id.as_str()),
            None => Err(Ledger::lost_part_error(&id, "its document is missing")),
        }
    }

    /// Conclusion of the run that `word` names (see [`find`](Ledger::find)).
    ///
    /// # Errors
    /// When `word` does not name one run, or its conclusion has findings that only a newer version knows.
    pub fn conclusion(&self, word: &str) -> Result<RunConclusion> {
        let view = self.view()?;
        let (number, id) = self.locate(word)?;
        let found = view
            .query_row(
                "SELECT verdict, findings, disksmith FROM conclusions WHERE run = ?1",
                [number],
                |row| {
                    Ok(RunConclusion {
                        verdict: word_at(row, 0)?,
                        findings: json_at(row, 1)?,
                        disksmith: row.get(2)?,
                    })
                },
            )
            .optional();
        match found {
            Ok(Some(conclusion)) => Ok(conclusion),
            Ok(None) => Err(Ledger::lost_part_error(&id, "its conclusion is missing")),
            Err(why) if is_misread(&why) => Err(Error::UnreadableRun {
                detail: format!("its conclusion is not understood ({why})"),
                id: id.to_string(),
            }),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Removes the run that `word` names (see [`find`](Ledger::find)), and returns its id. The
    /// file does not shrink; the space is used for later runs.
    ///
    /// # Errors
    /// When the ledger cannot be written, or `word` does not name one run.
    pub fn remove(&mut self, word: &str) -> Result<RunId> {
        self.demand_writable()?;
        // Found and removed under one lock, so that `last` still names the same run.
        let change = self.change().map_err(|error| self.explain(error))?;
        let (number, id) = self.locate(word)?;
        change
            .execute("DELETE FROM runs WHERE number = ?1", [number])
            .and_then(|_| change.commit())
            .map_err(|error| self.explain(error))?;
        Ok(id)
    }

    /// Begins a transaction that holds the write lock from the start: two that read first and wrote later would block
    /// each other.
    pub(crate) fn change(&self) -> rusqlite::Result<Transaction<'_>> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
    }

    /// Begins to read: until the transaction is dropped, changes by other processes are not seen, so that a run that
    /// was found is still there when its document is read.
    fn view(&self) -> Result<Transaction<'_>> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred)
            .map_err(|error| self.explain(error))
    }

    /// The error for a run that has lost a part.
    fn lost_part_error(id: &RunId, detail: &str) -> Error {
        Error::UnreadableRun {
            id: id.to_string(),
            detail: detail.to_owned(),
        }
    }
}

fn conclude(
    change: &Transaction<'_>,
    number: i64,
    verdict: Verdict,
    findings: &[Finding],
) -> rusqlite::Result<()> {
    change.execute(
        "INSERT OR REPLACE INTO conclusions (run, verdict, findings, disksmith)
         VALUES (?1, ?2, ?3, ?4)",
        params![
            number,
            verdict.name(),
            json(&findings)?,
            env!("CARGO_PKG_VERSION")
        ],
    )?;
    Ok(())
}

fn summary(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let id: String = row.get(0)?;
    let tool: Option<String> = row.get(8)?;
    Ok(RunSummary {
        id: run_id(&id),
        started: word_at(row, 1)?,
        host: row.get(2)?,
        target: row.get(3)?,
        device: row.get(4)?,
        suite: row.get(5)?,
        phases: json_at(row, 6)?,
        verdict: word_at(row, 7)?,
        origin: tool.map_or(Origin::Measured, |tool| Origin::Imported { tool }),
        interrupted: row.get(9)?,
    })
}

#[cfg(test)]
mod tests;
