//! `scrub --read` on loop devices and, on arrays, in the lab's machine, through the real program. The
//! first need root, the second QEMU; where these are missing, the tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what it saw"
)]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs::{self, File};
use std::thread::sleep;
use std::time::{Duration, Instant};

use loops::{Loop, Throttle, wait_for};
use rustix::process::Signal;
use serde_json::json;
use support::lab::in_lab;
use support::{Place, Running, TIMEOUT, number, skipped};

const MIB: u64 = 1 << 20;

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let place = Place::new();
    fs::write(place.path("file"), "x").unwrap();
    for (arguments, words) in [
        (&["--read", "/dev/no-such"][..], "cannot be opened"),
        (&["--read", "file"], "is a file; name the disk"),
        (&["--read", "md0", "--repair"], "cannot be used with"),
        (&["--read", "--status"], "cannot be used with"),
        (&["--read"], "ARRAY"),
    ] {
        place
            .run(&[&["scrub"], arguments].concat())
            .refuses(&[words]);
    }
}

#[test]
fn as_root_bad_places_of_a_disk_are_listed_and_the_rest_is_read() {
    let place = Place::new();
    let path = place.path("disk.img");
    let file = File::create(&path).unwrap();
    file.set_len(32 * MIB).unwrap();
    let Ok(device) = Loop::on(&path).map_err(|why| skipped(&why)) else {
        return;
    };
    let read = ["scrub", "--read", device.path(), "--json"];
    let said = place.run(&read).ends_with(0).json();
    assert_eq!(said["read"][0]["ended"], "done", "{said:#}");
    assert_eq!(said["read"][0]["unreadable"], json!([]));
    // What lies behind the end of the file below answers EIO.
    let good = 20 * MIB + 12_288;
    file.set_len(good).unwrap();
    let said = place.run(&read).ends_with(1).json();
    let disk = &said["read"][0]["disks"][0];
    let bad = json!([{"offset_bytes": good, "length_bytes": 32 * MIB - good}]);
    assert_eq!(disk["unreadable"], bad, "{said:#}");
    assert_eq!(said["read"][0]["unreadable"], bad);
    assert_eq!(number(&disk["read_bytes"]), good);
    assert_eq!(number(&disk["before_bytes"]), 0, "the first was finished");
    let text = place
        .run(&["scrub", "--read", device.path(), "--locate"])
        .ends_with(1);
    for words in [
        &format!("{good}+{}", 32 * MIB - good),
        "has no mounted file system",
        "restore what lies there from a backup",
    ] {
        assert!(text.prose().contains(words), "no '{words}' in {text:#?}");
    }
    text.fits(100);
}

/// Waits until something is committed to the ledger.
fn wait_for_commit(place: &Place) {
    let log = place.path("ledger.db-wal");
    let written = || {
        std::fs::metadata(&log)
            .and_then(|file| file.modified())
            .ok()
    };
    let (before, began) = (written(), Instant::now());
    while written() == before {
        assert!(began.elapsed() < TIMEOUT, "nothing is kept");
        sleep(Duration::from_millis(10));
    }
}

/// Size of the disk that is read, in MiB: what the kernel's limit lets through in 48 s.
const SIZE: u64 = 96;

/// With a target that cannot be kept, and a foreground, reading goes on at less than 1 MiB/s. While the foreground gets no
/// processor, the kernel's limit of 2 MiB/s keeps the reading from its end.
#[test]
fn as_root_a_reading_that_is_killed_goes_on_and_is_alone_on_its_disk() {
    let (place, Some(device)) = (Place::new(), Loop::new(SIZE)) else {
        return;
    };
    let Some(throttle) = Throttle::on(&device) else {
        return;
    };
    throttle.limit_bytes(2 * MIB);
    // Somebody who is there all the time, so that the pace is kept.
    let node = device.path().to_owned();
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let over = std::sync::Arc::clone(&is_over);
    let others = std::thread::spawn(move || {
        let file = File::options().write(true).open(node).unwrap();
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            std::os::unix::fs::FileExt::write_at(&file, &[0; 4096], 0).unwrap();
            file.sync_data().unwrap();
            sleep(Duration::from_millis(5));
        }
    });
    let slow = [
        "scrub",
        "--read",
        device.path(),
        "--keep-p99",
        "1us",
        "--json",
    ];
    let running = Running::start(&mut throttle.hold(&place.command(&slow)));
    // Soon the foreground is measured, by probes, and the rate doubles each second after that.
    wait_for(running.id(), &device, MIB / 4);
    // How far it is is kept after two seconds, and later after half of the time.
    wait_for_commit(&place);
    place
        .run(&["scrub", "--read", device.path()])
        .refuses(&["another disksmith is scrubbing it already"]);
    place
        .run(&["warm", device.path()])
        .refuses(&["another disksmith is reading", device.path()]);
    running.signal(Signal::KILL);
    assert_eq!(running.end().status, None);
    let running = Running::start(&mut throttle.hold(&place.command(&slow)));
    wait_for(running.id(), &device, MIB / 4);
    running.signal(Signal::INT);
    let said = running.end().ends_with(3);
    assert!(said.err.contains("The same command continues"), "{said:#?}");
    let killed = said.json()["read"][0].clone();
    assert_eq!(killed["ended"], "interrupted");
    // How much of what the device gave was for probes depends on the host.
    let kept = number(&killed["disks"][0]["before_bytes"]);
    assert!(kept > 0, "{killed:#}");
    let short = [&slow[..], &["--for", "1s"]].concat();
    let ended = support::output_of(&mut throttle.hold(&place.command(&short))).ends_with(3);
    assert_eq!(ended.json()["read"][0]["ended"], "time-up");
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    others.join().unwrap();
    let said = place
        .run(&["scrub", "--read", device.path(), "--json"])
        .ends_with(0);
    assert!(said.err.contains("were read before"), "{said:#?}");
    let said = said.json();
    let disk = &said["read"][0]["disks"][0];
    println!("{disk:#}");
    let (early, read) = (number(&disk["before_bytes"]), number(&disk["read_bytes"]));
    assert_eq!(early + read, SIZE * MIB, "{disk}");
    assert!(early >= kept, "{disk}");
    assert_eq!(number(&disk["starts"]), 4, "{disk}");
}

