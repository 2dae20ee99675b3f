//! `warm --check`: how much of a volume is cold, what a first read costs, and how long warming takes.

use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use engine::Choice;
use engine::list::{Deed, Done, Ended, Feed, List, Lister, Next, Request};
use record::{Bytes, Nanos};
use serde_json::{Value, json};
use study::cold::forecast::{Forecast, Limit, Work, forecast};
use study::cold::sample::{LEAST_PAIRS, Pair, Sample, assess};

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

/// What was found out about a volume.
struct Checked {
    device: String,
    size: Bytes,
    places: usize,
    failed: usize,
    sample: Sample,
    /// What warm blocks come at, in bytes a second.
    warm_rate: f64,
    /// How long warming takes; `None` where nothing is seen to be cold.
    forecast: Option<Forecast>,
}

/// Checks volumes one after the other. Status 1 where cold blocks were found, or places that cannot
/// be read.
pub(crate) fn check(
    volumes: &[Volume],
    args: &WarmArgs,
    context: &mut Context,
    lister: &dyn Lister,
    interrupt: &AtomicBool,
) -> Outcome {
    let mut all = Vec::new();
    for volume in volumes {
        all.push(check_one(volume, args.block.0, lister, interrupt)?);
    }
    let longest = all
        .iter()
        .filter_map(|one| one.forecast)
        .map(|forecast| forecast.high)
        .fold(0.0, f64::max);
    let schedule = Schedule::asked(args, longest)?;
    let text = if args.json {
        document(&all, schedule.as_ref())
    } else {
        let mut text: String = all.iter().map(|one| one.text(context.columns)).collect();
        text.extend(schedule.as_ref().map(Schedule::sentence));
        text
    };
    context.print(&text)?;
    if all.iter().any(|one| one.is_cold() || one.failed > 0) {
        Ok(Answer::No)
    } else {
        Ok(Answer::Done)
    }
}

fn check_one(
    volume: &Volume,
    block: Bytes,
    lister: &dyn Lister,
    interrupt: &AtomicBool,
) -> Result<Checked, Failure> {
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
    let list = |depth, largest| List {
        file: &file,
        deed: Deed::Read,
        most_in_flight: depth,
        largest,
        choice: Choice::Auto,
        interrupt,
    };
    let finished = |ended| match ended {
        Ended::End => Ok(()),
        Ended::Interrupted => Err(Failure::Midway(anyhow!("{device}: interrupted"))),
    };
    let mut pairs = Pairs::new(&places);
    let end = lister
        .run(&list(DEPTH, Bytes(u64::from(PAGE))), &mut pairs)
        .midway()?;
    finished(end.ended)?;
    let read = pairs.pairs();
    let sample = assess(&read).ok_or_else(|| {
        Failure::Midway(anyhow!(
            "{device}: of {} places {} could not be read, and the others are too few to judge by",
            places.len(),
            places.len() - read.len()
        ))
    })?;
    let mut burst = Burst::new(&places, block, volume.size);
    let end = lister
        .run(&list(MOST_DEPTH as u32, block), &mut burst)
        .midway()?;
    finished(end.ended)?;
    let warm_rate = burst.rate();
    Ok(Checked {
        device: device.to_string(),
        size: volume.size,
        places: places.len(),
        failed: places.len() - read.len(),
        forecast: is_cold(&sample)
            .then(|| forecast_of(&sample, volume.size, block, warm_rate))
            .flatten(),
        warm_rate,
        sample,
    })
}

