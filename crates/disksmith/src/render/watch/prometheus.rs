//! Metrics in the text format of Prometheus, version 0.0.4. What node_exporter has too carries its
//! names and units (its collectors diskstats, mdadm, netdev, pressure and loadavg); the rest begins with
//! `disksmith_`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linux::Root;
use linux::diskstats::{AllCounters, Counted, DiskStats};
use linux::pulse::{ArrayLine, Interface, KeptFile, MdStat, NetReader, PressureReader, load};
use record::sample::SyncAction;
use record::{Event, EventCode, Severity};

/// What was found so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// The events that last.
    pub open: Vec<Event>,
    /// How many began, by kind.
    pub total: BTreeMap<EventCode, u64>,
    /// For how many seconds the caps of each volume were exceeded, as it says itself: operations and
    /// bytes of the volume, operations and bytes of the instance.
    pub exceeded: BTreeMap<String, [f64; 4]>,
}

/// The metrics of now. What cannot be read is left out.
pub(crate) fn text(root: &Root, found: &Found) -> String {
    let mut text = Text::default();
    disks(root, &mut text);
    arrays(root, &mut text);
    network(root, &mut text);
    host(root, &mut text);
    ours(found, &mut text);
    text.0
}

/// The text so far.
#[derive(Default)]
struct Text(String);

impl Text {
    /// The head of a metric.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A value of it.
    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let pairs: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
            .collect();
        let labels = match pairs.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", pairs.join(",")),
        };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

fn escaped(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// A metric of a disk.
struct OfDisk {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&DiskStats) -> f64,
    /// Whether this kernel counts it.
    counted: fn(Counted) -> bool,
}

const fn of_disk(
    name: &'static str,
    help: &'static str,
    value: fn(&DiskStats) -> f64,
    counted: fn(Counted) -> bool,
) -> OfDisk {
    OfDisk {
        name,
        kind: "counter",
        help,
        value,
        counted,
    }
}

fn always(_: Counted) -> bool {
    true
}

fn discards(counted: Counted) -> bool {
    counted.discards
}

fn flushes(counted: Counted) -> bool {
    counted.flushes
}

