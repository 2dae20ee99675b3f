//! The table of all devices over the whole time.

use record::sample::DeviceKind;

use super::course::{Band, DeviceSeries, FigureSeries};
use super::figures::{ALL_WAIT, DEVICE, FIGURES};

/// A device's row.
pub(super) struct TableRow {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// Mean and maximum of each figure, as text.
    pub(super) cells: Vec<(String, String)>,
}

/// The table: the heads of its columns, and the rows of all active devices except partitions. The column for all
/// requests exists only where a device has no separate latencies of reads and writes.
pub(super) fn table(course: &FigureSeries) -> (Vec<&'static str>, Vec<TableRow>) {
    let devices = course.devices.iter();
    let devices: Vec<&DeviceSeries> = devices
        .filter(|device| device.device.kind != DeviceKind::Partition && device.is_active())
        .collect();
    let is_known = |at: usize| devices.iter().any(|device| device.total[at].is_some());
    let columns: Vec<usize> = (0..DEVICE)
        .filter(|at| *at != ALL_WAIT || is_known(ALL_WAIT))
        .collect();
    let lines = devices.iter().map(|device| line(device, &columns));
    let lines = lines.collect();
    (columns.iter().map(|at| FIGURES[*at].head).collect(), lines)
}

fn line(device: &DeviceSeries, columns: &[usize]) -> TableRow {
    let cell = |at: &usize| {
        let word = FIGURES[*at].text;
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
