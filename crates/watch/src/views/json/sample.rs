//! The document of a sample, written as it goes: where a tree of values is made first, that takes most of the
//! time that a watch of many devices takes. Keys stand in alphabetical order, as they do where such a tree is
//! printed, so that a line is the same whichever way it was made.

use record::Nanos;
use record::sample::{
    ArraySample, CpuShares, DeviceNumber, DeviceSample, Flow, FlowKind, Gap, GroupLimit,
    HostSample, InterfaceSample, KernelError, Latencies, LatencyBin, LatencySample, Load, Member,
    Memory, NetFlow, Pressure, PressureLine, ProcessSample, Sample, TracingSample, VendorSample,
};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use ui::json::SCHEMA;

#[cfg(feature = "schema")]
mod schema;

/// Makes a type that is written as a document: the keys, and the value of each.
macro_rules! document {
    ($part:ident of $of:ty as $one:ident { $($key:literal: $value:expr,)* }) => {
        struct $part<'a>(&'a $of);

        impl Serialize for $part<'_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let $one = self.0;
                let mut document = to.serialize_map(None)?;
                $(document.serialize_entry($key, &$value)?;)*
                document.end()
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $part<'_> {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($part).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut fields = schema::Fields::new(generator);
                $(fields.add($key, |$one: &$of| {
                    let _ = $one;
                    schema::type_of(&$value)
                });)*
                fields.schema()
            }
        }
    };
}

/// A list, of which each is written as a document.
struct Each<'a, T, U>(&'a [T], fn(&'a T) -> U);

impl<T, U: Serialize> Serialize for Each<'_, T, U> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(self.1))
    }
}

/// The document of a sample.
pub(super) fn document(sample: &Sample) -> impl Serialize {
    SampleLine(sample)
}

document!(SampleLine of Sample as sample {
    "devices": Each(&sample.devices, DevicePart),
    "elapsed_ns": sample.at.elapsed,
    "gap": sample.gap.as_ref().map(GapPart),
    "host": HostPart(&sample.host),
    "kind": "sample",
    "length_ns": sample.length,
    "schema": SCHEMA,
    "time": sample.at.wall,
});

document!(GapPart of Gap as gap {
    "kind": gap_label(*gap),
    "length_ns": gap_length(*gap),
});

fn gap_label(gap: Gap) -> &'static str {
    match gap {
        Gap::Suspended(_) => "suspended",
        Gap::SetForward(_) => "set-forward",
        Gap::SetBack(_) => "set-back",
        Gap::Unseen(_) => "unseen",
    }
}

fn gap_length(gap: Gap) -> Nanos {
    let (Gap::Suspended(length)
    | Gap::SetForward(length)
    | Gap::SetBack(length)
    | Gap::Unseen(length)) = gap;
    length
}

document!(DevicePart of DeviceSample as sample {
    "alias": sample.device.alias,
    "all": FlowPart(&sample.all),
    "array": sample.array.as_ref().map(ArrayPart),
    "busy_fraction": sample.busy,
    "discard": FlowPart(&sample.discard),
    "flush": FlowPart(&sample.flush),
    "id": sample.device.id,
    "in_flight": sample.in_flight,
    "kind": sample.device.kind,
    "latency": sample.latency.as_deref().map(LatencyPart),
    "level": sample.device.level,
    "lies_on": sample.device.lies_on,
    "mean_in_flight": sample.mean_in_flight,
    "name": sample.device.name,
    "number": sample.device.number.map(Number),
    "read": FlowPart(&sample.read),
    "reset": sample.reset,
    "sequence": sample.device.sequence,
    "vendor": sample.vendor.as_ref().map(VendorPart),
    "write": FlowPart(&sample.write),
});

/// `major:minor`.
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(into = "String")
)]
struct Number(DeviceNumber);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

document!(FlowPart of Flow as flow {
    "await_ns": flow.wait,
    "bytes_per_s": flow.bytes,
    "iops": flow.iops,
    "merged_per_s": flow.merged,
    "size_bytes": flow.size,
});

document!(ArrayPart of ArraySample as array {
    "action": array.action,
    "degraded": array.degraded,
    "done_bytes": array.position.map(|position| position.done),
    "members": Each(&array.members, MemberPart),
    "mismatched_sectors": array.mismatched,
    "of_bytes": array.position.map(|position| position.of),
    "speed_bytes_per_s": array.speed,
    "wanted": array.wanted,
});

document!(MemberPart of Member as member {
    "device": member.device,
    "errors": member.errors,
    "name": member.name,
    "slot": member.slot,
    "state": member.state,
});

document!(VendorPart of VendorSample as page {
    "length_ns": page.length,
    "over_instance_iops_ns": page.exceeded.instance_iops,
    "over_instance_throughput_ns": page.exceeded.instance_bytes,
    "over_volume_iops_ns": page.exceeded.volume_iops,
    "over_volume_throughput_ns": page.exceeded.volume_bytes,
    "page": page.page,
    "queue": page.queue,
    "read_bytes": page.read_bytes,
    "read_latency": Each(&page.read_latency, BinPart),
    "read_time_ns": page.read_time,
    "reads": page.reads,
    "write_bytes": page.write_bytes,
    "write_latency": Each(&page.write_latency, BinPart),
    "write_time_ns": page.write_time,
    "writes": page.writes,
});

