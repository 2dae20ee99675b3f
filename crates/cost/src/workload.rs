//! The workload: rates of I/O and bytes, constant as in a run, or over time as in a recording.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ledger::{Ledger, RecordingSummary};
use linux::volume_id::VolumeId;
use record::sample::{DeviceKind, DeviceSample};
use record::{Activity, Bytes, Nanos, Run};

use ui::exit::{ExitClass as _, Failure};

/// Seconds of a month, as clouds bill it: 730 hours.
pub(crate) const MONTH_S: f64 = 730.0 * 3600.0;
/// Share of the I/O that may exceed the latency of `--p99`.
const LATE_SHARE: f64 = 0.01;
/// Length of an interval of a trace: clouds enforce their caps per second.
const STEP: Nanos = Nanos::from_secs(1);
/// Number of rates between the mean and the peak that are tried.
const STEPS: u32 = 200;

/// Rates of I/O and bytes, per second, that volumes must carry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Demand {
    pub(crate) iops: f64,
    pub(crate) bytes_per_s: f64,
}

/// Rates in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LoadInterval {
    /// Hour of the day (UTC) in which it ended.
    pub(crate) hour: u8,
    pub(crate) seconds: f64,
    pub(crate) rate: Demand,
}

/// A workload, and where it was measured.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// `run`, `recording` or `trace`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) host: String,
    /// Start of the measurement; `None` for a trace whose start is not known.
    pub(crate) at: Option<Timestamp>,
    /// Intervals in the order of time; for a run, a single one.
    pub(crate) intervals: Vec<LoadInterval>,
}

impl Demand {
    /// Throughput in MiB a second.
    pub(crate) fn mibps(self) -> f64 {
        self.bytes_per_s / Bytes::mib(1).0 as f64
    }

    /// The demand as counted by a volume that splits I/O above the size `merge`.
    fn counted(self, merge: Bytes) -> Demand {
        Demand {
            iops: self.iops.max(self.bytes_per_s / merge.0 as f64),
            ..self
        }
    }

    /// Linear interpolation to another demand: `share` is 0 for this one, 1 for the other.
    fn interpolate(self, other: Demand, share: f64) -> Demand {
        let between = |from: f64, to: f64| from + (to - from) * share;
        Demand {
            iops: between(self.iops, other.iops),
            bytes_per_s: between(self.bytes_per_s, other.bytes_per_s),
        }
    }

    /// The maximum of each rate.
    pub(crate) fn or(self, other: Demand) -> Demand {
        Demand {
            iops: self.iops.max(other.iops),
            bytes_per_s: self.bytes_per_s.max(other.bytes_per_s),
        }
    }
}

impl Workload {
    /// The workload of a run's phase, or of a recording's device.
    pub(crate) fn read(
        ledger: &Ledger,
        word: &str,
        phase: Option<&str>,
        device: Option<&str>,
    ) -> Result<Workload, Failure> {
        // Ids of runs begin with a date.
        match word.parse::<i64>() {
            Ok(number) if word.len() < 8 => Workload::of_recording(ledger, number, device),
            _ => Workload::of_run(&ledger.load(word).refused()?, phase),
        }
    }

    /// The path of a trace, if the word is one: ids of runs and numbers of recordings contain no dot and no slash.
    pub(crate) fn trace_path(word: &str) -> Option<&Path> {
        word.contains(['.', '/']).then(|| Path::new(word))
    }

