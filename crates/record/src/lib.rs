//! Measured data as plain types: units, histograms, windows, phases, runs, machine facts and findings; and
//! the disks as a watch sees them, interval by interval ([`sample`]).
//!
//! The other crates meet here. `engine` and `linux` fill these types, `ledger` keeps them, `disksmith`
//! studies and renders them. Nothing in this crate does I/O, reads a clock or decides anything, so that what
//! was measured stays apart from what was concluded of it.

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
mod varint;
mod window;
mod workload;

pub use activity::Activity;
pub use crc32c::crc32c;
pub use finding::{Code, Finding, Severity, Verdict};
pub use histogram::{DecodeError, Histogram};
pub use job_options::{
    Contents, DepthSearch, Floor, FlowShare, MaxLatency, MemoryMode, MemoryPolicy, NonFatal,
    Priority, PriorityShare, SteadyFigure, SteadyState, ThreadSettings, Verify,
};
pub use machine::{Cloud, FilesystemFacts, Machine};
pub use outcome::{FailedRequests, Outcome, Steady, Verified};
pub use phase::{
    ClockKind, CpuTime, EngineKind, EngineUsed, Flow, Gap, Phase, Stopped, Surroundings,
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
    Calls, Details, Pattern, SequentialRuns, SizeShare, SmallFiles, Spread, Stride, Think,
    Workload, WriteZones, ZoneShare,
};
