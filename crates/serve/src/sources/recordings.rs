//! Recordings, markers and runs of the ledger.

use std::path::PathBuf;

use jiff::Timestamp;
use ledger::{Ledger, ReplayedSample};
use record::sample::{DeviceKind, DeviceSample, HostSample, Sample};

use super::disks::{self, HostSeries, Hosts};
use super::pool::Pool;
use crate::axis::{Axis, Value, seconds};
use crate::documents::{Marker, SourceDocument};

/// Reader of a ledger, whose file need not exist yet.
pub(crate) struct Recordings {
    path: PathBuf,
    pool: Pool<Option<Ledger>>,
}

impl Recordings {
    /// The ledger at a path.
    pub(crate) fn new(path: PathBuf) -> Recordings {
        let name = format!("ledger {}", path.display());
        Recordings {
            path,
            pool: Pool::new(name, "ledger"),
        }
    }

    /// Path of the ledger.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// The source and its state.
    pub(crate) fn source(&self) -> SourceDocument {
        self.pool.source()
    }

    /// Reads the ledger; `None` if its file does not exist yet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn read<R>(
        &self,
        work: impl Fn(&Ledger) -> anyhow::Result<R>,
    ) -> anyhow::Result<Option<R>> {
        if !self.path.exists() {
            return Ok(None);
        }
        let answer = self.pool.with(
            || Ok(None),
            |kept: &mut Option<Ledger>| {
                let ledger = match kept.take().filter(Ledger::is_current) {
                    Some(ledger) => ledger,
                    None => Ledger::open(&self.path)?,
                };
                let answer = work(&ledger)?;
                // A read-only ledger may be opened as a file that does not change (`immutable`).
                *kept = Some(ledger).filter(Ledger::is_writable);
                Ok(answer)
            },
        );
        answer.map(Some)
    }

    /// Markers between two times.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn markers(&self, from: Timestamp, to: Timestamp) -> anyhow::Result<Vec<Marker>> {
        let marks = self.read(|ledger| Ok(ledger.marks(from, to)?))?;
        Ok(marks
            .unwrap_or_default()
            .into_iter()
            .map(Marker::from)
            .collect())
    }

    /// Names of the hosts with recordings.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn hosts(&self) -> anyhow::Result<Vec<String>> {
        let hosts = self.read(|ledger| {
            let recordings = ledger.recordings()?;
            let mut hosts: Vec<String> = recordings.into_iter().map(|one| one.host).collect();
            hosts.sort();
            hosts.dedup();
            Ok(hosts)
        })?;
        Ok(hosts.unwrap_or_default())
    }

    /// Recorded series of all hosts, or of one, on an axis.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn series(&self, axis: &Axis, host: Option<&str>) -> anyhow::Result<Hosts> {
        let hosts = self.hosts()?;
        let read = |ledger: &Ledger| {
            let mut all = Hosts::default();
            for name in hosts
                .iter()
                .filter(|name| host.is_none_or(|host| host == *name))
            {
                add_host(ledger, name, axis, &mut all)?;
            }
            Ok(all)
        };
        Ok(self.read(read)?.unwrap_or_default())
    }
}

fn add_host(ledger: &Ledger, name: &str, axis: &Axis, all: &mut Hosts) -> anyhow::Result<()> {
    let (from, to) = disks::span(axis);
    let mut host = HostSeries::default();
    let mut events = Vec::new();
    for played in ledger.replay(name, from, to)? {
        // A block that cannot be read is a gap.
        let Ok(ReplayedSample {
            recorded,
            opened,
            closed,
        }) = played
        else {
            continue;
        };
        events.extend(opened);
        for event in closed {
            match events
                .iter_mut()
                .find(|open: &&mut study::watch::WatchEvent| {
                    open.id == event.id && open.ended.is_none()
                }) {
                Some(open) => *open = event,
                None => events.push(event),
            }
        }
        add_sample(&recorded, axis, &mut host);
    }
    host.disks.retain(|_, disk| disk.iops.total() > 0.0);
    all.hosts.insert(name.to_owned(), host);
    all.findings.extend(
        events
            .iter()
            .filter_map(|event| disks::finding(name, event)),
    );
    Ok(())
}

fn add_sample(recorded: &record::sample::RecordedInterval, axis: &Axis, host: &mut HostSeries) {
    let sample = &recorded.sample;
    let Some(at) = sample.at.wall.map(seconds) else {
        return;
    };
    let length = sample.length.as_secs_f64();
    let slots = axis.covered(at - length, at);
    let (least, most) = (recorded.least(), recorded.most());
    for slot in slots {
        let spread = |of: fn(&HostSample) -> Option<f64>| Value {
            mean: of(&sample.host).unwrap_or(f64::NAN),
            min: of(&least.host).unwrap_or(f64::NAN),
            max: of(&most.host).unwrap_or(f64::NAN),
        };
        host.cpu_busy.add(slot, spread(cpu_busy), length);
        host.io_pressure.add(slot, spread(io_pressure), length);
        for (nth, device) in sample.devices.iter().enumerate() {
            add_device(device, nth, (least, most), (slot, length), host);
        }
    }
    for device in &sample.devices {
        add_below(device, sample, host);
    }
}

