//! Tests of the page of a watch, as text and in a browser.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use record::Nanos;
use record::sample::*;
use study::watch::WatchEvent;
use study::watch::{ChangeKind, EventChange};

use super::*;
use page::browser::{assert_drawn, assert_narrow};

/// Devices of a test.
struct Scene {
    disks: u32,
    array: u32,
    seconds: u64,
    gap: bool,
    has_wall: bool,
}

fn began() -> Timestamp {
    "2026-11-20T02:00:00Z".parse().unwrap()
}

/// A value that varies over time, the same in each run.
fn wave(second: u64, nth: u32, period: f64) -> f64 {
    let phase = second as f64 / period + f64::from(nth);
    1.0 + 0.4 * phase.sin() + 0.15 * (phase * 7.3).sin() + 0.1 * (phase * 31.7).cos()
}

impl Scene {
    fn devices(&self) -> Vec<Arc<Device>> {
        let mut devices: Vec<Device> = (0..self.disks)
            .map(|nth| {
                let name = format!("nvme{nth}n1");
                Device::by_name(DeviceId(nth), &name, SampleTime::default())
            })
            .collect();
        if self.array > 0 {
            let mut array = Device::by_name(DeviceId(self.disks), "md0", SampleTime::default());
            array.level = Some(record::raid::Level::Ten.into());
            array.lies_on = (0..self.array).map(DeviceId).collect();
            devices.insert(0, array);
        }
        devices.into_iter().map(Arc::new).collect()
    }

    fn moment(&self, second: u64) -> SampleTime {
        SampleTime {
            wall: self
                .has_wall
                .then(|| began() + SignedDuration::from_secs(second as i64)),
            elapsed: Nanos::from_secs(second),
        }
    }

    fn sample(&self, second: u64, devices: &[Arc<Device>]) -> Sample {
        let slow = (second > self.seconds / 2 && second < self.seconds * 3 / 5).then_some(9.0);
        let one = |device: &Arc<Device>| {
            let nth = device.id.0;
            let load = wave(second, nth, 97.0);
            let wait =
                wave(second, nth + 3, 41.0) * if nth == 1 { slow.unwrap_or(1.0) } else { 1.0 };
            let mut one = DeviceSample::unknown(Arc::clone(device));
            let flow = |rate: f64, kib: f64, ms: f64| Flow {
                iops: Some(PerSecond(rate)),
                bytes: Some(BytesPerSecond(rate * kib * 1024.0)),
                wait: Some(Nanos((ms * 1e6) as u64)),
                ..Flow::default()
            };
            one.read = flow(900.0 * load, 16.0, 0.8 * wait);
            one.write = flow(350.0 * load, 32.0, 1.6 * wait);
            one.mean_in_flight = Some(1.3 * load * wait);
            one.sum_up();
            one
        };
        let share = |nth: u32| PressureLine {
            stalled: Some(Fraction(0.1 * wave(second, nth, 60.0))),
            ..PressureLine::default()
        };
        let net = |nth: u32| NetFlow {
            bytes: BytesPerSecond(4e7 * wave(second, nth, 80.0)),
            ..NetFlow::default()
        };
        Sample {
            at: self.moment(second),
            length: Nanos::from_secs(1),
            gap: (self.gap && second == self.seconds / 4 + 120)
                .then_some(Gap::Unseen(Nanos::from_secs(120))),
            host: HostSample {
                pressure: Some(Pressure {
                    some: share(1),
                    full: Some(share(2)),
                }),
                interfaces: vec![InterfaceSample {
                    name: "ens5".into(),
                    rx: net(1),
                    tx: net(2),
                }],
                ..HostSample::default()
            },
            devices: devices.iter().map(one).collect(),
            removed: Vec::new(),
        }
    }

