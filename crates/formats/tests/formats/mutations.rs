//! Tests that no input makes the readers panic, hang, or return impossible figures: mutations of the fixtures, from
//! fixed seeds. `fuzz/` does the same for longer, guided by coverage.

use crate::support::mutation::{below, mutated};
use formats::{Format, read, write};
use proptest::prelude::*;
use record::Summary;
use record::random::SplitMix64;

/// Reads a text and writes it again, as a fuzz target does.
fn exercise(text: &str) -> usize {
    let Ok(summaries) = read(text) else {
        return 0;
    };
    for summary in &summaries {
        assert_plausible(summary);
        for format in Format::ALL {
            if let Ok(written) = write(format, summary) {
                read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
            }
        }
    }
    summaries.len()
}

/// Asserts that no figure is negative or NaN, and that percentiles increase.
fn assert_plausible(summary: &Summary) {
    assert!(!summary.tool.is_empty());
    for phase in &summary.phases {
        for flow in &phase.flows {
            let latency = &flow.latency;
            let figures = [
                flow.ops_per_s,
                flow.bytes_per_s,
                latency.mean_ns,
                latency.max_ns,
            ];
            for figure in figures.into_iter().flatten() {
                assert!(figure.is_finite() && figure >= 0.0, "{flow:?}");
            }
            assert!(
                latency
                    .percentiles
                    .is_sorted_by(|a, b| a.percent <= b.percent)
            );
        }
    }
}

/// Words over which parsers stumble.
const WORDS: &[&str] = &[
    "",
    "-1",
    "0",
    "1e308",
    "1e-400",
    "18446744073709551615",
    "18446744073709551616",
    "NaN",
    "inf",
    "+++++",
    "{",
    "}",
    "[",
    "\"",
    "null",
    ",",
    "\n",
    "\u{fffd}",
    "%",
    "ms",
    "é",
    ": ",
];

#[test]
fn no_mutation_of_a_fixture_makes_a_reader_panic() {
    let folder = format!("{}/fixtures", env!("CARGO_MANIFEST_DIR"));
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    names.sort();
    let fixtures: Vec<String> = names
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let mut random = SplitMix64::new(0x5eed_0f0f);
    let (mut read, mut refused) = (0, 0);
    for fixture in &fixtures {
        for _ in 0..150 {
            let other = &fixtures[below(&mut random, fixtures.len())];
            match exercise(&String::from_utf8_lossy(&mutated(
                fixture.as_bytes(),
                other.as_bytes(),
                WORDS,
                &mut random,
            ))) {
                0 => refused += 1,
                _ => read += 1,
            }
        }
    }
    // Both outcomes occur, so that both are tested.
    assert!(
        read > 200 && refused > 200,
        "{read} read, {refused} refused"
    );
}

#[test]
fn deep_and_long_inputs_end() {
    let behind = "\"fio version\"";
    for (name, text) in [
        ("deep", "{\"fio version\": [".repeat(50_000)),
        ("lines", format!("{}{behind}", "{\"a\":[\n".repeat(5_000))),
        ("braces", format!("{}{behind}", "{\n".repeat(50_000))),
        ("no fio", "{\"a\":[\n".repeat(500_000)),
        ("commas", format!("1.97{}", ",".repeat(1_000_000))),
    ] {
        let began = std::time::Instant::now();
        assert!(read(&text).is_err(), "{name}");
        // Half a minute is far from what is linear here, and near to nothing that is not.
        assert!(
            began.elapsed().as_secs() < 30,
            "{name}: {:?}",
            began.elapsed()
        );
    }
}

proptest! {
    #[test]
    fn noise_never_panics(text in "(sysbench 1\\.0 |1\\.9[678],|\\{\"fio version\"|[ -~\n]){0,80}") {
        exercise(&text);
    }

    #[test]
    fn any_csv_of_the_right_length_is_read_or_refused(
        fields in prop::collection::vec("[0-9]{0,7}|\\+{3,5}|[0-9]{1,4}(us|ms|s|M|k)|[a-z]{1,3}", 49),
    ) {
        exercise(&format!("1.98,{}", fields.join(",")));
        exercise(&format!("1.97,{}", fields[2..].join(",")));
    }
}
