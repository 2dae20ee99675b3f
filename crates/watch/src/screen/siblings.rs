//! A member's latency compared with the median of its siblings', over the last seconds.
//!
//! The finding `slow-member` uses a longer span and is more certain; this is the figure in the row, by the same bounds
//! of latency. The finding also includes a member that gets far fewer requests than its siblings, as md does with the
//! slower copy of a mirror, and excludes cases in which the siblings have queues; the sign in the row considers
//! neither.

use record::Nanos;
use record::sample::FlowKind;
use study::median::median;

use super::frame::DeviceRow;
use super::history::History;

/// Span that is compared: a single second varies too much.
const SPAN: Nanos = Nanos::from_secs(10);
/// Ratio to the siblings' median latency from which a member stands out.
const SLOW: f64 = 2.0;
/// The ratio with two members, of which it is unknown which one is normal.
const SLOW_OF_TWO: f64 = 3.0;
/// Difference of latencies, in seconds, below which no member stands out.
const WORTH_NAMING_S: f64 = 0.0003;
/// Factor within which loads count as equal.
const MATCHED: f64 = 1.5;
/// Minimum rate of requests, per second, at which a member's latency is compared.
const MIN_OPS: f64 = 2.0;

/// Comparison of a member with its siblings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SiblingComparison {
    /// Index of its row in the frame.
    pub place: usize,
    /// Latency of reads or writes divided by the median of the siblings'; the larger of the two ratios.
    pub ratio: f64,
    /// True if the member is far slower than its siblings at the same load.
    pub stands_out: bool,
}

/// Compares the members of an array whose loads should be equal, each with the others. `below` are their indices in the
/// frame with this number.
pub(super) fn compare(
    history: &History,
    number: u64,
    array: &DeviceRow,
    below: &[usize],
) -> Vec<SiblingComparison> {
    let Some(frame) = history.get(number) else {
        return Vec::new();
    };
    let takes_part = |place: &&usize| {
        let id = Some(frame.rows[**place].device.id);
        let mut members = array.array.iter().flat_map(|state| &state.members);
        let odd = ["faulty", "spare", "write_mostly"];
        let member = members.find(|member| member.device == id);
        let is_odd = |word: &String| odd.contains(&word.as_str());
        !member.is_some_and(|member| member.state.iter().any(is_odd))
    };
    let places: Vec<usize> = below.iter().filter(takes_part).copied().collect();
    let mut best: Vec<Option<SiblingComparison>> = vec![None; places.len()];
    for kind in [FlowKind::Read, FlowKind::Write] {
        let wait = |place: &usize| {
            let device = (frame.rows[*place].device.id, *place);
            history.wait(device, number, SPAN, kind)
        };
        let waits: Vec<Option<(f64, f64)>> = places.iter().map(wait).collect();
        for (index, place) in places.iter().enumerate() {
            let found = against(&waits, index, *place);
            let is_larger = |found: &SiblingComparison| {
                best[index]
                    .as_ref()
                    .is_none_or(|best| found.ratio > best.ratio)
            };
            if let Some(found) = found.filter(is_larger) {
                best[index] = Some(found);
            }
        }
    }
    best.into_iter().flatten().collect()
}

/// Compares the latency and load of one member with those of the others.
fn against(all: &[Option<(f64, f64)>], index: usize, place: usize) -> Option<SiblingComparison> {
    let (wait, ops) = all[index]?;
    let others = all.iter().enumerate().filter(|(at, _)| *at != index);
    let others: Vec<(f64, f64)> = others.filter_map(|(_, other)| *other).collect();
    let typical = median(others.iter().map(|other| other.0).collect())?;
    let load = median(others.iter().map(|other| other.1).collect())?;
    if typical <= 0.0 {
        return None;
    }
    let ratio = wait / typical;
    let slow = if all.len() == 2 { SLOW_OF_TWO } else { SLOW };
    let matched = ops >= load / MATCHED && ops <= load * MATCHED;
    Some(SiblingComparison {
        place,
        ratio,
        stands_out: matched && ops >= MIN_OPS && ratio >= slow && wait - typical >= WORTH_NAMING_S,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outstanding(waits_ms: &[(f64, f64)]) -> Vec<(f64, bool)> {
        let all: Vec<_> = waits_ms
            .iter()
            .map(|(wait, ops)| Some((wait / 1e3, *ops)))
            .collect();
        let of = |index: usize| against(&all, index, index).unwrap();
        let all = (0..all.len()).map(of);
        all.map(|one| ((one.ratio * 100.0).round() / 100.0, one.stands_out))
            .collect()
    }

    #[test]
    fn a_member_stands_out_at_the_same_load_only() {
        let at = |ops: f64| outstanding(&[(1.0, 100.0), (1.2, 100.0), (1.1, 100.0), (5.5, ops)]);
        assert_eq!(at(90.0)[3], (5.0, true));
        assert!(!at(90.0)[0].1);
        assert_eq!(at(200.0)[3], (5.0, false), "it has more to do");
        assert_eq!(at(1.0)[3], (5.0, false), "one request is no measure");
    }

    #[test]
    fn of_two_the_slower_one_must_be_far_slower() {
        assert!(!outstanding(&[(1.0, 100.0), (2.9, 100.0)])[1].1);
        assert!(outstanding(&[(1.0, 100.0), (3.1, 100.0)])[1].1);
    }

    #[test]
    fn microseconds_hurt_nobody() {
        assert!(!outstanding(&[(0.05, 100.0), (0.05, 100.0), (0.3, 100.0)])[2].1);
    }
}
