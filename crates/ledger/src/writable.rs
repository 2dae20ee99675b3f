//! Verifies before a change that the ledger can be written and read.

use jiff::Timestamp;

use crate::probe::check_all;
use crate::{Filter, Ledger, Result};

impl Ledger {
    /// Returns an error unless the ledger can be written: it was opened for writing, it is still the file at its path,
    /// and all parts that a write may change are sound. So nothing is added to a ledger that cannot be read. Every
    /// change calls this first; the tables are examined once.
    ///
    /// # Errors
    /// Reason why it cannot be written.
    pub fn demand_writable(&self) -> Result<()> {
        if let Some(why) = &self.unwritable {
            return Err(why.error(&self.path));
        }
        self.demand_present()?;
        if !self.is_checked.get() {
            let tables = check_all(&self.path, &self.connection)?;
            self.read_lists(&tables)?;
            self.is_checked.set(true);
        }
        Ok(())
    }

    /// Reads everything that lists show, to find damage. `tables` are those of the ledger's schema.
    pub(crate) fn read_lists(&self, tables: &[String]) -> Result<()> {
        let has = |name: &str| tables.iter().any(|table| table == name);
        if has("runs") {
            self.list(&Filter::default())?;
        }
        if has("marks") {
            self.marks(Timestamp::MIN, Timestamp::MAX)?;
        }
        if has("recordings") {
            self.recordings()?;
        }
        if has("work") {
            self.list_work(None)?;
        }
        Ok(())
    }
}
