//! The operation, process and file of what `trace record` records, on loop devices.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::loops::{self, FileSystem, Loop, Mounted};
use super::support::requests::of_blkparse;
use super::support::{Place, TIMEOUT, has_program, number, skipped};
use super::{end, recording, row, shown, traced_disk};

#[test]
fn with_root_zeroes_without_data_are_recorded_as_discards() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let recorder = recording(&place, &disk, "t.dst", &[]);
    for options in [&["-z", "-o", "1MiB"][..], &["-o", "4MiB"]] {
        let words = [options, &["-l", "1MiB", disk.path()]].concat();
        loops::run("blkdiscard", &words);
    }
    end(recorder);
    let found = shown(&place, &place.path("t.dst"));
    assert_eq!(found["discard_bytes"], 2 << 20, "{found:#}");
    assert_eq!(found["writes"], 0, "{found:#}");
    assert_eq!(found["verdict"], "trusted", "{found:#}");
}

/// A fio that begins to write to its half of the device, many at once, when its input ends.
fn writer(disk: &Loop, offset: &str) -> Child {
    let job = "cat; exec fio --name=load --thread --direct=1 --rw=randwrite --bs=4k --ioengine=libaio --iodepth=64 \
               --number_ios=20000 --size=30M --norandommap --offset=$1 --filename=$0";
    let mut shell = Command::new("sh");
    shell.args(["-c", job, disk.path(), offset]);
    shell.stdin(Stdio::piped()).stdout(Stdio::null());
    shell.spawn().unwrap()
}

/// Two programs fill the queue of a scheduler, from which either sends what the other put there.
#[test]
fn with_root_what_a_chosen_process_sends_for_others_is_not_recorded_as_its_own() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place).filter(|_| has_program("fio")) else {
        return;
    };
    let scheduler = format!("/sys/block/{}/queue/scheduler", disk.name());
    if let Err(why) = fs::write(scheduler, "mq-deadline") {
        skipped(&format!("the kernel has no mq-deadline ({why})"));
        return;
    }
    // What the scheduler merges is of one of them: a MiB lies between their halves.
    let (mut chosen, mut other) = (writer(&disk, "0"), writer(&disk, "32M"));
    let pid = chosen.id().to_string();
    let recorder = recording(&place, &disk, "t.dst", &["--pid", &pid]);
    for child in [&mut other, &mut chosen] {
        drop(child.stdin.take());
    }
    for child in [&mut other, &mut chosen] {
        assert!(child.wait().unwrap().success());
    }
    end(recorder);
    let words = ["trace", "convert", "t.dst", "t.txt", "--to", "blkparse"];
    place.run(&words).ends_with(0);
    let recorded = of_blkparse(&fs::read_to_string(place.path("t.txt")).unwrap());
    assert!(!recorded.is_empty());
    let foreign: Vec<_> = recorded
        .iter()
        .filter(|(_, (_, offset, _))| *offset >= 32 << 20)
        .collect();
    assert!(
        foreign.is_empty(),
        "{} of {}: {:?}",
        foreign.len(),
        recorded.len(),
        foreign[0]
    );
}

#[test]
fn with_root_files_behind_links_are_named_and_links_in_circles_end() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let Some(files) = FileSystem::on(disk, "ext4") else {
        return;
    };
    let [data, wal, segment] = ["data", "wal", "wal/segment"].map(|name| files.join(name));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&wal).unwrap();
    let mut file = File::create(&segment).unwrap();
    file.write_all(&vec![7; 4 << 20]).unwrap();
    file.sync_all().unwrap();
    symlink("../wal", Path::new(&data).join("pg_wal")).unwrap();
    symlink(".", Path::new(&data).join("itself")).unwrap();
    let recorder = recording(&place, &files.device, "t.dst", &["--dataset", &data]);
    let from = format!("if={segment}");
    loops::run("dd", &["of=/dev/null", "iflag=direct", "bs=64k", &from]);
    end(recorder);
    let found = shown(&place, &place.path("t.dst"));
    let named = row(&found["files"], "pg_wal/segment");
    assert_eq!(number(&named["bytes"]), 4 << 20, "{found:#}");
}

