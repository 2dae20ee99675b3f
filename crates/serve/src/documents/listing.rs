//! Lists: tags, runs, markers; and errors.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::{DiskName, Document};

/// The document `tags`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Tags {
    /// Tags with their labels.
    pub(crate) tags: Vec<TagRow>,
    /// Names of the hosts.
    pub(crate) hosts: Vec<String>,
    /// Names of the disks, with their hosts.
    pub(crate) disks: Vec<DiskName>,
    /// Other series.
    pub(crate) series: Vec<String>,
}

impl Document for Tags {
    const KIND: &'static str = "tags";
}

/// A tag with its labels.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TagRow {
    /// Name of the tag.
    pub(crate) tag: String,
    /// Labels by name.
    pub(crate) labels: BTreeMap<String, String>,
    /// Tag and labels in the form in which they are selected.
    pub(crate) selection: String,
}

/// The document `runs`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Runs {
    /// Runs, the latest first.
    pub(crate) runs: Vec<Run>,
    /// Sweeps, and runs of the fleet.
    pub(crate) races: Vec<Race>,
}

impl Document for Runs {
    const KIND: &'static str = "runs";
}

/// A run of `bench`, or one that was imported.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Run {
    /// Id of the run.
    pub(crate) run: String,
    /// Time at which the run was started.
    pub(crate) started: Timestamp,
    /// Name of the host; null where another tool's output does not say.
    pub(crate) hostname: Option<String>,
    /// Path of the target; null where another tool's output does not say.
    pub(crate) target: Option<String>,
    /// Name of the device; null where it is not known.
    pub(crate) device: Option<String>,
    /// Name of the suite.
    pub(crate) suite: String,
    /// Names of the phases.
    pub(crate) phases: Vec<String>,
    /// The tool, of an imported run; null of others.
    pub(crate) imported_from: Option<String>,
    /// True if the run was interrupted.
    pub(crate) interrupted: bool,
    /// Verdict of the run.
    pub(crate) verdict: String,
}

/// A sweep, or a run of the fleet such as a race.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Race {
    /// Kind of the work, `sweep` or `fleet`, which is also the first part of its path.
    pub(crate) work: String,
    /// Id of the work, which is the second part of its path.
    pub(crate) key: String,
    /// Time of the start.
    pub(crate) began: Timestamp,
    /// Time of the end; null while the work is not finished.
    pub(crate) finished: Option<Timestamp>,
    /// Name of the host that ran it.
    pub(crate) hostname: String,
}

/// The document `markers`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Markers {
    /// Markers, in order of time.
    pub(crate) markers: Vec<Marker>,
}

impl Document for Markers {
    const KIND: &'static str = "markers";
}

/// A marker: a moment that was given a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Marker {
    /// Number of the marker in the ledger.
    pub(crate) id: i64,
    /// The moment.
    pub(crate) time: Timestamp,
    /// Name of the host on which it was set.
    pub(crate) hostname: String,
    /// Name of the moment.
    pub(crate) text: String,
}

impl From<ledger::Mark> for Marker {
    fn from(mark: ledger::Mark) -> Marker {
        Marker {
            id: mark.number,
            time: mark.at,
            hostname: mark.host,
            text: mark.text,
        }
    }
}

/// The document `error`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Error {
    /// HTTP status of the answer.
    pub(crate) status: u16,
    /// A sentence.
    pub(crate) error: String,
}

impl Document for Error {
    const KIND: &'static str = "error";
}
