//! Measurements of each layout, block by block.

use std::collections::BTreeMap;

use crate::figure::{Figure, Metric};
use crate::objective::Objective;
use crate::record::{Cell, CellOutcome, SweepRecord, Value};

/// Number of failures of a layout after which it is not tried again.
pub(super) const MAX_FAILURES: usize = 2;

/// The measurements of a record, by layout.
pub(super) struct Measurements<'a> {
    /// Record of the sweep.
    pub record: &'a SweepRecord,
    /// The cells of each layout that are used for the ranking, in order of time.
    cells: Vec<Vec<&'a Cell>>,
}

impl<'a> Measurements<'a> {
    /// Groups the cells by layout. The baseline is also measured in blocks after it was dropped, and once after the
    /// last block: these cells only show the drift.
    pub(super) fn of(record: &'a SweepRecord) -> Measurements<'a> {
        let mut cells = vec![Vec::new(); record.layouts.len()];
        for cell in &record.cells {
            let block = record.blocks.get(cell.block);
            let counts = cell.block < record.settings.blocks
                && block.is_none_or(|block| block.wanted.contains(&cell.layout));
            if let Some(of_layout) = cells.get_mut(cell.layout).filter(|_| counts) {
                of_layout.push(cell);
            }
        }
        Measurements { record, cells }
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
            // A rate or latency of 0 was not measured.
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

    /// Number of blocks in which a layout was measured.
    pub(super) fn measured(&self, layout: usize) -> usize {
        let measured = self.cells(layout).iter().filter(|cell| cell.is_measured());
        let mut blocks: Vec<usize> = measured.map(|cell| cell.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.len()
    }

    /// Reason for the last failure of a layout that failed too often.
    pub(super) fn given_up(&self, layout: usize) -> Option<&'a str> {
        let failures = self
            .cells(layout)
            .iter()
            .filter_map(|cell| match &cell.outcome {
                CellOutcome::Failed(why) => Some(why.as_str()),
                CellOutcome::Measured { .. } => None,
            });
        let failures: Vec<&str> = failures.collect();
        failures
            .last()
            .copied()
            .filter(|_| failures.len() >= MAX_FAILURES)
    }

    /// Reason for the failure of the last attempt at a layout; `None` if the attempt succeeded or there was none.
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

    /// True if the last block was begun and all its layouts were tried. A layout that becomes eligible again only
    /// then, by larger noise or a leader that misses a requirement, is not measured further.
    pub(super) fn has_run_out(&self) -> bool {
        let last = self.record.settings.blocks.checked_sub(1);
        let block = last.and_then(|last| Some((last, self.record.blocks.get(last)?)));
        block.is_some_and(|(last, block)| {
            let tried = |layout: &usize| self.cells(*layout).iter().any(|cell| cell.block == last);
            block.wanted.iter().all(tried)
        })
    }

    /// The figure that ranks the layouts. Where the objective is cost it is the figure of the first requirement, or
    /// the rate of the first phase.
    pub(super) fn speed(&self) -> Figure {
        let settings = &self.record.settings;
        if let Objective::Figure(figure) | Objective::PerDollar(figure) = &settings.objective {
            return figure.clone();
        }
        let required = settings.requires.first().map(|one| one.figure.clone());
        required.unwrap_or_else(|| {
            let phase = settings.phases.first().map_or("workload", String::as_str);
            Figure::of(phase, Metric::Iops)
        })
    }
}

impl Cell {
    /// True if the cell has figures.
    pub(super) fn is_measured(&self) -> bool {
        matches!(self.outcome, CellOutcome::Measured { .. })
    }
}

/// True if a value can be a rate, a latency or a cost.
pub(super) fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// The mean; NaN without values.
pub(super) fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
