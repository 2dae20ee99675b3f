//! Columns of the table: which of them there is room for.

use record::Nanos;
use record::sample::{FlowKind, Latencies};
use ui::screen::{Capabilities, TextStyle};

use super::figures::{MIB, UNKNOWN, rate, share, size, wait};
use crate::screen::frame::DeviceRow;
use crate::screen::order::SortBy;
use crate::screen::pages::TimeOverCaps;
use crate::screen::siblings::SiblingComparison;

/// Width of the signs before a name: selected, with a finding, folded.
pub(super) const SIGNS: usize = 3;
/// Least and greatest width of a name.
const LEAST_NAME: usize = 10;
/// Usual width of a member's name, which comes before the less important figures.
const USUAL_NAME: usize = 14;
const MOST_NAME: usize = 32;
/// Widths of the screen below which heads are short, and below which names are short too.
const SHORT: usize = 80;
const TINY: usize = 60;
/// Least and greatest width of a sparkline: a column for two seconds.
const LEAST_SPARK: usize = 10;
const MOST_SPARK: usize = 60;

/// A column of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Reads,
    Writes,
    ReadBytes,
    WriteBytes,
    ReadWait,
    WriteWait,
    Flight,
    Busy,
    Siblings,
    Cap,
    Size,
    Discards,
    Flushes,
    FlushWait,
    Median,
    P99,
    P999,
    Longest,
}

impl Column {
    /// Columns in the order in which they are shown.
    const ALL: [Column; 18] = [
        Column::Reads,
        Column::Writes,
        Column::ReadBytes,
        Column::WriteBytes,
        Column::ReadWait,
        Column::WriteWait,
        Column::Median,
        Column::P99,
        Column::P999,
        Column::Longest,
        Column::Siblings,
        Column::Flight,
        Column::Size,
        Column::Busy,
        Column::Cap,
        Column::Flushes,
        Column::FlushWait,
        Column::Discards,
    ];

    /// Head of the column, with the unit that the figures do not carry.
    pub(super) fn head(self, capabilities: Capabilities, is_short: bool) -> &'static str {
        match self {
            Column::ReadWait if is_short => "r-aw",
            Column::WriteWait if is_short => "w-aw",
            Column::Reads => "r/s",
            Column::Writes => "w/s",
            Column::ReadBytes => "rMiB/s",
            Column::WriteBytes => "wMiB/s",
            Column::ReadWait => "r-await",
            Column::WriteWait => "w-await",
            Column::Flight => "flight",
            Column::Busy => "busy",
            Column::Siblings => capabilities.sign("×sibl", "xsibl"),
            Column::Cap => "cap",
            Column::Size => "size",
            Column::Discards => "disc/s",
            Column::Flushes => "flush/s",
            Column::FlushWait => "f-await",
            Column::Median => "p50",
            Column::P99 => "p99",
            Column::P999 => "p99.9",
            Column::Longest => "max",
        }
    }

    /// Width of the column; most figures need five.
    pub(super) fn width(self, is_short: bool) -> usize {
        let capabilities = Capabilities {
            unicode: true,
            colour: false,
        };
        match self {
            Column::Siblings => 6,
            Column::Busy => 4,
            other => other.head(capabilities, is_short).chars().count().max(5),
        }
    }

    /// True if the rows are sorted by it.
    pub(super) fn is_sorted_by(self, by: SortBy) -> bool {
        matches!(
            (self, by),
            (Column::Reads, SortBy::Reads)
                | (Column::Writes, SortBy::Writes)
                | (Column::ReadBytes, SortBy::ReadBytes)
                | (Column::WriteBytes, SortBy::WriteBytes)
                | (Column::ReadWait, SortBy::ReadWait)
                | (Column::WriteWait, SortBy::WriteWait)
                | (Column::Flight, SortBy::Flight)
                | (Column::Busy, SortBy::Busy)
                | (Column::Siblings, SortBy::Siblings)
                | (Column::Size, SortBy::Size)
        )
    }

    /// A row's figure, and its style; `None` where the row's own style is meant.
    pub(super) fn cell(self, of: &RowCells<'_>) -> (String, Option<TextStyle>) {
        let figures = &of.row.figures;
        let flow = |kind| figures.flow(kind);
        let (read, write) = (flow(FlowKind::Read), flow(FlowKind::Write));
        let mib = |bytes: Option<f64>| rate(bytes.map(|bytes| bytes / MIB));
        let text = match self {
            Column::Reads => rate(read.iops.get()),
            Column::Writes => rate(write.iops.get()),
            Column::ReadBytes => mib(read.bytes.get()),
            Column::WriteBytes => mib(write.bytes.get()),
            Column::ReadWait => wait(read.wait.get()),
            Column::WriteWait => wait(write.wait.get()),
            Column::Flight => flight(of.row),
            Column::Busy => share(figures.busy.get()),
            Column::Size => size(figures.all.size.get()),
            Column::Discards => rate(flow(FlowKind::Discard).iops.get()),
            Column::Flushes => rate(flow(FlowKind::Flush).iops.get()),
            Column::FlushWait => wait(flow(FlowKind::Flush).wait.get()),
            Column::Median => quantile(of.row, |all| all.p50),
            Column::P99 => quantile(of.row, |all| all.p99),
            Column::P999 => quantile(of.row, |all| all.p999),
            Column::Longest => quantile(of.row, |all| all.max),
            Column::Siblings => return siblings(of.siblings),
            Column::Cap => return cap(of.caps),
        };
        (text, None)
    }
}

