//! Measurements of each layout, block by block.

use std::collections::BTreeMap;

use crate::figure::{Figure, Metric};
use crate::objective::Objective;
use crate::record::{Cell, CellOutcome, SweepRecord, Value};

/// Number of failures of a layout after which it is given up.
pub(super) const TRIES: usize = 2;

/// A record, asked by layout.
pub(super) struct Observed<'a> {
    /// The record.
    pub record: &'a SweepRecord,
    /// The cells of each layout that count for it, in order of time.
    cells: Vec<Vec<&'a Cell>>,
}

impl<'a> Observed<'a> {
    /// Sorts the cells by layout. The baseline is measured in blocks that do not want it any more,
    /// and once after the last: those cells tell of the drift alone.
    pub(super) fn of(record: &'a SweepRecord) -> Observed<'a> {
        let mut cells = vec![Vec::new(); record.layouts.len()];
        for cell in &record.cells {
            let block = record.blocks.get(cell.block);
            let counts = cell.block < record.settings.blocks
                && block.is_none_or(|block| block.wanted.contains(&cell.layout));
            if let Some(of_layout) = cells.get_mut(cell.layout).filter(|_| counts) {
                of_layout.push(cell);
            }
        }
        Observed { record, cells }
    }

    /// The cells of a layout.
    pub(super) fn cells(&self, layout: usize) -> &[&'a Cell] {
        self.cells.get(layout).map_or(&[], Vec::as_slice)
    }

    /// A figure of a layout in each block in which it was measured; where it was measured twice in
    /// a block, as the baseline may be, the mean of both.
    pub(super) fn blocks(&self, layout: usize, figure: &Figure) -> BTreeMap<usize, Value> {
        let mut seen: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        for cell in self.cells(layout) {
            // A rate of nothing and a latency of nothing were not measured.
            let value = cell.figure(figure).filter(|value| is_positive(value.mean));
            if let Some(value) = value {
                seen.entry(cell.block).or_default().push(value);
            }
        }
        let one = |(block, values): (usize, Vec<Value>)| match values.as_slice() {
            [value] => (block, *value),
            _ => (
                block,
                Value::plain(mean(values.iter().map(|value| value.mean))),
            ),
        };
        seen.into_iter().map(one).collect()
    }

    /// In how many blocks a layout was measured.
    pub(super) fn measured(&self, layout: usize) -> usize {
        let measured = self.cells(layout).iter().filter(|cell| cell.is_measured());
        let mut blocks: Vec<usize> = measured.map(|cell| cell.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    }

    /// Reason for which a layout is given up: it failed too often.
    pub(super) fn given_up(&self, layout: usize) -> Option<&'a str> {
        let failures = self
            .cells(layout)
            .iter()
            .filter_map(|cell| match &cell.outcome {
                CellOutcome::Failed(why) => Some(why.as_str()),
                CellOutcome::Measured { .. } => None,
            });
        let failures: Vec<&str> = failures.collect();
        failures.last().copied().filter(|_| failures.len() >= TRIES)
    }

    /// Reason for which the last attempt at a layout failed, where it did.
    pub(super) fn failed_last(&self, layout: usize) -> Option<&'a str> {
        match &self.cells(layout).last()?.outcome {
            CellOutcome::Failed(why) => Some(why),
            CellOutcome::Measured { .. } => None,
        }
    }

    /// True if a layout failed in a block in which it was not measured.
    pub(super) fn has_failed(&self, layout: usize) -> bool {
        let cells = self.cells(layout);
        let measured = |block| {
            cells
                .iter()
                .any(|cell| cell.block == block && cell.is_measured())
        };
        cells.iter().any(|cell| !measured(cell.block))
    }

    /// True if a layout was tried in the last block.
    pub(super) fn was_tried_last(&self, layout: usize) -> bool {
        let blocks = self.record.settings.blocks;
        self.cells(layout)
            .iter()
            .any(|cell| cell.block.saturating_add(1) >= blocks)
    }

    /// True if the last block was begun and all that it wants was tried. A layout that comes back only then,
    /// since the noise turned out larger or the best misses a requirement, is measured no further.
    pub(super) fn has_run_out(&self) -> bool {
        let last = self.record.settings.blocks.checked_sub(1);
        let block = last.and_then(|last| Some((last, self.record.blocks.get(last)?)));
        block.is_some_and(|(last, block)| {
            let tried = |layout: &usize| self.cells(*layout).iter().any(|cell| cell.block == last);
            block.wanted.iter().all(tried)
        })
    }

    /// The figure that ranks the layouts, or that stands for speed where only money counts: the
    /// first that is required, or what the first phase does.
    pub(super) fn speed(&self) -> Figure {
        let settings = &self.record.settings;
        if let Objective::Figure(figure) | Objective::PerDollar(figure) = &settings.objective {
            return figure.clone();
        }
        let required = settings.requires.first().map(|bar| bar.figure.clone());
        required.unwrap_or_else(|| {
            let phase = settings.phases.first().map_or("workload", String::as_str);
            Figure::of(phase, Metric::Iops)
        })
    }
}

impl Cell {
    /// True if it has figures.
    pub(super) fn is_measured(&self) -> bool {
        matches!(self.outcome, CellOutcome::Measured { .. })
    }
}

/// True if a value can be a rate, a latency or a cost.
pub(super) fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// The mean; NaN of nothing.
pub(super) fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
