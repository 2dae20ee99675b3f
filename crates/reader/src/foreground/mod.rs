//! Result of the foreground beside background I/O, for the answer: as JSON, in sentences, and as a page.

mod page;

use std::path::PathBuf;

use clap::Args;
use record::Histogram;
use serde::Serialize;
use study::pace::{Controller, HeldBy, Outcome, Slice, Source};
use ui::exit::Failure;
use ui::format::{percent, short_latency};
use ui::output::{Format, OutputFile};

/// Arguments of verbs that report on the foreground.
#[derive(Args, Clone, Debug, Default)]
pub struct ReportArgs {
    /// Also write a page: latency of other programs' requests alone and beside this, and over time
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Let the page replace a file that is no page of disksmith
    #[arg(long, requires = "report")]
    pub force: bool,
}

impl ReportArgs {
    /// The page's file, checked before anything is done.
    ///
    /// # Errors
    /// Refused, when it cannot be written.
    pub fn check(&self) -> Result<Option<OutputFile>, Failure> {
        OutputFile::check_if_any(self.report.as_ref(), Format::Page, self.force)
    }
}

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

impl LatencyReport {
    fn of(latencies: &Histogram) -> Option<LatencyReport> {
        let us = |share: f64| latencies.quantile(share) as f64 / 1e3;
        (!latencies.is_empty()).then(|| LatencyReport {
            samples: latencies.count(),
            mean_us: latencies.mean() / 1e3,
            p50_us: us(0.5),
            p99_us: us(0.99),
            p999_us: us(0.999),
        })
    }
}

/// Seconds with a foreground by what held the background back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HeldReport {
    /// The foreground was measured by itself.
    pub measuring_s: f64,
    /// The rate was sought from below.
    pub search_s: f64,
    /// The target of the mean.
    pub mean_s: f64,
    /// The target of the p99.
    pub p99_s: f64,
    /// The foreground's throughput.
    pub throughput_s: f64,
    /// The device itself, or another limit.
    pub itself_s: f64,
}

/// Cumulative distribution: seconds, and the share of the probes, in percent, that took no longer.
pub(crate) type Distribution = Vec<(f64, f64)>;

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
    /// Share of what the device gives that the background used beside the foreground, from 0 to 1.
    pub device_share: Option<f64>,
    /// Seconds for which each cause held the background back.
    pub held_back: HeldReport,
    /// Distributions of latency, alone and beside.
    #[serde(skip)]
    pub distributions: [Distribution; 2],
    /// The seconds with a foreground, one after the other.
    #[serde(skip)]
    pub over_time: Vec<Slice>,
}

impl ForegroundReport {
    /// Of a foreground; `None` where there was none for as long as a second.
    pub fn of(outcome: &Outcome) -> Option<ForegroundReport> {
        /// Seconds beside a foreground below which there is no report.
        const LEAST_S: f64 = 1.0;
        if outcome.foreground_s < LEAST_S || outcome.alone.is_empty() && outcome.beside.is_empty() {
            return None;
        }
        let us = |seconds: f64| 1e6 * seconds;
        let (targets, source) = outcome.targets.unzip();
        let held_s = |by: HeldBy| outcome.held_s[by as usize];
        Some(ForegroundReport {
            foreground_s: outcome.foreground_s,
            alone: LatencyReport::of(&outcome.alone),
            beside: LatencyReport::of(&outcome.beside),
            kept_p99_us: targets.and_then(|targets| targets.p99_s).map(us),
            kept_mean_us: targets.and_then(|targets| targets.mean_s).map(us),
            target_source: source.map(|source| match source {
                Source::Asked => "asked",
                Source::Measured => "measured",
                Source::Unreachable => "unreachable",
            }),
            above_target_s: outcome.above_s,
            least_rate_s: outcome.least_s,
            device_share: outcome.device_share(),
            held_back: HeldReport {
                measuring_s: held_s(HeldBy::Measuring),
                search_s: held_s(HeldBy::Search),
                mean_s: held_s(HeldBy::Mean),
                p99_s: held_s(HeldBy::P99),
                throughput_s: held_s(HeldBy::Throughput),
                itself_s: held_s(HeldBy::Itself),
            },
            distributions: [&outcome.alone, &outcome.beside].map(distribution),
            over_time: outcome.slices.clone(),
        })
    }

    /// The same in sentences.
    pub fn text(&self) -> String {
        let ms = |us: f64| short_latency(us / 1e6);
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
        let mut text = format!("There was foreground I/O for {:.0} s.", self.foreground_s);
        text += &of("Its latency alone", self.alone).unwrap_or_default();
        text += &of("Beside this", self.beside).unwrap_or_default();
        text += &self.kept();
        if let Some(share) = self.device_share {
            text += &format!(" {} of the device was used beside it", percent(share));
            text += &match self.held() {
                Some((why, share)) => {
                    format!(", held back by {why} ({} of the time).", percent(share))
                }
                None => ".".to_owned(),
            };
        }
        if self.least_rate_s >= 1.0 {
            text += &format!(
                " For {:.0} s the rate was the least that there is.",
                self.least_rate_s
            );
        }
        text
    }

