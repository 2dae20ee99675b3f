//! `trace record`, and blktrace beside it, on a device that takes FUA: a volume of the lab that the machine's kernel
//! reaches by its own NBD client. It sends each flush, and each write with FUA, as it is; virtio-blk has no FUA.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::lab::lab_run;
use super::support::requests::{
    BLOCK, Request, Requests, assert_same, between, blkparse_trace, count, database_trace,
    of_blkparse, of_log,
};
use super::support::{Place, has_program, number, output_of, skipped};
use super::{Load, marks, postgres};

const VOLUME_MIB: u64 = 256;

/// Programs of this host that the machine has not.
const PROGRAMS: [&str; 2] = ["/usr/sbin/blktrace", "/usr/sbin/nbd-client"];

/// Writes with FUA that `replay` is to make: their number, and the first byte of the first. They have a block between
/// them.
const DURABLE: (u64, u64) = (200, 160 << 20);

/// First bytes of the writes with FUA that are replayed.
fn durable_places() -> impl Iterator<Item = u64> {
    (0..DURABLE.0).map(|n| DURABLE.1 + 2 * n * BLOCK)
}

/// A trace of them.
fn durable_trace() -> String {
    let places = durable_places().zip(0..);
    blkparse_trace(places.map(|(place, n)| (n * 1000, "WFS", place, BLOCK)))
}