/// Places in the partition are told apart from those of the disk, of which the events are.
#[test]
fn with_root_files_of_a_partition_are_named() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let partition = disk.add_partition();
    partition.mkfs();
    let mounted = Mounted::new(&partition.node);
    let data = mounted.point.to_str().unwrap();
    for name in ["first", "second"] {
        let mut file = File::create(mounted.point.join(name)).unwrap();
        file.write_all(&vec![7; 1 << 20]).unwrap();
        file.sync_all().unwrap();
    }
    let recorder = recording(&place, &disk, "t.dst", &["--dataset", data]);
    let from = format!("if={data}/first");
    let dd = ["of=/dev/null", "iflag=direct", "bs=64k", &from];
    loops::run("dd", &dd);
    end(recorder);
    let found = shown(&place, &place.path("t.dst"));
    let named = row(&found["files"], "first");
    assert_eq!(number(&named["bytes"]), 1 << 20, "{found:#}");
    let files = found["files"].as_array().unwrap();
    assert!(
        files.iter().all(|file| file["name"] != "second"),
        "{found:#}"
    );
}

/// A loop device that the kernel takes for one without a volatile write cache. It would keep that for who has it next.
struct WriteThrough(String);

impl WriteThrough {
    fn of(disk: &Loop) -> WriteThrough {
        let setting = format!("/sys/block/{}/queue/write_cache", disk.name());
        fs::write(&setting, "write through").unwrap();
        WriteThrough(setting)
    }
}

impl Drop for WriteThrough {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "write back");
    }
}

/// The block layer sends such a disk no flush, so that nothing else tells which writes were commits.
#[test]
fn with_root_of_a_disk_without_a_write_cache_the_writes_of_a_log_are_the_commits_of_a_replay() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let Some(files) = FileSystem::on(disk, "ext4") else {
        return;
    };
    // Dropped before the device is, also on a panic.
    let _cache = WriteThrough::of(&files.device);
    let log = files.join("pg_wal");
    fs::create_dir(&log).unwrap();
    let segment = Path::new(&log).join("segment");
    let mut file = File::create(&segment).unwrap();
    file.write_all(&vec![7; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    let data = files.path().to_str().unwrap();
    let recorder = recording(&place, &files.device, "t.dst", &["--dataset", data]);
    let to = format!("of={}", segment.display());
    let dd = ["if=/dev/zero", &to, "bs=8k", "count=20", "conv=notrunc"];
    loops::run("dd", &[&dd[..], &["oflag=direct,dsync"]].concat());
    end(recorder);
    let found = shown(&place, &place.path("t.dst"));
    for key in ["flushes", "fua_writes"] {
        assert_eq!(found[key], 0, "{key}: {found:#}");
    }
    let named = row(&found["files"], "pg_wal/segment");
    assert_eq!(number(&named["bytes"]), 20 * 8192, "{found:#}");
    let words = ["replay", "t.dst", "data", "--map", "compact", "--json"];
    let document = place.run(&words).ends_with(0).json();
    assert_eq!(document["phases"][0]["commit"]["ops"], 20, "{document}");
}

#[test]
fn with_root_files_that_come_while_it_runs_are_named() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let Some(files) = FileSystem::on(disk, "ext4") else {
        return;
    };
    let data = files.path().to_str().unwrap();
    let recorder = recording(&place, &files.device, "t.dst", &["--dataset", data]);
    let new = files.join("new");
    let mut file = File::create(&new).unwrap();
    file.write_all(&vec![7; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    let from = format!("if={new}");
    let is_named = || {
        loops::run("dd", &["of=/dev/null", "iflag=direct", "bs=64k", &from]);
        let found = shown(&place, &place.path("t.dst"));
        let mut rows = found["files"].as_array().into_iter().flatten();
        rows.any(|row| row["name"] == "new")
    };
    let began = Instant::now();
    while !is_named() {
        assert!(began.elapsed() < TIMEOUT, "it was not named");
        sleep(Duration::from_millis(200));
    }
    end(recorder);
}
