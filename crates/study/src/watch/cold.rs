//! `cold`: blocks of a restored volume are read for the first time, and fetched from the snapshot.
//!
//! Counters do not say which blocks are read. What is seen is that reads are slow though few are in
//! flight and the disk does far less than it can: slow against what the same disk was seen to take,
//! against its own writes, or, where nothing better is known, slower than a disk in good health takes.
//! The rate must wander, as a mixture of cold and warm blocks does; a cap is flat. A read that is
//! slow for another reason (a neighbour in the cloud) looks the same, so this is a note. The proof is
//! to read the same again: it is fast then (`disksmith warm --check`).

use record::sample::DeviceKind;
use record::{EventCode, Severity};

use super::history::{Point, beginning, mean_known, mean_of, variation};
use super::words::{digits, time};
use super::{Now, Rule, Sighting};

const WINDOW_S: f64 = 15.0;
const LEAST_POINTS: usize = 8;
/// Fewer reads say nothing.
const LEAST_READS: f64 = 30.0;
/// So many times what the disk can do is slow.
const SLOW: f64 = 4.0;
/// And at least so many seconds.
const LEAST_S: f64 = 0.003;
/// Where nothing better is known, so many, with no more in flight than this.
const SLOW_AT_ALL_S: f64 = 0.025;
const ALONE: f64 = 2.5;
/// More in flight than this may be why they wait.
const FEW: f64 = 5.0;
/// The disk must have been seen to do so many times as much, where anything was seen.
const IDLE: f64 = 2.0;
/// A rate that varies less is held by something.
const WANDERS: f64 = 0.05;
/// The best waits are those of so many points in a row, with so many reads.
const RUN: usize = 5;
const RUN_READS: f64 = 20.0;

const ADVICE: &str = "If the volume was restored from a snapshot, warm it before it is used (disksmith warm); \
                      if not, look at its neighbours and at the path to it.";

/// Looks for slow first reads.
pub(super) struct Cold;

impl Rule for Cold {
    fn code(&self) -> EventCode {
        EventCode::Cold
    }

    fn look(&mut self, now: &Now<'_>, seen: &mut Vec<Sighting>) {
        let volumes = now
            .disks()
            .filter(|one| one.device.kind == DeviceKind::Disk);
        for device in volumes {
            let id = device.device.id;
            let Some(points) = now.history.last(id, WINDOW_S, LEAST_POINTS) else {
                continue;
            };
            let Some(slow) = slow_reads(points, now.history.all(id)) else {
                continue;
            };
            seen.push(Sighting {
                text: format!(
                    "Reads of {} take {} at only {} IOPS and {} in flight; {}. Blocks that are read for \
                     the first time after a restore look like this.",
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
struct Slow {
    wait: f64,
    ops: f64,
    in_flight: f64,
    against: String,
}

fn slow_reads(points: &[Point], all: &[Point]) -> Option<Slow> {
    let read = mean_of(points, |point| &point.read);
    let seconds: f64 = points.iter().map(|point| point.seconds).sum();
    let wait = read.wait?;
    let in_flight = mean_known(points, |point| point.in_flight)?;
    let rates: Vec<f64> = points.iter().map(|point| point.all.ops).collect();
    // A disk that hangs for a while is slow too, and that is another finding.
    let hangs = |point: &Point| {
        point.all.ops <= 0.0 && point.in_flight_at_end.is_some_and(|count| count > 0.0)
    };
    let few = read.ops * seconds < LEAST_READS;
    if few
        || points.iter().any(hangs)
        || wait < LEAST_S
        || in_flight > FEW
        || variation(&rates) < WANDERS
    {
        return None;
    }
    let write = mean_of(points, |point| &point.write);
    let best = best_reads(all);
    let own_writes = write.wait.filter(|_| write.ops * seconds >= LEAST_READS);
    let against = match (best, own_writes) {
        (Some((fast, ops)), _) if wait >= SLOW * fast => {
            if ops < IDLE * read.ops {
                return None;
            }
            format!(
                "this disk was seen to take {} at {} IOPS",
                time(fast),
                digits(ops)
            )
        }
        (_, Some(write)) if wait >= SLOW * write => {
            format!("its writes take {}", time(write))
        }
        _ if wait >= SLOW_AT_ALL_S && in_flight <= ALONE => {
            "a disk in good health takes far less".to_owned()
        }
        _ => return None,
    };
    Some(Slow {
        wait,
        ops: read.ops,
        in_flight,
        against,
    })
}

/// The least mean wait of reads in a few points in a row, and their rate then.
fn best_reads(points: &[Point]) -> Option<(f64, f64)> {
    points
        .windows(RUN)
        .filter_map(|run| {
            let read = mean_of(run, |point| &point.read);
            let seconds: f64 = run.iter().map(|point| point.seconds).sum();
            let wait = read.wait.filter(|_| read.ops * seconds >= RUN_READS)?;
            Some((wait, read.ops))
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))
}
