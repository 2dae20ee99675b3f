//! Measures how many events are parsed and summed per second of processor time, over 239,211 tags of Zipf popularity:
//! `cargo run --release -p tally --example speed`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement, which its caller watches"
)]

use std::fmt::Write as _;
use tally::classes::ClassBounds;
use tally::parse::{EventFormat, Parser};
use tally::sums::Sums;

const TAGS: usize = 239_211;
const EVENTS: usize = 2_000_000;
const ROUNDS: usize = 5;

struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A tag by Zipf's law of exponent 1: the inverse of its distribution, which is nearly logarithmic.
    fn tag(&mut self) -> usize {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((TAGS as f64).powf(share) as usize).min(TAGS - 1)
    }
}

fn lines(format: EventFormat) -> String {
    let mut draw = Draw(88_172_645_463_325_252);
    let mut text = String::new();
    for _ in 0..EVENTS {
        let (tag, value) = (draw.tag(), draw.next() % 3000);
        match format {
            EventFormat::Json => writeln!(
                text,
                "{{\"tag\":\"shop.page.{tag}\",\"n\":1,\"ms\":{value},\"ts\":1763600000}}"
            ),
            _ => writeln!(text, "shop.page.{tag}:{value}|ms"),
        }
        .unwrap();
    }
    text
}

fn counters() -> String {
    let mut draw = Draw(88_172_645_463_325_252);
    let mut text = String::new();
    for _ in 0..EVENTS {
        writeln!(text, "shop.page.{}:1|c", draw.tag()).unwrap();
    }
    text
}

/// Processor time of this thread in seconds (schedstat, proc(5)), which excludes other work on the host.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos: f64 = text.split(' ').next().unwrap().parse().unwrap();
    nanos / 1e9
}

fn measure(name: &str, format: EventFormat, text: &str) {
    let mut parser = Parser::new(format);
    let mut rates = Vec::new();
    let (mut held, mut bytes) = (0, 0);
    for _ in 0..ROUNDS {
        let mut sums = Sums::new(ClassBounds::default());
        let began = processor_seconds();
        // In pieces, as they are read.
        for piece in text.as_bytes().chunks(256 << 10) {
            parser.lines(piece, &mut |_, event| {
                // A line that is cut at the end of a piece is not an event.
                if let Ok(event) = event {
                    let _ = sums.add(&event, 1_763_600_000);
                }
            });
        }
        rates.push(sums.events() as f64 / (processor_seconds() - began));
        (held, bytes) = (sums.len(), sums.bytes());
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "{name}: {:.2} M/s (best {:.2}), {held} sums in {:.0} MiB",
        rates[ROUNDS / 2] / 1e6,
        rates[ROUNDS - 1] / 1e6,
        bytes as f64 / (1 << 20) as f64
    );
}

fn main() {
    measure("StatsD counters", EventFormat::Statsd, &counters());
    measure(
        "StatsD timers",
        EventFormat::Statsd,
        &lines(EventFormat::Statsd),
    );
    measure("JSON timers", EventFormat::Json, &lines(EventFormat::Json));
}
