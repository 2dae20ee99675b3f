//! Makes samples from reports: numbers the devices, and sets the lengths of intervals.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use record::Nanos;
use record::sample::{
    BytesPerSecond, Device, DeviceId, DeviceKind, DeviceSample, Flow, HostSample, PerSecond,
    Sample, SampleTime, disks_of_partition,
};

use super::notes::Notes;
use super::pace::{Pace, Timing};
use super::report::Report;
use super::row::Figures;
use super::{FirstReport, LogReport};

/// Maximum number of device names, so that a damaged log does not exhaust memory.
const MAX_NAMES: usize = 1 << 16;

/// Builds the samples of a log from its reports.
#[derive(Debug)]
pub(crate) struct Series {
    first: FirstReport,
    pace: Pace,
    devices: HashMap<String, LoggedDevice>,
    /// Number of runs of iostat that have begun.
    run: u64,
    /// The device names in this run of iostat, sorted.
    shown: BTreeSet<NameKey>,
    /// True if an idle device was printed, so that `-z` was not given.
    prints_idle: bool,
    /// A report whose length is known only with the next one.
    held: Option<(Report, Timing)>,
    /// The first sample of a run, until it is known whether the run has others; true if its length was guessed.
    last: Option<(LogReport, bool)>,
    done: VecDeque<LogReport>,
}

/// Names of rows that a program computed from other rows. No device has such a name.
const STATISTICS: [&str; 10] = [
    "avg", "average", "mean", "median", "min", "max", "stddev", "stdev", "std", "variance",
];

#[derive(Debug)]
struct LoggedDevice {
    device: Arc<Device>,
    /// Figures that the device's reports had so far: only these are filled in when the device is missing.
    reported: Figures,
    /// True if the device is not a partition although its name looks like one: it was busy while the disk was not.
    is_own: bool,
    /// The run of iostat that showed it last.
    run: u64,
}

impl Series {
    pub(crate) fn new(first: FirstReport, interval: Option<Nanos>) -> Series {
        Series {
            first,
            pace: Pace::new(interval),
            devices: HashMap::new(),
            run: 0,
            shown: BTreeSet::new(),
            prints_idle: false,
            held: None,
            last: None,
            done: VecDeque::new(),
        }
    }

    /// The next complete sample.
    pub(crate) fn take(&mut self) -> Option<LogReport> {
        self.done.pop_front()
    }

    /// Adds a report.
    pub(crate) fn push(&mut self, report: Report, notes: &mut Notes) {
        if let Some(last) = report.at.and_then(|at| at.corrected) {
            self.pace.correct(last);
        }
        let timing = Timing {
            wall: report.at.map(|at| at.at),
            seconds: report
                .length
                .or_else(|| report.rows.iter().find_map(|row| row.figures.seconds())),
            first: report.first,
        };
        if let Some((held, held_timing)) = self.held.take() {
            self.pace.learn(&held_timing, &timing);
            self.interval(held, held_timing, notes);
        }
        if report.first && self.is_since_boot(&report) {
            self.since_boot(report, timing, notes);
        } else if self.pace.is_known(&timing) {
            self.interval(report, timing, notes);
        } else {
            self.held = Some((report, timing));
        }
    }

    /// Handles the end of the log.
    pub(crate) fn finish(&mut self, notes: &mut Notes) {
        if let Some((report, timing)) = self.held.take() {
            self.interval(report, timing, notes);
        }
        self.end_last(true, notes);
        notes.interval_unknown |= self.pace.guessed();
    }

    /// Completes a sample. `first`: it is the first of its run, and is held until the next one.
    fn hand_over(&mut self, reading: LogReport, first: bool, guessed: bool, notes: &mut Notes) {
        self.end_last(first, notes);
        match first {
            true => self.last = Some((reading, guessed)),
            false => self.done.push_back(reading),
        }
    }

    /// Completes the held first sample of a run. `alone`: its run has no other sample.
    fn end_last(&mut self, alone: bool, notes: &mut Notes) {
        let Some((mut reading, guessed)) = self.last.take() else {
            return;
        };
        reading.alone = alone;
        if alone {
            notes.alone += 1;
            notes.since_boot -= u64::from(reading.since_boot);
            if guessed {
                reading.sample.length = Nanos(0);
            }
        }
        self.done.push_back(reading);
    }

    fn is_since_boot(&self, report: &Report) -> bool {
        match self.first {
            _ if report.length.is_some() => false,
            FirstReport::SinceBoot => true,
            FirstReport::Interval => false,
            FirstReport::Tell => {
                // Not a mean since boot: an excerpt of a log can begin with any report.
                let hangs = report.rows.iter().any(|row| row.figures.hangs());
                !report.boot_omitted && !hangs
            }
        }
    }

