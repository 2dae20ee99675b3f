//! A finding of `watch`: an event with a start and an end.

use record::sample::SampleTime;
use record::{Severity, Subject};
use serde::{Deserialize, Serialize};

use super::rules::EventCode;

/// A figure that an event rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventFigure {
    /// Name of the figure, with its unit at the end, such as `await_s`, `iops`, `share`.
    pub key: String,
    /// Value of the figure.
    pub value: f64,
}

/// An event that was detected while watching. Each is reported when it begins, at most once a minute while it lasts,
/// and when it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WatchEvent {
    /// Number of the event in this watch, from 1.
    pub id: u64,
    /// Kind of the event.
    pub code: EventCode,
    /// Severity: a note or a warning.
    pub severity: Severity,
    /// Subject of the event.
    pub subject: Subject,
    /// The subject's name: the device's, or `host`.
    pub name: String,
    /// Start of its cause, which is before it was found.
    pub began: SampleTime,
    /// Last time at which its cause was seen; `None` while it lasts.
    pub ended: Option<SampleTime>,
    /// Description in a sentence, with the figures.
    pub text: String,
    /// Advice, in a sentence.
    pub advice: String,
    /// The figures that it rests on.
    pub figures: Vec<EventFigure>,
}

/// Kind of change of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The event was found.
    Opened,
    /// The event lasts, with other figures or a higher severity. Reported once a minute at most.
    Updated,
    /// The cause of the event is gone.
    Closed,
    /// The event lasts, but no sample follows: its end is unknown.
    Unfinished,
}

/// An event, and what happened to it.
#[derive(Clone, Debug, PartialEq)]
pub struct EventChange {
    /// Kind of change.
    pub kind: ChangeKind,
    /// The event after the change.
    pub event: WatchEvent,
}
