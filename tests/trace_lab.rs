//! `trace record` in the lab's machine, whose kernel is older than most, below a real md: against the log of requests that
//! reached the volumes, one to one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::lab::lab_run;
use support::{Place, number, said};

/// Operation, first byte, length.
type Request = (String, u64, u64);
/// Requests of a volume, and how often each was made.
type Requests = BTreeMap<Request, u64>;

const BLOCK: u64 = 4096;

/// First bytes of reads before and behind the load, of a block each. They lie in the last half MiB of the volumes, where
/// the file system has nothing; what looks for signatures there reads more at once.
fn marks(volume_mib: u64) -> [u64; 2] {
    [128, 64].map(|blocks| (volume_mib << 20) - blocks * BLOCK)
}

/// The requests of each volume between the two marks; all that is quiet then is the same on both sides.
fn between(
    requests: impl Iterator<Item = (String, Request)>,
    marks: [u64; 2],
) -> BTreeMap<String, Requests> {
    let mut all: BTreeMap<String, Requests> = BTreeMap::new();
    let mut begun: BTreeMap<String, bool> = BTreeMap::new();
    for (volume, request) in requests {
        let mark = marks
            .iter()
            .position(|mark| request == ("read".to_owned(), *mark, BLOCK));
        match mark {
            Some(which) => {
                begun.insert(volume, which == 0);
            }
            None if begun.get(&volume) == Some(&true) => {
                *all.entry(volume).or_default().entry(request).or_default() += 1;
            }
            None => {}
        }
    }
    all
}

/// A line of the lab's log: seconds, serial number, operation, offset, length, and `fua` behind a write that is durable
/// before its answer.
fn of_log(line: &str) -> (String, Request) {
    let fields: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| fields[at].parse().unwrap();
    let operation = match fields[2] {
        "trim" | "zero" => "discard",
        "write" if fields.get(5) == Some(&"fua") => "durable write",
        other => other,
    };
    let place = match operation {
        "flush" => (0, 0),
        _ => (number(3), number(4)),
    };
    (
        fields[1].to_owned(),
        (operation.to_owned(), place.0, place.1),
    )
}

/// A request that went to the driver, of blkparse's lines.
fn of_trace(line: &str) -> Option<(String, Request)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if fields.get(5) != Some(&"D") {
        return None;
    }
    let sectors = |at: usize| fields[at].parse::<u64>().unwrap() * 512;
    let (operation, place) = match (fields[6].chars().next()?, fields.get(8)) {
        ('R', _) => ("read", (sectors(7), sectors(9))),
        ('D', _) => ("discard", (sectors(7), sectors(9))),
        ('W' | 'F', Some(&"+")) if fields[6][1..].contains('F') => {
            ("durable write", (sectors(7), sectors(9)))
        }
        ('W', _) | ('F', Some(&"+")) => ("write", (sectors(7), sectors(9))),
        _ => ("flush", (0, 0)),
    };
    // The lab gives the volumes serial numbers in their order.
    let volume = if fields[0].ends_with(",0") {
        "lab1"
    } else {
        "lab2"
    };
    Some((volume.to_owned(), (operation.to_owned(), place.0, place.1)))
}

/// A load of the array, which is mounted: shell scripts of its start, a turn of it, and its end.
struct Load {
    /// Size of a volume, in MiB.
    volume_mib: u64,
    memory: &'static str,
    /// True if the machine's own disk holds PostgreSQL (`support/postgres-disk`).
    has_postgres: bool,
    start: String,
    turn: &'static str,
    end: &'static str,
}

/// Random reads and writes of pages, and a log.
fn pages() -> Load {
    Load {
        volume_mib: 512,
        memory: "3GiB",
        has_postgres: false,
        start: "mkdir -p /data; mount /dev/md0 /data".to_owned(),
        turn:
            "disksmith bench /data --size 64M --phase page-mixed --phase log-append --no-ledger >&2
               dd if=/dev/zero of=/data/durable bs=4k count=500 oflag=direct conv=fsync status=none",
        end: "",
    }
}