fn bytes(sectors: u64) -> f64 {
    sectors as f64 * 512.0
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

const DISK: [OfDisk; 17] = [
    of_disk(
        "node_disk_reads_completed_total",
        "Reads completed.",
        |s| s.reads as f64,
        always,
    ),
    of_disk(
        "node_disk_reads_merged_total",
        "Reads merged.",
        |s| s.reads_merged as f64,
        always,
    ),
    of_disk(
        "node_disk_read_bytes_total",
        "Bytes read.",
        |s| bytes(s.sectors_read),
        always,
    ),
    of_disk(
        "node_disk_read_time_seconds_total",
        "Time that reads took.",
        |s| seconds(s.read_ms),
        always,
    ),
    of_disk(
        "node_disk_writes_completed_total",
        "Writes completed.",
        |s| s.writes as f64,
        always,
    ),
    of_disk(
        "node_disk_writes_merged_total",
        "Writes merged.",
        |s| s.writes_merged as f64,
        always,
    ),
    of_disk(
        "node_disk_written_bytes_total",
        "Bytes written.",
        |s| bytes(s.sectors_written),
        always,
    ),
    of_disk(
        "node_disk_write_time_seconds_total",
        "Time that writes took.",
        |s| seconds(s.write_ms),
        always,
    ),
    OfDisk {
        name: "node_disk_io_now",
        kind: "gauge",
        help: "Requests in flight.",
        value: |s| s.in_flight as f64,
        counted: always,
    },
    of_disk(
        "node_disk_io_time_seconds_total",
        "Time in which anything was in flight.",
        |s| seconds(s.busy_ms),
        always,
    ),
    of_disk(
        "node_disk_io_time_weighted_seconds_total",
        "Time in flight, weighted by the number of requests.",
        |s| seconds(s.weighted_ms),
        always,
    ),
    of_disk(
        "node_disk_discards_completed_total",
        "Discards completed.",
        |s| s.discards as f64,
        discards,
    ),
    of_disk(
        "node_disk_discards_merged_total",
        "Discards merged.",
        |s| s.discards_merged as f64,
        discards,
    ),
    of_disk(
        "node_disk_discarded_sectors_total",
        "Sectors discarded.",
        |s| s.sectors_discarded as f64,
        discards,
    ),
    of_disk(
        "node_disk_discard_time_seconds_total",
        "Time that discards took.",
        |s| seconds(s.discard_ms),
        discards,
    ),
    of_disk(
        "node_disk_flush_requests_total",
        "Flushes completed.",
        |s| s.flushes as f64,
        flushes,
    ),
    of_disk(
        "node_disk_flush_requests_time_seconds_total",
        "Time that flushes took.",
        |s| seconds(s.flush_ms),
        flushes,
    ),
];

fn disks(root: &Root, text: &mut Text) {
    let Ok(mut counters) = AllCounters::open(root) else {
        return;
    };
    let lines: Vec<(String, DiskStats, Counted)> = match counters.read() {
        Ok(lines) => lines
            .map(|line| (line.name.to_owned(), line.stats, line.counted))
            .collect(),
        Err(_) => return,
    };
    for metric in &DISK {
        let counted = lines
            .iter()
            .filter(|(_, _, counted)| (metric.counted)(*counted));
        let mut counted = counted.peekable();
        if counted.peek().is_some() {
            text.family(metric.name, metric.kind, metric.help);
        }
        for (name, stats, _) in counted {
            text.value(metric.name, &[("device", name)], (metric.value)(stats));
        }
    }
}

fn arrays(root: &Root, text: &mut Text) {
    let arrays = MdStat::open(root).and_then(|mut file| file.read());
    let arrays = arrays.unwrap_or_default();
    if arrays.is_empty() {
        return;
    }
    text.family("node_md_state", "gauge", "Whether an array is in a state.");
    for array in &arrays {
        for state in ["active", "inactive", "recovering", "resync", "check"] {
            let is_so = f64::from(u8::from(state_of(array) == state));
            let labels = [("device", array.name.as_str()), ("state", state)];
            text.value("node_md_state", &labels, is_so);
        }
    }
    text.family("node_md_disks", "gauge", "Members of an array in a state.");
    for array in &arrays {
        let count = |is: fn(bool, bool) -> bool| {
            let members = array.members.iter();
            members.filter(|one| is(one.faulty, one.spare)).count() as f64
        };
        for (state, members) in [
            ("active", count(|faulty, spare| !faulty && !spare)),
            ("failed", count(|faulty, _| faulty)),
            ("spare", count(|_, spare| spare)),
        ] {
            let labels = [("device", array.name.as_str()), ("state", state)];
            text.value("node_md_disks", &labels, members);
        }
    }
    text.family(
        "node_md_disks_required",
        "gauge",
        "Members that an array should have.",
    );
    for array in &arrays {
        if let Some((wanted, _)) = array.wanted_and_working {
            let labels = [("device", array.name.as_str())];
            text.value("node_md_disks_required", &labels, f64::from(wanted));
        }
    }
    text.family(
        "disksmith_md_done_ratio",
        "gauge",
        "How far a check or rebuild of an array is.",
    );
    for array in &arrays {
        if let Some(position) = array.position {
            let labels = [("device", array.name.as_str())];
            text.value("disksmith_md_done_ratio", &labels, position.fraction());
        }
    }
}

fn state_of(array: &ArrayLine) -> &'static str {
    match array.action {
        Some(SyncAction::Recover | SyncAction::Reshape) => "recovering",
        Some(SyncAction::Resync | SyncAction::Repair) => "resync",
        Some(SyncAction::Check) => "check",
        Some(SyncAction::Idle | SyncAction::Frozen) | None if array.active => "active",
        Some(SyncAction::Idle | SyncAction::Frozen) | None => "inactive",
    }
}

/// A metric of an interface.
type OfInterface = (&'static str, fn(&Interface<'_>) -> u64);

const NETWORK: [OfInterface; 8] = [
    ("receive_bytes", |one| one.received.bytes),
    ("receive_packets", |one| one.received.packets),
    ("receive_errs", |one| one.received.errors),
    ("receive_drop", |one| one.received.drops),
    ("transmit_bytes", |one| one.transmitted.bytes),
    ("transmit_packets", |one| one.transmitted.packets),
    ("transmit_errs", |one| one.transmitted.errors),
    ("transmit_drop", |one| one.transmitted.drops),
];

fn network(root: &Root, text: &mut Text) {
    let Ok(mut reader) = NetReader::open(root) else {
        return;
    };
    let Ok(interfaces) = reader.read() else {
        return;
    };
    let interfaces: Vec<Interface<'_>> = interfaces.collect();
    for (what, value) in &NETWORK {
        let name = format!("node_network_{what}_total");
        text.family(&name, "counter", &format!("Network interface: {what}."));
        for interface in &interfaces {
            text.value(
                &name,
                &[("device", interface.name)],
                value(interface) as f64,
            );
        }
    }
}

