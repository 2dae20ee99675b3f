//! The examples of fio's own repository, as Debian's package has them: those that describe I/O on a disk run, and the
//! others say why they do not.

use std::path::Path;
use std::process::Command;

use crate::skipped;

const EXAMPLES: &str = "/usr/share/doc/fio/examples";

/// Those that run on any host. `numa` needs a second node.
const RUNS: &str = "1mbs_clients aio-read backwards-read basic-verify butterfly cmdprio-bssplit cmdprio-percentage \
    cross-stripe-verify dedupe-global disk-zone-profile exitwhat fio-rand-RW fio-rand-read fio-rand-write fio-seq-RW \
    fio-seq-read fio-seq-write fixed-rate-submission flow fsx iometer-file-access-server jesd219 latency-profile \
    poisson-rate-submission rand-zones ssd-steadystate ssd-test steadystate surface-scan tiobench-example waitfor \
    xnvme-compare";

/// Those that are refused though their engine is done, and a word of the reason.
const REFUSED: &[(&str, &str)] = &[
    ("enospc-pressure", "trims, which only block devices take"),
    ("xnvme-zoned", "zonesize"),
    ("zbd-rand-write", "numjobs"),
    ("zbd-seq-read", "read_beyond_wp"),
];

#[test]
fn examples_of_fio_run_or_say_why_not() {
    if !Path::new(EXAMPLES).is_dir() {
        return skipped("fio-examples is not installed");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/fio-examples");
    let mut bench = Command::new(script);
    bench.args(["--quick", EXAMPLES]);
    bench.env("DISKSMITH", env!("CARGO_BIN_EXE_disksmith"));
    let output = bench.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = table
        .lines()
        .filter_map(|line| line.split_once(".fio "))
        .collect();
    for name in RUNS.split_whitespace() {
        let is_there = Path::new(EXAMPLES).join(format!("{name}.fio")).exists();
        let is_seen = lines.iter().any(|(seen, _)| *seen == name);
        assert!(is_seen || !is_there, "{name}: {table}");
    }
    for (name, answer) in lines {
        let answer = answer.trim();
        let (kind, why) = answer.split_once("  ").unwrap_or((answer, ""));
        // What another version of the package has more is not judged, but for having an answer.
        if RUNS.split_whitespace().any(|run| run == name) {
            // Of one whose answer is no the script says so.
            assert!(kind == "runs" && why.is_empty(), "{name}: {answer}");
        } else if let Some((_, word)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            assert!(kind == "refused" && why.contains(word), "{name}: {answer}");
        } else {
            assert!(kind == "runs" || !why.trim().is_empty(), "{name}: {answer}");
            assert_ne!(kind, "failed", "{name}: {why}");
        }
    }
    assert!(table.lines().count() > 50, "{table}");
}
