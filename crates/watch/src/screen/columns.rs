//! Columns of the table of devices, defined in one row each.

use record::Nanos;
use record::sample::{FlowKind, Latencies};
use ui::screen::{Capabilities, TextStyle};

use super::figures::{mib, rate, share, size, wait};
use super::frame::{DeviceRow, Rates};
use super::pages::TimeOverCaps;
use super::siblings::SiblingComparison;

/// Columns in the order in which they are shown.
pub(crate) static COLUMNS: [Column; 18] = [
    Column::new("r/s", 1, rate, |of| of.read().iops.get()).sorted(1),
    Column::new("w/s", 1, rate, |of| of.write().iops.get()).sorted(2),
    Column::new("rMiB/s", 9, mib, |of| of.read().bytes.get()).sorted(3),
    Column::new("wMiB/s", 9, mib, |of| of.write().bytes.get()).sorted(4),
    Column::new("r-await", 4, wait, |of| of.read().wait.get())
        .sorted(5)
        .short("r-aw"),
    Column::new("w-await", 4, wait, |of| of.write().wait.get())
        .sorted(6)
        .short("w-aw"),
    Column::new("p50", 3, wait, |of| of.latency(|all| all.p50)).needs(Needs::Latency),
    Column::new("p99", 2, wait, |of| of.latency(|all| all.p99)).needs(Needs::Latency),
    Column::new("p99.9", 3, wait, |of| of.latency(|all| all.p999)).needs(Needs::Latency),
    Column::new("max", 2, wait, |of| of.latency(|all| all.max)).needs(Needs::Latency),
    Column {
        ascii: "xsibl",
        width: 6,
        sort_name: "siblings",
        text: CellText::Row(|of| siblings(of.siblings)),
        ..Column::new("×sibl", 6, rate, |of| Some(of.siblings?.ratio))
            .sorted(9)
            .needs(Needs::Siblings)
    },
    Column {
        text: CellText::Row(|of| (flight(of.row), None)),
        ..Column::new("flight", 7, rate, |of| of.row.figures.flight()).sorted(7)
    },
    Column::new("size", 11, size, |of| of.row.figures.all.size.get()).sorted(10),
    Column {
        width: 4,
        ..Column::new("busy", 5, share, |of| of.row.figures.busy.get()).sorted(8)
    },
    Column {
        text: CellText::Row(|of| cap(of.caps)),
        ..Column::new("cap", 8, share, |_| None).needs(Needs::Caps)
    },
    Column::new("flush/s", 12, rate, |of| {
        of.flow(FlowKind::Flush).iops.get()
    }),
    Column::new("f-await", 12, wait, |of| {
        of.flow(FlowKind::Flush).wait.get()
    }),
    Column::new("disc/s", 13, rate, |of| {
        of.flow(FlowKind::Discard).iops.get()
    }),
];

/// Explanations of column heads, for the help page.
pub(crate) const EXPLANATIONS: [(&str, &str); 5] = [
    (
        "xsibl",
        "a member's await against the median of its siblings, over 10 s; ! where it stands out at \
         the same load",
    ),
    (
        "await, aw",
        "the mean time of a request, with its time in the queue",
    ),
    (
        "p99, max",
        "with --latency, of all requests in the interval: 99 of 100 took no longer, from issue to completion; the longest",
    ),
    (
        "cap",
        "by the vendor's statistics page: the share of time over the volume's cap (v) or the instance's (i)",
    ),
    ("flight", "requests in flight when the interval ended"),
];

/// Rank of the sparkline among the columns.
pub(crate) const SPARKLINE_RANK: u8 = 10;

