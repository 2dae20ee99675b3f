//! Result of the foreground beside background I/O, for the answer.

use serde::Serialize;
use study::pace::{Latency, Outcome, Source};

/// Latency of the foreground, by probes: single reads of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyReport {
    /// Number of probes.
    pub samples: u64,
    /// Microseconds.
    pub mean_us: f64,
    /// Microseconds.
    pub p50_us: f64,
    /// Microseconds.
    pub p99_us: f64,
    /// Microseconds.
    pub p999_us: f64,
}

impl From<Latency> for LatencyReport {
    fn from(latency: Latency) -> LatencyReport {
        LatencyReport {
            samples: latency.samples,
            mean_us: 1e6 * latency.mean_s,
            p50_us: 1e6 * latency.p50_s,
            p99_us: 1e6 * latency.p99_s,
            p999_us: 1e6 * latency.p999_s,
        }
    }
}

/// The foreground, alone and beside the background.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ForegroundReport {
    /// Seconds with a foreground.
    pub foreground_s: f64,
    /// Without the background, which paused.
    pub alone: Option<LatencyReport>,
    /// Beside it.
    pub beside: Option<LatencyReport>,
    /// The p99 that was kept at last, in microseconds.
    pub kept_p99_us: Option<f64>,
    /// The mean that was kept at last, in microseconds.
    pub kept_mean_us: Option<f64>,
    /// Where these came from: `asked`, `measured`, or `unreachable` where the foreground alone exceeds what was
    /// asked for.
    pub target_source: Option<&'static str>,
    /// Seconds above them.
    pub above_target_s: f64,
    /// Seconds in which the background had its least rate.
    pub least_rate_s: f64,
}

impl From<&Outcome> for ForegroundReport {
    fn from(outcome: &Outcome) -> ForegroundReport {
        let us = |seconds: f64| 1e6 * seconds;
        let (targets, source) = outcome.targets.unzip();
        ForegroundReport {
            foreground_s: outcome.foreground_s,
            alone: outcome.alone.map(LatencyReport::from),
            beside: outcome.beside.map(LatencyReport::from),
            kept_p99_us: targets.and_then(|targets| targets.p99_s).map(us),
            kept_mean_us: targets.and_then(|targets| targets.mean_s).map(us),
            target_source: source.map(|source| match source {
                Source::Asked => "asked",
                Source::Measured => "measured",
                Source::Unreachable => "unreachable",
            }),
            above_target_s: outcome.above_s,
            least_rate_s: outcome.least_s,
        }
    }
}

impl ForegroundReport {
    /// The same in sentences.
    pub fn text(&self) -> String {
        let ms = |us: f64| format!("{:.1} ms", us / 1e3);
        let of = |name: &str, latency: Option<LatencyReport>| {
            latency.map(|latency| {
                format!(
                    " {name}: p50 {}, p99 {}, p99.9 {}.",
                    ms(latency.p50_us),
                    ms(latency.p99_us),
                    ms(latency.p999_us)
                )
            })
        };
        let mut text = format!(
            "For {:.0} s there was foreground I/O, beside which the rate was lower.",
            self.foreground_s
        );
        text += &of("Its latency alone", self.alone).unwrap_or_default();
        text += &of("Beside it", self.beside).unwrap_or_default();
        let kept = self
            .kept_p99_us
            .map(|p99| format!("a p99 of {}", ms(p99)))
            .or(self
                .kept_mean_us
                .map(|mean| format!("a mean of {}", ms(mean))));
        if let (Some(kept), Some(source)) = (kept, self.target_source) {
            let source = match source {
                "asked" => "as asked",
                "measured" => "1.5 times what it has alone, or one request of the background more",
                _ => {
                    "since it exceeds the target that was asked for by itself, which is unreachable"
                }
            };
            text += &format!(
                " Kept was {kept} ({source}); it was above for {:.0} s.",
                self.above_target_s
            );
        }
        if self.least_rate_s >= 1.0 {
            text += &format!(
                " For {:.0} s the rate was the least that there is.",
                self.least_rate_s
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use study::pace::Targets;

    use super::*;

    #[test]
    fn a_target_that_cannot_be_reached_is_called_so() {
        let latency = Latency {
            samples: 100,
            mean_s: 0.002,
            p50_s: 0.002,
            p99_s: 0.0062,
            p999_s: 0.009,
        };
        let targets = Targets {
            mean_s: None,
            p99_s: Some(0.0093),
        };
        let outcome = Outcome {
            alone: Some(latency),
            beside: Some(latency),
            targets: Some((targets, Source::Unreachable)),
            foreground_s: 40.0,
            above_s: 5.0,
            least_s: 7.0,
        };
        let report = ForegroundReport::from(&outcome);
        assert_eq!(report.target_source, Some("unreachable"));
        let text = report.text();
        for words in [
            "For 40 s there was foreground I/O",
            "Beside it: p50 2.0 ms, p99 6.2 ms, p99.9 9.0 ms.",
            "a p99 of 9.3 ms (since it exceeds",
            "it was above for 5 s",
            "For 7 s the rate was the least",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}
