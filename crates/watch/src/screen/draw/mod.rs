//! Drawing of the live screen of `watch`: from its state to widgets, without access to a terminal.
//!
//! Parts that do not fit are left out as a whole, the least important first: columns of the table, lines of the head,
//! ended findings.

mod detail;
mod findings;
mod head;
mod help;
mod latency;
mod plan;
mod table;
#[cfg(test)]
mod tests;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Constraint, Layout, Rect};
use ratatui_core::text::{Line, Text};
use ratatui_core::widgets::Widget as _;
use ui::screen::{Capabilities, Pieces as _, TextStyle};

use crate::screen::model::{Model, Page};

/// The visible part of a list or a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VisiblePart {
    /// Number of visible rows of devices, or lines of a page.
    pub page_rows: usize,
    /// Maximum scroll offset, in lines.
    pub furthest: usize,
}

/// Draws the screen.
pub(crate) fn draw(
    model: &Model,
    area: Rect,
    buffer: &mut Buffer,
    capabilities: Capabilities,
) -> VisiblePart {
    let columns = usize::from(area.width);
    let host = match (model.page, area.height) {
        (Page::Devices, 24..) => head::host(model, columns, 3),
        (Page::Devices, 14..) => head::host(model, columns, 2),
        (Page::Devices, 8..) => head::host(model, columns, 1),
        _ => Vec::new(),
    };
    let [title, figures, body, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(host.len() as u16),
        Constraint::Fill(1),
        Constraint::Length(u16::from(area.height >= 3)),
    ])
    .areas(area);
    let mut put = |lines: Vec<Line<'static>>, area: Rect| {
        let lines = lines.into_iter().map(|line| capabilities.line(line));
        Text::from_iter(lines).render(area, buffer);
    };
    put(vec![head::title(model, capabilities)], title);
    put(host, figures);
    put(vec![head::keys(model, columns, capabilities)], keys);
    let room = usize::from(body.height);
    let (lines, view) = match model.page {
        Page::Devices => devices(model, columns, room, capabilities),
        _ => page(model, columns, room, capabilities),
    };
    put(lines, body);
    view
}

/// The table of devices, and findings below it.
fn devices(
    model: &Model,
    columns: usize,
    room: usize,
    capabilities: Capabilities,
) -> (Vec<Line<'static>>, VisiblePart) {
    let table = table::DeviceTable::new(model, columns, capabilities);
    let wanted = if room >= 8 {
        findings::below_table(model, columns, capabilities)
    } else {
        Vec::new()
    };
    // Findings get the room that the table leaves, but at least two fifths where both are long.
    let left = room.saturating_sub(table.height());
    let for_findings = wanted.len().min(left.max(room * 2 / 5));
    let rows = table.lines(room - for_findings);
    let mut lines = rows.lines;
    lines.resize(room - for_findings, Line::default());
    lines.extend(findings::cut(wanted, for_findings, capabilities));
    let view = VisiblePart {
        page_rows: rows.page_rows,
        furthest: 0,
    };
    (lines, view)
}

/// A page of text, which may be longer than the screen.
fn page(
    model: &Model,
    columns: usize,
    room: usize,
    capabilities: Capabilities,
) -> (Vec<Line<'static>>, VisiblePart) {
    let all = match model.page {
        Page::Detail => detail::lines(model, columns, capabilities),
        Page::Findings => findings::all(model, columns, capabilities),
        Page::Processes => latency::processes(model, columns),
        Page::Help | Page::Devices => help::lines(model, columns),
    };
    let furthest = all.len().saturating_sub(room);
    let above = model.scroll.min(furthest);
    let mut lines: Vec<Line<'static>> = all.into_iter().skip(above).take(room).collect();
    if above < furthest
        && let Some(last) = lines.last_mut()
    {
        let more = furthest - above + 1;
        *last = Line::of(
            format!("  {more} more lines: arrow down"),
            TextStyle::Reverse,
        );
    }
    let view = VisiblePart {
        page_rows: room.saturating_sub(1).max(1),
        furthest,
    };
    (lines, view)
}
