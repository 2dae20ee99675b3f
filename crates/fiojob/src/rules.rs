//! Options that concern neither positions nor sizes: data, verification, threads, shares, and the end of a job.

use crate::errors::NonFatal;
use crate::pair::PerDirection;

/// Value of `sync=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncIo {
    /// Writes are not synchronous.
    #[default]
    None,
    /// O_SYNC.
    Full,
    /// O_DSYNC.
    Data,
}

/// Value of `exit_what=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// All jobs of its group.
    #[default]
    Group,
    /// All running jobs.
    Stonewall,
    /// All running jobs, and those that have not begun.
    All,
}

/// Value of `steadystate=`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyStateRule {
    /// The figure that must become steady.
    pub of: SteadyStateFigure,
    /// True if the slope is judged, false for the deviation.
    pub slope: bool,
    /// Maximum slope or deviation of a steady figure.
    pub limit: f64,
    /// True if the limit is in percent of the mean.
    pub percent: bool,
}

/// A figure that must become steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyStateFigure {
    /// Requests a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
    /// Latency, in nanoseconds.
    Latency,
}

/// Value of `numa_mem_policy=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumaPolicy {
    /// Rule for the use of the nodes.
    pub mode: NumaMode,
    /// The nodes.
    pub nodes: Vec<u32>,
}

/// Rule for the use of memory nodes (set_mempolicy(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumaMode {
    /// `default`.
    Default,
    /// `prefer`.
    Prefer,
    /// `bind`.
    Bind,
    /// `interleave`.
    Interleave,
    /// `local`.
    Local,
}

/// Priority of I/O: class, level and hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    /// 0 none, 1 real time, 2 best effort, 3 idle.
    pub class: u8,
    /// 0, the highest, to 7.
    pub level: u8,
    /// A hint to the device.
    pub hint: u16,
}

/// A share of the requests of one size, or of all sizes, with a priority; `None` is the priority of `cmdprio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioritySplit {
    /// Size of the requests, in bytes; `None` for all sizes.
    pub bytes: Option<u64>,
    /// Percentage of these requests.
    pub percent: u64,
    /// Priority of these requests.
    pub priority: Option<Priority>,
}

/// Value of `verify=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyMethod {
    /// A checksum in a header; with the name of the requested checksum, if it is replaced by another.
    Header(Option<&'static str>),
    /// The pattern alone.
    Pattern,
}

