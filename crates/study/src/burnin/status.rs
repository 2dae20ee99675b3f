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
    /// The host was left out at the end, by its measured figures: no kept host is worse by more than the tie, and this
    /// host may be as good.
    Left {
        /// Round after which it was left out, from 0.
        round: usize,
    },
    /// The host failed, or was removed by the caller.
    Removed {
        /// Round before or in which it was removed, from 0.
        round: usize,
    },
}
