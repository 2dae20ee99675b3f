//! Troubles of a warming: kills, a second one, a device that changes, a ledger that cannot be
//! written.

use std::fs::{self, File};
use std::thread::sleep;
use std::time::{Duration, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::json;

use crate::loops::{Loop, bytes_read, fill, run, skipped, wait_for};
use crate::support::{Place, Running, number};
use crate::{MIB, codes};

/// Bytes that are read in a second before a kill.
const RATE: u64 = 24 * MIB;

/// Bytes that a kill may cost, on average over kills at random moments. The ledger is told four times a
/// second: what was read since is lost, half of a quarter of a second on average, and all of it where the
/// commit of the last note was still under way, 6 MiB at this rate. So is what was in flight, which is
/// little since the rate is limited: 8 requests of 512 KiB. If nothing was kept, a kill would cost
/// 36 MiB on average, and told once a second, 14 MiB.
const LOST: u64 = RATE / 4 + 8 * MIB / 2;

/// Bound on the bytes that other tests' `disksmith devices` read of a device meanwhile. It is less than what a warming
/// that forgot one start would read again.
const OTHERS: u64 = 34 * MIB;

/// Waits until a device has done what a program asked for before it was killed: it is counted then.
fn wait_until_idle(device: &Loop) {
    let inflight = format!("/sys/block/{}/inflight", device.name());
    for _ in 0..6000 {
        let text = fs::read_to_string(&inflight).unwrap();
        if text.split_whitespace().all(|count| count == "0") {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("the requests of a killed program never end");
}

/// A device of so many MiB in a file, by which it is made larger or smaller, and a place for both.
fn elastic(mib: u64) -> Option<(Place, File, Loop)> {
    let place = Place::new();
    let path = place.path("disk.img");
    let file = File::create(&path).unwrap();
    file.set_len(mib * MIB).unwrap();
    let device = Loop::on(&path).map_err(|why| skipped(&why)).ok()?;
    Some((place, file, device))
}

/// Gives a device so many MiB, and lets the kernel know.
fn resize(file: &File, mib: u64, device: &Loop) {
    file.set_len(mib * MIB).unwrap();
    run("losetup", &["--set-capacity", device.path()]);
}

/// The same while a warming stands still, which may be over before on a busy host.
fn resize_meanwhile(warming: &Running, file: &File, mib: u64, device: &Loop) {
    warming.signal(Signal::STOP);
    resize(file, mib, device);
    warming.signal(Signal::CONT);
}

/// Words of a warming that takes seconds for each of these devices.
fn slowly(device: &Loop) -> [&str; 5] {
    ["warm", device.path(), "--limit", "8MiB/s", "--json"]
}

/// Kills a warming at random moments, each time when it has read for one to two seconds, and goes on
/// to the end. Nothing may be left out, and little be read twice.
fn killed(kills: u64) {
    // Room for a second more than a start may have, since a busy host may be late to kill it.
    let mib = 72 * (kills + 1);
    let (place, Some(device)) = (Place::new(), Loop::new(mib)) else {
        return;
    };
    // In memory, where a commit takes no disk's time.
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let memory = memory.unwrap();
    let ledger = memory.path().join("ledger.db").display().to_string();
    // Of a disk that is blank whoever lists the host's disks reads 33 MiB, of this one 3.
    fill(device.path(), 1);
    let size = mib * MIB;
    let limit = format!("{}MiB/s", RATE / MIB);
    let warm = ["--ledger", &ledger, "warm", device.path(), "--json"];
    let slow = [&warm[..], &["--limit", &limit]].concat();
    let start = bytes_read(&device);
    let mut last = start;
    for _ in 0..kills {
        let running = Running::start(&mut place.command(&slow));
        wait_for(running.id(), &device, MIB);
        let nanos = UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
        sleep(Duration::from_millis(1000 + u64::from(nanos / 1000 % 1000)));
        running.signal(Signal::KILL);
        let said = running.end();
        assert_eq!(said.status, None, "{said:#?}");
        wait_until_idle(&device);
        last = bytes_read(&device);
    }
    let said = place.run(&warm).ends_with(0);
    let volume = &said.json()["volumes"][0];
    let (before, read) = (
        number(&volume["before_bytes"]),
        number(&volume["read_bytes"]),
    );
    assert_eq!(before + read, size, "{volume}");
    assert_eq!(volume["ended"], "done");
    assert_eq!(codes(volume), ["resumed"]);
    // Exactly the rest was read.
    let rest = bytes_read(&device) - last;
    assert!(
        (read - MIB..=read + OTHERS).contains(&rest),
        "{rest} {read}"
    );
    let twice = (bytes_read(&device) - start).saturating_sub(size);
    println!(
        "{kills} kills: {twice} bytes were read twice, {} before the last start",
        last - start
    );
    assert!(
        twice <= kills * LOST + OTHERS,
        "{twice} bytes were read twice, more than {LOST} for each kill"
    );
}

#[test]
fn as_root_kills_at_random_moments_lose_only_what_was_read_since_the_last_note() {
    killed(4);
}

#[test]
#[ignore = "long proof: make prove"]
fn as_root_many_kills_at_random_moments_lose_no_more() {
    killed(40);
}

#[test]
fn as_root_a_second_warming_of_the_same_device_says_so() {
    // Half a minute at the limit, in which others start.
    let (place, Some(device)) = (Place::new(), Loop::new(256)) else {
        return;
    };
    let first = ["warm", device.path(), "--limit", "8MiB/s"];
    let running = Running::start(&mut place.command(&first));
    wait_for(running.id(), &device, MIB);
    place
        .run(&["warm", device.path()])
        .refuses(&["another disksmith is reading", device.path()]);
    // Each would yield to the other, and neither come to its end.
    place
        .run(&["scrub", "--read", device.path()])
        .refuses(&["another disksmith is reading", device.path()]);
    // Ctrl-C ends it, and says how to go on.
    running.signal(Signal::INT);
    let said = running.end().ends_with(3);
    assert!(said.out.contains("interrupted"), "{said:#?}");
    assert!(said.err.contains("The same command continues"), "{said:#?}");
    let on = place.run(&["warm", device.path()]).ends_with(0);
    assert!(on.prose().contains("were read before"), "{on:#?}");
    on.fits(100);
}

#[test]
fn as_root_places_that_cannot_be_read_are_listed_and_the_rest_is_read() {
    let Some((place, file, device)) = elastic(32) else {
        return;
    };
    let good = 20 * MIB + 12288;
    file.set_len(good).unwrap();
    let said = place.run(&["warm", device.path(), "--json"]).ends_with(1);
    let volume = &said.json()["volumes"][0];
    let bad = &volume["unreadable"];
    assert_eq!(number(&bad[0]["offset_bytes"]), good, "{volume}");
    assert_eq!(number(&bad[0]["length_bytes"]), 32 * MIB - good);
    assert_eq!(number(&volume["read_bytes"]), good);
    assert_eq!(codes(volume), ["unreadable"], "{volume}");
    let text = place.run(&["warm", device.path(), "--anew"]).ends_with(1);
    let extent = format!("{good}+{}", 32 * MIB - good);
    assert!(text.prose().contains(&extent), "{text:#?}");
}

#[test]
fn as_root_what_cannot_be_read_is_not_taken_for_others_work() {
    // Whoever lists this host's disks meanwhile, as other tests do, reads this one too: the run without them counts.
    let mut shares = Vec::new();
    for _ in 0..5 {
        let Some((place, file, device)) = elastic(96) else {
            return;
        };
        file.set_len(72 * MIB).unwrap();
        let limited = ["warm", device.path(), "--limit", "12MiB/s", "--json"];
        let said = place.run(&limited).ends_with(1);
        let volume = &said.json()["volumes"][0];
        assert_eq!(number(&volume["read_bytes"]), 72 * MIB);
        assert_eq!(codes(volume), ["unreadable"], "{volume}");
        let share = volume["others_share"].as_f64().unwrap();
        if share < 0.05 {
            return;
        }
        shares.push(share);
    }
    panic!("others' shares: {shares:?}");
}

#[test]
fn as_root_a_device_that_grows_is_read_to_its_old_end() {
    let Some((place, file, device)) = elastic(32) else {
        return;
    };
    let running = Running::start(&mut place.command(&slowly(&device)));
    wait_for(running.id(), &device, MIB);
    resize_meanwhile(&running, &file, 48, &device);
    let said = running.end().ends_with(0);
    let volume = &said.json()["volumes"][0];
    assert_eq!(number(&volume["read_bytes"]), 32 * MIB);
    assert_eq!(codes(volume), ["resized"], "{volume}");
}

#[test]
fn as_root_a_device_that_shrinks_is_read_to_its_new_end() {
    let Some((place, file, device)) = elastic(48) else {
        return;
    };
    let running = Running::start(&mut place.command(&slowly(&device)));
    wait_for(running.id(), &device, MIB);
    resize_meanwhile(&running, &file, 24, &device);
    let said = running.end().ends_with(0);
    let volume = &said.json()["volumes"][0];
    assert_eq!(number(&volume["read_bytes"]), 24 * MIB, "{volume}");
    assert_eq!(number(&volume["left_bytes"]), 0, "{volume}");
    assert_eq!(volume["unreadable"], json!([]), "{volume}");
    assert_eq!(codes(volume), ["resized"], "{volume}");
}

#[test]
fn as_root_what_a_device_loses_and_gets_back_is_read_by_the_next_start() {
    let Some((place, file, device)) = elastic(48) else {
        return;
    };
    let running = Running::start(&mut place.command(&slowly(&device)));
    for (mib, read) in [(24, 1), (48, 6)] {
        wait_for(running.id(), &device, read * MIB);
        resize_meanwhile(&running, &file, mib, &device);
    }
    // It is looked at four times a second, and 6 MiB take longer than that at the limit.
    let said = running.end().ends_with(3);
    let volume = &said.json()["volumes"][0];
    assert_eq!(volume["ended"], "failed", "{volume}");
    assert_eq!(number(&volume["left_bytes"]), 24 * MIB, "{volume}");
    assert_eq!(codes(volume), ["resized"], "{volume}");
    let on = place.run(&["warm", device.path(), "--json"]).ends_with(0);
    let volume = &on.json()["volumes"][0];
    assert_eq!(number(&volume["before_bytes"]), 24 * MIB, "{volume}");
    assert_eq!(number(&volume["read_bytes"]), 24 * MIB, "{volume}");
}

#[test]
fn as_root_a_device_that_fails_everything_has_not_lost_its_data() {
    let Some((place, file, device)) = elastic(64) else {
        return;
    };
    // Behind the end of what is below, a loop device answers EIO, and is still there.
    file.set_len(0).unwrap();
    let said = place.run(&["warm", device.path(), "--json"]).ends_with(3);
    assert!(
        said.err.contains("it answers no read any more"),
        "{said:#?}"
    );
    let volume = &said.json()["volumes"][0];
    assert_eq!(volume["ended"], "failed", "{volume}");
    assert_eq!(volume["unreadable"], json!([]), "{volume}");
    assert_eq!(number(&volume["left_bytes"]), 64 * MIB, "{volume}");
    assert!(codes(volume).is_empty(), "{volume}");
    // It is there again.
    file.set_len(64 * MIB).unwrap();
    let on = place.run(&["warm", device.path(), "--json"]).ends_with(0);
    assert_eq!(number(&on.json()["volumes"][0]["read_bytes"]), 64 * MIB);
}

#[test]
fn as_root_what_need_not_be_true_any_more_is_not_believed() {
    let Some((place, file, device)) = elastic(32) else {
        return;
    };
    let limited = ["warm", device.path(), "--limit", "8MiB/s", "--json"];
    let running = Running::start(&mut place.command(&limited));
    wait_for(running.id(), &device, 8 * MIB);
    running.signal(Signal::INT);
    let said = running.end().ends_with(3);
    assert!(
        said.err.contains("unless the volume is attached anew"),
        "{said:#?}"
    );
    assert_eq!(said.json()["volumes"][0]["resumable"], true);
    // What is at this path has another size now: who knows what it is.
    resize(&file, 40, &device);
    for (again, words) in [
        (1, "identified only by its path, and had another size"),
        (
            2,
            "the whole volume was read then, and it may have been restored again",
        ),
    ] {
        let said = place.run(&["warm", device.path(), "--json"]).ends_with(0);
        let volume = &said.json()["volumes"][0];
        assert_eq!(codes(volume), ["not-kept"], "{again}: {volume}");
        let text = volume["findings"][0]["text"].as_str().unwrap();
        assert!(text.contains(words), "{again}: {text}");
        assert_eq!(number(&volume["before_bytes"]), 0, "{again}: {volume}");
        assert_eq!(number(&volume["read_bytes"]), 40 * MIB, "{again}: {volume}");
    }
    let said = place.run(&["warm", device.path(), "--anew", "--json"]);
    assert!(codes(&said.ends_with(0).json()["volumes"][0]).is_empty());
}

#[test]
fn as_root_a_check_keeps_to_its_limit_and_to_what_others_may_feel() {
    let (place, Some(device)) = (Place::new(), Loop::new(32)) else {
        return;
    };
    let check = |more: &[&str]| {
        let arguments = [&["warm", "--check", device.path(), "--json"], more].concat();
        let said = place.run(&arguments);
        let volume = said.json()["volumes"][0].clone();
        // Beside much else, slow first reads may look like those of a cold volume.
        let is_cold = volume["is_cold"].as_bool().unwrap();
        assert_eq!(said.status, Some(i32::from(is_cold)), "{volume}");
        assert_eq!(number(&volume["places"]), 64, "{volume}");
        volume["warm_bytes_per_s"].as_f64().unwrap()
    };
    let mib = MIB as f64;
    // How fast it is beyond that is the host's matter.
    let limited = check(&["--limit", "16MiB/s"]);
    assert!((0.0..18.0 * mib).contains(&limited), "{limited}");
    let paced = check(&["--keep-p99", "1s"]);
    assert!(paced > 0.0, "{paced}");
}

#[test]
fn as_root_a_check_of_a_warm_device_with_bad_places_answers_no() {
    let Some((place, file, device)) = elastic(32) else {
        return;
    };
    // Beside much else, slow first reads may look like those of a cold volume: the first check that does not count.
    let check = || {
        let said = place.run(&["warm", "--check", device.path(), "--json"]);
        let volume = said.json()["volumes"][0].clone();
        (volume["is_cold"] == false).then_some((said.status, volume))
    };
    let check = || {
        let (status, volume) = (0..10).find_map(|_| check()).unwrap();
        let count = ["places", "places_failed"].map(|key| number(&volume[key]));
        (status, count)
    };
    assert_eq!(check(), (Some(0), [64, 0]));
    // Of 64 blocks the last four lie behind the end of what is below.
    file.set_len(30 * MIB).unwrap();
    assert_eq!(check(), (Some(1), [64, 4]));
    let text = place.run(&["warm", "--check", device.path()]).ends_with(1);
    assert!(
        text.prose().contains("4 places cannot be read."),
        "{text:#?}"
    );
}

#[test]
fn as_root_a_ledger_that_cannot_be_written_is_reported_and_no_reason_to_stop() {
    let (place, Some(device)) = (Place::new(), Loop::new(8)) else {
        return;
    };
    let said = place
        .run(&["--ledger", "/proc/none/ledger.db", "warm", device.path()])
        .ends_with(0);
    assert!(said.out.contains("warning: not-kept"), "{said:#?}");
    assert!(said.prose().contains("begins from the start"), "{said:#?}");
    let said = place
        .run(&["warm", device.path(), "--no-ledger"])
        .ends_with(0);
    assert!(!said.out.contains("not-kept"), "{said:#?}");
    assert!(!place.ledger().exists());
    // Ended by Ctrl-C, it does not promise to go on.
    let limited = [
        "--ledger",
        "/proc/none/ledger.db",
        "warm",
        device.path(),
        "--limit",
        "2MiB/s",
    ];
    let running = Running::start(&mut place.command(&limited));
    wait_for(running.id(), &device, MIB / 2);
    running.signal(Signal::INT);
    let said = running.end().ends_with(3);
    assert!(said.err.contains("begins anew"), "{said:#?}");
    assert!(!said.err.contains("goes on where"), "{said:#?}");
}
