//! Instances to terminate after a race and hosts to spare, as stored in the ledger.

use serde::{Deserialize, Serialize};

/// State of an instance that EC2 has not reported.
pub(crate) const UNKNOWN: &str = "unknown";
/// States of an instance that has ended or is ending (Amazon EC2 API Reference, InstanceState).
const TERMINATED_STATES: [&str; 2] = ["shutting-down", "terminated"];

/// An instance to terminate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TerminationTarget {
    /// Name of the host, or of all hosts on this instance.
    pub host: String,
    /// The instance's id.
    pub id: String,
    /// Result of the race, as a sentence without a full stop.
    pub why: String,
    /// Reasons to doubt what the race measured there, or which instance it is, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Figure by which it was ranked, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// State of the instance after EC2 was asked to terminate it, `unknown` where EC2 did not answer; `null` before.
    pub state: Option<String>,
}

impl TerminationTarget {
    /// True if EC2 reports that it has ended or is ending.
    pub(crate) fn is_gone(&self) -> bool {
        self.state.as_deref().is_some_and(is_gone)
    }

    /// State of the instance, as a sentence.
    pub(crate) fn sentence(&self) -> String {
        let (host, id) = (&self.host, &self.id);
        match self.state.as_deref() {
            None => format!("{host}: its instance {id} is not terminated."),
            Some(UNKNOWN) => format!(
                "{host}: the state of its instance {id} is unknown; check it with 'aws ec2 describe-instances \
                 --instance-ids {id}'."
            ),
            Some(state) => format!("{host}: its instance {id} is {state}."),
        }
    }
}

/// A host that was measured to be bad and stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// True for the states of an instance that has ended or is ending.
pub(crate) fn is_gone(state: &str) -> bool {
    TERMINATED_STATES.contains(&state)
}
