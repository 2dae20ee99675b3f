//! Specification of a volume: its size, caps, latency and faults, and their syntax on the command line.
//!
//! A group of equal volumes is `[COUNTx]WHAT:SIZE`. WHAT is a [`Profile`], or `key=value` pairs, or a profile and
//! pairs that change it, joined by commas:
//!
//! ```text
//! 8xgp3:16GiB    8xiops=400:1GiB    gp3,iops=6000:16GiB    cold,cold=50%,seed=7:8GiB
//! ```
//!
//! The keys (times count from the start of the server, or from when one that is held is told to
//! begin, as `lab run` does when the command starts; `docs/lab.md` has this table too):
//!
//! | key | meaning | without it |
//! | --- | --- | --- |
//! | `iops` | sustained operations a second, or `none` | the profile's, else no cap |
//! | `throughput` | sustained bytes a second, such as `125MiB`, or `none` | the profile's, else no cap |
//! | `burst` | operations a second while credits last | the profile's, else none |
//! | `credits` | I/O credits at the start, which is also their maximum | the profile's; goes with `burst` |
//! | `throughput-burst` | bytes a second while its credits last | the profile's, else none |
//! | `throughput-credits` | credits of a byte at the start, which is also their maximum | the profile's; goes with `throughput-burst` |
//! | `merge` | the largest I/O that counts as one operation, or `none` | `256KiB`, `none` for `nvme` |
//! | `latency` | mean time of an I/O that waits for nothing | the profile's, else `500us` |
//! | `latency-min` | no I/O is faster | half of `latency` |
//! | `jitter` | spread of the latency above its minimum: sigma of a log-normal | `0.3` |
//! | `cold` | share of blocks whose first read is slow: `0.5` or `50%` | `0`, `1` for `cold` |
//! | `cold-block` | size of such a block | `512KiB` |
//! | `cold-latency` | what the first read costs, `20ms..80ms` or one value | `20ms..80ms` |
//! | `cold-rate` | bytes a second of all fetches together, or `none`; `slow` does not change it | no limit |
//! | `slow` | a fail-slow episode, `START+LENGTH`, repeatable | none |
//! | `slow-factor` | during it latency is multiplied and caps are divided by this | `10` |
//! | `slow-every` | the episodes come again after this long | once |
//! | `stall` | a time in which nothing is answered, `START+LENGTH`, repeatable | none |
//! | `stall-every` | the stalls come again after this long | once |
//! | `error` | bytes that answer EIO, `OFFSET+LENGTH` or `all`, repeatable | none |
//! | `error-rate` | chance that any one I/O answers EIO, `0.001` or `0.1%` | `0` |
//! | `error-on` | which I/O the errors hit: `read`, `write` or `both` | `both` |
//! | `error-after` | errors begin at this time | `0s` |
//! | `corrupt` | bytes that read back differently, `OFFSET` or `OFFSET+LENGTH`, repeatable | none; LENGTH is 512 |
//! | `corrupt-places` | that many sectors of 512 bytes, chosen by the seed | `0` |
//! | `corrupt-after` | they are corrupted once at this time, and a later write cures them | they are always corrupt |
//! | `volatile` | `1`: a power cut loses some of what was written and not flushed | `0` |
//! | `serial` | serial number, up to 20 of `A-Z a-z 0-9 . _ -`; of several volumes, `-1`, `-2`, … is added | `lab1`, `lab2`, … |
//! | `seed` | start of the volume's random numbers; of several volumes, each has the next | from the server's seed |

mod apply;
mod error;
mod parse;
mod profile;

#[cfg(test)]
mod tests;

use record::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

pub use error::{KEYS, SpecError};
pub use parse::VolumeGroup;
pub use profile::Profile;

/// A sector: the smallest unit that a disk reads or loses.
pub const SECTOR: Bytes = Bytes(512);

/// Maximum number of characters of a serial number, as in virtio-blk (`VIRTIO_BLK_ID_BYTES`, OASIS virtio 1.2, 5.2.6).
pub const MAX_SERIAL_CHARS: usize = 20;

/// The serial number of the machine's own disk, which survives a power cut. The machine makes a file system on it, so
/// no volume may have this number.
pub(crate) const STATE_SERIAL: &str = "lab-state";

/// One virtual volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VolumeSpec {
    /// Profile that the specification is based on.
    pub profile: Option<Profile>,
    /// Its size; a positive multiple of 4 KiB.
    pub size: Bytes,
    /// Sustained operations a second; `None` for no cap.
    pub iops: Option<f64>,
    /// Sustained bytes a second; `None` for no cap.
    pub throughput: Option<Bytes>,
    /// More operations a second while credits last, as with gp2.
    pub burst: Option<Burst>,
    /// More bytes a second while credits last, as with st1 and sc1.
    pub throughput_burst: Option<ThroughputBurst>,
    /// Maximum size of an I/O that counts as one operation: adjacent ones are merged up to it, larger ones are split.
    /// `None`: each request counts as one.
    pub merge: Option<Bytes>,
    /// Latency of an I/O that waits for nothing.
    pub latency: Latency,
    /// Blocks that must be fetched before they can be used.
    pub cold: ColdBlocks,
    /// Times in which it is slower.
    pub slow: FailSlow,
    /// Times in which it does not answer.
    pub stalls: Episodes,
    /// I/O that fails.
    pub errors: Errors,
    /// Data that does not read back as it was written.
    pub corruption: Corruption,
    /// True if it has a volatile write cache, as some local disks, but no network volumes: a power cut
    /// then loses some of the writes that no flush has made durable.
    pub volatile: bool,
    /// Serial number; `None` for a number chosen by the server.
    pub serial: Option<String>,
    /// Seed of its random numbers; `None` to derive it from the server's seed.
    pub seed: Option<u64>,
}

