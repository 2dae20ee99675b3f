//! Report of a check: as text, and as one JSON document.

use record::Bytes;
use serde::Serialize;
use study::cold::forecast::Limit;

use super::super::forecast::{Schedule, ScheduleDocument};
use super::result::{VolumeCheck, longest};
use crate::args::WarmArgs;
use ui::context::Context;
use ui::exit::Failure;
use ui::format::{percent, seconds};
use ui::table::wrap;
use ui::units::{rate, span};

/// Prints the results of all volumes.
pub(super) fn report(
    all: &[VolumeCheck],
    args: &WarmArgs,
    context: &mut Context,
) -> Result<(), Failure> {
    let schedule = match longest(all) {
        Some(seconds) => Schedule::requested(args, seconds)?,
        None => None,
    };
    let text = if args.json {
        document(all, schedule.as_ref())
    } else {
        let mut text: String = all.iter().map(|one| one.text(context.columns)).collect();
        match &schedule {
            Some(schedule) => text.push_str(&schedule.sentence()),
            None if args.ready_by.is_some() => {
                text.push_str("When to begin is not known, since there is no forecast.\n");
            }
            None => {}
        }
        text
    };
    context.print(&text)?;
    Ok(())
}

impl VolumeCheck {
    fn text(&self, columns: usize) -> String {
        let sample = &self.sample;
        let cold = &sample.cold;
        let share = |share: f64| percent(share);
        let mut text = if self.is_cold() {
            format!(
                "{} ({}): {} is cold (95 %: {} to {}), by {} places. ",
                self.device,
                self.size,
                share(cold.share),
                share(cold.low),
                share(cold.high),
                self.places
            )
        } else {
            format!(
                "{} ({}): nothing was seen to be cold in {} places{}. ",
                self.device,
                self.size,
                self.places,
                if sample.differs {
                    String::new()
                } else {
                    format!(" (95 %: at most {})", share(cold.high))
                }
            )
        };
        if self.failed > 0 {
            text.push_str(&format!("{} places cannot be read. ", self.failed));
        }
        if self.is_being_warmed {
            text.push_str("It was being warmed meanwhile, which slows reads and warms places. ");
        }
        text.push_str(&format!("A warm read takes {}", seconds(sample.warm_s)));
        if let Some(penalty) = &sample.penalty {
            text.push_str(&format!(
                "; a first one takes {} more (median; 95 %: {} to {}), and 1 in 20 over {}",
                seconds(penalty.median_s.mean),
                seconds(penalty.median_s.low),
                seconds(penalty.median_s.high),
                seconds(penalty.p95_s)
            ));
        }
        text.push_str(". ");
        if let Some(forecast) = self.forecast {
            text.push_str(&format!(
                "To warm it takes about {} ({} to {}), held back by {}.",
                span(forecast.seconds),
                span(forecast.low),
                span(forecast.high),
                match forecast.limit {
                    Limit::Bytes => match self.warm_rate {
                        Some(warm) => format!("the {} that warm blocks come at", rate(warm.mean)),
                        None => "the rate at which warm blocks come".to_owned(),
                    },
                    Limit::Iops => "the operations a second that it takes".to_owned(),
                    Limit::Latency => "how long cold blocks take to come".to_owned(),
                }
            ));
        }
        format!("{}\n", wrap(text.trim_end(), columns, "  "))
    }
}

/// The document of `warm --check --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Mode of the command: `check`.
    mode: &'static str,
    /// Result of each volume.
    volumes: Vec<VolumeDocument<'a>>,
    /// Time at which to begin warming; null without `--ready-by`.
    schedule: Option<ScheduleDocument>,
}

/// Result of the check of a volume.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VolumeDocument<'a> {
    /// Path of the device, as it was named.
    device: &'a str,
    /// Size of the volume.
    size_bytes: Bytes,
    /// Number of blocks that were read, of a random sample.
    places: usize,
    /// Number of blocks that could not be read.
    places_failed: usize,
    /// True if the volume has cold blocks: first reads are slower than those of warm blocks beyond chance.
    is_cold: bool,
    /// Share of cold blocks.
    cold: ColdDocument,
    /// Mean time in seconds by which the first read of a cold block takes longer; null where nothing is cold
    /// beyond chance.
    mean_penalty_s: Option<f64>,
    /// Distribution of that time; null where too few blocks are cold, or the disk is too busy to tell which.
    first_read_penalty: Option<PenaltyDocument>,
    /// Median of the time of a read of a warm block, in seconds.
    warm_read_s: f64,
    /// Rate at which warm blocks are read, in bytes a second; null where it was not measured.
    warm_bytes_per_s: Option<f64>,
    /// True if another process warmed the volume meanwhile.
    being_warmed: bool,
    /// Duration of warming the volume; null where nothing is cold.
    forecast: Option<ForecastDocument>,
}

/// Share of cold blocks, from 0 to 1, with its 95 % interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ColdDocument {
    /// Share of the blocks that are cold, from 0 to 1.
    share: f64,
    /// Lower bound.
    low: f64,
    /// Upper bound.
    high: f64,
}

/// Time in seconds by which the first read of a cold block takes longer than that of a warm one.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PenaltyDocument {
    /// Median of that time, in seconds.
    median_s: f64,
    /// Lower bound of the median's 95 % interval.
    median_low_s: f64,
    /// Upper bound of the median's 95 % interval.
    median_high_s: f64,
    /// 95th percentile.
    p95_s: f64,
}

/// Duration of warming, in seconds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ForecastDocument {
    /// Expected duration.
    seconds: f64,
    /// Lower bound.
    low_s: f64,
    /// Upper bound.
    high_s: f64,
    /// Limit of the rate: `bytes` for throughput, `iops`, or `latency` of cold blocks.
    held_back_by: &'static str,
}

impl<'a> VolumeDocument<'a> {
    fn of(one: &'a VolumeCheck) -> VolumeDocument<'a> {
        let sample = &one.sample;
        VolumeDocument {
            device: &one.device,
            size_bytes: one.size,
            places: one.places,
            places_failed: one.failed,
            is_cold: one.is_cold(),
            cold: ColdDocument {
                share: sample.cold.share,
                low: sample.cold.low,
                high: sample.cold.high,
            },
            mean_penalty_s: sample.mean_penalty_s,
            first_read_penalty: sample.penalty.map(|penalty| PenaltyDocument {
                median_s: penalty.median_s.mean,
                median_low_s: penalty.median_s.low,
                median_high_s: penalty.median_s.high,
                p95_s: penalty.p95_s,
            }),
            warm_read_s: sample.warm_s,
            warm_bytes_per_s: one.warm_rate.map(|rate| rate.mean),
            being_warmed: one.is_being_warmed,
            forecast: one.forecast.map(|forecast| ForecastDocument {
                seconds: forecast.seconds,
                low_s: forecast.low,
                high_s: forecast.high,
                held_back_by: match forecast.limit {
                    Limit::Bytes => "bytes",
                    Limit::Iops => "iops",
                    Limit::Latency => "latency",
                },
            }),
        }
    }
}

fn document(all: &[VolumeCheck], schedule: Option<&Schedule>) -> String {
    let document = Document {
        mode: "check",
        volumes: all.iter().map(VolumeDocument::of).collect(),
        schedule: schedule.map(Schedule::document),
    };
    ui::json::document("warm", &document)
}
