//! `cold`: blocks of a restored volume are read for the first time, and fetched from the snapshot.
//!
//! Counters do not show which blocks are read. What they show is that reads are slow although few are in flight and
//! the disk does far less than it can: slow compared with earlier reads of the same disk, with its own writes, or,
//! without such data, with any healthy disk. The rate must vary, as a mixture of cold and warm blocks does; a cap is
//! flat. A read that is slow for another reason (a neighbour in the cloud) looks the same, so this is a note. A member
//! of an array whose siblings read fast is not called cold: the volumes of an array are restored together, and a fault
//! of one alone is `slow-member`. The proof is to read the same again: then it is fast (`disksmith warm --check`).

use std::collections::HashMap;

use record::sample::{ArraySample, DeviceId, DeviceKind, DeviceSample, Sample};
use record::{Nanos, Severity};

use crate::median::median;
use crate::watch::format::{digits, time};
use crate::watch::history::{Point, beginning, mean_known, mean_of, variation};
use crate::watch::members::arrays;
use crate::watch::rule::{Rule, RuleInput, Sighting};

const WINDOW_S: f64 = 15.0;
const MIN_POINTS: usize = 8;
/// Minimum number of reads for a conclusion.
const MIN_READS: f64 = 30.0;
/// Minimum latency as a multiple of the disk's own.
const SLOW_RATIO: f64 = 4.0;
/// Minimum latency of a slow read, in seconds.
const MIN_SLOW_S: f64 = 0.003;
/// Latency of a slow read without any data about the disk, in seconds, for one request at a time: two that share a low
/// cap wait as long. A healthy mechanical disk takes some 15 ms for a read at a random position, and twice that behind
/// another read, or if the host delays its guest's processor; a fetch from a snapshot takes tens of milliseconds more.
const SLOW_UNKNOWN_DISK_S: f64 = 0.04;
/// Maximum number of requests in flight for that latency.
const MAX_IN_FLIGHT_UNKNOWN_DISK: f64 = 1.3;
/// Minimum latency as a multiple of the writes' latency, if there are writes: a cause that makes all requests slow is
/// no cold block.
const MIN_READ_WRITE_RATIO: f64 = 2.0;
/// Minimum latency as a multiple of the siblings' wait, as for `slow-member`.
const SLOW_SIBLING_RATIO: f64 = 2.0;
/// Number of requests in flight above which the queue may explain the wait of reads.
const SHORT_QUEUE: f64 = 5.0;
/// Minimum load, as a multiple of the present one, at which the disk was seen to have the short wait: then the load
/// does not explain the slow reads. The margin is for chance.
const IDLE: f64 = 1.25;
/// Variation of a rate below which a limit holds it.
const MIN_RATE_VARIATION: f64 = 0.05;
/// Number of consecutive points, and minimum number of reads in them, for the best waits.
const RUN: usize = 5;
const RUN_READS: f64 = 20.0;

const ADVICE: &str = "If the volume was restored from a snapshot, warm it before use (disksmith warm); \
                      if not, check the other volumes and the path to it.";

/// Rule for slow first reads.
#[derive(Default)]
pub(super) struct Cold {
    /// Last time at which md was seen to check or rebuild the arrays on these devices.
    worked_on: HashMap<DeviceId, Nanos>,
}

impl Rule for Cold {
    fn forget(&mut self) {
        self.worked_on.clear();
    }

    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        // A check of an array reads a lot while its users wait. After its end it is still within the window.
        let elapsed = now.sample.at.elapsed;
        self.worked_on
            .retain(|_, last| (elapsed - *last).as_secs_f64() <= WINDOW_S);
        let at_work = maintained_devices(now.sample);
        self.worked_on.extend(at_work.map(|id| (id, elapsed)));
        let volumes = now.disks().filter(|one| {
            one.device.kind == DeviceKind::Disk && !self.worked_on.contains_key(&one.device.id)
        });
        for device in volumes {
            let id = device.device.id;
            let Some(points) = now.history.last(id, WINDOW_S, MIN_POINTS) else {
                continue;
            };
            let Some(slow) = slow_reads(points, now.history.all(id)) else {
                continue;
            };
            if is_alone(&slow, id, points.len(), now) {
                continue;
            }
            seen.push(Sighting {
                text: format!(
                    "Reads of {} take {} at only {} IOPS and {} in flight; {}. First reads after a restore from a \
                     snapshot take that long.",
                    device.device.name,
                    time(slow.wait),
                    digits(slow.ops),
                    digits(slow.in_flight),
                    slow.against,
                ),
                advice: ADVICE,
                figures: vec![
                    ("read_await_s", slow.wait),
                    ("read_iops", slow.ops),
                    ("in_flight", slow.in_flight),
                ],
                ..Sighting::of(device, Severity::Note, beginning(points))
            });
        }
    }
}

