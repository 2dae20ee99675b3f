//! `queue-full`: the disk's queues are full, so that programs wait before they can submit a request.

use record::Severity;

use crate::watch::format::digits;
use crate::watch::history::{Point, beginning, mean_known};
use crate::watch::rule::{Rule, RuleInput, Sighting};

const WINDOW_S: f64 = 10.0;
const MIN_POINTS: usize = 5;
/// Minimum share of the depth in use, and the minimum share of such points.
const FULL_SHARE: f64 = 0.9;
const POINT_SHARE: f64 = 0.8;

const ADVICE: &str = "Reduce the number of concurrent requests, or spread the load over more disks; a deeper queue \
                      (queue/nr_requests) only moves the wait.";

/// Rule for full queues.
pub(super) struct QueueFull;

impl Rule for QueueFull {
    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        for device in now.disks() {
            let Some(depth) = device.device.queue_depth.map(f64::from) else {
                continue;
            };
            let last = now.history.last(device.device.id, WINDOW_S, MIN_POINTS);
            let Some(points) = last else {
                continue;
            };
            let is_full = |point: &&Point| {
                let count = point.in_flight_at_end;
                count.is_some_and(|count| count >= FULL_SHARE * depth)
            };
            let full = points.iter().filter(is_full).count();
            if (full as f64) < POINT_SHARE * points.len() as f64 {
                continue;
            }
            let mean = mean_known(points, |point| point.in_flight_at_end).unwrap_or(depth);
            seen.push(Sighting {
                text: format!(
                    "{} of the {depth} requests that the queues of {} can hold are in flight.",
                    digits(mean),
                    device.device.name,
                ),
                advice: ADVICE,
                figures: vec![("in_flight", mean), ("queue_depth", depth)],
                ..Sighting::of(device, Severity::Warn, beginning(points))
            });
        }
    }
}
