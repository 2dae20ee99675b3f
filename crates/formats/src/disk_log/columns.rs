//! Columns of a device report, by their header.

use std::str::FromStr;
use std::sync::Arc;

/// Kind of requests that a column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Discard,
    /// Flushes.
    Flush,
    /// Writes and discards together (`kB_w+d/s`).
    Changed,
    /// Reads, writes and discards together.
    All,
}

impl Part {
    /// Number of parts.
    pub(crate) const COUNT: usize = 6;
}

/// Figure of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Requests completed per second.
    Iops,
    /// Bytes per second.
    Bytes,
    /// Requests merged per second.
    Merged,
    /// Mean time of a request in nanoseconds.
    Wait,
    /// Mean size of a request in bytes.
    Size,
    /// Share of requests that were merged.
    MergedShare,
    /// Bytes in the whole interval.
    Moved,
}

impl Figure {
    /// Number of figures.
    pub(crate) const COUNT: usize = 7;
}

/// Meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Column {
    /// A figure of one kind of requests, and the factor that converts the printed number to this program's unit.
    Flow(Part, Figure, f64),
    /// Requests in flight on average.
    InFlight,
    /// Share of time in which any request was in flight; printed in percent.
    Busy,
    /// `svctm`, the busy time per request in milliseconds. It has no meaning for a device that serves requests in
    /// parallel, and is only used to verify a guess.
    Service,
    /// An unknown column.
    Unknown,
}

const SECTOR: f64 = 512.0;
const KIB: f64 = 1024.0;
const MILLISECOND: f64 = 1e6;

/// The bytes of a unit of `iostat -k`, `-m` or `-G`, which are powers of 1024.
fn unit(name: &str) -> Option<f64> {
    let powers = [("kB", 1), ("MB", 2), ("GB", 3)];
    let (_, power) = powers.into_iter().find(|(known, _)| *known == name)?;
    Some(KIB.powi(power))
}

impl Column {
    /// The column with this name (iostat(1) and sar(1) of sysstat 5 to 12). The names in their JSON have no percent
    /// signs and no `/s`.
    pub(crate) fn by_name(name: &str) -> Column {
        match name {
            "tps" => Column::Flow(Part::All, Figure::Iops, 1.0),
            "f/s" => Column::Flow(Part::Flush, Figure::Iops, 1.0),
            "f_await" => Column::Flow(Part::Flush, Figure::Wait, MILLISECOND),
            "await" => Column::Flow(Part::All, Figure::Wait, MILLISECOND),
            "rqm/s" => Column::Flow(Part::All, Figure::Merged, 1.0),
            "avgrq-sz" => Column::Flow(Part::All, Figure::Size, SECTOR),
            "areq-sz" => Column::Flow(Part::All, Figure::Size, KIB),
            "avgqu-sz" | "aqu-sz" => Column::InFlight,
            "%util" | "util" | "util-percent" => Column::Busy,
            "svctm" => Column::Service,
            "rd_sec/s" | "rd_sec" => Column::Flow(Part::Read, Figure::Bytes, SECTOR),
            "wr_sec/s" | "wr_sec" => Column::Flow(Part::Write, Figure::Bytes, SECTOR),
            "dc_sec" => Column::Flow(Part::Discard, Figure::Bytes, SECTOR),
            _ => Column::of_part(name)
                .or_else(|| Column::of_all(name))
                .or_else(|| Column::of_basic(name))
                .unwrap_or(Column::Unknown),
        }
    }

    /// A column of `-x`, whose name begins with the letter of its part.
    fn of_part(name: &str) -> Option<Column> {
        let name = name.strip_prefix('%').unwrap_or(name);
        let part = match name.chars().next()? {
            'r' => Part::Read,
            'w' => Part::Write,
            'd' => Part::Discard,
            _ => return None,
        };
        let (figure, factor) = match &name[1..] {
            "/s" => (Figure::Iops, 1.0),
            "sec/s" => (Figure::Bytes, SECTOR),
            "kB" => (Figure::Bytes, KIB),
            "rqm/s" => (Figure::Merged, 1.0),
            "rqm" => (Figure::MergedShare, 0.01),
            "_await" => (Figure::Wait, MILLISECOND),
            "areq-sz" => (Figure::Size, KIB),
            rate => (Figure::Bytes, unit(rate.strip_suffix("/s")?)?),
        };
        Some(Column::Flow(part, figure, factor))
    }