document!(LatencyPart of LatencySample as latency {
    "all": latency.all.as_ref().map(TimesPart),
    "discard": latency.kind(FlowKind::Discard).map(TimesPart),
    "flush": latency.kind(FlowKind::Flush).map(TimesPart),
    "read": latency.kind(FlowKind::Read).map(TimesPart),
    "write": latency.kind(FlowKind::Write).map(TimesPart),
});

document!(TimesPart of Latencies as times {
    "bins": BinsPart(times),
    "count": times.count,
    "max_ns": times.max,
    "p50_ns": times.p50,
    "p999_ns": times.p999,
    "p99_ns": times.p99,
});

/// The bins of a histogram, made as they are written.
struct BinsPart<'a>(&'a Latencies);

impl Serialize for BinsPart<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Each(&bins(self.0), BinPart).serialize(to)
    }
}

fn bins(times: &Latencies) -> Vec<LatencyBin> {
    let histogram = times.histogram();
    let bin = |(low, high, count): (u64, u64, u64)| LatencyBin {
        from: Nanos(low),
        to: Some(Nanos(high.saturating_add(1))),
        count,
    };
    histogram.buckets().map(bin).collect()
}

document!(BinPart of LatencyBin as bin {
    "count": bin.count,
    "from_ns": bin.from,
    "to_ns": bin.to,
});

document!(HostPart of HostSample as host {
    "cgroup_limits": Each(&host.limits, LimitPart),
    "cpu": host.cpu.as_ref().map(CpuPart),
    "errors": Each(&host.errors, ErrorPart),
    "interfaces": Each(&host.interfaces, InterfacePart),
    "load": host.load.as_ref().map(LoadPart),
    "memory": host.memory.as_ref().map(MemoryPart),
    "pressure": host.pressure.as_ref().map(PressurePart),
    "processes": Each(&host.processes, ProcessPart),
    "tracing": host.tracing.as_ref().map(TracingPart),
});

document!(ProcessPart of ProcessSample as process {
    "cgroup": process.group,
    "name": process.name,
    "pid": process.pid,
    "read_bytes": process.read,
    "requests": process.requests,
    "written_bytes": process.written,
});

document!(TracingPart of TracingSample as tracing {
    "cpu_ns": tracing.cpu,
    "lost_events": tracing.lost,
    "processes_over_ns": tracing.over,
    "requests": tracing.requests,
});

document!(CpuPart of CpuShares as shares {
    "idle_fraction": shares.idle,
    "iowait_fraction": shares.iowait,
    "nice_fraction": shares.nice,
    "steal_fraction": shares.steal,
    "system_fraction": shares.system,
    "user_fraction": shares.user,
});

document!(LimitPart of GroupLimit as limit {
    "device": Number(limit.device),
    "group": &*limit.group,
    "kind": limit.kind.name(),
    "limit_per_s": limit.limit,
    "pressure_fraction": limit.pressure,
    "used_per_s": limit.used,
});

document!(ErrorPart of KernelError as error {
    "device": error.device,
    "kind": error.kind,
    "text": error.text,
});

document!(InterfacePart of InterfaceSample as one {
    "name": &*one.name,
    "rx": NetPart(&one.rx),
    "tx": NetPart(&one.tx),
});

document!(NetPart of NetFlow as flow {
    "bytes_per_s": flow.bytes,
    "drops_per_s": flow.drops,
    "errors_per_s": flow.errors,
    "packets_per_s": flow.packets,
});

document!(LoadPart of Load as load {
    "fifteen": load.fifteen,
    "five": load.five,
    "one": load.one,
});

document!(MemoryPart of Memory as memory {
    "available_bytes": memory.available,
    "background_limit_bytes": memory.background_limit,
    "dirty_bytes": memory.dirty,
    "limit_bytes": memory.limit,
    "writeback_bytes": memory.writeback,
});

document!(PressurePart of Pressure as pressure {
    "full": pressure.full.as_ref().map(PressureLinePart),
    "some": PressureLinePart(&pressure.some),
});

document!(PressureLinePart of PressureLine as line {
    "avg10_fraction": line.avg10,
    "avg300_fraction": line.avg300,
    "avg60_fraction": line.avg60,
    "stalled_fraction": line.stalled,
});

/// The type of a sample's line.
#[cfg(feature = "schema")]
pub(super) fn sample_type() -> ui::schema::DocumentType {
    ui::schema::DocumentType::whole::<SampleLine>("watch", Some("sample"))
}

#[cfg(feature = "schema")]
impl<T, U: schemars::JsonSchema> schemars::JsonSchema for Each<'_, T, U> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Vec::<U>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Vec::<U>::json_schema(generator)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for BinsPart<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Vec::<BinPart<'_>>::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Vec::<BinPart<'_>>::json_schema(generator)
    }
}
