//! Truth tables of the checks: wrong settings are found, and right ones are not, on captured trees of /proc and /sys,
//! with runs and events of a ledger, and with variables of servers.

mod host;
mod mysql;
mod postgres;
mod safety;
mod watched;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use linux::Root;
use record::*;

use super::all;
use crate::check::{Area, CheckResult, CheckRow, judge};
use crate::facts::Facts;
use crate::facts::evidence::Evidence;
use crate::facts::host::HostFacts;

/// Files with their text, or variables with their values.
type Pairs<'a> = &'a [(&'a str, &'a str)];

/// A simulated host in a folder: an NVMe disk, a SCSI disk with a partition, and RAID 5 of three disks, all with
/// correct settings.
struct Tree {
    folder: tempfile::TempDir,
}

const WELL: &[(&str, &str)] = &[
    (
        "proc/self/mountinfo",
        "30 1 9:0 / /data rw,noatime shared:1 - xfs /dev/md0 rw,sunit=128,swidth=256\n31 1 8:1 / /other rw,relatime shared:2 - ext4 /dev/sda1 rw\n",
    ),
    ("proc/sys/kernel/hostname", "db1"),
    ("proc/sys/kernel/threads-max", "100000"),
    ("proc/sys/vm/max_map_count", "65530"),
    ("proc/sys/vm/swappiness", "1"),
    (
        "proc/swaps",
        "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2\tpartition\t1000\t0\t-2",
    ),
    ("proc/sys/vm/zone_reclaim_mode", "0"),
    ("proc/sys/fs/nr_open", "1048576"),
    ("proc/sys/fs/file-nr", "1000\t0\t9000000"),
    ("proc/sys/fs/aio-nr", "100"),
    ("proc/sys/fs/aio-max-nr", "1048576"),
    ("proc/meminfo", "MemTotal:       16384000 kB\n"),
    (
        "proc/vmstat",
        "nr_dirty_threshold 100000\nnr_dirty_background_threshold 50000\n",
    ),
    ("proc/77/comm", "mariadbd"),
    (
        "proc/77/status",
        "Name:\tmariadbd\nPPid:\t1\nThreads:\t40\n",
    ),
    (
        "proc/77/limits",
        "Max processes             63704                63704                processes\nMax open files            65536                524288               files\n",
    ),
    ("proc/77/cgroup", "0::/db.service\n"),
    ("sys/fs/cgroup/db.service/pids.max", "4915"),
    ("sys/fs/cgroup/db.service/pids.current", "40"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never",
    ),
    ("sys/devices/system/node/node0/x", ""),
    ("sys/devices/system/node/node1/x", ""),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
        "tsc hpet acpi_pm",
    ),
    ("sys/class/dmi/id/sys_vendor", "Amazon EC2"),
    ("sys/module/nvme_core/parameters/io_timeout", "4294967295"),
    ("etc/security/limits.conf", "* hard nofile 65536\n"),
    ("etc/pam.d/sshd", "session required pam_limits.so\n"),
    ("etc/cron.d/mdadm", ""),
    ("sys/class/block/nvme1n1/dev", "259:1"),
    ("sys/class/block/sda/dev", "8:0"),
    (
        "sys/class/block/sda/device/scsi_disk/0:0:0:0/cache_type",
        "write back",
    ),
    ("sys/class/block/sda1/dev", "8:1"),
    ("sys/class/block/sda1/partition", "1"),
    ("sys/class/block/sda1/start", "2048"),
    ("sys/class/block/sda1/alignment_offset", "0"),
    ("sys/class/block/sda1/size", "1000000"),
    ("sys/class/block/md0/dev", "9:0"),
    ("sys/class/block/md0/size", "4000000"),
    ("sys/class/block/md0/md/level", "raid5"),
    ("sys/class/block/md0/md/raid_disks", "3"),
    ("sys/class/block/md0/md/degraded", "0"),
    ("sys/class/block/md0/md/chunk_size", "65536"),
    ("sys/class/block/md0/md/mismatch_cnt", "0"),
    ("sys/class/block/md0/md/bitmap/location", "+8"),
    ("sys/class/block/md0/md/stripe_cache_size", "8192"),
];

