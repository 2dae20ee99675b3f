//! `small-io`: a disk is kept busy by many small requests, where fewer large ones would do.
//!
//! Cloud volumes reach their limit of requests long before that of bytes if requests are small. Pages of a database
//! are small for a reason; below 8 KiB there rarely is one. The mean must be nearer to a page of memory (4 KiB) than
//! to 8 KiB: a few metadata requests among pages of 8 KiB, as PostgreSQL has them, do not count as small requests.

use record::Severity;

use crate::watch::format::{digits, rate};
use crate::watch::history::{beginning, mean_known, mean_of};
use crate::watch::rule::{Rule, RuleInput, Sighting};

const WINDOW_S: f64 = 30.0;
const MIN_POINTS: usize = 10;
/// Mean size below which requests are called small, in bytes.
const SMALL: f64 = 6144.0;
/// Minimum rate of requests, in requests a second.
const MIN_REQUESTS_PER_S: f64 = 100.0;
/// Minimum share of the time for which the disk is busy.
const MIN_BUSY_SHARE: f64 = 0.9;
/// Minimum mean number of requests in flight.
const IN_FLIGHT: f64 = 0.9;

const ADVICE: &str = "Larger requests move more data with the same IOPS: check read-ahead, the page or record \
                      size of the program, and syncs after every small write.";

/// Rule for many small requests.
pub(super) struct SmallIo;

impl Rule for SmallIo {
    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        for device in now.disks() {
            let last = now.history.last(device.device.id, WINDOW_S, MIN_POINTS);
            let Some(points) = last else {
                continue;
            };
            let all = mean_of(points, |point| &point.all);
            let busy = mean_known(points, |point| point.busy);
            let in_flight = mean_known(points, |point| point.in_flight);
            let loaded = busy.is_none_or(|busy| busy >= MIN_BUSY_SHARE)
                && in_flight.is_some_and(|count| count >= IN_FLIGHT);
            let size = all.bytes / all.ops;
            // Requests of zero bytes come from a source that does not report sizes.
            if all.ops < MIN_REQUESTS_PER_S || !loaded || size <= 0.0 || size >= SMALL {
                continue;
            }
            seen.push(Sighting {
                text: format!(
                    "{} is kept busy by {} requests a second of {} KiB on average, which move {}.",
                    device.device.name,
                    digits(all.ops),
                    digits(size / 1024.0),
                    rate(all.bytes),
                ),
                advice: ADVICE,
                figures: vec![
                    ("iops", all.ops),
                    ("mean_size_bytes", size),
                    ("bytes_per_s", all.bytes),
                ],
                ..Sighting::of(device, Severity::Note, beginning(points))
            });
        }
    }
}
