//! Orders of rows, and the search for rows.

use record::raid::MdLevel;
use record::sample::{Device, FlowKind};
use regex_lite::{Regex, RegexBuilder};

use super::frame::DeviceRow;

/// Figure that the rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SortBy {
    /// The order of the kernel's names, numbers in them by value.
    #[default]
    Name,
    /// Reads a second.
    Reads,
    /// Writes a second.
    Writes,
    /// Bytes read a second.
    ReadBytes,
    /// Bytes written a second.
    WriteBytes,
    /// The mean time of a read.
    ReadWait,
    /// The mean time of a write.
    WriteWait,
    /// Requests in flight.
    Flight,
    /// Busy time.
    Busy,
    /// A member's latency compared with its siblings'.
    Siblings,
    /// The mean size of a request.
    Size,
}

impl SortBy {
    const ALL: [SortBy; 11] = [
        SortBy::Name,
        SortBy::Reads,
        SortBy::Writes,
        SortBy::ReadBytes,
        SortBy::WriteBytes,
        SortBy::ReadWait,
        SortBy::WriteWait,
        SortBy::Flight,
        SortBy::Busy,
        SortBy::Siblings,
        SortBy::Size,
    ];

    /// The next sort figure, or the one before.
    pub(super) fn step(self, forward: bool) -> SortBy {
        let count = Self::ALL.len();
        let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0);
        Self::ALL[(at + if forward { 1 } else { count - 1 }) % count]
    }

    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SortBy::Name => "name",
            SortBy::Reads => "r/s",
            SortBy::Writes => "w/s",
            SortBy::ReadBytes => "rMiB/s",
            SortBy::WriteBytes => "wMiB/s",
            SortBy::ReadWait => "r-await",
            SortBy::WriteWait => "w-await",
            SortBy::Flight => "flight",
            SortBy::Busy => "busy",
            SortBy::Siblings => "siblings",
            SortBy::Size => "size",
        }
    }

    /// The figure of a row; `siblings` is its latency as a ratio to its siblings'.
    pub(super) fn figure(self, row: &DeviceRow, siblings: Option<f64>) -> Option<f64> {
        let figures = &row.figures;
        let (read, write) = (figures.flow(FlowKind::Read), figures.flow(FlowKind::Write));
        match self {
            SortBy::Name => None,
            SortBy::Reads => read.iops.get(),
            SortBy::Writes => write.iops.get(),
            SortBy::ReadBytes => read.bytes.get(),
            SortBy::WriteBytes => write.bytes.get(),
            SortBy::ReadWait => read.wait.get(),
            SortBy::WriteWait => write.wait.get(),
            SortBy::Flight => figures.flight(),
            SortBy::Busy => figures.busy.get(),
            SortBy::Siblings => siblings,
            SortBy::Size => figures.all.size.get(),
        }
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
    /// Makes the search for a text: a regular expression, or the text itself where it is none, such as while it is
    /// typed. Upper and lower case are the same.
    pub(super) fn new(text: &str) -> DeviceSearch {
        let build = |text: &str| {
            // A bound on the size, since a pattern such as `.{9999}` asks for much memory.
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
        let mut by = SortBy::Name;
        for _ in 0..SortBy::ALL.len() {
            assert_eq!(by.step(true).step(false), by);
            by = by.step(true);
        }
        assert_eq!(by, SortBy::Name);
        assert_eq!(by.step(false), SortBy::Size);
    }
}
