use std::fs;

use jiff::Timestamp;
use record::Nanos;
use record::sample::{DeviceKind, PerSecond, SyncAction};

use super::*;

/// A simulated host, made of files, with a clock for its readings.
struct Fake {
    _folder: tempfile::TempDir,
    root: Root,
    second: u64,
}

impl Fake {
    fn new() -> Fake {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        fs::create_dir_all(&root.proc).unwrap();
        fs::create_dir_all(root.sys.join("class/block")).unwrap();
        let fake = Fake {
            _folder: folder,
            root,
            second: 0,
        };
        fake.counters(&[]);
        fake
    }

    /// Writes the counters of devices: minor number, name, reads, and milliseconds of reads.
    fn counters(&self, devices: &[(u32, &str, u64, u64)]) {
        let line = |(minor, name, reads, ms): &(u32, &str, u64, u64)| {
            format!(
                " 259 {minor:7} {name} {reads} 0 {} {ms} 0 0 0 0 0 {ms} {ms} 0 0 0 0 0 0\n",
                8 * reads
            )
        };
        let text: String = devices.iter().map(line).collect();
        fs::write(self.root.proc.join("diskstats"), text).unwrap();
    }

    /// Creates a device's folder in sysfs.
    fn device(&self, minor: u32, name: &str, sequence: u64) {
        let folder = self.root.sys.join("class/block").join(name);
        fs::create_dir_all(folder.join("slaves")).unwrap();
        fs::create_dir_all(folder.join("mq/0")).unwrap();
        fs::create_dir_all(folder.join("queue")).unwrap();
        let put = |file: &str, text: String| fs::write(folder.join(file), text).unwrap();
        put("dev", format!("259:{minor}\n"));
        put("size", "2048\n".to_owned());
        put("diskseq", format!("{sequence}\n"));
        put("queue/nr_requests", "64\n".to_owned());
    }

    fn array(&self, minor: u32, name: &str, members: &[&str]) {
        self.device(minor, name, 99);
        let folder = self.root.sys.join("class/block").join(name);
        fs::create_dir_all(folder.join("md")).unwrap();
        fs::write(folder.join("md/level"), "raid1\n").unwrap();
        fs::write(folder.join("md/sync_action"), "idle\n").unwrap();
        for member in members {
            fs::write(folder.join("slaves").join(member), "").unwrap();
        }
    }

    fn mdstat(&self, text: &str) {
        fs::write(self.root.proc.join("mdstat"), text).unwrap();
    }

    fn collector(&self) -> Collector {
        Collector::new(&self.root, Duration::from_secs(1)).unwrap()
    }

    /// The next sample, one second after the last.
    fn next(&mut self, collector: &mut Collector) -> Option<Sample> {
        self.second += 1;
        let since = Nanos::from_secs(self.second);
        let wall = i64::try_from(self.second).unwrap();
        let reading = ClockReading {
            wall: Timestamp::from_second(1_700_000_000 + wall).unwrap(),
            monotonic: since,
            boot: since,
        };
        collector.registry.reset_cost();
        collector.sample_at(reading).unwrap()
    }
}

#[test]
fn a_device_that_comes_is_known_from_its_second_reading_on() {
    let mut fake = Fake::new();
    fake.counters(&[(0, "nvme0n1", 100, 10)]);
    let mut collector = fake.collector();
    assert!(fake.next(&mut collector).is_none());
    fake.counters(&[(0, "nvme0n1", 150, 60), (1, "nvme1n1", 500, 0)]);
    let sample = fake.next(&mut collector).unwrap();
    let old = sample.named("nvme0n1").unwrap();
    assert_eq!(old.read.iops, Some(PerSecond(50.0)));
    assert_eq!(old.read.wait, Some(Nanos(1_000_000)));
    let new = sample.named("nvme1n1").unwrap();
    assert_eq!((new.read.iops, new.reset), (None, false));
    assert!(new.device.first_seen.elapsed > old.device.first_seen.elapsed);
    fake.counters(&[(0, "nvme0n1", 150, 60), (1, "nvme1n1", 501, 0)]);
    let sample = fake.next(&mut collector).unwrap();
    let new = sample.named("nvme1n1").unwrap();
    assert_eq!(new.read.iops, Some(PerSecond(1.0)));
}

