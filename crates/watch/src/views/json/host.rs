//! The host's part of the document of a sample.

use record::sample::{
    CpuShares, GroupLimit, HostSample, InterfaceSample, KernelError, Load, Memory, NetFlow,
    Pressure, PressureLine, ProcessSample, TracingSample,
};

use super::fields::{Each, Number, document};

document!(
    /// The host as a whole in an interval.
    HostPart of HostSample as host {
    /// Limits of control groups on I/O, with their use.
    "cgroup_limits": Each(&host.limits, LimitPart),
    /// Shares of the processors' time; `null` where they are not known.
    "cpu": host.cpu.as_ref().map(CpuPart),
    /// Errors of disks in the kernel's log in this interval.
    "errors": Each(&host.errors, ErrorPart),
    /// Network interfaces except the loopback.
    "interfaces": Each(&host.interfaces, InterfacePart),
    /// Load averages; `null` where they are not known.
    "load": host.load.as_ref().map(LoadPart),
    /// Dirty memory and its limits; `null` where they are not known.
    "memory": host.memory.as_ref().map(MemoryPart),
    /// Pressure stall information of I/O; `null` where the kernel does not report it.
    "pressure": host.pressure.as_ref().map(PressurePart),
    /// The processes that did most I/O, the first of them most; empty where requests are not traced.
    "processes": Each(&host.processes, ProcessPart),
    /// Cost of tracing requests; `null` where they are not traced.
    "tracing": host.tracing.as_ref().map(TracingPart),
});

document!(
    /// I/O of a process in an interval.
    ProcessPart of ProcessSample as process {
    /// Path of its control group, such as `/system.slice/mariadb.service`; `null` where it is not known.
    "cgroup": process.group,
    /// The kernel's name for it.
    "name": process.name,
    /// Process id.
    "pid": process.pid,
    /// Bytes that it had read from disks (`read_bytes` of `/proc/PID/io`).
    "read_bytes": process.read,
    /// Number of requests that its threads issued.
    "requests": process.requests,
    /// Bytes that it caused to be written (`write_bytes`), which the kernel may write later.
    "written_bytes": process.written,
});

document!(
    /// Cost of tracing requests in an interval.
    TracingPart of TracingSample as tracing {
    /// Processor time of reading the kernel's events and the processes' counters, in nanoseconds.
    "cpu_ns": tracing.cpu,
    /// Number of events that the kernel dropped: as many requests may be missing.
    "lost_events": tracing.lost,
    /// Time over which the processes' I/O was counted, in nanoseconds; 0 where it was not counted.
    "processes_over_ns": tracing.over,
    /// Number of requests whose completion was traced.
    "requests": tracing.requests,
});

document!(
    /// Shares of the time of all processors together.
    CpuPart of CpuShares as shares {
    /// Share of idle time without such a wait.
    "idle_fraction": shares.idle,
    /// Share of idle time while a task waited for a disk.
    "iowait_fraction": shares.iowait,
    /// Share in programs of low priority.
    "nice_fraction": shares.nice,
    /// Share taken by the hypervisor.
    "steal_fraction": shares.steal,
    /// Share in the kernel, with interrupts.
    "system_fraction": shares.system,
    /// Share in programs.
    "user_fraction": shares.user,
});

document!(
    /// Limit of a control group on I/O of a device, and what the group used of it.
    LimitPart of GroupLimit as limit {
    /// Major and minor number of the device: `259:0`.
    "device": Number(limit.device),
    /// Path of the control group, such as `/system.slice/db.service`.
    "group": &*limit.group,
    /// Quantity that is limited: `reads`, `writes`, `read-bytes` or `written-bytes`.
    "kind": limit.kind.name(),
    /// The limit, in requests or bytes a second.
    "limit_per_s": limit.limit,
    /// Share of the interval in which some of its tasks waited for I/O; `null` where the kernel does not report it.
    "pressure_fraction": limit.pressure,
    /// The group's use, in requests or bytes a second; `null` in the first interval.
    "used_per_s": limit.used,
});

document!(
    /// Line of the kernel's log about an error of a disk.
    ErrorPart of KernelError as error {
    /// Name of the device that the line names; `null` where it names none.
    "device": error.device,
    /// Kind of the error.
    "kind": error.kind,
    /// The line, without its time and level.
    "text": error.text,
});

document!(
    /// A network interface.
    InterfacePart of InterfaceSample as one {
    /// Name of the interface, such as `eth0`.
    "name": &*one.name,
    /// Received.
    "rx": NetPart(&one.rx),
    /// Transmitted.
    "tx": NetPart(&one.tx),
});

document!(
    /// Traffic of an interface in one direction.
    NetPart of NetFlow as flow {
    /// Bytes a second.
    "bytes_per_s": flow.bytes,
    /// Packets dropped, a second.
    "drops_per_s": flow.drops,
    /// Packets with errors, a second.
    "errors_per_s": flow.errors,
    /// Packets a second.
    "packets_per_s": flow.packets,
});

document!(
    /// Load averages: tasks that run or wait for a disk.
    LoadPart of Load as load {
    /// Mean over 15 minutes.
    "fifteen": load.fifteen,
    /// Mean over 5 minutes.
    "five": load.five,
    /// Mean over one minute.
    "one": load.one,
});

document!(
    /// Dirty memory, and the kernel's limits of it. Figures are `null` where they are not known.
    MemoryPart of Memory as memory {
    /// Memory available to programs.
    "available_bytes": memory.available,
    /// Dirty memory at which the kernel begins to write (`vm.dirty_background_ratio`).
    "background_limit_bytes": memory.background_limit,
    /// Memory written by programs, for which no write to a disk was issued yet.
    "dirty_bytes": memory.dirty,
    /// Dirty memory at which writing programs are throttled (`vm.dirty_ratio`).
    "limit_bytes": memory.limit,
    /// Memory that is being written to a disk.
    "writeback_bytes": memory.writeback,
});

document!(
    /// Pressure stall information: time for which tasks waited for I/O.
    PressurePart of Pressure as pressure {
    /// Time in which all tasks that were not idle waited at once; `null` where the kernel does not report it.
    "full": pressure.full.as_ref().map(PressureLinePart),
    /// Time in which at least one task waited.
    "some": PressureLinePart(&pressure.some),
});

document!(
    /// Shares of time in which tasks waited for I/O.
    PressureLinePart of PressureLine as line {
    /// Mean of the last 10 seconds, by the kernel.
    "avg10_fraction": line.avg10,
    /// Mean of the last 300 seconds, by the kernel.
    "avg300_fraction": line.avg300,
    /// Mean of the last 60 seconds, by the kernel.
    "avg60_fraction": line.avg60,
    /// Share of this interval; `null` in the first.
    "stalled_fraction": line.stalled,
});
