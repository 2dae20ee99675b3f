//! Makes samples of reports: gives devices their numbers, and intervals their lengths.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use record::Nanos;
use record::sample::{
    BytesPerSecond, Device, DeviceId, DeviceKind, DeviceSample, Flow, HostSample, Moment,
    PerSecond, Sample,
};

use super::notes::Notes;
use super::pace::{Pace, Timing};
use super::report::Report;
use super::row::Figures;
use super::{First, Reading};

/// More names are not believed, so that a damaged log does not fill the memory.
const MOST_NAMES: usize = 1 << 16;

/// The samples of a log, as they come about.
#[derive(Debug)]
pub(crate) struct Series {
    first: First,
    pace: Pace,
    devices: HashMap<String, Known>,
    /// The names that this run of iostat has shown, in their order.
    shown: BTreeSet<NameKey>,
    /// A device was printed that did nothing, so that `-z` was not given.
    prints_idle: bool,
    /// A report whose length only the next one tells.
    held: Option<(Report, Timing)>,
    done: VecDeque<Reading>,
}

#[derive(Debug)]
struct Known {
    device: Arc<Device>,
    /// What its reports have told, so that nothing is made up where it is missing.
    told: Figures,
}

impl Series {
    pub(crate) fn new(first: First, interval: Option<Nanos>) -> Series {
        Series {
            first,
            pace: Pace::new(interval),
            devices: HashMap::new(),
            shown: BTreeSet::new(),
            prints_idle: false,
            held: None,
            done: VecDeque::new(),
        }
    }

    /// The next sample that is complete.
    pub(crate) fn take(&mut self) -> Option<Reading> {
        self.done.pop_front()
    }

    /// Takes a report.
    pub(crate) fn push(&mut self, report: Report, notes: &mut Notes) {
        if let Some(last) = report.at.and_then(|at| at.corrected) {
            self.pace.correct(last);
        }
        let timing = Timing {
            wall: report.at.map(|at| at.at),
            seconds: report.rows.iter().find_map(|row| row.figures.seconds()),
            first: report.first,
        };
        if let Some((held, held_timing)) = self.held.take() {
            self.pace.learn(&held_timing, &timing);
            self.interval(held, held_timing, notes);
        }
        if report.first && self.is_since_boot(&report) {
            self.since_boot(report, timing, notes);
        } else if self.pace.can_tell(&timing) {
            self.interval(report, timing, notes);
        } else {
            self.held = Some((report, timing));
        }
    }

    /// The log is at its end.
    pub(crate) fn finish(&mut self, notes: &mut Notes) {
        if let Some((report, timing)) = self.held.take() {
            self.interval(report, timing, notes);
        }
        notes.interval_unknown = self.pace.guessed();
    }

    fn is_since_boot(&self, report: &Report) -> bool {
        match self.first {
            First::SinceBoot => true,
            First::Interval => false,
            First::Tell => !report.boot_omitted,
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
        };
        self.done.push_back(Reading {
            sample,
            line,
            since_boot: true,
        });
    }

    fn interval(&mut self, report: Report, timing: Timing, notes: &mut Notes) {
        self.begin_run(&report);
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
        };
        self.done.push_back(Reading {
            sample,
            line,
            since_boot: false,
        });
    }

    fn begin_run(&mut self, report: &Report) {
        if report.first {
            self.shown.clear();
            self.prints_idle = false;
        }
    }

    /// The samples of a report's devices, in order of their names. Groups are left out where any of
    /// the members is there.
    fn devices(&mut self, report: Report, at: Moment, notes: &mut Notes) -> Vec<DeviceSample> {
        let has_members = report.rows.iter().any(|row| !row.group);
        let mut samples = Vec::with_capacity(report.rows.len());
        for row in report.rows {
            if row.group && has_members {
                notes.group(&row.name);
                continue;
            }
            match self.device(&row.name, &row.figures, at) {
                Some(device) => samples.push(row.figures.sample(device)),
                None => notes.garbage.add(report.line, &row.name),
            }
        }
        samples.sort_by_cached_key(|sample| NameKey::new(&sample.device.name));
        samples.dedup_by(|a, b| a.device.id == b.device.id);
        samples
    }

    fn device(&mut self, name: &str, figures: &Figures, at: Moment) -> Option<Arc<Device>> {
        if let Some(known) = self.devices.get_mut(name) {
            known.told.join(figures);
            return Some(known.device.clone());
        }
        let id = DeviceId(u32::try_from(self.devices.len()).ok()?);
        if self.devices.len() >= MOST_NAMES {
            return None;
        }
        let mut device = Device::by_name(id, name, at);
        if device.kind == DeviceKind::Partition {
            let disk = disk_of(name).and_then(|disk| self.devices.get(disk));
            device.lies_on = disk.map(|disk| disk.device.id).into_iter().collect();
        }
        let device = Arc::new(device);
        let known = Known {
            device: device.clone(),
            told: *figures,
        };
        self.devices.insert(name.to_owned(), known);
        Some(device)
    }

    /// Adds the devices that iostat left out since nothing completed on them. What was in flight is
    /// not known: a device that hangs is left out too.
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

/// A device on which nothing completed, as far as its reports would have told it.
fn nothing_completed(known: &Known) -> DeviceSample {
    let mut told = known.told;
    told.reset = false;
    let mut sample = told.sample(known.device.clone());
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
    sample.busy = None;
    sample
}

/// The disk of a partition, by its name: `sda` of `sda1`, `nvme0n1` of `nvme0n1p1`.
fn disk_of(name: &str) -> Option<&str> {
    let end = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match end.strip_suffix('p') {
        Some(disk) if disk.ends_with(|c: char| c.is_ascii_digit()) => Some(disk),
        _ => Some(end).filter(|disk| !disk.is_empty()),
    }
}

/// A name in the order in which people read: `sda2` before `sda10`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NameKey {
    /// The name, with the count of its digits in front of each number.
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

    #[test]
    fn a_partition_lies_on_its_disk() {
        assert_eq!(disk_of("sda1"), Some("sda"));
        assert_eq!(disk_of("nvme0n1p12"), Some("nvme0n1"));
        assert_eq!(disk_of("12"), None);
    }
}