#[test]
fn a_disk_that_hangs_holds_up_no_sample() {
    let mut fake = Fake::new();
    fake.device(0, "vda", 1);
    fake.device(1, "vdb", 2);
    let serial = |name: &str| fake.root.sys.join("class/block").join(name).join("serial");
    fs::write(serial("vda"), "vol1\n").unwrap();
    // A virtio disk returns its serial number by a request, which waits behind all others. Reading this pipe waits
    // for a writer.
    let (hanging, mode) = (
        serial("vdb"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    );
    let pipe = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &hanging, pipe, mode, 0).unwrap();
    fake.counters(&[(0, "vda", 100, 10), (1, "vdb", 100, 10)]);
    let mut collector = fake.collector();
    assert!(fake.next(&mut collector).is_none());
    fake.counters(&[(0, "vda", 150, 60), (1, "vdb", 100, 10)]);
    let sample = fake.next(&mut collector).unwrap();
    let message = |name: &str| sample.named(name).unwrap().device.serial.clone();
    assert_eq!(message("vda").as_deref(), Some("vol1"));
    assert_eq!(message("vdb"), None);
    // The reader ends when a writer has opened and closed the pipe.
    drop(fs::OpenOptions::new().write(true).open(&hanging));
}

#[test]
fn a_name_that_is_used_again_is_another_device() {
    let mut fake = Fake::new();
    fake.device(0, "sda", 7);
    fake.counters(&[(0, "sda", 1000, 10)]);
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let first = fake.next(&mut collector).unwrap();
    let first = first.named("sda").unwrap().device.clone();
    assert_eq!(first.sequence, Some(7));
    assert_eq!(first.queue_depth, Some(64));
    // It is replaced between two readings.
    fake.device(0, "sda", 8);
    fake.counters(&[(0, "sda", 3, 1)]);
    let second = fake.next(&mut collector).unwrap();
    let second = second.named("sda").unwrap();
    assert!(second.reset);
    assert_eq!(second.read.iops, None);
    assert_ne!(second.device.id, first.id);
    assert_eq!(second.device.sequence, Some(8));
}

#[test]
fn the_same_device_keeps_its_number_when_it_comes_back_or_its_counters_go_back() {
    let mut fake = Fake::new();
    fake.device(0, "sda", 7);
    fake.counters(&[(0, "sda", 1000, 10)]);
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let id = |sample: &Sample| sample.named("sda").unwrap().device.id;
    let first = fake.next(&mut collector).unwrap();
    fake.counters(&[(0, "sda", 3, 1)]);
    let reset = fake.next(&mut collector).unwrap();
    assert!(reset.named("sda").unwrap().reset);
    assert_eq!(id(&reset), id(&first));
    fake.counters(&[]);
    let gone = fake.next(&mut collector).unwrap();
    assert!(gone.devices.is_empty());
    fake.counters(&[(0, "sda", 4, 1)]);
    let back = fake.next(&mut collector).unwrap();
    assert_eq!(id(&back), id(&first));
    assert_eq!(back.named("sda").unwrap().read.iops, None);
}

