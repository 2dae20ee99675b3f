//! `--suite seek`: seeker. Random reads over all of the target, with 1 to 64 in flight.

use record::{Bytes, Nanos, Workload};

use crate::phase_plan::{PhasePlan, base};

/// Number in flight, phase by phase.
const IN_FLIGHT: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Length of a run of seeker.
const SEEKER: Nanos = Nanos::from_secs(30);

/// The phases. The first is that of seeker and as long, unless the run is to be `quick`.
pub(crate) fn phases(quick: bool) -> Vec<PhasePlan> {
    let phase = |depth: u32| {
        let seeker = depth == 1 && !quick;
        let common = Workload {
            block: Bytes::kib(4),
            depth,
            ..base()
        };
        let workload = match seeker {
            true => Workload {
                longest: SEEKER,
                precision: 0.0,
                ..common
            },
            false => common,
        };
        PhasePlan::new(format!("seek-{depth}"), workload)
    };
    IN_FLIGHT.into_iter().map(phase).collect()
}
