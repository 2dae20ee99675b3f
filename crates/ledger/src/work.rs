//! Long work and its state, so that work can be repaired or resumed after a kill or a power cut.
//!
//! Work is begun, its state saved whenever it changes, and then finished or dropped. The process that begins it, or
//! claims it after its owner has died, gets a [`Claim`], without which no state can be saved: so two processes cannot
//! overwrite each other's state. Every change is one immediate transaction that is on the disk when the function
//! returns.

mod adopt;

use std::marker::PhantomData;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::columns::{json, json_at, sortable, word_at};
use crate::document::StoredDocument;
use crate::{Ledger, Owner, OwnerLiveness, Result, WorkError};

/// A kind of long work: the type of the document with its state.
pub trait LongWork: Serialize + DeserializeOwned + PartialEq {
    /// Kind of work, in one word: `array`, `sweep`.
    const KIND: &'static str;
    /// Form of the document. Raise it when an older program would misread a document of this one; documents of older
    /// programs must still be readable.
    const FORM: u32;
}

/// Long work, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkSummary {
    /// Kind of work.
    pub kind: String,
    /// Target of the work.
    pub key: String,
    /// Start.
    pub began: Timestamp,
    /// Time at which its state was last saved.
    pub changed: Timestamp,
    /// End; `None` while it is not finished.
    pub finished: Option<Timestamp>,
    /// Present or last owner of the work.
    pub owner: Owner,
}

/// Work and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredWork<W> {
    /// The work, as lists show it.
    pub summary: WorkSummary,
    /// State of the work.
    pub document: W,
}

/// The right to save the state of some work: only the process that has begun or claimed it has one.
#[derive(Debug)]
pub struct Claim<W> {
    key: String,
    /// The owner, as JSON in the ledger.
    owner: String,
    /// The owner to store when the work is released.
    released: String,
    work: PhantomData<fn() -> W>,
}

impl<W> Claim<W> {
    /// Target of the work.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Columns that [`summary`] reads.
const COLUMNS: &str = "kind, key, began, changed, finished, owner";

impl Ledger {
    /// Begins work on `key` by `owner`, and saves its state. Finished work with the same key is replaced. `liveness`
    /// returns the liveness of an owner.
    ///
    /// # Errors
    /// When the ledger cannot be written, or has unfinished work with this key: the error says whether its owner is
    /// running, or the work can be claimed.
    pub fn begin_work<W: LongWork>(
        &mut self,
        key: &str,
        owner: &Owner,
        document: &W,
        liveness: impl FnOnce(&Owner) -> OwnerLiveness,
    ) -> Result<Claim<W>> {
        self.demand_writable()?;
        let document = pack(key, document)?;
        let claim = self.claim_of::<W>(key, owner)?;
        let explain = |error| self.explain(error);
        let change = self.change().map_err(explain)?;
        match find(&change, W::KIND, key).map_err(explain)? {
            Some(there) if there.finished.is_none() => {
                return Err(there.refusal(liveness).into());
            }
            _ => {}
        }
        let now = sortable(Timestamp::now());
        change
            .execute(
                "INSERT OR REPLACE INTO work
                     (kind, key, host, began, changed, finished, owner, form, size, body)
                 VALUES (?1, ?2, ?3, ?4, ?4, NULL, ?5, ?6, ?7, ?8)",
                params![
                    W::KIND,
                    key,
                    owner.host,
                    now,
                    claim.owner,
                    document.form,
                    document.size as i64,
                    document.body
                ],
            )
            .and_then(|_| change.commit())
            .map_err(explain)?;
        Ok(claim)
    }

    /// Replaces the saved state of the work. When this returns, the new state is on the disk; a kill before that leaves
    /// the old state.
    ///
    /// # Errors
    /// When the ledger cannot be written, or the claim was lost.
    pub fn keep_work<W: LongWork>(&mut self, claim: &Claim<W>, document: &W) -> Result<()> {
        self.put(claim, document, false, &claim.owner)
    }

    /// Saves the last state of the work, and marks the work as finished.
    ///
    /// # Errors
    /// As [`keep_work`](Ledger::keep_work).
    pub fn finish_work<W: LongWork>(&mut self, claim: Claim<W>, document: &W) -> Result<()> {
        self.put(&claim, document, true, &claim.owner)
    }

    /// Saves the state of the work, and releases the work so that it can be claimed.
    ///
    /// # Errors
    /// As [`keep_work`](Ledger::keep_work).
    pub fn release_work<W: LongWork>(&mut self, claim: Claim<W>, document: &W) -> Result<()> {
        self.put(&claim, document, false, &claim.released)
    }

