//! The help page, with keys and signs.

use crate::screen::columns::EXPLANATIONS;
use crate::screen::model::Model;
use ratatui_core::text::Line;
use ui::screen::{Pieces as _, TextStyle, wrap};

const KEYS: [(&str, &str); 20] = [
    ("q, Ctrl-C", "quit"),
    ("?", "this page, and back"),
    (
        "up, down, j, k",
        "select a device; page up, page down, g and G go further",
    ),
    (
        "enter",
        "the device that is selected, with discards, flushes, members and the vendor's page",
    ),
    ("f", "all findings"),
    ("p", "with --latency, the processes that do most I/O"),
    ("esc", "back; in the table, end the filter"),
    (
        "space",
        "pause, and go on; what is measured goes on meanwhile",
    ),
    ("left, right", "one interval back or forth in time"),
    ("[, ]", "a minute back or forth"),
    (
        "home, end",
        "the oldest interval that is kept; the newest, and go on",
    ),
    ("+, -", "with --at, play what was recorded faster or slower"),
    ("s, S", "sort by the next column, or the one before"),
    ("r", "turn the order round"),
    (
        "/",
        "filter by a part of a name, alias, model or serial number, or by a regular expression",
    ),
    (
        "z",
        "fold or unfold: the members of an array, the partitions of a disk",
    ),
    ("Z", "fold all, unfold all, and as it was"),
    ("v", "what the graphs show: IOPS, MiB/s, await, busy"),
    (
        "a",
        "also loop devices, memory and empty drives that never did anything",
    ),
    ("Ctrl-Z", "let the shell have the terminal; fg comes back"),
];

/// Signs in the table, besides heads of columns.
const SIGNS: [(&str, &str); 1] = [("!, *", "a warning or a note is open on this device")];
const OTHER_SIGNS: [(&str, &str); 2] = [
    ("-", "not known; 0 means that nothing happened"),
    (
        "graph",
        "its height is against its own highest; a gap is where nothing is known",
    ),
];

/// Lines of the help page.
pub(super) fn lines(model: &Model, columns: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut add = |title: &str, list: &[(&str, &str)]| {
        lines.push(Line::of(title, TextStyle::Strong));
        let indent = if columns >= 50 { 17 } else { 4 };
        for (key, meaning) in list {
            let mut line = Line::of(format!("  {key:<15}"), TextStyle::Strong);
            let mut rest = wrap(meaning, columns.saturating_sub(indent).max(1)).into_iter();
            if indent == 17
                && let Some(first) = rest.next()
            {
                line.push(first, TextStyle::Plain);
            }
            lines.push(line);
            let below =
                |text: String| Line::of(format!("{}{text}", " ".repeat(indent)), TextStyle::Plain);
            lines.extend(rest.map(below));
        }
    };
    add("Keys", &KEYS);
    add("Signs", &[&SIGNS[..], &EXPLANATIONS, &OTHER_SIGNS].concat());
    let kernel = model.source.kernel.as_deref().unwrap_or("not known");
    lines.push(Line::of(format!("Kernel: {kernel}"), TextStyle::Plain));
    lines
}
