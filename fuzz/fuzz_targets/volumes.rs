//! Values of `--volumes` of the lab: read or refused, and what is read is a volume that can be.

#![no_main]

#[path = "../grammar.rs"]
mod grammar;

use grammar::Draw;
use lab::spec::{KEYS, Profile, VolumeGroup};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check(&group(&mut Draw::new(data))));

fn group(draw: &mut Draw<'_>) -> String {
    let mut text = String::new();
    // The size is drawn first, so that it does not depend on how much is drawn for the pairs.
    let size = match draw.one_in(8) {
        true => draw.size(),
        false => draw
            .of(&["1GiB", "4KiB", "16GiB", "512MiB", "8EiB", "1TiB"])
            .to_owned(),
    };
    if draw.one_in(4) {
        text = draw.whole() + "x";
    }
    let mut words = Vec::new();
    if !draw.one_in(3) {
        let profiles: Vec<Profile> = Profile::all().collect();
        words.push(draw.of(&profiles).name().to_owned());
    }
    while draw.goes_on() && words.len() < 16 {
        words.push(pair(draw));
    }
    text + &words.join(",") + ":" + &size
}

fn pair(draw: &mut Draw<'_>) -> String {
    if draw.one_in(32) {
        return draw.word();
    }
    let key = draw.of(&KEYS);
    let value = match key {
        _ if draw.one_in(32) => draw.any(),
        _ if draw.one_in(16) => "none".to_owned(),
        "throughput" | "merge" | "cold-block" => draw.size(),
        "latency" | "latency-min" | "slow-every" | "stall-every" | "error-after"
        | "corrupt-after" => draw.time(),
        "cold" | "error-rate" => draw.share(),
        "cold-latency" if draw.one_in(2) => format!("{}..{}", draw.time(), draw.time()),
        "cold-latency" => draw.time(),
        "slow" | "stall" => format!("{}+{}", draw.time(), draw.time()),
        "error" if draw.one_in(4) => "all".to_owned(),
        "error" | "corrupt" => format!("{}+{}", draw.size(), draw.size()),
        "error-on" => draw.of(&["read", "write", "both"]).to_owned(),
        "volatile" => draw.of(&["0", "1"]).to_owned(),
        "serial" => draw
            .of(&[
                "vol-0a",
                "a.b_c",
                "lab-state",
                "x",
                "..",
                "01234567890123456789",
            ])
            .to_owned(),
        "seed" | "corrupt-places" => draw.whole(),
        _ => draw.decimal(),
    };
    format!("{key}={value}")
}

fn check(text: &str) {
    match text.parse::<VolumeGroup>() {
        Err(why) => assert!(!why.to_string().is_empty()),
        Ok(group) => {
            let volumes: Vec<_> = group.volumes().collect();
            assert_eq!(volumes.len(), group.count as usize, "{text}");
            let mut serials: Vec<_> = volumes.iter().flat_map(|volume| &volume.serial).collect();
            let named = serials.len();
            serials.sort();
            serials.dedup();
            assert_eq!(serials.len(), named, "two volumes of one name: {text}");
            for volume in &volumes {
                assert!(
                    volume.size.0 > 0 && volume.size.0.is_multiple_of(4096),
                    "{text}"
                );
                assert!(volume.latency.min <= volume.latency.mean, "{text}");
                assert!(
                    volume
                        .serial
                        .as_ref()
                        .is_none_or(|serial| serial.len() <= 20),
                    "{text}"
                );
                let scaled = volume.scaled(0.1);
                assert_eq!(scaled.size, volume.size, "{text}");
            }
        }
    }
}
