//! The live screen of `watch`: from what is known to lines of text. No terminal is touched here.
//!
//! What there is no room for goes, by how much it matters: columns of the table, lines of the head,
//! findings that are over. Nothing is broken at the edge of the screen.

mod columns;
mod detail;
mod findings;
mod head;
mod help;
mod line;
mod table;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use line::{Line, Style};

use crate::screen::model::{Model, Page};
use line::Look;

/// The size of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Columns.
    pub columns: usize,
    /// Lines.
    pub lines: usize,
}

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// The lines, from the top: no more than there is room for, and none too long.
    pub lines: Vec<Line>,
    /// How many rows of devices or lines of a page are seen at once.
    pub page_rows: usize,
    /// How many lines can be above the first that is seen.
    pub furthest: usize,
}

/// Draws the screen.
pub(crate) fn draw(model: &Model, size: Size, style: Style) -> Picture {
    let mut head = vec![head::title(model, style)];
    let is_table = model.page == Page::Devices;
    if is_table {
        let most = match size.lines {
            0..8 => 0,
            8..14 => 1,
            14..24 => 2,
            _ => 3,
        };
        head.extend(head::host(model, size.columns, most));
    }
    let foot = (size.lines >= 3).then(|| head::keys(model, size.columns, style));
    let room = size
        .lines
        .saturating_sub(head.len() + usize::from(foot.is_some()));
    let mut picture = if is_table {
        devices(model, size.columns, room, style)
    } else {
        page(model, size.columns, room, style)
    };
    picture.lines.resize(room, Line::default());
    let lines = head.into_iter().chain(picture.lines).chain(foot);
    picture.lines = lines
        .take(size.lines)
        .map(|line| line.fit(size.columns, style))
        .collect();
    picture
}

/// The table of devices, and findings below it.
fn devices(model: &Model, columns: usize, room: usize, style: Style) -> Picture {
    let table = table::Table::new(model, columns, style);
    let wanted = if room >= 8 {
        findings::below(model, columns, style)
    } else {
        Vec::new()
    };
    // Findings may take what the table leaves, and two fifths where both are long.
    let left = room.saturating_sub(table.height());
    let for_findings = wanted.len().min(left.max(room * 2 / 5));
    let rows = table.lines(room - for_findings);
    let mut lines = rows.lines;
    lines.resize(room - for_findings, Line::default());
    lines.extend(findings::cut(wanted, for_findings, style));
    Picture {
        lines,
        page_rows: rows.page_rows,
        furthest: 0,
    }
}

/// A page of text, which may be longer than the screen.
fn page(model: &Model, columns: usize, room: usize, style: Style) -> Picture {
    let all = match model.page {
        Page::Detail => detail::lines(model, columns, style),
        Page::Findings => findings::all(model, columns, style),
        Page::Help | Page::Devices => help::lines(model, columns),
    };
    let furthest = all.len().saturating_sub(room);
    let above = model.scroll.min(furthest);
    let mut lines: Vec<Line> = all.into_iter().skip(above).take(room).collect();
    if above < furthest
        && let Some(last) = lines.last_mut()
    {
        let more = furthest - above + 1;
        *last = Line::of(format!("  {more} more lines: arrow down"), Look::Reverse);
    }
    Picture {
        lines,
        page_rows: room.saturating_sub(1).max(1),
        furthest,
    }
}
