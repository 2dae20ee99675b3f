//! Results of a phase other than its figures.

use serde::{Deserialize, Serialize};

/// Results of the rules of a job file. The default is no result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobFileResults {
    /// Result of the verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// The highest queue depth that kept the latency, if it was searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Result of the search for a steady state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// The minimum rate that was missed, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_missed: Option<String>,
    /// Requests with non-fatal failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRequests>,
}

impl JobFileResults {
    /// True if there is no result.
    pub fn is_empty(&self) -> bool {
        *self == JobFileResults::default()
    }

    /// Adds the results of another clone of the job.
    pub fn add(&mut self, other: &JobFileResults) {
        match (&mut self.verified, &other.verified) {
            (Some(mine), Some(theirs)) => mine.add(theirs),
            (mine @ None, theirs) => *mine = theirs.clone(),
            (Some(_), None) => {}
        }
        self.depth = match (self.depth, other.depth) {
            (Some(mine), Some(theirs)) => Some(mine + theirs),
            (mine, theirs) => mine.or(theirs),
        };
        self.steady = self.steady.or(other.steady);
        if self.floor_missed.is_none() {
            self.floor_missed.clone_from(&other.floor_missed);
        }
        if let Some(theirs) = &other.failed {
            self.failed.get_or_insert_default().add(theirs);
        }
    }
}

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// Requests that were checked.
    pub requests: u64,
    /// Requests whose data differs from the written data.
    pub failed: u64,
    /// Requests that could not be checked, since two writes to the same blocks were in flight at once.
    pub unjudged: u64,
    /// The first failed check with its mismatch, as a clause.
    pub first: Option<String>,
}

impl Verified {
    /// Adds another verification.
    pub fn add(&mut self, other: &Verified) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.unjudged += other.unjudged;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// Requests that failed with non-fatal errors. They are not included in the figures of the phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedRequests {
    /// Number of reads that failed.
    pub reads: u64,
    /// Number of writes that failed.
    pub writes: u64,
    /// Number of discards that failed.
    pub trims: u64,
    /// Number of fsync and fdatasync calls that failed.
    pub syncs: u64,
    /// The first error, as a clause.
    pub first: String,
}

impl FailedRequests {
    /// Number of failed requests of all kinds.
    pub fn count(&self) -> u64 {
        self.reads + self.writes + self.trims + self.syncs
    }

    /// Adds the requests of another phase, which may have failed later.
    pub fn add(&mut self, other: &FailedRequests) {
        if self.count() == 0 {
            self.first.clone_from(&other.first);
        }
        self.reads += other.reads;
        self.writes += other.writes;
        self.trims += other.trims;
        self.syncs += other.syncs;
    }
}

/// Result of the search for a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steady {
    /// Seconds from the phase's start until it was reached; `None` if it was not.
    pub after_s: Option<f64>,
    /// The last largest deviation or slope, in the unit of the figure.
    pub deviation: f64,
    /// The last mean of the figure.
    pub mean: f64,
}
