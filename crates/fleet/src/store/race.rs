//! The measurements of a race, stored in the ledger with its hosts. Conclusions are drawn from them anew each time.

use serde::{Deserialize, Serialize};

use crate::hosts::GroupBy;
use crate::hosts::TieBreak;
use crate::protocol::rounds::{TargetFacts, TargetRound};
use crate::store::termination::Termination;
use sweep::Figure;

/// Parameters and state of a race in the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RaceRecord {
    /// Number of hosts to keep, of each group.
    pub keep: usize,
    /// Property that competing hosts share, in addition to their size.
    #[serde(default)]
    pub per: Option<GroupBy>,
    /// The figures of each round, in order; hosts are ranked by the first.
    pub figures: Vec<Figure>,
    /// Floors that a host must reach throughout, as written by the user.
    pub floors: Vec<String>,
    /// Length of a round, in seconds.
    pub round_s: f64,
    /// Number of rounds in which every host is measured before any drops out.
    pub least_rounds: usize,
    /// Maximum number of rounds.
    pub most_rounds: usize,
    /// Time for which a host may be missing continuously, in seconds, however short a round is.
    #[serde(default)]
    pub silent_s: f64,
    /// Rule that breaks ties; `None` if they stay.
    pub ties: Option<TieBreak>,
    /// Facts about the hosts, in the order of the run.
    pub hosts: Vec<RacedHost>,
    /// The rounds, in their order.
    pub rounds: Vec<RoundRecord>,
    /// True if the user ended it.
    pub interrupted: bool,
    /// Instances to terminate for it; `None` if that was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
}

/// A host in a race.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RacedHost {
    /// Name of its group; `None` if it was never measured.
    pub group: Option<String>,
    /// Targets that are measured there.
    pub targets: Vec<TargetFacts>,
    /// Boot id at the first connection.
    pub boot: String,
    /// The instance id that the host's metadata service reported.
    pub own_id: Option<String>,
    /// The id in its source; `None` if only the host itself reports its instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_id: Option<String>,
    /// True if it was not ready again after a loss: it may then be another machine, or have other disks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_other: bool,
    /// Price of an hour, if the source has it.
    pub price: Option<f64>,
    /// True if its source has the tag `keep`.
    pub is_tagged_keep: bool,
}

/// Results of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundRecord {
    /// Hosts that were measured.
    pub measured: Vec<Measurement>,
    /// Results of earlier rounds that arrived too late for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<Measurement>,
    /// Hosts that should have been measured and were not, with the reasons.
    pub missed: Vec<MissedHost>,
    /// Hosts that are only missing because all hosts were, which does not count against them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<MissedHost>,
    /// Hosts that have left the race, with the reasons.
    pub gone: Vec<MissedHost>,
}

/// A host measured in a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// Index of the host in the run.
    pub host: usize,
    /// Results of its targets.
    pub targets: Vec<TargetRound>,
    /// Round in which it was measured, from 0, if it arrived in a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<usize>,
}

/// A host that was not measured in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MissedHost {
    /// Index of the host in the run.
    pub host: usize,
    /// Reason, as a sentence.
    pub why: String,
}
