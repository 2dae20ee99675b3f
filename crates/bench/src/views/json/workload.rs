//! Workload of a phase.

use record::{Bytes, JobOptions, Pattern, WorkSummary, Workload};
use serde::Serialize;

/// Workload of a phase.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WorkloadDocument<'a> {
    pattern: &'a Pattern,
    /// Share of the requests that read, 0 to 1.
    read_fraction: f64,
    /// Size of a request.
    block_bytes: Bytes,
    /// Threads that issue I/O.
    threads: u32,
    /// Requests in flight of each thread (closed loop), or at most (open loop).
    depth: u32,
    /// Rate of an open loop, in requests a second over all threads; null for a closed loop.
    rate_per_s: Option<f64>,
    /// Bytes of the target, from its start, that are used; null where that is all of it.
    span_bytes: Option<Bytes>,
    /// Writes of a thread between two calls of fdatasync; 0 for no such calls.
    sync_every: u32,
    /// True if each thread calls fdatasync when its last write has completed.
    sync_at_end: bool,
    /// Options of a job file beyond those above; null without any.
    details: &'a Option<Box<JobOptions>>,
}

impl<'a> WorkloadDocument<'a> {
    pub(super) fn of(workload: &'a Workload) -> WorkloadDocument<'a> {
        WorkloadDocument {
            pattern: &workload.pattern,
            read_fraction: workload.read_fraction,
            block_bytes: workload.block,
            threads: workload.threads,
            depth: workload.depth,
            rate_per_s: workload.rate_per_s,
            span_bytes: workload.span,
            sync_every: workload.sync_every,
            sync_at_end: workload.sync_at_end,
            details: &workload.details,
        }
    }
}

/// Workload of a phase of another tool; a key is null where the tool does not say.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct ImportedWorkload<'a> {
    /// Pattern of positions.
    pattern: Option<&'a Pattern>,
    /// Share of the requests that read, 0 to 1.
    read_fraction: Option<f64>,
    /// Size of a request.
    block_bytes: Option<Bytes>,
    /// Threads or processes that issue I/O.
    threads: Option<u32>,
    /// Requests in flight of each thread.
    depth: Option<u32>,
    /// Rate of an open loop, in requests a second over all threads; 0 for a closed loop.
    rate_per_s: Option<f64>,
    /// Bytes of the target that are used.
    span_bytes: Option<Bytes>,
    /// Writes between two syncs; 0 for no such syncs.
    sync_every: Option<u32>,
    /// Null: not reported for imported runs.
    sync_at_end: (),
}

impl<'a> ImportedWorkload<'a> {
    pub(super) fn of(work: &'a WorkSummary) -> ImportedWorkload<'a> {
        ImportedWorkload {
            pattern: work.pattern.as_ref(),
            read_fraction: work.read_fraction,
            block_bytes: work.block,
            threads: work.threads,
            depth: work.depth,
            rate_per_s: work.rate_per_s,
            span_bytes: work.span,
            sync_every: work.sync_every,
            sync_at_end: (),
        }
    }
}
