//! Report of the foreground during background I/O, in figures and sentences.

use record::Histogram;
use serde::Serialize;
use study::pace::{HeldBy, Outcome, Slice, TargetSource};
use ui::format::{percent, short_latency};

/// Latency of the foreground, by probes: single reads of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyReport {
    /// Number of probes.
    pub samples: u64,
    /// Mean, in microseconds.
    pub mean_us: f64,
    /// Median, in microseconds.
    pub p50_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
    /// 99.9th percentile, in microseconds.
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

/// Seconds with a foreground, by the cause that limited the background.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldReport {
    /// While the foreground was measured alone.
    pub measuring_s: f64,
    /// While the rate was raised to find the highest one that keeps the targets.
    pub search_s: f64,
    /// By the target of the mean.
    pub mean_s: f64,
    /// By the target of the p99.
    pub p99_s: f64,
    /// By the foreground's throughput.
    pub throughput_s: f64,
    /// By the device itself, or another limit.
    pub itself_s: f64,
}

/// Name of the cause that limits the background.
pub(crate) fn held_by_name(by: HeldBy) -> &'static str {
    match by {
        HeldBy::Measuring => "measuring the foreground alone",
        HeldBy::Search => "the search for the rate",
        HeldBy::Mean => "the target of the mean",
        HeldBy::P99 => "the target of the p99",
        HeldBy::Throughput => "the foreground's throughput",
        HeldBy::Itself => "the device, or a limit of its own",
    }
}

/// Cumulative distribution: latency in seconds, and the percentage of probes that took no longer.
pub(crate) type Distribution = Vec<(f64, f64)>;

/// The foreground, alone and beside the background.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForegroundReport {
    /// Seconds with a foreground.
    pub foreground_s: f64,
    /// Latency without the background, which paused; null where nothing was measured then.
    pub alone: Option<LatencyReport>,
    /// Latency beside the background; null where nothing was measured then.
    pub beside: Option<LatencyReport>,
    /// Target of the p99 at the end, in microseconds; null where there was none.
    pub kept_p99_us: Option<f64>,
    /// Target of the mean at the end, in microseconds; null where there was none.
    pub kept_mean_us: Option<f64>,
    /// Source of these targets: `asked`, `measured`, or `unreachable` where the foreground alone exceeds what was
    /// requested; null where there are none.
    pub target_source: Option<&'static str>,
    /// Seconds in which latency exceeded these targets.
    pub above_target_s: f64,
    /// Seconds in which the background had its least rate.
    pub least_rate_s: f64,
    /// Share of what the device gives that the background used beside the foreground, from 0 to 1; null where it
    /// is not known.
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
    /// Report of a foreground; `None` if there was less than a second of it.
    pub fn of(outcome: &Outcome) -> Option<ForegroundReport> {
        /// Minimum seconds with a foreground for a report.
        const MIN_FOREGROUND_S: f64 = 1.0;
        if outcome.foreground_s < MIN_FOREGROUND_S
            || outcome.alone.is_empty() && outcome.beside.is_empty()
        {
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
                TargetSource::Asked => "asked",
                TargetSource::Measured => "measured",
                TargetSource::Unreachable => "unreachable",
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

    /// The report in sentences.
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
        text += &self.targets_sentence();
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
                " For {:.0} s the rate was the lowest one.",
                self.least_rate_s
            );
        }
        text
    }

    /// Targets, their source, and for how long they were exceeded, as a sentence.
    fn targets_sentence(&self) -> String {
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
            "asked" => "as requested",
            "measured" => "by what it has alone",
            _ => "since it exceeds the requested target by itself, which is unreachable",
        };
        format!(
            " The target was {} ({source}), exceeded for {:.0} s.",
            targets.join(" and "),
            self.above_target_s
        )
    }

    /// The cause that limited the background for most of the time, and its share of the time.
    fn held(&self) -> Option<(&'static str, f64)> {
        let held = &self.held_back;
        let all = [
            (held.measuring_s, HeldBy::Measuring),
            (held.search_s, HeldBy::Search),
            (held.mean_s, HeldBy::Mean),
            (held.p99_s, HeldBy::P99),
            (held.throughput_s, HeldBy::Throughput),
            (held.itself_s, HeldBy::Itself),
        ];
        let most = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        (most.0 > 0.0).then(|| (held_by_name(most.1), most.0 / self.foreground_s))
    }
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
