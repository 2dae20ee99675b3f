//! Copies finished work from another ledger, such as that of the lab's machine.

use rusqlite::{Row, params};

use crate::{Ledger, Result};

/// Columns of a row except its number, which each ledger assigns itself.
const ROW: &str = "kind, key, host, began, changed, finished, owner, form, size, body";

impl Ledger {
    /// Adds the finished work of another ledger, except where this ledger has work with the same key. Unfinished work
    /// is not copied, since it can be continued only there. Returns the number of records added.
    ///
    /// # Errors
    /// When this ledger cannot be written, or the other cannot be read.
    pub fn adopt_finished_work(&mut self, other: &Ledger) -> Result<usize> {
        self.demand_writable()?;
        let read = || {
            let sql = format!("SELECT {ROW} FROM work WHERE finished IS NOT NULL ORDER BY number");
            let mut statement = other.connection.prepare(&sql)?;
            let rows = statement.query_map([], values)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let rows = read().map_err(|error| other.explain(error))?;
        let write = || {
            let change = self.change()?;
            let mut added = 0;
            for row in &rows {
                let [
                    kind,
                    key,
                    host,
                    began,
                    changed,
                    finished,
                    owner,
                    form,
                    size,
                    body,
                ] = row;
                let sql = format!(
                    "INSERT OR IGNORE INTO work ({ROW})
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                );
                added += change.execute(
                    &sql,
                    params![
                        kind, key, host, began, changed, finished, owner, form, size, body
                    ],
                )?;
            }
            change.commit()?;
            Ok(added)
        };
        write().map_err(|error| self.explain(error))
    }
}

fn values(row: &Row<'_>) -> rusqlite::Result<[rusqlite::types::Value; 10]> {
    let mut values = std::array::from_fn(|_| rusqlite::types::Value::Null);
    for (at, value) in values.iter_mut().enumerate() {
        *value = row.get(at)?;
    }
    Ok(values)
}
