//! A race as it was measured, as the ledger keeps it next to its hosts. Conclusions are drawn from it again each
//! time.

use serde::{Deserialize, Serialize};

use crate::hosts::GroupBy;
use crate::hosts::TieBreak;
use crate::protocol::rounds::{TargetFacts, TargetRound};
use crate::store::termination::Termination;
use sweep::Figure;

/// Parameters and state of a race as the ledger has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RaceRecord {
    /// Number of hosts to keep, of each group.
    pub keep: usize,
    /// Property that competing hosts have in common, next to their size.
    #[serde(default)]
    pub per: Option<GroupBy>,
    /// The figures that each round gives, in their order; the first is what hosts are ranked by.
    pub figures: Vec<Figure>,
    /// Floors that a host must reach throughout, as written by the user.
    pub floors: Vec<String>,
    /// Length of a round, in seconds.
    pub round_s: f64,
    /// Number of rounds in which every host is measured before any drops out.
    pub least_rounds: usize,
    /// Maximum number of rounds.
    pub most_rounds: usize,
    /// Time for which a host may be missing on end, in seconds, however short a round is.
    #[serde(default)]
    pub silent_s: f64,
    /// Rule that breaks ties; `None` where they stay.
    pub ties: Option<TieBreak>,
    /// Facts of the hosts, in the order of the run's.
    pub hosts: Vec<RacedHost>,
    /// The rounds, in their order.
    pub rounds: Vec<RoundRecord>,
    /// True where the user ended it.
    pub interrupted: bool,
    /// Instances terminated for it; `None` where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
}

/// A host in a race.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RacedHost {
    /// Name of its group; `None` where it was never measured.
    pub group: Option<String>,
    /// Targets that are measured there.
    pub targets: Vec<TargetFacts>,
    /// Boot id of the host in which it was measured.
    pub boot: String,
    /// The instance id that the host's metadata service reported.
    pub own_id: Option<String>,
    /// The id that its source gave it; `None` where only the host itself reports which instance it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_id: Option<String>,
    /// True where it did not come to measure when it was met again after a loss: it may be another machine
    /// then, or have other disks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_other: bool,
    /// Price of an hour, where the source has it.
    pub price: Option<f64>,
    /// True where its source has the tag `keep`.
    pub is_tagged_keep: bool,
}

/// Results of a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundRecord {
    /// Hosts that were measured.
    pub measured: Vec<Measurement>,
    /// Results of earlier rounds that came too late for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<Measurement>,
    /// Hosts that should have been measured and were not, with the reasons.
    pub missed: Vec<MissedHost>,
    /// Hosts that are missing only because all were at once, which is not held against them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<MissedHost>,
    /// Hosts that are gone for good, with the reasons.
    pub gone: Vec<MissedHost>,
}

/// A host measured in a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// Place of the host in the run.
    pub host: usize,
    /// Results of its targets.
    pub targets: Vec<TargetRound>,
    /// Round in which it was measured, from 0, where that is not the one in which it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<usize>,
}

/// A host that was not measured in a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MissedHost {
    /// Place of the host in the run.
    pub host: usize,
    /// Reason, as a sentence.
    pub why: String,
}
