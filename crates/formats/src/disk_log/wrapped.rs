//! Rejoins rows, headers and the host line of a log that a mail client or `fold` wrapped.
//!
//! A row is continued if it has fewer figures than its header has columns, and only figures follow until it has as
//! many. A row that never gets enough figures is left as it is: it was cut off.

use std::borrow::Cow;

use super::Columns;
use super::clock::time_of_day;
use super::columns::{Column, LastHeader, NamePlace};
use super::landmark::{BannerLine, cpu_shares};
use super::line::MIN_FIGURES;
use super::number::number;
use super::sar;
use super::stamp::PrintedTimestamp;

/// A line of the log, without the prefix that another program put before it.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    /// Number of the line, from 1.
    pub(crate) number: u64,
    pub(crate) text: Cow<'a, str>,
    /// True if a line end follows it.
    pub(crate) terminated: bool,
    /// The time in its prefix.
    pub(crate) front: Option<PrintedTimestamp>,
}

impl Line<'_> {
    pub(crate) fn into_owned(self) -> Line<'static> {
        Line {
            number: self.number,
            text: Cow::Owned(self.text.into_owned()),
            terminated: self.terminated,
            front: self.front,
        }
    }
}

/// The layout of the rows below a header.
#[derive(Clone, Copy, Debug)]
struct RowForm {
    /// Number of words before the figures: the name, and the time in a row of sar.
    front: usize,
    figures: usize,
    names: NamePlace,
}

impl RowForm {
    fn of(front: usize, columns: &Columns) -> RowForm {
        RowForm {
            front,
            figures: columns.count(),
            names: columns.names,
        }
    }
}

/// Kind of a line that may be continued on the next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContinuedPart {
    /// Names of columns.
    Header,
    /// A row, or the name of one: old versions of iostat print the figures of a long name below it.
    Row,
    /// The line that names the host.
    Machine,
}

/// Joins wrapped lines.
#[derive(Debug)]
pub(crate) struct LineJoiner {
    shape: Option<RowForm>,
    begun: ContinuedPart,
    held: Vec<Line<'static>>,
    last_header: LastHeader,
}

impl LineJoiner {
    /// `columns` are those of rows without a header.
    pub(crate) fn new(columns: Option<&Columns>) -> LineJoiner {
        LineJoiner {
            shape: columns.map(|columns| RowForm::of(1, columns)),
            begun: ContinuedPart::Row,
            held: Vec::new(),
            last_header: LastHeader::default(),
        }
    }

