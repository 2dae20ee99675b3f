//! Sort orders of rows, figures of sparklines, and the search for devices.

use record::raid::MdLevel;
use record::sample::Device;
use regex_lite::{Regex, RegexBuilder};

use super::columns::{COLUMNS, Column, RowCells};
use super::frame::DeviceRow;

/// Sort order of the rows: by a column's figure, or by the kernel names in natural order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SortBy(Option<&'static Column>);

impl SortBy {
    /// All sort orders, in the order in which the keys select them.
    fn all() -> Vec<SortBy> {
        let columns = COLUMNS.iter().filter(|column| column.sort.is_some());
        let mut all: Vec<SortBy> = columns.map(|column| SortBy(Some(column))).collect();
        all.push(SortBy(None));
        all.sort_by_key(|by| by.0.and_then(|column| column.sort));
        all
    }

    /// The next sort order, or the previous one.
    pub(super) fn step(self, forward: bool) -> SortBy {
        let all = SortBy::all();
        let at = all.iter().position(|by| by.name() == self.name());
        all[(at.unwrap_or(0) + if forward { 1 } else { all.len() - 1 }) % all.len()]
    }

    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        self.0.map_or("name", |column| column.sort_name)
    }

    /// True if the rows are in the order of their names.
    pub(crate) fn is_name(self) -> bool {
        self.0.is_none()
    }

    /// True if the rows are sorted by a column.
    pub(crate) fn is_by(self, column: &Column) -> bool {
        self.0.is_some_and(|by| by.head == column.head)
    }

    /// The figure of a row.
    pub(super) fn figure(self, of: &RowCells<'_>) -> Option<f64> {
        (self.0?.figure)(of)
    }
}

/// Figure of the sparklines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SparklineFigure {
    /// Requests a second.
    #[default]
    Iops,
    /// Bytes a second.
    Bytes,
    /// The mean time of a request.
    Wait,
    /// Busy time.
    Busy,
}

impl SparklineFigure {
    /// All figures of sparklines.
    pub(crate) const ALL: [SparklineFigure; 4] = [
        SparklineFigure::Iops,
        SparklineFigure::Bytes,
        SparklineFigure::Wait,
        SparklineFigure::Busy,
    ];

    /// The next figure.
    pub(super) fn next(self) -> SparklineFigure {
        match self {
            SparklineFigure::Iops => SparklineFigure::Bytes,
            SparklineFigure::Bytes => SparklineFigure::Wait,
            SparklineFigure::Wait => SparklineFigure::Busy,
            SparklineFigure::Busy => SparklineFigure::Iops,
        }
    }

    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SparklineFigure::Iops => "IOPS",
            SparklineFigure::Bytes => "MiB/s",
            SparklineFigure::Wait => "await",
            SparklineFigure::Busy => "busy",
        }
    }

    /// The figure of a row.
    pub(crate) fn figure(self, row: &DeviceRow) -> Option<f64> {
        let figures = &row.figures;
        match self {
            SparklineFigure::Iops => figures.all.iops.get(),
            SparklineFigure::Bytes => figures.all.bytes.get(),
            SparklineFigure::Wait => figures.all.wait.get(),
            SparklineFigure::Busy => figures.busy.get(),
        }
    }
}

/// Search for devices: those with a match in their name, alias, model or serial number.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceSearch {
    text: String,
    pattern: Option<Regex>,
}

impl DeviceSearch {
    /// A case-insensitive search for a text: as a regular expression, or literally where it is an invalid one, such as
    /// while it is typed.
    pub(super) fn new(text: &str) -> DeviceSearch {
        let build = |text: &str| {
            // A bound on the size, since a pattern such as `.{9999}` needs much memory.
            let mut builder = RegexBuilder::new(text);
            builder
                .case_insensitive(true)
                .size_limit(1 << 20)
                .build()
                .ok()
        };
        DeviceSearch {
            pattern: build(text).or_else(|| build(&regex_lite::escape(text))),
            text: text.to_owned(),
        }
    }

    /// The text as it was typed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// True if a device matches.
    pub(super) fn matches(&self, device: &Device) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let texts = [&device.alias, &device.model, &device.serial];
        let texts = texts.into_iter().flatten().map(String::as_str);
        let texts = texts.chain(device.level.as_ref().map(MdLevel::name));
        texts
            .chain([device.name.as_str()])
            .any(|word| pattern.is_match(word))
    }
}

#[cfg(test)]
mod tests {
    use record::sample::{DeviceId, SampleTime};

    use super::*;

    fn matches(text: &str, name: &str) -> bool {
        let mut device = Device::by_name(DeviceId(0), name, SampleTime::default());
        device.serial = Some("vol0abc".to_owned());
        DeviceSearch::new(text).matches(&device)
    }

    #[test]
    fn a_part_of_a_name_or_a_pattern_finds_a_device() {
        assert!(matches("", "sda"));
        assert!(matches("ME1", "nvme1n1"));
        assert!(matches("^nvme[12]n", "nvme1n1"));
        assert!(!matches("^nvme[23]n", "nvme1n1"));
        assert!(matches("vol0a", "nvme1n1"));
        assert!(!matches("nvme(", "nvme1n1"), "half a pattern is a text");
        assert!(matches("(", "x(y"));
    }

    #[test]
    fn columns_are_gone_through_both_ways() {
        let names: Vec<&str> = SortBy::all().into_iter().map(SortBy::name).collect();
        assert_eq!(
            names,
            [
                "name", "r/s", "w/s", "rMiB/s", "wMiB/s", "r-await", "w-await", "flight", "busy",
                "siblings", "size"
            ]
        );
        let mut by = SortBy::default();
        for name in &names {
            assert_eq!(by.name(), *name);
            assert_eq!(by.step(true).step(false).name(), *name);
            by = by.step(true);
        }
        assert!(by.is_name());
        assert_eq!(by.step(false).name(), "size");
    }
}