    fn since_boot(&mut self, report: Report, timing: Timing, notes: &mut Notes) {
        self.begin_run(&report);
        let span = self.pace.since_boot(&timing);
        notes.since_boot += 1;
        let line = report.line;
        let sample = Sample {
            at: span.at,
            length: span.length,
            gap: span.gap,
            host: host(&report),
            devices: self.devices(report, span.at, notes),
            removed: Vec::new(),
        };
        let reading = LogReport {
            sample,
            line,
            since_boot: true,
            alone: false,
            run: self.run,
        };
        self.hand_over(reading, true, false, notes);
    }

    fn interval(&mut self, report: Report, timing: Timing, notes: &mut Notes) {
        self.begin_run(&report);
        // If its length is known, the only report of a run is an interval like any other.
        let first = report.first && report.length.is_none();
        let is_guessed = self.pace.must_guess(&timing);
        let span = self.pace.interval(&timing);
        notes.samples += 1;
        self.prints_idle |= report.rows.iter().any(|row| row.figures.is_idle());
        let (line, whole) = (report.line, !report.damaged);
        let host = host(&report);
        let mut devices = self.devices(report, span.at, notes);
        if whole && !self.prints_idle {
            self.fill(&mut devices, notes);
        }
        let names = devices.iter().map(|d| NameKey::new(&d.device.name));
        self.shown.extend(names.collect::<Vec<_>>());
        let sample = Sample {
            at: span.at,
            length: span.length,
            gap: span.gap,
            host,
            devices,
            removed: Vec::new(),
        };
        let reading = LogReport {
            sample,
            line,
            since_boot: false,
            alone: false,
            run: self.run,
        };
        self.hand_over(reading, first, is_guessed, notes);
    }

    fn begin_run(&mut self, report: &Report) {
        if report.first {
            self.run += 1;
            self.shown.clear();
            self.prints_idle = false;
        }
    }

    /// The samples of a report's devices, in the order of their names. Groups are left out if any member is listed.
    fn devices(
        &mut self,
        mut report: Report,
        at: SampleTime,
        notes: &mut Notes,
    ) -> Vec<DeviceSample> {
        let has_members = report.rows.iter().any(|row| !row.group);
        report.rows.retain(|row| {
            let is_sum = row.group && has_members;
            let is_statistic = STATISTICS.contains(&row.name.to_ascii_lowercase().as_str());
            if is_sum {
                notes.group(&row.name);
            } else if is_statistic {
                notes.statistic(&row.name);
            } else if !self.remember(&row.name, &row.figures, at) {
                notes.garbage.add(report.line, &row.name);
            }
            !is_sum && !is_statistic
        });
        self.mark_partitions(&report);
        let samples = report.rows.iter().filter_map(|row| {
            let known = self.devices.get(&row.name)?;
            Some(row.figures.sample(Arc::clone(&known.device)))
        });
        let mut samples: Vec<DeviceSample> = samples.collect();
        samples.sort_by_cached_key(|sample| NameKey::new(&sample.device.name));
        samples.dedup_by(|a, b| a.device.id == b.device.id);
        samples
    }

    /// Adds a device, or what is newly known of it; false if there are too many devices.
    fn remember(&mut self, name: &str, figures: &Figures, at: SampleTime) -> bool {
        if let Some(known) = self.devices.get_mut(name) {
            known.reported.join(figures);
            known.run = self.run;
            return true;
        }
        let Ok(id) = u32::try_from(self.devices.len()) else {
            return false;
        };
        if self.devices.len() >= MAX_NAMES {
            return false;
        }
        let known = LoggedDevice {
            device: Arc::new(Device::by_name(DeviceId(id), name, at)),
            reported: *figures,
            is_own: false,
            run: self.run,
        };
        self.devices.insert(name.to_owned(), known);
        true
    }

    /// Marks the devices of a report that are partitions: their disk is in this report too, or was in an earlier one of
    /// the same run.
    fn mark_partitions(&mut self, report: &Report) {
        for row in &report.rows {
            let numbered = numbered_disk(&row.name);
            let disks = disks_of_partition(&row.name).chain(numbered.as_deref());
            let disk = disks
                .filter_map(|disk| self.devices.get_key_value(disk))
                .find(|(_, known)| known.run == self.run);
            let on = disk.map(|(name, known)| (name.clone(), known.device.id));
            let Some(known) = self.devices.get_mut(&row.name) else {
                continue;
            };
            let beside = on.as_ref().filter(|_| !known.is_own);
            let beside = beside.and_then(|(disk, _)| report.rows.iter().find(|r| r.name == *disk));
            known.is_own |= beside.is_some_and(|disk| is_busier(&row.figures, &disk.figures));
            let on = on.filter(|_| !known.is_own);
            let lies_on: Vec<DeviceId> = on.map(|(_, id)| id).into_iter().collect();
            if known.device.lies_on != lies_on {
                let device = &known.device;
                let mut device = Device::by_name(device.id, &device.name, device.first_seen);
                if !lies_on.is_empty() {
                    device.kind = DeviceKind::Partition;
                }
                device.lies_on = lies_on;
                known.device = Arc::new(device);
            }
        }
    }