    /// The workload of a trace, of one device or of all together.
    pub(crate) fn of_trace(path: &Path, device: Option<&str>) -> Result<Workload, Failure> {
        let mut trace = trace::open(path).refused()?;
        let started = trace.header().started;
        let mut seconds: Vec<(f64, f64)> = Vec::new();
        let mut first = None;
        while let Some(io) = trace.next() {
            let io = io.midway()?;
            let named = trace.header().devices.get(usize::from(io.device.0));
            let is_wanted = device.is_none_or(|name| named.is_some_and(|one| one.name == name));
            if !is_wanted || !matches!(io.op, trace::Op::Read | trace::Op::Write) {
                continue;
            }
            let first = *first.get_or_insert(io.issued);
            let at = (io.issued.0.saturating_sub(first.0) / STEP.0) as usize;
            if at >= seconds.len() {
                seconds.resize(at + 1, (0.0, 0.0));
            }
            if let Some((ops, bytes)) = seconds.get_mut(at) {
                *ops += 1.0;
                *bytes += io.length.0 as f64;
            }
        }
        if seconds.is_empty() {
            return Err(Failure::refused(match device {
                Some(name) => format!(
                    "the trace {} has no reads or writes of a device {name}",
                    path.display()
                ),
                None => format!("the trace {} has no reads or writes", path.display()),
            }));
        }
        let at = started.unwrap_or_default();
        let intervals = seconds.iter().enumerate().map(|(index, (ops, bytes))| {
            let wall = at.checked_add(jiff::SignedDuration::from_secs(index as i64));
            let hour = wall.map_or(0, |wall| wall.to_zoned(TimeZone::UTC).hour());
            LoadInterval {
                hour: u8::try_from(hour).unwrap_or(0),
                seconds: STEP.as_secs_f64(),
                rate: Demand {
                    iops: ops / STEP.as_secs_f64(),
                    bytes_per_s: bytes / STEP.as_secs_f64(),
                },
            }
        });
        Ok(Workload {
            kind: "trace",
            name: path.display().to_string(),
            host: String::new(),
            at: started,
            intervals: intervals.collect(),
        })
    }

    /// The workload with the base load alone.
    pub(crate) fn base_alone(&self) -> Workload {
        let interval = LoadInterval {
            hour: 0,
            seconds: self.seconds(),
            rate: self.base(),
        };
        Workload {
            intervals: vec![interval],
            ..self.clone()
        }
    }