#[test]
fn an_array_is_seen_over_its_members_with_what_it_does() {
    let mut fake = Fake::new();
    fake.device(0, "sda", 1);
    fake.device(1, "sdb", 2);
    fake.array(2, "md0", &["sda", "sdb"]);
    let devices = [(0, "sda", 9, 1), (1, "sdb", 9, 1), (2, "md0", 9, 1)];
    fake.counters(&devices);
    let idle = "md0 : active raid1 sdb[1] sda[0]\n      1024 blocks [2/2] [UU]\n";
    fs::create_dir_all(fake.root.dev.join("md")).unwrap();
    fs::write(fake.root.dev.join("md0"), "").unwrap();
    std::os::unix::fs::symlink("../md0", fake.root.dev.join("md/data")).unwrap();
    // md is loaded only when the array is built.
    let mut collector = fake.collector();
    fake.mdstat(idle);
    fake.next(&mut collector);
    let sample = fake.next(&mut collector).unwrap();
    let md = sample.named("md0").unwrap();
    assert_eq!(md.device.kind, DeviceKind::Array);
    assert_eq!(md.device.raid_level(), Some(record::raid::Level::One));
    assert_eq!(md.device.alias.as_deref(), Some("data"));
    let below: Vec<&str> = sample
        .below(&md.device)
        .map(|one| one.device.name.as_str())
        .collect();
    assert_eq!(below, ["sda", "sdb"]);
    let state = md.array.as_ref().unwrap();
    assert_eq!(
        (state.action, state.degraded),
        (Some(SyncAction::Idle), Some(0))
    );
    fake.mdstat(
        "md0 : active raid1 sdb[1](F) sda[0]\n      1024 blocks [2/1] [U_]\n      \
         [=>..]  recovery = 10.0% (102/1024) finish=1min speed=5K/sec\n",
    );
    let sample = fake.next(&mut collector).unwrap();
    let state = sample.named("md0").unwrap().array.clone().unwrap();
    assert_eq!(state.action, Some(SyncAction::Recover));
    assert_eq!(state.degraded, Some(1));
    let faulty: Vec<&str> = state
        .members
        .iter()
        .filter(|member| member.is_faulty())
        .map(|member| member.name.as_str())
        .collect();
    assert_eq!(faulty, ["sdb"]);
}

#[test]
fn hidden_files_of_a_container_are_reported_once() {
    let mut fake = Fake::new();
    fake.counters(&[(0, "vda", 1, 1)]);
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let notes = collector.take_notes();
    for part in ["PSI", "load", "Memory", "Network", "kernel's log"] {
        let count = notes.iter().filter(|note| note.contains(part)).count();
        assert_eq!(count, 1, "{part}: {notes:?}");
    }
    let sample = fake.next(&mut collector).unwrap();
    assert_eq!(sample.host.pressure, None);
    assert!(collector.take_notes().is_empty());
}

#[test]
fn without_counters_there_is_nothing_to_watch() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::under(folder.path());
    assert!(Collector::new(&root, Duration::from_secs(1)).is_err());
}

#[test]
fn thousands_of_devices_are_sorted_by_name() {
    let mut fake = Fake::new();
    let names: Vec<String> = (0..3000).rev().map(|n| format!("sd{n}")).collect();
    let devices: Vec<(u32, &str, u64, u64)> = names
        .iter()
        .zip(0..)
        .map(|(name, minor)| (minor, name.as_str(), 1, 1))
        .collect();
    fake.counters(&devices);
    for (minor, name, ..) in devices.iter().rev().take(20) {
        fake.device(*minor, name, u64::from(*minor));
    }
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let sample = fake.next(&mut collector).unwrap();
    assert_eq!(sample.devices.len(), 3000);
    let listed: Vec<&str> = sample
        .devices
        .iter()
        .map(|one| one.device.name.as_str())
        .collect();
    let sorted: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    assert_eq!(listed, sorted);
}

#[test]
fn a_host_without_sysfs_is_watched_and_that_is_reported_once() {
    let mut fake = Fake::new();
    fs::remove_dir_all(&fake.root.sys).unwrap();
    fake.counters(&[(1, "nvme10n1", 1, 1), (0, "nvme2n1", 1, 1)]);
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let reports = |notes: &[String]| {
        let reports = notes
            .iter()
            .filter(|note| note.contains("sysfs lists none"));
        reports.count()
    };
    assert_eq!(reports(&collector.take_notes()), 1);
    let sample = fake.next(&mut collector).unwrap();
    let names = sample.devices.iter().map(|one| one.device.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["nvme2n1", "nvme10n1"]);
    fake.counters(&[(0, "nvme2n1", 1, 1)]);
    fake.next(&mut collector);
    assert_eq!(reports(&collector.take_notes()), 0);
}

