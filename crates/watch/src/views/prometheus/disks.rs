//! The counters of disks, as node_exporter's collector diskstats names them.

use std::collections::HashSet;

use linux::Root;
use linux::diskstats::{AllCounters, CountedFields, DiskStats, SECTOR};
use record::sample::{DeviceKind, disks_of_partition};

use super::text::Text;

/// A metric of disks.
struct DiskMetric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&DiskStats) -> f64,
    /// True if this kernel counts it.
    counted: fn(CountedFields) -> bool,
}

const fn of_disk(
    name: &'static str,
    help: &'static str,
    value: fn(&DiskStats) -> f64,
    counted: fn(CountedFields) -> bool,
) -> DiskMetric {
    DiskMetric {
        name,
        kind: "counter",
        help,
        value,
        counted,
    }
}

fn always(_: CountedFields) -> bool {
    true
}

fn discards(counted: CountedFields) -> bool {
    counted.discards
}

fn flushes(counted: CountedFields) -> bool {
    counted.flushes
}

fn bytes(sectors: u64) -> f64 {
    sectors as f64 * SECTOR as f64
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

const DISK: [DiskMetric; 17] = [
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
    DiskMetric {
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

/// True if node_exporter shows a device by default: a sum over all devices would count twice the requests
/// that partitions and loop devices pass on.
fn is_shown(name: &str, names: &HashSet<String>) -> bool {
    let kind = DeviceKind::by_name(name);
    let is_part = disks_of_partition(name).any(|disk| names.contains(disk));
    !is_part && !matches!(kind, DeviceKind::Loop | DeviceKind::Memory)
}

/// Writes the counters of all disks, one metric after the other.
pub(super) fn disks(root: &Root, text: &mut Text) {
    let Ok(mut counters) = AllCounters::open(root) else {
        return;
    };
    let mut lines: Vec<(String, DiskStats, CountedFields)> = match counters.read() {
        Ok(lines) => lines
            .map(|line| (line.name.to_owned(), line.stats, line.counted))
            .collect(),
        Err(_) => return,
    };
    let names: HashSet<String> = lines.iter().map(|(name, ..)| name.clone()).collect();
    lines.retain(|(name, ..)| is_shown(name, &names));
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
