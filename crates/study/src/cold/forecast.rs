//! Forecast of the time to read a volume once.

use super::Proportion;

/// Size of the pieces by which cloud volumes count a large request (AWS, *EBS I/O characteristics*).
pub const MERGE_BYTES: u64 = 256 << 10;

/// Work to do, and the limits of its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmingWork {
    /// Bytes to read.
    pub bytes: u64,
    /// The size of a request in bytes.
    pub request_bytes: u64,
    /// Cold share of these bytes.
    pub cold: Proportion,
    /// The mean latency in seconds of a cold read that does not wait for others.
    pub cold_s: f64,
    /// The mean latency in seconds of a warm read that does not wait for others.
    pub warm_s: f64,
    /// Limit of the volume and the instance in bytes a second; `None` if unknown or without limit.
    pub bytes_per_s: Option<f64>,
    /// Limit of the volume and the instance in operations a second, each of at most [`MERGE_BYTES`].
    pub iops: Option<f64>,
    /// Requests in flight.
    pub depth: usize,
}

/// Limit of the speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The limit of bytes a second.
    Bytes,
    /// The limit of operations a second.
    Iops,
    /// Too few requests in flight for their latency: more would help.
    Latency,
}

/// Time that the work takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Expected time, in seconds.
    pub seconds: f64,
    /// Time with the lower bound of the cold share, in seconds.
    pub low: f64,
    /// Time with the upper bound of the cold share, in seconds.
    pub high: f64,
    /// Limit that decides `seconds`.
    pub limit: Limit,
}

/// The time of the work: the longest of the times for its bytes, its operations and its latencies. With `depth`
/// requests always in flight, the time for the latencies is their sum divided by the depth (Little 1961). The bounds
/// only reflect those of the cold share; a neighbour on the instance or the end of a burst is not foreseen.
///
/// `None` if a figure is zero, negative or not finite; nothing to read takes no time.
pub fn forecast(work: &WarmingWork) -> Option<Forecast> {
    let latencies = work.cold_s > 0.0 && work.warm_s > 0.0;
    let caps = [work.bytes_per_s, work.iops];
    let limits = caps.iter().flatten().all(|cap| *cap > 0.0);
    let shares = [work.cold.low, work.cold.share, work.cold.high];
    let in_order = shares[0] >= 0.0 && shares.is_sorted() && shares[2] <= 1.0;
    if !(latencies && limits && in_order) || work.request_bytes == 0 || work.depth == 0 {
        return None;
    }
    let [low, (seconds, limit), high] = shares.map(|cold| seconds(work, cold));
    let all_finite = [low.0, seconds, high.0].iter().all(|s| s.is_finite());
    all_finite.then(|| Forecast {
        seconds,
        low: low.0.min(seconds).min(high.0),
        high: high.0.max(seconds).max(low.0),
        limit,
    })
}

/// The time if this share is cold, and the limit that determines it.
fn seconds(work: &WarmingWork, cold: f64) -> (f64, Limit) {
    let bytes = work.bytes as f64;
    let requests = (bytes / work.request_bytes as f64).ceil();
    let ops = requests * work.request_bytes.div_ceil(MERGE_BYTES) as f64;
    let latency_s = work.warm_s + cold * (work.cold_s - work.warm_s);
    let needs = [
        (
            work.bytes_per_s.map_or(0.0, |cap| bytes / cap),
            Limit::Bytes,
        ),
        (work.iops.map_or(0.0, |cap| ops / cap), Limit::Iops),
        (requests * latency_s / work.depth as f64, Limit::Latency),
    ];
    let longer = |a: (f64, Limit), b: (f64, Limit)| if b.0 > a.0 { b } else { a };
    needs.into_iter().fold((0.0, Limit::Bytes), longer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WORK: WarmingWork = WarmingWork {
        bytes: 1 << 40,
        request_bytes: 512 << 10,
        cold: Proportion {
            share: 0.5,
            low: 0.4,
            high: 0.6,
        },
        cold_s: 0.05,
        warm_s: 0.001,
        bytes_per_s: Some(125.0 * 1048576.0),
        iops: Some(3000.0),
        depth: 32,
    };

    #[test]
    fn the_tightest_limit_decides() {
        let got = forecast(&WORK).unwrap();
        assert_eq!((got.seconds, got.limit), (8388.608, Limit::Bytes));
        assert_eq!((got.low, got.high), (got.seconds, got.seconds));
        // 2 Mi requests are 4 Mi operations.
        let few = forecast(&WarmingWork {
            iops: Some(100.0),
            ..WORK
        });
        assert_eq!(
            few.map(|f| (f.seconds, f.limit)),
            Some((41943.04, Limit::Iops))
        );
        let shallow = forecast(&WarmingWork { depth: 1, ..WORK }).unwrap();
        assert_eq!(shallow.limit, Limit::Latency);
        assert!((shallow.seconds - 2097152.0 * 0.0255).abs() < 1e-6);
        assert!(shallow.low < shallow.seconds && shallow.seconds < shallow.high);
    }

    #[test]
    fn nothing_to_read_takes_no_time_and_nonsense_none() {
        let nothing = WarmingWork { bytes: 0, ..WORK };
        assert_eq!(forecast(&nothing).map(|f| f.seconds), Some(0.0));
        for bad in [0.0, -1.0, f64::NAN] {
            let cap = WarmingWork {
                iops: Some(bad),
                ..WORK
            };
            assert_eq!(forecast(&cap), None);
            assert_eq!(
                forecast(&WarmingWork {
                    cold_s: bad,
                    ..WORK
                }),
                None
            );
        }
        assert_eq!(forecast(&WarmingWork { depth: 0, ..WORK }), None);
    }

    proptest! {
        #[test]
        fn any_input_is_answered_or_refused(
            bytes: u64, request_bytes: u64, share: f64, low: f64, high: f64,
            cold_s: f64, warm_s: f64, bytes_per_s: Option<f64>, iops: Option<f64>, depth: usize,
        ) {
            let cold = Proportion { share, low, high };
            let work = WarmingWork {
                bytes, request_bytes, cold, cold_s, warm_s, bytes_per_s, iops, depth,
            };
            if let Some(got) = forecast(&work) {
                prop_assert!(got.low <= got.seconds && got.seconds <= got.high);
            }
            let sure = WarmingWork { cold: Proportion { share: 0.5, low: 0.0, high: 1.0 }, ..work };
            if let Some(got) = forecast(&sure) {
                prop_assert!(got.low <= got.seconds && got.seconds <= got.high);
            }
        }
    }
}
