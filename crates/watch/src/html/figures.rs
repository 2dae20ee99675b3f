//! Figures of a device over time, with a row each: the columns of the table, and the values of charts.

use record::Nanos;
use record::sample::DeviceSample;
use ui::format;

/// Number of figures of a device.
pub(super) const DEVICE: usize = 9;
/// Index of reads a second, in a device's figures.
pub(super) const READS: usize = 0;
/// Index of writes a second.
pub(super) const WRITES: usize = 1;
/// Index of bytes read a second.
pub(super) const READ_BYTES: usize = 2;
/// Index of bytes written a second.
pub(super) const WRITE_BYTES: usize = 3;
/// Index of the mean latency of reads, in seconds.
pub(super) const READ_WAIT: usize = 4;
/// Index of the mean latency of writes, in seconds.
pub(super) const WRITE_WAIT: usize = 5;
/// Index of the mean latency of all requests, in seconds, where those of reads and writes are not distinguished.
pub(super) const ALL_WAIT: usize = 6;
/// Index of the number of requests in flight.
pub(super) const IN_FLIGHT: usize = 7;
/// Index of the share of the time with requests in flight, in percent.
pub(super) const BUSY: usize = 8;

/// A figure of a device.
pub(super) struct Figure {
    /// Head of its column.
    pub(super) head: &'static str,
    /// Value in a sample.
    value: fn(&DeviceSample) -> Option<f64>,
    /// Rate of the requests whose number is the weight of a sample in a mean; `None` where its duration is the weight.
    pub(super) per_request: Option<fn(&DeviceSample) -> Option<f64>>,
    /// Text in the table.
    pub(super) text: fn(f64) -> String,
}

/// The figures, in the order of their columns, which is that of the constants above.
pub(super) const FIGURES: [Figure; DEVICE] = [
    Figure::new("reads/s", format::number, reads),
    Figure::new("writes/s", format::number, writes),
    Figure::new("read MiB/s", mib, |one| {
        one.read.bytes.or(one.all.bytes).map(|bytes| bytes.0)
    }),
    Figure::new("written MiB/s", mib, |one| {
        one.write.bytes.map(|bytes| bytes.0)
    }),
    Figure {
        per_request: Some(reads),
        ..Figure::new("read await", latency, |one| seconds(one.read.wait))
    },
    Figure {
        per_request: Some(writes),
        ..Figure::new("write await", latency, |one| seconds(one.write.wait))
    },
    Figure {
        per_request: Some(|one| one.all.iops.map(|iops| iops.0)),
        ..Figure::new("await", latency, |one| {
            let apart = [&one.read, &one.write, &one.discard];
            let is_split = apart.iter().any(|flow| flow.wait.is_some());
            seconds(one.all.wait.filter(|_| !is_split))
        })
    },
    Figure::new("in flight", format::number, |one| {
        let now = || one.in_flight.map(|count| count as f64);
        one.mean_in_flight.or_else(now)
    }),
    Figure::new("busy", percent, |one| one.busy.map(|busy| busy.percent())),
];

impl Figure {
    const fn new(
        head: &'static str,
        text: fn(f64) -> String,
        value: fn(&DeviceSample) -> Option<f64>,
    ) -> Figure {
        Figure {
            head,
            value,
            per_request: None,
            text,
        }
    }
}

/// Figures of a sample.
pub(super) fn values(one: &DeviceSample) -> [Option<f64>; DEVICE] {
    FIGURES.map(|figure| (figure.value)(one))
}

fn reads(one: &DeviceSample) -> Option<f64> {
    one.read.iops.or(one.all.iops).map(|iops| iops.0)
}

fn writes(one: &DeviceSample) -> Option<f64> {
    one.write.iops.map(|iops| iops.0)
}

fn seconds(wait: Option<Nanos>) -> Option<f64> {
    wait.map(|wait| wait.0 as f64 / 1e9)
}

fn mib(value: f64) -> String {
    format::number(value / 1_048_576.0)
}

fn latency(seconds: f64) -> String {
    format::latency((seconds * 1e9) as u64)
}

fn percent(value: f64) -> String {
    format!("{value:.0}%")
}
