//! `trace record` in the lab's machine, whose kernel is older than most, below a real md: against the log of requests that
//! reached the volumes, one to one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "trace_lab/nbd.rs"]
mod nbd;
#[path = "trace_lab/split.rs"]
mod split;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::lab::lab_run;
use support::requests::{BLOCK, Requests, assert_same, between, count, of_blkparse, of_log};
use support::{Place, number, output_of};

/// First bytes of reads before and behind the load, of a block each. They lie in the last half MiB of the volumes, where
/// the file system has nothing; what looks for signatures there reads more at once.
fn marks(volume_mib: u64) -> [u64; 2] {
    [128, 64].map(|blocks| (volume_mib << 20) - blocks * BLOCK)
}

/// Serial number that the lab gives the volume of a device: they have them in their order.
fn serial(device: &str) -> String {
    let is_first = device.ends_with(",0");
    if is_first { "lab1" } else { "lab2" }.to_owned()
}

/// The requests of each volume between two marks, of blkparse's lines and of the lab's log.
fn recorded_and_logged(text: &str, log: &Path, marks: [u64; 2]) -> [BTreeMap<String, Requests>; 2] {
    let recorded = of_blkparse(text).into_iter();
    let recorded = recorded.map(|(device, request)| (serial(&device), request));
    let logged = fs::read_to_string(log).unwrap();
    [
        between(recorded, marks),
        between(logged.lines().map(of_log), marks),
    ]
}

/// A load of a file system on `$device`: shell scripts of its start, which mounts it, a turn of it, and its end.
struct Load {
    /// Size of a volume, in MiB.
    volume_mib: u64,
    memory: &'static str,
    /// Scale of pgbench's database on the machine's own disk (`support/postgres-disk`); `None` of a load without.
    scale: Option<u64>,
    start: String,
    turn: &'static str,
    end: &'static str,
}

/// Random reads and writes of pages, and a log.
fn pages() -> Load {
    Load {
        volume_mib: 512,
        memory: "3GiB",
        scale: None,
        start: "mkdir -p /data; mount $device /data".to_owned(),
        turn:
            "disksmith bench /data --size 64M --phase page-mixed --phase log-append --no-ledger >&2
               dd if=/dev/zero of=/data/durable bs=4k count=500 oflag=direct conv=fsync status=none",
        end: "",
    }
}