fn host(root: &Root, text: &mut Text) {
    if let Ok(counts) = PressureReader::open(root).and_then(|mut file| file.read()) {
        let name = "node_pressure_io_waiting_seconds_total";
        text.family(name, "counter", "Time in which a task waited for I/O.");
        text.value(name, &[], counts.some.total.as_secs_f64());
        if let Some(full) = counts.full {
            let name = "node_pressure_io_stalled_seconds_total";
            text.family(name, "counter", "Time in which all tasks waited for I/O.");
            text.value(name, &[], full.total.as_secs_f64());
        }
    }
    let means = KeptFile::open(&root.proc.join("loadavg"))
        .ok()
        .and_then(|mut file| load(file.read().ok()?));
    let names = ["node_load1", "node_load5", "node_load15"];
    for (name, mean) in names.iter().zip(means.into_iter().flatten()) {
        text.family(name, "gauge", "Load average.");
        text.value(name, &[], mean);
    }
}

fn ours(found: &Found, text: &mut Text) {
    let name = "disksmith_finding_active";
    text.family(name, "gauge", "1 for each finding that lasts.");
    for event in &found.open {
        let severity = match event.severity {
            Severity::Note => "note",
            Severity::Warn | Severity::Invalid => "warn",
        };
        let labels = [
            ("code", event.code.word()),
            ("name", event.name.as_str()),
            ("severity", severity),
        ];
        text.value(name, &labels, 1.0);
    }
    let name = "disksmith_findings_total";
    text.family(name, "counter", "Findings that began since the watch did.");
    for code in EventCode::ALL {
        let count = found.total.get(&code).copied().unwrap_or(0);
        text.value(name, &[("code", code.word())], count as f64);
    }
    if found.exceeded.is_empty() {
        return;
    }
    let name = "disksmith_volume_exceeded_seconds_total";
    text.family(
        name,
        "counter",
        "Time over a cap, as the volume itself says.",
    );
    let caps = [
        "volume_iops",
        "volume_throughput",
        "instance_iops",
        "instance_throughput",
    ];
    for (device, sums) in &found.exceeded {
        for (cap, sum) in caps.iter().zip(sums) {
            text.value(name, &[("device", device), ("cap", cap)], *sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_one_head_and_every_line_a_value() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        std::fs::create_dir_all(root.proc.join("net")).unwrap();
        let put = |file: &str, text: &str| std::fs::write(root.proc.join(file), text).unwrap();
        put(
            "diskstats",
            "8 0 sda 10 1 2 3000 4 5 6 7 8 9 10\n\
             259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n",
        );
        put(
            "mdstat",
            "md0 : active raid1 sdb[1](F) sda[0]\n 100 blocks [2/1] [U_]\n \
             [>.] check = 50.0% (50/100) finish=1min speed=5K/sec\n",
        );
        put("net/dev", "eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
        put("loadavg", "0.5 1 2 1/2 3\n");
        let mut found = Found::default();
        found.total.insert(EventCode::Stalled, 3);
        found
            .exceeded
            .insert("nvme0n1".to_owned(), [1.5, 0.0, 0.0, 0.0]);
        let text = text(&root, &found);
        for line in [
            "node_disk_reads_completed_total{device=\"sda\"} 10",
            "node_disk_read_time_seconds_total{device=\"sda\"} 3",
            "node_disk_written_bytes_total{device=\"nvme0n1\"} 3584",
            "node_disk_flush_requests_total{device=\"nvme0n1\"} 16",
            "node_md_state{device=\"md0\",state=\"check\"} 1",
            "node_md_disks{device=\"md0\",state=\"failed\"} 1",
            "node_md_disks_required{device=\"md0\"} 2",
            "disksmith_md_done_ratio{device=\"md0\"} 0.5",
            "node_network_transmit_drop_total{device=\"eth0\"} 8",
            "node_load15 2",
            "disksmith_findings_total{code=\"stalled\"} 3",
            "disksmith_volume_exceeded_seconds_total{device=\"nvme0n1\",cap=\"volume_iops\"} 1.5",
        ] {
            assert!(text.lines().any(|one| one == line), "no '{line}' in {text}");
        }
        assert!(!text.contains("node_disk_flush_requests_total{device=\"sda\"}"));
        let heads: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("# TYPE"))
            .collect();
        let mut once = heads.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), heads.len());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
