//! Progress line of an array or disk.

use jiff::{SignedDuration, Zoned};
use job::{Progress, ProgressLine};
use linux::md::sync::Sectors;

use super::drive::ScrubProgress;
use ui::format::{percent, short_latency};
use ui::units::{rate as rate_text, span};

/// Shows the progress of work, with its rate in bytes a second.
pub(super) fn show(line: &ProgressLine, at: &ScrubProgress, rate: Option<f64>) {
    let at = at.clone();
    line.show(move || Progress {
        position: at.live.0,
        length: at.of.0,
        message: message(&at, rate, &Zoned::now()),
    });
}

/// Latency of the foreground and its target, as a cell of a table.
pub(super) fn latency_cell(at: &ScrubProgress) -> String {
    let targets = at.targets.unwrap_or_default();
    let of = |name: &str, latency: Option<f64>, target: Option<f64>| {
        let (latency, target) = (short_latency(latency?), short_latency(target?));
        Some(format!("{name} {latency} of {target}"))
    };
    of("p99", at.p99, targets.p99_s)
        .or_else(|| of("mean", at.mean, targets.mean_s))
        .unwrap_or_else(|| "none".to_owned())
}

/// Text of the progress: position, rate (given in bytes a second), foreground latency and its target, remaining time,
/// and the expected time of the end.
pub(super) fn message(at: &ScrubProgress, rate: Option<f64>, now: &Zoned) -> String {
    let mut parts = Vec::new();
    if at.of.0 > 0 {
        parts.push(percent(at.live.0 as f64 / at.of.0 as f64));
    }
    if at.measuring {
        parts.push("measuring the foreground".to_owned());
    }
    if let Some(rate) = rate {
        parts.push(rate_text(rate));
    }
    let against = |name: &str, latency: Option<f64>, target: Option<f64>| {
        let latency = short_latency(latency?);
        Some(match target {
            Some(target) => format!("{name} {latency} of {}", short_latency(target)),
            None => format!("{name} {latency}"),
        })
    };
    let targets = at.targets.unwrap_or_default();
    if at.beside {
        let latencies = [
            against("p99", at.p99, targets.p99_s),
            against("mean", at.mean, targets.mean_s),
        ];
        let before = parts.len();
        parts.extend(latencies.into_iter().flatten());
        if let Some(last) = parts[before..].last_mut() {
            *last += &reader::pacing_text(at.above_s, at.held.filter(|_| !at.measuring));
        }
    } else {
        parts.push("no other programs".to_owned());
    }
    if at.mismatches_seen > 0 {
        parts.push(format!("{} mismatches", at.mismatches_seen));
    }
    let left = Sectors(at.of.0.saturating_sub(at.live.0)).bytes().0 as f64;
    if let Some(rate) = rate.filter(|_| at.of.0 > 0) {
        let seconds = left / rate;
        let end = SignedDuration::try_from_secs_f64(seconds)
            .ok()
            .and_then(|left| now.checked_add(left).ok());
        let date = end.map(|end| format!(", done {}", end.strftime("%a %d %b %H:%M")));
        parts.push(format!(
            "{} left{}",
            span(seconds),
            date.unwrap_or_default()
        ));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::pace::{HeldBy, Targets};

    #[test]
    fn a_line_says_how_far_how_fast_and_what_it_does_to_others() {
        let now: Zoned = "2026-11-22T17:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let at = ScrubProgress {
            live: Sectors(1 << 20),
            of: Sectors(1 << 22),
            p99: Some(0.0031),
            mean: Some(0.001),
            targets: Some(Targets {
                mean_s: None,
                p99_s: Some(0.005),
            }),
            beside: true,
            mismatches_seen: 8,
            above_s: 4.0,
            held: Some(HeldBy::P99),
            ..ScrubProgress::default()
        };
        assert_eq!(
            message(&at, Some(1_048_576.0), &now),
            "25 %, 1.0 MiB/s, p99 3.1 ms of 5 ms, mean 1 ms, above the target for 4 s, held back by the target of the \
             p99, 8 mismatches, 26 min left, done Sun 22 Nov 17:25"
        );
        let unknown = ScrubProgress {
            p99: None,
            mean: None,
            ..at
        };
        assert_eq!(
            message(&unknown, Some(1_048_576.0), &now),
            "25 %, 1.0 MiB/s, 8 mismatches, 26 min left, done Sun 22 Nov 17:25"
        );
        let begins = ScrubProgress::default();
        assert_eq!(message(&begins, None, &now), "no other programs");
    }
}
