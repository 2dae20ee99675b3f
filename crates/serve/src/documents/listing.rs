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
    /// Hosts.
    pub(crate) hosts: Vec<String>,
    /// Disks.
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
    /// The tag.
    pub(crate) tag: String,
    /// Its labels.
    pub(crate) labels: BTreeMap<String, String>,
    /// Both, as they are selected.
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

/// A run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Run {
    /// Its id.
    pub(crate) run: String,
    /// Start.
    pub(crate) started: Timestamp,
    /// The host; `None` where another tool's output does not say.
    pub(crate) hostname: Option<String>,
    /// The target; `None` where another tool's output does not say.
    pub(crate) target: Option<String>,
    /// The device.
    pub(crate) device: Option<String>,
    /// The suite.
    pub(crate) suite: String,
    /// Names of its phases.
    pub(crate) phases: Vec<String>,
    /// The tool, of an imported run.
    pub(crate) imported_from: Option<String>,
    /// True if it was interrupted.
    pub(crate) interrupted: bool,
    /// Its verdict.
    pub(crate) verdict: String,
}

/// A sweep, or a run of the fleet such as a race.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Race {
    /// Its kind, `sweep` or `fleet`, which is the first part of its path, too.
    pub(crate) work: String,
    /// Its id, which is the second part.
    pub(crate) key: String,
    /// Start.
    pub(crate) began: Timestamp,
    /// End; `None` while it is not finished.
    pub(crate) finished: Option<Timestamp>,
    /// The host.
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

/// A marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Marker {
    /// Its number in the ledger.
    pub(crate) id: i64,
    /// Its time.
    pub(crate) time: Timestamp,
    /// The host.
    pub(crate) hostname: String,
    /// Its name.
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
    /// Status.
    pub(crate) status: u16,
    /// A sentence.
    pub(crate) error: String,
}

impl Document for Error {
    const KIND: &'static str = "error";
}
