use std::sync::Arc;

use super::WatchEvent;
use record::raid::Level;
use record::sample::{
    ArraySample, Device, DeviceId, DeviceSample, Flow, Fraction, HostSample, KernelError,
    KernelErrorKind, Member, Memory, PerSecond, SyncAction, TimeOverLimits, VendorPage,
    VendorSample,
};
use record::{Bytes, Nanos};

use super::simulated::{Disk, Host};
use super::*;
use crate::simulate::Rng;

fn at(seconds: u64) -> SampleTime {
    SampleTime {
        wall: None,
        elapsed: Nanos::from_secs(seconds),
    }
}

/// A second in which a disk completed `iops` requests with `in_flight` in flight.
fn second(number: u64, iops: f64, in_flight: Option<u64>) -> Sample {
    let device = Device::by_name(DeviceId(0), "nvme1n1", at(0));
    let mut device = DeviceSample::unknown(Arc::new(device));
    device.read = Flow {
        iops: Some(PerSecond(iops)),
        ..Flow::default()
    };
    device.in_flight = in_flight;
    device.busy = Some(Fraction(1.0));
    device.sum_up();
    Sample {
        at: at(number),
        length: Nanos::from_secs(1),
        devices: vec![device],
        ..Sample::default()
    }
}

fn kinds(changes: &[EventChange]) -> Vec<(ChangeKind, EventCode)> {
    changes
        .iter()
        .map(|change| (change.kind, change.event.code))
        .collect()
}

#[test]
fn a_stall_is_found_while_it_lasts_and_is_over_when_requests_complete_again() {
    let mut watch = Watch::new(Settings::default());
    assert!(watch.observe(&second(1, 100.0, Some(7))).is_empty());
    assert!(watch.observe(&second(2, 0.0, Some(7))).is_empty());
    let opened = watch.observe(&second(3, 0.0, Some(7)));
    assert_eq!(kinds(&opened), [(ChangeKind::Opened, EventCode::Stalled)]);
    let event = &opened[0].event;
    assert_eq!(event.began, at(1));
    assert_eq!(
        event.text,
        "7 requests are in flight on nvme1n1 and nothing has completed for 2.00 s."
    );
    assert!(watch.observe(&second(4, 0.0, Some(7))).is_empty());
    assert_eq!(watch.open().count(), 1);
    // An occasional completion does not end the event at once.
    for number in 5..10 {
        assert!(watch.observe(&second(number, 3.0, Some(7))).is_empty());
    }
    let closed = watch.observe(&second(10, 3.0, Some(7)));
    assert_eq!(kinds(&closed), [(ChangeKind::Closed, EventCode::Stalled)]);
    assert_eq!(closed[0].event.ended, Some(at(4)));
    assert!(watch.finish().is_empty());
}

#[test]
fn an_idle_disk_has_not_stalled() {
    let mut watch = Watch::new(Settings::default());
    for number in 1..20 {
        let mut idle = second(number, 0.0, Some(0));
        idle.devices[0].busy = Some(Fraction(0.0));
        assert!(watch.observe(&idle).is_empty());
    }
}

#[test]
fn a_log_that_does_not_know_what_is_in_flight_shows_a_stall_by_its_busy_time() {
    let mut watch = Watch::new(Settings::default());
    watch.observe(&second(1, 0.0, None));
    let opened = watch.observe(&second(2, 0.0, None));
    assert_eq!(kinds(&opened), [(ChangeKind::Opened, EventCode::Stalled)]);
}

#[test]
fn sleep_ends_what_lasted_and_begins_nothing() {
    let mut watch = Watch::new(Settings::default());
    for number in 1..=3 {
        watch.observe(&second(number, 0.0, Some(1)));
    }
    let mut after = second(1000, 0.0, Some(1));
    after.gap = Some(Gap::Suspended(Nanos::from_secs(996)));
    let changes = watch.observe(&after);
    assert_eq!(kinds(&changes), [(ChangeKind::Closed, EventCode::Stalled)]);
}

#[test]
fn memory_at_its_limit_is_found_after_a_while() {
    let sample = |number: u64, dirty: u64| Sample {
        host: HostSample {
            memory: Some(Memory {
                dirty: Some(Bytes::mib(dirty)),
                writeback: Some(Bytes::mib(10)),
                limit: Some(Bytes::mib(200)),
                background_limit: Some(Bytes::mib(100)),
                ..Memory::default()
            }),
            ..HostSample::default()
        },
        at: at(number),
        length: Nanos::from_secs(1),
        ..Sample::default()
    };
    let mut watch = Watch::new(Settings::default());
    for number in 1..10 {
        assert!(watch.observe(&sample(number, 130)).is_empty());
    }
    watch.observe(&sample(10, 150));
    watch.observe(&sample(11, 150));
    let opened = watch.observe(&sample(12, 150));
    assert_eq!(kinds(&opened), [(ChangeKind::Opened, EventCode::Writeback)]);
    assert_eq!(opened[0].event.began, at(9));
}

