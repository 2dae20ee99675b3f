//! Journal in the ledger of the building of an array, so that a kill can be repaired.

use job::{JobStore, OwnedJob, Takeover};

use super::building::{BuildStage, Building};

/// Journal of the building of an array.
#[derive(Debug)]
pub struct Journal {
    job: OwnedJob<Building>,
    building: Building,
}

impl Journal {
    /// Begins a journal.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn begin(store: JobStore, building: Building) -> ledger::Result<Journal> {
        let job = OwnedJob::begin(store, &building.uuid, &building, Takeover::FromDead)?;
        Ok(Journal { job, building })
    }

    /// Notes that a step begins.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn note(&mut self, stage: BuildStage) -> ledger::Result<()> {
        self.building.stage = stage;
        self.job.save(&self.building)
    }

    /// Records that the build is being undone.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn note_undoing(&mut self) -> ledger::Result<()> {
        self.building.undoing = true;
        self.job.save(&self.building)
    }

    /// Ends the journal: the array is built, or the build is undone, and there is nothing to repair.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub(crate) fn end(self) -> ledger::Result<()> {
        self.job.discard().map(drop)
    }
}
