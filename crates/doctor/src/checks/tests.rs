//! Truth tables of the checks: what is set wrong is found, and what is right is not, on captured trees of /proc and
//! /sys, with runs and events of a ledger, and with variables of servers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use linux::Root;
use record::sample::Moment;
use record::*;
use study::watch::{Event, EventCode};

use super::all;
use crate::check::{Area, CheckResult, Row, judge};
use crate::facts::Facts;
use crate::facts::backup::{Backup, Safety};
use crate::facts::evidence::Evidence;
use crate::facts::host::Host;
use crate::facts::mysql::Mysql;
use crate::facts::postgres::{Postgres, Setting, Statistics};

/// Files with their text, or variables with their value.
type Pairs<'a> = &'a [(&'a str, &'a str)];
/// Settings with their value and unit.
type Units<'a> = &'a [(&'a str, &'a str, &'a str)];

/// A host in a folder: an NVMe disk, a SCSI disk with a partition, and RAID 5 of three disks, all set well.
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
    /// The host set well, and then these files.
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
            host: Host::read(&Root::under(self.path())).unwrap(),
            evidence: Evidence::default(),
            mysql: None,
            postgres: None,
            sql: None,
            safety: None,
        }
    }
}

/// The checks that found something.
fn found(rows: &[Row]) -> Vec<(&'static str, CheckResult)> {
    let findings = rows.iter().filter(|row| row.is_finding());
    findings.map(|row| (row.check.name, row.result())).collect()
}

fn judged(facts: &Facts) -> Vec<Row> {
    judge(all(), facts)
}

#[test]
fn a_host_that_is_set_well_has_no_finding() {
    let rows = judged(&Tree::with(&[]).facts());
    assert_eq!(found(&rows), []);
    // Each host check has judged, but those that need a recording or a run.
    let judged: Vec<&str> = rows
        .iter()
        .filter(|row| row.result() == CheckResult::Ok)
        .map(|row| row.check.name)
        .collect();
    let unknown = [
        "dirty-memory",
        "cold-volume",
        "burst-credit",
        "volume-cap",
        "instance-cap",
    ];
    for check in all().filter(|check| check.area == Area::Host) {
        let expected = !unknown.contains(&check.name);
        assert_eq!(judged.contains(&check.name), expected, "{}", check.name);
    }
}

