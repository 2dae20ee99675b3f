//! Model of members that are compared directly, without md.

use std::ops::Range;

use linux::md::sync::Sectors;
use record::{Nanos, Ranges};

use super::{Barrier, ComparisonResult};

/// Granularity at which differences are found, in sectors.
const BLOCK: u64 = 8;
/// Speed at which members are read, as a share of full speed, where there is no [`Barrier`].
const SHARE: f64 = 0.5;

/// State of a direct comparison.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct DirectComparison {
    /// True if members can be read directly.
    pub can: bool,
    /// True if the readers have stopped though they could read.
    pub fails: bool,
    /// Speed at which members are read, as a share of full speed, if it is not [`SHARE`].
    pub share: Option<f64>,
    /// Positions where members differ for a moment, since a write has not reached all of them.
    pub moving: Vec<u64>,
    step: Option<Range<u64>>,
    at: f64,
    took_s: f64,
}

impl DirectComparison {
    pub(super) fn begin(&mut self, step: &Range<Sectors>) -> bool {
        if self.fails {
            return false;
        }
        assert!(self.step.is_none(), "one comparison at once");
        self.at = step.start.0 as f64;
        self.took_s = 0.0;
        self.step = Some(step.start.0..step.end.0);
        true
    }

    /// Result of the comparison, where the differences are at `bad`.
    pub(super) fn try_result(&mut self, bad: &[u64]) -> Option<ComparisonResult> {
        let step = self.step.take_if(|step| self.at >= step.end as f64)?;
        let differ = bad.iter().chain(&self.moving);
        let suspects: Ranges = differ
            .filter(|place| step.contains(place))
            .map(|place| {
                let from = place / BLOCK * BLOCK;
                from..from + BLOCK
            })
            .collect();
        Some(ComparisonResult {
            suspects,
            read: Nanos((self.took_s * 1e9) as u64),
        })
    }

    /// Advances the time by `seconds`. Returns the number of sectors read, and the share of the members' full speed
    /// that this took.
    pub(super) fn pass(
        &mut self,
        barrier: Option<Barrier>,
        fastest: f64,
        seconds: f64,
    ) -> (f64, f64) {
        let Some(step) = self.step.as_ref().filter(|step| self.at < step.end as f64) else {
            return (0.0, 0.0);
        };
        let share = barrier.map_or(self.share.unwrap_or(SHARE), |barrier| barrier.direct);
        let sectors = (share * fastest * seconds).min(step.end as f64 - self.at);
        self.at += sectors;
        self.took_s += seconds;
        (sectors, share)
    }
}