    /// Adds the devices that iostat left out since no requests completed on them. It is unknown whether requests were
    /// in flight: a device that hangs is left out too.
    fn fill(&self, devices: &mut Vec<DeviceSample>, notes: &mut Notes) {
        let present: BTreeSet<DeviceId> = devices.iter().map(|d| d.device.id).collect();
        let before = devices.len();
        for name in &self.shown {
            let Some(known) = self.devices.get(&name.name) else {
                continue;
            };
            if !present.contains(&known.device.id) {
                devices.push(nothing_completed(known));
            }
        }
        if devices.len() > before {
            notes.missing += (devices.len() - before) as u64;
            devices.sort_by_cached_key(|sample| NameKey::new(&sample.device.name));
        }
    }
}

fn host(report: &Report) -> HostSample {
    HostSample {
        cpu: report.cpu,
        ..HostSample::default()
    }
}

/// The sample of a device on which no requests completed, with those figures that its reports have.
fn nothing_completed(known: &LoggedDevice) -> DeviceSample {
    let mut reported = known.reported;
    reported.reset = false;
    let mut sample = reported.sample(known.device.clone());
    let none = |flow: &mut Flow| {
        *flow = Flow {
            iops: flow.iops.map(|_| PerSecond(0.0)),
            bytes: flow.bytes.map(|_| BytesPerSecond(0.0)),
            merged: flow.merged.map(|_| PerSecond(0.0)),
            wait: None,
            size: None,
        };
    };
    none(&mut sample.read);
    none(&mut sample.write);
    none(&mut sample.discard);
    none(&mut sample.flush);
    none(&mut sample.all);
    sample.mean_in_flight = None;
    sample.in_flight = None;
    sample.busy = None;
    sample
}

/// The disk of a partition that `sar -d` without `-p` names by its number: `dev8-0` for `dev8-2`. It uses the numbers
/// that Documentation/admin-guide/devices.txt assigns to disks: SCSI, Xen, IDE and MMC.
fn numbered_disk(name: &str) -> Option<String> {
    let (major, minor) = name.strip_prefix("dev")?.split_once('-')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let minors_of_a_disk = match major {
        8 | 65..=71 | 128..=135 | 202 => 16,
        3 | 22 | 33 | 34 | 56 | 57 => 64,
        179 => 8,
        _ => return None,
    };
    let within = minor % minors_of_a_disk;
    (within > 0).then(|| format!("dev{major}-{}", minor - within))
}

/// Tolerance in comparing busy times. A partition's requests keep its disk busy too, except for rounding and different
/// times of reading.
const BUSY_TOLERANCE: f64 = 0.1;

fn is_busier(part: &Figures, disk: &Figures) -> bool {
    let busy = part.busy.zip(disk.busy);
    busy.is_some_and(|(part, disk)| part > disk + BUSY_TOLERANCE)
}

/// Sort key of a name, with numbers by value: `sda2` before `sda10`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NameKey {
    /// The name, with the number of digits before each number.
    order: Vec<u8>,
    name: String,
}

impl NameKey {
    fn new(name: &str) -> NameKey {
        let mut order = Vec::with_capacity(name.len() + 4);
        let mut rest = name.as_bytes();
        while let Some(first) = rest.first() {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let zeros = rest[..digits]
                .iter()
                .take_while(|byte| **byte == b'0')
                .count();
            if digits == 0 {
                order.push(*first);
            } else {
                let counted = u8::try_from(digits - zeros).unwrap_or(u8::MAX);
                order.extend([b'0', counted]);
                order.extend(&rest[zeros..digits]);
            }
            rest = &rest[digits.max(1)..];
        }
        NameKey {
            order,
            name: name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_sar_calls_by_its_number_has_a_disk_by_the_kernels_numbers() {
        for (name, disk) in [
            ("dev8-2", Some("dev8-0")),
            ("dev8-17", Some("dev8-16")),
            ("dev65-31", Some("dev65-16")),
            ("dev202-1", Some("dev202-0")),
            ("dev3-65", Some("dev3-64")),
            ("dev179-9", Some("dev179-8")),
            ("dev8-0", None),
            ("dev8-16", None),
            // Of the device mapper, of which each number is a device of its own, and others that come as they may.
            ("dev253-1", None),
            ("dev259-3", None),
            ("dev9-127", None),
            ("dev8", None),
            ("dev-1", None),
            ("sda2", None),
        ] {
            assert_eq!(numbered_disk(name).as_deref(), disk, "{name}");
        }
    }

    #[test]
    fn names_are_sorted_with_numbers_by_value() {
        let mut names = [
            "sda10",
            "nvme1n1",
            "sda",
            "nvme0n1p1",
            "sda2",
            "nvme0n1",
            "dm-10",
            "dm-9",
        ]
        .map(NameKey::new);
        names.sort();
        let names: Vec<&str> = names.iter().map(|name| name.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "dm-9",
                "dm-10",
                "nvme0n1",
                "nvme0n1p1",
                "nvme1n1",
                "sda",
                "sda2",
                "sda10"
            ]
        );
    }
}
