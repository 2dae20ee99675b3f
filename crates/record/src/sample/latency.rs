//! Latencies of single requests in an interval, and the I/O of processes.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::FlowKind;
use crate::histogram::{DecodeError, Histogram};
use crate::{Bytes, Nanos};

/// Latencies of requests: percentiles to within 0.4 %, and a histogram with 16 buckets per power of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Number of requests.
    pub count: u64,
    /// Median.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// 99.9th percentile.
    pub p999: Nanos,
    /// Maximum.
    pub max: Nanos,
    bins: Bins,
}

impl Latencies {
    /// Latencies from a histogram in nanoseconds; `None` if it is empty.
    pub fn of(times: &Histogram) -> Option<Latencies> {
        let quantile = |share: f64| Nanos(times.quantile(share));
        (!times.is_empty()).then(|| Latencies {
            count: times.count(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: Nanos(times.max()),
            bins: Bins(times.coarse().encode().into()),
        })
    }

    /// Histogram of the latencies, to within 3 %.
    pub fn histogram(&self) -> Histogram {
        // It was decoded once when it was read, so that this does not fail.
        Histogram::decode(&self.bins.0).unwrap_or_default()
    }

    /// Latencies of several intervals together; percentiles are to within 3 %.
    pub fn merged<'a>(all: impl Iterator<Item = &'a Latencies>) -> Option<Latencies> {
        let all: Vec<&Latencies> = all.collect();
        if let [one] = all.as_slice() {
            return Some((*one).clone());
        }
        let mut sum = Histogram::new();
        all.iter().for_each(|one| sum.merge(&one.histogram()));
        Latencies::of(&sum)
    }

    /// Heap memory that it uses, in bytes.
    pub fn weight(&self) -> usize {
        self.bins.0.len()
    }
}

/// A histogram in its compact form.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(into = "String")
)]
struct Bins(Arc<[u8]>);

impl Serialize for Bins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = BASE64.decode(text.as_bytes()).ok();
        let bytes = bytes.filter(|bytes| Histogram::decode(bytes).is_ok());
        let bytes = bytes.ok_or_else(|| serde::de::Error::custom(DecodeError))?;
        Ok(Bins(bytes.into()))
    }
}

/// Latencies of a device's requests in an interval, from issue to completion by the kernel's trace events. On devices
/// without requests, such as md and dm, from the queueing of each bio.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencySample {
    /// Reads, writes, discards and flushes, in the order of [`FlowKind::ALL`].
    kinds: [Option<Latencies>; 4],
    /// Latencies of all kinds together.
    pub all: Option<Latencies>,
}

impl LatencySample {
    /// From histograms in nanoseconds, by kind in the order of [`FlowKind::ALL`].
    pub fn of(times: &[Histogram; 4]) -> LatencySample {
        let mut all = Histogram::new();
        times.iter().for_each(|kind| all.merge(kind));
        LatencySample {
            kinds: times.each_ref().map(Latencies::of),
            all: Latencies::of(&all),
        }
    }

    /// Latencies of one kind.
    pub fn kind(&self, kind: FlowKind) -> Option<&Latencies> {
        let at = FlowKind::ALL.iter().position(|known| *known == kind)?;
        self.kinds[at].as_ref()
    }

    /// Latencies of several intervals together.
    pub fn merged(all: &[&LatencySample]) -> LatencySample {
        let kind = |at: usize| {
            let kinds = all.iter().filter_map(|one| one.kinds[at].as_ref());
            Latencies::merged(kinds)
        };
        LatencySample {
            kinds: std::array::from_fn(kind),
            all: Latencies::merged(all.iter().filter_map(|one| one.all.as_ref())),
        }
    }

    /// Memory that it uses, in bytes.
    pub fn weight(&self) -> usize {
        let parts = self.kinds.iter().chain([&self.all]).flatten();
        size_of::<LatencySample>() + parts.map(Latencies::weight).sum::<usize>()
    }
}

/// The I/O of a process in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSample {
    /// Process id.
    pub pid: u32,
    /// The kernel's name for it.
    pub name: String,
    /// Control group of the process, such as `/system.slice/mariadb.service`.
    pub group: Option<String>,
    /// Bytes that it read from disks (`read_bytes` in `/proc/PID/io`).
    pub read: Bytes,
    /// Bytes that it wrote to disks (`write_bytes`), which kernel threads may write back later.
    pub written: Bytes,
    /// Requests that its threads issued.
    pub requests: u64,
}

impl ProcessSample {
    /// Weight for sorting: the bytes that it moved, or 4 KiB for each of its requests.
    pub fn weight(&self) -> u64 {
        let moved = self.read.0.saturating_add(self.written.0);
        moved.max(self.requests.saturating_mul(4096))
    }
}

/// Cost of tracing in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracingSample {
    /// Processor time of reading the kernel's events and the processes' counters.
    pub cpu: Nanos,
    /// Requests whose completion was traced.
    pub requests: u64,
    /// Number of events that the kernel dropped: as many requests may be missing.
    pub lost: u64,
    /// Time over which the processes' I/O was counted: longer than the interval if counting takes long, and 0 if it was
    /// not counted.
    pub over: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_restored_and_intervals_are_merged() {
        let times = |range: std::ops::Range<u64>| {
            let mut times: [Histogram; 4] = Default::default();
            range.for_each(|time| times[0].record(time * 1000));
            LatencySample::of(&times)
        };
        let (low, high) = (times(1..1001), times(1001..2001));
        let read = low.kind(FlowKind::Read).unwrap();
        assert_eq!((read.count, read.max), (1000, Nanos(1_000_000)));
        assert!(read.p99.0.abs_diff(990_000) < 4_000, "{}", read.p99);
        assert_eq!(low.kind(FlowKind::Flush), None);
        let text = serde_json::to_string(&low).unwrap();
        assert_eq!(serde_json::from_str::<LatencySample>(&text).unwrap(), low);
        let both = LatencySample::merged(&[&low, &high]);
        let all = both.all.unwrap();
        assert_eq!((all.count, all.max), (2000, Nanos(2_000_000)));
        assert!(all.p50.0.abs_diff(1_000_000) < 32_000, "{}", all.p50);
        assert_eq!(LatencySample::merged(&[&low]), low);
    }

    #[test]
    fn damaged_bins_are_an_error() {
        let text = r#"{"count":1,"p50":1,"p99":1,"p999":1,"max":1,"bins":"AQ"}"#;
        assert!(serde_json::from_str::<Latencies>(text).is_err());
    }
}
