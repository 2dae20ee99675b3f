//! Response times and disks whose truth is known, written as `tally` and `watch --record` write them.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::process::Stdio;
use std::sync::Arc;

use jiff::Timestamp;
use ledger::{Ledger, Owner, OwnerLiveness, RecordedEvent};
use record::sample::{
    BytesPerSecond, CpuShares, Device, DeviceId, DeviceSample, Flow, Fraction, HostSample,
    PerSecond, Sample, SampleSource, SampleTime, SourceKind,
};
use record::{Nanos, Severity, Subject};
use study::watch::{EventCode, WatchEvent};

use super::support::{Place, Words};

/// A service in a minute. Its response times are lognormal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Minute {
    pub(crate) requests: f64,
    pub(crate) p50_ms: f64,
    /// p99 over p50.
    pub(crate) tail: f64,
}

impl Default for Minute {
    fn default() -> Minute {
        Minute {
            requests: 600.0,
            p50_ms: 20.0,
            tail: 6.0,
        }
    }
}

/// A disk in a minute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskMinute {
    pub(crate) iops: f64,
    pub(crate) await_ms: f64,
    pub(crate) busy: f64,
    pub(crate) finding: Option<EventCode>,
}

impl Default for DiskMinute {
    fn default() -> DiskMinute {
        DiskMinute {
            iops: 200.0,
            await_ms: 1.0,
            busy: 0.2,
            finding: None,
        }
    }
}

/// Standard normal quantiles of the response times that stand for a minute's, and the share of each.
const QUANTILES: [(f64, f64); 12] = [
    (-1.645, 0.1),
    (-1.036, 0.1),
    (-0.674, 0.1),
    (-0.385, 0.1),
    (-0.126, 0.1),
    (0.126, 0.1),
    (0.385, 0.1),
    (0.674, 0.1),
    (1.036, 0.1),
    (1.440, 0.05),
    (1.881, 0.035),
    (2.576, 0.015),
];

/// A place with a store and a ledger.
pub(crate) struct World<'a> {
    place: &'a Place,
    /// The minute that was complete when this began.
    now: i64,
}

