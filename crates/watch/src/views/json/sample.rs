//! The document of a sample, written field by field: a tree of values would take most of the time of a watch of many
//! devices. Keys are in alphabetical order, as in a printed tree, so that both ways give the same line.

use record::Nanos;
use record::sample::{
    ArraySample, DeviceSample, Flow, FlowKind, Gap, Latencies, LatencyBin, LatencySample, Member,
    Sample, VendorSample,
};
use serde::{Serialize, Serializer};

use ui::json::SCHEMA;

use super::fields::{Each, Number, document};
use super::host::HostPart;

/// The document of a sample.
pub(super) fn document(sample: &Sample) -> impl Serialize {
    SampleLine(sample)
}

document!(
    /// A sample: the host and its disks in an interval.
    SampleLine of Sample as sample {
    /// The devices, sorted by name.
    "devices": Each(&sample.devices, DevicePart),
    /// End of the interval, in nanoseconds since the first reading.
    "elapsed_ns": sample.at.elapsed,
    /// Gap between this interval and the one before it; `null` where there is none.
    "gap": sample.gap.as_ref().map(GapPart),
    /// Figures of the host as a whole.
    "host": HostPart(&sample.host),
    /// Always `sample`.
    "kind": "sample",
    /// Length of the interval in nanoseconds, without any time in which the machine slept. Rates are over this length.
    "length_ns": sample.length,
    /// Version of the line's form.
    "schema": SCHEMA,
    /// End of the interval by the clock; `null` in a log without timestamps.
    "time": sample.at.wall,
});

