//! The table of all devices over the whole time.

use record::sample::DeviceKind;

use super::course::{
    Band, Course, DeviceCourse, IN_FLIGHT, READ_BYTES, READ_WAIT, READS, WRITE_BYTES, WRITE_WAIT,
    WRITES,
};
use ui::words;

/// A device's row.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// Mean and most of each figure.
    pub(super) cells: Vec<(String, String)>,
}

/// The rows of all devices that did something, partitions aside.
pub(super) fn lines(course: &Course) -> Vec<Line> {
    course
        .devices
        .iter()
        .filter(|device| device.device.kind != DeviceKind::Partition && super::is_active(device))
        .map(line)
        .collect()
}

fn line(device: &DeviceCourse) -> Line {
    let mib = |value: f64| words::number(value / 1_048_576.0);
    let latency = |seconds: f64| words::latency((seconds * 1e9) as u64);
    let cell = |at: usize, word: &dyn Fn(f64) -> String| {
        let figure = |of: fn(Band) -> f32| {
            device.total[at].map_or_else(|| "–".to_owned(), |band| word(f64::from(of(band))))
        };
        (figure(|band| band.mean), figure(|band| band.most))
    };
    Line {
        name: device.device.name.clone(),
        kind: device.device.kind.word(),
        cells: vec![
            cell(READS, &words::number),
            cell(WRITES, &words::number),
            cell(READ_BYTES, &mib),
            cell(WRITE_BYTES, &mib),
            cell(READ_WAIT, &latency),
            cell(WRITE_WAIT, &latency),
            cell(IN_FLIGHT, &words::number),
        ],
    }
}