    /// A column of `-x -s`: `kB/s`.
    fn of_all(name: &str) -> Option<Column> {
        let factor = match name {
            "sec/s" => SECTOR,
            rate => unit(rate.strip_suffix("/s")?)?,
        };
        Some(Column::Flow(Part::All, Figure::Bytes, factor))
    }

    /// A column of the report without `-x`: `kB_read/s`, and the amounts `kB_read`.
    fn of_basic(name: &str) -> Option<Column> {
        let (printed_in, rest) = name.split_once('_')?;
        let factor = match printed_in {
            "Blk" => SECTOR,
            printed_in => unit(printed_in)?,
        };
        let (word, figure) = match rest.strip_suffix("/s") {
            Some(word) => (word, Figure::Bytes),
            None => (rest, Figure::Moved),
        };
        let part = match word {
            "read" => Part::Read,
            "wrtn" => Part::Write,
            "dscd" => Part::Discard,
            "w+d" => Part::Changed,
            _ => return None,
        };
        Some(Column::Flow(part, figure, factor))
    }
}

/// Position of the device's name in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamePlace {
    /// The name is the first word of the line.
    First,
    /// The name is the last word of the line, as with `-h`.
    Last,
}

/// The columns of a device report, in order. Parsed from a header line such as
/// `Device r/s w/s rkB/s wkB/s await %util`.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    pub(crate) list: Vec<Column>,
    pub(crate) names: NamePlace,
    /// Number of spaces before the header: names of groups have one more.
    pub(crate) indent: usize,
    text: String,
}

/// Column names that cannot be those of a device report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' are not the columns of a device report of iostat; write them as its header does, such \
     as 'Device r/s w/s rkB/s wkB/s await %util'"
)]
pub struct ColumnsError(String);

/// Maximum number of columns in a header.
const MAX_HEADER_COLUMNS: usize = 64;

impl Columns {
    /// Columns of a header line; `None` if the line is not a header. The word for the device is ignored, since old
    /// versions translated it.
    pub(crate) fn of_header(line: &str) -> Option<Columns> {
        // Another tool's columns may have some of these names.
        Columns::of_names(line).filter(|_| super::other_tool::tool(line).is_none())
    }

    /// Columns of a line of column names. The line need not be a header: another tool's header may pass too.
    pub(crate) fn of_names(line: &str) -> Option<Columns> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !(3..=MAX_HEADER_COLUMNS).contains(&words.len()) {
            return None;
        }
        let column = |word: &&str| Column::by_name(word);
        let known = words
            .iter()
            .filter(|word| column(word) != Column::Unknown)
            .count();
        let (first, last) = (words.first()?, words.last()?);
        let (names, words) = if column(first) == Column::Unknown {
            (NamePlace::First, &words[1..])
        } else if column(last) == Column::Unknown {
            (NamePlace::Last, &words[..words.len() - 1])
        } else {
            return None;
        };
        // Up to a quarter may be unknown: columns of a future version, or one that was cut off at the end.
        let is_header = known >= 2 && known * 4 >= words.len() * 3;
        let has_numbers = words
            .iter()
            .any(|word| super::number::number(word).is_some());
        (is_header && !has_numbers).then(|| Columns {
            list: words.iter().map(column).collect(),
            names,
            indent: line.len() - line.trim_start().len(),
            text: line.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    }

    /// Number of figures in a line.
    pub(crate) fn count(&self) -> usize {
        self.list.len()
    }

    /// True if the header may have been cut off, so that lines may have figures that it does not name: every table ends
    /// with the busy time or with an amount.
    pub(crate) fn may_lack(&self) -> bool {
        let last = self.list.last();
        let is_last = matches!(last, Some(Column::Busy | Column::Flow(_, Figure::Moved, _)));
        self.names == NamePlace::First && !is_last
    }

    /// The header, with single spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of the unknown columns.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &str> {
        let skipped = usize::from(self.names == NamePlace::First);
        let words = self.text.split(' ').skip(skipped);
        words
            .zip(&self.list)
            .filter(|(_, column)| **column == Column::Unknown)
            .map(|(word, _)| word)
    }
}