#[test]
fn errors_of_the_log_are_one_event_until_it_is_silent() {
    let mut watch = Watch::new(Settings::default());
    let mut loud = second(1, 5.0, Some(0));
    loud.host.errors = vec![KernelError {
        kind: KernelErrorKind::Io,
        device: Some("nvme1n1".to_owned()),
        text: "I/O error, dev nvme1n1, sector 8".to_owned(),
    }];
    let opened = watch.observe(&loud);
    assert_eq!(kinds(&opened), [(ChangeKind::Opened, EventCode::Errors)]);
    assert_eq!(opened[0].event.subject, Subject::Device(DeviceId(0)));
    loud.at = at(2);
    assert!(watch.observe(&loud).is_empty());
    for number in 3..=62 {
        assert!(watch.observe(&second(number, 5.0, Some(0))).is_empty());
    }
    let closed = watch.observe(&second(63, 5.0, Some(0)));
    assert_eq!(kinds(&closed), [(ChangeKind::Closed, EventCode::Errors)]);
    assert!(closed[0].event.text.contains("2 errors"));
}

#[test]
fn a_member_that_is_missing_is_an_error_of_the_array() {
    let mut sample = second(1, 5.0, Some(0));
    sample.devices[0].array = Some(ArraySample {
        wanted: Some(4),
        degraded: Some(1),
        members: vec![Member {
            device: None,
            name: "vdc".to_owned(),
            slot: None,
            state: vec!["faulty".to_owned()],
            errors: None,
        }],
        ..ArraySample::default()
    });
    let opened = Watch::new(Settings::default()).observe(&sample);
    assert_eq!(
        opened[0].event.text,
        "nvme1n1 lacks 1 of its 4 members; md failed vdc. This was the case when the watch began."
    );
}

#[test]
fn corrections_of_md_are_reported_of_an_array_that_lacks_a_member() {
    let sample = |number: u64, degraded: u32, errors: u64| {
        let mut sample = second(number, 5.0, Some(0));
        sample.devices[0].array = Some(ArraySample {
            degraded: Some(degraded),
            members: vec![Member {
                device: None,
                name: "vdc".to_owned(),
                slot: Some(0),
                state: vec!["in_sync".to_owned()],
                errors: Some(errors),
            }],
            ..ArraySample::default()
        });
        sample
    };
    let mut watch = Watch::new(Settings::default());
    assert!(watch.observe(&sample(1, 0, 3)).is_empty());
    assert_eq!(watch.observe(&sample(2, 1, 3)).len(), 1);
    assert!(watch.observe(&sample(3, 1, 5)).is_empty());
    assert!(watch.observe(&sample(4, 1, 5)).is_empty());
    assert_eq!(
        watch.open().next().unwrap().text,
        "nvme1n1 lacks 1 of its members. md corrected 2 read errors of vdc in nvme1n1 from a copy."
    );
}

#[test]
fn errors_of_a_controller_are_those_of_its_disk() {
    for (named, meant) in [
        ("nvme1", "nvme1n1"),
        ("nvme1c3n1", "nvme1n1"),
        ("nvme1n1", "nvme1n1"),
        ("nvme11", "host"),
        ("nvme1n12", "host"),
        ("sda", "host"),
    ] {
        let mut sample = second(1, 5.0, Some(0));
        sample.host.errors = vec![KernelError {
            kind: KernelErrorKind::Timeout,
            device: Some(named.to_owned()),
            text: "I/O 12 QID 1 timeout".to_owned(),
        }];
        let opened = Watch::new(Settings::default()).observe(&sample);
        assert_eq!(opened[0].event.name, meant, "{named}");
    }
}

#[test]
fn pages_of_long_intervals_are_heard() {
    let mut watch = Watch::new(Settings::default());
    let mut found = Vec::new();
    for number in 1..4 {
        let mut sample = second(30 * number, 3000.0, Some(20));
        sample.length = Nanos::from_secs(30);
        sample.devices[0].vendor = Some(page_over(
            TimeOverLimits {
                volume_iops: Nanos::from_secs(15),
                volume_bytes: Nanos(0),
                ..TimeOverLimits::default()
            },
            sample.length,
        ));
        found.extend(
            watch
                .observe(&sample)
                .iter()
                .map(|change| change.event.code),
        );
    }
    assert_eq!(found, [EventCode::VolumeCap]);
}

