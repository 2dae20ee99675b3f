//! Choice of the table's columns that fit on the screen.

use std::collections::BTreeSet;

use crate::screen::columns::{COLUMNS, Column, Needs, SPARKLINE_RANK};

/// Width of the signs before a name: selected, with a finding, folded.
pub(super) const SIGNS: usize = 3;
/// Minimum width of a name.
const MIN_NAME_COLUMNS: usize = 10;
/// Usual width of a member's name, which has priority over the less important figures.
const USUAL_NAME_COLUMNS: usize = 14;
/// Maximum width of a name.
const MAX_NAME_COLUMNS: usize = 32;
/// Width of the screen below which heads are short.
const SHORT: usize = 80;
/// Width of the screen below which names are short too.
const TINY: usize = 60;
/// Minimum width of a sparkline.
const MIN_SPARK_COLUMNS: usize = 10;
/// Maximum width of a sparkline: one column for two seconds.
const MAX_SPARK_COLUMNS: usize = 60;

/// Columns that a table has room for.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    /// Columns of the name.
    pub name: usize,
    /// The columns of figures, from left to right.
    pub columns: Vec<&'static Column>,
    /// Columns of the sparkline; 0 where there is none.
    pub spark: usize,
    /// True if the heads are short.
    pub is_short: bool,
}

/// Data that exist for the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct AvailableData {
    /// Length of the longest name, in characters.
    pub name: usize,
    /// True if there are members to compare.
    pub siblings: bool,
    /// True if a vendor's caps are known.
    pub caps: bool,
    /// True if requests are timed.
    pub latency: bool,
}

impl AvailableData {
    fn has(self, data: Needs) -> bool {
        match data {
            Needs::Samples => true,
            Needs::Siblings => self.siblings,
            Needs::Caps => self.caps,
            Needs::Latency => self.latency,
        }
    }
}

impl ColumnPlan {
    /// Chooses the columns for a screen that is `columns` wide, the most important first.
    pub(super) fn new(columns: usize, wish: AvailableData) -> ColumnPlan {
        let is_short = columns < SHORT;
        let usual = wish.name.clamp(MIN_NAME_COLUMNS, USUAL_NAME_COLUMNS);
        let least = if columns < TINY {
            MIN_NAME_COLUMNS
        } else {
            usual
        };
        let mut left = columns.saturating_sub(SIGNS + least);
        let mut taken = BTreeSet::new();
        let mut spark = 0;
        let ranks = COLUMNS.iter().map(|column| column.rank);
        let ranks: BTreeSet<u8> = ranks.chain([SPARKLINE_RANK]).collect();
        for rank in ranks {
            let columns = COLUMNS
                .iter()
                .filter(|column| column.rank == rank && wish.has(column.needs));
            let width: usize = columns.map(|column| column.width(is_short) + 1).sum();
            if rank == SPARKLINE_RANK && left > MIN_SPARK_COLUMNS {
                spark = MIN_SPARK_COLUMNS;
                left -= MIN_SPARK_COLUMNS + 1;
            } else if width <= left {
                taken.insert(rank);
                left -= width;
            }
        }
        let more = wish.name.clamp(least, MAX_NAME_COLUMNS) - least;
        let more = more.min(left);
        left -= more;
        if spark > 0 {
            spark = (spark + left).min(MAX_SPARK_COLUMNS);
        }
        ColumnPlan {
            name: least + more,
            columns: COLUMNS
                .iter()
                .filter(|column| taken.contains(&column.rank) && wish.has(column.needs))
                .collect(),
            spark,
            is_short,
        }
    }
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

    fn heads(plan: &ColumnPlan) -> Vec<&'static str> {
        plan.columns.iter().map(|column| column.head).collect()
    }

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
        let heads = [
            "r/s", "w/s", "r-await", "w-await", "×sibl", "flight", "busy",
        ];
        assert_eq!(self::heads(&narrow), heads);
        assert!(ColumnPlan::new(13, ALL).columns.is_empty());
        let wide = ColumnPlan::new(200, ALL);
        assert_eq!(wide.columns.len(), COLUMNS.len());
        assert_eq!((wide.name, wide.spark), (14, MAX_SPARK_COLUMNS));
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
        assert!(!heads(&plan).contains(&"p99"));
        assert!(!heads(&plan).contains(&"×sibl"));
        assert!(!heads(&plan).contains(&"cap"));
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
