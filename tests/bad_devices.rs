//! Devices that fail in mid-run: a clear sentence, status 3, what was measured before is kept, and
//! nothing is left behind. They need root; without it, or where the kernel lacks a part, each says
//! so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs::{self, File};
use std::path::Path;

use loops::{FileSystem, Loop, Mounted, fill, make, run, skipped, unmount};
use rustix::process::Signal;
use support::{Place, ProgramOutput, Running, Words, process_io};

/// Bytes of a device that is to break.
const SIZE: u64 = 64 << 20;

/// A loop device on a file that the test can shorten.
struct Shrinking {
    device: Loop,
    file: File,
    place: Place,
}

impl Shrinking {
    fn new() -> Option<Shrinking> {
        let place = Place::new();
        let path = place.path("disk.img");
        let file = File::create(&path).unwrap();
        file.set_len(SIZE).unwrap();
        let device = Loop::on(&path).map_err(|why| skipped(&why)).ok()?;
        Some(Shrinking {
            device,
            file,
            place,
        })
    }

    /// Starts to measure, and waits until the phase page-read is under way: until the device's reads are of 16 KiB
    /// and no longer of 4. A run that comes to its end before that is seen, as on a busy host, is started again.
    fn start(&self, arguments: &(impl Words + ?Sized)) -> Running {
        let words = [vec!["bench", self.device.path()], arguments.words()].concat();
        loop {
            let mut running = Running::start(&mut self.place.command(&words));
            let mut before = self.reads();
            let has_pages = running.wait_until_or_end("reads no pages", || {
                let now = self.reads();
                let (reads, sectors) = (now.0 - before.0, now.1 - before.1);
                if reads < 50 {
                    return false;
                }
                before = now;
                sectors > 24 * reads
            });
            if has_pages {
                return running;
            }
            running.end().ends_with(0);
        }
    }

    /// Reads that the device has done, and sectors that they read (Documentation/block/stat.rst of the kernel).
    fn reads(&self) -> (u64, u64) {
        let name = self.device.path().trim_start_matches("/dev/");
        let text = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap());
        let reads = numbers.next().unwrap();
        (reads, numbers.nth(1).unwrap())
    }
}

/// Failed midway, in sentences that hold `words`.
#[track_caller]
fn failed(said: ProgramOutput, words: &[&str]) -> ProgramOutput {
    let said = said.ends_with(3);
    for word in words {
        assert!(said.err.contains(word), "no '{word}' in {said:#?}");
    }
    assert!(!said.err.contains("panicked"), "{said:#?}");
    said
}

#[test]
fn with_root_a_device_that_cannot_be_read_fails_with_the_kernels_word_for_it() {
    let Some(shrinking) = Shrinking::new() else {
        return;
    };
    shrinking.file.set_len(0).unwrap();
    for engine in ["uring", "sync"] {
        let words = format!(
            "bench {} --phase seek --engine {engine}",
            shrinking.device.path()
        );
        let said = failed(
            shrinking.place.run(&words),
            &["seek on /dev/loop", "a read at byte", "Input/output error"],
        );
        assert_eq!(said.out, "", "{said:#?}");
    }
    assert!(shrinking.place.runs().is_empty());
}

#[test]
fn with_root_a_device_that_breaks_in_mid_run_keeps_what_was_measured_before() {
    let Some(shrinking) = Shrinking::new() else {
        return;
    };
    let words = [
        "--phase",
        "seek",
        "--phase",
        "page-read",
        "--json",
        "--precision",
        "0",
    ];
    // The phase may come to its end before the device breaks, and is then kept.
    let said = loop {
        let running = shrinking.start(&[&words[..], &["--seconds", "3s"]].concat());
        shrinking.file.set_len(0).unwrap();
        let said = running.end();
        if said.status != Some(0) {
            break said;
        }
        shrinking.file.set_len(SIZE).unwrap();
    };
    let said = failed(said, &["page-read on", "Input/output error"]);
    let document = said.json();
    assert_eq!(document["phases"].as_array().unwrap().len(), 1);
    assert_eq!(document["phases"][0]["name"], "seek");
    let notes = document["notes"].to_string();
    assert!(notes.contains("page-read failed"), "{notes}");
    assert_eq!(document["run"], shrinking.place.runs()[0]);
}

#[test]
fn with_root_a_device_that_is_pulled_out_in_mid_run_ends_it() {
    let Some(shrinking) = Shrinking::new() else {
        return;
    };
    let words = "--phase page-read --precision 0 --seconds 30s";
    let running = shrinking.start(words);
    // A device that goes has no capacity any more; nothing else of it changes for who has it open.
    shrinking.file.set_len(0).unwrap();
    run("losetup", &["--set-capacity", shrinking.device.path()]);
    failed(running.end(), &["page-read on /dev/loop"]);
    // Another start sees a device without a byte.
    shrinking
        .place
        .run(&["bench", shrinking.device.path()])
        .refuses(&["is empty"]);
}

#[test]
fn with_root_a_file_that_is_cut_short_in_mid_run_ends_it() {
    let Some(files) = FileSystem::new("ext4", 128) else {
        return;
    };
    let path = files.join("file");
    fill(&path, 64);
    let place = Place::new();
    let words = format!("bench {path} --phase page-read --precision 0 --seconds 30s");
    let mut running = Running::start(&mut place.command(&words));
    // Far more than the program itself and a look at the file.
    running.wait_for_io("read_bytes", 128 << 20);
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    failed(running.end(), &["the target is shorter than it was"]);
}