/// The devices found to be stalled, on a host with these devices, of which the first is a disk.
fn stalled(names: &[&str], asked_for: &[&str]) -> Vec<String> {
    let mut watch = Watch::new(Settings {
        names: asked_for.iter().map(|&name| name.to_owned()).collect(),
        ..Settings::default()
    });
    let mut found = Vec::new();
    for number in 1..5 {
        let mut sample = second(number, 0.0, Some(3));
        let pattern = sample.devices[0].clone();
        let devices = names.iter().zip(0..).map(|(name, id)| DeviceSample {
            device: Arc::new(Device::by_name(DeviceId(id), name, at(0))),
            ..pattern.clone()
        });
        sample.devices = devices.collect();
        found.extend(
            watch
                .observe(&sample)
                .into_iter()
                .map(|change| change.event),
        );
    }
    found.into_iter().map(|event| event.name).collect()
}

#[test]
fn arrays_of_a_log_without_a_tree_are_no_disks_alongside_disks() {
    assert_eq!(stalled(&["nvme1n1", "dm-0"], &[]), ["nvme1n1"]);
}

/// The devices found to be stalled if all of these are, next to `sda`, which completes requests.
fn stalled_beside_a_disk(names: &[&str]) -> Vec<String> {
    let mut watch = Watch::new(Settings::default());
    let mut found = Vec::new();
    for number in 1..5 {
        let mut sample = second(number, 100.0, Some(3));
        let hangs = second(number, 0.0, Some(7)).devices[0].clone();
        let names = names.iter().zip(1..);
        let devices = names.map(|(name, id)| DeviceSample {
            device: Arc::new(Device::by_name(DeviceId(id), name, at(0))),
            ..hangs.clone()
        });
        sample.devices.extend(devices);
        found.extend(
            watch
                .observe(&sample)
                .into_iter()
                .map(|change| change.event),
        );
    }
    found.into_iter().map(|event| event.name).collect()
}

#[test]
fn a_device_that_may_lie_on_a_disk_that_a_log_lacks_stalls_by_itself() {
    for name in ["md0", "md0p1", "md_d0p1", "md127", "dm-3", "sdb1"] {
        assert_eq!(stalled_beside_a_disk(&[name]), [name]);
        assert_eq!(stalled(&[name], &[]), [name]);
    }
    // One stall for devices that may lie on each other.
    assert_eq!(stalled_beside_a_disk(&["dm-3", "md0"]), ["md0"]);
    assert_eq!(stalled(&["dm-3", "md0"], &[]), ["md0"]);
    assert_eq!(stalled_beside_a_disk(&["sdb", "md0", "dm-3"]), ["sdb"]);
    // A disk that is not requested explains nothing.
    let host = ["md0", "sda", "sdb"];
    assert_eq!(stalled(&host, &["md0"]), ["md0"]);
    // Loop devices are examined if there is nothing else.
    assert!(stalled_beside_a_disk(&["loop3"]).is_empty());
}

#[test]
fn loop_devices_are_disks_where_no_one_asks_for_others() {
    let host = ["nvme1n1", "loop3", "zram0"];
    assert_eq!(stalled(&host, &[]), ["nvme1n1"]);
    assert_eq!(stalled(&host, &["loop3"]), ["loop3"]);
    assert_eq!(stalled(&host, &["loop3", "nvme1n1"]), ["nvme1n1"]);
    assert_eq!(stalled(&host[1..], &[]), ["loop3", "zram0"]);
    assert_eq!(stalled(&host, &["gone"]), ["nvme1n1"]);
}

/// A volume's page over an interval, with these times over its caps. An instance store only reports its own caps.
fn page_over(exceeded: TimeOverLimits, length: Nanos) -> VendorSample {
    let page = match exceeded.instance_iops {
        Some(_) => VendorPage::Ebs,
        None => VendorPage::InstanceStore,
    };
    VendorSample {
        page,
        length,
        reads: 3000,
        writes: 0,
        read_bytes: 0,
        write_bytes: 0,
        read_time: Nanos(0),
        write_time: Nanos(0),
        exceeded,
        queue: 20,
        read_latency: Vec::new(),
        write_latency: Vec::new(),
    }
}

/// Findings within ten seconds of pages that are over these caps for half of the time.
fn found_by_page(exceeded: TimeOverLimits) -> Vec<WatchEvent> {
    let mut watch = Watch::new(Settings::default());
    let mut found = Vec::new();
    for number in 1..10 {
        let mut sample = second(number, 3000.0 + (number % 3) as f64, Some(20));
        sample.devices[0].vendor = Some(page_over(exceeded, Nanos::from_secs(1)));
        found.extend(
            watch
                .observe(&sample)
                .into_iter()
                .map(|change| change.event),
        );
    }
    found
}

