//! Detection of recorded I/O that was limited by its disk's cap.
//!
//! If requests queued and the rate was as flat as only a token bucket makes it ([`crate::plateau`]), that limit
//! determined the times at which a database issued its requests: without it they would have been earlier. Issue times
//! alone do not show it. A limit cannot be exceeded for long, so that a level that the load exceeded elsewhere is not
//! a limit.

use crate::plateau::{self, MIN_SLICES, Plateau, Throughput};

/// Multiple of the base latency from which the requests of a slice queue.
const QUEUES: f64 = 1.5;
/// Excess over the level, as a share, above which rates outside of the segment speak against a limit.
const MAX_EXCESS: f64 = 0.15;
/// Maximum share of slices above it: saved credit is spent in a burst.
const MAX_SHARE_ABOVE: f64 = 0.1;

/// Minimum number of requests in flight in every slice; with fewer the disk may have been idle in between.
const MIN_IN_FLIGHT: f64 = 4.0;

/// Recorded load in one slice of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// I/Os completed.
    pub ios: f64,
    /// Bytes completed.
    pub bytes: f64,
    /// I/Os in flight, as a mean over the slice.
    pub in_flight: f64,
}

/// A limit that the load reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldLimit {
    /// The level, in operations and bytes a second.
    pub plateau: Plateau,
    /// Share of the time at the limit.
    pub share: f64,
}

/// The limit at which the load was for longest; `None` without one. `base_latency_s` is the latency of a request that
/// does not wait.
pub fn held(load: &[Load], slice_s: f64, base_latency_s: f64) -> Option<HeldLimit> {
    let queues = |slice: &Load| {
        slice.in_flight * slice_s > QUEUES * base_latency_s * slice.ios && slice.ios > 0.0
    };
    let mut best: Option<HeldLimit> = None;
    let mut start = 0;
    while start < load.len() {
        let length = load[start..]
            .iter()
            .take_while(|slice| queues(slice))
            .count();
        let stretch = &load[start..start + length];
        if let Some(plateau) = level_of(stretch, slice_s, Some(base_latency_s))
            && !is_passed(load, start..start + length, plateau, slice_s)
        {
            let share = length as f64 / load.len() as f64;
            if best.is_none_or(|best| best.share < share) {
                best = Some(HeldLimit { plateau, share });
            }
        }
        start += length.max(1);
    }
    best.or_else(|| throughout(load, slice_s))
}

/// The limit of a load that queued from start to end. No request ran without waiting, so that only the flatness of the
/// rate shows the limit.
fn throughout(load: &[Load], slice_s: f64) -> Option<HeldLimit> {
    let begin = load.iter().position(|slice| slice.ios > 0.0)?;
    let end = load.iter().rposition(|slice| slice.ios > 0.0)? + 1;
    let busy = load.get(begin..end)?;
    let inner = busy.get(1..busy.len().checked_sub(1)?)?;
    let always = inner.iter().all(|slice| slice.in_flight >= MIN_IN_FLIGHT);
    let plateau = level_of(busy, slice_s, None).filter(|_| always)?;
    Some(HeldLimit {
        plateau,
        share: 1.0,
    })
}

/// The flat level of a segment in which requests queue throughout; `None` without one. Its first and last slice partly
/// belong to the neighbouring segments.
fn level_of(stretch: &[Load], slice_s: f64, base_latency_s: Option<f64>) -> Option<Plateau> {
    if stretch.len() < MIN_SLICES + 2 {
        return None;
    }
    let inner = &stretch[1..stretch.len() - 1];
    let of = |of: fn(&Load) -> f64| inner.iter().map(of).collect::<Vec<f64>>();
    let (ops, bytes, in_flight) = (of(|x| x.ios), of(|x| x.bytes), of(|x| x.in_flight));
    let depth = in_flight.iter().sum::<f64>() / inner.len() as f64;
    let rate = ops.iter().sum::<f64>() / inner.len() as f64 / slice_s;
    plateau::assess(&Throughput {
        ops: &ops,
        bytes: &bytes,
        slice_s,
        depth,
        mean_latency_s: depth / rate,
        base_latency_s,
    })
}

/// True if the load exceeded the level outside of the segment, for more than a burst.
fn is_passed(
    load: &[Load],
    stretch: std::ops::Range<usize>,
    plateau: Plateau,
    slice_s: f64,
) -> bool {
    let outside = load[..stretch.start].iter().chain(&load[stretch.end..]);
    let above = outside.filter(|slice| {
        let (ios, bytes) = (slice.ios / slice_s, slice.bytes / slice_s);
        ios > plateau.ops_per_s * (1.0 + MAX_EXCESS)
            && bytes > plateau.bytes_per_s * (1.0 + MAX_EXCESS)
    });
    above.count() as f64 > MAX_SHARE_ABOVE * stretch.len() as f64
}
