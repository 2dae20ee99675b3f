//! A simulated host for tests of the screen: an array of four members, one of them slow, a volume on it, a disk with
//! partitions, and idle devices.

use std::sync::Arc;

use record::raid::Level;
use record::sample::{
    ArraySample, BytesPerSecond, Device, DeviceId, DeviceKind, DeviceSample, Flow, Fraction,
    HostSample, InterfaceSample, LatencyBin, Load, Member, Memory, NetFlow, PerSecond, Pressure,
    PressureLine, Progress, Sample, SampleSource, SampleTime, SyncAction, TimeOverLimits,
    VendorPage, VendorSample, disks_of_partition,
};
use record::{Bytes, Nanos, Severity, Subject};
use study::watch::{ChangeKind, EventChange};
use study::watch::{EventCode, WatchEvent};

use super::Update;
use super::frame::Frame;
use super::model::Model;

/// A sample time at this second, without a time of day.
pub(crate) fn second(second: u64) -> SampleTime {
    SampleTime {
        wall: None,
        elapsed: Nanos::from_secs(second),
    }
}

fn flow(iops: f64, size: u64, wait_us: u64) -> Flow {
    Flow {
        iops: Some(PerSecond(iops)),
        bytes: Some(BytesPerSecond(iops * size as f64)),
        merged: Some(PerSecond(0.0)),
        wait: (iops > 0.0).then_some(Nanos(1000 * wait_us)),
        size: (iops > 0.0).then_some(Bytes(size)),
    }
}

/// A device with `iops` reads a second of `wait_us` microseconds each.
pub(crate) fn device(
    id: u32,
    name: &str,
    lies_on: &[u32],
    iops: f64,
    wait_us: u64,
) -> DeviceSample {
    let mut device = Device::by_name(DeviceId(id), name, SampleTime::default());
    device.lies_on = lies_on.iter().map(|id| DeviceId(*id)).collect();
    // A device on exactly one other, with the name of a partition, is one.
    if lies_on.len() == 1 && disks_of_partition(name).next().is_some() && name.starts_with("vd") {
        device.kind = DeviceKind::Partition;
    }
    device.size = Some(Bytes::gib(100));
    let mut sample = DeviceSample::unknown(Arc::new(device));
    sample.read = flow(iops, 16 << 10, wait_us);
    sample.write = flow(iops / 10.0, 16 << 10, wait_us / 2);
    sample.discard = flow(0.0, 0, 0);
    sample.flush = flow(iops / 100.0, 0, wait_us);
    sample.flush.bytes = None;
    sample.in_flight = Some((iops / 100.0) as u64);
    sample.mean_in_flight = Some(iops / 100.0);
    sample.busy = Some(Fraction((iops / 1000.0).min(1.0)));
    sample.sum_up();
    sample
}

fn edit(sample: &mut DeviceSample, change: impl FnOnce(&mut Device)) {
    let mut device = Device::clone(&sample.device);
    change(&mut device);
    sample.device = Arc::new(device);
}

fn array() -> DeviceSample {
    let mut array = device(0, "md0", &[1, 2, 3, 4], 1600.0, 2000);
    edit(&mut array, |device| device.level = Some(Level::Ten.into()));
    let member = |(slot, name): (u32, &str)| Member {
        device: Some(DeviceId(slot + 1)),
        name: name.to_owned(),
        slot: Some(slot),
        state: vec!["in_sync".to_owned()],
        errors: Some(0),
    };
    let names = ["nvme1n1", "nvme2n1", "nvme3n1", "nvme4n1"];
    array.array = Some(ArraySample {
        action: Some(SyncAction::Check),
        position: Some(Progress {
            done: Bytes::gib(45),
            of: Bytes::gib(100),
        }),
        speed: Some(BytesPerSecond(200.0 * 1_048_576.0)),
        wanted: Some(4),
        degraded: Some(1),
        mismatched: Some(128),
        members: (0..).zip(names).map(member).collect(),
    });
    array
}

fn page() -> VendorSample {
    let ms = |ms: u64| Nanos(1_000_000 * ms);
    VendorSample {
        page: VendorPage::Ebs,
        length: ms(1000),
        reads: 400,
        writes: 40,
        read_bytes: 400 << 14,
        write_bytes: 40 << 14,
        read_time: ms(800),
        write_time: ms(40),
        exceeded: TimeOverLimits {
            volume_iops: ms(300),
            volume_bytes: ms(0),
            instance_iops: Some(ms(0)),
            instance_bytes: Some(ms(10)),
        },
        queue: 12,
        read_latency: vec![
            LatencyBin {
                from: Nanos(500_000),
                to: Some(ms(1)),
                count: 90,
            },
            LatencyBin {
                from: ms(1),
                to: Some(ms(16)),
                count: 310,
            },
        ],
        write_latency: Vec::new(),
    }
}