#[test]
fn each_thing_that_is_set_wrong_on_the_host_is_found_alone() {
    use CheckResult::{Consider, Fix};
    let mountinfo = |xfs: &str, ext4: &str| {
        format!(
            "30 1 9:0 / /data rw,noatime - xfs /dev/md0 rw,{xfs}\n31 1 8:1 / /other rw,relatime - ext4 /dev/sda1 rw{ext4}\n"
        )
    };
    let unaligned = mountinfo("sunit=96,swidth=192", "");
    let barrier = mountinfo("sunit=128", ",nobarrier");
    let discard = mountinfo("sunit=128", ",discard");
    let unknown_stripe = mountinfo("noquota", "");
    let limits = |files: &str| {
        format!("Max processes 63704 63704 processes\nMax open files {files} 524288 files\n")
    };
    let few_files = limits("1024");
    let table: &[(&str, CheckResult, Pairs<'_>)] = &[
        ("file-limit", Consider, &[("proc/77/limits", &few_files)]),
        (
            "nofile-above-nr-open",
            Fix,
            &[("etc/security/limits.d/db.conf", "mysql hard nofile 2000000")],
        ),
        (
            "nofile-above-nr-open",
            Fix,
            &[("etc/security/limits.conf", "* - nofile unlimited")],
        ),
        (
            "nofile-above-nr-open",
            Consider,
            &[
                ("etc/security/limits.conf", "* - nofile unlimited"),
                ("etc/pam.d/sshd", "# pam_limits.so"),
            ],
        ),
        ("file-max", Fix, &[("proc/sys/fs/file-nr", "900\t0\t1000")]),
        (
            "threads",
            Fix,
            &[("sys/fs/cgroup/db.service/pids.max", "45")],
        ),
        ("threads", Fix, &[("proc/sys/kernel/threads-max", "41")]),
        ("aio-max-nr", Fix, &[("proc/sys/fs/aio-nr", "1048000")]),
        (
            "scheduler",
            Consider,
            &[("sys/class/block/nvme1n1/queue/scheduler", "none [bfq]")],
        ),
        (
            "scheduler",
            Consider,
            &[("sys/class/block/sda/queue/scheduler", "none [kyber]")],
        ),
        (
            "read-ahead",
            Consider,
            &[("sys/class/block/sda/queue/read_ahead_kb", "8192")],
        ),
        (
            "read-ahead",
            Consider,
            &[("sys/class/block/sda/queue/rotational", "1")],
        ),
        (
            "nomerges",
            Consider,
            &[("sys/class/block/sda/queue/nomerges", "2")],
        ),
        (
            "write-cache",
            Fix,
            &[("sys/class/block/sda/queue/write_cache", "write through")],
        ),
        (
            "nvme-io-timeout",
            Fix,
            &[("sys/module/nvme_core/parameters/io_timeout", "30")],
        ),
        ("swappiness", Consider, &[("proc/sys/vm/swappiness", "60")]),
        ("swappiness", Consider, &[("proc/sys/vm/swappiness", "0")]),
        (
            "transparent-huge-pages",
            Consider,
            &[(
                "sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never",
            )],
        ),
        ("numa", Fix, &[("proc/sys/vm/zone_reclaim_mode", "1")]),
        (
            "clock-source",
            Consider,
            &[(
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
                "xen",
            )],
        ),
        ("mount-barriers", Fix, &[("proc/self/mountinfo", &barrier)]),
        (
            "mount-discard",
            Consider,
            &[("proc/self/mountinfo", &discard)],
        ),
        (
            "mount-atime",
            Consider,
            &[(
                "proc/self/mountinfo",
                "31 1 8:1 / /other rw - ext4 /dev/sda1 rw\n",
            )],
        ),
        ("alignment", Fix, &[("proc/self/mountinfo", &unaligned)]),
        (
            "alignment",
            Consider,
            &[("proc/self/mountinfo", &unknown_stripe)],
        ),
        ("alignment", Fix, &[("sys/class/block/sda1/start", "63")]),
        (
            "alignment",
            Consider,
            &[("sys/class/block/sda1/start", "64")],
        ),
        (
            "md-degraded",
            Fix,
            &[("sys/class/block/md0/md/degraded", "1")],
        ),
        (
            "md-mismatches",
            Fix,
            &[("sys/class/block/md0/md/mismatch_cnt", "128")],
        ),
        (
            "md-bitmap",
            Consider,
            &[("sys/class/block/md0/md/bitmap/location", "none")],
        ),
        (
            "md-stripe-cache",
            Consider,
            &[("sys/class/block/md0/md/stripe_cache_size", "256")],
        ),
    ];
    for (name, result, files) in table {
        let tree = Tree::with(files);
        let rows = judged(&tree.facts());
        assert_eq!(found(&rows), [(*name, *result)], "{files:?}");
    }
    let unchecked = Tree::with(&[]);
    fs::remove_file(unchecked.path().join("etc/cron.d/mdadm")).unwrap();
    assert_eq!(
        found(&judged(&unchecked.facts())),
        [("md-check-scheduled", Consider)]
    );
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
        stopped: Stopped::Time,
        read: (read_fraction == 1.0).then(|| flow.clone()),
        write: (read_fraction == 0.0).then(|| flow.clone()),
        sync: None,
        commit: is_commit.then_some(flow),
        thread_ops: Vec::new(),
        thread_seconds: Vec::new(),
        cpu: CpuTime::default(),
        windows: Vec::new(),
        surroundings: Surroundings::default(),
        outcome: record::Outcome::default(),
    }
}