    /// Adds a line. Returns the lines that are complete; held lines come first.
    pub(crate) fn push<'a>(&mut self, line: Line<'a>) -> (Vec<Line<'static>>, Option<Line<'a>>) {
        if !self.held.is_empty()
            && let Some(is_whole) = self.continues(&line.text)
        {
            self.held.push(line.into_owned());
            let whole = is_whole.then(|| self.join());
            return (whole.flatten().into_iter().collect(), None);
        }
        let before = self.release();
        match self.begins(&line.text) {
            Some(begun) => {
                self.begun = begun;
                self.held.push(line.into_owned());
                (before, None)
            }
            None => (before, Some(line)),
        }
    }

    /// Returns the held lines, which nothing continues. Lines of an incomplete row are not joined.
    pub(crate) fn release(&mut self) -> Vec<Line<'static>> {
        match self.begun {
            ContinuedPart::Header => self.join().into_iter().collect(),
            ContinuedPart::Row | ContinuedPart::Machine => std::mem::take(&mut self.held),
        }
    }

    /// The held lines, joined.
    fn join(&mut self) -> Option<Line<'static>> {
        let mut parts = std::mem::take(&mut self.held).into_iter();
        let mut line = parts.next()?;
        for part in parts {
            let text = line.text.to_mut();
            text.push(' ');
            text.push_str(part.text.trim());
            line.terminated = part.terminated;
        }
        if self.begun == ContinuedPart::Header {
            self.shape = self.shape_below(&line.text).or(self.shape);
        }
        Some(line)
    }

    /// The kind of line that this line may begin.
    fn begins(&mut self, text: &str) -> Option<ContinuedPart> {
        let mut words = text.split_whitespace();
        let last = words.next_back()?;
        if number(last).is_some() {
            return self.is_short(text).then_some(ContinuedPart::Row);
        }
        if text.contains(['/', '%']) {
            if self.shape_below(text).is_some() || is_nameless(text) {
                return Some(ContinuedPart::Header);
            }
            if sar::may_begin(text) {
                self.shape = None;
            }
        }
        if text.starts_with("Linux ") {
            return BannerLine::of_line(text).map(|_| ContinuedPart::Machine);
        }
        words.next().is_none().then_some(ContinuedPart::Row)
    }

    /// True if a line that ends with a figure is a row with too few figures.
    fn is_short(&self, text: &str) -> bool {
        let Some(shape) = self.shape else {
            return false;
        };
        let words = text.split_whitespace().count();
        if words >= shape.front + shape.figures {
            return false;
        }
        let figures = figures(text);
        match shape.names {
            NamePlace::First => figures < shape.figures && words > figures,
            NamePlace::Last => figures <= shape.figures,
        }
    }

    /// `None` if a line does not continue the held lines; else, true if they are complete with it.
    fn continues(&mut self, text: &str) -> Option<bool> {
        let words = text.split_whitespace().count();
        if words == 0 {
            return None;
        }
        match self.begun {
            ContinuedPart::Header if is_names(text) => Some(false),
            // A header that ends with the word for the device.
            ContinuedPart::Header => {
                let begun = self
                    .held
                    .first()
                    .is_some_and(|line| is_nameless(&line.text));
                let whole = begun.then(|| self.with(text))?;
                self.shape_below(&whole).map(|_| true)
            }
            ContinuedPart::Machine => text.trim_end().ends_with("CPU)").then_some(true),
            ContinuedPart::Row => self.continues_row(text, words),
        }
    }

    fn continues_row(&self, text: &str, words: usize) -> Option<bool> {
        let held: usize = self.held.iter().map(|line| figures(&line.text)).sum();
        let more = figures(text);
        let is_figures = more == words;
        match self.shape {
            None => {
                let is_cpu = cpu_shares(text, None).is_some();
                (is_figures && more >= MIN_FIGURES && !is_cpu).then_some(true)
            }
            Some(shape) if is_figures => {
                // A word and one number are not a row.
                let is_row = held > 0 || more > 1;
                let all = held + more;
                let is_whole = all == shape.figures && shape.names == NamePlace::First;
                (is_row && all <= shape.figures).then_some(is_whole)
            }
            Some(shape) if shape.names == NamePlace::Last => {
                let numbers = text.split_whitespace().map_while(number).count();
                let is_whole = held + numbers == shape.figures && words == numbers + 1;
                is_whole.then_some(true)
            }
            Some(_) => None,
        }
    }

    /// The layout of the rows below a line, if the line is a header of iostat or of `sar -d`.
    fn shape_below(&mut self, text: &str) -> Option<RowForm> {
        if let Some(columns) = self.last_header.columns(text) {
            return Some(RowForm::of(1, &columns));
        }
        let (time_fields, columns) = sar::disks(text)?;
        Some(RowForm::of(time_fields + 1, &columns))
    }

    /// The held lines and this one, joined.
    fn with(&self, text: &str) -> String {
        let held = self.held.iter().map(|line| line.text.as_ref());
        held.chain([text]).collect::<Vec<_>>().join(" ")
    }
}

/// Number of figures at the end of a line.
fn figures(text: &str) -> usize {
    let words = text.split_whitespace().rev();
    words.map_while(number).count()
}

/// True if a line consists of column names.
fn is_names(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.all(|word| Column::by_name(word) != Column::Unknown)
}

