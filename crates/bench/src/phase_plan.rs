//! Plan of a phase: its workload, and the event that ends it.

use record::{Bytes, Nanos, Workload};

/// Length of a window.
pub(crate) const WINDOW: Nanos = Nanos::from_secs(1);

/// Maximum requests in flight of an open loop. With fewer, requests would wait in this program while the disk stalls:
/// that wait is timed too, but the disk would get fewer requests than from independent users.
pub(crate) const OPEN_LOOP_DEPTH: u32 = 4096;

/// A phase of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct PhasePlan {
    /// Name of the phase.
    pub name: String,
    /// Workload of the phase.
    pub workload: Workload,
    /// Length of its windows.
    pub window: Nanos,
    /// Event that ends it before its time is up.
    pub ends: EarlyEnd,
}

/// Event that ends a phase before its time is up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EarlyEnd {
    /// The rate is steady and known to within the precision.
    Precise,
    /// Significantly more than one request in a hundred takes longer than this.
    Misses(Nanos),
}

impl PhasePlan {
    /// A phase that ends when it is precise.
    pub(crate) fn new(name: impl Into<String>, workload: Workload) -> PhasePlan {
        PhasePlan {
            name: name.into(),
            workload,
            window: WINDOW,
            ends: EarlyEnd::Precise,
        }
    }
}

/// Minimum length of a phase: a shorter one shows neither bursts nor slow changes.
const MIN_PHASE_TIME: Nanos = Nanos::from_secs(3);

/// Common part of most phases; each names its differences.
pub(crate) fn base() -> Workload {
    Workload {
        block: Bytes::kib(16),
        longest: Nanos::from_secs(8),
        shortest: MIN_PHASE_TIME,
        precision: 0.03,
        ..Workload::default()
    }
}