/// A disk of 4,000 random writes and 4,000 random reads a second, 250 MiB/s and 2 ms a sync; a knee at 16.
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

/// A server on nvme1n1 that is set well, with other variables and counters.
fn mysql(variables: &[(&str, &str)], status: &[(&str, &str)]) -> Vec<Row> {
    let well = [
        ("version", "8.0.36"),
        ("innodb_io_capacity", "1000"),
        ("innodb_io_capacity_max", "2000"),
        ("innodb_flush_method", "O_DIRECT"),
        ("innodb_flush_neighbors", "0"),
        ("innodb_use_native_aio", "ON"),
        ("innodb_page_size", "16384"),
        ("innodb_doublewrite", "ON"),
        ("innodb_redo_log_capacity", "2147483648"),
        ("innodb_buffer_pool_size", "8589934592"),
        ("innodb_flush_log_at_trx_commit", "1"),
        ("sync_binlog", "1"),
        ("log_bin", "ON"),
        ("table_open_cache", "4000"),
        ("open_files_limit", "10000"),
        ("max_connections", "500"),
    ];
    let counters = [
        ("uptime", "100000"),
        ("innodb_os_log_written", "1000000"),
        ("innodb_buffer_pool_read_requests", "1000000000"),
        ("innodb_buffer_pool_reads", "1000"),
        ("max_used_connections", "100"),
        ("table_open_cache_overflows", "10"),
    ];
    let tree = Tree::with(&[]);
    let mut facts = tree.facts();
    let server = Mysql {
        variables: text(&[&well[..], variables].concat()),
        status: text(&[&counters[..], status].concat()),
        run_time: Some(Vec::new()),
        columns: Some(Vec::new()),
        innodb_bytes: Some(5e10),
        pid: Some(77),
        replicas: Some(1),
        ..Mysql::default()
    };
    place_on(&mut facts, "nvme1n1", &["data", "redo log", "binary log"]);
    facts.evidence = Evidence::of(vec![run("nvme1n1", measured())], Vec::new());
    facts.mysql = Some(server);
    judged(&facts)
        .into_iter()
        .filter(|row| row.check.area == Area::Mysql)
        .collect()
}

