//! Rates of a host and of its disks, as `fleet top` shows, sorts and compares them.

use serde::Serialize;

/// Rates and load of a host over a short while.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HostRates {
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Bytes received in a second.
    pub received_per_s: f64,
    /// Bytes sent in a second.
    pub sent_per_s: f64,
    /// Load over the last 1, 5 and 15 minutes; `None` where it is not known.
    pub load: Option<[f64; 3]>,
    /// Disks of the host.
    pub disks: Vec<DiskSample>,
}

impl HostRates {
    /// The disk with the highest mean latency, and that latency in nanoseconds.
    pub(crate) fn worst(&self) -> Option<(&DiskSample, f64)> {
        let disks = self.disks.iter();
        disks
            .filter_map(|disk| Some((disk, disk.latency_ns?)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
    }
}

/// Rates and latency of a disk over a short while.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DiskSample {
    /// The kernel's name of the disk.
    pub name: String,
    /// Reads in a second.
    pub reads_per_s: f64,
    /// Writes in a second.
    pub writes_per_s: f64,
    /// Bytes read in a second.
    pub read_bytes_per_s: f64,
    /// Bytes written in a second.
    pub write_bytes_per_s: f64,
    /// Mean time of a request, in nanoseconds. While requests are in flight and none completes, the time since the
    /// last completion. `null` where nothing was asked of the disk.
    pub latency_ns: Option<f64>,
}
