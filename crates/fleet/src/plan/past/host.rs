//! Hosts of the past.

use crate::race::{Decision, RankedHost};
use crate::store::HostRun;

/// Decision about a host that was kept.
pub(super) const KEEP: &str = "keep";

/// A host of the past.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PastHost {
    /// Its zone.
    pub zone: Option<String>,
    /// Its instance type.
    pub kind: Option<String>,
    /// Its figure, of which there is more or less as good as it is; `None` where it has none.
    pub figure: Option<f64>,
    /// True where it was kept; `None` where that is not known.
    pub kept: Option<bool>,
}

impl PastHost {
    /// A host as it came out of a race, by its figure as the race takes it, of which more is better.
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

/// Key of a host in one run and the next: its id, or its name.
pub(super) fn key_of(host: &HostRun) -> String {
    host.id.clone().unwrap_or_else(|| host.host.clone())
}

/// True where a host of which a race decided this may have been good by its figure. One that missed a floor
/// or failed was not.
pub(crate) fn could_be_good(decision: &str) -> bool {
    let never = [Decision::HostFloor, Decision::Failed, Decision::Unreachable];
    never.iter().all(|one| one.name() != decision)
}

/// The hosts of the past, and which of them were good.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PastHosts {
    /// The hosts, each with whether it was good.
    pub hosts: Vec<(PastHost, bool)>,
    /// Definition of a good host, in words.
    pub good: String,
}