document!(
    /// Gap between an interval and the one before it.
    GapPart of Gap as gap {
    /// Reason: `suspended` (the machine slept), `set-forward` or `set-back` (the clock was set), or `unseen` (nothing
    /// was recorded).
    "kind": gap_label(*gap),
    /// Length of the gap, in nanoseconds.
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

document!(
    /// A device in an interval. Figures are `null` where the source does not know them.
    DevicePart of DeviceSample as sample {
    /// Name that the administrator gave it, such as `data` of `/dev/md/data`; `null` where it has none.
    "alias": sample.device.alias,
    /// Reads, writes and discards together.
    "all": FlowPart(&sample.all),
    /// State of the array; `null` for any other device.
    "array": sample.array.as_ref().map(ArrayPart),
    /// Share of the interval in which requests were in flight: iostat's %util.
    "busy_fraction": sample.busy,
    /// Discards.
    "discard": FlowPart(&sample.discard),
    /// Flushes; not counted on partitions.
    "flush": FlowPart(&sample.flush),
    /// Number of the device in this watch.
    "id": sample.device.id,
    /// Number of requests in flight at the end of the interval.
    "in_flight": sample.in_flight,
    /// Kind of the device.
    "kind": sample.device.kind,
    /// Latencies of its requests; `null` where they are not traced, and where none completed.
    "latency": sample.latency.as_deref().map(LatencyPart),
    /// RAID level of an array in md's words, such as `raid10`; `null` for any other device.
    "level": sample.device.level,
    /// Numbers of the devices that it lies on directly: the members of an array, the disk of a partition.
    "lies_on": sample.device.lies_on,
    /// Mean number of requests in flight: iostat's aqu-sz.
    "mean_in_flight": sample.mean_in_flight,
    /// The kernel's name, such as `nvme1n1`.
    "name": sample.device.name,
    /// Major and minor number: `259:0`; `null` in a log.
    "number": sample.device.number.map(Number),
    /// Reads.
    "read": FlowPart(&sample.read),
    /// True if a counter decreased within the interval, so that the rates are not known.
    "reset": sample.reset,
    /// The kernel's sequence number of the disk (`diskseq`), which no other disk of this boot has; `null` where it is
    /// not known.
    "sequence": sample.device.sequence,
    /// The vendor's statistics page; `null` in samples in which it was not read.
    "vendor": sample.vendor.as_ref().map(VendorPart),
    /// Writes.
    "write": FlowPart(&sample.write),
});

document!(
    /// Requests of one kind in an interval.
    FlowPart of Flow as flow {
    /// Mean latency of the completed requests in nanoseconds, with their time in the queue: iostat's await; `null`
    /// also where none completed.
    "await_ns": flow.wait,
    /// Bytes that they moved, a second.
    "bytes_per_s": flow.bytes,
    /// Requests that completed, after merging, a second.
    "iops": flow.iops,
    /// Requests that were merged into others before they were issued, a second.
    "merged_per_s": flow.merged,
    /// Mean size of the completed requests; `null` also where none completed.
    "size_bytes": flow.size,
});

document!(
    /// State of an array at the end of an interval. Figures are `null` where the kernel does not report them.
    ArrayPart of ArraySample as array {
    /// md's sync action; `null` at levels without copies or parity.
    "action": array.action,
    /// Number of members that are missing.
    "degraded": array.degraded,
    /// Position of the sync action on each member; `null` where none is under way.
    "done_bytes": array.position.map(|position| position.done),
    /// Members of the array in the order of their slots; spares and failed members come last.
    "members": Each(&array.members, MemberPart),
    /// Sectors that the last check found to differ (`mismatch_cnt`).
    "mismatched_sectors": array.mismatched,
    /// Bytes of each member that the sync action processes; `null` where none is under way.
    "of_bytes": array.position.map(|position| position.of),
    /// Speed of the sync action on each member.
    "speed_bytes_per_s": array.speed,
    /// Number of members that it should have, without spares.
    "wanted": array.wanted,
});

document!(
    /// A member or a spare of an array.
    MemberPart of Member as member {
    /// Number of the device in this watch; `null` where the kernel no longer lists it.
    "device": member.device,
    /// Read errors that md corrected from a copy since the array was assembled; `null` where the kernel does not
    /// report them.
    "errors": member.errors,
    /// The kernel's name.
    "name": member.name,
    /// Place in the array; `null` for a spare or a failed member.
    "slot": member.slot,
    /// State in md's words, such as `in_sync`.
    "state": member.state,
});

document!(
    /// Difference between two readings of an NVMe volume's own statistics page.
    VendorPart of VendorSample as page {
    /// Time between the two readings in nanoseconds, which may be longer than the interval.
    "length_ns": page.length,
    /// Time in which demand exceeded the IOPS that the instance gives all of its volumes; `null` of an instance store.
    "over_instance_iops_ns": page.exceeded.instance_iops,
    /// Time in which demand exceeded the throughput that the instance gives all of its volumes; `null` of an instance
    /// store.
    "over_instance_throughput_ns": page.exceeded.instance_bytes,
    /// Time in which demand exceeded the volume's IOPS.
    "over_volume_iops_ns": page.exceeded.volume_iops,
    /// Time in which demand exceeded the volume's throughput.
    "over_volume_throughput_ns": page.exceeded.volume_bytes,
    /// Vendor of the page.
    "page": page.page,
    /// Number of requests waiting or in flight at the second reading.
    "queue": page.queue,
    /// Bytes read.
    "read_bytes": page.read_bytes,
    /// Histogram of the latencies of reads, without empty bins.
    "read_latency": Each(&page.read_latency, BinPart),
    /// Time that all reads took together, in nanoseconds.
    "read_time_ns": page.read_time,
    /// Reads that completed.
    "reads": page.reads,
    /// Bytes written.
    "write_bytes": page.write_bytes,
    /// Histogram of the latencies of writes, without empty bins.
    "write_latency": Each(&page.write_latency, BinPart),
    /// Time that all writes took together, in nanoseconds.
    "write_time_ns": page.write_time,
    /// Writes that completed.
    "writes": page.writes,
});

document!(
    /// Latencies of the traced requests of a device by kind, from issue to completion; of devices without requests of
    /// their own, such as md and dm, from the arrival of each bio.
    LatencyPart of LatencySample as latency {
    /// All requests; `null` where none completed.
    "all": latency.all.as_ref().map(TimesPart),
    /// Discards; `null` where none completed.
    "discard": latency.kind(FlowKind::Discard).map(TimesPart),
    /// Flushes; `null` where none completed.
    "flush": latency.kind(FlowKind::Flush).map(TimesPart),
    /// Reads; `null` where none completed.
    "read": latency.kind(FlowKind::Read).map(TimesPart),
    /// Writes; `null` where none completed.
    "write": latency.kind(FlowKind::Write).map(TimesPart),
});

document!(
    /// Latencies of requests in nanoseconds.
    TimesPart of Latencies as times {
    /// Histogram, without empty bins.
    "bins": BinsPart(times),
    /// Number of requests.
    "count": times.count,
    /// Highest latency.
    "max_ns": times.max,
    /// Median latency.
    "p50_ns": times.p50,
    /// 99.9th percentile of latency.
    "p999_ns": times.p999,
    /// 99th percentile of latency.
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

document!(
    /// A bin of a histogram of latencies.
    BinPart of LatencyBin as bin {
    /// Number of requests.
    "count": bin.count,
    /// Lower bound of the bin, in nanoseconds.
    "from_ns": bin.from,
    /// Upper bound, which is not in the bin; `null` where there is none.
    "to_ns": bin.to,
});

/// The type of a sample's line.
#[cfg(feature = "schema")]
pub(super) fn sample_type() -> ui::schema::DocumentType {
    ui::schema::DocumentType::whole::<SampleLine>("watch", Some("sample"))
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
