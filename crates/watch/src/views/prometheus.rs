//! Metrics in the text format of Prometheus, version 0.0.4. What node_exporter has too carries its
//! names and units (its collectors diskstats, mdadm, meminfo, netdev, pressure and loadavg); the rest
//! begins with `disksmith_`.

mod disks;
mod latency;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use linux::Root;
use linux::pulse::{
    ArrayLine, Interface, MdStat, MemoryReader, NetReader, PolledFile, PressureReader, load,
};
use record::sample::SyncAction;
use record::{Bytes, Severity};
use study::watch::{EventCode, WatchEvent};

pub(crate) use latency::RequestTimes;
use text::Text;

/// Findings of the watch, and what it has summed since it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct FindingCounts {
    /// Events that have not ended.
    pub open: Vec<WatchEvent>,
    /// Number of events that began, by kind.
    pub total: BTreeMap<EventCode, u64>,
    /// Time for which the caps of each volume were exceeded, in seconds, by its own page: IOPS and throughput of the
    /// volume, IOPS and throughput of the instance. `None` for a cap that it does not have.
    pub exceeded: BTreeMap<String, [Option<f64>; 4]>,
    /// Times of requests since the watch began, where they are traced.
    pub times: RequestTimes,
}

/// The current metrics as text; those whose files cannot be read are left out.
pub(crate) fn text(root: &Root, found: &FindingCounts) -> String {
    let mut text = Text::default();
    disks::disks(root, &mut text);
    arrays(root, &mut text);
    network(root, &mut text);
    host(root, &mut text);
    own_metrics(found, &mut text);
    latency::families(&found.times, &mut text);
    text.0
}

fn arrays(root: &Root, text: &mut Text) {
    let arrays = MdStat::open(root).and_then(|mut file| file.read());
    let arrays = arrays.unwrap_or_default();
    if arrays.is_empty() {
        return;
    }
    text.family(
        "node_md_state",
        "gauge",
        "State of an array: 1 for the current one.",
    );
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
    for (name, help, blocks) in BLOCKS {
        text.family(name, "gauge", help);
        for array in &arrays {
            if let Some(bytes) = blocks(array) {
                let labels = [("device", array.name.as_str())];
                text.value(name, &labels, (bytes.0 / BLOCK) as f64);
            }
        }
    }
    text.family(
        "disksmith_md_done_ratio",
        "gauge",
        "Progress of a check or rebuild of an array.",
    );
    for array in &arrays {
        if let Some(position) = array.position {
            let labels = [("device", array.name.as_str())];
            text.value("disksmith_md_done_ratio", &labels, position.fraction());
        }
    }
}

/// Size of the blocks of `/proc/mdstat`, in bytes.
const BLOCK: u64 = 1024;

/// A metric of an array: its name, its help, and its value from the array's line.
type OfArray = (&'static str, &'static str, fn(&ArrayLine) -> Option<Bytes>);

const BLOCKS: [OfArray; 2] = [
    ("node_md_blocks", "Blocks of an array.", |array| array.size),
    (
        "node_md_blocks_synced",
        "Blocks of an array that are in sync, or checked.",
        |array| match (array.action, array.position) {
            (_, Some(position)) => Some(position.done),
            (None, None) => array.size,
            // The array waits for the check or rebuild of another one.
            (Some(_), None) => Some(Bytes(0)),
        },
    ),
];

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
    if let Ok(mut reader) = MemoryReader::open(root)
        && let Ok(counts) = reader.read()
    {
        for (name, help, pages) in [
            (
                "node_memory_Dirty_bytes",
                "Memory that waits to be written.",
                counts.dirty,
            ),
            (
                "node_memory_Writeback_bytes",
                "Memory that is being written.",
                counts.writeback,
            ),
        ] {
            if let Some(pages) = pages {
                text.family(name, "gauge", help);
                text.value(name, &[], reader.bytes(pages).0 as f64);
            }
        }
    }
    let means = PolledFile::open(&root.proc.join("loadavg"))
        .ok()
        .and_then(|mut file| load(file.read().ok()?));
    let names = ["node_load1", "node_load5", "node_load15"];
    for (name, mean) in names.iter().zip(means.into_iter().flatten()) {
        text.family(name, "gauge", "Load average.");
        text.value(name, &[], mean);
    }
}

