//! What is said of a check: as text, and as one JSON document.

use serde_json::{Value, json};
use study::cold::forecast::Limit;

use super::super::forecast::Schedule;
use super::{Checked, longest};
use crate::args::WarmArgs;
use ui::context::Context;
use ui::exit::Failure;
use ui::json::SCHEMA;
use ui::table::wrap;
use ui::units::{rate, span};
use ui::words::{percent, seconds};

/// Prints what was found out.
pub(super) fn say(all: &[Checked], args: &WarmArgs, context: &mut Context) -> Result<(), Failure> {
    let schedule = match longest(all) {
        Some(seconds) => Schedule::asked(args, seconds)?,
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

impl Checked {
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

    fn value(&self) -> Value {
        let sample = &self.sample;
        let penalty = sample.penalty.map(|penalty| {
            json!({
                "median_s": penalty.median_s.mean,
                "median_low_s": penalty.median_s.low,
                "median_high_s": penalty.median_s.high,
                "p95_s": penalty.p95_s,
            })
        });
        let forecast = self.forecast.map(|forecast| {
            json!({
                "seconds": forecast.seconds,
                "low_s": forecast.low,
                "high_s": forecast.high,
                "held_back_by": match forecast.limit {
                    Limit::Bytes => "bytes",
                    Limit::Iops => "iops",
                    Limit::Latency => "latency",
                },
            })
        });
        json!({
            "device": self.device,
            "size_bytes": self.size,
            "places": self.places,
            "places_failed": self.failed,
            "is_cold": self.is_cold(),
            "cold": {
                "share": sample.cold.share,
                "low": sample.cold.low,
                "high": sample.cold.high,
            },
            "mean_penalty_s": sample.mean_penalty_s,
            "first_read_penalty": penalty,
            "warm_read_s": sample.warm_s,
            "warm_bytes_per_s": self.warm_rate.map(|rate| rate.mean),
            "being_warmed": self.is_warmed,
            "forecast": forecast,
        })
    }
}

fn document(all: &[Checked], schedule: Option<&Schedule>) -> String {
    let volumes: Vec<Value> = all.iter().map(Checked::value).collect();
    format!(
        "{:#}\n",
        json!({
            "schema": SCHEMA,
            "command": "warm",
            "mode": "check",
            "disksmith": env!("CARGO_PKG_VERSION"),
            "volumes": volumes,
            "schedule": schedule.map(Schedule::value),
        })
    )
}
