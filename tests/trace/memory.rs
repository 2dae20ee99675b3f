//! Memory of what reads traces: it does not grow with their length.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::loops::{Loop, Mounted};
use super::support::{Place, is_root};

/// I/Os of a trace: more than whose blocks `trace show` counts one by one.
const SHORT: u64 = 1_100_000;
/// I/Os of the other.
const LONG: u64 = 4 * SHORT;
/// I/Os in flight.
const IN_FLIGHT: u64 = 4;

/// Writes a trace in blkparse's form: I/Os of 4 KiB, 100 us apart, at places all over 1 TiB.
fn write_trace(to: impl Write, ios: u64) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, to);
    let mut event = |n: u64, late: u64, action: char, end: &str| {
        let at = (n + late) * 100 + late;
        let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
        let letters = if n.is_multiple_of(3) { "WS" } else { "R" };
        // Spread over all sectors by the golden ratio, none twice before all were there.
        let sector = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 36) * 8;
        writeln!(
            to,
            "  8,0    1 {n:8} {seconds:5}.{micros:06}000  4711  {action} {letters:>3} {sector} + 8 [{end}]"
        )
    };
    for n in 0..ios + IN_FLIGHT {
        if n < ios {
            event(n, 0, 'D', "database")?;
        }
        if let Some(done) = n.checked_sub(IN_FLIGHT) {
            event(done, IN_FLIGHT, 'C', "0")?;
        }
    }
    to.flush()
}

/// The most memory that the program had (VmHWM in proc_pid_status(5)), in KiB, with this on its standard input.
fn most_memory(
    command: &mut Command,
    input: impl FnOnce(ChildStdin) -> io::Result<()> + Send + 'static,
) -> u64 {
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
    let to = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input(to));
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    let ended = loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
        most = now.unwrap_or(0).max(most);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(ended.success(), "{ended}");
    writer.join().unwrap().unwrap();
    most
}

/// Panics if the longer trace took more memory than the short one, but for what depends on the moment.
fn assert_bounded(verb: &str, of: impl Fn(u64) -> u64) {
    let [short, long] = [SHORT, LONG].map(of);
    eprintln!("{verb}: {short} KiB for {SHORT} I/Os, {long} KiB for {LONG}");
    assert!(
        0 < short && long < short + short / 4,
        "{verb}: {short} KiB, {long} KiB"
    );
}

/// Reads traces of these lengths by the three verbs, the first two from a pipe, for `convert` packed.
#[test]
#[ignore = "long proof: make prove"]
fn with_root_traces_of_four_times_the_length_take_no_more_memory() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let file = |ios: u64| format!("{ios}.dst");
    assert_bounded("show", |ios| {
        let words = ["trace", "show", "/dev/stdin", "--json"];
        most_memory(&mut place.command(&words), move |to| write_trace(to, ios))
    });
    assert_bounded("convert", |ios| {
        let to = file(ios);
        let words = ["trace", "convert", "/dev/stdin", &to, "--to", "disksmith"];
        most_memory(&mut place.command(&words), move |to| {
            write_trace(GzEncoder::new(to, Compression::fast()), ios)
        })
    });
    let memory = Mounted::by(&["-t", "tmpfs", "-o", "size=80m", "tmpfs"]);
    let Some(disk) = disk_in(&memory.point) else {
        return;
    };
    let fast = ["--speed", "1000x"];
    for (pace, speed) in [
        ("recorded", &fast[..]),
        ("dependencies", &fast),
        ("asap", &[]),
    ] {
        assert_bounded(pace, |ios| {
            let trace = file(ios);
            let words = [
                "replay",
                &trace,
                disk.path(),
                "--reads-only",
                "--map",
                "wrap",
            ];
            let words = [
                &words[..],
                &["--no-ledger", "--json", "--pace", pace],
                speed,
            ]
            .concat();
            most_memory(&mut place.command(&words), |_| Ok(()))
        });
    }
}

/// A disk in memory.
fn disk_in(folder: &Path) -> Option<Loop> {
    let file = folder.join("disk");
    File::create(&file).unwrap().set_len(64 << 20).unwrap();
    let disk = Loop::part_of(&file, &[]);
    disk.map_err(|why| super::support::skipped(&why)).ok()
}
