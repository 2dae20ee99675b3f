//! Finds a run by its id, a part of it, or `last`.

use record::RunId;
use rusqlite::{OptionalExtension as _, Row, params};

use crate::{Error, Ledger, Result};

/// Maximum number of candidates that the error for an ambiguous word lists.
const MAX_CANDIDATES: usize = 8;

/// Query for the runs that a word may name: by the whole id, its beginning or its end. An exact match comes first.
/// It uses substr rather than LIKE, where `_` and `%` are wildcards.
const CANDIDATES: &str = "
    SELECT number, id FROM runs
    WHERE substr(id, 1, length(?1)) = ?1 OR substr(id, -length(?1)) = ?1
    ORDER BY id = ?1 DESC, started DESC, number DESC";

impl Ledger {
    /// Id of the one run that `word` names: a whole id, its beginning or its end, `last` for the run that was added
    /// last, or `last~1` for the one before. `last` follows the order in which runs were added, not their dates: a run
    /// imported today may be from last year.
    ///
    /// # Errors
    /// When the word matches no run, or several.
    pub fn find(&self, word: &str) -> Result<RunId> {
        self.locate(word).map(|(_, id)| id)
    }

    /// Row and id of the run that `word` names.
    pub(crate) fn locate(&self, word: &str) -> Result<(i64, RunId)> {
        let found = match parse_last(word) {
            Some(steps) => self.nth_last(steps)?,
            None => self.by_part(word)?,
        };
        found.ok_or_else(|| Error::NoSuchRun {
            path: self.path.clone(),
            word: word.to_owned(),
        })
    }

    fn nth_last(&self, steps: u32) -> Result<Option<(i64, RunId)>> {
        self.connection
            .query_row(
                "SELECT number, id FROM runs ORDER BY number DESC LIMIT 1 OFFSET ?1",
                params![steps],
                located,
            )
            .optional()
            .map_err(|error| self.explain(error))
    }

    fn by_part(&self, word: &str) -> Result<Option<(i64, RunId)>> {
        // Every id begins with the empty word.
        if word.is_empty() {
            return Ok(None);
        }
        let found: rusqlite::Result<Vec<(i64, RunId)>> = (|| {
            let mut statement = self.connection.prepare_cached(CANDIDATES)?;
            statement.query_map([word], located)?.collect()
        })();
        let mut candidates = found.map_err(|error| self.explain(error))?;
        let exact = candidates
            .first()
            .is_some_and(|(_, id)| id.as_str() == word);
        if candidates.len() > 1 && !exact {
            return Err(Error::Ambiguous {
                word: word.to_owned(),
                count: candidates.len(),
                candidates: candidates
                    .iter()
                    .take(MAX_CANDIDATES)
                    .map(|(_, id)| id.to_string())
                    .collect(),
            });
        }
        candidates.truncate(1);
        Ok(candidates.pop())
    }
}

fn located(row: &Row<'_>) -> rusqlite::Result<(i64, RunId)> {
    let id: String = row.get(1)?;
    Ok((row.get(0)?, crate::columns::run_id(&id)))
}

/// Number of runs to go back for `last`, `last~1`, …; `None` for any other word.
fn parse_last(word: &str) -> Option<u32> {
    match word.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scratch, small_run};

    /// A ledger with a run at each of these minutes, and their ids, oldest first.
    fn ledger_with(minutes: &[i64]) -> (Scratch, Ledger, Vec<String>) {
        let scratch = Scratch::new();
        let mut ledger = Ledger::open(scratch.ledger()).unwrap();
        let ids = minutes.iter().map(|&minute| {
            let run = small_run(minute);
            ledger.save(&run, record::Verdict::Trusted, &[]).unwrap();
            run.id.to_string()
        });
        let ids = ids.collect();
        (scratch, ledger, ids)
    }

    #[test]
    fn a_whole_id_its_beginning_or_its_end_name_a_run() {
        let (_scratch, ledger, ids) = ledger_with(&[0, 1, 2]);
        let id = &ids[1];
        for word in [id.as_str(), &id[..13], &id[id.len() - 4..]] {
            assert_eq!(ledger.find(word).unwrap().as_str(), id, "{word}");
        }
    }

    #[test]
    fn last_counts_back_from_what_was_added_last_and_not_by_when_it_began() {
        let (_scratch, ledger, ids) = ledger_with(&[5, 9, 7]);
        for (word, id) in [
            ("last", &ids[2]),
            ("last~0", &ids[2]),
            ("last~1", &ids[1]),
            ("last~2", &ids[0]),
        ] {
            assert_eq!(ledger.find(word).unwrap().as_str(), id, "{word}");
        }
    }

    #[test]
    fn a_word_that_names_no_run_is_refused_with_the_command_that_lists_them() {
        let (_scratch, ledger, _) = ledger_with(&[0]);
        for word in [
            "", "last~1", "last~", "last~x", "lastly", "2020", "_", "%", "'",
        ] {
            let error = ledger.find(word).unwrap_err();
            assert!(matches!(error, Error::NoSuchRun { .. }), "{word}: {error}");
            assert!(error.to_string().contains("disksmith runs"), "{error}");
        }
    }

    #[test]
    fn an_ambiguous_word_lists_candidates_newest_first() {
        let minutes: Vec<i64> = (0..10).collect();
        let (_scratch, ledger, ids) = ledger_with(&minutes);
        match ledger.find("2026").unwrap_err() {
            Error::Ambiguous {
                count, candidates, ..
            } => {
                assert_eq!(count, 10);
                assert_eq!(candidates.len(), MAX_CANDIDATES);
                assert_eq!(candidates[0], ids[9]);
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_whole_id_that_begins_another_is_not_ambiguous() {
        let (_scratch, mut ledger, ids) = ledger_with(&[0]);
        let mut longer = small_run(1);
        longer.id = crate::columns::run_id(&format!("{}-again", ids[0]));
        ledger.save(&longer, record::Verdict::Trusted, &[]).unwrap();
        assert_eq!(ledger.find(&ids[0]).unwrap().as_str(), ids[0]);
    }
}
