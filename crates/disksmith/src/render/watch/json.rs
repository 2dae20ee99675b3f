//! One JSON document a line: what is watched, each interval, each thing that is found. Its keys are
//! read by other programs: none is renamed or retyped without raising the schema.

use record::sample::{
    ArraySample, CpuShares, DeviceSample, Flow, Gap, HostSample, LatencyBin, Moment, NetFlow,
    Pressure, PressureLine, Sample, Source, VendorSample,
};
use record::{Event, Figure};
use serde_json::{Map, Value, json};
use study::watch::{Change, ChangeKind};

use crate::render::json::SCHEMA;

/// The first line: what is watched.
pub(crate) fn start(source: &Source) -> String {
    line(json!({
        "schema": SCHEMA,
        "command": "watch",
        "kind": "start",
        "disksmith": env!("CARGO_PKG_VERSION"),
        "source": source.kind,
        "hostname": source.hostname,
        "kernel": source.kernel,
        "cpus": source.cpus,
    }))
}

/// Something that cannot be seen, and why.
pub(crate) fn note(text: &str) -> String {
    line(json!({ "schema": SCHEMA, "kind": "note", "text": text }))
}

/// The lines of a sample and of what was found in it.
pub(crate) fn lines(sample: &Sample, changes: &[Change]) -> String {
    line(value(sample)) + &self::changes(changes)
}

/// The lines of what was found, or is over.
pub(crate) fn changes(changes: &[Change]) -> String {
    changes
        .iter()
        .map(|change| line(change_value(change)))
        .collect()
}

fn line(value: Value) -> String {
    format!("{value}\n")
}

fn value(sample: &Sample) -> Value {
    let devices: Vec<Value> = sample.devices.iter().map(device).collect();
    json!({
        "schema": SCHEMA,
        "kind": "sample",
        "time": sample.at.wall,
        "elapsed_ns": sample.at.elapsed,
        "length_ns": sample.length,
        "gap": sample.gap.map(gap),
        "host": host(&sample.host),
        "devices": devices,
    })
}

fn gap(gap: Gap) -> Value {
    let (kind, length) = match gap {
        Gap::Suspended(length) => ("suspended", length),
        Gap::SetForward(length) => ("set-forward", length),
        Gap::SetBack(length) => ("set-back", length),
        Gap::Unseen(length) => ("unseen", length),
    };
    json!({ "kind": kind, "length_ns": length })
}

fn device(sample: &DeviceSample) -> Value {
    let device = &sample.device;
    json!({
        "id": device.id,
        "name": device.name,
        "alias": device.alias,
        "number": device.number.map(|number| number.to_string()),
        "sequence": device.sequence,
        "kind": device.kind,
        "level": device.level,
        "lies_on": device.lies_on,
        "read": flow(&sample.read),
        "write": flow(&sample.write),
        "discard": flow(&sample.discard),
        "flush": flow(&sample.flush),
        "all": flow(&sample.all),
        "mean_in_flight": sample.mean_in_flight,
        "in_flight": sample.in_flight,
        "busy_fraction": sample.busy,
        "reset": sample.reset,
        "array": sample.array.as_ref().map(array),
        "vendor": sample.vendor.as_ref().map(vendor),
    })
}

fn flow(flow: &Flow) -> Value {
    json!({
        "iops": flow.iops,
        "bytes_per_s": flow.bytes,
        "merged_per_s": flow.merged,
        "await_ns": flow.wait,
        "size_bytes": flow.size,
    })
}

fn array(array: &ArraySample) -> Value {
    let members: Vec<Value> = array
        .members
        .iter()
        .map(|member| {
            json!({
                "device": member.device,
                "name": member.name,
                "slot": member.slot,
                "state": member.state,
                "errors": member.errors,
            })
        })
        .collect();
    json!({
        "action": array.action,
        "done_bytes": array.position.map(|position| position.done),
        "of_bytes": array.position.map(|position| position.of),
        "speed_bytes_per_s": array.speed,
        "wanted": array.wanted,
        "degraded": array.degraded,
        "mismatched_sectors": array.mismatched,
        "members": members,
    })
}