/// How long it takes to read the whole volume with as many in flight as warming may have.
fn forecast_of(sample: &Sample, size: Bytes, block: Bytes, warm_rate: f64) -> Option<Forecast> {
    let penalty = sample.mean_penalty_s.unwrap_or(0.0);
    forecast(&Work {
        bytes: size.0,
        request_bytes: block.0,
        cold: sample.cold,
        cold_s: sample.warm_s + penalty.max(0.0),
        warm_s: sample.warm_s,
        bytes_per_s: Some(warm_rate),
        iops: None,
        depth: MOST_DEPTH,
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

/// Reads whole blocks that are warm now, as many at once as warming may, to see what the volume gives.
struct Burst<'a> {
    places: &'a [u64],
    block: u32,
    size: u64,
    given: usize,
    bytes: u64,
    last: Nanos,
}

impl<'a> Burst<'a> {
    fn new(places: &'a [u64], block: Bytes, size: Bytes) -> Burst<'a> {
        Burst {
            places,
            block: u32::try_from(block.0).unwrap_or(u32::MAX),
            size: size.0,
            given: 0,
            bytes: 0,
            last: Nanos(0),
        }
    }

    fn rate(&self) -> f64 {
        self.bytes as f64 / self.last.as_secs_f64().max(1e-9)
    }
}

impl Feed for Burst<'_> {
    fn depth(&self) -> u32 {
        MOST_DEPTH as u32
    }

    fn next(&mut self, _now: Nanos) -> Next {
        let Some(&offset) = self.places.get(self.given) else {
            return Next::End;
        };
        self.given += 1;
        debug_assert!(offset + u64::from(self.block) <= self.size);
        Next::Request(Request {
            offset,
            len: self.block,
            tag: 0,
        })
    }

    fn done(&mut self, now: Nanos, done: Done) {
        if done.result.is_ok() {
            self.bytes += u64::from(self.block);
            self.last = now;
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
                    Limit::Bytes =>
                        format!("the {} that warm blocks come at", rate(self.warm_rate)),
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
            "warm_bytes_per_s": self.warm_rate,
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
mod tests {
    use std::collections::BTreeSet;
    use std::fs::File;

    use engine::list::simulated::{SimulatedList, Volume as Simulated};

    use super::*;

    const BLOCK: Bytes = Bytes::kib(512);

    #[test]
    fn places_are_blocks_all_over_the_volume_and_none_comes_twice() {
        let size = Bytes::gib(10);
        let all = places(size, BLOCK, 7);
        assert_eq!(all.len() as u64, PLACES);
        let distinct: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(distinct.len() as u64, PLACES);
        let part = size.0 / PLACES;
        for (index, place) in distinct.iter().enumerate() {
            let from = index as u64 * part;
            assert!((from / BLOCK.0 * BLOCK.0..from + part).contains(place));
            assert!(place.is_multiple_of(BLOCK.0));
        }
        assert_ne!(all, places(size, BLOCK, 8));
        assert!(!all.is_sorted());
        assert_eq!(places(Bytes::mib(5), BLOCK, 1).len(), 10);
    }

    #[test]
    fn each_place_is_read_twice_with_others_between() {
        for count in [1, 20, LAG, LAG + 1, 400] {
            let places: Vec<u64> = (0..count as u64).collect();
            let pairs = Pairs::new(&places);
            let turns: Vec<(usize, bool)> = (0..).map_while(|number| pairs.turn(number)).collect();
            assert_eq!(turns.len(), 2 * count);
            for place in 0..count {
                let at = |again| {
                    turns
                        .iter()
                        .position(|turn| *turn == (place, again))
                        .unwrap()
                };
                assert!(at(true) >= at(false) + LAG.min(count), "{count} {place}");
            }
        }
    }

    /// Checks a simulated volume of which the part from `warm` on was read before.
    fn checked(volume: &SimulatedList, warm_from: u64) -> (Sample, Option<Forecast>) {
        let size = volume.volume().size;
        let run = |feed: &mut dyn Feed, depth, largest| {
            let list = List {
                file: &File::open("/dev/null").unwrap(),
                deed: Deed::Read,
                most_in_flight: depth,
                largest,
                choice: Choice::Auto,
                interrupt: &AtomicBool::new(false),
            };
            volume.run(&list, feed).unwrap();
        };
        let warm: Vec<u64> = (warm_from..size.0 / BLOCK.0)
            .map(|index| index * BLOCK.0)
            .collect();
        run(&mut Burst::new(&warm, BLOCK, size), 256, BLOCK);
        let places = places(size, BLOCK, 3);
        let mut pairs = Pairs::new(&places);
        run(&mut pairs, DEPTH, Bytes(u64::from(PAGE)));
        let sample = assess(&pairs.pairs()).unwrap();
        let mut burst = Burst::new(&places, BLOCK, size);
        run(&mut burst, 256, BLOCK);
        let forecast = forecast_of(&sample, size, BLOCK, burst.rate());
        (sample, forecast)
    }

    #[test]
    fn the_cold_share_of_a_simulated_volume_is_found() {
        let size = Bytes::gib(4);
        let blocks = size.0 / BLOCK.0;
        let volume = SimulatedList::new(Simulated::cold(size));
        let (sample, forecast) = checked(&volume, blocks / 4);
        assert!(is_cold(&sample) && sample.cold.contains(0.25), "{sample:?}");
        let penalty = sample.penalty.unwrap().median_s.mean;
        assert!((0.025..0.035).contains(&penalty), "{penalty}");
        let seconds = forecast.unwrap().seconds;
        let cap = size.0 as f64 / Bytes::mib(125).0 as f64;
        assert!((0.8 * cap..1.3 * cap).contains(&seconds), "{seconds} {cap}");
        let warm = SimulatedList::new(Simulated::cold(size));
        let (sample, _) = checked(&warm, 0);
        assert!(!is_cold(&sample), "{sample:?}");
    }

    #[test]
    fn a_first_read_that_is_slower_by_a_cache_is_no_cold_one() {
        let pairs = |first_s: f64| {
            let pair = |index: u32| Pair {
                first_s: if index.is_multiple_of(3) {
                    first_s
                } else {
                    0.001
                },
                second_s: 0.001 + f64::from(index) * 1e-7,
            };
            assess(&(0..300).map(pair).collect::<Vec<_>>()).unwrap()
        };
        let (cache, fetch) = (pairs(0.005), pairs(0.04));
        assert!(!cache.differs && !is_cold(&cache), "{cache:?}");
        assert!(fetch.differs && is_cold(&fetch), "{fetch:?}");
    }
}
