//! Requests to block devices, as logs have them: for comparing two records of one load, one to one, and for traces to
//! replay.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Operation, first byte, length.
pub(crate) type Request = (String, u64, u64);
/// Requests of a device, and how often each was made.
pub(crate) type Requests = BTreeMap<Request, u64>;

/// Length of the reads that mark a time.
pub(crate) const BLOCK: u64 = 4096;

/// A trace in blkparse's form of these I/Os: microseconds since the start, letters of the operation, first byte, length.
/// Each took 0.1 ms.
pub(crate) fn blkparse_trace(
    ios: impl IntoIterator<Item = (u64, &'static str, u64, u64)>,
) -> String {
    let mut text = String::new();
    for (micros, letters, offset, length) in ios {
        let (sector, sectors) = (offset / 512, length / 512);
        for (at, action, end) in [(micros, "D", "[db]"), (micros + 100, "C", "[0]")] {
            let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
            let _ = writeln!(
                text,
                "8,0 0 1 {seconds}.{micros:06}000 7 {action} {letters} {sector} + {sectors} {end}"
            );
        }
    }
    text
}

/// A trace of a small database: so many I/Os a second, in turn a read of 16 KiB and a write with FUA of 4 KiB, at places all
/// over the first 8 MiB.
pub(crate) fn database_trace(ios: u64, per_second: u64) -> String {
    blkparse_trace((0..ios).map(|n| {
        let (letters, length) = match n % 2 {
            0 => ("R", 16 << 10),
            _ => ("WFS", 4 << 10),
        };
        // Odd, so that all places come.
        let place = n * 217 % 512 * (16 << 10);
        (n * 1_000_000 / per_second, letters, place, length)
    }))
}

/// A request of the lab's log, behind the serial number of its volume. The fields of a line are seconds, serial number,
/// operation, offset, length, and `fua` behind a write that is durable before its answer.
pub(crate) fn of_log(line: &str) -> (String, Request) {
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

/// The requests that went to drivers, of blkparse's lines, behind the numbers of their devices. One that a driver gave
/// back and took again later is there once.
pub(crate) fn of_blkparse(text: &str) -> Vec<(String, Request)> {
    let mut requests: Vec<(String, Request)> = Vec::new();
    for line in text.lines() {
        match of_line(line) {
            Some(("D", request)) => requests.push(request),
            Some((_, request)) => {
                let given = requests.iter().rposition(|one| *one == request);
                // Only what was issued is given back.
                requests.remove(given.unwrap());
            }
            None => {}
        }
    }
    requests
}

/// Action, device and request of a line; `None` of what does not go to a driver or come back.
fn of_line(line: &str) -> Option<(&str, (String, Request))> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let action = *fields
        .get(5)
        .filter(|action| ["D", "R"].contains(*action) && fields[0].contains(','))?;
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
    let request = (operation.to_owned(), place.0, place.1);
    Some((action, (fields[0].to_owned(), request)))
}

/// The requests of each device between two reads at these bytes, of a block each; all that is quiet then is the same on
/// both sides.
pub(crate) fn between(
    requests: impl IntoIterator<Item = (String, Request)>,
    marks: [u64; 2],
) -> BTreeMap<String, Requests> {
    let mut all: BTreeMap<String, Requests> = BTreeMap::new();
    let mut begun: BTreeMap<String, bool> = BTreeMap::new();
    for (device, request) in requests {
        let mark = marks
            .iter()
            .position(|mark| request == ("read".to_owned(), *mark, BLOCK));
        match mark {
            Some(which) => {
                begun.insert(device, which == 0);
            }
            None if begun.get(&device) == Some(&true) => {
                *all.entry(device).or_default().entry(request).or_default() += 1;
            }
            None => {}
        }
    }
    all
}

/// Number of the requests of these operations.
pub(crate) fn count(requests: &Requests, operations: &[&str]) -> u64 {
    let of_these = requests
        .iter()
        .filter(|(request, _)| operations.contains(&request.0.as_str()));
    of_these.map(|(_, count)| count).sum()
}

/// Panics with some of the differences, where there are any.
#[track_caller]
pub(crate) fn assert_same(what: &str, one: &Requests, other: &Requests) {
    let only = |here: &Requests, there: &Requests| -> Vec<(Request, u64)> {
        let differ = here
            .iter()
            .filter(|(request, count)| there.get(*request) != Some(count));
        differ
            .take(5)
            .map(|(request, count)| (request.clone(), *count))
            .collect()
    };
    assert!(
        one == other,
        "{what}: {:?}, and on the other side {:?}",
        only(one, other),
        only(other, one)
    );
}