/// Makes a volume of the machine's kernel: `/dev/nbd0`, whose requests are logged in `/run/out`.
fn attach(volume_mib: u64) -> String {
    format!(
        "set -e
         mkdir /run/volumes /run/out
         disksmith lab serve --volumes nvme:{volume_mib}MiB --socket-dir /run/volumes --requests /run/out/requests.log >&2 &
         server=$!
         until socket=$(ls /run/volumes/*/lab1.sock 2>/dev/null); do kill -0 $server; sleep 0.2; done
         modprobe nbd
         nbd-client -unix $socket /dev/nbd0 -N lab1 >&2
         [ $(cat /sys/block/nbd0/queue/fua) = 1 ]"
    )
}

/// Takes it away, and keeps what was written to `/run/out`.
const DETACH: &str = "nbd-client -d /dev/nbd0 >&2
         kill -INT $server; wait $server || true
         cp -r /run/out /lab/state";

/// Records the device by both, under a load with commits of a file system, writes with O_DSYNC, which the kernel makes
/// with FUA where a block is there already, and `replay` of FUA.
fn script() -> String {
    let [begin, end] = marks(VOLUME_MIB).map(|mark| mark / BLOCK);
    format!(
        "{attach}
         mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nbd0
         mkdir /srv; mount /dev/nbd0 /srv; sync
         mount -t debugfs none /sys/kernel/debug
         read_block() {{ dd if=/dev/nbd0 of=/dev/null bs={BLOCK} skip=$1 count=1 iflag=direct status=none; }}
         disksmith trace record /dev/nbd0 -o /run/out/lab.dst >&2 & recorder=$!
         blktrace -d /dev/nbd0 -D /run/out -o blk -b 4 -n 512 >&2 & blktrace=$!
         while [ ! -s /run/out/lab.dst ]; do kill -0 $recorder; sleep 0.1; done
         # It says nothing when it has begun: its files have something in them when the first small buffer is full.
         while [ -z \"$(find /run/out -name 'blk.blktrace.*' -size +0c)\" ]; do
             kill -0 $blktrace; read_block 0; sleep 0.1
         done
         sleep 2; sync; sleep 1
         read_block {begin}
         xfs_io -f -d -c 'pwrite -q -D -b 4k 0 1200k' /srv/log
         xfs_io -d -c 'pwrite -q -D -b 4k 0 1200k' /srv/log
         for n in $(seq 40); do dd if=/dev/zero of=/srv/file-$n bs=9k count=3 conv=fsync status=none; done
         umount /srv
         for trace in durable database; do
             disksmith replay $trace.txt /dev/nbd0 --destroy /dev/nbd0=ext4 --pace asap --depth 4 --no-ledger >&2
         done
         sync; sleep 1
         read_block {end}
         sleep 1
         kill -INT $recorder $blktrace; wait $recorder; wait $blktrace || true
         {DETACH}",
        attach = attach(VOLUME_MIB)
    )
}

/// The requests of a recording's file between the marks of a volume of this size, and the number of all of them.
fn shown(place: &Place, file: &Path, volume_mib: u64) -> (Requests, u64) {
    let file = file.to_str().unwrap();
    let summary = place
        .run(&["trace", "show", file, "--json"])
        .ends_with(0)
        .json();
    assert_eq!(summary["lost_events"], 0, "{file}");
    assert_eq!(summary["verdict"], "trusted", "{file}: {summary:#}");
    let text = format!("{file}.txt");
    let words = ["trace", "convert", file, &text, "--to", "blkparse"];
    place.run(&words).ends_with(0);
    let all = of_blkparse(&fs::read_to_string(text).unwrap());
    let ios = number(&summary["ios"]);
    assert_eq!(ios, all.len() as u64, "{file}");
    (of_the_device(all, volume_mib), ios)
}

/// Those of the only device between the marks.
fn of_the_device(all: Vec<(String, Request)>, volume_mib: u64) -> Requests {
    let mut devices = between(all, marks(volume_mib)).into_values();
    let device = devices.next().unwrap();
    assert_eq!(devices.next(), None);
    device
}

/// Runs a script in a machine with these files of the host; gives the folder with what it has written to `/run/out`.
fn written_in_lab(place: &Place, memory: &str, files: &[&str], script: &str) -> Option<PathBuf> {
    if let Some(missing) = PROGRAMS.iter().find(|file| !Path::new(file).exists()) {
        skipped(&format!("{missing} is not installed"));
        return None;
    }
    let state = place.path("state");
    let mut words = vec!["--volumes", "nvme:64MiB", "--memory", memory, "--timeout"];
    words.extend(["30m", "--state", state.to_str().unwrap()]);
    for file in PROGRAMS.iter().chain(files) {
        words.extend(["--copy", file]);
    }
    words.extend(["--", "sh", "-c", script]);
    lab_run(place, &words)?.ends_with(0);
    let dump = format!("rdump /out {}", place.path("").display());
    output_of(Command::new("debugfs").args(["-R", &dump]).arg(&state)).ends_with(0);
    Some(place.path("out"))
}

/// The requests of the log between the marks of a volume of this size.
fn logged(out: &Path, volume_mib: u64) -> Requests {
    let log = fs::read_to_string(out.join("requests.log")).unwrap();
    of_the_device(log.lines().map(of_log).collect(), volume_mib)
}

#[test]
#[ignore = "some minutes in an emulated machine; make prove"]
fn with_qemu_fua_and_flushes_are_recorded_one_to_one_and_as_by_blktrace() {
    let place = Place::new();
    if !has_program("blkparse") {
        return;
    }
    fs::write(place.path("durable.txt"), durable_trace()).unwrap();
    fs::write(place.path("database.txt"), database_trace(2000, 1000)).unwrap();
    let files = ["durable.txt", "database.txt"];
    let Some(out) = written_in_lab(&place, "2GiB", &files, &script()) else {
        return;
    };
    let logged = logged(&out, VOLUME_MIB);
    let (recorded, _) = shown(&place, &out.join("lab.dst"), VOLUME_MIB);
    assert_same("recorded and logged", &recorded, &logged);
    for place in durable_places() {
        let replayed = ("durable write".to_owned(), place, BLOCK);
        assert!(logged.contains_key(&replayed), "{place}");
    }
    let [durable, flushes] = ["durable write", "flush"].map(|word| count(&logged, &[word]));
    // The overwrites with O_DSYNC and what was replayed, and commits of the journal, each behind a flush.
    assert!(durable > 300 + DURABLE.0, "{durable}");
    assert!(flushes > 40, "{flushes}");

    let mut blkparse = Command::new("blkparse");
    let text = output_of(blkparse.args(["-q", "-i"]).arg(out.join("blk"))).ends_with(0);
    let all = of_blkparse(&text.out);
    let traced = all.len() as u64;
    let by_blkparse = of_the_device(all, VOLUME_MIB);
    assert_same("recorded and by blktrace", &recorded, &by_blkparse);
    // Its files, read by this program.
    let (read, ios) = shown(&place, &out.join("blk.blktrace.0"), VOLUME_MIB);
    assert_same(
        "blktrace's files read here and by blkparse",
        &read,
        &by_blkparse,
    );
    assert_eq!(ios, traced);
    eprintln!(
        "{} requests one to one in the log, here and by blktrace, of which {durable} with FUA and {flushes} flushes",
        logged.values().sum::<u64>()
    );
}

/// Commits of PostgreSQL: flushes of its log, and the file system's own, which are flushes and writes with FUA.
#[test]
#[ignore = "some minutes in an emulated machine; make prove"]
fn with_qemu_fua_and_flushes_of_postgres_are_recorded_one_to_one() {
    let place = Place::new();
    // The volume's data are in the machine's memory.
    let memory = "3GiB";
    let load = Load {
        memory,
        ..postgres()
    };
    let script = format!(
        "{attach}
         device=/dev/nbd0
         {recorded}
         umount $device
         {DETACH}",
        attach = attach(load.volume_mib),
        recorded = load.recorded(&["nbd0"], 20_000),
    );
    load.prepare(&place.path("state"));
    let Some(out) = written_in_lab(&place, memory, &[], &script) else {
        return;
    };
    let logged = logged(&out, load.volume_mib);
    let (recorded, _) = shown(&place, &out.join("lab.dst"), load.volume_mib);
    assert_same("recorded and logged", &recorded, &logged);
    let [durable, flushes] = ["durable write", "flush"].map(|word| count(&logged, &[word]));
    assert!(durable > 0 && flushes > 0, "{durable}, {flushes}");
    eprintln!(
        "{} requests one to one in the log and here, of which {durable} with FUA and {flushes} flushes",
        logged.values().sum::<u64>()
    );
}