fn place_on(facts: &mut Facts, device: &str, parts: &[&'static str]) {
    let number = facts.host.devices.named(device).unwrap().number;
    for what in parts {
        facts.host.folders.push(crate::facts::host::Folder {
            what,
            path: "/data".into(),
            place: linux::block::Place {
                devices: vec![number],
                mount: None,
            },
        });
    }
}

#[test]
fn each_setting_of_mysql_that_is_wrong_for_the_measured_disk_is_found_alone() {
    use CheckResult::{Consider, Fix};
    assert_eq!(found(&mysql(&[], &[])), []);
    let table: &[(&str, CheckResult, Pairs<'_>, Pairs<'_>)] = &[
        (
            "innodb-io-capacity",
            Fix,
            &[
                ("innodb_io_capacity", "10000"),
                ("innodb_io_capacity_max", "20000"),
            ],
            &[],
        ),
        (
            "innodb-io-capacity",
            Consider,
            &[("innodb_io_capacity_max", "20000")],
            &[],
        ),
        (
            "innodb-io-capacity",
            Consider,
            &[("innodb_io_capacity", "99")],
            &[],
        ),
        (
            "innodb-flush-method",
            Consider,
            &[("innodb_flush_method", "fsync")],
            &[],
        ),
        (
            "innodb-flush-method",
            Fix,
            &[("innodb_flush_method", "nosync")],
            &[],
        ),
        (
            "innodb-flush-neighbors",
            Consider,
            &[("innodb_flush_neighbors", "1")],
            &[],
        ),
        (
            "innodb-native-aio",
            Consider,
            &[("innodb_use_native_aio", "OFF")],
            &[],
        ),
        (
            "innodb-doublewrite",
            Fix,
            &[("innodb_doublewrite", "OFF")],
            &[],
        ),
        (
            "innodb-doublewrite",
            Consider,
            &[("innodb_doublewrite", "DETECT_ONLY")],
            &[],
        ),
        (
            "innodb-redo-size",
            Consider,
            &[("innodb_redo_log_capacity", "104857600")],
            &[("innodb_os_log_written", "100000000000")],
        ),
        (
            "innodb-buffer-pool",
            Consider,
            &[],
            &[("innodb_buffer_pool_reads", "100000000")],
        ),
        (
            "innodb-buffer-pool",
            Fix,
            &[("innodb_buffer_pool_size", "16000000000")],
            &[],
        ),
        ("commit-durability", Consider, &[("sync_binlog", "0")], &[]),
        (
            "commit-durability",
            Consider,
            &[("innodb_flush_log_at_trx_commit", "2")],
            &[],
        ),
        (
            "table-open-cache",
            Consider,
            &[],
            &[("table_open_cache_overflows", "10000000")],
        ),
        (
            "mysql-file-limit",
            Fix,
            &[("open_files_limit", "5000")],
            &[],
        ),
        (
            "max-connections",
            Consider,
            &[],
            &[("max_used_connections", "499")],
        ),
        (
            "max-connections",
            Consider,
            &[],
            &[("connection_errors_max_connections", "3")],
        ),
        (
            "mysql-memory",
            Consider,
            &[("sort_buffer_size", "33554432")],
            &[],
        ),
        (
            "mysql-memory",
            Fix,
            &[("sort_buffer_size", "134217728")],
            &[],
        ),
        (
            "max-connections",
            Fix,
            &[("max_connections", "6000"), ("open_files_limit", "20000")],
            &[],
        ),
    ];
    for (name, result, variables, status) in table {
        let rows = mysql(variables, status);
        assert_eq!(found(&rows), [(*name, *result)], "{variables:?} {status:?}");
    }
}

#[test]
fn what_is_derived_of_the_disk_is_in_the_command_and_the_run_in_the_evidence() {
    let rows = mysql(&[("innodb_io_capacity_max", "20000")], &[]);
    let row = rows
        .iter()
        .find(|row| row.check.name == "innodb-io-capacity")
        .unwrap();
    let command = row.judgement.command.as_deref().unwrap();
    assert!(
        command.contains("innodb_io_capacity_max = 2000;")
            && command.contains("innodb_io_capacity = 1000;"),
        "{command}"
    );
    let evidence = row.judgement.evidence.as_deref().unwrap();
    assert!(
        evidence.contains("4,000") && evidence.contains("2026-11-21"),
        "{evidence}"
    );
    let rows = mysql(
        &[
            ("innodb_doublewrite", "OFF"),
            ("innodb_io_capacity_max", "20000"),
        ],
        &[],
    );
    let row = rows
        .iter()
        .find(|row| row.check.name == "innodb-io-capacity")
        .unwrap();
    assert!(
        row.judgement
            .command
            .as_deref()
            .unwrap()
            .contains("innodb_io_capacity_max = 4000;")
    );
    let commit = rows
        .iter()
        .find(|row| row.check.name == "commit-latency")
        .unwrap();
    // Two syncs of 2 ms.
    assert!(
        commit.judgement.value.contains("at most 250 commits/s"),
        "{}",
        commit.judgement.value
    );
}

#[test]
fn a_doublewrite_buffer_may_be_off_where_pages_are_written_at_once() {
    let atomic = (
        "sys/class/block/nvme1n1/queue/atomic_write_unit_max_bytes",
        "16384",
    );
    for (files, expected) in [(&[atomic][..], CheckResult::Ok), (&[], CheckResult::Fix)] {
        let tree = Tree::with(files);
        let mut facts = tree.facts();
        place_on(&mut facts, "nvme1n1", &["data"]);
        facts.mysql = Some(Mysql {
            variables: text(&[
                ("innodb_doublewrite", "OFF"),
                ("innodb_flush_method", "O_DIRECT"),
            ]),
            ..Mysql::default()
        });
        let rows = judged(&facts);
        let row = rows
            .iter()
            .find(|row| row.check.name == "innodb-doublewrite")
            .unwrap();
        assert_eq!(row.result(), expected);
    }
}

#[test]
fn pages_larger_than_a_chunk_and_slower_devices_for_logs_are_found() {
    let tree = Tree::with(&[
        ("sys/class/block/md0/md/chunk_size", "4096"),
        (
            "proc/self/mountinfo",
            "30 1 9:0 / /data rw,noatime - btrfs /dev/md0 rw\n31 1 8:1 / /other rw,relatime - ext4 /dev/sda1 rw\n",
        ),
    ]);
    let mut facts = tree.facts();
    place_on(&mut facts, "md0", &["data", "redo log"]);
    let slow = vec![phase("log-append", Pattern::Sequential, 0.0, 4, 1, 100)];
    let fast = vec![phase("log-append", Pattern::Sequential, 0.0, 4, 1, 5_000)];
    facts.evidence = Evidence::of(vec![run("md0", slow), run("sda1", fast)], Vec::new());
    facts.mysql = Some(Mysql {
        variables: text(&[("innodb_page_size", "16384"), ("sync_binlog", "1")]),
        ..Mysql::default()
    });
    let rows = judged(&facts);
    let names: Vec<&str> = found(&rows).iter().map(|(name, _)| *name).collect();
    assert!(
        names.contains(&"innodb-page-size") && names.contains(&"mysql-placement"),
        "{names:?}"
    );
    assert!(names.contains(&"commit-latency"), "{names:?}");
}

#[test]
fn replication_and_settings_of_the_running_server_are_found() {
    let mut facts = Tree::with(&[]).facts();
    let channel = |lag: &str, sql: &str| {
        text(&[
            ("source_host", "db0"),
            ("seconds_behind_source", lag),
            ("replica_io_running", "Yes"),
            ("replica_sql_running", sql),
        ])
    };
    for (source, expected) in [
        (channel("0", "Yes"), CheckResult::Ok),
        (channel("60", "Yes"), CheckResult::Consider),
        (channel("900", "Yes"), CheckResult::Fix),
        (channel("NULL", "No"), CheckResult::Fix),
    ] {
        facts.mysql = Some(Mysql {
            sources: vec![source],
            run_time: None,
            ..Mysql::default()
        });
        let rows = judged(&facts);
        let row = rows
            .iter()
            .find(|row| row.check.name == "mysql-replication-lag")
            .unwrap();
        assert_eq!(row.result(), expected, "{}", row.judgement.value);
    }
}

/// PostgreSQL on nvme1n1 that is set well, with other settings.
fn postgres(settings: &[(&str, &str, &str)], statistics: Statistics) -> Vec<Row> {
    let well = [
        ("random_page_cost", "1.1", ""),
        ("seq_page_cost", "1", ""),
        ("effective_io_concurrency", "16", ""),
        ("shared_buffers", "524288", "8kB"),
        ("fsync", "on", ""),
        ("full_page_writes", "on", ""),
        ("synchronous_commit", "on", ""),
        ("checkpoint_completion_target", "0.9", ""),
        ("checkpoint_timeout", "300", "s"),
        ("max_wal_size", "4096", "MB"),
        ("block_size", "8192", ""),
        ("io_method", "worker", ""),
        ("archive_mode", "on", ""),
    ];
    let tree = Tree::with(&[]);
    let mut facts = tree.facts();
    place_on(&mut facts, "nvme1n1", &["data", "WAL"]);
    facts.evidence = Evidence::of(vec![run("nvme1n1", measured())], Vec::new());
    let setting = |(name, setting, unit): &(&str, &str, &str)| {
        let unit = (!unit.is_empty()).then(|| (*unit).to_owned());
        (
            (*name).to_owned(),
            Setting {
                name: (*name).to_owned(),
                setting: (*setting).to_owned(),
                unit,
                pending_restart: false,
            },
        )
    };
    facts.postgres = Some(Postgres {
        settings: well.iter().chain(settings).map(setting).collect(),
        statistics,
        folder: Some("/data".into()),
        ..Postgres::default()
    });
    judged(&facts)
        .into_iter()
        .filter(|row| matches!(row.check.area, Area::Postgres | Area::Safety))
        .collect()
}

#[test]
fn each_setting_of_postgresql_that_is_wrong_for_the_measured_disk_is_found_alone() {
    use CheckResult::{Consider, Fix};
    let quiet = || Statistics {
        timed: 100.0,
        seconds: Some(30_000.0),
        replicas: 1.0,
        archived_age_s: Some(60.0),
        bytes: Some(1e11),
        ..Statistics::default()
    };
    assert_eq!(found(&postgres(&[], quiet())), []);
    let table: &[(&str, CheckResult, Units<'_>)] = &[
        (
            "random-page-cost",
            Consider,
            &[("random_page_cost", "4", "")],
        ),
        ("random-page-cost", Fix, &[("random_page_cost", "0.5", "")]),
        (
            "effective-io-concurrency",
            Consider,
            &[("effective_io_concurrency", "1", "")],
        ),
        (
            "effective-io-concurrency",
            Consider,
            &[("effective_io_concurrency", "1000", "")],
        ),
        (
            "shared-buffers",
            Consider,
            &[("shared_buffers", "16384", "8kB")],
        ),
        (
            "shared-buffers",
            Consider,
            &[("shared_buffers", "1600000", "8kB")],
        ),
        ("postgres-durability", Fix, &[("fsync", "off", "")]),
        (
            "postgres-durability",
            Fix,
            &[("full_page_writes", "off", "")],
        ),
        (
            "postgres-durability",
            Consider,
            &[("synchronous_commit", "off", "")],
        ),
        (
            "checkpoint-spread",
            Consider,
            &[("checkpoint_completion_target", "0.5", "")],
        ),
        ("io-method", Consider, &[("io_method", "sync", "")]),
    ];
    for (name, result, settings) in table {
        assert_eq!(
            found(&postgres(settings, quiet())),
            [(*name, *result)],
            "{settings:?}"
        );
    }
    let requested = Statistics {
        requested: 80.0,
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], requested)),
        [("max-wal-size", Consider)]
    );
    let busy = Statistics {
        checkpoint_buffers: 2e8,
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], busy)),
        [("checkpoint-spread", Consider)]
    );
    let failing = Statistics {
        archive_failing: true,
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], failing)),
        [("wal-archive-failing", Fix)]
    );
    let alone = Statistics {
        replicas: 0.0,
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], alone)),
        [("replica-present", Consider)]
    );
    let behind = Statistics {
        is_replica: true,
        replay_lag_s: Some(400.0),
        ..quiet()
    };
    assert_eq!(
        found(&postgres(&[], behind)),
        [("postgres-replication-lag", Fix)]
    );
}

