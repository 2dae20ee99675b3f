//! `slow-member`: a member of an array is slower than its siblings at the same load.
//!
//! The rule compares the mean wait, of reads and of writes separately, with the median of the other members. A striped
//! array gives all members the same work, so that a member with a longer wait is itself slow, and all others wait for
//! it. A member that gets more or larger requests waits longer without being slow: that is `imbalance`. A member that
//! gets fewer and still waits longer is certainly slow: md reads from the less busy copy, and thus less from a slow
//! one.
//!
//! If the siblings themselves have queues, nothing is reported: when a common cause, such as a shared cap, keeps all
//! of them busy, chance decides which member has the longest queue, and that lasts. (With servers of the same speed
//! and a fixed number of requests all divisions of these into queues are equally likely: Gordon and Newell, 1967.)
//! Beside a truly slow member the others are idle for part of the time, and have no queues. Many requests in flight
//! are not yet a queue: a cloud volume serves dozens at once, each in the time that it takes alone. Queues show in the
//! waits: these are far above the shortest waits of the siblings, or, if there were queues from the beginning, vary at
//! random, while service times are nearly constant. A short excess is noise: it must hold in most of the last twenty
//! seconds.
//!
//! The screen marks a member by a shorter window, and only if its load is about that of its siblings.

use record::Severity;

use crate::median::median;
use crate::watch::format::{digits, time};
use crate::watch::history::{FlowKindPoint, FlowPoint, beginning, mean_known, mean_of, variation};
use crate::watch::members::{MemberLoad, arrays, is_rebuilt, sides};
use crate::watch::plateaus::least_wait;
use crate::watch::rule::{Rule, RuleInput, Sighting};

/// Window in seconds, and minimum number of points.
const WINDOW_S: f64 = 20.0;
const MIN_POINTS: usize = 8;
/// Minimum ratio of the wait to the siblings'.
const SLOW_RATIO: f64 = 2.0;
/// The same ratio with two members: it is unknown which one is normal, and the faster one is assumed to be.
const SLOW_RATIO_OF_TWO: f64 = 3.0;
/// Minimum ratio in a single point, and the minimum share of such points.
const SLOW_POINT_RATIO: f64 = 1.4;
const SLOW_POINT_SHARE: f64 = 0.8;
/// Factor up to which a member's request rate and size match those of its siblings.
const MATCHED: f64 = 1.5;
/// Minimum difference of waits that matters, in seconds; the kernel counts in milliseconds.
const MIN_WAIT_DIFFERENCE_S: f64 = 0.0003;
/// Number of requests in flight, and wait in seconds, up to which there is no lasting queue. The siblings of a member
/// that is half as fast are idle for half of the time, and have at most one request in flight on average (as a queue
/// with that load has).
const QUEUE: f64 = 1.5;
const LONG_S: f64 = 0.004;
/// Ratio to their shortest wait at which requests queue.
const QUEUEING: f64 = 2.0;
/// Variation of waits from point to point and between siblings, as a share of their mean, above which they depend on
/// queues.
const STEADY: f64 = 0.3;
/// Minimum number of requests a second for a conclusion about a member.
const MIN_OPS: f64 = 2.0;

const ADVICE: &str = "All members wait for this one. Compare it with the others (disksmith bench), \
                      look for a limit or an error of its own, and replace it if it stays slow.";

/// Rule for slow members.
pub(super) struct SlowMember;

impl Rule for SlowMember {
    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        for array in arrays(now.sample).filter(|array| !is_rebuilt(array)) {
            let sides = sides(array, now.sample, now.history, WINDOW_S, MIN_POINTS);
            for (index, side) in sides.iter().enumerate() {
                let kinds: [(&str, FlowKindPoint); 2] = [
                    ("Reads", |point| &point.read),
                    ("Writes", |point| &point.write),
                ];
                let slow = kinds
                    .into_iter()
                    .filter_map(|(word, part)| Some((word, excess(now, &sides, index, part)?)))
                    .max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
                if let Some((word, excess)) = slow {
                    let array = &array.device.name;
                    seen.push(sighting(side, array, word, &excess, sides.len() - 1));
                }
            }
        }
    }
}

/// Excess of a member's wait.
struct Excess {
    ratio: f64,
    wait: f64,
    median: f64,
    ops: f64,
}

fn excess(
    now: &RuleInput<'_>,
    sides: &[MemberLoad<'_>],
    which: usize,
    part: FlowKindPoint,
) -> Option<Excess> {
    let own = mean_of(sides[which].points, part);
    let others = || {
        let others = sides.iter().enumerate().filter(move |(at, _)| *at != which);
        others.map(|(_, side)| side)
    };
    let means: Vec<FlowPoint> = others().map(|side| mean_of(side.points, part)).collect();
    let load = median(means.iter().map(|mean| mean.ops).collect())?;
    let wait = own.wait?;
    let typical = median(means.iter().filter_map(|mean| mean.wait).collect())?;
    let sizes = means.iter().filter(|mean| mean.ops > 0.0);
    let size = median(sizes.map(|mean| mean.bytes / mean.ops).collect())?;
    let matched = own.ops <= load * MATCHED && own.bytes <= own.ops * size * MATCHED;
    let needed = if sides.len() == 2 {
        SLOW_RATIO_OF_TWO
    } else {
        SLOW_RATIO
    };
    if !matched
        || own.ops < MIN_OPS
        || typical <= 0.0
        || wait < needed * typical
        || wait - typical < MIN_WAIT_DIFFERENCE_S
    {
        return None;
    }
    let slow_points = (0..sides[which].points.len()).filter_map(|back| {
        let wait_at = |side: &MemberLoad<'_>| {
            let points = side.points;
            part(points.get(points.len().checked_sub(back + 1)?)?).wait
        };
        let own = wait_at(&sides[which])?;
        let typical = median(others().filter_map(wait_at).collect())?;
        Some(own >= SLOW_POINT_RATIO * typical)
    });
    let slow_points: Vec<bool> = slow_points.collect();
    let slow = slow_points.iter().filter(|slow| **slow).count();
    let is_lasting = slow_points.len() >= MIN_POINTS
        && slow as f64 >= SLOW_POINT_SHARE * slow_points.len() as f64;
    if !is_lasting || have_queues(now, others, part, typical) {
        return None;
    }
    Some(Excess {
        ratio: wait / typical,
        wait,
        median: typical,
        ops: own.ops,
    })
}

