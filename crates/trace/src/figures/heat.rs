//! Heat map of a device: I/Os by offset and time.

use super::series::{Merge, Series};
use crate::io::Io;

/// Rows: ranges of the device.
pub(crate) const ROWS: usize = 64;
/// Initial size of a row in bytes.
const MIN_ROW_BYTES: u64 = 1 << 20;

/// I/Os of a slice of time, by row.
#[derive(Debug)]
pub(crate) struct Column(pub(crate) [u32; ROWS]);

impl Default for Column {
    fn default() -> Column {
        Column([0; ROWS])
    }
}

impl Merge for Column {
    fn merge(&mut self, later: &Column) {
        for (row, more) in self.0.iter_mut().zip(&later.0) {
            *row = row.saturating_add(*more);
        }
    }
}

/// Number of I/Os by time (columns) and position (rows).
#[derive(Debug)]
pub(crate) struct HeatMap {
    columns: Series<Column>,
    /// Size of a row in bytes.
    pub(crate) row: u64,
}

impl Default for HeatMap {
    fn default() -> HeatMap {
        HeatMap {
            columns: Series::default(),
            row: MIN_ROW_BYTES,
        }
    }
}

impl HeatMap {
    pub(super) fn add(&mut self, io: &Io) {
        while io.offset.0 / self.row >= ROWS as u64 {
            self.row = self.row.saturating_mul(2);
            for column in self.columns.slices_mut() {
                for row in 0..ROWS {
                    let sum = |at: usize| column.0.get(at).copied().unwrap_or(0);
                    column.0[row] = sum(2 * row).saturating_add(sum(2 * row + 1));
                }
            }
        }
        let cell = &mut self.columns.at(io.issued).0[(io.offset.0 / self.row) as usize];
        *cell = cell.saturating_add(1);
    }

    pub(crate) fn columns(&self) -> &Series<Column> {
        &self.columns
    }
}