#[test]
fn what_a_watch_found_is_evidence() {
    let tree = Tree::with(&[]);
    let mut facts = tree.facts();
    let at = Moment {
        wall: Some("2026-11-20T00:00:00Z".parse().unwrap()),
        elapsed: Nanos(0),
    };
    let event = |code: EventCode| Event {
        id: 1,
        code,
        severity: Severity::Warn,
        subject: Subject::Host,
        name: "nvme1n1".into(),
        began: at,
        ended: None,
        text: "It was seen.".into(),
        advice: String::new(),
        figures: Vec::new(),
    };
    for (code, name) in [
        (EventCode::Cold, "cold-volume"),
        (EventCode::BurstSpent, "burst-credit"),
        (EventCode::VolumeCap, "volume-cap"),
        (EventCode::InstanceCap, "instance-cap"),
    ] {
        facts.evidence = Evidence::of(Vec::new(), vec![event(code)]);
        let rows = judged(&facts);
        assert_eq!(
            found(&rows)
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>(),
            [name]
        );
        let row = rows.iter().find(|row| row.is_finding()).unwrap();
        assert_eq!(
            row.judgement.evidence.as_deref(),
            Some("It was seen. (watch, 2026-11-20)")
        );
    }
    // 100,000 pages of 4 KiB take 2.6 s at 150 MiB/s, and 390 s at 1 MiB/s.
    for (rate, expected) in [(150, None), (1, Some("dirty-memory"))] {
        let load = vec![phase("load", Pattern::Sequential, 0.0, 1024, 8, rate)];
        facts.evidence = Evidence::of(vec![run("nvme1n1", load)], Vec::new());
        let names: Vec<&str> = found(&judged(&facts))
            .iter()
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(names.first().copied(), expected);
    }
}

