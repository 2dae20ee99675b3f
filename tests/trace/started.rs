//! The start of `trace record`: the size of the kernel's buffers, and the check that events come.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::loops::Loop;
use super::support::{self, Place, Running, TIMEOUT, has_program, number, output_of};
use super::{record, traced_disk};

/// Size of the buffers of a recording.
fn buffer(place: &Place, disk: &Loop, options: &[&str]) -> u64 {
    let words = [&["--for", "100ms", "--force", "--json"][..], options].concat();
    let recorded = record(place, disk, "t.dst", &words).ends_with(0).json();
    number(&recorded["buffer_bytes_per_processor"])
}

#[test]
fn with_root_a_disk_under_load_is_recorded_with_larger_buffers_than_an_idle_one() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place).filter(|_| has_program("fio")) else {
        return;
    };
    let idle = buffer(&place, &disk, &[]);
    let mut fio = Command::new("fio");
    fio.args(["--name=load", "--thread", "--direct=1", "--rw=randread"])
        .args(["--bs=4k", "--ioengine=libaio", "--iodepth=64"])
        .args(["--time_based", "--runtime=3600"])
        .arg(format!("--filename={}", disk.path()))
        .stdout(Stdio::null());
    let load = Running::start(&mut fio);
    let began = Instant::now();
    // Until fio has begun, and is given time enough by a busy host.
    while buffer(&place, &disk, &[]) <= idle {
        assert!(began.elapsed() < TIMEOUT, "it stays at {idle}");
    }
    assert_eq!(buffer(&place, &disk, &["--buffer", "64KiB"]), 64 << 10);
    drop(load);
    assert_eq!(buffer(&place, &disk, &[]), idle);
}

/// The kernel gives a disk one number in its events, and sysfs another, which is put over its own.
#[test]
fn with_root_a_disk_whose_events_do_not_come_is_refused() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let name = disk.name();
    fs::write(place.path("number"), "7:65535\n").unwrap();
    let mut alone = Command::new("unshare");
    alone.args(["-m", "sh", "-c"]);
    alone.arg("mount --bind number /sys/class/block/$0/dev && exec \"$@\"");
    alone.arg(&name);
    let words = ["trace", "record", &name, "-o", "t.dst", "--for", "100ms"];
    let refused = output_of(&mut support::behind(alone, &place.command(&words)));
    refused.refuses(&["/dev/loop", "and no event is of it"]);
    assert!(!place.path("t.dst").exists());
}

/// A mount namespace without a mounted tracefs, in which /proc/filesystems is a list without it.
#[test]
fn with_root_a_kernel_without_tracefs_is_named() {
    let place = Place::new();
    let Some(disk) = Loop::new(16) else {
        return;
    };
    fs::write(place.path("filesystems"), "nodev\tsysfs\n\text4\n").unwrap();
    let mut alone = Command::new("unshare");
    alone.args(["-m", "sh", "-c"]);
    alone.arg(
        "mount --bind filesystems /proc/filesystems && mount -t tmpfs none /sys/kernel && exec \"$@\"",
    );
    alone.arg("sh");
    let words = ["trace", "record", disk.path(), "-o", "t.dst"];
    let refused = output_of(&mut support::behind(alone, &place.command(&words)));
    refused.refuses(&["no tracefs", "CONFIG_TRACING"]);
    assert!(!place.path("t.dst").exists());
}
