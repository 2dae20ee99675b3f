//! Phases of the suite `zones`: the position of each, and whether it is a second read.

use record::{Bytes, Phase};

/// Suffix of the name of a second read.
pub(crate) const SECOND_READ_SUFFIX: &str = "-again";

/// True if a phase is the second read of its zone.
pub(crate) fn is_again(phase: &Phase) -> bool {
    phase.name.ends_with(SECOND_READ_SUFFIX)
}

/// Start of a phase's zone, in bytes.
pub(crate) fn position(phase: &Phase) -> Bytes {
    let details = phase.workload.details.as_ref();
    details.map_or(Bytes(0), |details| details.offset)
}