    fn reads_of_an_hour(&self) -> FigureSeries {
        let mut course = FigureSeries::default();
        let devices = self.devices();
        for second in 1..=self.seconds {
            if self.gap && (self.seconds / 4..self.seconds / 4 + 120).contains(&second) {
                continue;
            }
            let sample = self.sample(second, &devices);
            course.observe(&RecordedInterval::taken(sample), &[]);
        }
        let event = |id: u64, code: EventCode, subject: Subject, name: &str| WatchEvent {
            id,
            code,
            severity: record::Severity::Warn,
            subject,
            name: name.to_owned(),
            began: self.moment(self.seconds / 2),
            ended: Some(self.moment(self.seconds * 3 / 5)),
            text: "Reads take 7.20 ms here, and 0.80 ms on its siblings.".to_owned(),
            advice: "Replace the volume <script>alert(1)</script>.".to_owned(),
            figures: Vec::new(),
        };
        let about = Subject::Device(DeviceId(1));
        let change = |event: WatchEvent| EventChange {
            kind: ChangeKind::Closed,
            event,
        };
        course.close(&[
            change(event(1, EventCode::SlowMember, about, "nvme1n1")),
            change(WatchEvent {
                severity: record::Severity::Note,
                began: self.moment(self.seconds / 10),
                ended: Some(self.moment(self.seconds / 8)),
                ..event(2, EventCode::Writeback, Subject::Host, "host")
            }),
        ]);
        course
    }

    fn page(&self) -> String {
        let mark = |number: i64, share: u64, text: &str| Mark {
            number,
            at: began() + SignedDuration::from_secs((self.seconds / share) as i64),
            host: "db-1".to_owned(),
            text: text.to_owned(),
        };
        let marks = [
            mark(1, 3, "deploy 1.4.2"),
            Mark {
                at: began() - SignedDuration::from_hours(1),
                ..mark(2, 1, "long before")
            },
        ];
        let source = SampleSource {
            hostname: Some("db-1".to_owned()),
            kernel: Some("6.1.0".to_owned()),
            ..SampleSource::default()
        };
        let page = page(&self.reads_of_an_hour(), &marks, &source, &[]).unwrap();
        String::from_utf8(page).unwrap()
    }
}

const HOUR: Scene = Scene {
    disks: 5,
    array: 4,
    seconds: 3_600,
    gap: true,
    has_wall: true,
};

#[test]
fn a_page_has_findings_marks_gaps_and_no_markup_of_others() {
    let page = HOUR.page();
    assert!(page.contains("slow-member") && page.contains(">7.20 ms<"));
    assert!(page.contains("deploy 1.4.2") && !page.contains("long before"));
    assert!(page.contains("There are no data for one stretch of time"));
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("md0 (raid10)"));
    assert!(page.contains("Await of reads, by member"));
}

#[test]
fn many_devices_are_drawn_as_maps_and_few_of_them_apart() {
    let page = Scene {
        disks: 64,
        array: 0,
        seconds: 900,
        ..HOUR
    }
    .page();
    assert_eq!(page.matches("id=\"device-").count(), MAX_DISK_CHARTS);
    assert!(page.contains("id=\"device-1\""), "the one with a finding");
    assert!(page.contains("52 more devices"));
    assert_eq!(
        page.matches("<th scope=\"row\" class=\"data\">nvme")
            .count(),
        64
    );
}

#[test]
fn chromium_draws_the_page_of_a_watch() {
    assert_drawn("watch", &HOUR.page());
    assert_narrow("watch", &HOUR.page());
    let log = Scene {
        has_wall: false,
        seconds: 120,
        gap: false,
        ..HOUR
    };
    assert_drawn("watch-log", &log.page());
}

#[test]
fn chromium_draws_a_day_of_many_devices() {
    let many = Scene {
        disks: 64,
        array: 16,
        seconds: 5_000,
        ..HOUR
    };
    assert_drawn("watch-many", &many.page());
}

#[test]
fn an_empty_page_says_so() {
    let page = page(&FigureSeries::default(), &[], &SampleSource::default(), &[]).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("Nothing was seen."));
}
