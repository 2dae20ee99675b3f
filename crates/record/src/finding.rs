//! Findings: stated reasons to doubt a figure, or to act.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A remark; the figure is valid.
    Note,
    /// The figure may mislead.
    Warn,
    /// The figure does not measure what it seems to measure.
    Invalid,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FindingCode {
    /// Reads hit holes or unwritten extents, which need no disk I/O.
    Unwritten,
    /// Requests were served from memory.
    Cached,
    /// The level varies or drifts, so the mean describes no part of the phase.
    Unsteady,
    /// The rate fell from one level to a lower one: burst credits were spent.
    Burst,
    /// The rate is more constant than a disk's own: a configured limit.
    Capped,
    /// Requests were in flight and none completed in a whole window.
    Stall,
    /// The measuring program did not run for a while, or the hypervisor took its processors.
    Gap,
    /// The engine had no idle time: the host limits the figure, not the disk.
    CpuBound,
    /// The device did more I/O than this run requested.
    ForeignIo,
    /// The phase ended before its interval was narrow enough.
    Short,
    /// The span is smaller than memory or a likely device cache.
    SmallSpan,
    /// The target compresses data, or stores equal blocks once.
    Compressed,
    /// The two ends of the target differ in speed, or parts of it were cold.
    Zones,
    /// Measured by another tool: there are no windows to examine.
    Imported,
    /// The tool that measured reports a failure.
    Failed,
    /// Data that was read differs from the data that was written.
    Corrupt,
    /// A required rate was missed.
    FloorMissed,
    /// Requests failed with errors that their job declares non-fatal.
    IoErrors,
    /// I/Os of a trace were issued after they were due.
    Late,
    /// The recorder of a trace lost events, or the trace lacks some.
    LostEvents,
    /// I/Os of a trace lie beyond the target's end.
    Clipped,
    /// A cache served more reads than when they were recorded.
    #[serde(rename = "cache-warmer-than-recorded")]
    CacheWarmer,
    /// A limit of the recorded disk determined the recorded times.
    #[serde(rename = "recorded-behind-a-cap")]
    BehindACap,
    /// A trace with writes holds no commit, so that commits have no figure.
    NoCommits,
}

impl FindingCode {
    /// All codes.
    pub const ALL: [FindingCode; 24] = [
        FindingCode::Unwritten,
        FindingCode::Cached,
        FindingCode::Unsteady,
        FindingCode::Burst,
        FindingCode::Capped,
        FindingCode::Stall,
        FindingCode::Gap,
        FindingCode::CpuBound,
        FindingCode::ForeignIo,
        FindingCode::Short,
        FindingCode::SmallSpan,
        FindingCode::Compressed,
        FindingCode::Zones,
        FindingCode::Imported,
        FindingCode::Failed,
        FindingCode::Corrupt,
        FindingCode::FloorMissed,
        FindingCode::IoErrors,
        FindingCode::Late,
        FindingCode::LostEvents,
        FindingCode::Clipped,
        FindingCode::CacheWarmer,
        FindingCode::BehindACap,
        FindingCode::NoCommits,
    ];

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            FindingCode::Unwritten => "unwritten",
            FindingCode::Cached => "cached",
            FindingCode::Unsteady => "unsteady",
            FindingCode::Burst => "burst",
            FindingCode::Capped => "capped",
            FindingCode::Stall => "stall",
            FindingCode::Gap => "gap",
            FindingCode::CpuBound => "cpu-bound",
            FindingCode::ForeignIo => "foreign-io",
            FindingCode::Short => "short",
            FindingCode::SmallSpan => "small-span",
            FindingCode::Compressed => "compressed",
            FindingCode::Zones => "zones",
            FindingCode::Imported => "imported",
            FindingCode::Failed => "failed",
            FindingCode::Corrupt => "corrupt",
            FindingCode::FloorMissed => "floor-missed",
            FindingCode::IoErrors => "io-errors",
            FindingCode::Late => "late",
            FindingCode::LostEvents => "lost-events",
            FindingCode::Clipped => "clipped",
            FindingCode::CacheWarmer => "cache-warmer-than-recorded",
            FindingCode::BehindACap => "recorded-behind-a-cap",
            FindingCode::NoCommits => "no-commits",
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A stated reason to doubt or to act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Kind of the finding.
    pub code: FindingCode,
    /// Severity of the finding.
    pub severity: Severity,
    /// The phase that it concerns; `None` for the whole run.
    pub phase: Option<String>,
    /// Sentence with the observation, its figures and their meaning.
    pub text: String,
}

/// Verdict of the findings together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The findings have no warning, and nothing invalid.
    Trusted,
    /// The findings have at least one warning.
    Doubtful,
    /// At least one figure does not measure what it seems to measure.
    Invalid,
}

impl Verdict {
    /// Verdict of `findings`: the highest severity decides.
    pub fn of(findings: &[Finding]) -> Verdict {
        match findings.iter().map(|finding| finding.severity).max() {
            Some(Severity::Invalid) => Verdict::Invalid,
            Some(Severity::Warn) => Verdict::Doubtful,
            Some(Severity::Note) | None => Verdict::Trusted,
        }
    }

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Trusted => "trusted",
            Verdict::Doubtful => "doubtful",
            Verdict::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity) -> Finding {
        Finding {
            code: FindingCode::Short,
            severity,
            phase: None,
            text: String::new(),
        }
    }

    #[test]
    fn the_heaviest_finding_decides() {
        use Severity::{Invalid, Note, Warn};
        for (severities, verdict) in [
            (vec![], Verdict::Trusted),
            (vec![Note], Verdict::Trusted),
            (vec![Note, Warn], Verdict::Doubtful),
            (vec![Invalid, Note, Warn], Verdict::Invalid),
        ] {
            let findings: Vec<_> = severities.into_iter().map(finding).collect();
            assert_eq!(Verdict::of(&findings), verdict);
        }
    }

    #[test]
    fn words_are_those_of_the_json() {
        for code in FindingCode::ALL {
            let json = serde_json::to_string(&code).unwrap();
            assert_eq!(json, format!("\"{}\"", code.name()));
        }
    }
}