    /// Replaces the state of finished work, for example after a late answer. Start and end stay.
    ///
    /// # Errors
    /// When the ledger cannot be written, or there is no finished work of that key.
    pub fn amend_work<W: LongWork>(&mut self, key: &str, document: &W) -> Result<()> {
        self.demand_writable()?;
        let document = pack(key, document)?;
        let changed = self.connection.execute(
            "UPDATE work SET changed = ?3, form = ?4, size = ?5, body = ?6
             WHERE kind = ?1 AND key = ?2 AND finished IS NOT NULL",
            params![
                W::KIND,
                key,
                sortable(Timestamp::now()),
                document.form,
                document.size as i64,
                document.body
            ],
        );
        match changed.map_err(|error| self.explain(error))? {
            0 => Err(unknown(W::KIND, key).into()),
            _ => Ok(()),
        }
    }

    /// Ends work and removes its record, if nothing of it needs to be kept.
    ///
    /// # Errors
    /// As [`keep_work`](Ledger::keep_work).
    pub fn drop_work<W: LongWork>(&mut self, claim: Claim<W>) -> Result<()> {
        self.demand_writable()?;
        let removed = self.connection.execute(
            "DELETE FROM work WHERE kind = ?1 AND key = ?2 AND owner = ?3 AND finished IS NULL",
            params![W::KIND, claim.key, claim.owner],
        );
        self.one_of(&claim, removed)
    }

    /// Takes over unfinished work whose owner is dead, and returns its state. If two processes try at once, one of them
    /// succeeds.
    ///
    /// # Errors
    /// When the ledger cannot be written, there is no such work, it is finished, its owner is not
    /// dead, or its document cannot be read; it then stays as it was.
    pub fn claim_work<W: LongWork>(
        &mut self,
        key: &str,
        owner: &Owner,
        liveness: impl FnOnce(&Owner) -> OwnerLiveness,
    ) -> Result<(Claim<W>, StoredWork<W>)> {
        self.demand_writable()?;
        let claim = self.claim_of::<W>(key, owner)?;
        let explain = |error| self.explain(error);
        let change = self.change().map_err(explain)?;
        let (there, document) = load(&change, W::KIND, key)
            .map_err(explain)?
            .ok_or_else(|| unknown(W::KIND, key))?;
        if there.finished.is_some() {
            return Err(WorkError::Finished {
                kind: there.kind,
                key: there.key,
            }
            .into());
        }
        match there.refusal(liveness) {
            WorkError::LeftUnfinished { .. } => {}
            refusal => return Err(refusal.into()),
        }
        let document = unpack(key, &document)?;
        change
            .execute(
                "UPDATE work SET owner = ?3, host = ?4 WHERE kind = ?1 AND key = ?2",
                params![W::KIND, key, claim.owner, owner.host],
            )
            .and_then(|_| change.commit())
            .map_err(explain)?;
        let summary = WorkSummary {
            owner: owner.clone(),
            ..there
        };
        Ok((claim, StoredWork { summary, document }))
    }

    /// State of the work on `key`; `None` when there is none.
    ///
    /// # Errors
    /// When the ledger or the document cannot be read.
    pub fn work<W: LongWork>(&self, key: &str) -> Result<Option<StoredWork<W>>> {
        let found = load(&self.connection, W::KIND, key).map_err(|error| self.explain(error))?;
        let Some((summary, document)) = found else {
            return Ok(None);
        };
        let document = unpack(key, &document)?;
        Ok(Some(StoredWork { summary, document }))
    }

    /// Lists all work of a kind, or of all kinds, the newest first. Reads no documents.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn list_work(&self, kind: Option<&str>) -> Result<Vec<WorkSummary>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM work WHERE ?1 IS NULL OR kind = ?1
             ORDER BY began DESC, number DESC"
        );
        let rows: rusqlite::Result<Vec<WorkSummary>> = (|| {
            let mut statement = self.connection.prepare_cached(&sql)?;
            statement.query_map([kind], summary)?.collect()
        })();
        rows.map_err(|error| self.explain(error))
    }

    /// The work of a kind that is not finished, the newest first. Reads no documents.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn unfinished<W: LongWork>(&self) -> Result<Vec<WorkSummary>> {
        let mut works = self.list_work(Some(W::KIND))?;
        works.retain(|work| work.finished.is_none());
        Ok(works)
    }

    /// Removes the record of work, unless a process may be working on it.
    ///
    /// # Errors
    /// When the ledger cannot be written, there is no such work, or it is unfinished and its owner
    /// is not dead.
    pub fn remove_work(
        &mut self,
        kind: &str,
        key: &str,
        liveness: impl FnOnce(&Owner) -> OwnerLiveness,
    ) -> Result<()> {
        self.demand_writable()?;
        let explain = |error| self.explain(error);
        let change = self.change().map_err(explain)?;
        let there = find(&change, kind, key)
            .map_err(explain)?
            .ok_or_else(|| unknown(kind, key))?;
        if there.finished.is_none() {
            match there.refusal(liveness) {
                WorkError::LeftUnfinished { .. } => {}
                refusal => return Err(refusal.into()),
            }
        }
        change
            .execute(
                "DELETE FROM work WHERE kind = ?1 AND key = ?2",
                params![kind, key],
            )
            .and_then(|_| change.commit())
            .map_err(explain)
    }

    fn claim_of<W: LongWork>(&self, key: &str, owner: &Owner) -> Result<Claim<W>> {
        let json = |owner: &Owner| json(owner).map_err(|error| self.explain(error));
        Ok(Claim {
            key: key.to_owned(),
            owner: json(owner)?,
            released: json(&owner.ended())?,
            work: PhantomData,
        })
    }

    fn put<W: LongWork>(
        &self,
        claim: &Claim<W>,
        document: &W,
        finished: bool,
        owner: &str,
    ) -> Result<()> {
        self.demand_writable()?;
        let document = pack(&claim.key, document)?;
        let now = sortable(Timestamp::now());
        // One statement is one transaction, and holds the write lock from its start.
        let changed = self.connection.execute(
            "UPDATE work
             SET changed = ?4, finished = ?5, form = ?6, size = ?7, body = ?8, owner = ?9
             WHERE kind = ?1 AND key = ?2 AND owner = ?3 AND finished IS NULL",
            params![
                W::KIND,
                claim.key,
                claim.owner,
                now,
                finished.then_some(&now),
                document.form,
                document.size as i64,
                document.body,
                owner
            ],
        );
        self.one_of(claim, changed)
    }

    /// Returns an error unless a change has updated the claim's row.
    fn one_of<W: LongWork>(
        &self,
        claim: &Claim<W>,
        changed: rusqlite::Result<usize>,
    ) -> Result<()> {
        match changed.map_err(|error| self.explain(error))? {
            0 => Err(WorkError::Lost {
                kind: W::KIND.to_owned(),
                key: claim.key.clone(),
            }
            .into()),
            _ => Ok(()),
        }
    }
}