fn vendor(page: &VendorSample) -> Value {
    let bins = |bins: &[LatencyBin]| -> Vec<Value> {
        let bin =
            |bin: &LatencyBin| json!({ "from_ns": bin.from, "to_ns": bin.to, "count": bin.count });
        bins.iter().map(bin).collect()
    };
    let exceeded = &page.exceeded;
    json!({
        "page": page.page,
        "length_ns": page.length,
        "reads": page.reads,
        "writes": page.writes,
        "read_bytes": page.read_bytes,
        "write_bytes": page.write_bytes,
        "read_time_ns": page.read_time,
        "write_time_ns": page.write_time,
        "over_volume_iops_ns": exceeded.volume_iops,
        "over_volume_throughput_ns": exceeded.volume_bytes,
        "over_instance_iops_ns": exceeded.instance_iops,
        "over_instance_throughput_ns": exceeded.instance_bytes,
        "queue": page.queue,
        "read_latency": bins(&page.read_latency),
        "write_latency": bins(&page.write_latency),
    })
}

fn host(host: &HostSample) -> Value {
    let interfaces: Vec<Value> = host
        .interfaces
        .iter()
        .map(|one| json!({ "name": &*one.name, "rx": net(&one.rx), "tx": net(&one.tx) }))
        .collect();
    let memory = host.memory.as_ref().map(|memory| {
        json!({
            "available_bytes": memory.available,
            "dirty_bytes": memory.dirty,
            "writeback_bytes": memory.writeback,
            "limit_bytes": memory.limit,
            "background_limit_bytes": memory.background_limit,
        })
    });
    json!({
        "pressure": host.pressure.as_ref().map(pressure),
        "load": host.load,
        "memory": memory,
        "cpu": host.cpu.as_ref().map(cpu),
        "interfaces": interfaces,
        "errors": host.errors,
    })
}

fn pressure(pressure: &Pressure) -> Value {
    let line = |line: &PressureLine| {
        json!({
            "stalled_fraction": line.stalled,
            "avg10_fraction": line.avg10,
            "avg60_fraction": line.avg60,
            "avg300_fraction": line.avg300,
        })
    };
    json!({ "some": line(&pressure.some), "full": pressure.full.as_ref().map(line) })
}

fn cpu(shares: &CpuShares) -> Value {
    json!({
        "user_fraction": shares.user,
        "nice_fraction": shares.nice,
        "system_fraction": shares.system,
        "iowait_fraction": shares.iowait,
        "steal_fraction": shares.steal,
        "idle_fraction": shares.idle,
    })
}

fn net(flow: &NetFlow) -> Value {
    json!({
        "bytes_per_s": flow.bytes,
        "packets_per_s": flow.packets,
        "errors_per_s": flow.errors,
        "drops_per_s": flow.drops,
    })
}

fn change_value(change: &Change) -> Value {
    let kind = match change.kind {
        ChangeKind::Opened => "opened",
        ChangeKind::Updated => "updated",
        ChangeKind::Closed => "closed",
    };
    json!({
        "schema": SCHEMA,
        "kind": "finding",
        "change": kind,
        "finding": event(&change.event),
    })
}

/// A finding with its beginning, its end and its figures.
pub(crate) fn event(event: &Event) -> Value {
    json!({
        "id": event.id,
        "code": event.code,
        "severity": event.severity,
        "subject": event.subject,
        "name": event.name,
        "began": moment(event.began),
        "ended": event.ended.map(moment),
        "text": event.text,
        "advice": event.advice,
        "figures": figures(&event.figures),
    })
}

fn moment(moment: Moment) -> Value {
    json!({ "time": moment.wall, "elapsed_ns": moment.elapsed })
}

fn figures(figures: &[Figure]) -> Value {
    let pairs = figures
        .iter()
        .map(|figure| (figure.key.clone(), json!(figure.value)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use record::Nanos;
    use record::sample::Fraction;

    use super::*;

    #[test]
    fn every_time_and_share_has_its_unit_in_its_key() {
        let mut sample = Sample {
            gap: Some(Gap::SetBack(Nanos::from_secs(3600))),
            ..Sample::default()
        };
        let line = PressureLine {
            stalled: Some(Fraction(0.25)),
            ..PressureLine::default()
        };
        sample.host.pressure = Some(Pressure {
            some: line,
            full: None,
        });
        sample.host.cpu = Some(CpuShares {
            iowait: Fraction(0.5),
            ..CpuShares::default()
        });
        let value = value(&sample);
        let gap = json!({ "kind": "set-back", "length_ns": 3_600_000_000_000_u64 });
        assert_eq!(value["gap"], gap);
        let host = &value["host"];
        assert_eq!(host["pressure"]["some"]["stalled_fraction"], 0.25);
        assert!(host["pressure"]["full"].is_null());
        assert_eq!(host["cpu"]["iowait_fraction"], 0.5);
    }
}
