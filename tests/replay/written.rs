//! Writes of a replay: those that are commits, and their data.

use std::fs;

use trace::{Op, WriteCache};

use super::support::Place;
use super::{recorded, recorded_on};

#[test]
fn of_a_disk_without_a_write_cache_writes_of_logs_are_commits_and_a_trace_without_says_why() {
    let place = Place::new();
    let ios = [
        (1, Op::Read, false, 0, 4096),
        (2, Op::Write, false, 8192, 4096),
        (3, Op::Write, false, 12_288, 4096),
    ];
    let (through, back) = (Some(WriteCache::Through), Some(WriteCache::Back));
    for (cache, file, commits, why) in [
        (through, Some("ib_logfile0"), Some(2), None),
        (through, Some("ibdata1"), None, Some("MariaDB")),
        (through, None, None, Some("`trace record --dataset`")),
        (back, None, None, Some("made none of them durable")),
        (None, None, None, Some("made none of them durable")),
    ] {
        let trace = recorded_on(&place, cache, file, &ios);
        let words = ["replay", &trace, "data", "--json"];
        let document = place.run(&words).ends_with(0).json();
        let phase = &document["phases"][0];
        assert_eq!(phase["commit"]["ops"].as_u64(), commits, "{document}");
        assert_eq!(phase["write"]["ops"], 2, "{document}");
        let mut findings = document["findings"].as_array().unwrap().iter();
        let found = findings.find(|finding| finding["code"] == "no-commits");
        let text = found.map(|finding| finding["text"].as_str().unwrap());
        assert_eq!(text.is_some(), why.is_some(), "{document}");
        let is_why = why.is_none_or(|words| text.unwrap().contains(words));
        assert!(is_why, "{document}");
    }
}

#[test]
fn data_does_not_compress_but_for_the_share_that_is_requested() {
    const WRITES: u64 = 64;
    let place = Place::new();
    let ios: Vec<_> = (0..WRITES)
        .map(|n| (n, Op::Write, false, n * 8192, 8192))
        .collect();
    let trace = recorded(&place, &ios);
    for (share, zeros) in [("0", 0..100), ("0.75", 3000..3100)] {
        let target = place.path("target");
        fs::write(&target, vec![0; WRITES as usize * 8192]).unwrap();
        let target = target.to_str().unwrap();
        let words = ["replay", &trace, target, "--destroy", target];
        let words = [&words[..], &["--pace", "asap", "--compressible", share]].concat();
        place.run(&words).ends_with(0);
        for block in fs::read(target).unwrap().chunks(4096) {
            let found = block.iter().filter(|byte| **byte == 0).count();
            assert!(zeros.contains(&found), "{share}: {found} of 4096");
        }
    }
}