    fn of_run(run: &Run, phase: Option<&str>) -> Result<Workload, Failure> {
        let names: Vec<&str> = run.phases.iter().map(|one| one.name.as_str()).collect();
        let found = match (phase, run.phases.as_slice()) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(name), phases) => phases.iter().find(|one| one.name == name),
        };
        let found = found.ok_or_else(|| {
            Failure::refused(format!(
                "the run {} has the phases {}; name the one that is like your workload with --phase",
                run.id.as_str(),
                names.join(", ")
            ))
        })?;
        let seconds = found.seconds;
        if seconds <= 0.0 {
            return Err(Failure::refused(format!(
                "the phase {} measured nothing",
                found.name
            )));
        }
        let mut rate = Demand::default();
        // Discards do not count towards a volume's caps.
        let load = found
            .directions()
            .filter(|(direction, _)| found.workload.activity(*direction) != Activity::Trim);
        for (_, flow) in load {
            rate.iops += flow.ops as f64 / seconds;
            rate.bytes_per_s += flow.bytes as f64 / seconds;
        }
        Ok(Workload {
            kind: "run",
            name: format!("{} {}", run.id.as_str(), found.name),
            host: run.machine.hostname.clone(),
            at: Some(run.started),
            intervals: vec![LoadInterval {
                hour: 0,
                seconds,
                rate,
            }],
        })
    }

    fn of_recording(
        ledger: &Ledger,
        number: i64,
        device: Option<&str>,
    ) -> Result<Workload, Failure> {
        let recordings = ledger.recordings().midway()?;
        let known = recordings.iter().find(|one| one.number == number);
        let recording = known.ok_or_else(|| {
            let numbers: Vec<String> = recordings
                .iter()
                .map(|one| one.number.to_string())
                .collect();
            Failure::refused(match numbers.is_empty() {
                true => format!(
                    "there is no recording {number}: the ledger has none; 'disksmith \
                                 watch --record' makes one"
                ),
                false => format!(
                    "there is no recording {number}; there are {}",
                    numbers.join(", ")
                ),
            })
        })?;
        // In a recording the serial number is the volume's id.
        let volume = device.and_then(VolumeId::parse).map(|id| id.serial());
        let intervals = intervals(ledger, recording, volume.as_deref().or(device))?;
        if intervals.is_empty() {
            return Err(Failure::refused(match device {
                Some(name) => format!("the recording {number} has no rates of a device {name}"),
                None => format!("the recording {number} has no rates of disks"),
            }));
        }
        Ok(Workload {
            kind: "recording",
            name: number.to_string(),
            host: recording.host.clone(),
            at: Some(recording.from),
            intervals,
        })
    }

    /// Total time, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.intervals.iter().map(|one| one.seconds).sum()
    }

    /// The highest rates of all intervals.
    pub(crate) fn peak(&self) -> Demand {
        let rates = self.intervals.iter().map(|one| one.rate);
        rates.fold(Demand::default(), Demand::or)
    }

    /// Median rates over time: for half of the time the rates are not higher.
    pub(crate) fn base(&self) -> Demand {
        let median = |of: fn(&Demand) -> f64| {
            let mut rates: Vec<(f64, f64)> = self
                .intervals
                .iter()
                .map(|one| (of(&one.rate), one.seconds))
                .collect();
            rates.sort_by(|a, b| a.0.total_cmp(&b.0));
            let half = self.seconds() / 2.0;
            let mut passed = 0.0;
            let found = rates.iter().find(|(_, seconds)| {
                passed += seconds;
                passed >= half
            });
            found.or(rates.last()).map_or(0.0, |(rate, _)| *rate)
        };
        Demand {
            iops: median(|rate| rate.iops),
            bytes_per_s: median(|rate| rate.bytes_per_s),
        }
    }

    /// Number of I/O in a month at the mean rate.
    pub(crate) fn month_ops(&self) -> f64 {
        let ops: f64 = self
            .intervals
            .iter()
            .map(|one| one.rate.iops * one.seconds)
            .sum();
        ops / self.seconds() * MONTH_S
    }

    /// Demand on volumes that split I/O above `merge`: the peak. With `budget`, the minimum with which at most
    /// [`LATE_SHARE`] of the I/O waits longer than it.
    pub(crate) fn demand(&self, merge: Bytes, budget: Option<Nanos>) -> Demand {
        let peak = self.intervals.iter().map(|one| one.rate.counted(merge));
        let peak = peak.fold(Demand::default(), Demand::or);
        let Some(budget) = budget else { return peak };
        // With caps below the mean, the queue grows without bound.
        let mean = self.mean(merge);
        let mut steps =
            (1..=STEPS).map(|step| mean.interpolate(peak, f64::from(step) / f64::from(STEPS)));
        let enough =
            steps.find(|caps| self.late_share(*caps, merge, budget.as_secs_f64()) <= LATE_SHARE);
        enough.unwrap_or(peak)
    }

    fn mean(&self, merge: Bytes) -> Demand {
        let seconds = self.seconds();
        let sum = |of: fn(&Demand) -> f64| {
            let each = self.intervals.iter();
            each.map(|one| of(&one.rate.counted(merge)) * one.seconds)
                .sum::<f64>()
                / seconds
        };
        Demand {
            iops: sum(|rate| rate.iops),
            bytes_per_s: sum(|rate| rate.bytes_per_s),
        }
    }

    /// Share of the I/O that waits longer than `budget_s` seconds because of caps, where the rate is constant within
    /// each interval.
    fn late_share(&self, caps: Demand, merge: Bytes, budget_s: f64) -> f64 {
        let (mut ops, mut late) = (0.0, 0.0);
        // Queued work at each cap, in seconds.
        let mut waiting = [0.0_f64; 2];
        for one in &self.intervals {
            let rate = one.rate.counted(merge);
            let loads = [rate.iops / caps.iops, rate.bytes_per_s / caps.bytes_per_s];
            let mut share: f64 = 0.0;
            for (wait, load) in waiting.iter_mut().zip(loads) {
                let load = if load.is_nan() { 0.0 } else { load };
                let end = (*wait + (load - 1.0) * one.seconds).max(0.0);
                share = share.max(above(*wait, end, budget_s));
                *wait = end;
            }
            ops += rate.iops * one.seconds;
            late += rate.iops * one.seconds * share;
        }
        if ops > 0.0 { late / ops } else { 0.0 }
    }
}

