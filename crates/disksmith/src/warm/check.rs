//! `warm --check`: how much of a volume is cold, what a first read costs, and how long warming takes.

mod burst;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use engine::Choice;
use engine::list::{Deed, Done, Ended, Feed, List, Lister, Next, Request};
use record::{Bytes, Nanos};
use serde_json::{Value, json};
use study::cold::forecast::{Forecast, Limit, Work, forecast};
use study::cold::sample::{LEAST_PAIRS, Pair, Sample, assess};
use study::interval::Interval;

use super::forecast::Schedule;
use super::reading::MOST_DEPTH;
use super::units::{rate, span};
use super::volume::Volume;
use crate::cli::WarmArgs;
use crate::context::Context;
use crate::failure::{Answer, Failure, Outcome, Standing as _};
use crate::render::json::SCHEMA;
use crate::render::table::wrap;
use crate::render::words::{percent, seconds};

/// So many places are read.
const PLACES: u64 = 400;
/// So many requests in flight: few enough that they do not wait for each other.
const DEPTH: u32 = 4;
/// So many other places lie between the two reads of one, so that both see the same weather and the
/// second does not meet the first one's fetch.
const LAG: usize = 32;
/// What is read of a place.
const PAGE: u32 = 4096;

/// The places of a volume that were read twice, and what they say.
struct Sampled<'a> {
    volume: &'a Volume,
    places: Vec<u64>,
    failed: usize,
    sample: Sample,
    /// Whether it was being warmed by another process meanwhile.
    is_warmed: bool,
}

/// What was found out about a volume.
struct Checked {
    device: String,
    size: Bytes,
    places: usize,
    failed: usize,
    is_warmed: bool,
    sample: Sample,
    /// What warm blocks come at, in bytes a second, while those of all volumes are read.
    warm_rate: Option<Interval>,
    /// How long warming takes; `None` where nothing is seen to be cold.
    forecast: Option<Forecast>,
}

/// Checks volumes one after the other, and then what they give together. Status 1 where cold blocks
/// were found, or places that cannot be read. What was found out before an error is said first.
pub(crate) fn check(
    volumes: &[Volume],
    args: &WarmArgs,
    context: &mut Context,
    lister: &dyn Lister,
    interrupt: &AtomicBool,
) -> Outcome {
    let block = args.block.0;
    let mut sampled = Vec::new();
    let mut failure = None;
    for volume in volumes {
        match sample(volume, block, lister, interrupt) {
            Ok(one) => sampled.push(one),
            Err(error) => failure = failure.or(Some(error)),
        }
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
    }
    let each: Vec<(&Volume, &[u64])> = sampled
        .iter()
        .map(|one| (one.volume, &one.places[..]))
        .collect();
    let limit = args.limit.map(|limit| limit.0);
    let rates = burst::together(&each, block, limit, lister, interrupt);
    let all: Vec<Checked> = sampled
        .into_iter()
        .zip(rates)
        .map(|(one, rate)| one.with_rate(rate, block))
        .collect();
    if !all.is_empty() {
        say(&all, args, context)?;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    if interrupt.load(Ordering::Relaxed) {
        return Err(Failure::Midway(anyhow!("interrupted")));
    }
    if all.iter().any(|one| one.is_cold() || one.failed > 0) {
        Ok(Answer::No)
    } else {
        Ok(Answer::Done)
    }
}

/// Prints what was found out.
fn say(all: &[Checked], args: &WarmArgs, context: &mut Context) -> Result<(), Failure> {
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

/// How long it takes at most until all that are cold are warm, in seconds. `None` where none is cold,
/// and where it is not known of one.
fn longest(all: &[Checked]) -> Option<f64> {
    let cold = all.iter().filter(|one| one.is_cold());
    let each: Option<Vec<f64>> = cold.map(|one| Some(one.forecast?.high)).collect();
    each?.into_iter().reduce(f64::max)
}

fn sample<'a>(
    volume: &'a Volume,
    block: Bytes,
    lister: &dyn Lister,
    interrupt: &AtomicBool,
) -> Result<Sampled<'a>, Failure> {
    let device = volume.path.display();
    let seed = u64::from(std::process::id()) ^ jiff::Timestamp::now().as_nanosecond() as u64;
    let places = places(volume.size, block, seed);
    if places.len() < LEAST_PAIRS {
        return Err(Failure::refused(format!(
            "{device} has {} blocks of {block}, too few for a sample; warm it, that takes no time",
            places.len()
        )));
    }
    let file = volume.direct().refused()?;
    let list = List {
        file: &file,
        deed: Deed::Read,
        most_in_flight: DEPTH,
        largest: Bytes(u64::from(PAGE)),
        choice: Choice::Auto,
        interrupt,
    };
    let is_warmed = volume.is_locked();
    let mut pairs = Pairs::new(&places);
    let end = lister.run(&list, &mut pairs).midway()?;
    if end.ended == Ended::Interrupted {
        return Err(Failure::Midway(anyhow!("{device}: interrupted")));
    }
    let read = pairs.pairs();
    let sample = assess(&read).ok_or_else(|| {
        Failure::Midway(anyhow!(
            "{device}: of {} places {} could not be read, and the others are too few to judge by",
            places.len(),
            places.len() - read.len()
        ))
    })?;
    Ok(Sampled {
        volume,
        failed: places.len() - read.len(),
        places,
        sample,
        is_warmed: is_warmed || volume.is_locked(),
    })
}