/// True if a line may be the beginning of a header that ends with the word for the device: column names, after a time
/// in a header of sar.
fn is_nameless(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_unknown = |word: &&str| Column::by_name(word) == Column::Unknown;
    let front = words.iter().rposition(is_unknown).map_or(0, |at| at + 1);
    let is_time = || time_of_day(&words[..front].join(" ")).is_some();
    words.len() >= front + 2 && (front == 0 || is_time())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Vec<(u64, String)> {
        let mut wrapped = LineJoiner::new(None);
        let mut whole = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let (held, line) = wrapped.push(Line {
                number,
                text: Cow::Borrowed(text),
                terminated: true,
                front: None,
            });
            whole.extend(held);
            whole.extend(line.map(Line::into_owned));
        }
        whole.extend(wrapped.release());
        let words = |line: Line<'_>| {
            let words: Vec<&str> = line.text.split_whitespace().collect();
            (line.number, words.join(" "))
        };
        whole.into_iter().map(words).collect()
    }

    fn texts(text: &str) -> Vec<String> {
        joined(text).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_row_is_continued_until_it_has_the_figures_of_its_header() {
        assert_eq!(
            joined(
                "Device r/s w/s\nrkB/s wkB/s\n%util\nsda 1.00\n2.00 3.00\n4.00 5.00\nsdb 1.00 2.00 3.00 4.00 5.00\n"
            ),
            [
                (1, "Device r/s w/s rkB/s wkB/s %util".to_owned()),
                (4, "sda 1.00 2.00 3.00 4.00 5.00".to_owned()),
                (7, "sdb 1.00 2.00 3.00 4.00 5.00".to_owned()),
            ]
        );
        // A long name, with the figures below it, which may be wrapped too.
        for rows in [
            "a-long-name\n1.00 2.00 3.00",
            "a-long-name\n1.00 2.00\n3.00",
        ] {
            let header = "Device r/s w/s %util";
            assert_eq!(
                texts(&format!("{header}\n{rows}")),
                [header, "a-long-name 1.00 2.00 3.00"]
            );
        }
        // The name after the figures.
        assert_eq!(
            texts(
                "r/s w/s rkB/s\n%util Device\n1.00 2.00\n3.00 4.00 sda\n1.00 2.00 3.00 4.00\nsdb"
            ),
            [
                "r/s w/s rkB/s %util Device",
                "1.00 2.00 3.00 4.00 sda",
                "1.00 2.00 3.00 4.00 sdb"
            ]
        );
    }

    #[test]
    fn what_does_not_make_a_whole_row_is_left_as_it_is() {
        for text in [
            "Device r/s w/s %util\nsda 1.00 2.00\nsdb 1.00 2.00 3.00",
            "Device r/s w/s %util\nsda 1.00 2.00\n3.00 4.00",
            "Device r/s w/s %util\nsda 1.00\n2.00",
            "Device r/s w/s %util\nBEGIN\n1700000000",
            "Device r/s w/s %util\nBEGIN\nsda 1.00 2.00 3.00",
            "sda 1.00\n2.00",
            "avg-cpu: %user %nice %system %iowait %steal %idle\n1.00 0.00 1.00 20.00 0.00 78.00",
            "BEGIN\n1.00 0.00 1.00 20.00 0.00 78.00",
        ] {
            assert_eq!(texts(text), text.lines().collect::<Vec<_>>(), "{text}");
        }
        let apart = "Device r/s w/s %util\nsda 1.00 2.00\n\n3.00";
        assert_eq!(
            texts(apart),
            ["Device r/s w/s %util", "sda 1.00 2.00", "", "3.00"]
        );
    }

    #[test]
    fn the_rows_of_sar_have_a_time_in_front() {
        assert_eq!(
            texts(
                "10:26:25 AM DEV tps rkB/s wkB/s\nareq-sz %util\n10:26:26 AM sdc 36.40 0.00\n0.25 7.24 1.00\n\
                 Average: sdc 36.40\n0.00 0.25 7.24 1.00"
            ),
            [
                "10:26:25 AM DEV tps rkB/s wkB/s areq-sz %util",
                "10:26:26 AM sdc 36.40 0.00 0.25 7.24 1.00",
                "Average: sdc 36.40 0.00 0.25 7.24 1.00",
            ]
        );
    }

    #[test]
    fn the_line_of_the_host_is_continued_by_its_processors() {
        assert_eq!(
            texts("Linux 6.1.0 (db1.example) 11/22/26\n_x86_64_ (2 CPU)\n\n"),
            ["Linux 6.1.0 (db1.example) 11/22/26 _x86_64_ (2 CPU)", ""]
        );
        let old = "Linux 2.6.9 (db1) 11/22/06\n\navg-cpu: %user %idle";
        assert_eq!(texts(old), old.lines().collect::<Vec<_>>());
    }
}
