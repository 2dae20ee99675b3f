//! An event: a thing that happened once (or `count` times), under a tag.

use crate::level::{MAX_TIME, MIN_TIME, Seconds};

/// Maximum length of a tag with its labels, in bytes: it fits an index of every store.
pub const MAX_TAG_BYTES: usize = 512;
/// The tag of all events whose tags are beyond the bound on tags (`--max-tags`).
pub const OTHER_TAG: &str = "(other)";

/// Maximum count or value. It is so far below the largest double that no sum overflows: a store cannot hold a sum that
/// is infinite or not a number.
pub const MAX_VALUE: f64 = 1e100;

/// A figure that an event carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventFigure {
    /// No figure: the event is only counted.
    None,
    /// A response time in milliseconds: counted, summed, and kept as a histogram.
    Time(f64),
    /// The state of a gauge: its last, smallest and largest values are kept.
    Gauge(f64),
}

/// A parsed event. Its tag is borrowed, not copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParsedEvent<'a> {
    /// Tag, followed by its labels in the order of their names: `api.get;host=a;zone=b`.
    pub tag: &'a [u8],
    /// Number of times that it happened.
    pub count: f64,
    /// Time of the event; `None` for now.
    pub at: Option<Seconds>,
    /// Figure of the event.
    pub figure: EventFigure,
}

/// Reason why an event, or a line that should be one, is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The format of the line is unknown.
    #[error("it is neither JSON, nor StatsD, nor a line of an access log")]
    Unknown,
    /// The line is not JSON, or not an event.
    #[error("it is no JSON object with a 'tag' and, if any, the keys n, ms, gauge, ts and labels")]
    Json,
    /// The line is not StatsD.
    #[error("it is not NAME:VALUE|c, |ms, |h, |d or |g")]
    StatsD,
    /// The line does not match the log format.
    #[error("it does not have the access log's format")]
    AccessLog,
    /// A StatsD set, which cannot be summed.
    #[error("sets (|s) are not supported: distinct members cannot be summed; send a count")]
    Set,
    /// A relative StatsD gauge, which cannot be summed.
    #[error("a gauge with a sign changes a state that is kept nowhere; send the gauge's value")]
    RelativeGauge,
    /// The event has no tag.
    #[error("it has no tag")]
    NoTag,
    /// The tag with its labels is too long.
    #[error("its tag with labels is longer than {MAX_TAG_BYTES} bytes")]
    LongTag,
    /// The tag is not UTF-8 or has control characters.
    #[error("its tag is not UTF-8 or has control characters")]
    TagText,
    /// The count or the value cannot be summed.
    #[error("its count or its value is no number, or above {MAX_VALUE:e}")]
    NotSummable,
    /// The response time is negative.
    #[error("its response time is negative")]
    NegativeTime,
    /// The time is not between 1970 and 2200.
    #[error("its time is not between 1970 and 2200")]
    Time,
}

impl ParsedEvent<'_> {
    /// Returns an error unless the event can be summed. The characters of a tag are checked later, when it is first
    /// summed.
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

/// The tag and the labels of a name in a store's dictionary.
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

/// Receives each event of a parser, or the reason for its rejection. The first argument is the line.
pub(crate) trait EventSink: FnMut(&[u8], Result<ParsedEvent<'_>, Rejection>) {}
impl<F: FnMut(&[u8], Result<ParsedEvent<'_>, Rejection>)> EventSink for F {}
