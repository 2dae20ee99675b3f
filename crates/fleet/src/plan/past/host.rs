//! Hosts of earlier runs: zone, instance type and figure, and the decision of the race.

use crate::race::{Decision, RankedHost};
use crate::store::HostRun;

/// Name of the decision to keep a host.
pub(super) const KEEP_DECISION: &str = "keep";

/// Host of an earlier run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PastHost {
    /// Zone of the host.
    pub zone: Option<String>,
    /// Instance type of the host.
    pub kind: Option<String>,
    /// Figure of the host; `None` if unknown.
    pub figure: Option<f64>,
    /// True if the race kept it; `None` if unknown.
    pub kept: Option<bool>,
}

impl PastHost {
    /// A host of a race, from its rank: its figure is that of the race, where a larger one is better; whether it was
    /// kept is not known yet.
    pub(super) fn of_race(host: &HostRun, ranked: &RankedHost) -> PastHost {
        PastHost {
            zone: host.zone.clone(),
            kind: host.kind.clone(),
            figure: (ranked.known)
                .filter(|_| could_be_good(ranked.decided.name()))
                .map(|known| known.figure),
            kept: None,
        }
    }
}

/// Key that identifies a host across runs: its id, or its name.
pub(super) fn key_of(host: &HostRun) -> String {
    host.id.clone().unwrap_or_else(|| host.host.clone())
}

/// True if a host with this decision of a race may have been good by its figure. A host that missed a floor or failed
/// was not.
pub(crate) fn could_be_good(decision: &str) -> bool {
    let never = [Decision::HostFloor, Decision::Failed, Decision::Unreachable];
    never.iter().all(|one| one.name() != decision)
}

/// The past hosts, and which of them were good.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PastHosts {
    /// The hosts, each with true if it was good.
    pub hosts: Vec<(PastHost, bool)>,
    /// Definition of a good host, in words.
    pub good: String,
}
