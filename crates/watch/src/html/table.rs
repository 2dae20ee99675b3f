//! The table of all devices over the whole time.

use record::sample::DeviceKind;

use super::course::{
    ALL_WAIT, BUSY, Band, DeviceSeries, FigureSeries, IN_FLIGHT, READ_BYTES, READ_WAIT, READS,
    WRITE_BYTES, WRITE_WAIT, WRITES,
};
use ui::format;

/// A device's row.
pub(super) struct TableRow {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// Mean and most of each figure.
    pub(super) cells: Vec<(String, String)>,
}

/// A column: its head, its place among a device's figures, and how a figure is written.
type Column = (&'static str, usize, fn(f64) -> String);

const COLUMNS: [Column; 9] = [
    ("reads/s", READS, format::number),
    ("writes/s", WRITES, format::number),
    ("read MiB/s", READ_BYTES, mib),
    ("written MiB/s", WRITE_BYTES, mib),
    ("read await", READ_WAIT, latency),
    ("write await", WRITE_WAIT, latency),
    ("await", ALL_WAIT, latency),
    ("in flight", IN_FLIGHT, format::number),
    ("busy", BUSY, percent),
];

/// The table: the heads of its columns, and the rows of all devices that did something, partitions aside.
/// The one column for all requests stands only where one for reads and one for writes are missing.
pub(super) fn table(course: &FigureSeries) -> (Vec<&'static str>, Vec<TableRow>) {
    let devices = course.devices.iter();
    let devices: Vec<&DeviceSeries> = devices
        .filter(|device| device.device.kind != DeviceKind::Partition && device.is_active())
        .collect();
    let is_known = |at: usize| devices.iter().any(|device| device.total[at].is_some());
    let columns = COLUMNS.into_iter();
    let columns: Vec<Column> = columns
        .filter(|(_, at, _)| *at != ALL_WAIT || is_known(ALL_WAIT))
        .collect();
    let lines = devices.iter().map(|device| line(device, &columns));
    let lines = lines.collect();
    (columns.into_iter().map(|(head, ..)| head).collect(), lines)
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

fn line(device: &DeviceSeries, columns: &[Column]) -> TableRow {
    let cell = |(_, at, word): &Column| {
        let figure = |of: fn(Band) -> f32| {
            device.total[*at].map_or_else(|| "–".to_owned(), |band| word(f64::from(of(band))))
        };
        (figure(|band| band.mean), figure(|band| band.most))
    };
    TableRow {
        name: device.device.name.clone(),
        kind: device.device.kind.name(),
        cells: columns.iter().map(cell).collect(),
    }
}
