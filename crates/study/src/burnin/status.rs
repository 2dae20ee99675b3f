//! Status of a host.

/// Status of a host in a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStatus {
    /// The host may be one of the best.
    In,
    /// The host is worse than as many others as are kept.
    Out {
        /// Round after which it was out, from 0.
        round: usize,
    },
    /// The host was left out at the end, by what was measured: none that is kept is worse by more than the tie, and
    /// it may be as good.
    Left {
        /// Round after which it was left out, from 0.
        round: usize,
    },
    /// The host failed, or was taken out from outside.
    Removed {
        /// Round before or in which it was removed, from 0.
        round: usize,
    },
}
