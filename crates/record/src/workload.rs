//! A workload: one kind of I/O, as a user describes it.

use serde::{Deserialize, Serialize};

use crate::{
    Activity, Bytes, Contents, DepthSearch, Direction, FlowShare, MaxLatency, Nanos, NonFatal,
    OneSidedRate, PriorityShare, RateFloor, SteadyState, ThreadSettings, Verify,
};

/// Pattern of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Random offsets in the span, every block equally likely.
    Random,
    /// Each request follows the last one, from the start of the span, repeatedly. Each thread has its own part of the
    /// span, so that no two threads access the same offset at the same time.
    Sequential,
}

/// A workload: one kind of I/O with its requests, depth, span and duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workload {
    /// Pattern of offsets.
    pub pattern: Pattern,
    /// The share of requests that are reads, 0 to 1.
    pub read_fraction: f64,
    /// The size of a request.
    pub block: Bytes,
    /// Number of threads that issue I/O, each on its own ring.
    pub threads: u32,
    /// Requests that each thread keeps in flight (closed loop), or may at most have in flight (open loop).
    pub depth: u32,
    /// Open loop: requests per second over all threads, at Poisson times. `None` for a closed loop.
    pub rate_per_s: Option<f64>,
    /// Bytes of the target, from its start, that are used; `None` for all of it.
    pub span: Option<Bytes>,
    /// Number of writes of a thread after each of which fdatasync follows; 0 for never.
    pub sync_every: u32,
    /// True if each thread calls fdatasync when its last write has completed. The time of this call is not in the
    /// rate.
    pub sync_at_end: bool,
    /// Maximum time of a phase, even if its figures are not precise by then.
    pub longest: Nanos,
    /// Minimum time of a phase.
    pub shortest: Nanos,
    /// The phase ends when the 95 % interval of its IOPS is within this share of the mean;
    /// 0 never ends it early.
    pub precision: f64,
    /// The phase ends after this many requests.
    pub ops: Option<u64>,
    /// Extended options of another tool's job file. Boxed, since most workloads have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<JobOptions>>,
}

/// Random reads of 4 KiB by one thread, one in flight, on all of the target.
impl Default for Workload {
    fn default() -> Workload {
        Workload {
            pattern: Pattern::Random,
            read_fraction: 1.0,
            block: Bytes::kib(4),
            threads: 1,
            depth: 1,
            rate_per_s: None,
            span: None,
            sync_every: 0,
            sync_at_end: false,
            longest: Nanos(0),
            shortest: Nanos(0),
            precision: 0.0,
            ops: None,
            details: None,
        }
    }
}

/// A size of requests, and its share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeShare {
    /// Size of these requests, in bytes.
    pub size: Bytes,
    /// Share of the requests of a direction that have this size, 0 to 1.
    pub share: f64,
}

/// Distribution of random offsets, as fio's `random_distribution`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RandomDistribution {
    /// Every block equally likely, each time.
    #[default]
    Uniform,
    /// Every block once, in random order, and then again in another order.
    Once,
    /// Zipf's law with this exponent; the ranks of the blocks are drawn once.
    Zipf(f64),
    /// A power law with parameter h: a share h of the blocks gets a share 1 - h of the requests.
    Pareto(f64),
    /// A normal distribution, with a uniform deviation of this share of the blocks added to each offset.
    Normal(f64),
}

/// Kind of blocking calls, made one after another until a fixed amount of work is done. The call that ends the
/// work, such as an fsync, is within the measured time, as in Bonnie++.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// Reading and writing the data of a file.
    Data,
    /// Creating files.
    Create,
    /// Calling stat on files, and reading those that are not empty.
    Stat,
    /// Deleting files.
    Delete,
}

/// Offsets of sequential requests that are not contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Stride {
    /// Bytes that are added after each request; negative values go backwards.
    Add(i64),
    /// Zone after zone, with a fixed amount of data in each.
    Zones {
        /// Bytes that are transferred in a zone before the next one.
        size: Bytes,
        /// Length of a zone.
        range: Bytes,
        /// Bytes between a zone and the next one.
        skip: Bytes,
    },
}

/// Requests of a random phase whose offsets are not drawn, since they continue others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SequentialRuns {
    /// Number of requests for each offset that is drawn, at least 1.
    pub every: u32,
    /// True if the requests between two drawn offsets repeat the offset of the last request of their kind; false if
    /// they follow it.
    pub repeats: bool,
    /// Share of such reads whose offset is drawn, 0 to 1; the others follow the last one.
    pub reads: f64,
    /// Share of such writes whose offset is drawn, 0 to 1; the others follow the last one.
    pub writes: f64,
}

/// Zones of random writes: each write is appended to the zone in which its offset lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WriteZones {
    /// Length of a zone.
    pub range: Bytes,
    /// Bytes that are written in a zone before writing starts at its beginning again.
    pub size: Bytes,
    /// Maximum number of partly written zones; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<u32>,
}

/// A part of the span, and its share of the random offsets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZoneShare {
    /// Share of the requests, 0 to 1.
    pub access: f64,
    /// Share of the span, 0 to 1.
    pub size: f64,
}

/// A pause of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThinkTime {
    /// Length of the pause.
    pub time: Nanos,
    /// Number of requests after which it is made, once none is in flight; 0 if only `io_time` counts.
    pub every: u32,
    /// Time of I/O after which it is made, once none is in flight; 0 if only `every` counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub io_time: Nanos,
    /// True if requests are counted when they are issued, false if when they complete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counts_issued: bool,
    /// True if requests that a rate makes due during the pause are postponed, not issued as a burst after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stops_rate: bool,
}

