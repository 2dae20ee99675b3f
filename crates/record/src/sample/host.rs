//! The host as a whole in an interval.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{BytesPerSecond, DeviceNumber, Fraction, PerSecond, ProcessSample, TracingSample};
use crate::Bytes;

/// A line of a pressure file (linux, Documentation/accounting/psi.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureLine {
    /// The share of the interval in which tasks were stalled; `None` in the first interval.
    pub stalled: Option<Fraction>,
    /// The kernel's own mean over the last 10 seconds.
    pub avg10: Fraction,
    /// The kernel's own mean over the last 60 seconds.
    pub avg60: Fraction,
    /// The kernel's own mean over the last 300 seconds.
    pub avg300: Fraction,
}

/// Time for which tasks waited for I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Time in which at least one task waited.
    pub some: PressureLine,
    /// Time in which all non-idle tasks waited at the same time.
    pub full: Option<PressureLine>,
}

/// The load of `/proc/loadavg` (proc_loadavg(5)): tasks that run, or that wait for a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Mean over one minute.
    pub one: f64,
    /// Mean over five minutes.
    pub five: f64,
    /// Mean over fifteen minutes.
    pub fifteen: f64,
}

/// Dirty memory, and the kernel's limits on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// Memory available to programs.
    pub available: Option<Bytes>,
    /// Dirty memory: written by programs, and not yet issued to a disk.
    pub dirty: Option<Bytes>,
    /// Memory that is being written to a disk.
    pub writeback: Option<Bytes>,
    /// Dirty memory at which writing programs are throttled (`vm.dirty_ratio`).
    pub limit: Option<Bytes>,
    /// Dirty memory at which the kernel begins to write (`vm.dirty_background_ratio`).
    pub background_limit: Option<Bytes>,
}

/// Traffic of an interface in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetFlow {
    /// Bytes per second.
    pub bytes: BytesPerSecond,
    /// Packets per second.
    pub packets: PerSecond,
    /// Packets with errors per second.
    pub errors: PerSecond,
    /// Dropped packets per second.
    pub drops: PerSecond,
}

/// Traffic of a network interface, which network storage shares.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceSample {
    /// Name of the interface.
    pub name: Arc<str>,
    /// Traffic received.
    pub rx: NetFlow,
    /// Traffic transmitted.
    pub tx: NetFlow,
}

/// Shares of the time of all processors in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Time in programs.
    pub user: Fraction,
    /// Time in programs of low priority.
    pub nice: Fraction,
    /// Time in the kernel, with interrupts.
    pub system: Fraction,
    /// Idle time while a task waited for a disk.
    pub iowait: Fraction,
    /// Time that the hypervisor took.
    pub steal: Fraction,
    /// Other idle time.
    pub idle: Fraction,
}

/// Quantity that a control group limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// Reads per second.
    Reads,
    /// Writes per second.
    Writes,
    /// Bytes read per second.
    ReadBytes,
    /// Bytes written per second.
    WrittenBytes,
}

impl LimitKind {
    /// All kinds.
    pub const ALL: [LimitKind; 4] = [
        LimitKind::Reads,
        LimitKind::Writes,
        LimitKind::ReadBytes,
        LimitKind::WrittenBytes,
    ];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Reads => "reads",
            LimitKind::Writes => "writes",
            LimitKind::ReadBytes => "read-bytes",
            LimitKind::WrittenBytes => "written-bytes",
        }
    }
}

/// A control group's I/O limit on a device, and its use in the interval (linux,
/// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/blkio-controller.rst).
#[derive(Clone, Debug, PartialEq)]
pub struct GroupLimit {
    /// The group's path in its hierarchy, such as `/system.slice/db.service`.
    pub group: Arc<str>,
    /// Device whose I/O is limited.
    pub device: DeviceNumber,
    /// Limited quantity.
    pub kind: LimitKind,
    /// The limit, per second.
    pub limit: f64,
    /// The group's use, per second; `None` in the first interval.
    pub used: Option<f64>,
    /// The share of the interval in which some of its tasks waited for I/O; `None` if the kernel does not report it
    /// for this group.
    pub pressure: Option<Fraction>,
}

/// Kind of an error in the kernel's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KernelErrorKind {
    /// A request failed.
    Io,
    /// A request timed out, or a controller was reset because of that.
    Timeout,
    /// A file system found damage or went read-only.
    FileSystem,
    /// md marked a member as faulty, or corrected a read error.
    Array,
}

impl KernelErrorKind {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            KernelErrorKind::Io => "io",
            KernelErrorKind::Timeout => "timeout",
            KernelErrorKind::FileSystem => "file-system",
            KernelErrorKind::Array => "array",
        }
    }
}

/// A line in the kernel's log about a disk error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelError {
    /// Kind of the error.
    pub kind: KernelErrorKind,
    /// Name of the device in the line.
    pub device: Option<String>,
    /// The line, without its time and level.
    pub text: String,
}

/// The host as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSample {
    /// I/O pressure; `None` on kernels without it (before 4.20, or disabled).
    pub pressure: Option<Pressure>,
    /// The load.
    pub load: Option<Load>,
    /// Dirty memory.
    pub memory: Option<Memory>,
    /// The processors.
    pub cpu: Option<CpuShares>,
    /// Network interfaces except the loopback, in the kernel's order.
    pub interfaces: Vec<InterfaceSample>,
    /// Errors of disks in the kernel's log in this interval.
    pub errors: Vec<KernelError>,
    /// The limits of control groups. They are not recorded.
    pub limits: Vec<GroupLimit>,
    /// The processes with most I/O, in descending order; empty if requests are not traced.
    pub processes: Vec<ProcessSample>,
    /// Cost of tracing requests; `None` if they are not traced.
    pub tracing: Option<TracingSample>,
}
