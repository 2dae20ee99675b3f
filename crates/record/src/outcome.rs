//! Results of a phase beside its figures.

use serde::{Deserialize, Serialize};

/// Results that rules of a job file ask for. The default is none of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// The check of what was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// The most requests in flight that kept the latency, where they were looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// The steady state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<Steady>,
    /// The rate that was missed, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor_missed: Option<String>,
    /// Requests that failed and did not end the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRequests>,
}

impl Outcome {
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        *self == Outcome::default()
    }

    /// Adds that of another clone.
    pub fn add(&mut self, other: &Outcome) {
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

/// The check of what was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Requests that were read and looked at.
    pub requests: u64,
    /// Those that did not hold what was written.
    pub failed: u64,
    /// Those that could not be judged: two writes to them were in flight at once.
    pub unjudged: u64,
    /// The first that failed, and its difference, as a clause.
    pub first: Option<String>,
}

impl Verified {
    /// Adds that of another.
    pub fn add(&mut self, other: &Verified) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.unjudged += other.unjudged;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// Requests that failed and did not end the phase. No figure of the phase counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRequests {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Discards.
    pub trims: u64,
    /// Calls of fsync and fdatasync.
    pub syncs: u64,
    /// The error of the first one, as a clause.
    pub first: String,
}

impl FailedRequests {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.reads + self.writes + self.trims + self.syncs
    }

    /// Adds those of another, which may have failed later.
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

/// A steady state that a phase was to come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// Seconds from the phase's start until it was there; `None` where it never was.
    pub after_s: Option<f64>,
    /// The largest deviation or the slope that was seen last, in the unit of the figure.
    pub deviation: f64,
    /// The mean of the figure that was seen last.
    pub mean: f64,
}
