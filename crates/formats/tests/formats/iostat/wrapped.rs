//! Logs that a mail client wrapped and quoted.

use formats::disk_log::{LogReport, Notes, Options};
use record::sample::Sample;

use super::common::{fixture, read_with};

/// A text as `fold -s -w WIDTH` wraps it.
fn fold(text: &str, width: usize) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some((end, _)) = rest.char_indices().nth(width) {
            let at = rest[..end].rfind(' ').map_or(end, |at| at + 1);
            folded += &format!("{}\n", &rest[..at]);
            rest = &rest[at..];
        }
        folded += &format!("{rest}\n");
    }
    folded
}

fn quote(text: &str) -> String {
    text.lines().map(|line| format!("> {line}\n")).collect()
}

fn samples((readings, _): &(Vec<LogReport>, Notes)) -> Vec<(bool, &Sample)> {
    let reading = |reading: &'_ LogReport| reading.since_boot;
    readings
        .iter()
        .map(|one| (reading(one), &one.sample))
        .collect()
}

#[test]
fn a_log_that_was_wrapped_and_quoted_tells_the_same() {
    let sysstat = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/sysstat");
    let iostat = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/iostat");
    let mut logs: Vec<(String, String)> = Vec::new();
    for entry in std::fs::read_dir(iostat).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Without a header, nothing tells how many figures a row has. The codes of colours take no room.
        let is_odd = name.contains("grep") || name.contains("colours");
        if name.ends_with(".txt") && !is_odd {
            logs.push((name.clone(), fixture(&name)));
        }
    }
    for name in ["sar-d.txt", "sar-dh.txt", "sar-A.txt"] {
        let text = std::fs::read_to_string(format!("{sysstat}/{name}")).unwrap();
        logs.push((name.to_owned(), text));
    }
    let mut wrapped = 0;
    let mut different = Vec::new();
    for (name, text) in logs {
        let plain = read_with(&text, Options::default());
        for width in [72, 76, 80, 100, 132] {
            for log in [
                fold(&text, width),
                quote(&fold(&text, width)),
                fold(&quote(&text), width),
            ] {
                let read = read_with(&log, Options::default());
                let marks =
                    |(_, notes): &(Vec<LogReport>, Notes)| (notes.cut.count, notes.garbage.count);
                if samples(&read) != samples(&plain) || marks(&read) != marks(&plain) {
                    different.push(format!("{name} at {width}: {:?}\n{log}", read.1));
                }
                wrapped += usize::from(log.lines().count() > text.lines().count());
            }
        }
    }
    assert!(
        different.is_empty(),
        "{}: {}",
        different.len(),
        different.join("\n")
    );
    assert!(wrapped > 200, "{wrapped}");
}