/// A RAID 0 full of files, with a bad place on its second member.
const SCRIPT: &str = r#"
is() { [ "$1" = "$2" ] || { echo "'$1' instead of '$2': $3" >&2; exit 9; }; }
mdadm --create /dev/md0 --run --level 0 --chunk 64K --raid-devices 2 /dev/vda /dev/vdb >&2 || exit 8
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/md0 && mkdir -p /srv && mount /dev/md0 /srv || exit 8
for n in 1 2 3 4 5 6; do dd if=/dev/zero of=/srv/f$n bs=1M count=20 2>/dev/null; done; sync
disksmith scrub md0 >&2; is $? 2 "nothing to compare"
at() { read -r _ _ sectors _ </sys/block/$1/stat; echo "$sectors"; }
a=$(at vda) b=$(at vdb)
disksmith scrub --read md0 >&2 & reading=$!
# 40 MiB of each, which takes eight seconds: some of it has been kept by then.
until [ $(($(at vda) - a)) -gt 81920 ] && [ $(($(at vdb) - b)) -gt 81920 ]; do sleep 0.1; done
# However long the next one takes to start, it is not done before.
kill -STOP $reading
disksmith scrub --read /dev/vda >&2; is $? 2 "a member of what is being read"
kill -9 $reading; wait $reading; is $? 137 "killed"
disksmith scrub --read md0 --locate --json; is $? 1 "unreadable"
# The array's data, by another way.
cat /sys/block/md0/md/dev-vdb/offset >&2
umount /srv; mdadm --stop /dev/md0 >&2
disksmith scrub --read md0 >&2; is $? 2 "stopped"
"#;

#[test]
fn with_qemu_a_raid_0_with_a_bad_place_is_read_over_a_kill_and_the_file_is_named() {
    let place = Place::new();
    let volumes = [
        "--volumes",
        "throughput=5MiB:80MiB",
        "--volumes",
        "throughput=5MiB,error=41943040+8192,error-on=read:80MiB",
    ];
    let Some(said) = in_lab(&place, &volumes, SCRIPT) else {
        return;
    };
    let said = said.ends_with(0);
    let document = said.json();
    println!("{document:#}");
    let array = &document["read"][0];
    assert_eq!(array["ended"], "done");
    assert_eq!(array["level"], "raid0");
    let disks = array["disks"].as_array().unwrap();
    assert_eq!(disks[0]["unreadable"], json!([]));
    let bad = json!([{"offset_bytes": 41_943_040, "length_bytes": 8192}]);
    assert_eq!(disks[1]["unreadable"], bad);
    for disk in disks {
        let all: u64 = ["before_bytes", "read_bytes"]
            .iter()
            .map(|name| number(&disk[name]))
            .sum();
        let bad = disk["unreadable"].as_array().unwrap().len() as u64 * 8192;
        assert_eq!(all + bad, number(&disk["of_bytes"]));
    }
    // The members' checkpoints take turns, and whose was the last before the kill is the host's matter.
    let before: u64 = disks.iter().map(|disk| number(&disk["before_bytes"])).sum();
    assert!(before > 4 * MIB, "{array:#}");
    // Two chunks of the array for one of the member, of which the second is its.
    let extent = &array["unreadable"][0];
    assert_eq!(number(&extent["length_bytes"]), 8192);
    let offset: u64 = said
        .err
        .lines()
        .find_map(|line| line.trim().parse().ok())
        .unwrap();
    let within = 41_943_040 - 512 * offset;
    let (chunk, rest) = (within / 65_536, within % 65_536);
    assert_eq!(
        number(&extent["offset_bytes"]),
        (2 * chunk + 1) * 65_536 + rest
    );
    let located = array["located"].as_array().unwrap();
    let path = located[0]["what"]["path"].as_str().unwrap();
    assert!(path.starts_with("/srv/f"), "{located:#?}");
    for words in [
        "disksmith scrub --read /dev/md0",
        "another disksmith is scrubbing its disk",
        "were read before",
    ] {
        assert!(said.err.contains(words), "no '{words}' in {said:#?}");
    }
}
