//! Findings of a warming.

use record::Severity;

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingCode {
    /// The rate is at a limit of the volume or the instance, or latency bounds it.
    Capped,
    /// The rate is a limit that several volumes share.
    Shared,
    /// The warming was slower because of the foreground.
    Yielded,
    /// A part stays cold.
    LeftCold,
    /// The location of files, or the space in use, is not known.
    NotMapped,
    /// The checkpoint cannot be written, or cannot be relied on.
    NotKept,
    /// Part of the volume was read at an earlier start, and is not read again.
    Resumed,
    /// The volume's size differs from that at an earlier time.
    Resized,
    /// Places could not be read.
    Unreadable,
}

impl FindingCode {
    /// Name of the code, in text and in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FindingCode::Capped => "capped",
            FindingCode::Shared => "shared-cap",
            FindingCode::Yielded => "yielded",
            FindingCode::LeftCold => "left-cold",
            FindingCode::NotMapped => "not-mapped",
            FindingCode::NotKept => "not-kept",
            FindingCode::Resumed => "resumed",
            FindingCode::Resized => "resized",
            FindingCode::Unreadable => "unreadable",
        }
    }
}

/// A stated reason to doubt or to act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Kind of the finding.
    pub code: FindingCode,
    /// Severity of the finding.
    pub severity: Severity,
    /// A sentence or more.
    pub text: String,
}

impl Finding {
    /// A finding that is worth knowing.
    pub(crate) fn note(code: FindingCode, text: impl Into<String>) -> Finding {
        Finding {
            code,
            severity: Severity::Note,
            text: text.into(),
        }
    }

    /// A finding about a result that is not as requested.
    pub(crate) fn warn(code: FindingCode, text: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Warn,
            ..Finding::note(code, text)
        }
    }
}