/// True if the requests of the siblings, with this typical wait, queue.
fn have_queues<'a, 'b: 'a, I: Iterator<Item = &'a MemberLoad<'b>>>(
    now: &RuleInput<'_>,
    others: impl Fn() -> I,
    part: FlowKindPoint,
    typical: f64,
) -> bool {
    let in_flight = others().filter_map(|side| mean_known(side.points, |point| point.in_flight));
    let in_flight = median(in_flight.collect()).unwrap_or(0.0);
    if in_flight < QUEUE || typical < LONG_S {
        return false;
    }
    let times_least = others().filter_map(|side| {
        let least = least_wait(now.history.all(side.device.device.id), part)?;
        Some(mean_of(side.points, part).wait? / least)
    });
    let is_far_above = median(times_least.collect()).is_none_or(|times| times >= QUEUEING);
    let waits = others().flat_map(|side| side.points);
    let waits: Vec<f64> = waits.filter_map(|point| part(point).wait).collect();
    is_far_above || variation(&waits) > STEADY
}

fn sighting(
    side: &MemberLoad<'_>,
    array: &str,
    word: &str,
    excess: &Excess,
    others: usize,
) -> Sighting {
    let device = side.device;
    Sighting {
        text: format!(
            "{word} of {} in {array} take {}, {} times the median of its {others} siblings ({}), at \
             the same load of {} IOPS.",
            device.device.name,
            time(excess.wait),
            digits(excess.ratio),
            time(excess.median),
            digits(excess.ops),
        ),
        advice: ADVICE,
        figures: vec![
            ("await_s", excess.wait),
            ("siblings_await_s", excess.median),
            ("ratio", excess.ratio),
            ("iops", excess.ops),
        ],
        ..Sighting::of(device, Severity::Warn, beginning(side.points))
    }
}

#[cfg(test)]
mod tests {
    use record::raid::Level;

    use crate::simulate::Rng;
    use crate::watch::simulated::{ClosedLoad, Demand, Disk, Host};
    use crate::watch::{EventCode, WatchEvent};

    /// The members that are found slow within a minute and a half.
    fn found(mut host: Host, seed: u64) -> Vec<String> {
        host.level = Some(Level::Zero);
        let events = host.play(90, &mut Rng::new(seed), |_, _| {});
        let is_slow = |event: &WatchEvent| event.code == EventCode::SlowMember;
        let slow = events.into_iter().filter(is_slow);
        slow.map(|event| event.name).collect()
    }

    #[test]
    fn a_slow_volume_is_found_however_many_requests_are_in_flight() {
        // Seven volumes that take 5 ms a request and one that takes ten times as long share a load, with a constant
        // number of requests in flight over all of them.
        for (seed, depth) in [(1, 16.0), (2, 32.0), (3, 64.0), (4, 128.0)] {
            let (base_s, slow_s) = (0.005, 0.05);
            let rate = depth / (7.0 * base_s + slow_s);
            let volume = Disk {
                base_s,
                demand: Demand::Rate(rate),
                ..Disk::healthy(0.0)
            };
            let mut volumes = vec![volume; 8];
            volumes[3].base_s = slow_s;
            assert_eq!(found(Host::of(volumes), seed), ["d3"], "{depth} in flight");
        }
    }

    #[test]
    fn the_longest_queue_for_a_cap_that_all_share_is_no_slow_member() {
        for (members, in_flight, per_second) in [(3, 64, 225), (4, 48, 200), (8, 64, 300)] {
            let host = || {
                let mut host = Host::of(vec![Disk::healthy(1.0); members]);
                host.crowd = Some(ClosedLoad::new(members, in_flight, per_second));
                host
            };
            let wrong = (0..20).filter(|seed| !found(host(), *seed).is_empty());
            let wrong = wrong.count();
            assert!(wrong <= 1, "{members} members: {wrong} of 20");
        }
    }

    #[test]
    fn siblings_that_wait_far_longer_than_they_did_are_in_a_queue() {
        // At a tenth of the load no member has a queue; later all do, one of them the longest.
        let mut host = Host::of(vec![Disk::healthy(0.0); 4]);
        host.level = Some(Level::Zero);
        let events = host.play(90, &mut Rng::new(6), |host, second| {
            for (number, disk) in host.disks.iter_mut().enumerate() {
                let waits_s = if number == 1 { 0.05 } else { 0.02 };
                disk.base_s = if second < 40 { 0.004 } else { waits_s };
                disk.demand = Demand::Rate(if second < 40 { 30.0 } else { 300.0 });
            }
        });
        let slow = |event: &&WatchEvent| event.code == EventCode::SlowMember;
        assert_eq!(events.iter().find(slow), None);
    }
}
