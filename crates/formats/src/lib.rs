//! The formats of other tools: fio's JSON and JSON+, sysbench's fileio text and Bonnie++'s CSV, read and written;
//! logs of disks by iostat, sar and others ([`disk_log`]) and the slow logs of MySQL ([`slow_log`]), read.
//!
//! A file is read as a [`Summary`], in which every value that a tool may leave out is an `Option`. A file is also
//! written from a summary, so a run of this program is summed up first ([`sum_up`]). The input is not trusted: no
//! input makes a function here panic, and errors name the line.

mod bonnie;
pub mod disk_log;
mod error;
mod fio;
mod pieces;
pub mod slow_log;
mod sum_up;
mod sysbench;
pub mod text;

pub use error::{ReadError, WriteError};
pub use sum_up::sum_up;

use record::Summary;

use pieces::DocumentPiece;

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// fio's JSON+, as fio 3 writes it.
    FioJson,
    /// The text of sysbench 1.0's `fileio`, once for each phase.
    Sysbench,
    /// A line of Bonnie++'s CSV, format 1.98.
    Bonnie,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [Format::FioJson, Format::Sysbench, Format::Bonnie];

    /// Name of the format on the command line, and a line of help.
    pub fn describe(self) -> (&'static str, &'static str) {
        match self {
            Format::FioJson => ("fio-json", "fio's JSON+, with percentiles and buckets"),
            Format::Sysbench => (
                "sysbench",
                "What sysbench fileio 1.0 prints, for each phase",
            ),
            Format::Bonnie => ("bonnie", "A line of Bonnie++'s CSV, format 1.98"),
        }
    }
}

/// Reads all documents in `text`, in order. Their format is recognized by their content, never by a file name; other
/// text around them is skipped.
///
/// # Errors
/// When a document is damaged or cut short, or there is none.
pub fn read(text: &str) -> Result<Vec<Summary>, ReadError> {
    let mut summaries = Vec::new();
    let mut grids = Vec::new();
    for piece in pieces::pieces(text)? {
        // Consecutive outputs of sysbench are the cells of a grid of tests.
        if !matches!(piece, DocumentPiece::Sysbench { .. }) {
            summaries.extend(named(&mut grids));
        }
        match piece {
            DocumentPiece::Fio(summary) => summaries.push(*summary),
            DocumentPiece::Bonnie { line, text } => {
                summaries.push(bonnie::read::summary(line, text)?)
            }
            DocumentPiece::Sysbench { line, text } => {
                if let Some(cell) = sysbench::read::phase(line, text)? {
                    add_cell(&mut grids, cell);
                }
            }
        }
    }
    summaries.extend(named(&mut grids));
    if summaries.is_empty() {
        return Err(ReadError::nothing());
    }
    Ok(summaries)
}

/// The grids that are complete, with a name for each cell.
fn named(grids: &mut Vec<Summary>) -> Vec<Summary> {
    for grid in grids.iter_mut() {
        sysbench::name_cells(&mut grid.phases);
    }
    std::mem::take(grids)
}

/// Adds a cell to its grid, or begins another one: each version of the tool has a grid of its own.
fn add_cell(grids: &mut Vec<Summary>, cell: Summary) {
    match grids.last_mut() {
        Some(grid) if grid.tool == cell.tool => grid.phases.extend(cell.phases),
        _ => grids.push(cell),
    }
}

/// Writes a summary in another tool's format. Unknown values are left out if the format allows it; none are invented.
///
/// # Errors
/// When the format has no place for any of its phases.
pub fn write(format: Format, summary: &Summary) -> Result<String, WriteError> {
    match format {
        Format::FioJson => fio::write::document(summary),
        Format::Sysbench => sysbench::write::text(summary),
        Format::Bonnie => bonnie::write::line(summary),
    }
}