fn host() -> HostSample {
    let line = |stalled: f64| PressureLine {
        stalled: Some(Fraction(stalled)),
        ..PressureLine::default()
    };
    let net = |mib: f64| NetFlow {
        bytes: BytesPerSecond(mib * 1_048_576.0),
        ..NetFlow::default()
    };
    HostSample {
        pressure: Some(Pressure {
            some: line(0.12),
            full: Some(line(0.03)),
        }),
        load: Some(Load {
            one: 1.2,
            five: 0.8,
            fifteen: 0.5,
        }),
        memory: Some(Memory {
            available: Some(Bytes::gib(8)),
            dirty: Some(Bytes::mib(12)),
            writeback: Some(Bytes(0)),
            limit: Some(Bytes::gib(3)),
            background_limit: Some(Bytes::gib(1)),
        }),
        cpu: None,
        interfaces: vec![
            InterfaceSample {
                name: "eth1".into(),
                rx: net(0.0),
                tx: net(0.0),
            },
            InterfaceSample {
                name: "eth0".into(),
                rx: net(12.3),
                tx: net(1.5),
            },
        ],
        limits: Vec::new(),
        processes: Vec::new(),
        tracing: None,
        errors: Vec::new(),
    }
}

/// Sample of the host at second `at`.
pub(crate) fn sample(at: u64) -> Sample {
    let mut slow = device(3, "nvme3n1", &[], 400.0, 9000);
    slow.vendor = Some(page());
    let mut volume = device(5, "dm-0", &[0], 1600.0, 2100);
    edit(&mut volume, |device| {
        device.alias = Some("vg-data".to_owned())
    });
    let mut boot = device(8, "vda15", &[6], 0.0, 0);
    edit(&mut boot, |device| device.size = Some(Bytes::mib(100)));
    let mut empty = device(9, "loop0", &[], 0.0, 0);
    edit(&mut empty, |device| device.size = Some(Bytes(0)));
    debug_assert_eq!(empty.device.kind, DeviceKind::Loop);
    Sample {
        at: second(at),
        length: Nanos::from_secs(1),
        gap: None,
        host: host(),
        devices: vec![
            volume,
            empty,
            array(),
            device(1, "nvme1n1", &[], 400.0, 1900),
            device(2, "nvme2n1", &[], 400.0 + at as f64, 2100),
            slow,
            device(4, "nvme4n1", &[], 400.0, 2000),
            device(6, "vda", &[], 20.0, 500),
            device(7, "vda1", &[6], 20.0, 500),
            boot,
        ],
        removed: Vec::new(),
    }
}

/// A finding about the slow member.
pub(crate) fn change(kind: ChangeKind, id: u64, at: u64) -> EventChange {
    EventChange {
        kind,
        event: WatchEvent {
            id,
            code: EventCode::SlowMember,
            severity: Severity::Warn,
            subject: Subject::Device(DeviceId(3)),
            name: "nvme3n1".to_owned(),
            began: second(at.saturating_sub(20)),
            ended: (kind == ChangeKind::Closed).then(|| second(at)),
            text: "Reads of nvme3n1 in md0 take 9 ms, 4.5 times the median of its 3 siblings (2 ms), at \
                   the same load of 400 IOPS."
                .to_owned(),
            advice: "All members wait for this one. Compare it with the others, look for a cap, and \
                     replace it if it stays slow."
                .to_owned(),
            figures: Vec::new(),
        },
    }
}

/// Model of a screen that has watched the host for `seconds`, with a finding on the slow member after 30 seconds.
pub(crate) fn model(seconds: u64) -> Model {
    let source = SampleSource {
        hostname: Some("db7".to_owned()),
        kernel: Some("6.12.0".to_owned()),
        ..SampleSource::default()
    };
    let mut model = Model::new(source, false);
    let mut last: Option<Arc<Frame>> = None;
    for at in 1..=seconds {
        let frame = Arc::new(Frame::of(&sample(at), last.as_deref()));
        last = Some(Arc::clone(&frame));
        let changes = match at {
            30 => vec![change(ChangeKind::Opened, 1, 30)],
            _ => Vec::new(),
        };
        model.take(Update::Frame(frame, changes));
    }
    model
}