#[test]
fn the_volumes_own_word_is_taken() {
    let half = Nanos(500_000_000);
    let ebs = TimeOverLimits {
        instance_iops: Some(Nanos(0)),
        instance_bytes: Some(Nanos(0)),
        ..TimeOverLimits::default()
    };
    let volume = TimeOverLimits {
        volume_iops: half,
        ..ebs
    };
    let instance = TimeOverLimits {
        instance_bytes: Some(half),
        ..ebs
    };
    let store = TimeOverLimits {
        volume_bytes: half,
        ..TimeOverLimits::default()
    };
    for (exceeded, code, advice) in [
        (volume, EventCode::VolumeCap, "provision more IOPS"),
        (instance, EventCode::InstanceCap, "more storage bandwidth"),
        (store, EventCode::VolumeCap, "use a larger instance"),
    ] {
        let found = found_by_page(exceeded);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].code, code);
        assert!(found[0].advice.contains(advice), "{}", found[0].advice);
    }
    assert!(found_by_page(ebs).is_empty());
    assert!(found_by_page(TimeOverLimits::default()).is_empty());
}

#[test]
fn instance_stores_whose_pages_speak_are_not_guessed_to_share_a_cap() {
    let is_cap_found = |has_pages: bool| {
        let mut rng = Rng::new(7);
        let mut host = Host::of(vec![Disk::healthy(12.0); 3]);
        host.shared_cap = Some(6000.0);
        let mut watch = Watch::new(Settings::default());
        let mut is_found = false;
        for _ in 0..150 {
            let mut sample = host.second(&mut rng);
            for device in sample.devices.iter_mut().filter(|_| has_pages) {
                device.vendor = Some(page_over(TimeOverLimits::default(), sample.length));
            }
            let found = watch.observe(&sample);
            is_found |= kinds(&found).contains(&(ChangeKind::Opened, EventCode::InstanceCap));
        }
        is_found
    };
    assert!(is_cap_found(false));
    assert!(!is_cap_found(true));
}

#[test]
fn short_samples_are_put_together() {
    let mut rng = Rng::new(5);
    let mut disks = vec![Disk::healthy(4.0); 4];
    disks[2].base_s = 0.004;
    // Striping gives all members the same load.
    for disk in &mut disks {
        disk.demand = super::simulated::Demand::Rate(400.0);
    }
    let mut host = Host::of(disks);
    host.level = Some(Level::Zero);
    let mut watch = Watch::new(Settings::default());
    let mut found: Vec<WatchEvent> = Vec::new();
    for tenth in 0..400_u64 {
        let mut sample = host.second(&mut rng);
        sample.at = SampleTime {
            wall: None,
            elapsed: Nanos((tenth + 1) * 100_000_000),
        };
        sample.length = Nanos(100_000_000);
        found.extend(
            watch
                .observe(&sample)
                .into_iter()
                .map(|change| change.event),
        );
    }
    let slow: Vec<&str> = found.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(slow, ["d2"], "{found:?}");
}

#[test]
fn members_under_a_check_are_not_called_cold() {
    let play = |action: SyncAction| {
        let mut rng = Rng::new(9);
        let mut host = Host::of(vec![Disk::healthy(1.0); 2]);
        host.level = Some(Level::One);
        let found = host.play(120, &mut rng, |host, second| {
            if second == 60 {
                host.action = action;
                for disk in &mut host.disks {
                    disk.cold = (0.8, 0.03);
                }
            }
        });
        let cold = |event: &&WatchEvent| event.code == EventCode::Cold;
        found.iter().filter(cold).count()
    };
    assert_eq!(play(SyncAction::Idle), 2);
    assert_eq!(play(SyncAction::Check), 0);
}

#[test]
fn members_are_not_called_cold_for_what_a_check_did_that_has_ended() {
    let play = |ends: u32| {
        let mut rng = Rng::new(9);
        let mut host = Host::of(vec![Disk::healthy(1.0); 2]);
        host.level = Some(Level::One);
        let found = host.play(90, &mut rng, |host, second| {
            let slow = (60..72).contains(&second);
            host.action = match (60..ends).contains(&second) {
                true => SyncAction::Check,
                false => SyncAction::Idle,
            };
            for disk in &mut host.disks {
                disk.cold = (0.8 * f64::from(u8::from(slow)), 0.03);
            }
        });
        let cold = |event: &&WatchEvent| event.code == EventCode::Cold;
        found.iter().filter(cold).count()
    };
    // Without the check these reads would be called cold.
    assert_eq!(play(60), 2);
    assert_eq!(play(72), 0);
}
