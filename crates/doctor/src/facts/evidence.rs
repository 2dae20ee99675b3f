//! Evidence from the ledger: measured figures of the disks of this host, and findings of a watch.

use jiff::Timestamp;
use jiff::{SignedDuration, tz::TimeZone};
use ledger::{Filter, Ledger};
use record::{Direction, Pattern, Phase, Run, Verdict};
use study::watch::{EventCode, WatchEvent};
use ui::format::number;

/// Maximum number of runs that are read, the newest first.
const MAX_RUNS: u32 = 60;
/// Maximum age of events of a watch that count.
const EVENTS_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Share of the highest rate from which a rate is on the plateau.
const PLATEAU_SHARE: f64 = 0.9;

/// A measured figure, with its run and phase.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EvidenceFigure {
    pub(crate) value: f64,
    run: String,
    phase: String,
    at: Timestamp,
    is_doubtful: bool,
}

impl EvidenceFigure {
    /// The figure as text, such as `4,000 IOPS in page-write of run … of 2026-11-21`.
    pub(crate) fn cite(&self, unit: &str) -> String {
        let doubt = match self.is_doubtful {
            true => ", whose verdict is doubtful",
            false => "",
        };
        format!(
            "{} {unit} in {} of run {} of {}{doubt}",
            number(self.value),
            self.phase,
            self.run,
            self.at.to_zoned(TimeZone::UTC).date()
        )
    }

    /// Converts the figure to another unit.
    pub(crate) fn times(&self, factor: f64) -> EvidenceFigure {
        EvidenceFigure {
            value: self.value * factor,
            ..self.clone()
        }
    }
}

/// Evidence about this host.
#[derive(Default)]
pub(crate) struct Evidence {
    /// Runs that are not invalid, the newest first, each with true if its verdict is doubtful.
    runs: Vec<(Run, bool)>,
    events: Vec<WatchEvent>,
    /// True if a watch was recorded in the time for which events count.
    pub(crate) is_watched: bool,
}

impl Evidence {
    /// Reads the ledger.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read(ledger: &Ledger, host: &str, now: Timestamp) -> ledger::Result<Evidence> {
        let filter = Filter {
            host: Some(host.to_owned()),
            limit: Some(MAX_RUNS),
            ..Filter::default()
        };
        let mut runs = Vec::new();
        for summary in ledger.list(&filter)? {
            if summary.verdict == Verdict::Invalid {
                continue;
            }
            // Imported and damaged runs cannot be loaded, and are skipped.
            if let Ok(run) = ledger.load(summary.id.as_str()) {
                runs.push((run, summary.verdict == Verdict::Doubtful));
            }
        }
        let since = now - EVENTS_FOR;
        let recordings = ledger.recordings()?;
        Ok(Evidence {
            runs,
            events: ledger.events_since(host, since)?,
            is_watched: recordings
                .iter()
                .any(|one| one.host == host && one.to > since),
        })
    }

    #[cfg(test)]
    pub(crate) fn of(runs: Vec<Run>, events: Vec<WatchEvent>) -> Evidence {
        Evidence {
            runs: runs.into_iter().map(|run| (run, false)).collect(),
            is_watched: !events.is_empty(),
            events,
        }
    }

    /// The newest figure of a phase on these devices.
    fn newest(
        &self,
        devices: &[String],
        of: impl Fn(&Phase) -> Option<f64>,
    ) -> Option<EvidenceFigure> {
        let runs = self.runs.iter().filter(|(run, _)| is_on(run, devices));
        let mut figures = runs.flat_map(|(run, is_doubtful)| {
            run.phases.iter().filter_map(|phase| {
                Some(EvidenceFigure {
                    value: of(phase)?,
                    run: run.id.to_string(),
                    phase: phase.name.clone(),
                    at: run.started,
                    is_doubtful: *is_doubtful,
                })
            })
        });
        figures.next()
    }

    /// Sustained rate of random writes of 16 KiB, per second, at a depth that keeps the disk busy.
    pub(crate) fn page_writes(&self, devices: &[String]) -> Option<EvidenceFigure> {
        self.newest(devices, |phase| {
            let work = &phase.workload;
            let fits = work.pattern == Pattern::Random
                && work.read_fraction == 0.0
                && !work.discards()
                && work.block.0 == 16 << 10
                && work.sync_every == 0
                && work.rate_per_s.is_none()
                && depth(phase) >= 8;
            fits.then(|| sustained(phase, Direction::Write))?
        })
    }

    /// Duration of a durable append to a log, in seconds: the median of a write with its fdatasync.
    pub(crate) fn commit_seconds(&self, devices: &[String]) -> Option<EvidenceFigure> {
        self.newest(devices, |phase| {
            let work = &phase.workload;
            let fits = work.pattern == Pattern::Sequential
                && work.sync_every == 1
                && work.read_fraction == 0.0
                && depth(phase) == 1;
            let flow = phase.flow(Direction::Commit).filter(|_| fits)?;
            Some(flow.latency.quantile(0.5) as f64 / 1e9)
        })
    }

    /// Sustained rate of large sequential writes, in bytes a second.
    pub(crate) fn write_rate(&self, devices: &[String]) -> Option<EvidenceFigure> {
        self.newest(devices, |phase| stream(phase, Direction::Write))
    }

    /// Sustained rate of large sequential reads, in bytes a second.
    pub(crate) fn read_rate(&self, devices: &[String]) -> Option<EvidenceFigure> {
        self.newest(devices, |phase| stream(phase, Direction::Read))
    }

    /// Rate of random reads of pages, per second, at a depth that keeps the disk busy.
    pub(crate) fn random_reads(&self, devices: &[String]) -> Option<EvidenceFigure> {
        self.newest(devices, |phase| {
            let is_deep = depth(phase) >= 8;
            random_reads(phase).filter(|_| is_deep)
        })
    }

    /// The smallest depth at which random reads reach the plateau of their rate, and true if it is the largest measured
    /// depth, so that the plateau may lie beyond. `None` with fewer than three depths.
    pub(crate) fn read_knee(&self, devices: &[String]) -> Option<(EvidenceFigure, bool)> {
        let mut depths: Vec<u32> = Vec::new();
        let mut points: Vec<(u32, EvidenceFigure)> = Vec::new();
        let runs = self.runs.iter().filter(|(run, _)| is_on(run, devices));
        for phase in runs.flat_map(|(run, _)| &run.phases) {
            let depth = depth(phase);
            if random_reads(phase).is_none() || depths.contains(&depth) {
                continue;
            }
            depths.push(depth);
            let same = |one: &Phase| (self::depth(one) == depth).then(|| random_reads(one))?;
            points.extend(self.newest(devices, same).map(|figure| (depth, figure)));
        }
        points.sort_by_key(|(depth, _)| *depth);
        let most = points.iter().map(|(_, one)| one.value).fold(0.0, f64::max);
        let (deepest, _) = points.last().filter(|_| points.len() >= 3)?;
        let (depth, figure) = points
            .iter()
            .find(|(_, one)| one.value >= most * PLATEAU_SHARE)?;
        let knee = EvidenceFigure {
            value: f64::from(*depth),
            ..figure.clone()
        };
        Some((knee, depth == deepest))
    }

    /// The newest event of a kind on these devices.
    pub(crate) fn event(&self, code: EventCode, devices: &[String]) -> Option<&WatchEvent> {
        let mut events = self.events.iter().rev();
        events.find(|event| event.code == code && devices.contains(&event.name))
    }
}