fn own_metrics(found: &FindingCounts, text: &mut Text) {
    let name = "disksmith_finding_active";
    text.family(name, "gauge", "1 for each open finding.");
    // Two of them may be of one name, which another device has by now. Prometheus takes nothing of an
    // answer that has a line twice.
    let active: BTreeSet<(&str, &str, &str)> = found.open.iter().map(labels_of).collect();
    for (code, device, severity) in active {
        let labels = [("code", code), ("name", device), ("severity", severity)];
        text.value(name, &labels, 1.0);
    }
    let name = "disksmith_findings_total";
    text.family(name, "counter", "Findings that began since the watch did.");
    for &code in EventCode::ALL {
        let count = found.total.get(&code).copied().unwrap_or(0);
        text.value(name, &[("code", code.name())], count as f64);
    }
    if found.exceeded.is_empty() {
        return;
    }
    let name = "disksmith_volume_exceeded_seconds_total";
    text.family(
        name,
        "counter",
        "Time over a cap, as reported by the volume.",
    );
    let caps = [
        "volume_iops",
        "volume_throughput",
        "instance_iops",
        "instance_throughput",
    ];
    for (device, sums) in &found.exceeded {
        for (cap, sum) in caps.iter().zip(sums) {
            if let Some(sum) = sum {
                text.value(name, &[("device", device), ("cap", cap)], *sum);
            }
        }
    }
}

/// Labels of a finding: its code, its subject's name, and its severity.
fn labels_of(event: &WatchEvent) -> (&str, &str, &str) {
    let severity = match event.severity {
        Severity::Note => "note",
        Severity::Warn | Severity::Invalid => "warn",
    };
    (event.code.name(), &event.name, severity)
}

#[cfg(test)]
mod tests {
    use record::Subject;
    use record::sample::SampleTime;

    use super::*;

    fn event(id: u64, name: &str) -> WatchEvent {
        WatchEvent {
            id,
            code: EventCode::Errors,
            severity: Severity::Warn,
            subject: Subject::Host,
            name: name.to_owned(),
            began: SampleTime::default(),
            ended: None,
            text: String::new(),
            advice: String::new(),
            figures: Vec::new(),
        }
    }

    #[test]
    fn every_metric_has_one_head_and_every_line_a_value() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        std::fs::create_dir_all(root.proc.join("net")).unwrap();
        let put = |file: &str, text: &str| std::fs::write(root.proc.join(file), text).unwrap();
        put(
            "diskstats",
            "8 0 sda 10 1 2 3000 4 5 6 7 8 9 10\n\
             8 1 sda1 10 1 2 3000 4 5 6 7 8 9 10\n\
             202 1 xvda1 20 1 2 3000 4 5 6 7 8 9 10\n\
             7 0 loop0 10 1 2 3000 4 5 6 7 8 9 10\n\
             259 0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n",
        );
        put(
            "mdstat",
            "md0 : active raid1 sdb[1](F) sda[0]\n 100 blocks [2/1] [U_]\n \
             [>.] check = 50.0% (50/100) finish=1min speed=5K/sec\n",
        );
        put("net/dev", "eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
        put("loadavg", "0.5 1 2 1/2 3\n");
        let mut found = FindingCounts::default();
        found.total.insert(EventCode::Stalled, 3);
        // A volume always has caps of its own, and an instance store shares none.
        let exceeded = [Some(1.5), Some(0.0), None, None];
        found.exceeded.insert("nvme0n1".to_owned(), exceeded);
        found.open = vec![event(1, "sda"), event(2, "sda"), event(3, "sdb")];
        let text = text(&root, &found);
        for line in [
            "node_disk_reads_completed_total{device=\"sda\"} 10",
            "node_disk_read_time_seconds_total{device=\"sda\"} 3",
            // In a guest of Xen, this partition's disk does not exist.
            "node_disk_reads_completed_total{device=\"xvda1\"} 20",
            "node_disk_written_bytes_total{device=\"nvme0n1\"} 3584",
            "node_disk_flush_requests_total{device=\"nvme0n1\"} 16",
            "node_md_state{device=\"md0\",state=\"check\"} 1",
            "node_md_disks{device=\"md0\",state=\"failed\"} 1",
            "node_md_disks_required{device=\"md0\"} 2",
            "node_md_blocks{device=\"md0\"} 100",
            "node_md_blocks_synced{device=\"md0\"} 50",
            "disksmith_md_done_ratio{device=\"md0\"} 0.5",
            "node_network_transmit_drop_total{device=\"eth0\"} 8",
            "node_load15 2",
            "disksmith_findings_total{code=\"stalled\"} 3",
            "disksmith_volume_exceeded_seconds_total{device=\"nvme0n1\",cap=\"volume_iops\"} 1.5",
        ] {
            assert!(text.lines().any(|one| one == line), "no '{line}' in {text}");
        }
        assert!(!text.contains("node_disk_flush_requests_total{device=\"sda\"}"));
        assert!(!text.contains("sda1") && !text.contains("loop0"), "{text}");
        assert!(!text.contains("cap=\"instance_"), "{text}");
        let mut series: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(series, _)| series)
            .collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all, "a series is there twice: {text}");
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
}
