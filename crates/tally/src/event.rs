//! An event: a thing that happened once (or `count` times), under a tag.

use crate::level::{MAX_TIME, MIN_TIME, Seconds};

/// The longest tag with its labels, in bytes: what fits an index of every store.
pub const MAX_TAG_BYTES: usize = 512;
/// The tag of all events whose tags are beyond the bound on tags (`--max-tags`).
pub const OTHER_TAG: &str = "(other)";

/// The largest count or value: so far below the largest double that no sum of them overflows. A sum that is no number
/// could be added to no store.
pub const MAX_VALUE: f64 = 1e100;

/// A figure that an event carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventFigure {
    /// None: the event is counted.
    None,
    /// A response time in milliseconds: counted, summed, and kept as a histogram.
    Time(f64),
    /// The state of a gauge: its last, smallest and largest values are kept.
    Gauge(f64),
}

/// An event as a parser found it. Nothing is copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParsedEvent<'a> {
    /// Tag, with labels behind it in the order of their names: `api.get;host=a;zone=b`.
    pub tag: &'a [u8],
    /// Number of times that it happened.
    pub count: f64,
    /// Time of the event; `None` for now.
    pub at: Option<Seconds>,
    /// Figure of the event.
    pub figure: EventFigure,
}

/// Reason for which an event, or a line that should be one, is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The form is not known.
    #[error("it is neither JSON, nor StatsD, nor a line of an access log")]
    Unknown,
    /// The text is no JSON, or no event.
    #[error("it is no JSON object with a 'tag' and, if any, the keys n, ms, gauge, ts and labels")]
    Json,
    /// The text is no StatsD.
    #[error("it is not NAME:VALUE|c, |ms, |h, |d or |g")]
    StatsD,
    /// A line that its log format does not describe.
    #[error("it does not have the access log's format")]
    AccessLog,
    /// StatsD's sets.
    #[error("sets (|s) are not supported: distinct members cannot be summed; send a count")]
    Set,
    /// StatsD's relative gauges.
    #[error("a gauge with a sign changes a state that is kept nowhere; send the gauge's value")]
    RelativeGauge,
    /// The event has no tag.
    #[error("it has no tag")]
    NoTag,
    /// A tag that is too long.
    #[error("its tag with labels is longer than {MAX_TAG_BYTES} bytes")]
    LongTag,
    /// A tag that is no text.
    #[error("its tag is not UTF-8 or has control characters")]
    TagText,
    /// A number that cannot be summed.
    #[error("its count or its value is no number, or above {MAX_VALUE:e}")]
    NotSummable,
    /// A response time below zero.
    #[error("its response time is negative")]
    NegativeTime,
    /// A time that no event has.
    #[error("its time is not between 1970 and 2200")]
    Time,
}

impl ParsedEvent<'_> {
    /// An error unless the event can be summed. The tag's text is checked where it is first seen.
    pub fn check(&self) -> Result<(), Rejection> {
        if self.tag.is_empty() {
            return Err(Rejection::NoTag);
        }
        if self.tag.len() > MAX_TAG_BYTES {
            return Err(Rejection::LongTag);
        }
        let summable = |number: f64| (-MAX_VALUE..=MAX_VALUE).contains(&number);
        if !summable(self.count) {
            return Err(Rejection::NotSummable);
        }
        match self.figure {
            EventFigure::Time(value) | EventFigure::Gauge(value) if !summable(value) => {
                return Err(Rejection::NotSummable);
            }
            EventFigure::Time(value) if value < 0.0 => return Err(Rejection::NegativeTime),
            _ => {}
        }
        match self.at {
            Some(at) if !(MIN_TIME..MAX_TIME).contains(&at) => Err(Rejection::Time),
            _ => Ok(()),
        }
    }
}

/// The tag and the labels of a dictionary's name.
pub fn parts(name: &str) -> (&str, Vec<(&str, &str)>) {
    let mut parts = name.split(';');
    let tag = parts.next().unwrap_or_default();
    (
        tag,
        parts
            .map(|label| label.split_once('=').unwrap_or((label, "")))
            .collect(),
    )
}

/// Receiver of a parser's events. The first argument is the line.
pub(crate) trait EventSink: FnMut(&[u8], Result<ParsedEvent<'_>, Rejection>) {}
impl<F: FnMut(&[u8], Result<ParsedEvent<'_>, Rejection>)> EventSink for F {}