    /// Targets, where they came from, and for how long they were exceeded, as a sentence.
    fn kept(&self) -> String {
        let one = |name: &str, us: Option<f64>| {
            us.map(|us| format!("{name} of {}", short_latency(us / 1e6)))
        };
        let targets = [
            one("a mean", self.kept_mean_us),
            one("a p99", self.kept_p99_us),
        ];
        let targets: Vec<String> = targets.into_iter().flatten().collect();
        let Some(source) = self.target_source.filter(|_| !targets.is_empty()) else {
            return String::new();
        };
        let source = match source {
            "asked" => "as asked",
            "measured" => "by what it has alone",
            _ => "since it exceeds the target that was asked for by itself, which is unreachable",
        };
        format!(
            " The target was {} ({source}), exceeded for {:.0} s.",
            targets.join(" and "),
            self.above_target_s
        )
    }

    /// The cause that held the background back for most of the time, and its share of the time.
    fn held(&self) -> Option<(&'static str, f64)> {
        let held = &self.held_back;
        let all = [
            (held.measuring_s, "measuring the foreground alone"),
            (held.search_s, "the search for the rate"),
            (held.mean_s, "the target of the mean"),
            (held.p99_s, "the target of the p99"),
            (held.throughput_s, "the foreground's throughput"),
            (held.itself_s, "the device, or a limit of its own"),
        ];
        let most = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        (most.0 > 0.0).then(|| (most.1, most.0 / self.foreground_s))
    }
}

/// Words of the live progress line: latency and target of a foreground; `None` while there is none.
pub(crate) fn live(controller: &Controller) -> Option<String> {
    if !controller.probes() {
        return None;
    }
    if controller.is_measuring() && controller.targets().is_none() {
        return Some("measuring the foreground".to_owned());
    }
    let (targets, _) = controller.targets()?;
    let of = |name: &str, latency: Option<f64>, target: Option<f64>| {
        let (latency, target) = (short_latency(latency?), short_latency(target?));
        Some(format!("{name} {latency} of {target}"))
    };
    of("p99", controller.p99_s(), targets.p99_s)
        .or_else(|| of("mean", controller.mean_s(), targets.mean_s))
}

/// Writes the page of some devices, by their names, of which each may have had a foreground.
///
/// # Errors
/// When the file cannot be written.
pub fn write_page(
    output: &OutputFile,
    verb: &'static str,
    devices: &[(String, Option<&ForegroundReport>)],
) -> anyhow::Result<()> {
    output.write(&page::page(verb, devices)?)
}

fn distribution(latencies: &Histogram) -> Distribution {
    let all = latencies.count().max(1) as f64;
    let mut sum = 0;
    let points = latencies.buckets().map(|(_, end, count)| {
        sum += count;
        let seconds = end.clamp(1, latencies.max().max(1)) as f64 / 1e9;
        (seconds, 100.0 * sum as f64 / all)
    });
    points.collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use study::pace::{Allowed, Foreground, Sample, Targets};

    use super::*;

    /// A foreground of 300 requests a second for so many seconds, beside which requests take twice as long.
    pub(crate) fn example(seconds: usize, asked: Targets) -> Outcome {
        let mut controller = Controller::new(asked);
        controller.gives(1e8);
        for look in 0..10 * seconds {
            let (latency_s, background) = match controller.allowed() {
                Allowed::Nothing => (0.002, 0.0),
                Allowed::Rate(rate) => (0.004, 0.1 * rate),
                Allowed::All => (0.004, 1e7),
            };
            let latencies_s = [latency_s, latency_s * (1.0 + (look % 10) as f64 / 10.0)];
            controller.take(&Sample {
                seconds: 0.1,
                foreground: Foreground {
                    requests: Some(30.0),
                    waited_s: 0.0,
                },
                latencies_s: &latencies_s,
                background,
                ..Sample::default()
            });
        }
        controller.outcome()
    }

    #[test]
    fn a_target_that_cannot_be_reached_is_called_so() {
        let asked = Targets {
            mean_s: None,
            p99_s: Some(0.001),
        };
        let report = ForegroundReport::of(&example(40, asked)).unwrap();
        assert_eq!(report.target_source, Some("unreachable"));
        let text = report.text();
        for words in [
            "There was foreground I/O for 40 s.",
            "Its latency alone: p50 2",
            "Beside this: p50 4",
            "(since it exceeds the target",
            "of the device was used beside it, held back by",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn all_of_the_time_is_accounted_for() {
        let report = ForegroundReport::of(&example(40, Targets::default())).unwrap();
        let held = &report.held_back;
        let all = held.measuring_s
            + held.search_s
            + held.mean_s
            + held.p99_s
            + held.throughput_s
            + held.itself_s;
        assert!((all - report.foreground_s).abs() < 1e-6, "{held:?}");
        let slices: f64 = report.over_time.iter().map(|slice| slice.seconds).sum();
        assert!((slices - report.foreground_s).abs() < 1e-6);
        assert_eq!(
            report.distributions[1].last().map(|last| last.1),
            Some(100.0)
        );
    }
}
