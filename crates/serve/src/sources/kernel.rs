//! Current figures of this host's disks, sampled while the server runs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use linux::Root;
use record::sample::{ArraySample, DeviceKind, DeviceSample, Flow, Sample, SyncAction};
use study::watch::WatchEvent;

use super::disks::severity;
use super::pool::lock;
use super::recordings::{await_ms, busy, cpu_busy, io_pressure};
use crate::documents::{
    self, DiskNow, Finding, FindingFigure, HostNow, HostSource, HostState, RoundedFigure,
    SourceState,
};

/// Interval of samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Age from which figures are stale.
const STALE_AGE: Duration = Duration::from_secs(5);

/// The last sample, with the findings that have not ended.
#[derive(Default)]
struct LastSample {
    host: Option<(Instant, HostNow)>,
    error: Option<(String, Timestamp)>,
}

/// A thread that samples this host's counters.
pub(crate) struct HostWatch {
    seen: Arc<Mutex<LastSample>>,
    stop: Arc<AtomicBool>,
}

impl HostWatch {
    /// Starts the thread, which calls `publish` after each sample.
    pub(crate) fn start(root: &Root, publish: impl Fn() + Send + 'static) -> HostWatch {
        let seen = Arc::new(Mutex::new(LastSample::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (root, shown, stopped) = (root.clone(), Arc::clone(&seen), Arc::clone(&stop));
        let watch = move || {
            let hostname = linux::machine::hostname(&root);
            let end = watch::follow(&root, SAMPLE_INTERVAL, &stopped, |sample, open| {
                let host = host(&hostname, sample, open);
                lock(&shown).host = Some((Instant::now(), host));
                publish();
            });
            if let Err(error) = end {
                lock(&shown).error = Some((error.to_string(), Timestamp::now()));
            }
        };
        let thread = std::thread::Builder::new()
            .name("disks".to_owned())
            .spawn(watch);
        if let Err(error) = thread {
            lock(&seen).error = Some((error.to_string(), Timestamp::now()));
        }
        HostWatch { seen, stop }
    }

    /// Current figures of this host; `None` before the first sample.
    pub(crate) fn host(&self) -> Option<HostNow> {
        let seen = lock(&self.seen);
        let (at, host) = seen.host.as_ref()?;
        let age = at.elapsed();
        Some(HostNow {
            state: match age > STALE_AGE {
                true => HostState::Stale,
                false => HostState::Live,
            },
            age_s: RoundedFigure(age.as_secs_f64()),
            ..host.clone()
        })
    }

    /// The source and its state.
    pub(crate) fn source(&self) -> documents::SourceDocument {
        let error = lock(&self.seen).error.clone();
        let (error, since) =
            error.map_or((None, None), |(error, since)| (Some(error), Some(since)));
        documents::SourceDocument {
            name: "disks of this host".to_owned(),
            kind: "disks",
            state: match error {
                None => SourceState::Ok,
                Some(_) => SourceState::Away,
            },
            error,
            since,
        }
    }
}

impl Drop for HostWatch {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

fn host(hostname: &str, sample: &Sample, open: &[&WatchEvent]) -> HostNow {
    let known = |value: Option<f64>| RoundedFigure(value.unwrap_or(f64::NAN));
    let figures = &sample.host;
    let iowait = figures.cpu.as_ref().map(|cpu| cpu.iowait.0);
    let dirty = figures.memory.and_then(|memory| memory.dirty);
    HostNow {
        hostname: hostname.to_owned(),
        source: HostSource::Kernel,
        state: HostState::Live,
        age_s: RoundedFigure(0.0),
        cpu_busy_fraction: known(cpu_busy(figures)),
        iowait_fraction: known(iowait),
        io_pressure_fraction: known(io_pressure(figures)),
        load_1: known(figures.load.map(|load| load.one)),
        dirty_bytes: known(dirty.map(|bytes| bytes.0 as f64)),
        disks: sample
            .devices
            .iter()
            .filter(|device| is_shown(device))
            .map(|device| disk(device, sample, open))
            .collect(),
        findings: open.iter().map(|event| finding(event)).collect(),
    }
}

/// True for disks and what is stacked on them; for loop devices and memory only in use.
fn is_shown(device: &DeviceSample) -> bool {
    match device.device.kind {
        DeviceKind::Disk | DeviceKind::Array | DeviceKind::Mapper => true,
        DeviceKind::Partition => false,
        DeviceKind::Loop | DeviceKind::Memory => device.all.is_active(),
    }
}

fn disk(device: &DeviceSample, sample: &Sample, open: &[&WatchEvent]) -> DiskNow {
    let facts = &device.device;
    let findings = open.iter().filter(|event| event.name == facts.name);
    let below = sample.below(facts).map(|below| below.device.name.clone());
    DiskNow {
        name: facts.name.clone(),
        alias: facts.alias.clone(),
        kind: facts.kind.name(),
        model: facts.model.clone(),
        size_bytes: facts.size.map(|size| size.0),
        lies_on: below.collect(),
        read: flow(&device.read),
        write: flow(&device.write),
        await_ms: RoundedFigure(await_ms(device).unwrap_or(f64::NAN)),
        queue: RoundedFigure(device.mean_in_flight.unwrap_or(f64::NAN)),
        busy_fraction: RoundedFigure(busy(device).unwrap_or(f64::NAN)),
        findings: findings.map(|event| event.code.name().to_owned()).collect(),
        array: device.array.as_ref().map(array),
    }
}

fn array(state: &ArraySample) -> documents::Array {
    let known = |value: Option<f64>| RoundedFigure(value.unwrap_or(f64::NAN));
    let action = state.action.unwrap_or(SyncAction::Idle);
    let position = state.position.filter(|_| state.is_at_work());
    documents::Array {
        action: action.name().to_owned(),
        done_fraction: known(position.map(|position| position.fraction())),
        speed_bytes_per_s: known(state.speed.map(|speed| speed.0)),
        missing_members: known(state.degraded.map(f64::from)),
    }
}

fn flow(flow: &Flow) -> documents::Flow {
    documents::Flow {
        iops: RoundedFigure(flow.iops.map_or(f64::NAN, |iops| iops.0)),
        bytes_per_s: RoundedFigure(flow.bytes.map_or(f64::NAN, |bytes| bytes.0)),
        await_ms: RoundedFigure(flow.wait.map_or(f64::NAN, |wait| wait.0 as f64 / 1e6)),
    }
}

fn finding(event: &WatchEvent) -> Finding {
    let figures = event.figures.iter().map(|figure| FindingFigure {
        key: figure.key.clone(),
        value: RoundedFigure(figure.value),
    });
    Finding {
        code: event.code.name().to_owned(),
        severity: severity(event.severity).to_owned(),
        name: event.name.clone(),
        began: event.began.wall,
        text: event.text.clone(),
        advice: event.advice.clone(),
        figures: figures.collect(),
    }
}

#[cfg(test)]
mod tests {
    use record::Bytes;
    use record::sample::{BytesPerSecond, Progress};

    use super::*;

    #[test]
    fn a_check_is_shown_with_its_position_while_it_is_at_work() {
        let position = Progress {
            done: Bytes(25),
            of: Bytes(100),
        };
        let mut state = ArraySample {
            action: Some(SyncAction::Check),
            position: Some(position),
            speed: Some(BytesPerSecond(5e6)),
            ..ArraySample::default()
        };
        let shown = array(&state);
        assert_eq!(
            (
                shown.action.as_str(),
                shown.done_fraction.0,
                shown.speed_bytes_per_s.0
            ),
            ("check", 0.25, 5e6)
        );
        assert!(shown.is_at_work());
        // The array waits for the check or rebuild of another one.
        state.position = None;
        assert!(!array(&state).is_at_work());
        state.action = None;
        assert_eq!(array(&state).action, "idle");
    }
}
