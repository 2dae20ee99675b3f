//! Others on the volume that is warmed: one who reads page after page, and the ledger itself.

use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::loops::{FileSystem, Loop, Throttle, wait_for};
use crate::support::{Place, Running, TIMEOUT, number, process_io};
use crate::{MIB, codes, has_yielded};

/// Somebody who reads one page after the other, with one request in flight; ended when it is dropped.
struct Reader {
    child: Child,
}

impl Reader {
    /// Reads a device in the same group as others, so that a limit is shared with them.
    fn start(device: &Loop, throttle: &Throttle, place: &Place) -> Reader {
        let mut command = place.command(&[]);
        command = {
            let mut reader = std::process::Command::new("dd");
            let input = format!("if={}", device.path());
            reader.args([input.as_str(), "of=/dev/null", "bs=4k", "iflag=direct"]);
            reader.current_dir(command.get_current_dir().unwrap());
            reader
        };
        let child = throttle.hold(&command).spawn().unwrap();
        // On a busy host it takes a while to begin.
        wait_for(child.id(), device, 4096);
        Reader { child }
    }

    /// Pages that it reads a second, over so many seconds.
    fn pages_per_s(&self, seconds: u64) -> f64 {
        let (before, began) = (self.pages(), Instant::now());
        sleep(Duration::from_secs(seconds));
        (self.pages() - before) as f64 / began.elapsed().as_secs_f64()
    }

    /// Pages that it has read (proc_pid_io(5)).
    fn pages(&self) -> u64 {
        process_io(self.child.id(), "rchar").unwrap() / 4096
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn volume(document: &Value) -> &Value {
    &document["volumes"][0]
}

#[test]
fn as_root_one_who_reads_page_after_page_is_seen_by_default_and_not_starved() {
    let (place, Some(device)) = (Place::new(), Loop::new(400)) else {
        return;
    };
    let Some(throttle) = Throttle::on(&device) else {
        return;
    };
    throttle.limit_bytes(10 * MIB);
    let alone = Reader::start(&device, &throttle, &place).pages_per_s(3);
    let warm = place.command(&["warm", device.path(), "--json"]);
    let running = Running::start(&mut throttle.hold(&warm));
    wait_for(running.id(), &device, 4 * MIB);
    let reader = Reader::start(&device, &throttle, &place);
    let unseen = reader.pages_per_s(3);
    let began = Instant::now();
    let mut seen = unseen;
    while seen <= 0.2 * alone && began.elapsed() < TIMEOUT {
        seen = reader.pages_per_s(1);
    }
    running.signal(Signal::INT);
    let said = running.end().ends_with(3).json();
    println!("{unseen} pages a second at first, {seen} when it was seen, {alone} alone: {said:#}");
    // The queue of 16 blocks gave it one a second.
    assert!(unseen > 4.0, "{unseen}");
    assert!(seen > 0.2 * alone, "{seen}: {alone} by itself");
    assert!(has_yielded(volume(&said)), "{said:#}");
}

#[test]
fn as_root_a_ledger_on_the_volume_itself_is_no_stranger() {
    let (place, Some(system)) = (Place::new(), FileSystem::new("ext4", 160)) else {
        return;
    };
    let device = &system.device;
    let ledger = system.join("ledger.db");
    let warm = ["--ledger", &ledger, "warm", device.path(), "--json"];
    let said = place
        .run(&[&warm[..], &["--limit", "16MiB/s"]].concat())
        .ends_with(0)
        .json();
    let volume = volume(&said);
    assert_eq!(codes(volume), Vec::<String>::new(), "{volume}");
    assert_eq!(number(&volume["read_bytes"]), 160 * MIB);
    let seconds = volume["seconds"].as_f64().unwrap();
    // Beside foreground it would read at a sixteenth of that: 160 s. How long 10 s at the limit take on a busy host
    // nobody knows.
    assert!(seconds < 60.0, "{seconds}: 10 at the limit");
}
