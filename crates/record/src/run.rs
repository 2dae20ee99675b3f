//! A run: one suite on one target at one time.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::random::mix;
use crate::{Bytes, Machine, Nanos, Phase, Replay};

/// The id of a run in the ledger, such as `20261121-204512-k7q2m4xz`: its start in UTC and eight characters that
/// distinguish runs of the same second, even from several ledgers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// The id of a run that began at `started`; `entropy` is any number that differs between
    /// processes.
    pub fn new(started: Timestamp, entropy: u64) -> RunId {
        // Without vowels and without letters that look like digits, so that no id spells a word or is misread.
        const LETTERS: &[u8; 26] = b"bcdfghjkmnpqrstvwxz2345679";
        // With four letters, a thousand runs of the same second (repeated imports of a file) are likely to have two
        // equal ids; with eight, a hundred thousand have two equal ids with a probability of 2 %.
        const LENGTH: usize = 8;
        let mut bits = mix(entropy ^ (started.as_nanosecond() as u64));
        let mut suffix = String::new();
        for _ in 0..LENGTH {
            suffix.push(char::from(LETTERS[(bits % 26) as usize]));
            bits /= 26;
        }
        RunId(format!("{}-{suffix}", started.strftime("%Y%m%d-%H%M%S")))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for RunId {
    type Err = std::convert::Infallible;

    /// Any text is accepted; the ledger checks that such a run exists.
    fn from_str(text: &str) -> Result<RunId, Self::Err> {
        Ok(RunId(text.to_owned()))
    }
}

/// Kind of a measured target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A directory, in which test files were laid out.
    Directory,
    /// An existing file.
    File,
    /// A block device.
    Block,
}

/// A measured target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// The path as it was given; bytes that are not UTF-8 are shown as U+FFFD.
    pub path: String,
    /// Kind of the target.
    pub kind: TargetKind,
    /// The block device below, such as `nvme1n1`; `None` if there is none (tmpfs, NFS).
    pub device: Option<String>,
    /// The physical disks below that device, through partitions, md and dm. Their counters are
    /// recorded next to the engine's.
    pub disks: Vec<String>,
    /// The model of the device, or of the first of the disks.
    pub model: Option<String>,
    /// The serial number or volume id of the device, or of the first of the disks.
    pub serial: Option<String>,
    /// Usable size: of the test files, the file or the device.
    pub size: Bytes,
    /// The share of that size which reads could find unwritten (holes, unwritten extents), 0 to 1;
    /// `None` if the file system does not report it. Determined before the first phase.
    pub unwritten_fraction: Option<f64>,
    /// The share of blocks sampled on a block device that held only zeros, 0 to 1; `None` for files.
    #[serde(default)]
    pub zero_fraction: Option<f64>,
    /// True if the page cache was bypassed: O_DIRECT was accepted.
    pub direct: bool,
    /// True if the target's file system keeps its data in memory, or has no block device below.
    pub in_memory: bool,
    /// Layers below that may serve requests instead of the disk, the nearest first.
    #[serde(default)]
    pub caches: Vec<Cache>,
}

/// A layer below a target that may serve requests from memory or from a faster disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cache {
    /// The device, or the mount point of the file system, that has the cache.
    pub layer: String,
    /// Kind of the cache.
    pub kind: CacheKind,
}

/// Kinds of caches below a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CacheKind {
    /// A loop device that does its I/O through the page cache.
    PageCache,
    /// A device or file system that keeps its data in memory.
    Memory,
    /// A file system with a cache of its own, which direct I/O does not bypass: its type.
    FileSystem(String),
    /// A faster disk that caches a slower one (bcache, dm-cache, dm-writecache): the driver's name.
    FasterDisk(String),
}

/// Source of a run's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Measured by this program.
    Measured,
    /// Read from another tool's output.
    Imported {
        /// The tool and its version, such as `fio 3.33`.
        tool: String,
    },
}

/// A run: one suite on one target at one time, as measurements without conclusions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Name of the run in the ledger.
    pub id: RunId,
    /// Time at which the run started.
    pub started: Timestamp,
    /// The version of the program that measured.
    pub disksmith: String,
    /// The command line, for people who read it later.
    pub command: Vec<String>,
    /// Source of the figures: figures of other tools are an [`ImportedRun`](crate::ImportedRun).
    pub origin: Origin,
    /// The measured target.
    pub target: Target,
    /// Facts about the machine.
    pub machine: Machine,
    /// The suite's name, or `workload` for a single workload given by the user.
    pub suite: String,
    /// Target of the p99 latency, if the run searched for the highest rate that keeps it.
    #[serde(default)]
    pub p99_target: Option<Nanos>,
    /// The phases that ran, in order.
    pub phases: Vec<Phase>,
    /// Phases that were left out, and other remarks, as sentences.
    pub notes: Vec<String>,
    /// True if a signal ended it before the end of its last phase.
    pub interrupted: bool,
    /// The trace that was replayed, if the run is a replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Replay>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_begins_with_the_time_and_differs_by_entropy() {
        let t: Timestamp = "2026-11-21T20:45:12Z".parse().unwrap();
        let (a, b) = (RunId::new(t, 1), RunId::new(t, 2));
        assert!(a.as_str().starts_with("20261121-204512-"), "{a}");
        assert_eq!(a.as_str().len(), 24);
        assert_ne!(a, b);
        assert_eq!(a.as_str().parse(), Ok(a));
    }

    #[test]
    fn ids_of_one_second_do_not_repeat() {
        let t: Timestamp = "2026-11-21T20:45:12Z".parse().unwrap();
        let ids: std::collections::HashSet<RunId> =
            (0..20_000).map(|entropy| RunId::new(t, entropy)).collect();
        assert_eq!(ids.len(), 20_000);
    }
}
