//! Report of a check: as text, and as one JSON document.

use record::Bytes;
use serde::Serialize;
use study::cold::forecast::Limit;

use super::super::forecast::{Schedule, ScheduleDocument};
use super::checked::{VolumeCheck, longest};
use crate::args::WarmArgs;
use ui::context::Context;
use ui::exit::Failure;
use ui::format::{percent, seconds};
use ui::table::wrap;
use ui::units::{rate, span};

/// Prints what was found out.
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
        if self.is_warmed {
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
    mode: &'static str,
    volumes: Vec<VolumeDocument<'a>>,
    schedule: Option<ScheduleDocument>,
}

/// Result of the check of a volume.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VolumeDocument<'a> {
    device: &'a str,
    size_bytes: Bytes,
    /// Number of blocks that were read.
    places: usize,
    places_failed: usize,
    is_cold: bool,
    cold: ColdDocument,
    /// Mean time that a first read costs more, over all blocks, in seconds.
    mean_penalty_s: Option<f64>,
    first_read_penalty: Option<PenaltyDocument>,
    /// Median of a warm read, in seconds.
    warm_read_s: f64,
    warm_bytes_per_s: Option<f64>,
    being_warmed: bool,
    forecast: Option<ForecastDocument>,
}

/// Share of cold blocks, from 0 to 1, with the bounds of a 95 % interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ColdDocument {
    share: f64,
    low: f64,
    high: f64,
}

/// Time that the first read of a cold block costs more, in seconds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PenaltyDocument {
    median_s: f64,
    median_low_s: f64,
    median_high_s: f64,
    p95_s: f64,
}

/// Duration of warming, in seconds.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ForecastDocument {
    seconds: f64,
    low_s: f64,
    high_s: f64,
    /// `bytes`, `iops` or `latency`.
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
            being_warmed: one.is_warmed,
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