/// A file system on a device whose own space runs out: half of it is not really there.
struct Overcommitted {
    // In this order they are taken down.
    mounted: Mounted,
    device: Loop,
    _memory: Memory,
}

struct Memory {
    point: tempfile::TempDir,
}

impl Memory {
    fn new(mib: u64) -> Memory {
        let point = tempfile::tempdir().unwrap();
        let size = format!("size={mib}M");
        run(
            "mount",
            &[
                "-t",
                "tmpfs",
                "-o",
                &size,
                "none",
                point.path().to_str().unwrap(),
            ],
        );
        Memory { point }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // The device lets go of its file a moment after it was detached.
        unmount(self.point.path());
    }
}

impl Overcommitted {
    fn new() -> Option<Overcommitted> {
        // Without root there is no mounting either.
        drop(Loop::new(1)?);
        let memory = Memory::new(64);
        let image = memory.point.path().join("disk.img");
        File::create(&image).unwrap().set_len(256 << 20).unwrap();
        let device = Loop::on(&image).map_err(|why| skipped(&why)).ok()?;
        assert!(make("ext4", &device));
        Some(Overcommitted {
            mounted: Mounted::new(device.path()),
            device,
            _memory: memory,
        })
    }
}

#[test]
fn with_root_a_disk_that_fills_while_the_test_file_is_laid_out_is_reported_and_the_file_is_removed()
{
    let Some(disk) = Overcommitted::new() else {
        return;
    };
    let path = disk.mounted.point.to_str().unwrap();
    let place = Place::new();
    let said = place.run(&format!("bench {path} --size 128M --phase page-read"));
    failed(
        said,
        &[
            "could not be laid out; it is removed",
            "a write at byte",
            "error",
        ],
    );
    let left = support::names_in(Path::new(path));
    assert!(left.iter().all(|name| name == "lost+found"), "{left:?}");
    assert!(place.runs().is_empty());
    assert!(unmount(&disk.mounted.point), "still in use");
    run("mount", &[disk.device.path(), path]);
}

#[test]
fn with_root_more_than_is_free_is_refused_and_a_disk_filled_meanwhile_does_no_harm() {
    let Some(files) = FileSystem::new("ext4", 128) else {
        return;
    };
    let path = files.path().to_str().unwrap().to_owned();
    let place = Place::new();
    let words = [
        "bench",
        &path,
        "--phase",
        "page-write",
        "--precision",
        "0",
        "--json",
    ];
    let sized = |size| [&words[..], &["--seconds", "10m", "--size", size]].concat();
    place
        .run(&sized("1G"))
        .refuses(&["a test file of 1 GiB does not fit"]);
    place.run(&words).refuses(&[
        "at least 256 MiB are needed",
        "give a --size that fits: disksmith bench ",
    ]);
    // The file has its place before the first phase, so it does not matter that somebody else
    // fills the disk.
    let mut running = Running::start(&mut place.command(&sized("32M")));
    running.wait_for_test_file();
    // The file, and a part of what is measured.
    running.wait_for_io("write_bytes", 33 << 20);
    fill_up(&files.join("greedy"));
    let written = process_io(running.id(), "write_bytes").unwrap();
    running.wait_for_io("write_bytes", written + (1 << 20));
    running.signal(Signal::INT);
    let document = running.end().ends_with(3).json();
    assert_eq!(document["phases"][0]["stopped"], "signal", "{document:#}");
    fs::remove_file(files.join("greedy")).unwrap();
    files.assert_nothing_left();
}

#[test]
fn with_root_a_disk_that_is_full_in_mid_run_is_reported() {
    // A file system that never writes in place needs new space for each write.
    let Some(files) = FileSystem::new("btrfs", 160) else {
        return;
    };
    let path = files.path().to_str().unwrap().to_owned();
    let place = Place::new();
    let words = [
        "bench",
        &path,
        "--phase",
        "page-write",
        "--precision",
        "0",
        "--size",
        "32M",
    ];
    let mut running =
        Running::start(&mut place.command(&[&words[..], &["--seconds", "10m"]].concat()));
    running.wait_for_test_file();
    // The file, and a part of what is measured.
    running.wait_for_io("write_bytes", 33 << 20);
    fill_up(&files.join("greedy"));
    let said = failed(running.end(), &["page-write on", "a write at byte"]);
    // The first request without room may find a little left.
    let full = ["No space left on device", "there is no room for the rest"];
    assert!(
        full.iter().any(|words| said.err.contains(words)),
        "{said:#?}"
    );
    assert!(said.err.lines().count() == 1, "{said:#?}");
    fs::remove_file(files.join("greedy")).unwrap();
    files.assert_nothing_left();
}

/// Writes until there is no room, past the caches so that it is known now.
fn fill_up(path: &str) {
    let of = format!("of={path}");
    for block in ["bs=1M", "bs=4k"] {
        let words = [
            "if=/dev/zero",
            &of,
            block,
            "oflag=direct,append",
            "conv=notrunc",
        ];
        let full = loops::try_run("dd", &words).unwrap_err();
        assert!(full.contains("No space left"), "{full}");
    }
}