/// Speed above the baseline, paid with credits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Burst {
    /// Operations a second while credits last.
    pub iops: f64,
    /// Credits at the start, which is also their maximum. An operation takes one; the baseline's operations a second
    /// are added.
    pub credits: f64,
}

/// Bytes a second above the baseline, paid with credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThroughputBurst {
    /// Bytes a second while credits last.
    pub throughput: Bytes,
    /// Credits at the start, which is also their maximum. A byte takes one; the baseline's bytes a second are added.
    pub credits: Bytes,
}

/// The time of an I/O: `min + (mean - min) * X`, X log-normal with mean 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Mean, in nanoseconds.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// Lower bound, in nanoseconds.
    #[serde(rename = "min_ns")]
    pub min: Nanos,
    /// Standard deviation of the logarithm of X; 0 for a constant time.
    pub jitter: f64,
}

/// Blocks of a volume restored from a snapshot, which are fetched when they are first touched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColdBlocks {
    /// Share of the blocks that are cold at the start, 0 to 1.
    pub fraction: f64,
    /// Size of a block.
    pub block: Bytes,
    /// Shortest fetch, in nanoseconds.
    #[serde(rename = "min_ns")]
    pub min: Nanos,
    /// Longest fetch, in nanoseconds; fetches are uniform between the two.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
    /// Bytes a second of all fetches together; `None` for no limit.
    #[serde(default, rename = "bytes_per_s")]
    pub rate: Option<Bytes>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Episode {
    /// Start, in nanoseconds.
    #[serde(rename = "start_ns")]
    pub start: Nanos,
    /// Length, in nanoseconds; at least 1.
    #[serde(rename = "length_ns")]
    pub length: Nanos,
}

/// Time ranges, once or periodically.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Episodes {
    /// The time ranges.
    pub episodes: Vec<Episode>,
    /// Period after which they repeat, in nanoseconds; longer than each of them. Null if they do not repeat.
    #[serde(rename = "every_ns")]
    pub every: Option<Nanos>,
}

/// Fail-slow: times in which a volume works, but slowly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailSlow {
    /// Latency is multiplied and caps are divided by this; at least 1.
    pub factor: f64,
    /// Times of the episodes.
    pub when: Episodes,
}

/// A range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// First byte.
    pub offset: u64,
    /// Length of the range, in bytes.
    pub length: u64,
}

impl Span {
    /// Offset of the byte after the last one.
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// The intersection of both ranges; `None` if it is empty.
    pub(crate) fn shared(self, other: Span) -> Option<Span> {
        let offset = self.offset.max(other.offset);
        let end = self.end().min(other.end());
        (offset < end).then(|| Span {
            offset,
            length: end - offset,
        })
    }
}

/// I/O that fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ErrorOn {
    /// Reads: a medium that lost data and can be rewritten.
    Read,
    /// Writes and discards.
    Write,
    /// Both.
    #[default]
    Both,
}

/// I/O that is answered with EIO.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Errors {
    /// Any I/O that touches these bytes.
    pub places: Vec<Span>,
    /// Probability that an I/O fails, 0 to 1.
    pub rate: f64,
    /// I/O that fails.
    pub on: ErrorOn,
    /// Time from which on I/O fails, in nanoseconds.
    #[serde(rename = "after_ns")]
    pub after: Nanos,
}

/// Data that reads back differently, with no error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Corruption {
    /// The bytes.
    pub places: Vec<Span>,
    /// Number of further sectors, chosen by the seed.
    pub random_places: u32,
    /// Time at which the contents of these bytes are corrupted once, in nanoseconds; a later write cures them. `None`:
    /// they are always corrupt.
    #[serde(rename = "after_ns")]
    pub after: Option<Nanos>,
}

impl VolumeSpec {
    /// The same volume with its rates multiplied by `scale`: `iops`, `throughput`, `cold-rate`, and the bursts with
    /// their credits, so that credits last as long as before.
    #[must_use]
    pub fn scaled(&self, scale: f64) -> VolumeSpec {
        let mut spec = self.clone();
        spec.iops = self.iops.map(|iops| iops * scale);
        spec.throughput = self.throughput.map(|rate| scale_bytes(rate, scale));
        spec.cold.rate = self.cold.rate.map(|rate| scale_bytes(rate, scale));
        spec.burst = self.burst.map(|burst| Burst {
            iops: burst.iops * scale,
            credits: burst.credits * scale,
        });
        spec.throughput_burst = self.throughput_burst.map(|burst| ThroughputBurst {
            throughput: scale_bytes(burst.throughput, scale),
            credits: scale_bytes(burst.credits, scale),
        });
        spec
    }
}

/// A byte rate multiplied by `scale`, at least 1.
pub(crate) fn scale_bytes(rate: Bytes, scale: f64) -> Bytes {
    Bytes(((rate.0 as f64 * scale) as u64).max(1))
}