impl WorkSummary {
    /// Reason why unfinished work cannot be begun; [`WorkError::LeftUnfinished`] when it can be claimed.
    fn refusal(&self, liveness: impl FnOnce(&Owner) -> OwnerLiveness) -> WorkError {
        let (kind, key) = (self.kind.clone(), self.key.clone());
        let (owner, began) = (Box::new(self.owner.clone()), self.began);
        match liveness(&owner) {
            OwnerLiveness::Alive => WorkError::UnderWay {
                kind,
                key,
                owner,
                began,
            },
            OwnerLiveness::Dead => WorkError::LeftUnfinished {
                kind,
                key,
                owner,
                began,
            },
            OwnerLiveness::Elsewhere => WorkError::Elsewhere { kind, key, owner },
        }
    }
}

fn unknown(kind: &str, key: &str) -> WorkError {
    WorkError::Unknown {
        kind: kind.to_owned(),
        key: key.to_owned(),
    }
}

/// Packs a document, and verifies that it can be read back: JSON has no NaN, and state that cannot be read is useless.
fn pack<W: LongWork>(key: &str, document: &W) -> Result<StoredDocument> {
    let unfaithful = |detail: String| WorkError::Unfaithful {
        kind: W::KIND.to_owned(),
        key: key.to_owned(),
        detail,
    };
    let json = serde_json::to_vec(document).map_err(|error| unfaithful(error.to_string()))?;
    let back: W = serde_json::from_slice(&json).map_err(|error| unfaithful(error.to_string()))?;
    if back != *document {
        return Err(unfaithful("a figure is not a number".to_owned()).into());
    }
    Ok(StoredDocument::of_json(W::FORM, &json))
}

fn unpack<W: LongWork>(key: &str, document: &StoredDocument) -> Result<W> {
    let (kind, key) = (W::KIND.to_owned(), key.to_owned());
    if document.form > W::FORM {
        return Err(WorkError::Newer {
            kind,
            key,
            found: document.form,
            known: W::FORM,
        }
        .into());
    }
    let unreadable = |detail| WorkError::Unreadable { kind, key, detail };
    Ok(document.read().map_err(unreadable)?)
}

fn find(connection: &Connection, kind: &str, key: &str) -> rusqlite::Result<Option<WorkSummary>> {
    let sql = format!("SELECT {COLUMNS} FROM work WHERE kind = ?1 AND key = ?2");
    connection.query_row(&sql, [kind, key], summary).optional()
}

fn load(
    connection: &Connection,
    kind: &str,
    key: &str,
) -> rusqlite::Result<Option<(WorkSummary, StoredDocument)>> {
    let sql = format!("SELECT {COLUMNS}, form, size, body FROM work WHERE kind = ?1 AND key = ?2");
    let both = |row: &Row<'_>| Ok((summary(row)?, StoredDocument::of_row(row, 6)?));
    connection.query_row(&sql, [kind, key], both).optional()
}

fn summary(row: &Row<'_>) -> rusqlite::Result<WorkSummary> {
    let finished: Option<String> = row.get(4)?;
    Ok(WorkSummary {
        kind: row.get(0)?,
        key: row.get(1)?,
        began: word_at(row, 2)?,
        changed: word_at(row, 3)?,
        finished: finished.map(|_| word_at(row, 4)).transpose()?,
        owner: json_at(row, 5)?,
    })
}

#[cfg(test)]
mod tests;