impl Sampled<'_> {
    fn with_rate(self, warm_rate: Option<Interval>, block: Bytes) -> Checked {
        let Sampled { volume, sample, .. } = self;
        let cold_rate = warm_rate.filter(|_| is_cold(&sample));
        Checked {
            device: volume.path.display().to_string(),
            size: volume.size,
            places: self.places.len(),
            failed: self.failed,
            is_warmed: self.is_warmed,
            forecast: cold_rate.and_then(|rate| forecast_of(&sample, volume.size, block, rate)),
            warm_rate,
            sample,
        }
    }
}

/// How long it takes to read the whole volume with as many in flight as warming may have. The bounds
/// are those of the cold share and of the rate.
fn forecast_of(sample: &Sample, size: Bytes, block: Bytes, rate: Interval) -> Option<Forecast> {
    let penalty = sample.mean_penalty_s.unwrap_or(0.0);
    let at = |bytes_per_s: f64| {
        forecast(&Work {
            bytes: size.0,
            request_bytes: block.0,
            cold: sample.cold,
            cold_s: sample.warm_s + penalty.max(0.0),
            warm_s: sample.warm_s,
            bytes_per_s: Some(bytes_per_s),
            iops: None,
            depth: MOST_DEPTH,
        })
    };
    Some(Forecast {
        low: at(rate.high)?.low,
        high: at(rate.low)?.high,
        ..at(rate.mean)?
    })
}

/// The first byte of a block in each of many equal parts of a volume, in an order of chance.
fn places(size: Bytes, block: Bytes, seed: u64) -> Vec<u64> {
    let blocks = size.0 / block.0;
    let count = blocks.min(PLACES);
    let mut places: Vec<u64> = (0..count)
        .map(|part| {
            let from = part * blocks / count;
            let to = (part + 1) * blocks / count;
            (from + engine::part_of_seed(seed, part) % (to - from)) * block.0
        })
        .collect();
    places.sort_by_cached_key(|place| engine::part_of_seed(seed ^ 1, *place));
    places
}

/// Reads each place twice.
struct Pairs<'a> {
    places: &'a [u64],
    /// How many requests were given out.
    given: usize,
    read: Vec<[Option<f64>; 2]>,
}

impl<'a> Pairs<'a> {
    fn new(places: &'a [u64]) -> Pairs<'a> {
        Pairs {
            places,
            given: 0,
            read: vec![[None; 2]; places.len()],
        }
    }

    /// Which place is read with a request of this number, and whether for the second time. First
    /// reads and second ones, which lag behind, take turns.
    fn turn(&self, number: usize) -> Option<(usize, bool)> {
        let count = self.places.len();
        let lag = LAG.min(count);
        if number >= 2 * count {
            None
        } else if number < lag {
            Some((number, false))
        } else if number >= 2 * count - lag {
            Some((number - count, true))
        } else {
            let step = number - lag;
            Some(if step.is_multiple_of(2) {
                (lag + step / 2, false)
            } else {
                (step / 2, true)
            })
        }
    }

    /// The places of which both reads came back.
    fn pairs(&self) -> Vec<Pair> {
        let both = |read: &[Option<f64>; 2]| match read {
            [Some(first_s), Some(second_s)] => Some(Pair {
                first_s: *first_s,
                second_s: *second_s,
            }),
            _ => None,
        };
        self.read.iter().filter_map(both).collect()
    }
}

impl Feed for Pairs<'_> {
    fn depth(&self) -> u32 {
        DEPTH
    }

    fn next(&mut self, _now: Nanos) -> Next {
        let Some((place, again)) = self.turn(self.given) else {
            return Next::End;
        };
        self.given += 1;
        Next::Request(Request {
            offset: self.places[place],
            len: PAGE,
            tag: 2 * place as u64 + u64::from(again),
        })
    }

    fn done(&mut self, _now: Nanos, done: Done) {
        let tag = done.request.tag as usize;
        if let (Ok(()), Some(read)) = (done.result, self.read.get_mut(tag / 2)) {
            // A clock of a nanosecond may see none pass.
            read[tag % 2] = Some(done.latency.as_secs_f64().max(1e-9));
        }
    }
}

/// Whether the first reads of a sample were slower as those of a cold volume are.
fn is_cold(sample: &Sample) -> bool {
    // The share may be none for all that is known of a busy disk.
    sample.differs && sample.cold.low > 0.0
}

impl Checked {
    fn is_cold(&self) -> bool {
        is_cold(&self.sample)
    }

    fn text(&self, columns: usize) -> String {
        let sample = &self.sample;
        let cold = &sample.cold;
        let share = |share: f64| percent(share);
        let mut text = if self.is_cold() {
            format!(
                "{} ({}): {} is cold (95 %: {} to {}), by {} places read twice. ",
                self.device,
                self.size,
                share(cold.share),
                share(cold.low),
                share(cold.high),
                self.places
            )
        } else {
            format!(
                "{} ({}): nothing was seen to be cold in {} places read twice{}. ",
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

#[cfg(test)]
mod tests;
