//! A phase: one workload, run for a while, and its results.

use serde::{Deserialize, Serialize};

use crate::{DeviceCounts, Direction, Histogram, JobFileResults, Slice, Window, Workload};

/// Kernel interface of the I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// io_uring.
    Uring,
    /// pread, pwrite and fdatasync, one thread for each request in flight.
    Sync,
    /// Scripted answers, for tests.
    Scripted,
    /// Interface of another tool, for imported runs.
    Imported,
}

/// Clock that timed the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ClockKind {
    /// The processor's time-stamp counter, if it is invariant and agrees with the monotonic clock.
    Tsc,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    Monotonic,
}

/// Interface and clock of the I/O, as determined at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EngineUsed {
    /// Interface of the I/O.
    pub kind: EngineKind,
    /// Clock that timed it.
    pub clock: ClockKind,
    /// Reason why another interface was used, or features of io_uring that the kernel refused.
    pub detail: String,
}

/// Reason why a phase ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// The confidence interval was narrow enough.
    Precise,
    /// The maximum time was reached.
    Time,
    /// The number of requests was reached.
    Ops,
    /// Ctrl-C or another signal.
    Signal,
    /// A rule of its job file, such as a minimum rate.
    Rule,
}

/// Processor time that the phase used. If several phases run at the same time, it is that of the phase's own threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuTime {
    /// Processor time in user mode, in seconds.
    pub user_s: f64,
    /// Processor time in the kernel, in seconds, for the workers and the kernel threads that work for them.
    pub system_s: f64,
}

/// Requests of one direction over the whole phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// Requests completed within the measured time.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Latency in nanoseconds, from the scheduled time (open loop) or from submission (closed loop). It includes the
    /// requests in flight at the end, once they completed: otherwise the slowest would be missing.
    pub latency: Histogram,
    /// Open loop only: latency from submission.
    pub service: Option<Histogram>,
}

/// A time in which the measuring program did not run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramPause {
    /// Start, in seconds from the phase's start.
    pub t_s: f64,
    /// Length in seconds.
    pub seconds: f64,
}

/// State of the host during a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostConditions {
    /// Times in which the program did not run, in order.
    pub gaps: Vec<ProgramPause>,
    /// The share of the processors' time that the hypervisor took (steal), 0 to 1.
    pub stolen_fraction: f64,
    /// The kernel's counts for the disks from the end of the last window until the last request completed.
    pub after: Option<DeviceCounts>,
}

/// A phase: one workload, run for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// Name of the phase in its suite.
    pub name: String,
    /// The workload, with the span filled in.
    pub workload: Workload,
    /// Interface and clock of the I/O.
    pub engine: EngineUsed,
    /// Start, in seconds from the run's start.
    pub began_s: f64,
    /// Measured seconds, without the wait for requests in flight at the end.
    pub seconds: f64,
    /// Seconds from then until the last requests in flight completed.
    pub drain_seconds: f64,
    /// Reason why it ended.
    pub stopped: StopReason,
    /// Requests that read.
    pub read: Option<Flow>,
    /// Requests that write.
    pub write: Option<Flow>,
    /// fdatasync calls.
    pub sync: Option<Flow>,
    /// Commits: writes and the fdatasync that ended them.
    pub commit: Option<Flow>,
    /// Discards of blocks before they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<Flow>,
    /// Requests completed within the measured time, by thread.
    pub thread_ops: Vec<u64>,
    /// Sum of the times of each thread's requests, in seconds; empty if not known.
    #[serde(default)]
    pub thread_seconds: Vec<f64>,
    /// Processor time used.
    pub cpu: CpuTime,
    /// The windows, in order of time, without gaps.
    pub windows: Vec<Window>,
    /// The machine's state around the phase; empty in runs of versions that did not record it.
    #[serde(default)]
    pub surroundings: HostConditions,
    /// Results other than the figures.
    #[serde(default, skip_serializing_if = "JobFileResults::is_empty")]
    pub outcome: JobFileResults,
}

impl Phase {
    /// Flow of the requests that wrote data; `None` if its writes are discards.
    pub fn written(&self) -> Option<&Flow> {
        self.write.as_ref().filter(|_| !self.workload.trims())
    }

    /// Flow of a direction.
    pub fn flow(&self, direction: Direction) -> Option<&Flow> {
        match direction {
            Direction::Read => self.read.as_ref(),
            Direction::Write => self.write.as_ref(),
            Direction::Sync => self.sync.as_ref(),
            Direction::Commit => self.commit.as_ref(),
            Direction::Trim => self.trim.as_ref(),
        }
    }

    /// Mutable flow of a direction.
    pub fn flow_mut(&mut self, direction: Direction) -> &mut Option<Flow> {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Sync => &mut self.sync,
            Direction::Commit => &mut self.commit,
            Direction::Trim => &mut self.trim,
        }
    }

    /// The directions with a flow, in the order in which they are shown.
    pub fn directions(&self) -> impl Iterator<Item = (Direction, &Flow)> {
        Direction::ALL
            .into_iter()
            .filter_map(|direction| Some((direction, self.flow(direction)?)))
    }

    /// Requests per second in each complete slice of the phase, in order of time; empty if the direction has no
    /// requests or the run has no windows (an imported run).
    pub fn slice_rates(&self, direction: Direction) -> Vec<f64> {
        self.slices(direction, |slice| slice.ops)
    }

    /// Bytes per second in each complete slice of the phase.
    pub fn slice_byte_rates(&self, direction: Direction) -> Vec<f64> {
        self.slices(direction, |slice| slice.bytes)
    }

    /// Counts of a direction after the last complete slice, and the seconds since that slice: a phase with a fixed
    /// amount of work ends with its last completion, within a slice. Zero if the phase ended otherwise: the rest of a
    /// slice then has a random length, and a burst in it would count as if it had continued.
    pub fn after_slices(&self, direction: Direction) -> (Slice, f64) {
        let mut done = Slice::default();
        let Some(window) = self
            .windows
            .last()
            .filter(|_| self.stopped == StopReason::Ops)
        else {
            return (done, 0.0);
        };
        let complete = window.complete_slices();
        let flow = window.flow(direction);
        for slice in flow
            .iter()
            .flat_map(|flow| flow.slices.iter().skip(complete))
        {
            done.ops += slice.ops;
            done.bytes += slice.bytes;
        }
        let seconds = window.seconds - complete as f64 * window.slice_seconds;
        (done, seconds.max(0.0))
    }

    /// Reads and writes in each complete slice of the phase, in order of time.
    pub fn slice_ops(&self) -> Vec<f64> {
        self.windows
            .iter()
            .flat_map(|window| {
                let slices = window.slice_ops().into_iter();
                slices.take(window.complete_slices())
            })
            .map(|ops| ops as f64)
            .collect()
    }

    /// Length of a slice, in seconds.
    pub fn slice_seconds(&self) -> f64 {
        self.windows
            .first()
            .map_or(0.1, |window| window.slice_seconds)
    }

    /// Rates of a direction in each complete slice. If the last slice is shorter than the others, it is left out.
    fn slices(&self, direction: Direction, of: impl Fn(&Slice) -> u64) -> Vec<f64> {
        let mut rates = Vec::new();
        for window in &self.windows {
            if let Some(flow) = window.flow(direction) {
                let slices = flow.slices.iter().take(window.complete_slices());
                rates.extend(slices.map(|slice| of(slice) as f64 / window.slice_seconds));
            }
        }
        rates
    }
}