/// pgbench's TPC-B on PostgreSQL with little memory.
fn postgres() -> Load {
    let user = said(Command::new("id").args(["-u", "postgres"])).ends_with(0);
    let user = user.out.trim().to_owned();
    Load {
        volume_mib: 1024,
        memory: "1GiB",
        has_postgres: true,
        start: format!(
            "root=/lab/state/root
             mount /dev/md0 $root/data; mount --rbind /dev $root/dev; mount -t proc proc $root/proc
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

/// Records the members of an array under a load until so many requests were made, and compares them with the log.
fn compare(load: &Load, least: u64) {
    let place = Place::new();
    let (log, state) = (place.path("requests.log"), place.path("state"));
    if load.has_postgres {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/support");
        said(
            Command::new(folder.join("postgres-disk"))
                .arg(&state)
                .arg("20"),
        )
        .ends_with(0);
    }
    let marks = marks(load.volume_mib);
    let Load {
        start, turn, end, ..
    } = load;
    let script = format!(
        "set -e
         mdadm --create /dev/md0 --run --level 1 --assume-clean --raid-devices 2 /dev/vda /dev/vdb >&2
         mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/md0
         mark() {{ for disk in vda vdb; do
             dd if=/dev/$disk of=/dev/null bs={BLOCK} skip=$1 count=1 status=none; done; }}
         made() {{ echo $(( $(awk '$3 == \"vda\" || $3 == \"vdb\" {{ n += $4 + $8 + $15 + $19 }}
             END {{ print n }}' /proc/diskstats) )); }}
         quiet() {{ sync; mdadm --wait-clean /dev/md0 >&2 || true; sleep 2; sync; sleep 1; }}
         {start}
         quiet
         disksmith trace record /dev/vda /dev/vdb -o /run/lab.dst >&2 & recorder=$!
         while [ ! -s /run/lab.dst ]; do sleep 0.1; done
         mark {}
         begun=$(made)
         while [ $(( $(made) - begun )) -lt {least} ]; do
             {turn}
         done
         {end}
         quiet
         mark {}
         sleep 1
         kill -INT $recorder; wait $recorder
         cp /run/lab.dst /lab/state",
        marks[0] / BLOCK,
        marks[1] / BLOCK
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
    said(Command::new("debugfs").args(["-R", &dump]).arg(&state)).ends_with(0);
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
    let recorded = between(text.lines().filter_map(of_trace), marks);
    let logged = between(fs::read_to_string(&log).unwrap().lines().map(of_log), marks);
    assert_eq!(recorded.len(), 2);
    for (volume, recorded) in &recorded {
        let logged = &logged[volume];
        // QEMU answers a flush itself where nothing was written since the last one, and makes one of several.
        let is_flush = |request: &Request| request.0 == "flush";
        let moved = |requests: &Requests| {
            let mut moved = requests.clone();
            moved.retain(|request, _| !is_flush(request));
            moved
        };
        let flushes = |requests: &Requests| -> u64 {
            let flushes = requests.iter().filter(|(request, _)| is_flush(request));
            flushes.map(|(_, count)| count).sum()
        };
        let (here, there) = (moved(recorded), moved(logged));
        if here != there {
            let differ = here
                .iter()
                .filter(|(request, count)| there.get(*request) != Some(count));
            let other = there
                .iter()
                .filter(|(request, count)| here.get(*request) != Some(count));
            panic!(
                "{volume}: recorded {:?}, logged {:?}",
                differ.take(5).collect::<Vec<_>>(),
                other.take(5).collect::<Vec<_>>()
            );
        }
        assert!(0 < flushes(logged) && flushes(logged) <= flushes(recorded));
        let durable = here
            .iter()
            .filter(|(request, _)| request.0 == "durable write");
        eprintln!(
            "{volume}: {} reads, writes and discards one to one, {} of them FUA; {} flushes recorded, {} of them reached \
             the volume",
            here.values().sum::<u64>(),
            durable.map(|(_, count)| count).sum::<u64>(),
            flushes(recorded),
            flushes(logged)
        );
    }
}

#[test]
#[ignore = "a minute in an emulated machine; make prove"]
fn with_qemu_what_is_recorded_below_md_is_what_reached_the_volumes() {
    compare(&pages(), 5000);
}

#[test]
#[ignore = "half an hour in an emulated machine; make prove"]
fn with_qemu_a_million_requests_are_recorded_one_to_one() {
    compare(&pages(), 1_000_000);
}

#[test]
#[ignore = "some minutes in an emulated machine; make prove"]
fn with_qemu_the_requests_of_postgres_are_recorded_one_to_one() {
    compare(&postgres(), 20_000);
}
