//! Changes of response times that are found without a marker.

use std::collections::HashMap;
use std::sync::Mutex;

use study::change_points::{ChangePoint, MIN_STRETCH_SLOTS, change_points};
use study::verdict::ServiceTimes;

use crate::axis::{Axis, Seconds};
use crate::sources::pool::lock;

/// Number of slots of a block, which is searched as a whole. The time of a search grows with its square.
const BLOCK: usize = 120;
/// Distance of two blocks in slots. Blocks overlap; a change is taken from the block in whose middle it lies.
const BLOCK_STEP: usize = BLOCK / 2;
/// Slots within which two moments are one: fewer could not be compared, after the one that is left out.
const SAME_MOMENT_SLOTS: usize = MIN_STRETCH_SLOTS;
/// Maximum number of cached blocks.
const MAX_CACHED_BLOCKS: usize = 10_000;

/// A change that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundChange {
    /// First slot after the change.
    pub(crate) slot: usize,
}

/// True if a change at one slot may belong to a marker at another.
pub(crate) fn is_one(marked: usize, found: usize) -> bool {
    found.abs_diff(marked) <= SAME_MOMENT_SLOTS
}

/// A block of a figure of a tag, up to the last slot that is complete.
type Key = (String, &'static str, Seconds, Seconds);

/// Searches for changes, and caches the results by block.
#[derive(Default)]
pub(crate) struct Search {
    known: Mutex<HashMap<Key, Vec<ChangePoint>>>,
}

impl Search {
    /// Changes of a tag's response times, in order of time.
    pub(crate) fn changes(
        &self,
        tag: &str,
        axis: &Axis,
        service: &ServiceTimes,
    ) -> Vec<FoundChange> {
        let figures = [("p50", &service.p50_ms), ("p95", &service.p95_ms)];
        let found = figures
            .iter()
            .flat_map(|(name, values)| self.of_figure((tag, name), axis, values));
        let mut found: Vec<ChangePoint> = found.collect();
        found.sort_by(|one, other| one.p.total_cmp(&other.p));
        // Changes in two figures, or at the seam of two blocks, are merged into the clearest of them.
        let mut slots: Vec<usize> = Vec::new();
        for ChangePoint { at, .. } in found {
            if slots.iter().all(|slot| !is_one(*slot, at)) {
                slots.push(at);
            }
        }
        slots.sort_unstable();
        slots.into_iter().map(|slot| FoundChange { slot }).collect()
    }

    fn of_figure(
        &self,
        (tag, name): (&str, &'static str),
        axis: &Axis,
        values: &[f64],
    ) -> Vec<ChangePoint> {
        let starts = axis.starts();
        let Some(first) = starts.first() else {
            return Vec::new();
        };
        // Blocks begin at the same times for every request, so that cached results can be reused.
        let length = BLOCK_STEP as i64 * axis.slot_s();
        let lead = (length - first.rem_euclid(length)) % length;
        let lead = usize::try_from(lead / axis.slot_s()).unwrap_or(0);
        let mut begins: Vec<usize> = (lead..starts.len()).step_by(BLOCK_STEP).collect();
        // The stretch before the first whole block.
        if lead > 0 {
            begins.insert(0, 0);
        }
        let mut found = Vec::new();
        for begin in begins {
            let end = (begin + BLOCK).min(starts.len());
            let is_first = begin == 0;
            let is_last = end == starts.len();
            let key = (tag.to_owned(), name, starts[begin], starts[end - 1]);
            let known = lock(&self.known).get(&key).cloned();
            let within = known.unwrap_or_else(|| {
                let within = search(&values[begin..end]);
                self.remember(key, &within);
                within
            });
            let is_middle = |change: &ChangePoint| {
                let is_behind = is_first || change.at >= BLOCK_STEP / 2;
                is_behind && (is_last || change.at < BLOCK - BLOCK_STEP / 2)
            };
            let of_axis = |change: ChangePoint| ChangePoint {
                at: begin + change.at,
                ..change
            };
            found.extend(within.into_iter().filter(is_middle).map(of_axis));
            if is_last {
                break;
            }
        }
        found
    }

    fn remember(&self, key: Key, within: &[ChangePoint]) {
        let mut known = lock(&self.known);
        if known.len() >= MAX_CACHED_BLOCKS {
            known.clear();
        }
        known.insert(key, within.to_vec());
    }
}

/// Changes within a range of slots. Slots without requests are left out: they have no response time.
fn search(values: &[f64]) -> Vec<ChangePoint> {
    let known: Vec<usize> = (0..values.len())
        .filter(|at| values[*at].is_finite())
        .collect();
    let series: Vec<f64> = known.iter().map(|at| values[*at]).collect();
    change_points(&series)
        .into_iter()
        .map(|change| ChangePoint {
            at: known[change.at],
            ..change
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(values: Vec<f64>) -> ServiceTimes {
        ServiceTimes {
            p50_ms: values.clone(),
            p95_ms: values,
            ..ServiceTimes::default()
        }
    }

    #[test]
    fn a_change_is_found_once_wherever_blocks_begin() {
        for from in [0, 600, 1800, 3540] {
            let axis = Axis::uniform(from, from + 300 * 60, 60);
            let noise = |slot: usize| 1.0 + 0.02 * ((slot * 7919) % 13) as f64;
            let values = (0..300).map(|slot| noise(slot) * if slot < 150 { 10.0 } else { 20.0 });
            let search = Search::default();
            let service = service(values.collect());
            let found = search.changes("a", &axis, &service);
            assert!(
                found.len() == 1 && found[0].slot.abs_diff(150) <= 1,
                "{from}: {found:?}"
            );
            assert_eq!(search.changes("a", &axis, &service), found);
        }
    }

    #[test]
    fn silence_and_a_single_spike_are_no_changes() {
        let axis = Axis::uniform(0, 240 * 60, 60);
        let noise = |slot: usize| 10.0 + 0.2 * ((slot * 7919) % 13) as f64;
        let mut values: Vec<f64> = (0..240).map(noise).collect();
        values[100] = 5000.0;
        values[150..200].fill(f64::NAN);
        assert_eq!(Search::default().changes("a", &axis, &service(values)), []);
    }
}
