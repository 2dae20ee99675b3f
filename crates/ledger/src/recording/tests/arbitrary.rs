//! Arbitrary samples for property tests: any figure known or not, devices that appear and disappear, counters that
//! were reset, gaps.

use std::sync::Arc;

use jiff::Timestamp;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use record::sample::*;
use record::{Bytes, Histogram, Nanos};

fn figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        0.0..2.0_f64,
        (0..5_000_u32).prop_map(f64::from),
        0.0..1e9_f64
    ]
}

fn flow() -> impl Strategy<Value = Flow> {
    let whole = || of(prop_oneof![0..10_u64, 0..1_u64 << 36]);
    (of(figure()), of(figure()), of(figure()), whole(), whole()).prop_map(
        |(iops, bytes, merged, wait, size)| Flow {
            iops: iops.map(PerSecond),
            bytes: bytes.map(BytesPerSecond),
            merged: merged.map(PerSecond),
            wait: wait.map(Nanos),
            size: size.map(Bytes),
        },
    )
}

fn array() -> impl Strategy<Value = ArraySample> {
    let action = select(vec![SyncAction::Idle, SyncAction::Check]);
    (
        of(action),
        of((any::<u32>(), any::<u32>())),
        of(figure()),
        of(0..9_u32),
    )
        .prop_map(|(action, position, speed, degraded)| ArraySample {
            action,
            position: position.map(|(done, of)| Progress {
                done: Bytes(done.into()),
                of: Bytes(of.into()),
            }),
            speed: speed.map(BytesPerSecond),
            degraded,
            members: vec![Member {
                device: Some(DeviceId(1)),
                name: "vdb".to_owned(),
                slot: Some(0),
                state: vec!["in_sync".to_owned()],
                errors: None,
            }],
            ..ArraySample::default()
        })
}

fn vendor() -> impl Strategy<Value = VendorSample> {
    (any::<bool>(), any::<[u32; 4]>(), of(any::<u32>())).prop_map(|(is_ebs, counts, over)| {
        let [reads, writes, read_time, queue] = counts.map(u64::from);
        VendorSample {
            page: if is_ebs {
                VendorPage::Ebs
            } else {
                VendorPage::InstanceStore
            },
            length: Nanos::from_secs(1),
            reads,
            writes,
            read_bytes: reads * 4096,
            write_bytes: writes * 8192,
            read_time: Nanos(read_time),
            write_time: Nanos(0),
            exceeded: TimeOverLimits {
                instance_iops: over.map(|over| Nanos(over.into())),
                ..TimeOverLimits::default()
            },
            queue,
            read_latency: Vec::new(),
            write_latency: Vec::new(),
        }
    })
}

/// A device of the few that there are; its description changes now and then.
fn device() -> impl Strategy<Value = DeviceSample> {
    let flows = (flow(), flow(), flow(), flow(), flow());
    let rest = (
        of(figure()),
        of(any::<u32>()),
        of(0.0..1.2_f64),
        any::<bool>(),
    );
    (
        0..5_u32,
        any::<bool>(),
        flows,
        rest,
        of(array()),
        of(vendor()),
        (any::<bool>(), of(latency())),
    )
        .prop_map(
            |(
                id,
                is_other,
                flows,
                (mean, in_flight, busy, reset),
                array,
                vendor,
                (sums, latency),
            )| {
                let names = ["md0", "vdb", "vdb1", "vdc", "dm-3"];
                let mut device =
                    Device::by_name(DeviceId(id), names[id as usize], SampleTime::default());
                device.size = is_other.then_some(Bytes::gib(1));
                if device.kind == DeviceKind::Partition {
                    device.lies_on = vec![DeviceId(1)];
                }
                let mut sample = DeviceSample::unknown(Arc::new(device));
                (
                    sample.read,
                    sample.write,
                    sample.discard,
                    sample.flush,
                    sample.all,
                ) = flows;
                if sums {
                    sample.all = Flow::default();
                    sample.sum_up();
                }
                sample.mean_in_flight = mean;
                sample.in_flight = in_flight.map(u64::from);
                sample.busy = busy.map(Fraction);
                sample.reset = reset;
                sample.array = array;
                sample.vendor = vendor;
                sample.latency = latency.map(Arc::new);
                sample
            },
        )
}