/// Cache of the last header of a log, since nearly all headers are equal.
#[derive(Debug, Default)]
pub(crate) struct LastHeader(Option<(String, Arc<Columns>)>);

impl LastHeader {
    /// The columns of a header line, as [`Columns::of_header`] returns them.
    pub(crate) fn columns(&mut self, line: &str) -> Option<Arc<Columns>> {
        if let Some((header, columns)) = &self.0
            && header == line
        {
            return Some(columns.clone());
        }
        let columns = Arc::new(Columns::of_header(line)?);
        self.0 = Some((line.to_owned(), columns.clone()));
        Some(columns)
    }
}

impl FromStr for Columns {
    type Err = ColumnsError;

    /// Parses a header, with spaces or commas between the names; the word `Device` may be left out.
    fn from_str(text: &str) -> Result<Columns, ColumnsError> {
        let spaced = text.replace(',', " ");
        let first = spaced.split_whitespace().next().unwrap_or_default();
        let has_device = spaced
            .split_whitespace()
            .any(|word| word.trim_end_matches(':').eq_ignore_ascii_case("device"));
        let header = if has_device || Column::by_name(first) == Column::Unknown {
            spaced
        } else {
            format!("Device {spaced}")
        };
        Columns::of_header(&header)
            .filter(|columns| columns.unknown().next().is_none())
            .ok_or_else(|| ColumnsError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_recognized_by_its_columns_in_any_language() {
        for header in [
            "Device:    rrqm/s wrqm/s   r/s   w/s  rsec/s  wsec/s avgrq-sz avgqu-sz  await svctm  %util",
            "Périphérique: tps Blk_read/s Blk_wrtn/s Blk_read Blk_wrtn",
            "  f/s f_await  aqu-sz  %util Device",
            "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz e/s aqu-sz %util",
        ] {
            assert!(Columns::of_header(header).is_some(), "{header}");
        }
        for line in [
            "vda 0.00 0.00 0.00 0.00",
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle",
            "r/s and w/s are what I looked at in the end of that night",
            "Device r/s",
            "",
        ] {
            assert_eq!(Columns::of_header(line), None, "{line}");
        }
    }

    #[test]
    fn the_units_are_those_of_the_header() {
        for (name, column) in [
            ("rsec/s", Column::Flow(Part::Read, Figure::Bytes, 512.0)),
            ("wkB/s", Column::Flow(Part::Write, Figure::Bytes, 1024.0)),
            (
                "dMB/s",
                Column::Flow(Part::Discard, Figure::Bytes, 1024.0 * 1024.0),
            ),
            (
                "%drqm",
                Column::Flow(Part::Discard, Figure::MergedShare, 0.01),
            ),
            ("Blk_wrtn", Column::Flow(Part::Write, Figure::Moved, 512.0)),
            (
                "kB_w+d/s",
                Column::Flow(Part::Changed, Figure::Bytes, 1024.0),
            ),
            ("avgrq-sz", Column::Flow(Part::All, Figure::Size, 512.0)),
            ("rareq-sz", Column::Flow(Part::Read, Figure::Size, 1024.0)),
            ("util", Column::Busy),
            ("x/s", Column::Unknown),
            ("é/s", Column::Unknown),
        ] {
            assert_eq!(Column::by_name(name), column, "{name}");
        }
    }

    #[test]
    fn columns_are_given_with_spaces_or_commas() {
        let columns: Columns = "r/s,w/s,rkB/s,wkB/s,%util".parse().unwrap();
        assert_eq!(columns.text(), "Device r/s w/s rkB/s wkB/s %util");
        assert_eq!(columns.count(), 5);
        assert!("Device r/s w/s nonsense".parse::<Columns>().is_err());
        assert!("".parse::<Columns>().is_err());
    }
}