impl<'a> World<'a> {
    pub(crate) fn new(place: &'a Place) -> World<'a> {
        World {
            place,
            now: Timestamp::now().as_second().div_euclid(60) - 1,
        }
    }

    /// A minute before now.
    pub(crate) fn minute(&self, before: i64) -> i64 {
        self.now + before
    }

    /// Minutes before now.
    pub(crate) fn minutes(&self, from: i64, to: i64) -> Range<i64> {
        self.now + from..self.now + to
    }

    /// The start of a minute as documents have it.
    pub(crate) fn time(&self, minute: i64) -> String {
        Timestamp::from_second(minute * 60).unwrap().to_string()
    }

    /// Sums the events of a tag.
    pub(crate) fn tally(&self, tag: &str, minutes: Range<i64>, of: impl Fn(i64) -> Minute) {
        let mut events = String::new();
        write_events(&mut events, tag, minutes, of);
        self.tally_events(&events, "");
    }

    /// Sums events into the default store, or one that is named.
    pub(crate) fn tally_events(&self, events: &str, arguments: &(impl Words + ?Sized)) {
        let words = [vec!["tally", "--from", "-"], arguments.words()].concat();
        let mut command = self.place.command(&words);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(events.as_bytes()).unwrap();
        drop(input);
        let said = child.wait_with_output().unwrap();
        assert!(said.status.success(), "{said:?}");
    }

    /// Records a disk.
    pub(crate) fn record(
        &self,
        host: &str,
        disk: &str,
        minutes: Range<i64>,
        of: impl Fn(i64) -> DiskMinute,
    ) {
        let mut ledger = Ledger::open(self.place.ledger()).unwrap();
        record(&mut ledger, host, disk, minutes, of);
    }

    /// Sets a marker.
    pub(crate) fn mark(&self, minute: i64, text: &str) {
        let mut ledger = Ledger::open(self.place.ledger()).unwrap();
        let at = Timestamp::from_second(minute * 60 + 5).unwrap();
        ledger.mark(at, "db-1", text).unwrap();
    }
}

/// The events of a tag, one a line.
pub(crate) fn write_events(
    events: &mut String,
    tag: &str,
    minutes: Range<i64>,
    of: impl Fn(i64) -> Minute,
) {
    for minute in minutes {
        let service = of(minute);
        let sigma = service.tail.ln() / 2.326;
        for (normal, share) in QUANTILES {
            let ms = service.p50_ms * (sigma * normal).exp();
            let count = service.requests * share;
            let at = minute * 60 + 30;
            writeln!(
                events,
                "{{\"tag\":\"{tag}\",\"n\":{count:.3},\"ms\":{ms:.4},\"ts\":{at}}}"
            )
            .unwrap();
        }
    }
}

/// Records a disk of a host.
pub(crate) fn record(
    ledger: &mut Ledger,
    host: &str,
    disk: &str,
    minutes: Range<i64>,
    of: impl Fn(i64) -> DiskMinute,
) {
    let owner = Owner {
        host: host.to_owned(),
        machine: String::new(),
        boot: String::new(),
        namespace: String::new(),
        pid: std::process::id(),
        started: 0,
    };
    let source = SampleSource {
        kind: SourceKind::Live,
        hostname: Some(host.to_owned()),
        ..SampleSource::default()
    };
    let mut recording = ledger
        .begin_recording(&owner, &source, |_| OwnerLiveness::Dead)
        .unwrap();
    let device = Arc::new(Device::by_name(DeviceId(0), disk, SampleTime::default()));
    let first = minutes.start;
    let at = |minute: i64| SampleTime {
        wall: Some(Timestamp::from_second((minute + 1) * 60).unwrap()),
        elapsed: Nanos::from_secs(60 * (minute + 1 - first) as u64),
    };
    let mut event: Option<WatchEvent> = None;
    let mut number = 0;
    let mut samples = Vec::new();
    let mut noted = Vec::new();
    for minute in minutes {
        let seen = of(minute);
        let mut sample = DeviceSample::unknown(Arc::clone(&device));
        sample.read = Flow {
            iops: Some(PerSecond(seen.iops)),
            bytes: Some(BytesPerSecond(seen.iops * 16384.0)),
            wait: Some(Nanos((seen.await_ms * 1e6) as u64)),
            ..Flow::default()
        };
        sample.mean_in_flight = Some(seen.iops * seen.await_ms / 1000.0);
        sample.busy = Some(Fraction(seen.busy));
        sample.sum_up();
        samples.push(Sample {
            at: at(minute),
            length: Nanos::from_secs(60),
            host: HostSample {
                cpu: Some(CpuShares {
                    user: Fraction(0.3),
                    idle: Fraction(0.7),
                    ..CpuShares::default()
                }),
                ..HostSample::default()
            },
            devices: vec![sample],
            ..Sample::default()
        });
        let open = event.as_ref().map(|event| event.code);
        if open != seen.finding {
            if let Some(mut over) = event.take() {
                over.ended = Some(at(minute - 1));
                noted.push(RecordedEvent {
                    event: over,
                    found: at(minute),
                });
            }
            if let Some(code) = seen.finding {
                number += 1;
                let begun = WatchEvent {
                    id: number,
                    code,
                    severity: Severity::Warn,
                    subject: Subject::Device(DeviceId(0)),
                    name: disk.to_owned(),
                    began: at(minute - 1),
                    ended: None,
                    text: "It was seen.".to_owned(),
                    advice: "Act.".to_owned(),
                    figures: Vec::new(),
                };
                noted.push(RecordedEvent {
                    event: begun.clone(),
                    found: at(minute),
                });
                event = Some(begun);
            }
        }
    }
    ledger.record(&mut recording, &samples, &noted).unwrap();
    ledger.end_recording(&recording).unwrap();
}