/// Adds the disks that a device lies on; a partition stands for its disk.
fn add_below(device: &DeviceSample, sample: &Sample, host: &mut HostSeries) {
    let series = host.disks.get_mut(&device.device.name);
    let Some(series) = series.filter(|series| series.lies_on.is_empty()) else {
        return;
    };
    for below in sample.below(&device.device) {
        match below.device.kind {
            DeviceKind::Partition => {
                let disks = sample.below(&below.device);
                series
                    .lies_on
                    .extend(disks.map(|disk| disk.device.name.clone()));
            }
            _ => {
                series.lies_on.insert(below.device.name.clone());
            }
        }
    }
}

fn add_device(
    device: &DeviceSample,
    nth: usize,
    (least, most): (&Sample, &Sample),
    (slot, length): (usize, f64),
    host: &mut HostSeries,
) {
    if matches!(
        device.device.kind,
        DeviceKind::Partition | DeviceKind::Memory
    ) {
        return;
    }
    let id = device.device.id;
    let low = least.near(nth, id).unwrap_or(device);
    let high = most.near(nth, id).unwrap_or(device);
    let spread = |of: fn(&DeviceSample) -> Option<f64>| Value {
        mean: of(device).unwrap_or(f64::NAN),
        min: of(low).or(of(device)).unwrap_or(f64::NAN),
        max: of(high).or(of(device)).unwrap_or(f64::NAN),
    };
    let series = match host.disks.get_mut(&device.device.name) {
        Some(series) => series,
        None => host.disks.entry(device.device.name.clone()).or_default(),
    };
    let requests = iops(device).unwrap_or(0.0) * length;
    series.iops.add(slot, spread(iops), length);
    // A latency is weighted by the number of requests.
    series.await_ms.add(slot, spread(await_ms), requests);
    series.busy.add(slot, spread(busy), length);
    series
        .queue
        .add(slot, spread(|one| one.mean_in_flight), length);
}

/// I/Os per second.
pub(crate) fn iops(device: &DeviceSample) -> Option<f64> {
    device.all.iops.map(|iops| iops.0)
}

/// Mean latency in ms.
pub(crate) fn await_ms(device: &DeviceSample) -> Option<f64> {
    device.all.wait.map(|wait| wait.0 as f64 / 1e6)
}

/// Share of the time in which a request was in flight.
pub(crate) fn busy(device: &DeviceSample) -> Option<f64> {
    device.busy.map(|busy| busy.0)
}

/// Share of the processors' time that was not idle.
pub(crate) fn cpu_busy(host: &HostSample) -> Option<f64> {
    let cpu = host.cpu.as_ref()?;
    Some((1.0 - cpu.idle.0 - cpu.iowait.0).clamp(0.0, 1.0))
}

/// Share of the time in which a task waited for I/O.
pub(crate) fn io_pressure(host: &HostSample) -> Option<f64> {
    host.pressure.as_ref()?.some.stalled.map(|share| share.0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use record::sample::{Device, DeviceId, SampleTime};

    use super::*;
    use crate::sources::disks::DiskSeries;

    fn device(id: u32, name: &str, kind: DeviceKind, lies_on: &[u32]) -> DeviceSample {
        let mut device = Device::by_name(DeviceId(id), name, SampleTime::default());
        device.kind = kind;
        device.lies_on = lies_on.iter().map(|id| DeviceId(*id)).collect();
        DeviceSample::unknown(Arc::new(device))
    }

    #[test]
    fn an_array_lies_on_disks_also_through_partitions() {
        let sample = Sample {
            devices: vec![
                device(0, "sda", DeviceKind::Disk, &[]),
                device(1, "sdb", DeviceKind::Disk, &[]),
                device(2, "sdb1", DeviceKind::Partition, &[1]),
                device(3, "md0", DeviceKind::Array, &[0, 2]),
            ],
            ..Sample::default()
        };
        let names = ["sda", "sdb", "md0"].map(str::to_owned);
        let mut host = HostSeries {
            disks: names.map(|name| (name, DiskSeries::default())).into(),
            ..HostSeries::default()
        };
        for device in &sample.devices {
            add_below(device, &sample, &mut host);
        }
        let below = |name: &str| Vec::from_iter(host.disks[name].lies_on.clone());
        assert_eq!(below("md0"), ["sda", "sdb"]);
        assert!(below("sda").is_empty() && below("sdb").is_empty());
    }
}
