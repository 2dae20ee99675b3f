//! `warm --check`: how much of a volume is cold, what a first read costs, and how long warming takes.

mod burst;
mod pairs;
pub(crate) mod report;
mod result;
mod volume_pace;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use engine::IoInterface;
use engine::list::{BufferMode, EndReason, List, ListEngine};
use record::Bytes;
use study::cold::forecast::{Forecast, WarmingWork, forecast};
use study::cold::sample::{MIN_PAIRS, Sample, assess};
use study::interval::Interval;

use super::limit::SharedRateLimit;
use super::pace::IoPolicy;
use super::reading::MAX_DEPTH;
use crate::args::WarmArgs;
use pairs::{DEPTH, LEAD_PLACES, PAGE, PairedReads, places};
use reader::{Volume, is_locked};
use report::report;
use result::{VolumeCheck, is_cold};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use volume_pace::Pacing;

/// The places of a volume that were read, and the sample of their latencies.
struct SampledVolume<'a> {
    volume: &'a Volume,
    places: Vec<u64>,
    failed: usize,
    sample: Sample,
    /// True if another process was warming it meanwhile.
    is_being_warmed: bool,
}

/// Checks volumes one after the other, and then measures the rate of all of them together. Exit status 1 where cold
/// blocks or unreadable places were found. After an error, the results so far are reported first.
pub(crate) fn check(
    volumes: &[Volume],
    args: &WarmArgs,
    context: &mut Context,
    lister: &dyn ListEngine,
    interrupt: &AtomicBool,
) -> Outcome {
    let block = args.block.0;
    let limit = SharedRateLimit::new(args.limit.map(|limit| limit.0));
    let disks: BTreeSet<_> = volumes.iter().map(|volume| volume.disk.number).collect();
    let root = context.root.clone();
    let pacing = Pacing {
        limit: &limit,
        policy: IoPolicy::of(args.keep.targets(), disks.len() < volumes.len()),
        root: &root,
    };
    let mut sampled = Vec::new();
    let mut failure = None;
    for volume in volumes {
        match sample(volume, block, pacing, lister, interrupt) {
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
    let rates = burst::read_together(&each, block, pacing, lister, interrupt);
    let all: Vec<VolumeCheck> = sampled
        .into_iter()
        .zip(rates)
        .map(|(one, rate)| one.with_rate(rate, block))
        .collect();
    if !all.is_empty() {
        report(&all, args, context)?;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    if interrupt.load(Ordering::Relaxed) {
        return Err(Failure::Midway(anyhow!("interrupted")));
    }
    if all.iter().any(|one| one.is_cold() || one.failed > 0) {
        Ok(CommandEnd::No)
    } else {
        Ok(CommandEnd::Done)
    }
}

fn sample<'a>(
    volume: &'a Volume,
    block: Bytes,
    pacing: Pacing<'_>,
    lister: &dyn ListEngine,
    interrupt: &AtomicBool,
) -> Result<SampledVolume<'a>, Failure> {
    let device = volume.path.display();
    let seed = u64::from(std::process::id()) ^ jiff::Timestamp::now().as_nanosecond() as u64;
    let places = places(volume.size, block, seed);
    if places.len() < MIN_PAIRS + LEAD_PLACES {
        return Err(Failure::refused(format!(
            "{device} has {} blocks of {block}, too few for a sample; to warm them takes no time: disksmith warm {device}",
            places.len()
        )));
    }
    let file = volume.direct().refused()?;
    let list = List {
        files: &[&file],
        memory: BufferMode::Reads,
        // One more, for a probe of foreground latency.
        max_in_flight: DEPTH + 1,
        largest: Bytes(u64::from(PAGE)),
        interface: IoInterface::Auto,
        interrupt,
    };
    let is_being_warmed = is_locked(volume);
    let mut pairs = PairedReads::new(&places, seed, pacing.of(volume));
    let end = lister.run(&list, &mut pairs).midway()?;
    if end.ended == EndReason::Interrupted {
        return Err(Failure::Midway(anyhow!("{device}: interrupted")));
    }
    let read = pairs.pairs();
    let sample = assess(&read).ok_or_else(|| {
        Failure::Midway(anyhow!(
            "{device}: of {} places {} could not be read, and the others are too few to judge by",
            places.len(),
            pairs.failed()
        ))
    })?;
    Ok(SampledVolume {
        volume,
        failed: pairs.failed(),
        places,
        sample,
        is_being_warmed: is_being_warmed || is_locked(volume),
    })
}

impl SampledVolume<'_> {
    fn with_rate(self, warm_rate: Option<Interval>, block: Bytes) -> VolumeCheck {
        let SampledVolume { volume, sample, .. } = self;
        let cold_rate = warm_rate.filter(|_| is_cold(&sample));
        VolumeCheck {
            device: volume.path.display().to_string(),
            size: volume.size,
            places: self.places.len(),
            failed: self.failed,
            is_being_warmed: self.is_being_warmed,
            forecast: cold_rate.and_then(|rate| forecast_of(&sample, volume.size, block, rate)),
            warm_rate,
            sample,
        }
    }
}

/// Forecast of the time to read the whole volume with as many requests in flight as warming may have. Its bounds follow
/// from those of the cold share and of the rate.
fn forecast_of(sample: &Sample, size: Bytes, block: Bytes, rate: Interval) -> Option<Forecast> {
    let penalty = sample.mean_penalty_s.unwrap_or(0.0);
    let at = |bytes_per_s: f64| {
        forecast(&WarmingWork {
            bytes: size.0,
            request_bytes: block.0,
            cold: sample.cold,
            cold_s: sample.warm_s + penalty.max(0.0),
            warm_s: sample.warm_s,
            bytes_per_s: Some(bytes_per_s),
            iops: None,
            depth: MAX_DEPTH,
        })
    };
    Some(Forecast {
        low: at(rate.high)?.low,
        high: at(rate.low)?.high,
        ..at(rate.mean)?
    })
}

#[cfg(test)]
mod tests;
