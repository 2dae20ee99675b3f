//! Progress lines of a sweep. They are written to standard error even if it is not a terminal, so that a log shows the
//! times of the measurements.

use std::time::Duration;
use ui::units::span;

use super::decide::clauses::shown;
use super::record::{Cell, CellOutcome, SweepRecord};

/// Progress of one layout in its block.
pub(crate) struct LayoutProgress {
    place: String,
    layout: String,
}

impl LayoutProgress {
    /// Progress of the layout that is measured next.
    pub(crate) fn of(record: &SweepRecord, block: usize, layout: usize) -> LayoutProgress {
        let order = record.blocks.get(block).map_or(&[][..], |b| &b.order[..]);
        let at = order.iter().position(|&other| other == layout);
        let name = record.layouts.get(layout);
        LayoutProgress {
            place: format!(
                "block {}, {} of {}",
                block + 1,
                at.unwrap_or(0) + 1,
                order.len()
            ),
            layout: name.map_or_else(String::new, ToString::to_string),
        }
    }

    /// Line at the start of the layout.
    pub(crate) fn start_line(&self) -> String {
        format!("disksmith: {}: {}", self.place, self.layout)
    }

    /// Line at the end of the layout.
    pub(crate) fn done(&self, record: &SweepRecord, took: Duration) -> String {
        let result = match record.cells.last() {
            Some(cell) => result_of(record, cell),
            None => "not measured".to_owned(),
        };
        format!(
            "disksmith: {}: {result}, in {:.0} s; {}",
            self.place,
            took.as_secs_f64(),
            left(record)
        )
    }
}

fn result_of(record: &SweepRecord, cell: &Cell) -> String {
    match &cell.outcome {
        CellOutcome::Failed(why) => why.clone(),
        CellOutcome::Measured { figures, .. } => {
            let figure = record.settings.objective.figure();
            let value = figure.and_then(|figure| Some((figure, figures.get(figure)?)));
            match value {
                Some((figure, value)) => shown(figure, value.mean),
                None => "measured".to_owned(),
            }
        }
    }
}

/// Upper limit of the remaining time, as if no further layout were dropped.
fn left(record: &SweepRecord) -> String {
    let took: f64 = record.cells.iter().map(|cell| cell.took_s).sum();
    let each = took / record.cells.len().max(1) as f64;
    let Some((at, block)) = record.blocks.iter().enumerate().next_back() else {
        return "nothing left".to_owned();
    };
    let done = record.cells.iter().filter(|cell| cell.block == at).count();
    let more_blocks = record.settings.blocks.saturating_sub(at + 1);
    let cells = block.order.len().saturating_sub(done) + more_blocks * block.order.len();
    format!("at most {} left", span(each * cells as f64))
}