impl Tree {
    /// The host with correct settings, changed by these files.
    fn with(files: &[(&str, &str)]) -> Tree {
        let tree = Tree {
            folder: tempfile::tempdir().unwrap(),
        };
        let queue = |disk: &str, name: &str, value: &str| {
            tree.write(&format!("sys/class/block/{disk}/queue/{name}"), value);
        };
        for disk in ["nvme1n1", "sda"] {
            tree.write(&format!("sys/class/block/{disk}/size"), "2000000");
            queue(disk, "rotational", "0");
            queue(disk, "read_ahead_kb", "128");
            queue(disk, "nomerges", "0");
            queue(disk, "write_cache", "write back");
            queue(disk, "physical_block_size", "4096");
            queue(disk, "atomic_write_unit_max_bytes", "0");
        }
        queue("nvme1n1", "scheduler", "[none] mq-deadline");
        queue("sda", "scheduler", "none [mq-deadline]");
        fs::create_dir_all(tree.path().join("dev")).unwrap();
        for (path, text) in WELL.iter().chain(files) {
            tree.write(path, text);
        }
        tree
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn facts(&self) -> Facts {
        Facts {
            host: HostFacts::read(&Root::under(self.path())).unwrap(),
            evidence: Evidence::default(),
            mysql: None,
            postgres: None,
            sql: None,
            safety: None,
        }
    }
}

/// The checks with findings.
fn found(rows: &[CheckRow]) -> Vec<(&'static str, CheckResult)> {
    let findings = rows.iter().filter(|row| row.is_finding());
    findings.map(|row| (row.check.name, row.result())).collect()
}

fn judged(facts: &Facts) -> Vec<CheckRow> {
    judge(all(), facts)
}

/// A run on a device, with one phase of a second for each workload.
fn run(device: &str, phases: Vec<Phase>) -> Run {
    let started: Timestamp = "2026-11-21T20:45:12Z".parse().unwrap();
    Run {
        id: RunId::new(started, 1),
        started,
        disksmith: "0.1.0".into(),
        command: Vec::new(),
        origin: Origin::Measured,
        target: Target {
            path: "/data".into(),
            kind: TargetKind::Directory,
            device: Some(device.into()),
            disks: vec![device.into()],
            model: None,
            serial: None,
            size: Bytes::gib(1),
            unwritten_fraction: None,
            zero_fraction: None,
            direct: true,
            in_memory: false,
            caches: Vec::new(),
        },
        machine: Machine::default(),
        suite: "database".into(),
        p99_target: None,
        replay: None,
        phases,
        notes: Vec::new(),
        interrupted: false,
    }
}

fn phase(
    name: &str,
    pattern: Pattern,
    read_fraction: f64,
    kib: u64,
    depth: u32,
    rate: u64,
) -> Phase {
    let mut latency = Histogram::new();
    latency.record(1_000_000_000 * u64::from(depth) / rate);
    let flow = Flow {
        ops: rate,
        bytes: rate * kib * 1024,
        latency,
        service: None,
    };
    let is_commit = name == "log-append";
    Phase {
        name: name.into(),
        workload: Workload {
            pattern,
            read_fraction,
            block: Bytes::kib(kib),
            threads: 1,
            depth,
            rate_per_s: None,
            span: None,
            sync_every: u32::from(is_commit),
            sync_at_end: false,
            longest: Nanos::from_secs(1),
            shortest: Nanos::from_secs(1),
            precision: 0.03,
            ops: None,
            details: None,
        },
        engine: EngineUsed {
            kind: EngineKind::Uring,
            clock: ClockKind::Tsc,
            detail: String::new(),
        },
        began_s: 0.0,
        seconds: 1.0,
        drain_seconds: 0.0,
        stopped: StopReason::Time,
        read: (read_fraction == 1.0).then(|| flow.clone()),
        write: (read_fraction == 0.0).then(|| flow.clone()),
        sync: None,
        commit: is_commit.then_some(flow),
        trim: None,
        thread_ops: Vec::new(),
        thread_seconds: Vec::new(),
        cpu: CpuTime::default(),
        windows: Vec::new(),
        surroundings: HostConditions::default(),
        outcome: record::JobFileResults::default(),
    }
}

/// Phases of a disk with 4,000 random writes and 4,000 random reads a second, 250 MiB/s, syncs of 2 ms, and the plateau
/// of reads from depth 16 on.
fn measured() -> Vec<Phase> {
    use Pattern::{Random, Sequential};
    vec![
        phase("page-write", Random, 0.0, 16, 20, 4_000),
        phase("page-read", Random, 1.0, 16, 20, 4_000),
        phase("scan", Sequential, 1.0, 1024, 8, 250),
        phase("load", Sequential, 0.0, 1024, 8, 250),
        phase("log-append", Sequential, 0.0, 4, 1, 500),
        phase("d1", Random, 1.0, 16, 1, 400),
        phase("d4", Random, 1.0, 16, 4, 1_600),
        phase("d16", Random, 1.0, 16, 16, 3_900),
    ]
}

fn text(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn place_on(facts: &mut Facts, device: &str, parts: &[&'static str]) {
    let number = facts.host.devices.named(device).unwrap().number;
    for what in parts {
        facts.host.folders.push(crate::facts::host::Folder {
            what,
            path: "/data".into(),
            place: linux::block::DataLocation {
                devices: vec![number],
                mount: None,
            },
        });
    }
}

#[test]
fn every_check_has_a_row_in_a_truth_table() {
    let tables = [
        include_str!("host.rs"),
        include_str!("mysql.rs"),
        include_str!("postgres.rs"),
        include_str!("safety.rs"),
        include_str!("watched.rs"),
    ];
    for check in all() {
        let quoted = format!("\"{}\"", check.name);
        assert!(
            tables.iter().any(|table| table.contains(&quoted)),
            "{quoted}"
        );
    }
}
