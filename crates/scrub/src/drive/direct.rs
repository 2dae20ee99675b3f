//! Steps of a direct comparison of the members: the range and size of each read, and the ranges that are suspected.

use std::collections::VecDeque;
use std::ops::Range;

use linux::md::sync::Sectors;
use record::Nanos;
use study::pace::Allowed;

use crate::compare::{ComparisonResult, REQUEST};

/// Maximum number of requests to each member in a step. At a high rate there is more than one, so that members do not
/// wait for each other after every request; they are few, because a step is not interrupted when a foreground appears.
const MAX_REQUESTS_PER_MEMBER: u64 = 4;
/// Approximate duration, in seconds, of a step with more than one request to each member.
const STEP_S: f64 = 0.1;
/// Minimum time between two requests to a member, as a share of the interval that follows from the rate. It is below
/// 1, so that delays are made up for. The interval is bounded by [`STEP_S`], so that a step at a slow rate is not too
/// long.
const REQUEST_SPACING: f64 = 0.7;
/// Maximum number of steps that may be made up for.
const STEPS: f64 = 2.0;
/// Weight of the last step in the average rate of the members.
const LAST_STEP_WEIGHT: f64 = 0.2;
/// A step counts as mostly suspected if at least one part in this number of its sectors is suspected.
const SUSPECT_STEP_DIVISOR: u64 = 4;
/// Number of polls within the duration of a step, for its completion or the start of the next one.
const POLLS_PER_STEP: f64 = 8.0;
/// Minimum interval between these polls, in seconds.
const MIN_POLL_S: f64 = 0.001;
/// Maximum interval between these polls, in seconds.
const MAX_POLL_S: f64 = 0.005;
/// Time until the next poll while no step may begin.
const IDLE_POLL: Nanos = Nanos(20_000_000);

/// State of the direct comparison.
#[derive(Clone, Debug)]
pub(super) struct DirectComparison {
    /// Position up to which the members are read.
    pub(super) at: Sectors,
    pub(super) of: Sectors,
    /// Unit of the comparison: progress is known, and md may check, at multiples of it.
    pub(super) unit: Sectors,
    /// Length that one request to each member covers, in whole units where it is at least one unit.
    request: Sectors,
    /// Number of requests to each member in a step.
    deep: u64,
    /// Minimum time between the starts of two requests to a member.
    pub(super) apart: Nanos,
    /// Bytes that may be read now; negative after a step that the rate does not cover yet.
    credit: f64,
    /// The step in progress.
    pub(super) reads: Option<Range<Sectors>>,
    /// Rate of the members while they read, in bytes a second.
    device_rate: Option<f64>,
    /// Number of consecutive steps, up to the last, that were mostly suspected.
    pub(super) suspected: u32,
    /// Suspected ranges, in whole units, that md has yet to check.
    pub(super) suspects: VecDeque<Range<Sectors>>,
}

impl DirectComparison {
    /// A comparison from `at` to the end `of` the check, over `wide` members at once.
    pub(super) fn new(at: Sectors, of: Sectors, unit: Sectors, wide: u64) -> DirectComparison {
        let request = Sectors::of(REQUEST).0.saturating_mul(wide);
        let whole = request / unit.0.max(1) * unit.0;
        DirectComparison {
            at,
            of,
            unit,
            request: Sectors(if whole > 0 { whole } else { request }),
            deep: 1,
            apart: Nanos(0),
            credit: 0.0,
            reads: None,
            device_rate: None,
            suspected: 0,
            suspects: VecDeque::new(),
        }
    }

    /// Adds the credit of `seconds` at the allowed rate.
    pub(super) fn pass(&mut self, may: Allowed, seconds: f64) {
        if let Allowed::Rate(rate) = may {
            let one = self.request.bytes().0 as f64 / rate.max(1.0);
            self.deep = ((STEP_S / one) as u64).clamp(1, MAX_REQUESTS_PER_MEMBER);
            self.apart = Nanos((REQUEST_SPACING * one.min(STEP_S) * 1e9) as u64);
            let most = STEPS * self.step().bytes().0 as f64;
            self.credit = (self.credit + rate * seconds).min(most);
        }
    }

    /// Length of a step.
    fn step(&self) -> Sectors {
        Sectors(self.request.0.saturating_mul(self.deep))
    }

    /// The step that may begin now.
    pub(super) fn next(&self) -> Option<Range<Sectors>> {
        // With suspects, the current unit is completed first; md then checks them before anything else is read.
        let may_go_on = self.suspects.is_empty() || !self.is_whole();
        let is_due = self.reads.is_none() && may_go_on && self.credit >= 0.0;
        if !is_due || self.at >= self.of {
            return None;
        }
        // A step that reaches the end of a unit ends at a unit's end, wherever it began.
        let reaches = self.at.0.saturating_add(self.step().0);
        let whole = reaches / self.unit.0 * self.unit.0;
        let ends = if whole > self.at.0 { whole } else { reaches };
        Some(self.at..Sectors(ends).min(self.of))
    }

    /// Notes that a step begins.
    pub(super) fn begin(&mut self, step: Range<Sectors>) {
        self.credit -= Sectors(step.end.0 - step.start.0).bytes().0 as f64;
        self.reads = Some(step);
    }

    /// Takes the result of a step. Returns the average rate of the members while they read, in bytes a second; `None`
    /// where parts were read repeatedly.
    pub(super) fn complete_step(&mut self, compared: &ComparisonResult) -> Option<f64> {
        let step = self.reads.take()?;
        let bytes = Sectors(step.end.0 - step.start.0).bytes().0 as f64;
        self.at = step.end;
        for range in compared.suspects.iter() {
            self.suspect(range);
        }
        let is_much =
            SUSPECT_STEP_DIVISOR * compared.suspects.total().0 >= step.end.0 - step.start.0;
        self.suspected = if is_much { self.suspected + 1 } else { 0 };
        // The time of a step that was read repeatedly is not a measure of the rate.
        if !compared.suspects.is_empty() {
            return None;
        }
        let now = bytes / compared.read.as_secs_f64().max(1e-6);
        let device_rate = self.device_rate.get_or_insert(now);
        *device_rate += LAST_STEP_WEIGHT * (now - *device_rate);
        Some(*device_rate)
    }

    /// Adds a suspected range, extended to whole units.
    fn suspect(&mut self, range: Range<u64>) {
        let start = Sectors(range.start / self.unit.0 * self.unit.0);
        let end = Sectors(range.end.div_ceil(self.unit.0) * self.unit.0);
        match self.suspects.back_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => self.suspects.push_back(start..end),
        }
    }

    /// True if the position is at the end of a unit, so that the progress is known.
    pub(super) fn is_whole(&self) -> bool {
        self.at.0.is_multiple_of(self.unit.0) || self.at >= self.of
    }

    /// True if no step is in progress, no range is suspected, and the position is at the end of a unit.
    pub(super) fn is_at_rest(&self) -> bool {
        self.reads.is_none() && self.suspects.is_empty() && self.is_whole()
    }

    pub(super) fn rest(&self) -> Nanos {
        if self.reads.is_some() || self.credit >= 0.0 {
            let takes = self.device_rate.map_or(0.0, |device_rate| {
                self.step().bytes().0 as f64 / device_rate
            });
            Nanos(((takes / POLLS_PER_STEP).clamp(MIN_POLL_S, MAX_POLL_S) * 1e9) as u64)
        } else {
            IDLE_POLL
        }
    }
}

#[cfg(test)]
mod tests;