/// Options of a job file beyond those of every workload. By default none is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobOptions {
    /// Sizes of reads; empty if all have the workload's block size.
    pub read_sizes: Vec<SizeShare>,
    /// Sizes of writes; empty if all have the workload's block size.
    pub write_sizes: Vec<SizeShare>,
    /// Start of the span in each file.
    pub offset: Bytes,
    /// Number of files of one size, used in turn, each with the span; 0 means 1.
    pub files: u32,
    /// Distribution of random offsets, as fio's `random_distribution`.
    pub spread: RandomDistribution,
    /// Zones of random offsets, in the order of the span; empty without zones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneShare>,
    /// Gaps between sequential requests; `None` if each follows the last. If zones are given, random requests lie in
    /// zones too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stride: Option<Stride>,
    /// Random requests that continue others; `None` if all offsets are drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential_runs: Option<SequentialRuns>,
    /// Zones to which random writes are appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_zones: Option<WriteZones>,
    /// Alignment of reads; `None` for their smallest size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_align: Option<Bytes>,
    /// Alignment of writes; `None` for their smallest size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_align: Option<Bytes>,
    /// Pauses of each thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkTime>,
    /// Closed loop: the rate of one direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_sided_rate: Option<OneSidedRate>,
    /// True if requests of a rate are due at equal intervals instead of Poisson times.
    pub even_rate: bool,
    /// True for fsync instead of fdatasync.
    pub full_sync: bool,
    /// True if writes are discards (`BLKDISCARD`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trims: bool,
    /// True if each write follows a discard of its blocks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trims_first: bool,
    /// Amount of I/O after which the phase ends.
    pub bytes: Option<Bytes>,
    /// Time before the first request that counts.
    pub ramp: Nanos,
    /// True if the phase is the sum of different jobs: the workload has their means, and no other option here is set.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// The job's options as its file gives them, by name and value; an option without a value has `1`. Empty if there
    /// is no file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
    /// Kind of calls, if the workload is a fixed amount of work by blocking calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallKind>,
    /// Files of metadata work; the size of the largest is the span.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small_files: Option<SmallFiles>,
    /// Data of writes; `None` for random data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<Contents>,
    /// Verification of written data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Settings of its threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_settings: Option<ThreadSettings>,
    /// Requests with a priority of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_shares: Vec<PriorityShare>,
    /// Delay of its start relative to other jobs.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay: Nanos,
    /// Its share of the requests of concurrent jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowShare>,
    /// A search for the highest queue depth that keeps a latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth_search: Option<DepthSearch>,
    /// A steady state that ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<SteadyState>,
    /// Rates below which it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<RateFloor>,
    /// Errors that do not end it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_fatal: Option<NonFatal>,
    /// Maximum times of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_latency: Option<MaxLatency>,
}

fn is_zero(time: &Nanos) -> bool {
    time.0 == 0
}

/// Properties of small files other than their number and the size of the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SmallFiles {
    /// The size of the smallest. Sizes between it and the largest are equally frequent.
    pub smallest: Bytes,
    /// Number of directories over which they are spread; 0 if all are in one.
    pub directories: u32,
}

impl Workload {
    /// True if any request writes.
    pub fn writes(&self) -> bool {
        self.read_fraction < 1.0
    }

    /// True if any request reads.
    pub fn reads(&self) -> bool {
        self.read_fraction > 0.0
    }

    /// The size of the largest request.
    pub fn largest_block(&self) -> Bytes {
        self.all_sizes()
            .map(|share| share.size)
            .fold(self.block, Bytes::max)
    }

    /// The size of the smallest request.
    pub fn smallest_block(&self) -> Bytes {
        let named = self.all_sizes().map(|share| share.size).min();
        named.unwrap_or(self.block)
    }

    /// Iterates over all sizes of requests other than the block size.
    fn all_sizes(&self) -> impl Iterator<Item = &SizeShare> {
        self.details
            .iter()
            .flat_map(|details| details.read_sizes.iter().chain(&details.write_sizes))
    }

    /// True if its writes are discards.
    pub fn trims(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.trims)
    }

    /// True if it discards blocks, instead of writes or before them.
    pub fn discards(&self) -> bool {
        self.trims() || self.trims_first()
    }

    /// True if each write follows a discard of its blocks.
    pub fn trims_first(&self) -> bool {
        self.details
            .as_ref()
            .is_some_and(|details| details.trims_first)
    }

    /// Kind of calls, if the workload is a fixed amount of work by blocking calls.
    pub fn calls(&self) -> Option<CallKind> {
        self.details.as_ref()?.calls
    }

    /// True if it creates, examines or deletes files.
    pub fn is_metadata_work(&self) -> bool {
        self.calls().is_some_and(|calls| calls != CallKind::Data)
    }

    /// Activity that the figures of a direction count. Metadata work is counted as reads if it changes nothing, and
    /// else as writes.
    pub fn activity(&self, direction: Direction) -> Activity {
        match (self.calls(), direction) {
            (Some(CallKind::Create), Direction::Write) => Activity::Create,
            (Some(CallKind::Delete), Direction::Write) => Activity::Delete,
            (Some(CallKind::Stat), Direction::Read) => Activity::Stat,
            (_, Direction::Write) if self.trims() => Activity::Trim,
            _ => direction.into(),
        }
    }

    /// Requests in flight over all threads.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.threads) * u64::from(self.depth)
    }
}