/// Sources of a row's figures.
pub(super) struct RowCells<'a> {
    /// Row of the device.
    pub row: &'a DeviceRow,
    /// Comparison with its siblings.
    pub siblings: Option<&'a SiblingComparison>,
    /// Time over its caps, by the vendor's page.
    pub caps: Option<TimeOverCaps>,
}

/// A percentile of the times of all requests.
fn quantile(row: &DeviceRow, of: fn(&Latencies) -> Nanos) -> String {
    let all = row
        .latency
        .as_ref()
        .and_then(|latency| latency.all.as_ref());
    wait(all.map(|all| of(all).as_secs_f64()))
}

/// A whole number at the end of the interval, or a mean.
pub(super) fn flight(row: &DeviceRow) -> String {
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

/// The volume's cap (`v`) or the instance's (`i`), whichever is hit for longer.
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

/// Columns that a table has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnPlan {
    /// Columns of the name.
    pub name: usize,
    /// The columns of figures, from left to right.
    pub columns: Vec<Column>,
    /// Columns of the sparkline; 0 where there is none.
    pub spark: usize,
    /// True if the heads are short.
    pub is_short: bool,
}

/// Data that the table has.
#[derive(Clone, Copy, Debug)]
pub(super) struct AvailableData {
    /// The longest name.
    pub name: usize,
    /// True if there are members to compare.
    pub siblings: bool,
    /// True if a vendor's caps are known.
    pub caps: bool,
    /// True if requests are timed.
    pub latency: bool,
}

impl ColumnPlan {
    /// Chooses the columns, the most important first, as long as there is room.
    pub(super) fn new(columns: usize, wish: AvailableData) -> ColumnPlan {
        let is_short = columns < SHORT;
        let usual = wish.name.clamp(LEAST_NAME, USUAL_NAME);
        let least = if columns < TINY { LEAST_NAME } else { usual };
        let mut left = columns.saturating_sub(SIGNS + least);
        let mut taken = Vec::new();
        let mut spark = 0;
        let steps: [&[Column]; 13] = [
            &[Column::Reads, Column::Writes],
            &[Column::P99, Column::Longest],
            &[Column::Median, Column::P999],
            &[Column::ReadWait, Column::WriteWait],
            &[Column::Busy],
            &[Column::Siblings],
            &[Column::Flight],
            &[Column::Cap],
            &[Column::ReadBytes, Column::WriteBytes],
            // The sparkline.
            &[],
            &[Column::Size],
            &[Column::Flushes, Column::FlushWait],
            &[Column::Discards],
        ];
        for step in steps {
            let is_idle = match step {
                [Column::Siblings] => !wish.siblings,
                [Column::Cap] => !wish.caps,
                [Column::P99 | Column::Median, _] => !wish.latency,
                _ => false,
            };
            let width: usize = step.iter().map(|column| column.width(is_short) + 1).sum();
            if step.is_empty() && left > LEAST_SPARK {
                spark = LEAST_SPARK;
                left -= LEAST_SPARK + 1;
            } else if !is_idle && width <= left {
                taken.extend(step);
                left -= width;
            }
        }
        let more = wish.name.clamp(least, MOST_NAME) - least;
        let more = more.min(left);
        left -= more;
        if spark > 0 {
            spark = (spark + left).min(MOST_SPARK);
        }
        ColumnPlan {
            name: least + more,
            columns: Column::ALL
                .into_iter()
                .filter(|column| taken.contains(column))
                .collect(),
            spark,
            is_short,
        }
    }
}

/// Aligns a text to the right of so many columns.
pub(super) fn right_aligned(text: &str, width: usize) -> String {
    format!("{text:>width$}")
}

/// Cuts a text that is too long, with a sign at its end.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return format!("{text:<width$}");
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…").chars().take(width).collect()
}

/// Text for a figure that is not known.
pub(super) fn unknown() -> String {
    UNKNOWN.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: AvailableData = AvailableData {
        name: 14,
        siblings: true,
        caps: true,
        latency: true,
    };

    #[test]
    fn the_main_columns_stay_on_a_narrow_screen() {
        let narrow = ColumnPlan::new(
            60,
            AvailableData {
                caps: false,
                latency: false,
                ..ALL
            },
        );
        assert_eq!(
            narrow.columns,
            [
                Column::Reads,
                Column::Writes,
                Column::ReadWait,
                Column::WriteWait,
                Column::Siblings,
                Column::Flight,
                Column::Busy,
            ]
        );
        assert_eq!(ColumnPlan::new(13, ALL).columns, []);
        let wide = ColumnPlan::new(200, ALL);
        assert_eq!(wide.columns, Column::ALL);
        assert_eq!((wide.name, wide.spark), (14, MOST_SPARK));
    }

    #[test]
    fn a_column_without_anything_in_it_takes_no_room() {
        let plan = ColumnPlan::new(
            200,
            AvailableData {
                name: 5,
                siblings: false,
                caps: false,
                latency: false,
            },
        );
        assert!(!plan.columns.contains(&Column::P99));
        assert!(!plan.columns.contains(&Column::Siblings));
        assert!(!plan.columns.contains(&Column::Cap));
    }

    proptest! {
        #[test]
        fn no_plan_is_wider_than_the_screen(
            columns in 13_usize..400,
            name in 0_usize..100,
            siblings: bool,
            caps: bool,
            latency: bool,
        ) {
            let plan = ColumnPlan::new(columns, AvailableData { name, siblings, caps, latency });
            let figures: usize = plan.columns.iter().map(|column| column.width(plan.is_short) + 1).sum();
            let spark = if plan.spark > 0 { plan.spark + 1 } else { 0 };
            prop_assert!(SIGNS + plan.name + figures + spark <= columns);
        }
    }
}
