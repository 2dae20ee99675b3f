//! Cause of changed response times: the code, the load, or the system below.
//!
//! All series have one value per time slot (a minute). Two windows around a moment are compared, and the same hours of
//! earlier days show how much such windows usually differ.
//!
//! | cause | seen as |
//! | --- | --- |
//! | load | requests changed, and at equal rate the response time did not |
//! | disk | at equal IOPS its latency changed, or latency rose though IOPS did not, or a finding of its own began |
//! | another series | a recorded series (evictions, say) changed, and nothing else explains it |
//! | code | there is a marker, and neither load nor disks explain it; or each request asks more I/O than before |

mod causes;
mod disks;
mod earlier_days;
mod inputs;
mod load;
#[cfg(test)]
mod played;
#[cfg(test)]
mod proof;
#[cfg(test)]
mod scenario;
#[cfg(test)]
mod stacked;

pub use causes::{Cause, CauseVerdict, Certainty, Conclusion, judge};
pub use disks::DiskEvidence;
pub use inputs::{
    DiskFinding, DiskLayer, Moment, NamedSeries, Observations, ObservedDisk, ResponseFigure,
    ServiceTimes, Windows,
};
pub use load::LoadEvidence;

/// Maximum p of a change that counts.
pub(crate) const LEVEL: f64 = 0.01;
/// Minimum change of a response time that counts, as a ratio.
pub(crate) const MIN_CHANGE_RATIO: f64 = 1.1;
