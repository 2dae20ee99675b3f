//! Values of `bench --workload`: read or refused, and what is read is within its bounds.

#![no_main]

#[path = "../grammar.rs"]
mod grammar;
// This file of the crate domain is alone; the crate would bring the whole command line along.
#[path = "../../crates/domain/src/values.rs"]
#[allow(dead_code, reason = "only one of the values is read here")]
mod values;

use grammar::Draw;
use libfuzzer_sys::fuzz_target;
use values::WorkloadText;

const KEYS: [&str; 8] = [
    "pattern", "read", "block", "threads", "depth", "rate", "span", "sync",
];

fuzz_target!(|data: &[u8]| {
    let mut draw = Draw::new(data);
    let mut pairs = vec![pair(&mut draw)];
    while draw.goes_on() && pairs.len() < 20 {
        pairs.push(pair(&mut draw));
    }
    check(&pairs.join(","));
});

fn pair(draw: &mut Draw<'_>) -> String {
    if draw.one_in(16) {
        return draw.word();
    }
    let key = draw.of(&KEYS);
    let value = match key {
        _ if draw.one_in(16) => draw.any(),
        "pattern" => draw.of(&["random", "sequential"]).to_owned(),
        "read" => draw.share(),
        "block" | "span" => draw.size(),
        "rate" => draw.decimal(),
        _ => draw.whole(),
    };
    let space = if draw.one_in(8) { " " } else { "" };
    format!("{key}{space}={space}{value}")
}

fn check(text: &str) {
    match text.parse::<WorkloadText>() {
        Err(why) => assert!(!why.is_empty()),
        Ok(read) => {
            assert!(
                read.read.is_none_or(|share| (0.0..=1.0).contains(&share)),
                "{text}"
            );
            assert!(
                read.threads.is_none_or(|count| (1..=1024).contains(&count)),
                "{text}"
            );
            assert!(
                read.depth.is_none_or(|count| (1..=16_384).contains(&count)),
                "{text}"
            );
            assert!(
                read.rate.is_none_or(|rate| rate > 0.0 && rate <= 1e7),
                "{text}"
            );
            let sizes = [read.block, read.span];
            assert!(sizes.iter().flatten().all(|size| size.0 > 0), "{text}");
        }
    }
}
