//! Checks that two samples are as close as the crate states.

use record::sample::*;
use record::{Bytes, Nanos};

/// Largest error of a count: half a step, and half of the finest unit.
const COUNT: f64 = 0.000_49;
/// Largest error of a quotient of two.
const QUOTIENT: f64 = 0.001_1;

fn near(what: &str, was: Option<f64>, is: Option<f64>, share: f64, slack: f64) {
    let ok = match (was, is) {
        (Some(was), Some(is)) => (was - is).abs() <= share * was.abs() + slack,
        (None, None) => true,
        _ => false,
    };
    assert!(ok, "{what} was {was:?} and is {is:?}");
}

fn nanos(wait: Option<Nanos>) -> Option<f64> {
    wait.map(|wait| wait.0 as f64)
}

fn bytes(size: Option<Bytes>) -> Option<f64> {
    size.map(|size| size.0 as f64)
}

fn flow(was: &Flow, is: &Flow, seconds: f64) {
    let unit = 1.0 / 1024.0 / seconds;
    near(
        "iops",
        was.iops.map(|x| x.0),
        is.iops.map(|x| x.0),
        COUNT,
        3.0 * unit,
    );
    near(
        "bytes",
        was.bytes.map(|x| x.0),
        is.bytes.map(|x| x.0),
        COUNT,
        3.0 / seconds,
    );
    near(
        "merged",
        was.merged.map(|x| x.0),
        is.merged.map(|x| x.0),
        COUNT,
        3.0 * unit,
    );
    near("wait", nanos(was.wait), nanos(is.wait), QUOTIENT, 2.0);
    near("size", bytes(was.size), bytes(is.size), QUOTIENT, 3.0);
}

fn device(was: &DeviceSample, is: &DeviceSample, seconds: f64) {
    assert_eq!(was.device, is.device);
    for kind in FlowKind::ALL {
        flow(was.flow(kind), is.flow(kind), seconds);
    }
    flow(&was.all, &is.all, seconds);
    near(
        "mean in flight",
        was.mean_in_flight,
        is.mean_in_flight,
        0.002_5,
        0.005,
    );
    let count = |one: &DeviceSample| one.in_flight.map(|count| count as f64);
    near("in flight", count(was), count(is), COUNT, 0.0);
    let busy = |one: &DeviceSample| one.busy.map(|busy| busy.0);
    near("busy", busy(was), busy(is), COUNT, 1e-6);
    assert_eq!(was.reset, is.reset);
    match (&was.array, &is.array) {
        (Some(was), Some(is)) => array(was, is),
        (was, is) => assert_eq!(was, is),
    }
    assert_eq!(was.latency, is.latency);
    match (&was.vendor, &is.vendor) {
        (Some(was), Some(is)) => vendor(was, is),
        (was, is) => assert_eq!(was, is),
    }
}

fn array(was: &ArraySample, is: &ArraySample) {
    assert_eq!(was.members, is.members);
    assert_eq!(
        (was.action, was.wanted, was.degraded),
        (is.action, is.wanted, is.degraded)
    );
    let done = |one: &ArraySample| one.position.map(|position| position.done.0 as f64);
    near("done", done(was), done(is), COUNT, 1.0);
    near(
        "speed",
        was.speed.map(|x| x.0),
        is.speed.map(|x| x.0),
        COUNT,
        1.0,
    );
}

fn vendor(was: &VendorSample, is: &VendorSample) {
    assert_eq!(was.page, is.page);
    near(
        "reads",
        Some(was.reads as f64),
        Some(is.reads as f64),
        COUNT,
        0.0,
    );
    let over = |one: &VendorSample| nanos(one.exceeded.instance_iops);
    near("over", over(was), over(is), COUNT, 0.0);
    assert!(is.read_latency.is_empty());
}

/// Fails unless `is` is `was` within the bounds.
pub(super) fn assert_near(was: &Sample, is: &Sample) {
    assert_eq!((was.at, was.length, was.gap), (is.at, is.length, is.gap));
    let seconds = match was.length.as_secs_f64() {
        0.0 => 1.0,
        seconds => seconds,
    };
    assert_eq!(was.devices.len(), is.devices.len());
    for (was, is) in was.devices.iter().zip(&is.devices) {
        device(was, is, seconds);
    }
    let (was, is) = (&was.host, &is.host);
    assert_eq!(was.errors, is.errors);
    assert_eq!(was.processes, is.processes);
    assert_eq!(was.tracing, is.tracing);
    assert_eq!(was.pressure.is_some(), is.pressure.is_some());
    let load = |host: &HostSample| host.load.map(|load| load.one);
    near("load", load(was), load(is), COUNT, 1e-4);
    let dirty = |host: &HostSample| bytes(host.memory.and_then(|memory| memory.dirty));
    near("dirty", dirty(was), dirty(is), COUNT, 1.0);
    let idle = |host: &HostSample| host.cpu.map(|cpu| cpu.idle.0);
    near("idle", idle(was), idle(is), COUNT, 1e-6);
    assert_eq!(was.interfaces.len(), is.interfaces.len());
    for (was, is) in was.interfaces.iter().zip(&is.interfaces) {
        assert_eq!(was.name, is.name);
        near(
            "rx",
            Some(was.rx.bytes.0),
            Some(is.rx.bytes.0),
            COUNT,
            1.0 / seconds,
        );
        near(
            "tx",
            Some(was.tx.drops.0),
            Some(is.tx.drops.0),
            COUNT,
            1.0 / seconds,
        );
    }
}
