//! Instances terminated after a race and hosts spared, as the ledger keeps them.

use serde::{Deserialize, Serialize};

/// The state of an instance of which it is not known what came of it.
pub(crate) const UNKNOWN: &str = "unknown";
/// The states of an instance that is or will be gone (Amazon EC2 API Reference, InstanceState).
const GONE: [&str; 2] = ["shutting-down", "terminated"];

/// An instance to terminate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TerminationTarget {
    /// Name of the host, or of all hosts on this instance.
    pub host: String,
    /// The instance's id.
    pub id: String,
    /// Result of the race, as a sentence without its end.
    pub why: String,
    /// Reasons to doubt what the race measured there, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Figure by which it was ranked, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// Its state after EC2 was asked to terminate it, `unknown` where that was not answered; `None` before.
    pub state: Option<String>,
}

/// A host that was measured to be bad and stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SparedHost {
    /// Name of the host.
    pub host: String,
    /// Reason, as a clause.
    pub why: String,
}

impl SparedHost {
    pub(crate) fn new(host: &str, why: String) -> SparedHost {
        SparedHost {
            host: host.to_owned(),
            why,
        }
    }

    /// Message that it stays, with the reason.
    pub(crate) fn sentence(&self) -> String {
        format!("{} stays: {}.", self.host, self.why)
    }
}

/// Instances to terminate and hosts to spare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Termination {
    /// Instances to terminate.
    #[serde(rename = "doomed")]
    pub targets: Vec<TerminationTarget>,
    /// Bad hosts that stay.
    pub spared: Vec<SparedHost>,
}

/// True for the states of an instance that is or will be gone.
pub(crate) fn is_gone(state: &str) -> bool {
    GONE.contains(&state)
}
