//! Counters and state of a volume, as a reference for measurements.

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::model::Counters;
use crate::spec::{Span, VolumeSpec};

/// Counters and state of a volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VolumeTruth {
    /// Serial number of the volume.
    pub serial: String,
    /// Specification of the volume, with rates scaled.
    pub spec: VolumeSpec,
    /// Time since its troubles began to count, in nanoseconds; 0 while they are held.
    #[serde(rename = "elapsed_ns")]
    pub elapsed: Nanos,
    /// Counters of requests.
    pub counters: Counters,
    /// Number of cold blocks that were not used yet.
    pub cold_blocks_left: u64,
    /// I/O credits; null of a volume that does not burst.
    pub credits_left: Option<f64>,
    /// Credits of throughput, a byte each; null of a volume whose throughput does not burst.
    pub throughput_credits_left: Option<Bytes>,
    /// Places that now read back differently.
    pub corrupt_places: Vec<Span>,
    /// Number of reads that were answered with changed data.
    pub corrupt_reads: u64,
    /// Number of blocks of 4 KiB that hold what no flush has made durable; 0 for a volume without a volatile
    /// cache.
    pub unflushed_blocks: u64,
    /// Number of blocks of 4 KiB that went back to an earlier content at power cuts.
    pub lost_blocks: u64,
    /// Number of stalls that have begun.
    pub stalls: u64,
    /// Number of fail-slow episodes that have begun.
    pub slow_episodes: u64,
    /// Bytes that the data takes; holes take none.
    #[serde(rename = "occupied_bytes")]
    pub occupied: Bytes,
}

impl VolumeTruth {
    pub(super) fn of(disk: &Disk) -> VolumeTruth {
        let model = disk.model();
        let now = disk.clock().now();
        let elapsed = model.noise().elapsed(now);
        VolumeTruth {
            serial: disk.serial().to_owned(),
            spec: model.spec().clone(),
            elapsed: elapsed.unwrap_or_default(),
            counters: model.counters(),
            cold_blocks_left: model.cold_blocks_left(),
            credits_left: model.credits(now),
            throughput_credits_left: model.throughput_credits(now),
            corrupt_places: disk.store().corrupt_places(elapsed),
            corrupt_reads: disk.store().changed_reads(),
            unflushed_blocks: disk.store().unflushed_blocks(),
            lost_blocks: disk.store().lost_blocks(),
            stalls: model.noise().stalls_begun(now),
            slow_episodes: model.noise().slow_begun(now),
            // A file that is open can be examined.
            occupied: disk.store().occupied().unwrap_or_default(),
        }
    }
}
