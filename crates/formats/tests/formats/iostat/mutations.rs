//! Tests that no bytes make the reader panic, hang, or return impossible figures: mutations of the fixtures, from fixed
//! seeds. `fuzz/` does the same for longer, guided by coverage.

use formats::disk_log::{FirstReport, Options, Reader};
use proptest::prelude::*;
use record::Nanos;
use record::random::SplitMix64;
use record::sample::{DeviceSample, Sample};

use crate::support::mutation::{below, mutated};

/// Reads a log, and asserts that its samples are plausible. Returns their number.
fn exercise(bytes: &[u8], options: Options) -> usize {
    let mut rest = bytes;
    let mut reader = Reader::new(&mut rest, options);
    let (mut count, mut elapsed, mut line) = (0, Nanos(0), 0);
    let mut is_refused = false;
    for reading in reader.by_ref() {
        let Ok(reading) = reading else {
            is_refused = true;
            break;
        };
        assert!(reading.sample.at.elapsed >= elapsed, "{reading:?}");
        assert!(
            reading.line >= line && reading.line > 0,
            "behind {line}: {}\n{}",
            reading.line,
            String::from_utf8_lossy(bytes)
        );
        (elapsed, line) = (reading.sample.at.elapsed, reading.line);
        assert_plausible(&reading.sample);
        count += 1;
    }
    assert!(
        reader
            .notes()
            .sentences()
            .iter()
            .all(|message| message.ends_with('.'))
    );
    drop(reader);
    assert!(
        is_refused || rest.is_empty(),
        "{} bytes were left",
        rest.len()
    );
    count
}

fn assert_plausible(sample: &Sample) {
    for pair in sample.devices.windows(2) {
        assert_ne!(pair[0].device.name, pair[1].device.name);
    }
    for device in &sample.devices {
        let busy = device.busy.map(|busy| busy.0);
        for figure in figures(device).chain(busy).chain(device.mean_in_flight) {
            assert!(figure.is_finite() && figure >= 0.0, "{device:?}");
        }
        assert!(!device.device.name.is_empty());
    }
}

fn figures(device: &DeviceSample) -> impl Iterator<Item = f64> {
    let flows = [
        &device.read,
        &device.write,
        &device.discard,
        &device.flush,
        &device.all,
    ];
    flows.into_iter().flat_map(|flow| {
        let figures = [
            flow.iops.map(|iops| iops.0),
            flow.bytes.map(|bytes| bytes.0),
            flow.merged.map(|merged| merged.0),
        ];
        figures.into_iter().flatten()
    })
}

/// Words over which parsers stumble.
const WORDS: &[&str] = &[
    "",
    "-1",
    "1e308",
    "99999999999999999999999999",
    "-nan",
    "inf",
    "Device",
    "Device tps\n",
    "avg-cpu: %user %idle\n",
    "Linux 6.1 (h) \t99/99/99\n",
    "12/31/99 23:59:59\n",
    "2026-11-22T00:00:00+9999\n",
    "Time: 00:00:00 AM\n",
    "{\"sysstat\": {\"hosts\": [",
    "10:00:01 DEV tps await %util\n",
    "00:00:01 LINUX RESTART (2 CPU)\n",
    "# hostname;interval;timestamp;DEV;tps;await;%util\n",
    "db1;0;2026-11-24 19:20:32 UTC;",
    "db1\t1\t1795547154\tsda\ttps\t1.00\n",
    "disk- --reads-- --writes--\n",
    "\"values\": [[1795547154.5, \"1e9\"]]",
    "\"metric\": {\"__name__\": \"node_disk_io_now\", \"device\": \"sda\"}",
    "\"disk\": [",
    "}",
    "]",
    "\n\n",
    "\u{1b}[",
    "\u{fffd}",
    "%util",
    ",",
    "1,5k",
    "  ",
];

fn options(random: &mut SplitMix64) -> Options {
    Options {
        columns: (below(random, 4) == 0).then(|| "r/s w/s rkB/s wkB/s %util".parse().unwrap()),
        interval: (below(random, 4) == 0).then_some(Nanos::from_secs(5)),
        first: [
            FirstReport::Tell,
            FirstReport::SinceBoot,
            FirstReport::Interval,
        ][below(random, 3)],
        ..Options::default()
    }
}

#[test]
fn no_mutation_of_a_log_makes_the_reader_panic() {
    let folders = ["iostat", "sysstat"].map(|name| {
        let folder = format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_dir(folder).unwrap()
    });
    let paths = folders
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = paths.collect();
    names.sort();
    let fixtures: Vec<Vec<u8>> = names
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    let mut random = SplitMix64::new(0x5eed_0107);
    let (mut read, mut refused) = (0, 0);
    for fixture in &fixtures {
        for _ in 0..25 {
            let other = &fixtures[below(&mut random, fixtures.len())];
            let bytes = mutated(fixture, other, WORDS, &mut random);
            match exercise(&bytes, options(&mut random)) {
                0 => refused += 1,
                _ => read += 1,
            }
        }
    }
    // Both outcomes occur, so that both are tested.
    assert!(read > 500 && refused > 20, "{read} read, {refused} refused");
}

#[test]
fn deep_wide_and_long_logs_end() {
    let row = |figures: usize| format!("sda{}\n", " 1.00".repeat(figures));
    let names: String = (0..66_000)
        .map(|n| format!("d{n} 1.00 1.00 1.00\n"))
        .collect();
    for (name, text) in [
        ("deep", "{\"a\":[".repeat(20_000)),
        ("one line", "x".repeat(2_000_000)),
        (
            "one string",
            format!("{{\"a\": \"{}", "x".repeat(1_000_000)),
        ),
        ("one number", format!("{{\"a\": {}", "1".repeat(1_000_000))),
        ("wide", row(10_000).repeat(20)),
        ("narrow", row(9).repeat(5_000)),
        ("names", format!("Device r/s w/s %util\n{names}")),
        ("times", "11/22/26 05:52:40\n".repeat(10_000)),
        ("escapes", "\u{1b}[".repeat(200_000)),
        ("headers", "Device r/s w/s %util\n".repeat(5_000)),
    ] {
        let began = std::time::Instant::now();
        exercise(text.as_bytes(), Options::default());
        // Half a minute is far from what is linear here, and near to nothing that is not.
        assert!(
            began.elapsed().as_secs() < 30,
            "{name}: {:?}",
            began.elapsed()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes, Options::default());
    }

    #[test]
    fn words_of_logs_in_any_order_never_panic(
        text in "(Device |r/s |w/s |%util|avg-cpu: %user %idle|Linux 6.1 \\(h\\) |sda |[0-9]{1,3}[.,][0-9]{2}k? |[0-9]{2}[/.:][0-9]{2}[/.:][0-9]{2} |AM|\n|\\{\"disk\": \\[|\"disk_device\": \"x\",|[ -~]){0,60}"
    ) {
        exercise(text.as_bytes(), Options::default());
    }
}