/// Options of a job that concern neither positions nor sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// `sync=`.
    pub sync_io: SyncIo,
    /// `startdelay=`, in microseconds; the start of a range.
    pub start_delay_us: u64,
    /// Length of that range, in microseconds; 0 for a single delay.
    pub start_delay_spread_us: u64,
    /// `exitall`.
    pub exits_all: bool,
    /// `exit_what=`.
    pub exit_what: ExitWhat,
    /// `rate_min=`, in bytes a second; 0 for no minimum.
    pub rate_min: PerDirection<u64>,
    /// `rate_iops_min=`, in requests a second; 0 for no minimum.
    pub rate_iops_min: PerDirection<u64>,
    /// `rate_cycle=`, in milliseconds.
    pub rate_cycle_ms: u64,
    /// `flow=`: the weight; 0 if not given.
    pub flow: u32,
    /// `flow_id=`.
    pub flow_id: u32,
    /// `flow_sleep=`, in microseconds.
    pub flow_sleep_us: u64,
    /// `steadystate=`.
    pub steady: Option<SteadyStateRule>,
    /// `steadystate_duration=`, in microseconds.
    pub steady_us: u64,
    /// `steadystate_ramp_time=`, in microseconds.
    pub steady_ramp_us: u64,
    /// `steadystate_check_interval=`, in microseconds.
    pub steady_interval_us: u64,
    /// `latency_target=`, in microseconds; 0 if not given.
    pub latency_us: u64,
    /// `latency_window=`, in microseconds.
    pub latency_window_us: u64,
    /// `latency_percentile=`.
    pub latency_percentile: f64,
    /// `latency_run=`.
    pub latency_run: bool,
    /// `max_latency=`, in microseconds; 0 for no limit.
    pub max_latency_us: PerDirection<u64>,
    /// `cpus_allowed=` and `cpumask=`.
    pub cpus: Vec<u32>,
    /// `cpus_allowed_policy=split`: each clone runs on one of them.
    pub cpus_split: bool,
    /// `numa_cpu_nodes=`.
    pub cpu_nodes: Vec<u32>,
    /// `numa_mem_policy=`.
    pub memory: Option<NumaPolicy>,
    /// `nice=`.
    pub nice: Option<i32>,
    /// `prioclass=`.
    pub priority_class: Option<u8>,
    /// `prio=`.
    pub priority_level: Option<u8>,
    /// `priohint=`.
    pub priority_hint: u16,
    /// `cmdprio_percentage=` and `cmdprio_bssplit=`.
    pub priorities: PerDirection<Vec<PrioritySplit>>,
    /// `cmdprio_class=`, `cmdprio=` and `cmdprio_hint=`.
    pub request_priority: PerDirection<Priority>,
    /// `buffer_compress_percentage=`.
    pub compress_percent: Option<u64>,
    /// `buffer_compress_chunk=`, in bytes; 0 for fio's default.
    pub compress_chunk: u64,
    /// `buffer_pattern=`.
    pub buffer_pattern: Vec<u8>,
    /// `zero_buffers`.
    pub zeros: bool,
    /// `dedupe_percentage=`.
    pub dedupe_percent: u64,
    /// `dedupe_mode=working_set`.
    pub dedupe_set: bool,
    /// `dedupe_working_set_percentage=`.
    pub dedupe_set_percent: u64,
    /// `dedupe_global=`.
    pub dedupe_global: bool,
    /// `stats=`: true if its figures are included in the sum of its group.
    pub counted: bool,
    /// `fill_device=`.
    pub fill_device: bool,
    /// `verify=`.
    pub verify: Option<VerifyMethod>,
    /// `verify_interval=`, in bytes; 0 for the size of a request.
    pub verify_interval: u64,
    /// `verify_offset=`, in bytes.
    pub verify_offset: u64,
    /// `verify_pattern=`.
    pub verify_pattern: Vec<u8>,
    /// `do_verify=`.
    pub reads_back: bool,
    /// `verify_fatal=`.
    pub verify_fatal: bool,
    /// `verify_backlog=`.
    pub verify_backlog: u32,
    /// `verify_write_sequence=`.
    pub verify_sequence: bool,
    /// `continue_on_error=` and `ignore_error=`.
    pub non_fatal: NonFatal,
    /// `sprandom=`.
    pub ages: bool,
}

impl Default for Rules {
    /// fio's defaults.
    fn default() -> Rules {
        let real_time = Priority {
            class: 1,
            ..Priority::default()
        };
        Rules {
            sync_io: SyncIo::None,
            start_delay_us: 0,
            start_delay_spread_us: 0,
            exits_all: false,
            exit_what: ExitWhat::Group,
            rate_min: PerDirection::default(),
            rate_iops_min: PerDirection::default(),
            rate_cycle_ms: 1000,
            flow: 0,
            flow_id: 0,
            flow_sleep_us: 0,
            steady: None,
            steady_us: 0,
            steady_ramp_us: 0,
            steady_interval_us: 1_000_000,
            latency_us: 0,
            latency_window_us: 0,
            latency_percentile: 100.0,
            latency_run: false,
            max_latency_us: PerDirection::default(),
            cpus: Vec::new(),
            cpus_split: false,
            cpu_nodes: Vec::new(),
            memory: None,
            nice: None,
            priority_class: None,
            priority_level: None,
            priority_hint: 0,
            priorities: PerDirection::default(),
            request_priority: PerDirection {
                read: real_time,
                write: real_time,
            },
            compress_percent: None,
            compress_chunk: 0,
            buffer_pattern: Vec::new(),
            zeros: false,
            dedupe_percent: 0,
            dedupe_set: false,
            dedupe_set_percent: 5,
            dedupe_global: false,
            counted: true,
            fill_device: false,
            verify: None,
            verify_interval: 0,
            verify_offset: 0,
            verify_pattern: Vec::new(),
            reads_back: true,
            verify_fatal: false,
            verify_backlog: 0,
            verify_sequence: true,
            non_fatal: NonFatal::default(),
            ages: false,
        }
    }
}
