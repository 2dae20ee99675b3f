//! `imbalance`: the members of a striped array do not get the same load.
//!
//! Striping spreads large or random I/O evenly. If one member gets far more requests than the others for half a
//! minute, the file in use lies within one chunk, or the access pattern of the program coincides with the chunk size.
//! md chooses which mirror to read, so that only writes are compared, and a plain mirror is left out.

use record::Severity;
use record::raid::{Level, Placement};

use crate::median::median;
use crate::watch::format::digits;
use crate::watch::history::{FlowKindPoint, beginning, mean_of};
use crate::watch::members::{MemberLoad, arrays, is_rebuilt, sides};
use crate::watch::rule::{Rule, RuleInput, Sighting};

const WINDOW_S: f64 = 30.0;
const MIN_POINTS: usize = 10;
/// Minimum ratio of a member's load to that of the others.
const MIN_LOAD_RATIO: f64 = 1.5;
/// Minimum ratio in a single point, and the minimum share of such points.
const MIN_POINT_LOAD_RATIO: f64 = 1.25;
const POINT_SHARE: f64 = 0.8;
/// Minimum difference in Poisson standard deviations of the counts.
const MIN_POISSON_DEVIATIONS: f64 = 6.0;
/// Minimum number of requests a second on the busiest member for a conclusion.
const MIN_OPS: f64 = 10.0;

const ADVICE: &str = "The array is no faster than this member. Look for one hot file or table, and for \
                      a chunk that is a multiple of the program's own stride (disksmith sweep finds a \
                      better chunk).";

/// Rule for members that get more requests.
pub(super) struct Imbalance;

impl Rule for Imbalance {
    fn observe(&mut self, now: &RuleInput<'_>, seen: &mut Vec<Sighting>) {
        for array in arrays(now.sample).filter(|array| !is_rebuilt(array)) {
            let part: FlowKindPoint = match array.device.raid_level().map(Level::placement) {
                Some(Placement::Striped | Placement::Parity { rotates: true, .. }) => {
                    |point| &point.all
                }
                Some(Placement::StripedCopies) => |point| &point.write,
                _ => continue,
            };
            let sides = sides(array, now.sample, now.history, WINDOW_S, MIN_POINTS);
            if let Some((side, own, others)) = overloaded_member(&sides, part) {
                let began = beginning(side.points);
                seen.push(Sighting {
                    text: format!(
                        "{} of {} gets {} IOPS, and the median of the other members is {}.",
                        side.device.device.name,
                        array.device.name,
                        digits(own),
                        digits(others),
                    ),
                    advice: ADVICE,
                    figures: vec![("iops", own), ("others_iops", others)],
                    ..Sighting::of(array, Severity::Warn, began)
                });
            }
        }
    }
}

/// The member with too much load, its rate, and the others' median.
fn overloaded_member<'a, 'b>(
    sides: &'a [MemberLoad<'b>],
    part: FlowKindPoint,
) -> Option<(&'a MemberLoad<'b>, f64, f64)> {
    let rate = |side: &MemberLoad<'_>| mean_of(side.points, part).ops;
    let (busiest, side) = sides
        .iter()
        .enumerate()
        .max_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))?;
    let others = || {
        let others = sides.iter().enumerate().filter(|(at, _)| *at != busiest);
        others.map(|(_, side)| side)
    };
    let own = rate(side);
    let typical = median(others().map(rate).collect())?;
    let seconds: f64 = side.points.iter().map(|point| point.seconds).sum();
    let is_chance = (own - typical) * seconds < MIN_POISSON_DEVIATIONS * (own * seconds).sqrt();
    if own < MIN_OPS || own < MIN_LOAD_RATIO * typical || is_chance {
        return None;
    }
    let more_in_point = |back: &usize| {
        let rate_at = |side: &MemberLoad<'_>| {
            let points = side.points;
            Some(part(points.get(points.len().checked_sub(back + 1)?)?).ops)
        };
        let typical = median(others().filter_map(rate_at).collect());
        rate_at(side)
            .zip(typical)
            .is_some_and(|(own, typical)| own > 0.0 && own >= MIN_POINT_LOAD_RATIO * typical)
    };
    let hot_points = (0..side.points.len()).filter(more_in_point).count();
    let lasts = hot_points as f64 >= POINT_SHARE * side.points.len() as f64;
    lasts.then_some((side, own, typical))
}
