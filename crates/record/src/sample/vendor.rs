//! The cloud's own statistics page of an NVMe volume, for an interval.

use serde::{Deserialize, Serialize};

use super::{BytesPerSecond, PerSecond};
use crate::Nanos;

/// Vendor of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VendorPage {
    /// An EBS volume.
    Ebs,
    /// An instance store volume of EC2.
    InstanceStore,
}

impl VendorPage {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            VendorPage::Ebs => "ebs",
            VendorPage::InstanceStore => "instance-store",
        }
    }
}

/// Time in which demand exceeded the limits, within the page's interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeOverLimits {
    /// Time above the volume's limit of operations per second.
    pub volume_iops: Nanos,
    /// Time above the volume's limit of bytes per second.
    pub volume_bytes: Nanos,
    /// Time above the instance's limit of operations per second for all of its volumes together; `None` for an instance
    /// store, to which it does not apply.
    pub instance_iops: Option<Nanos>,
    /// Time above the instance's limit of bytes per second for all of its volumes together; `None` for an instance
    /// store.
    pub instance_bytes: Option<Nanos>,
}

/// A bin of the volume's own latency histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBin {
    /// Lower bound of the bin.
    pub from: Nanos,
    /// Upper bound of the bin; `None` if it has none.
    pub to: Option<Nanos>,
    /// Requests that completed within the page's interval.
    pub count: u64,
}

/// The difference between two readings of a volume's page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VendorSample {
    /// Vendor of the page.
    pub page: VendorPage,
    /// The time between the two readings, which may be longer than a sample: the page is read at most once per second.
    pub length: Nanos,
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sum of the times of reads, as the volume counts it.
    pub read_time: Nanos,
    /// Sum of the times of writes.
    pub write_time: Nanos,
    /// Time in which limits were exceeded.
    pub exceeded: TimeOverLimits,
    /// Number of requests queued or in flight at the second reading.
    pub queue: u64,
    /// Latencies of reads, in order; empty bins are left out.
    pub read_latency: Vec<LatencyBin>,
    /// Latencies of writes.
    pub write_latency: Vec<LatencyBin>,
}

impl VendorSample {
    /// Operations per second, as the volume counts them.
    pub fn iops(&self) -> Option<PerSecond> {
        let seconds = self.length.as_secs_f64();
        (seconds > 0.0).then(|| PerSecond((self.reads + self.writes) as f64 / seconds))
    }

    /// Bytes per second, as the volume counts them.
    pub fn bytes(&self) -> Option<BytesPerSecond> {
        let seconds = self.length.as_secs_f64();
        (seconds > 0.0)
            .then(|| BytesPerSecond((self.read_bytes + self.write_bytes) as f64 / seconds))
    }

    /// A time as a share of the page's interval, at most 1.
    pub fn share(&self, time: Nanos) -> f64 {
        match self.length.0 {
            0 => 0.0,
            length => (time.0 as f64 / length as f64).min(1.0),
        }
    }
}
