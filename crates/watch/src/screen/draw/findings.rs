//! Findings, with their evidence and advice.

use ratatui_core::text::Line;
use record::{Nanos, Severity};
use study::watch::WatchEvent;
use ui::screen::{Capabilities, Pieces as _, TextStyle, wrap};

use crate::screen::figures::{clock, span};
use crate::screen::model::Model;

/// Maximum number of ended findings that are listed below the table.
const OVER: usize = 5;

/// The findings below the table: open ones in full, and a line for each of the last ended ones.
pub(super) fn below_table(
    model: &Model,
    columns: usize,
    capabilities: Capabilities,
) -> Vec<Line<'static>> {
    let Some(now) = now(model) else {
        return Vec::new();
    };
    let mut lines = vec![summary(model, now, columns, capabilities)];
    for event in model.found.open(now) {
        lines.extend(in_full(event, now, columns, capabilities));
    }
    for event in model.found.ended_by(now).into_iter().take(OVER) {
        lines.push(name_of(event, now));
    }
    lines.extend(model.notes.iter().rev().take(2).map(|note| message(note)));
    lines
}

/// All findings of the watch, and the notes on missing data.
pub(super) fn all(model: &Model, columns: usize, capabilities: Capabilities) -> Vec<Line<'static>> {
    let Some(now) = now(model) else {
        return Vec::new();
    };
    let mut lines = vec![summary(model, now, columns, capabilities)];
    for event in model
        .found
        .open(now)
        .into_iter()
        .chain(model.found.ended_by(now))
    {
        lines.extend(in_full(event, now, columns, capabilities));
    }
    for note in &model.notes {
        lines.extend(wrap(note, columns).iter().map(|line| message(line)));
    }
    lines
}

/// Truncates lines to the available room, with a last line on the number of hidden ones.
pub(super) fn cut(
    mut lines: Vec<Line<'static>>,
    room: usize,
    capabilities: Capabilities,
) -> Vec<Line<'static>> {
    if lines.len() > room {
        let hidden = lines.len() - room + 1;
        lines.truncate(room.saturating_sub(1));
        if room > 0 {
            let dots = capabilities.sign("…", "...");
            let text = format!("  {dots} {hidden} more lines: press f");
            lines.push(Line::of(text, TextStyle::Note));
        }
    }
    lines
}

fn now(model: &Model) -> Option<Nanos> {
    model.frame().map(|frame| frame.at.elapsed)
}

fn summary(model: &Model, now: Nanos, columns: usize, capabilities: Capabilities) -> Line<'static> {
    let (open, over) = (model.found.open(now).len(), model.found.ended_by(now).len());
    let text = match (open, over) {
        (0, 0) => "Findings: none so far ".to_owned(),
        (open, 0) => format!("Findings: {open} open "),
        (open, over) => format!("Findings: {open} open, {over} over "),
    };
    let rest = columns.saturating_sub(text.chars().count());
    let mut line = Line::of(text, TextStyle::Strong);
    line.push(capabilities.sign("─", "-").repeat(rest), TextStyle::Faint);
    line
}

/// A finding: time, kind and place; the evidence; and the advice.
fn in_full(
    event: &WatchEvent,
    now: Nanos,
    columns: usize,
    capabilities: Capabilities,
) -> Vec<Line<'static>> {
    let mut lines = vec![name_of(event, now)];
    let room = columns.saturating_sub(4);
    for line in wrap(&event.text, room) {
        lines.push(Line::of(format!("    {line}"), TextStyle::Plain));
    }
    let arrow = capabilities.sign("→", ">");
    for (index, line) in wrap(&event.advice, room).iter().enumerate() {
        let before = if index == 0 { arrow } else { " " };
        lines.push(Line::of(format!("  {before} {line}"), TextStyle::Plain));
    }
    lines
}

fn name_of(event: &WatchEvent, now: Nanos) -> Line<'static> {
    // A finding that is over now may still have been open at the displayed time.
    let ended = event.ended.filter(|ended| ended.elapsed <= now);
    let (sign, style) = match (ended, event.severity) {
        (Some(_), _) => ("-", TextStyle::Plain),
        (None, Severity::Note) => ("*", TextStyle::Note),
        (None, Severity::Warn | Severity::Invalid) => ("!", TextStyle::Warning),
    };
    let lasted = ended.map_or(now, |ended| ended.elapsed) - event.began.elapsed;
    let lasted = match ended {
        Some(_) => format!("over after {}", span(lasted)),
        None => format!("for {}", span(lasted)),
    };
    let text = format!(
        "{sign} {} {} {}, {lasted}",
        clock(event.began),
        event.code,
        event.name
    );
    Line::of(text, style)
}

fn message(note: &str) -> Line<'static> {
    Line::of(format!("  note: {note}"), TextStyle::Faint)
}