/// Share of the line from one wait to another that lies above a limit.
fn above(from: f64, to: f64, limit: f64) -> f64 {
    let (low, high) = if from < to { (from, to) } else { (to, from) };
    match () {
        () if high <= limit => 0.0,
        () if low >= limit => 1.0,
        () => (high - limit) / (high - low),
    }
}

fn intervals(
    ledger: &Ledger,
    recording: &RecordingSummary,
    device: Option<&str>,
) -> Result<Vec<LoadInterval>, Failure> {
    let mut intervals = Vec::new();
    let replay = ledger
        .replay(&recording.host, recording.from, recording.to)
        .midway()?;
    for played in replay {
        let sample = played.midway()?.recorded.sample;
        let wanted = |one: &&DeviceSample| match device {
            Some(name) => one.device.is_called(name),
            None => one.device.kind == DeviceKind::Disk,
        };
        let rates: Vec<Demand> = sample
            .devices
            .iter()
            .filter(wanted)
            .filter_map(|one| {
                Some(Demand {
                    iops: one.all.iops?.0,
                    bytes_per_s: one.all.bytes?.0,
                })
            })
            .collect();
        let seconds = sample.length.as_secs_f64();
        if rates.is_empty() || seconds <= 0.0 {
            continue;
        }
        let hour = sample
            .at
            .wall
            .map_or(0, |at| at.to_zoned(TimeZone::UTC).hour());
        intervals.push(LoadInterval {
            hour: u8::try_from(hour).unwrap_or(0),
            seconds,
            rate: Demand {
                iops: rates.iter().map(|rate| rate.iops).sum(),
                bytes_per_s: rates.iter().map(|rate| rate.bytes_per_s).sum(),
            },
        });
    }
    Ok(intervals)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A workload with these IOPS of 16 KiB in each hour.
    pub(crate) fn hours(iops: &[f64]) -> Workload {
        let interval = |(at, iops): (usize, &f64)| LoadInterval {
            hour: (at % 24) as u8,
            seconds: 3_600.0,
            rate: Demand {
                iops: *iops,
                bytes_per_s: iops * 16_384.0,
            },
        };
        Workload {
            kind: "recording",
            name: "1".to_owned(),
            host: "h".to_owned(),
            at: None,
            intervals: iops.iter().enumerate().map(interval).collect(),
        }
    }

    #[test]
    fn base_peak_and_sum_are_over_time() {
        let day = hours(&[1_000.0, 1_000.0, 1_000.0, 9_000.0]);
        assert_eq!((day.base().iops, day.peak().iops), (1_000.0, 9_000.0));
        assert!((day.month_ops() - 3_000.0 * MONTH_S).abs() < 1.0);
    }

    #[test]
    fn large_io_counts_as_several() {
        let scan = Demand {
            iops: 100.0,
            bytes_per_s: 100.0 * (1 << 20) as f64,
        };
        assert_eq!(scan.counted(Bytes::kib(256)).iops, 400.0);
        assert_eq!(scan.counted(Bytes::mib(1)).iops, 100.0);
    }

    #[test]
    fn short_bursts_may_wait_within_the_latency() {
        let mut load = hours(&[1_000.0; 24]);
        load.intervals.insert(
            5,
            LoadInterval {
                seconds: 0.001,
                rate: Demand {
                    iops: 50_000.0,
                    bytes_per_s: 1.0,
                },
                hour: 5,
            },
        );
        let demand = |budget| load.demand(Bytes::kib(256), budget);
        assert_eq!(demand(None).iops, 50_000.0);
        // 50 I/O at once are served within 50 ms at 1,000 a second and little more.
        assert!(demand(Some(Nanos(100_000_000))).iops <= 1_250.0);
        // An hour at twice the rate causes long waits.
        let two = hours(&[1_000.0, 2_000.0]);
        assert!(two.demand(Bytes::kib(256), Some(Nanos(100_000_000))).iops > 1_900.0);
    }
}
