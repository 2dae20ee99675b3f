//! The figures of each layout over the blocks.

use std::collections::{BTreeMap, BTreeSet};

use study::few;

use super::observed::Observed;
use crate::figure::Figure;
use crate::record::{CellOutcome, Value};

/// All figures of all layouts.
pub(super) struct Summaries {
    layouts: Vec<BTreeMap<Figure, Value>>,
}

impl Summaries {
    /// Takes the geometric mean over the blocks. The interval is of what differs from block to
    /// block, as all layouts together show it; of one block alone it is the run's own.
    pub(super) fn of(observed: &Observed) -> Summaries {
        let count = observed.record.layouts.len();
        let mut layouts = vec![BTreeMap::new(); count];
        for figure in names(observed) {
            let seen: Vec<Vec<Value>> = (0..count)
                .map(|layout| observed.blocks(layout, &figure).into_values().collect())
                .collect();
            let groups: Vec<Vec<f64>> = seen
                .iter()
                .map(|values| values.iter().map(|value| value.mean).collect())
                .collect();
            for ((figures, values), interval) in
                layouts.iter_mut().zip(&seen).zip(few::means(&groups))
            {
                let over_blocks = interval.map(|interval| Value {
                    mean: interval.mean,
                    low: Some(interval.low),
                    high: Some(interval.high),
                });
                if let Some(value) = over_blocks.or_else(|| values.first().copied()) {
                    figures.insert(figure.clone(), value);
                }
            }
        }
        Summaries { layouts }
    }

    /// The figures of a layout.
    pub(super) fn figures(&self, layout: usize) -> BTreeMap<Figure, Value> {
        self.layouts.get(layout).cloned().unwrap_or_default()
    }

    /// One of them.
    pub(super) fn figure(&self, layout: usize, figure: &Figure) -> Option<Value> {
        self.layouts.get(layout)?.get(figure).copied()
    }
}

/// A figure of each layout in an average block, for comparisons between layouts that were measured
/// in different blocks; where nothing was repeated, as it was measured.
pub(super) fn in_average_block(observed: &Observed, figure: &Figure) -> Vec<Option<Value>> {
    let layouts = 0..observed.record.layouts.len();
    let seen: Vec<BTreeMap<usize, Value>> = layouts
        .map(|layout| observed.blocks(layout, figure))
        .collect();
    let groups: Vec<Vec<(usize, f64)>> = seen
        .iter()
        .map(|blocks| {
            blocks
                .iter()
                .map(|(block, value)| (*block, value.mean))
                .collect()
        })
        .collect();
    let intervals = few::means_of_blocks(&groups).into_iter().zip(&seen);
    intervals
        .map(|(interval, seen)| {
            let value = interval.map(|interval| Value {
                mean: interval.mean,
                low: Some(interval.low),
                high: Some(interval.high),
            });
            value.or_else(|| seen.values().next().copied())
        })
        .collect()
}

/// All figures that any cell has.
fn names(observed: &Observed) -> BTreeSet<Figure> {
    let layouts = 0..observed.record.layouts.len();
    let cells = layouts.flat_map(|layout| observed.cells(layout));
    let figures = cells.filter_map(|cell| match &cell.outcome {
        CellOutcome::Measured { figures, .. } => Some(figures.keys().cloned()),
        CellOutcome::Failed(_) => None,
    });
    figures.flatten().collect()
}
