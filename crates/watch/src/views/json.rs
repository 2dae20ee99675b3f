//! JSON lines: one document for the source, for each interval, and for each change of a finding. Other programs read
//! their keys: none is renamed or retyped without raising the schema.

mod fields;
mod host;
mod sample;

use std::collections::BTreeMap;

use jiff::Timestamp;
use record::sample::{Sample, SampleSource, SampleTime, SourceKind};
use record::{Nanos, Severity, Subject};
use serde::Serialize;
use study::watch::{ChangeKind, EventChange};
use study::watch::{EventCode, WatchEvent};

use ui::json::SCHEMA;

/// A line: the version of its form, its kind, and the fields of that kind.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Line<T> {
    /// Version of the line's form.
    schema: u32,
    /// Kind of the line.
    kind: &'static str,
    /// Fields of that kind.
    #[serde(flatten)]
    body: T,
}

/// A line as text.
pub(super) fn line(kind: &'static str, body: impl Serialize) -> String {
    let line = Line {
        schema: SCHEMA,
        kind,
        body,
    };
    // Memory is all that could fail, and there is none that could.
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

/// The first line: what is watched.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StartLine<'a> {
    /// Always `watch`.
    command: &'static str,
    /// Version of the program that watches.
    disksmith: &'static str,
    /// Source of the samples.
    source: SourceKind,
    /// Host that is watched; `null` where a log does not name it.
    hostname: Option<&'a str>,
    /// Release of the kernel; `null` where a log does not name it.
    kernel: Option<&'a str>,
    /// Number of processors of the host; `null` where a log does not name it.
    cpus: Option<u32>,
}

pub(crate) fn start(source: &SampleSource) -> String {
    let start = StartLine {
        command: "watch",
        disksmith: env!("CARGO_PKG_VERSION"),
        source: source.kind,
        hostname: source.hostname.as_deref(),
        kernel: source.kernel.as_deref(),
        cpus: source.cpus,
    };
    line("start", start)
}

/// The line of a note on data that are missing, with the reason.
pub(crate) fn note(text: &str) -> String {
    line("note", NoteLine { text })
}

/// A note: something that cannot be seen, and why.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NoteLine<'a> {
    /// The note as a sentence.
    text: &'a str,
}

/// The lines of a sample and of its changes of findings.
pub(crate) fn lines(sample: &Sample, changes: &[EventChange]) -> String {
    // Memory is all that could fail, and there is none that could.
    let mut text = serde_json::to_string(&sample::document(sample)).unwrap_or_default();
    text.push('\n');
    text.push_str(&self::changes(changes));
    text
}

/// The lines of changes of findings.
pub(crate) fn changes(changes: &[EventChange]) -> String {
    changes.iter().map(change_line).collect()
}

/// The line of a finding that begins, changes or ends.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FindingLine<'a> {
    /// `opened`, `updated`, `closed`, or `unfinished` where a log ends while it lasts.
    change: &'static str,
    /// The finding as it is now.
    finding: FindingDocument<'a>,
}

fn change_line(change: &EventChange) -> String {
    let kind = match change.kind {
        ChangeKind::Opened => "opened",
        ChangeKind::Updated => "updated",
        ChangeKind::Closed => "closed",
        ChangeKind::Unfinished => "unfinished",
    };
    let finding = FindingLine {
        change: kind,
        finding: FindingDocument::of(&change.event),
    };
    line("finding", finding)
}

/// A finding with its beginning, its end and its figures.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FindingDocument<'a> {
    /// Number of the finding in this watch.
    id: u64,
    /// Code of the finding, which names its rule.
    code: EventCode,
    /// Severity of the finding.
    severity: Severity,
    /// The device or the host that it is about.
    subject: &'a Subject,
    /// Name of the subject: the device's, or `host`.
    name: &'a str,
    /// Start of its cause, which is before it was found.
    began: MomentDocument,
    /// Last time at which its cause was seen; `null` while it lasts.
    ended: Option<MomentDocument>,
    /// Sentence with the observation, its figures and their meaning.
    text: &'a str,
    /// Advice as a sentence.
    advice: &'a str,
    /// Figures by their keys, which name the unit.
    figures: BTreeMap<&'a str, f64>,
}