#[test]
fn without_sysfs_a_device_is_a_partition_where_its_disk_is_there() {
    let mut fake = Fake::new();
    fs::remove_dir_all(&fake.root.sys).unwrap();
    fake.counters(&[
        (0, "nvme0n1p1", 1, 1),
        (1, "nvme0n1", 1, 1),
        (2, "xvdap1", 1, 1),
        (3, "sda1", 1, 1),
    ]);
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let sample = fake.next(&mut collector).unwrap();
    let of = |name: &str| &sample.named(name).unwrap().device;
    assert_eq!(of("nvme0n1p1").kind, DeviceKind::Partition);
    assert_eq!(of("nvme0n1p1").lies_on, [of("nvme0n1").id]);
    for name in ["nvme0n1", "xvdap1", "sda1"] {
        assert_eq!(of(name).kind, DeviceKind::Disk, "{name}");
    }
}

#[test]
fn a_device_that_goes_away_is_reported_once() {
    let mut fake = Fake::new();
    let partitions = |fake: &Fake, rows: &[(u32, u64, &str)]| {
        let row = |(minor, blocks, name): &(u32, u64, &str)| {
            format!(" 259 {minor:8} {blocks:10} {name}\n")
        };
        let rows: String = rows.iter().map(row).collect();
        let text = format!("major minor  #blocks  name\n\n{rows}");
        fs::write(fake.root.proc.join("partitions"), text).unwrap();
    };
    let removed = |sample: &Sample| {
        let names = sample.removed.iter().map(|device| device.name.clone());
        names.collect::<Vec<_>>()
    };
    // A drive without a medium has no size, and does not count as removed.
    let all = [
        (0, "sda", 9, 1),
        (1, "loop3", 9, 1),
        (2, "sr0", 0, 0),
        (3, "sdb", 9, 1),
    ];
    fake.counters(&all);
    partitions(
        &fake,
        &[(0, 1024, "sda"), (1, 1024, "loop3"), (3, 1024, "sdb")],
    );
    for (minor, name, ..) in all {
        fake.device(minor, name, u64::from(minor) + 1);
    }
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let sample = fake.next(&mut collector).unwrap();
    assert_eq!((sample.devices.len(), removed(&sample).len()), (4, 0));
    // A file is detached from a loop device, whose counters remain.
    partitions(&fake, &[(0, 1024, "sda"), (3, 1024, "sdb")]);
    let sample = fake.next(&mut collector).unwrap();
    assert_eq!(removed(&sample), ["loop3"]);
    assert!(sample.named("loop3").is_none() && sample.named("sr0").is_some());
    // A disk is pulled.
    fake.counters(&all[..3]);
    partitions(&fake, &[(0, 1024, "sda")]);
    let sample = fake.next(&mut collector).unwrap();
    assert_eq!(removed(&sample), ["sdb"]);
    let sample = fake.next(&mut collector).unwrap();
    assert!(removed(&sample).is_empty());
    // Another disk replaces a third one between two readings.
    fake.counters(&[(0, "nvme0n1", 1, 1), (1, "loop3", 9, 1), (2, "sr0", 0, 0)]);
    partitions(&fake, &[(0, 1024, "nvme0n1"), (1, 512, "loop3")]);
    let sample = fake.next(&mut collector).unwrap();
    assert_eq!(removed(&sample), ["sda"]);
    assert!(sample.named("loop3").is_some());
}

