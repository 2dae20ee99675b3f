//! The rate that foreground I/O on the same disk leaves: other partitions of it are in use while one is zeroed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::block::{Device, Devices};
use linux::diskstats::{Counter, DiskStats};
use reader::{ForegroundReport, Prober};
use record::{Bytes, Nanos};
use study::pace::{Allowed, Controller, Counts, Detector, Sample, Targets};

use super::place::Place;
use super::state::lock;

/// The controller is asked so often.
const LOOK: Duration = Duration::from_millis(40);
/// Time to wait while nothing is allowed.
const NAP: Nanos = Nanos(10_000_000);
/// A foreground request waits no longer than this for one of the zeroing's.
const LONGEST_REQUEST_S: f64 = 0.005;

/// Permission of a disk's thread to write, and its counts.
#[derive(Debug)]
pub(crate) struct Gate {
    allowed: Mutex<Allowed>,
    written: AtomicU64,
    in_flight: AtomicU64,
}

impl Gate {
    /// Nothing may be written yet.
    pub(crate) fn new() -> Gate {
        Gate {
            allowed: Mutex::new(Allowed::Nothing),
            written: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
        }
    }

    /// Bytes a second that may be written; an error with the time of the next look where none may be.
    pub(crate) fn rate(&self, now: Nanos) -> Result<Option<f64>, Nanos> {
        match *lock(&self.allowed) {
            Allowed::All => Ok(None),
            Allowed::Rate(rate) => Ok(Some(rate)),
            Allowed::Nothing => Err(now + NAP),
        }
    }

    /// A write is issued.
    pub(crate) fn issued(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// A write has completed, or failed: the kernel counts both.
    pub(crate) fn done(&self, bytes: Bytes) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.written.fetch_add(bytes.0, Relaxed);
    }
}

/// Watches the disk of one place.
pub(crate) struct Watch {
    counter: Counter,
    before: DiskStats,
    prober: Prober,
    controller: Controller,
    detector: Detector,
}

impl Watch {
    /// Of the whole disk on which it lies; `None` where the kernel does not count, or it cannot be probed.
    pub(crate) fn of(place: &Place, devices: &Devices, root: &Root) -> Option<Watch> {
        let device = devices.get(place.number)?;
        let whole = device.partition_of().and_then(|disk| devices.get(disk));
        let disk: &Device = whole.unwrap_or(device);
        let counter = disk
            .is_counted(root)
            .then(|| Counter::open(root, disk).ok())??;
        Some(Watch {
            before: counter.read().ok()?,
            counter,
            prober: Prober::start(root.locate(&device.node()), device.size).ok()?,
            controller: Controller::new(Targets::default()),
            detector: Detector::default(),
        })
    }

    /// Sets what may be written until the disk's thread has ended.
    pub(crate) fn run(mut self, gate: &Gate, ended: &AtomicBool) -> Option<ForegroundReport> {
        let mut looked = Instant::now();
        let mut gives = None;
        while !ended.load(Relaxed) {
            sleep(LOOK);
            let seconds = looked.elapsed().as_secs_f64();
            looked = Instant::now();
            self.look(gate, seconds, &mut gives);
        }
        let outcome = self.controller.outcome();
        outcome.beside.is_some().then(|| (&outcome).into())
    }

    fn look(&mut self, gate: &Gate, seconds: f64, gives: &mut Option<f64>) {
        let (probes, waiting_s) = self.prober.take();
        let written = gate.written.swap(0, Relaxed) as f64;
        let before = self.controller.allowed();
        if before == Allowed::All && written > 0.0 {
            let rate = written / seconds;
            let mean = gives.get_or_insert(rate);
            *mean += seconds.min(1.0) * (rate - *mean);
            self.controller.gives(*mean);
        }
        self.controller.request_takes(LONGEST_REQUEST_S);
        let counts = self.counts(written + (probes.len() * reader::PROBE_BYTES) as f64);
        let mut foreground = self.detector.take(seconds, counts, before == Allowed::All);
        foreground.waited_s = foreground.requests.unwrap_or(0.0) * probes.last().unwrap_or(&0.0);
        let allowed = self.controller.take(&Sample {
            seconds,
            foreground,
            latencies_s: &probes,
            waiting_s,
            timed: None,
            background: written,
            is_busy: gate.in_flight.load(Relaxed) > 0,
        });
        *lock(&gate.allowed) = allowed;
        self.prober.want(self.controller.probe_gap_s());
    }

    fn counts(&mut self, own: f64) -> Option<Counts> {
        let now = self.counter.read().ok()?;
        let counts = now.since(&std::mem::replace(&mut self.before, now))?;
        Some(Counts {
            read: counts.read_bytes as f64,
            written: counts.write_bytes as f64,
            own,
        })
    }
}
