//! Measured data as plain types: units, histograms, windows, phases, runs, machine properties and findings; and
//! samples of disks, interval by interval ([`sample`]).
//!
//! All other crates share these types: `engine` and `linux` fill them, `ledger` stores them, `study` and the verbs
//! evaluate and show them. Nothing in this crate does I/O, reads a clock or draws conclusions, so that measurements and
//! conclusions stay separate.

mod activity;
mod crc32c;
mod finding;
mod histogram;
mod job_options;
mod machine;
mod outcome;
mod phase;
pub mod raid;
pub mod random;
mod ranges;
mod replay;
mod run;
pub mod sample;
mod subject;
mod summary;
mod units;
pub mod varint;
mod window;
mod workload;

pub use activity::Activity;
pub use crc32c::crc32c;
pub use finding::{Finding, FindingCode, Severity, Verdict};
pub use histogram::{DecodeError, Histogram};
pub use job_options::{
    Contents, DepthSearch, FlowShare, MaxLatency, MemoryMode, MemoryPolicy, NonFatal, OneSidedRate,
    Priority, PriorityShare, RateFloor, SteadyFigure, SteadyState, ThreadSettings, Verify,
};
pub use machine::{Cloud, FilesystemFacts, Machine};
pub use outcome::{FailedRequests, JobFileResults, Steady, Verified};
pub use phase::{
    ClockKind, CpuTime, EngineKind, EngineUsed, Flow, HostConditions, Phase, ProgramPause,
    StopReason,
};
pub use ranges::{Ranges, RangesError};
pub use replay::{
    LoadSlice, OffsetMap, Pace, Replay, ReplayClass, ReplayCounts, ReplaySettings, ReplayedDevice,
    ReplayedTrace,
};
pub use run::{Cache, CacheKind, Origin, Run, RunId, Target, TargetKind};
pub use subject::Subject;
pub use summary::{
    CpuShares, Fairness, FlowSummary, ImportedRun, LatencySummary, Percentile, PhaseSummary,
    Samples, Summary, WorkSummary,
};
pub use units::{Bytes, Nanos, ParseUnitError, has_unit};
pub use window::{DeviceCounts, Direction, Slice, Window, WindowFlow};
pub use workload::{
    CallKind, JobOptions, Pattern, RandomDistribution, SequentialRuns, SizeShare, SmallFiles,
    Stride, ThinkTime, Workload, WriteZones, ZoneShare,
};
