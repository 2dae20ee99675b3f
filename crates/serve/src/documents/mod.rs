//! Documents of the API: one type each, from which JSON, CSV and the page derive. Keys carry their unit; `null` stands
//! for what is not known.

mod disk_name;
mod line;
mod listing;
mod now;
mod response_times;
mod verdicts;

use jiff::Timestamp;
use serde::Serialize;

pub(crate) use disk_name::DiskName;
pub(crate) use line::{Line, RoundedFigure, figures};
pub(crate) use listing::{Error, Marker, Markers, Race, Run, Runs, TagRow, Tags};
pub(crate) use now::{
    Array, DiskNow, Finding, FindingFigure, Flow, HostNow, HostSource, HostState, NowDocument,
};
pub(crate) use response_times::{DiskLines, HostLines, OpenFinding, ResponseTimes, SeriesLine};
pub(crate) use verdicts::{
    Change, DiskChange, LoadChange, NamedCause, SeriesChange, TimeSpan, Verdict, Verdicts,
};

/// A document of the API.
pub(crate) trait Document: Serialize {
    /// Kind of the document.
    const KIND: &'static str;

    /// The document as JSON in one line.
    fn json(&self) -> String {
        ui::json::Document::of_kind("serve", Self::KIND, self).to_string()
    }
}

/// State of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SourceState {
    /// The source answers.
    Ok,
    /// The source does not answer.
    Away,
}

/// A source of data and whether it answers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SourceDocument {
    /// Address of the source, without secrets.
    pub(crate) name: String,
    /// Kind of the source: `ledger`, `tally`, `prometheus` or `disks`.
    pub(crate) kind: &'static str,
    /// State of the source.
    pub(crate) state: SourceState,
    /// Reason for which it does not answer; null where it does.
    pub(crate) error: Option<String>,
    /// Time since which it does not answer; null where it does.
    pub(crate) since: Option<Timestamp>,
}