/// The event as evidence text: its sentence and date.
pub(crate) fn cite(event: &WatchEvent) -> String {
    match event.began.wall {
        Some(at) => format!(
            "{} (watch, {})",
            event.text,
            at.to_zoned(TimeZone::UTC).date()
        ),
        None => format!("{} (watch)", event.text),
    }
}

fn is_on(run: &Run, devices: &[String]) -> bool {
    let device = run.target.device.iter();
    let is_whole = device.clone().any(|device| devices.first() == Some(device));
    let disks = &run.target.disks;
    is_whole || (!disks.is_empty() && disks.iter().all(|disk| devices.contains(disk)))
}

fn depth(phase: &Phase) -> u32 {
    phase.workload.threads * phase.workload.depth
}

/// Sustained rate of a direction, in requests a second: the mean, or the rate at the end if it is lower, as after a
/// burst.
fn sustained(phase: &Phase, direction: Direction) -> Option<f64> {
    let flow = phase.flow(direction)?;
    let mean = flow.ops as f64 / phase.seconds;
    let rates = phase.slice_rates(direction);
    let tail = &rates[rates.len() - rates.len() / 4..];
    let end = match tail.is_empty() {
        true => mean,
        false => tail.iter().sum::<f64>() / tail.len() as f64,
    };
    Some(mean.min(end)).filter(|rate| *rate > 0.0)
}

fn random_reads(phase: &Phase) -> Option<f64> {
    let work = &phase.workload;
    let fits = work.pattern == Pattern::Random
        && work.read_fraction == 1.0
        && work.block.0 <= 16 << 10
        && work.rate_per_s.is_none();
    fits.then(|| sustained(phase, Direction::Read))?
}

fn stream(phase: &Phase, direction: Direction) -> Option<f64> {
    let work = &phase.workload;
    let reads = if direction == Direction::Read {
        1.0
    } else {
        0.0
    };
    let fits = work.pattern == Pattern::Sequential
        && !work.discards()
        && work.read_fraction == reads
        && work.block.0 >= 256 << 10
        && work.sync_every == 0
        && work.rate_per_s.is_none();
    let rate = fits.then(|| sustained(phase, direction))??;
    Some(rate * work.block.0 as f64)
}
