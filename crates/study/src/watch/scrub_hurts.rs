//! `scrub-hurts`: an array's users wait longer while md checks or rebuilds it.
//!
//! What is compared is the mean wait of the array's own requests during the work with that of the
//! last minutes without, at no more load than then. Where the watch began in the middle of the work,
//! there is nothing to compare with, and nothing is said. Kernels before 5.14 do not time an array's
//! requests; the members' waits, which include those of the check, are taken there.

use std::collections::{HashMap, VecDeque};

use record::sample::{DeviceId, DeviceSample, SyncAction};
use record::{EventCode, Severity};

use super::history::{History, Part, Point, beginning, mean_of, median};
use super::members::arrays;
use super::words::{digits, time};
use super::{Now, Rule, Sighting};

/// Points without work that are remembered, and how many are needed.
const CALM: usize = 120;
const LEAST_CALM: usize = 20;
/// Points of work that are looked at.
const DURING_S: f64 = 10.0;
const LEAST_DURING: usize = 5;
/// Waits so many times as long hurt.
const LONGER: f64 = 2.0;
/// By so many seconds at least.
const WORTH_NAMING_S: f64 = 0.001;
/// With more load than so many times that of before, the load may be the reason.
const LOAD: f64 = 1.3;
/// An array that is asked for less has nobody to hurt.
const LEAST_OPS: f64 = 5.0;

const ADVICE: &str = "Slow the work down (sync_speed_max of the array in sysfs, or sync_max to pause it), \
                      or let it run when the load is low (disksmith array check keeps a latency target).";

/// Compares waits with and without work.
#[derive(Default)]
pub(super) struct ScrubHurts {
    /// Rates and waits of the last points without work.
    calm: HashMap<DeviceId, VecDeque<Part>>,
}

impl Rule for ScrubHurts {
    fn code(&self) -> EventCode {
        EventCode::ScrubHurts
    }

    fn forget(&mut self) {
        self.calm.clear();
    }

    fn look(&mut self, now: &Now<'_>, seen: &mut Vec<Sighting>) {
        self.calm.retain(|id, _| now.sample.device(*id).is_some());
        for array in arrays(now.sample) {
            let id = array.device.id;
            // What waits for its turn does nothing yet.
            let at_work = array.array.as_ref().filter(|state| state.is_at_work());
            match at_work.and_then(|state| state.action) {
                Some(action) => seen.extend(self.compare(now, array, action)),
                None => {
                    if let Some(part) = last(now.history, now, array) {
                        let calm = self.calm.entry(id).or_default();
                        calm.push_back(part);
                        if calm.len() > CALM {
                            calm.pop_front();
                        }
                    }
                }
            }
        }
    }
}

/// What an array did in the last point, if its requests were timed.
fn last(history: &History, now: &Now<'_>, array: &DeviceSample) -> Option<Part> {
    let points = history.all(array.device.id);
    let part = points.last()?.all;
    let wait = part.wait.or_else(|| {
        members_wait(now, array, |points| {
            points.last().map_or(&[], std::slice::from_ref)
        })
    });
    (part.ops >= LEAST_OPS && wait.is_some()).then_some(Part { wait, ..part })
}

/// The members' mean wait over a choice of their points.
fn members_wait(
    now: &Now<'_>,
    array: &DeviceSample,
    choose: impl Fn(&[Point]) -> &[Point],
) -> Option<f64> {
    let waits = now.sample.below(&array.device).filter_map(|member| {
        let points = now.history.all(member.device.id);
        mean_of(choose(points), |point| &point.all).wait
    });
    median(waits.collect())
}

impl ScrubHurts {
    fn compare(&self, now: &Now<'_>, array: &DeviceSample, action: SyncAction) -> Option<Sighting> {
        let calm = self.calm.get(&array.device.id)?;
        if calm.len() < LEAST_CALM {
            return None;
        }
        let points = now.history.last(array.device.id, DURING_S, LEAST_DURING)?;
        let during = mean_of(points, |point| &point.all);
        let count = points.len();
        let wait = during.wait.or_else(|| {
            members_wait(now, array, |points| {
                &points[points.len().saturating_sub(count)..]
            })
        })?;
        let calm_wait = median(calm.iter().filter_map(|part| part.wait).collect())?;
        let calm_ops = median(calm.iter().map(|part| part.ops).collect())?;
        let hurts = wait >= LONGER * calm_wait && wait - calm_wait >= WORTH_NAMING_S;
        if !hurts || during.ops < LEAST_OPS || during.ops > LOAD * calm_ops {
            return None;
        }
        Some(Sighting {
            text: format!(
                "Requests to {} take {} during its {}, in place of {} before, at {} IOPS.",
                array.device.name,
                time(wait),
                action.word(),
                time(calm_wait),
                digits(during.ops),
            ),
            advice: ADVICE,
            figures: vec![
                ("await_s", wait),
                ("await_s_before", calm_wait),
                ("iops", during.ops),
                ("iops_before", calm_ops),
            ],
            ..Sighting::of(array, Severity::Warn, beginning(points))
        })
    }
}