#[test]
fn backups_are_judged_by_age_place_and_end() {
    use CheckResult::{Consider, Fix, Ok, Unknown};
    let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
    let backup = |hours: i64, with_data: bool| Backup {
        kind: "dump",
        ended: now - jiff::SignedDuration::from_hours(hours),
        place: "/b/x.sql".into(),
        is_whole: true,
        is_with_data: Some(with_data),
    };
    let day = Some(std::time::Duration::from_secs(86_400));
    let known = |backups: Vec<Backup>| Safety {
        rpo: day,
        restored_on: Some("2026-11-01".parse().unwrap()),
        now,
        backups,
        searched: vec!["/b".into()],
        failed: Vec::new(),
    };
    let cut_off = Backup {
        is_whole: false,
        ..backup(1, false)
    };
    for (safety, expected) in [
        (
            known(vec![backup(2, false)]),
            vec![
                ("backup-age", Ok),
                ("backup-device", Ok),
                ("restore-tried", Ok),
            ],
        ),
        (
            known(vec![backup(48, false)]),
            vec![
                ("backup-age", Fix),
                ("backup-device", Ok),
                ("restore-tried", Ok),
            ],
        ),
        (
            known(vec![backup(2, true)]),
            vec![
                ("backup-age", Ok),
                ("backup-device", Fix),
                ("restore-tried", Ok),
            ],
        ),
        (
            known(vec![cut_off]),
            vec![
                ("backup-age", Fix),
                ("backup-incomplete", Fix),
                ("restore-tried", Ok),
            ],
        ),
        (
            Safety {
                rpo: None,
                restored_on: None,
                ..known(vec![backup(2, false)])
            },
            vec![
                ("backup-age", Unknown),
                ("backup-device", Ok),
                ("restore-tried", Unknown),
            ],
        ),
        (
            Safety {
                restored_on: Some("2026-01-01".parse().unwrap()),
                ..known(vec![backup(2, false)])
            },
            vec![
                ("backup-age", Ok),
                ("backup-device", Ok),
                ("restore-tried", Consider),
            ],
        ),
        (
            Safety {
                searched: Vec::new(),
                ..known(Vec::new())
            },
            vec![("backup-age", Unknown), ("restore-tried", Ok)],
        ),
    ] {
        let mut facts = Tree::with(&[]).facts();
        facts.safety = Some(safety);
        let mut rows: Vec<(&str, CheckResult)> = judged(&facts)
            .iter()
            .filter(|row| row.check.area == Area::Safety)
            .map(|row| (row.check.name, row.result()))
            .collect();
        rows.sort();
        assert_eq!(rows, expected);
    }
}
