//! The figures of each layout over the blocks.

use std::collections::{BTreeMap, BTreeSet};

use study::small_samples;

use super::measurements::Measurements;
use crate::figure::Figure;
use crate::record::{CellOutcome, Value};

/// The figures of all layouts.
pub(super) struct Summaries {
    layouts: Vec<BTreeMap<Figure, Value>>,
}

impl Summaries {
    /// Geometric means over the blocks. Their intervals come from the differences between blocks over all layouts;
    /// with one block it is the interval of the run.
    pub(super) fn of(measurements: &Measurements) -> Summaries {
        let count = measurements.record.layouts.len();
        let mut layouts = vec![BTreeMap::new(); count];
        for figure in names(measurements) {
            let seen: Vec<Vec<Value>> = (0..count)
                .map(|layout| measurements.blocks(layout, &figure).into_values().collect())
                .collect();
            let groups: Vec<Vec<f64>> = seen
                .iter()
                .map(|values| values.iter().map(|value| value.mean).collect())
                .collect();
            for ((figures, values), interval) in layouts
                .iter_mut()
                .zip(&seen)
                .zip(small_samples::means(&groups))
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

    /// A figure of a layout.
    pub(super) fn figure(&self, layout: usize, figure: &Figure) -> Option<Value> {
        self.layouts.get(layout)?.get(figure).copied()
    }
}

/// A figure of each layout in an average block, for comparisons between layouts that were measured in different
/// blocks; as measured where no block was repeated.
pub(super) fn in_average_block(measurements: &Measurements, figure: &Figure) -> Vec<Option<Value>> {
    let layouts = 0..measurements.record.layouts.len();
    let seen: Vec<BTreeMap<usize, Value>> = layouts
        .map(|layout| measurements.blocks(layout, figure))
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
    let intervals = small_samples::means_of_blocks(&groups)
        .into_iter()
        .zip(&seen);
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

/// The figures that at least one cell has.
fn names(measurements: &Measurements) -> BTreeSet<Figure> {
    let layouts = 0..measurements.record.layouts.len();
    let cells = layouts.flat_map(|layout| measurements.cells(layout));
    let figures = cells.filter_map(|cell| match &cell.outcome {
        CellOutcome::Measured { figures, .. } => Some(figures.keys().cloned()),
        CellOutcome::Failed(_) => None,
    });
    figures.flatten().collect()
}