fn host() -> impl Strategy<Value = HostSample> {
    let share = || 0.0..1.0_f64;
    (
        of(share()),
        of(share()),
        of(any::<u32>()),
        of(share()),
        0..3_usize,
        vec((any::<u32>(), 0..9_u64), 0..3),
    )
        .prop_map(
            |(pressure, load, dirty, cpu, interfaces, traced)| HostSample {
                pressure: pressure.map(|share| Pressure {
                    some: PressureLine {
                        stalled: (share > 0.5).then_some(Fraction(share)),
                        ..PressureLine::default()
                    },
                    full: (share > 0.3).then(PressureLine::default),
                }),
                load: load.map(|one| Load {
                    one,
                    ..Load::default()
                }),
                memory: dirty.map(|dirty| Memory {
                    dirty: Some(Bytes(dirty.into())),
                    ..Memory::default()
                }),
                cpu: cpu.map(|idle| CpuShares {
                    idle: Fraction(idle),
                    ..CpuShares::default()
                }),
                interfaces: (0..interfaces)
                    .map(|nth| InterfaceSample {
                        name: format!("eth{nth}").into(),
                        rx: NetFlow {
                            bytes: BytesPerSecond(nth as f64 * 1e6),
                            ..NetFlow::default()
                        },
                        tx: NetFlow::default(),
                    })
                    .collect(),
                errors: (interfaces == 2)
                    .then(|| KernelError {
                        kind: KernelErrorKind::Io,
                        device: Some("vdb".to_owned()),
                        text: "I/O error, dev vdb, sector 1".to_owned(),
                    })
                    .into_iter()
                    .collect(),
                limits: Vec::new(),
                tracing: traced.first().map(|(_, lost)| TracingSample {
                    cpu: Nanos(1),
                    requests: 2,
                    lost: *lost,
                    over: Nanos(3),
                }),
                processes: traced.into_iter().map(process).collect(),
            },
        )
}

fn process((pid, requests): (u32, u64)) -> ProcessSample {
    ProcessSample {
        pid,
        name: "mariadbd".into(),
        group: (requests > 4).then(|| "/system.slice/mariadb.service".into()),
        read: Bytes(requests * 512),
        written: Bytes(0),
        requests,
    }
}

fn latency() -> impl Strategy<Value = LatencySample> {
    vec(1..1_u64 << 40, 1..20).prop_map(|times| {
        let mut kinds: [Histogram; 4] = Default::default();
        for (nth, time) in times.into_iter().enumerate() {
            kinds[nth % 4].record(time);
        }
        LatencySample::of(&kinds)
    })
}

fn gap() -> impl Strategy<Value = Option<Gap>> {
    of(select(vec![
        Gap::Suspended(Nanos::from_secs(60)),
        Gap::SetBack(Nanos::from_secs(3600)),
        Gap::Unseen(Nanos(7)),
    ]))
}

/// Samples that follow each other.
pub(super) fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let one = (
        1_000_000..5_000_000_000_u64,
        0..9_000_000_000_u64,
        of(any::<i32>()),
        gap(),
    );
    vec((one, host(), vec(device(), 0..5)), 0..12).prop_map(|parts| {
        let mut elapsed = Nanos(0);
        let sample =
            |((length, pause, wall, gap), host, mut devices): (_, _, Vec<DeviceSample>)| {
                let length = Nanos(length);
                elapsed += length + Nanos(pause);
                let mut seen = Vec::new();
                devices.retain(|one| {
                    let is_new = !seen.contains(&one.device.id);
                    seen.push(one.device.id);
                    is_new
                });
                let wall: Option<i32> = wall;
                Sample {
                    at: SampleTime {
                        wall: wall.map(|second| Timestamp::from_second(second.into()).unwrap()),
                        elapsed,
                    },
                    length,
                    gap,
                    host,
                    devices,
                    removed: Vec::new(),
                }
            };
        parts.into_iter().map(sample).collect()
    })
}