/// Slow reads at low load.
struct SlowReads {
    wait: f64,
    ops: f64,
    in_flight: f64,
    against: String,
}

fn slow_reads(points: &[Point], all: &[Point]) -> Option<SlowReads> {
    let read = mean_of(points, |point| &point.read);
    let seconds: f64 = points.iter().map(|point| point.seconds).sum();
    let wait = read.wait?;
    let in_flight = mean_known(points, |point| point.in_flight)?;
    let rates: Vec<f64> = points.iter().map(|point| point.all.ops).collect();
    // A disk that hangs for a while is slow too, which is another finding.
    let hangs = |point: &Point| {
        point.all.ops <= 0.0 && point.in_flight_at_end.is_some_and(|count| count > 0.0)
    };
    let few = read.ops * seconds < MIN_READS;
    if few
        || points.iter().any(hangs)
        || wait < MIN_SLOW_S
        || in_flight > SHORT_QUEUE
        || variation(&rates) < MIN_RATE_VARIATION
    {
        return None;
    }
    let write = mean_of(points, |point| &point.write);
    let best = best_reads(all, read.bytes / read.ops);
    let own_writes = write.wait.filter(|_| write.ops * seconds >= MIN_READS);
    if own_writes.is_some_and(|write| wait < MIN_READ_WRITE_RATIO * write) {
        return None;
    }
    let against = match (best, own_writes) {
        (Some((fast, ops)), _) if wait >= SLOW_RATIO * fast => {
            if ops < IDLE * read.ops {
                return None;
            }
            format!(
                "earlier reads of this disk took {} at {} IOPS",
                time(fast),
                digits(ops)
            )
        }
        (_, Some(write)) if wait >= SLOW_RATIO * write => {
            format!("its writes take {}", time(write))
        }
        _ if wait >= SLOW_UNKNOWN_DISK_S && in_flight <= MAX_IN_FLIGHT_UNKNOWN_DISK => {
            "a healthy disk takes far less".to_owned()
        }
        _ => return None,
    };
    Some(SlowReads {
        wait,
        ops: read.ops,
        in_flight,
        against,
    })
}

/// The shortest mean wait of reads of about this size in a few consecutive points, and their rate.
fn best_reads(points: &[Point], size: f64) -> Option<(f64, f64)> {
    points
        .windows(RUN)
        .filter_map(|run| {
            let read = mean_of(run, |point| &point.read);
            let seconds: f64 = run.iter().map(|point| point.seconds).sum();
            let alike = (0.5..=2.0).contains(&(read.bytes / read.ops / size));
            // If sizes are unknown, all count as equal.
            let counts = read.ops * seconds >= RUN_READS && (alike || size <= 0.0);
            let wait = read.wait.filter(|_| counts)?;
            Some((wait, read.ops))
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))
}

/// True if the other members of an array with this device read much faster at the same time.
fn is_alone(slow: &SlowReads, id: DeviceId, points: usize, now: &RuleInput<'_>) -> bool {
    let with_it = |array: &&DeviceSample| array.device.lies_on.contains(&id);
    arrays(now.sample).filter(with_it).any(|array| {
        let others = array.device.lies_on.iter().filter(|other| **other != id);
        let waits = others.filter_map(|other| {
            let all = now.history.all(*other);
            let lately = &all[all.len().saturating_sub(points)..];
            mean_of(lately, |point| &point.read).wait
        });
        median(waits.collect()).is_some_and(|typical| slow.wait >= SLOW_SIBLING_RATIO * typical)
    })
}

/// The devices below arrays that md checks or rebuilds: their members, and the disks of members that are partitions.
fn maintained_devices(sample: &Sample) -> impl Iterator<Item = DeviceId> {
    let is_at_work = |device: &&DeviceSample| {
        let state = device.array.as_ref();
        state.is_some_and(ArraySample::is_at_work)
    };
    let at_work = sample.devices.iter().filter(is_at_work);
    let members: Vec<DeviceId> = at_work
        .flat_map(|array| array.device.lies_on.iter().copied())
        .collect();
    let below = members
        .iter()
        .filter_map(|id| sample.device(*id))
        .flat_map(|member| member.device.lies_on.iter().copied());
    let below: Vec<DeviceId> = below.collect();
    members.into_iter().chain(below)
}