/// A moment by the clock, and since the watch began.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MomentDocument {
    /// Time of day; `null` in a log without timestamps.
    time: Option<Timestamp>,
    /// Time since the first reading, in nanoseconds.
    elapsed_ns: Nanos,
}

impl<'a> FindingDocument<'a> {
    pub(crate) fn of(event: &'a WatchEvent) -> FindingDocument<'a> {
        let figures = event.figures.iter();
        FindingDocument {
            id: event.id,
            code: event.code,
            severity: event.severity,
            subject: &event.subject,
            name: &event.name,
            began: event.began.into(),
            ended: event.ended.map(MomentDocument::from),
            text: &event.text,
            advice: &event.advice,
            figures: figures
                .map(|figure| (figure.key.as_str(), figure.value))
                .collect(),
        }
    }
}

impl From<SampleTime> for MomentDocument {
    fn from(moment: SampleTime) -> MomentDocument {
        MomentDocument {
            time: moment.wall,
            elapsed_ns: moment.elapsed,
        }
    }
}

/// The types of the lines.
#[cfg(feature = "schema")]
pub(crate) fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    vec![
        DocumentType::whole::<Line<StartLine>>("watch", Some("start")),
        DocumentType::whole::<Line<NoteLine>>("watch", Some("note")),
        DocumentType::whole::<Line<FindingLine>>("watch", Some("finding")),
        DocumentType::whole::<Line<crate::mark::MarkDocument>>("watch", Some("mark")),
        sample::sample_type(),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use record::sample::{
        ArraySample, BytesPerSecond, CpuShares, Device, DeviceId, DeviceKind, DeviceNumber,
        DeviceSample, Flow, Fraction, Gap, GroupLimit, HostSample, InterfaceSample, KernelError,
        KernelErrorKind, LatencyBin, LatencySample, LimitKind, Load, Member, Memory, NetFlow,
        PerSecond, Pressure, PressureLine, ProcessSample, Progress, SyncAction, TimeOverLimits,
        TracingSample, VendorPage, VendorSample,
    };
    use record::{Bytes, Histogram, Nanos};

    use super::*;

    /// A device with all possible figures.
    fn device() -> DeviceSample {
        let mut device = Device::by_name(DeviceId(7), "md\"0\n", SampleTime::default());
        device.alias = Some("data".to_owned());
        device.kind = DeviceKind::Array;
        device.level = Some(record::raid::Level::One.into());
        device.number = Some(DeviceNumber { major: 9, minor: 0 });
        device.sequence = Some(12);
        device.lies_on = vec![DeviceId(1), DeviceId(2)];
        let mut sample = DeviceSample::unknown(Arc::new(device));
        sample.read = Flow {
            iops: Some(PerSecond(100.0)),
            bytes: Some(BytesPerSecond(1e21)),
            merged: Some(PerSecond(0.1)),
            wait: Some(Nanos(1_500_000)),
            size: Some(Bytes::kib(16)),
        };
        sample.flush.iops = Some(PerSecond(f64::NAN));
        sample.mean_in_flight = Some(0.25);
        sample.in_flight = Some(3);
        sample.busy = Some(Fraction(0.5));
        sample.reset = true;
        sample.array = Some(ArraySample {
            action: Some(SyncAction::Check),
            position: Some(Progress {
                done: Bytes(1),
                of: Bytes(2),
            }),
            speed: Some(BytesPerSecond(5.5)),
            wanted: Some(2),
            degraded: Some(1),
            mismatched: Some(128),
            members: vec![Member {
                device: Some(DeviceId(1)),
                name: "sda".to_owned(),
                slot: None,
                state: vec!["faulty".to_owned(), "spare".to_owned()],
                errors: Some(4),
            }],
        });
        sample.vendor = Some(VendorSample {
            page: VendorPage::InstanceStore,
            length: Nanos(10),
            reads: 1,
            writes: 2,
            read_bytes: 3,
            write_bytes: 4,
            read_time: Nanos(5),
            write_time: Nanos(6),
            exceeded: TimeOverLimits {
                volume_iops: Nanos(7),
                volume_bytes: Nanos(8),
                instance_iops: Some(Nanos(9)),
                instance_bytes: None,
            },
            queue: 11,
            read_latency: vec![LatencyBin {
                from: Nanos(0),
                to: Some(Nanos(1)),
                count: 12,
            }],
            write_latency: vec![LatencyBin {
                from: Nanos(1),
                to: None,
                count: 13,
            }],
        });
        let mut times: [Histogram; 4] = Default::default();
        times[0].record(100);
        sample.latency = Some(Arc::new(LatencySample::of(&times)));
        sample
    }

    fn host() -> HostSample {
        let flow = |bytes: f64| NetFlow {
            bytes: BytesPerSecond(bytes),
            packets: PerSecond(2.0),
            errors: PerSecond(3.0),
            drops: PerSecond(4.0),
        };
        HostSample {
            pressure: Some(Pressure {
                some: PressureLine {
                    stalled: Some(Fraction(0.25)),
                    avg10: Fraction(0.1),
                    avg60: Fraction(0.2),
                    avg300: Fraction(0.3),
                },
                full: None,
            }),
            load: Some(Load {
                one: 1.0,
                five: 5.5,
                fifteen: 15.0,
            }),
            memory: Some(Memory {
                available: Some(Bytes(1)),
                dirty: Some(Bytes(2)),
                writeback: Some(Bytes(3)),
                limit: Some(Bytes(4)),
                background_limit: None,
            }),
            cpu: Some(CpuShares {
                user: Fraction(0.5),
                iowait: Fraction(0.5),
                ..CpuShares::default()
            }),
            interfaces: vec![InterfaceSample {
                name: "eth0".into(),
                rx: flow(1.0),
                tx: flow(1.5),
            }],
            errors: vec![KernelError {
                kind: KernelErrorKind::FileSystem,
                device: None,
                text: "EXT4-fs error".to_owned(),
            }],
            limits: vec![GroupLimit {
                group: "/db".into(),
                device: DeviceNumber {
                    major: 8,
                    minor: 16,
                },
                kind: LimitKind::ReadBytes,
                limit: 1e6,
                used: Some(5.5),
                pressure: None,
            }],
            processes: vec![ProcessSample {
                pid: 12,
                name: "mariadbd".into(),
                group: None,
                read: Bytes(1),
                written: Bytes(2),
                requests: 3,
            }],
            tracing: Some(TracingSample {
                cpu: Nanos(1),
                requests: 2,
                lost: 3,
                over: Nanos(4),
            }),
        }
    }

    /// The same sample as a tree of values, of which it is known how it is printed.
    fn tree() -> Value {
        let nothing = json!({
            "iops": null, "bytes_per_s": null, "merged_per_s": null, "await_ns": null, "size_bytes": null,
        });
        let flow = |bytes: f64| {
            json!({
                "bytes_per_s": bytes, "packets_per_s": 2.0, "errors_per_s": 3.0, "drops_per_s": 4.0,
            })
        };
        let read = json!({
            "iops": 100.0, "bytes_per_s": 1e21, "merged_per_s": 0.1, "await_ns": 1_500_000, "size_bytes": 16384,
        });
        let array = json!({
            "action": "check", "done_bytes": 1, "of_bytes": 2, "speed_bytes_per_s": 5.5, "wanted": 2,
            "degraded": 1, "mismatched_sectors": 128,
            "members": [{
                "device": 1, "name": "sda", "slot": null, "state": ["faulty", "spare"], "errors": 4,
            }],
        });
        let vendor = json!({
            "page": "instance-store", "length_ns": 10, "reads": 1, "writes": 2, "read_bytes": 3,
            "write_bytes": 4, "read_time_ns": 5, "write_time_ns": 6, "over_volume_iops_ns": 7,
            "over_volume_throughput_ns": 8, "over_instance_iops_ns": 9,
            "over_instance_throughput_ns": null, "queue": 11,
            "read_latency": [{ "from_ns": 0, "to_ns": 1, "count": 12 }],
            "write_latency": [{ "from_ns": 1, "to_ns": null, "count": 13 }],
        });
        let times = json!({
            "count": 1, "p50_ns": 100, "p99_ns": 100, "p999_ns": 100, "max_ns": 100,
            "bins": [{ "from_ns": 100, "to_ns": 101, "count": 1 }],
        });
        let latency = json!({
            "all": times, "read": times, "write": null, "discard": null, "flush": null,
        });
        let device = json!({
            "id": 7, "latency": latency, "name": "md\"0\n", "alias": "data", "number": "9:0", "sequence": 12, "kind": "array",
            "level": "raid1", "lies_on": [1, 2], "read": read, "write": nothing, "discard": nothing,
            "flush": nothing, "all": nothing, "mean_in_flight": 0.25, "in_flight": 3,
            "busy_fraction": 0.5, "reset": true, "array": array, "vendor": vendor,
        });
        let pressure = json!({
            "stalled_fraction": 0.25, "avg10_fraction": 0.1, "avg60_fraction": 0.2, "avg300_fraction": 0.3,
        });
        let host = json!({
            "pressure": { "some": pressure, "full": null },
            "load": { "one": 1.0, "five": 5.5, "fifteen": 15.0 },
            "memory": {
                "available_bytes": 1, "dirty_bytes": 2, "writeback_bytes": 3, "limit_bytes": 4,
                "background_limit_bytes": null,
            },
            "cpu": {
                "user_fraction": 0.5, "nice_fraction": 0.0, "system_fraction": 0.0,
                "iowait_fraction": 0.5, "steal_fraction": 0.0, "idle_fraction": 0.0,
            },
            "interfaces": [{ "name": "eth0", "rx": flow(1.0), "tx": flow(1.5) }],
            "errors": [{ "kind": "file-system", "device": null, "text": "EXT4-fs error" }],
            "cgroup_limits": [{
                "group": "/db", "device": "8:16", "kind": "read-bytes", "limit_per_s": 1e6, "used_per_s": 5.5,
                "pressure_fraction": null,
            }],
            "processes": [{
                "pid": 12, "name": "mariadbd", "cgroup": null, "read_bytes": 1, "written_bytes": 2, "requests": 3,
            }],
            "tracing": { "cpu_ns": 1, "requests": 2, "lost_events": 3, "processes_over_ns": 4 },
        });
        json!({
            "schema": SCHEMA, "kind": "sample", "time": "1970-01-01T00:00:01.5Z", "elapsed_ns": 20,
            "length_ns": 10, "gap": { "kind": "set-back", "length_ns": 3_600_000_000_000_u64 },
            "host": host, "devices": [device],
        })
    }

    #[test]
    fn a_sample_is_printed_as_the_tree_of_its_values_is() {
        let sample = Sample {
            at: SampleTime {
                wall: Some(jiff::Timestamp::from_millisecond(1500).unwrap()),
                elapsed: Nanos(20),
            },
            length: Nanos(10),
            gap: Some(Gap::SetBack(Nanos::from_secs(3600))),
            host: host(),
            devices: vec![device()],
            removed: Vec::new(),
        };
        assert_eq!(lines(&sample, &[]), format!("{}\n", tree()));
    }

    #[test]
    fn what_is_not_known_is_null_and_what_there_is_none_of_is_empty() {
        let line = lines(&Sample::default(), &[]);
        let host = r#""host":{"cgroup_limits":[],"cpu":null,"errors":[],"interfaces":[],"load":null,"memory":null,"pressure":null,"processes":[],"tracing":null}"#;
        assert!(
            line.starts_with(r#"{"devices":[],"elapsed_ns":0,"gap":null,"#),
            "{line}"
        );
        assert!(line.contains(host), "{line}");
        assert!(line.ends_with("\"time\":null}\n"), "{line}");
    }
}