#[test]
fn limits_of_groups_are_in_the_sample_with_what_was_used() {
    let mut fake = Fake::new();
    fake.counters(&[(0, "sda", 9, 1)]);
    let group = fake.root.sys.join("fs/cgroup/blkio/db");
    fs::create_dir_all(&group).unwrap();
    let put = |file: &str, text: &str| fs::write(group.join(file), text).unwrap();
    put("blkio.throttle.write_iops_device", "259:0 50\n");
    put(
        "blkio.throttle.io_serviced",
        "259:0 Read 7\n259:0 Write 100\nTotal 107\n",
    );
    let mut collector = fake.collector();
    fake.next(&mut collector);
    put(
        "blkio.throttle.io_serviced",
        "259:0 Read 7\n259:0 Write 149\nTotal 156\n",
    );
    let sample = fake.next(&mut collector).unwrap();
    let [limit] = sample.host.limits.as_slice() else {
        panic!("{:?}", sample.host.limits);
    };
    assert_eq!(
        (&*limit.group, limit.limit, limit.used),
        ("/db", 50.0, Some(49.0))
    );
    assert_eq!(limit.device, sample.devices[0].device.number.unwrap());
}

#[test]
fn a_disk_that_does_not_count_is_named_once() {
    let mut fake = Fake::new();
    fake.device(0, "sda", 1);
    fake.device(1, "sdb", 2);
    let iostats = fake.root.sys.join("class/block/sdb/queue/iostats");
    fs::write(iostats, "0\n").unwrap();
    fake.counters(&[(0, "sda", 1, 1), (1, "sdb", 0, 0)]);
    let mut collector = fake.collector();
    for expected in [1, 0] {
        fake.next(&mut collector);
        let notes = collector.take_notes();
        let reports = notes.iter().filter(|note| note.contains("requests of sdb"));
        assert_eq!(reports.count(), expected, "{notes:?}");
    }
}

#[test]
fn a_disk_that_was_away_is_another_where_nothing_says_that_it_is_the_same() {
    let mut fake = Fake::new();
    let many: Vec<String> = (0..50).map(|n| format!("vd{n}")).collect();
    let mut devices: Vec<(u32, &str, u64, u64)> = many
        .iter()
        .zip(0..)
        .map(|(name, minor)| (minor, name.as_str(), 10, 10))
        .collect();
    fake.counters(&devices);
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let first = fake.next(&mut collector).unwrap();
    let gone = devices.pop().unwrap();
    // As on a host where reading sysfs takes so long that it is not done at each sample.
    collector.registry.slow_down(Duration::from_secs(1));
    fake.counters(&devices);
    fake.next(&mut collector);
    devices.push((gone.0, gone.1, 99, 99));
    fake.counters(&devices);
    let back = fake.next(&mut collector).unwrap();
    assert_eq!(back.named(gone.1).unwrap().read.iops, None);
    collector.registry.slow_down(Duration::ZERO);
    let back = fake.next(&mut collector).unwrap();
    let id = |sample: &Sample, name: &str| sample.named(name).unwrap().device.id;
    assert_ne!(id(&back, gone.1), id(&first, gone.1));
    assert_eq!(id(&back, "vd0"), id(&first, "vd0"));
}

#[test]
fn an_array_without_copies_that_lost_a_member_lacks_one() {
    let mut fake = Fake::new();
    fake.array(2, "md0", &[]);
    fake.counters(&[(2, "md0", 9, 1)]);
    fake.mdstat("md0 : broken raid0 sdb[1] sda[0]\n      1024 blocks\n");
    let mut collector = fake.collector();
    fake.next(&mut collector);
    let sample = fake.next(&mut collector).unwrap();
    let state = sample.named("md0").unwrap().array.as_ref().unwrap();
    assert_eq!(state.degraded, Some(1));
}

#[test]
fn this_host_is_watched() {
    let mut collector = Collector::new(&Root::host(), Duration::from_secs(1)).unwrap();
    assert!(collector.sample().unwrap().is_none());
    std::thread::sleep(Duration::from_millis(50));
    let sample = collector.sample().unwrap().unwrap();
    assert!(sample.length >= Nanos(10_000_000));
    assert!(sample.at.wall.is_some());
}
