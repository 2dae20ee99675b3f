//! Status of a host.

/// Status of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStatus {
    /// It may be one of the best.
    In,
    /// As many others as are kept are better.
    Out {
        /// After which round, from 0.
        round: usize,
    },
    /// It was left out at the end, by what was measured: none that is kept is worse by more than the tie, and it
    /// may be as good.
    Left {
        /// After which round, from 0.
        round: usize,
    },
    /// It failed, or was taken out from outside.
    Removed {
        /// Before or in which round, from 0.
        round: usize,
    },
}