/// pgbench's TPC-B on PostgreSQL with little memory.
fn postgres() -> Load {
    let user = output_of(Command::new("id").args(["-u", "postgres"])).ends_with(0);
    let user = user.out.trim().to_owned();
    Load {
        volume_mib: 1024,
        memory: "1GiB",
        scale: Some(20),
        start: format!(
            "root=/lab/state/root
             mount $device $root/data; mount --rbind /dev $root/dev; mount -t proc proc $root/proc
             chown {user} $root/data; cp -a $root/template $root/data/db; sync
             echo 3 >/proc/sys/vm/drop_caches
             bin=/$(cd $root; echo usr/lib/postgresql/*/bin)
             as() {{ chroot $root /bin/setpriv --reuid={user} --regid={user} --clear-groups \"$@\"; }}
             as $bin/pg_ctl -D /data/db -w -s -t 600 -l /data/log -o '-k /tmp' start >&2"
        ),
        turn: "as $bin/pgbench -h /tmp -U postgres -c 8 -n -T 30 postgres >&2",
        end: "as $bin/pg_ctl -D /data/db -w -s -m fast stop >&2",
    }
}

/// The same database under statements of hundreds of pages, of which the machine's memory holds a part: for each request the
/// emulated processor has far less to do than for those of TPC-B.
fn postgres_pages() -> Load {
    let scale = 40;
    let rows = scale * 100_000;
    let postgres = postgres();
    // Each client updates rows of its own, so that none waits for another one's.
    let statements = format!(
        "\\set first :client_id * {part}
         SELECT sum(abalance) FROM pgbench_accounts WHERE aid = ANY (ARRAY(
             SELECT ceil(random() * {rows})::int FROM generate_series(1, 100)));
         UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = ANY (ARRAY(
             SELECT :first + ceil(random() * {part})::int FROM generate_series(1, 50)));",
        part = rows / 8,
    );
    let start = format!(
        "{}\ncat >$root/tmp/pages.sql <<'END'\n{statements}\nEND",
        postgres.start
    );
    Load {
        volume_mib: 2048,
        memory: "384MiB",
        scale: Some(scale),
        start,
        turn: "as $bin/pgbench -h /tmp -U postgres -c 8 -n -T 60 -f /tmp/pages.sql postgres >&2",
        ..postgres
    }
}

impl Load {
    /// The disk on which the machine has its database; none of a load without.
    fn prepare(&self, disk: &Path) {
        if let Some(scale) = self.scale {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/support");
            let mut command = Command::new(folder.join("postgres-disk"));
            output_of(command.arg(disk).arg(scale.to_string())).ends_with(0);
        }
    }

    /// Script that puts a file system on `$device`, and records these disks in `/run/out/lab.dst`, between two marks, until
    /// so many requests were made.
    fn recorded(&self, disks: &[&str], least: u64) -> String {
        let marks = marks(self.volume_mib).map(|mark| mark / BLOCK);
        let [begin, end] = marks.map(|block| {
            let read = |disk| {
                format!(
                    "dd if=/dev/{disk} of=/dev/null bs={BLOCK} skip={block} count=1 iflag=direct status=none\n"
                )
            };
            disks.iter().map(read).collect::<String>()
        });
        let Load {
            start,
            turn,
            end: stop,
            ..
        } = self;
        format!(
            "mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 $device
             made() {{ echo $(( $(grep -wE '{names}' /proc/diskstats |
                 awk '{{ n += $4 + $8 + $15 + $19 }} END {{ print n }}') )); }}
             quiet() {{ sync; mdadm --wait-clean --scan >&2 || true; sleep 2; sync; sleep 1; }}
             mkdir -p /run/out
             {start}
             quiet
             disksmith trace record {devices} -o /run/out/lab.dst --buffer 16MiB >&2 & recorder=$!
             while [ ! -s /run/out/lab.dst ]; do kill -0 $recorder; sleep 0.1; done
             {begin}
             begun=$(made)
             while [ $(( $(made) - begun )) -lt {least} ]; do
                 {turn}
             done
             {stop}
             quiet
             {end}
             sleep 1
             kill -INT $recorder; wait $recorder",
            names = disks.join("|"),
            devices = disks
                .iter()
                .map(|disk| format!("/dev/{disk} "))
                .collect::<String>(),
        )
    }
}

/// Records the members of an array under a load until so many requests were made, and compares them with the log.
fn compare(load: &Load, least: u64) {
    let place = Place::new();
    let (log, state) = (place.path("requests.log"), place.path("state"));
    load.prepare(&state);
    let script = format!(
        "set -e
         device=/dev/md0
         mdadm --create $device --run --level 1 --assume-clean --raid-devices 2 /dev/vda /dev/vdb >&2
         {}
         cp /run/out/lab.dst /lab/state",
        load.recorded(&["vda", "vdb"], least)
    );
    let volumes = format!("2xnvme:{}MiB", load.volume_mib);
    let options = [
        "--volumes",
        &volumes,
        "--requests",
        log.to_str().unwrap(),
        "--state",
        state.to_str().unwrap(),
        "--memory",
        load.memory,
        "--",
        "sh",
        "-c",
        &script,
    ];
    let Some(said_by_lab) = lab_run(&place, &options) else {
        return;
    };
    said_by_lab.ends_with(0);
    let dump = format!("dump /lab.dst {}", place.path("lab.dst").display());
    output_of(Command::new("debugfs").args(["-R", &dump]).arg(&state)).ends_with(0);
    let shown = place
        .run(&["trace", "show", "lab.dst", "--json"])
        .ends_with(0)
        .json();
    let convert = ["trace", "convert", "lab.dst", "lab.txt", "--to", "blkparse"];
    place.run(&convert).ends_with(0);
    let text = fs::read_to_string(place.path("lab.txt")).unwrap();
    assert_eq!(shown["lost_events"], 0);
    assert!(number(&shown["ios"]) >= least, "{shown:#}");
    // Of twenty random reads in 4,096 places, two are in flight at one place now and then.
    assert!(
        number(&shown["ambiguous_pairs"]) * 50 < number(&shown["ios"]),
        "{shown:#}"
    );
    let [recorded, logged] = recorded_and_logged(&text, &log, marks(load.volume_mib));
    assert_eq!(recorded.len(), 2);
    for (volume, recorded) in &recorded {
        assert_same(volume, recorded, &logged[volume]);
        let flushes = count(recorded, &["flush"]);
        assert!(flushes > 0);
        // virtio-blk has no FUA: the kernel makes a write and a flush of it.
        assert_eq!(count(recorded, &["durable write"]), 0);
        let all = recorded.values().sum::<u64>();
        eprintln!("{volume}: {all} requests one to one, of which {flushes} flushes");
    }
}

#[test]
#[ignore = "a minute in an emulated machine; make prove"]
fn with_qemu_what_is_recorded_below_md_is_what_reached_the_volumes() {
    compare(&pages(), 5000);
}

#[test]
#[ignore = "a quarter of an hour in an emulated machine; make prove"]
fn with_qemu_a_million_requests_are_recorded_one_to_one() {
    compare(&postgres_pages(), 1_000_000);
}

#[test]
#[ignore = "some minutes in an emulated machine; make prove"]
fn with_qemu_the_requests_of_postgres_are_recorded_one_to_one() {
    compare(&postgres(), 20_000);
}
