//! Series of disks and hosts on a time axis, in a form common to all sources.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use study::verdict;
use study::watch::EventCode;

use crate::axis::{Axis, SlotFigures, seconds};
use crate::documents::{DiskLines, DiskName, HostLines, OpenFinding};

/// Series of a disk: its figures, slot by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiskSeries {
    /// Mean latency in ms.
    pub(crate) await_ms: SlotFigures,
    /// I/Os per second.
    pub(crate) iops: SlotFigures,
    /// Share of the time in which a request was in flight.
    pub(crate) busy: SlotFigures,
    /// Mean number of requests in flight.
    pub(crate) queue: SlotFigures,
    /// Names of the devices that it lies on, which carry its I/O.
    pub(crate) lies_on: BTreeSet<String>,
}

/// Series of a host and its disks.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostSeries {
    /// Share of the processors' time that was not idle.
    pub(crate) cpu_busy: SlotFigures,
    /// Share of the time in which a task waited for I/O.
    pub(crate) io_pressure: SlotFigures,
    /// Disks of the host, by name.
    pub(crate) disks: BTreeMap<String, DiskSeries>,
}

/// Hosts with their disks and findings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts {
    /// Hosts by name.
    pub(crate) hosts: BTreeMap<String, HostSeries>,
    /// Findings that have not ended.
    pub(crate) findings: Vec<OpenFinding>,
}

/// Choice of the disks whose figures are read in full.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExaminedDisks<'a> {
    /// Names, as `disk` or `host/disk`; empty chooses the busiest disks.
    pub(crate) named: &'a [String],
    /// Maximum number of disks.
    pub(crate) most: usize,
}

impl Hosts {
    /// Adds the hosts of another source, except those that `self` already has.
    pub(crate) fn extend(&mut self, other: Hosts) {
        let Hosts { hosts, findings } = other;
        for finding in findings {
            if !self.hosts.contains_key(&finding.disk.hostname) {
                self.findings.push(finding);
            }
        }
        for (name, host) in hosts {
            self.hosts.entry(name).or_insert(host);
        }
    }

    /// Names of all disks, the busiest first.
    pub(crate) fn busiest(&self) -> Vec<DiskName> {
        let mut all: Vec<(DiskName, f64)> = self
            .disks()
            .map(|(name, disk)| (name, disk.busy.total()))
            .collect();
        all.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| a.cmp(b)));
        all.into_iter().map(|(name, _)| name).collect()
    }

    /// The chosen disks that have data, the busiest first.
    pub(crate) fn chosen(&self, choice: ExaminedDisks<'_>) -> Vec<DiskName> {
        let is_named = |disk: &DiskName| {
            let is = |name: &String| {
                disk.name == *name || format!("{}/{}", disk.hostname, disk.name) == *name
            };
            choice.named.is_empty() || choice.named.iter().any(is)
        };
        let known = self.busiest().into_iter();
        known.filter(is_named).take(choice.most).collect()
    }

    fn disks(&self) -> impl Iterator<Item = (DiskName, &DiskSeries)> {
        self.hosts.iter().flat_map(|(hostname, host)| {
            host.disks.iter().map(|(name, disk)| {
                let hostname = hostname.clone();
                let name = name.clone();
                (DiskName { hostname, name }, disk)
            })
        })
    }

    /// Lines of some disks.
    pub(crate) fn disk_lines(&self, chosen: &[DiskName], axis: &Axis) -> Vec<DiskLines> {
        let slots = axis.len();
        let lines = |disk: &DiskName| {
            let series = self.hosts.get(&disk.hostname)?.disks.get(&disk.name)?;
            Some(DiskLines {
                disk: disk.clone(),
                await_ms: series.await_ms.line(slots),
                iops: series.iops.line(slots),
                busy_fraction: series.busy.line(slots),
                queue: series.queue.line(slots),
            })
        };
        chosen.iter().filter_map(lines).collect()
    }

    /// Lines of some hosts.
    pub(crate) fn host_lines(&self, chosen: &[String], axis: &Axis) -> Vec<HostLines> {
        let slots = axis.len();
        let lines = |hostname: &String| {
            let host = self.hosts.get(hostname)?;
            Some(HostLines {
                hostname: hostname.clone(),
                cpu_busy_fraction: host.cpu_busy.line(slots),
                io_pressure_fraction: host.io_pressure.line(slots),
            })
        };
        chosen.iter().filter_map(lines).collect()
    }

    /// The disks as a verdict sees them, with their findings.
    pub(crate) fn evidence(&self, axis: &Axis, most: usize) -> Vec<verdict::ObservedDisk> {
        let slots = axis.len();
        let evidence = |disk: DiskName| {
            let host = self.hosts.get(&disk.hostname)?;
            let series = host.disks.get(&disk.name)?;
            let mut others = host.disks.values();
            Some(verdict::ObservedDisk {
                name: format!("{}/{}", disk.hostname, disk.name),
                iops: series.iops.means(slots),
                await_ms: series.await_ms.means(slots),
                busy: series.busy.means(slots),
                findings: self.findings_on(&disk, axis),
                layer: verdict::DiskLayer {
                    lies_on_others: !series.lies_on.is_empty(),
                    carries_others: others.any(|other| other.lies_on.contains(&disk.name)),
                },
            })
        };
        let chosen = self.busiest().into_iter().take(most);
        chosen.filter_map(evidence).collect()
    }

    /// Findings on a disk.
    fn findings_on(&self, disk: &DiskName, axis: &Axis) -> Vec<verdict::DiskFinding> {
        let slots = |finding: &OpenFinding| {
            let to = finding.ended.map_or(f64::INFINITY, seconds);
            let first = axis.slots(seconds(finding.began) - axis.slot_s() as f64, to);
            first.start..first.end.max(first.start + 1)
        };
        let of = |finding: &OpenFinding| {
            Some(verdict::DiskFinding {
                code: event_code(&finding.code)?,
                slots: slots(finding),
            })
        };
        let findings = self.findings.iter();
        findings
            .filter(|finding| finding.disk == *disk)
            .filter_map(of)
            .collect()
    }
}

/// The code of a finding by its word.
pub(crate) fn event_code(word: &str) -> Option<EventCode> {
    EventCode::ALL
        .iter()
        .copied()
        .find(|code| code.name() == word)
}

/// A finding of a host's event.
pub(crate) fn finding(hostname: &str, event: &study::watch::WatchEvent) -> Option<OpenFinding> {
    Some(OpenFinding {
        disk: DiskName {
            hostname: hostname.to_owned(),
            name: event.name.clone(),
        },
        code: event.code.name().to_owned(),
        severity: severity(event.severity).to_owned(),
        began: event.began.wall?,
        ended: event.ended.and_then(|ended| ended.wall),
        text: event.text.clone(),
        advice: event.advice.clone(),
    })
}

/// The word for a severity.
pub(crate) fn severity(severity: record::Severity) -> &'static str {
    match severity {
        record::Severity::Note => "note",
        record::Severity::Warn | record::Severity::Invalid => "warn",
    }
}

/// Start and end of an axis as timestamps.
pub(crate) fn span(axis: &Axis) -> (Timestamp, Timestamp) {
    (
        crate::axis::timestamp(axis.from()),
        crate::axis::timestamp(axis.to()),
    )
}