/// A column of figures.
#[derive(Debug)]
pub(crate) struct Column {
    /// Head, with the unit of the figures.
    pub head: &'static str,
    /// Head where the terminal has no Unicode.
    ascii: &'static str,
    /// Head on a narrow screen, if it differs.
    short: Option<&'static str>,
    /// Minimum width, in characters.
    width: usize,
    /// Importance: columns of the lowest rank are placed first, those of the same rank together.
    pub rank: u8,
    /// Data without which the column is left out.
    pub needs: Needs,
    /// Position among the sort orders; `None` where rows cannot be sorted by the column.
    pub sort: Option<u8>,
    /// Name of the sort order.
    pub sort_name: &'static str,
    /// Figure of a row.
    pub figure: fn(&RowCells<'_>) -> Option<f64>,
    text: CellText,
}

/// Text of a cell.
#[derive(Clone, Copy, Debug)]
enum CellText {
    /// Text of the column's figure.
    Figure(fn(Option<f64>) -> String),
    /// Text of the row, with its own style.
    Row(fn(&RowCells<'_>) -> (String, Option<TextStyle>)),
}

/// Data that a column needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Only samples.
    Samples,
    /// Members to compare.
    Siblings,
    /// A vendor's caps.
    Caps,
    /// Timed requests.
    Latency,
}

impl Column {
    const fn new(
        head: &'static str,
        rank: u8,
        text: fn(Option<f64>) -> String,
        figure: fn(&RowCells<'_>) -> Option<f64>,
    ) -> Column {
        Column {
            head,
            ascii: head,
            short: None,
            width: 5,
            rank,
            needs: Needs::Samples,
            sort: None,
            sort_name: head,
            figure,
            text: CellText::Figure(text),
        }
    }

    const fn sorted(mut self, place: u8) -> Column {
        self.sort = Some(place);
        self
    }

    const fn short(mut self, head: &'static str) -> Column {
        self.short = Some(head);
        self
    }

    const fn needs(mut self, data: Needs) -> Column {
        self.needs = data;
        self
    }

    /// Head of the column on this terminal.
    pub(crate) fn head(&self, capabilities: Capabilities, is_short: bool) -> &'static str {
        let short = self.short.filter(|_| is_short);
        short.unwrap_or_else(|| capabilities.sign(self.head, self.ascii))
    }

    /// Width of the column.
    pub(crate) fn width(&self, is_short: bool) -> usize {
        let head = self.short.filter(|_| is_short).unwrap_or(self.head);
        head.chars().count().max(self.width)
    }

    /// Text of a row's cell, and its style; `None` for the style of the row.
    pub(crate) fn cell(&self, of: &RowCells<'_>) -> (String, Option<TextStyle>) {
        match self.text {
            CellText::Figure(text) => (text((self.figure)(of)), None),
            CellText::Row(text) => text(of),
        }
    }
}

/// Data from which a row's figures are made.
pub(crate) struct RowCells<'a> {
    /// Row of the device.
    pub row: &'a DeviceRow,
    /// Comparison with its siblings.
    pub siblings: Option<&'a SiblingComparison>,
    /// Time over its caps, by the vendor's page.
    pub caps: Option<TimeOverCaps>,
}

impl RowCells<'_> {
    fn flow(&self, kind: FlowKind) -> &Rates {
        self.row.figures.flow(kind)
    }

    fn read(&self) -> &Rates {
        self.flow(FlowKind::Read)
    }

    fn write(&self) -> &Rates {
        self.flow(FlowKind::Write)
    }

    /// A percentile of the latency of all requests, in seconds.
    fn latency(&self, of: fn(&Latencies) -> Nanos) -> Option<f64> {
        let all = self.row.latency.as_ref()?.all.as_ref()?;
        Some(of(all).as_secs_f64())
    }
}

/// Text of the requests in flight: their number at the end of the interval, or else the mean.
pub(crate) fn flight(row: &DeviceRow) -> String {
    match row.figures.in_flight.get() {
        Some(count) if count < 99_999.5 => format!("{count:.0}"),
        Some(count) => rate(Some(count)),
        None => rate(row.figures.mean_in_flight.get()),
    }
}

fn siblings(comparison: Option<&SiblingComparison>) -> (String, Option<TextStyle>) {
    let Some(comparison) = comparison else {
        return (String::new(), None);
    };
    let number = match comparison.ratio {
        ratio if ratio < 9.95 => format!("{ratio:.1}×"),
        ratio if ratio < 999.5 => format!("{ratio:.0}×"),
        _ => ">999×".to_owned(),
    };
    match comparison.stands_out {
        true => (format!("{number}!"), Some(TextStyle::Warning)),
        false => (number, None),
    }
}

/// Share of the time over the volume's cap (`v`) or the instance's (`i`), whichever is longer.
fn cap(caps: Option<TimeOverCaps>) -> (String, Option<TextStyle>) {
    let Some(caps) = caps else {
        return (String::new(), None);
    };
    let (whose, most) = match caps.volume >= caps.instance {
        true => ('v', caps.volume),
        false => ('i', caps.instance),
    };
    match most > 0.0 {
        true => (
            format!("{whose}{}", share(Some(most))),
            Some(TextStyle::Warning),
        ),
        false => (share(Some(0.0)), None),
    }
}
