//! The first lines, with time, host and its figures, and the last line, with the keys.

use ratatui_core::text::Line;
use record::sample::{HostSample, InterfaceSample};
use ui::screen::{Capabilities, Pieces as _, TextStyle};

use super::latency;
use crate::screen::figures::{MIB, clock, date_and_clock, rate, share, span};
use crate::screen::model::{Model, Page};

/// Maximum number of interfaces that are shown, the busiest first.
const INTERFACES: usize = 4;

/// Time, host, and the choice of rows.
pub(super) fn title(model: &Model, capabilities: Capabilities) -> Line<'static> {
    let mut line = Line::default();
    match model.frame() {
        None => line.push("waiting for the first interval", TextStyle::Strong),
        Some(frame) => match (model.playing, model.behind()) {
            (None, None) => line.push(clock(frame.at), TextStyle::Strong),
            (None, Some(behind)) => {
                let text = format!(" PAUSED {}, {} ago ", clock(frame.at), span(behind));
                line.push(text, TextStyle::Reverse);
            }
            (Some(playing), behind) => {
                let state = match (behind, playing.at_end) {
                    (Some(_), _) => "PAUSED".to_owned(),
                    (None, true) => "END".to_owned(),
                    (None, false) => format!("{}{}", capabilities.sign("×", "x"), playing.speed),
                };
                let text = format!(" REPLAY {} {state} ", date_and_clock(frame.at));
                line.push(text, TextStyle::Reverse);
            }
        },
    }
    match model.recording {
        Some(true) => line.push("  recording", TextStyle::Plain),
        Some(false) => line.push("  NOT RECORDED", TextStyle::Warning),
        None => {}
    }
    if let Some(host) = &model.source.hostname {
        line.push(format!("  {host}"), TextStyle::Plain);
    }
    if let Some(frame) = model.frame() {
        let open = model.found.open(frame.at.elapsed).len();
        match open {
            0 => {}
            1 => line.push("  ! 1 finding", TextStyle::Warning),
            open => line.push(format!("  ! {open} findings"), TextStyle::Warning),
        }
    }
    if !model.choice.wanted.text().is_empty() {
        line.push(
            format!("  filter: {}", model.choice.wanted.text()),
            TextStyle::Note,
        );
    }
    if let Some((mark, before)) = model.recent_marks().next() {
        let text = format!("  = {}, {} ago", mark.text, span(before));
        line.push(text, TextStyle::Mark);
    }
    let by = model.choice.sort;
    let is_falling = by.is_name() == model.choice.reverse;
    let arrow = match is_falling {
        true => capabilities.sign("↓", "(falling)"),
        false => capabilities.sign("↑", "(rising)"),
    };
    line.push(format!("  sort: {} {arrow}", by.name()), TextStyle::Plain);
    if let Some(frame) = model.frame() {
        line.push(
            format!("  interval {}", span(frame.length)),
            TextStyle::Plain,
        );
        if frame.gap.is_some() {
            line.push("  after a gap", TextStyle::Note);
        }
    }
    line
}

/// Figures of the host, in at most `most` lines.
pub(super) fn host(model: &Model, columns: usize, most: usize) -> Vec<Line<'static>> {
    let Some(frame) = model.frame() else {
        return Vec::new();
    };
    let mut lines: Vec<Line<'static>> = Vec::new();
    let cost = latency::cost(&frame.host, frame.length);
    for (text, style) in cost.into_iter().chain(parts(&frame.host)) {
        let width = text.chars().count();
        let is_full = lines.len() >= most;
        match lines.last_mut() {
            Some(line) if line.width() + 3 + width <= columns => {
                line.push(format!("   {text}"), style);
            }
            // A shorter figure may still fit.
            _ if is_full => {}
            _ => lines.push(Line::of(text, style)),
        }
    }
    lines
}

/// Figures of the host, the most important first.
fn parts(host: &HostSample) -> Vec<(String, TextStyle)> {
    let mut parts = Vec::new();
    match &host.pressure {
        Some(pressure) => {
            let now = |line: &record::sample::PressureLine| {
                let stalled = line.stalled.unwrap_or(line.avg10);
                (share(Some(stalled.0)), stalled.0)
            };
            let (some, _) = now(&pressure.some);
            let full = pressure.full.as_ref().map(now);
            let is_bad = full.as_ref().is_some_and(|(_, full)| *full >= 0.2);
            let full = full.map_or(String::new(), |(full, _)| format!(" full {full}"));
            let sign = if is_bad { "!" } else { "" };
            let style = if is_bad {
                TextStyle::Warning
            } else {
                TextStyle::Plain
            };
            parts.push((format!("PSI io some {some}{full}{sign}"), style));
        }
        None => parts.push(("PSI io -".to_owned(), TextStyle::Plain)),
    }
    if let Some(load) = host.load {
        let text = format!("load {:.2} {:.2} {:.2}", load.one, load.five, load.fifteen);
        parts.push((text, TextStyle::Plain));
    }
    if let Some(memory) = &host.memory {
        let mut figures = Vec::new();
        if let Some(dirty) = memory.dirty {
            let limit = memory.limit.map(|limit| format!(" of {limit}"));
            figures.push(format!("dirty {dirty}{}", limit.unwrap_or_default()));
        }
        figures.extend(memory.writeback.map(|bytes| format!("writeback {bytes}")));
        let is_near = memory.dirty.zip(memory.limit);
        let is_near = is_near.is_some_and(|(dirty, limit)| dirty.0 as f64 > 0.9 * limit.0 as f64);
        let style = if is_near {
            TextStyle::Warning
        } else {
            TextStyle::Plain
        };
        if !figures.is_empty() {
            parts.push((figures.join(", "), style));
        }
    }
    let mut interfaces: Vec<&InterfaceSample> = host.interfaces.iter().collect();
    let moved = |one: &InterfaceSample| one.rx.bytes.0 + one.tx.bytes.0;
    interfaces.sort_by(|a, b| moved(b).total_cmp(&moved(a)));
    // Idle interfaces are not shown, except one if all are idle.
    let busy = interfaces.iter().filter(|one| moved(one) > 0.0).count();
    for one in interfaces.into_iter().take(busy.clamp(1, INTERFACES)) {
        let mib = |bytes: f64| rate(Some(bytes / MIB));
        let (rx, tx) = (mib(one.rx.bytes.0), mib(one.tx.bytes.0));
        let lost = one.rx.drops.0 + one.tx.drops.0 + one.rx.errors.0 + one.tx.errors.0;
        let (lost, style) = match lost > 0.0 {
            true => (
                format!(", lost {}/s!", rate(Some(lost))),
                TextStyle::Warning,
            ),
            false => (String::new(), TextStyle::Plain),
        };
        parts.push((format!("{} rx {rx} tx {tx} MiB/s{lost}", one.name), style));
    }
    if let Some(cpu) = &host.cpu {
        let (iowait, steal) = (share(Some(cpu.iowait.0)), share(Some(cpu.steal.0)));
        parts.push((format!("iowait {iowait} steal {steal}"), TextStyle::Plain));
    }
    parts
}

/// The text being typed, or as many of the keys as fit.
pub(super) fn keys(model: &Model, columns: usize, capabilities: Capabilities) -> Line<'static> {
    if let Some(text) = &model.typing {
        let mut line = Line::of("filter: ", TextStyle::Strong);
        // The end of a long text is visible.
        let room = columns.saturating_sub(line.width() + 1);
        let long = text.chars().count().saturating_sub(room);
        line.push(
            text.chars().skip(long).collect::<String>(),
            TextStyle::Plain,
        );
        line.push(" ", TextStyle::Reverse);
        return line;
    }
    let pause = if model.behind().is_some() {
        "go on"
    } else {
        "pause"
    };
    let time = capabilities.sign("←→", "left/right");
    let hints: Vec<(&str, &str)> = match model.page {
        Page::Devices => vec![
            ("?", "help"),
            ("q", "quit"),
            ("space", pause),
            (time, "time"),
            ("/", "filter"),
            ("s", "sort"),
            ("enter", "detail"),
            ("f", "findings"),
            ("p", "processes"),
            ("z", "fold"),
            ("v", "graph"),
            ("a", "all"),
        ],
        _ => vec![
            ("esc", "back"),
            ("space", pause),
            (time, "time"),
            ("?", "help"),
        ],
    };
    let mut line = Line::default();
    for (key, word) in hints {
        if line.width() + key.chars().count() + word.len() + 3 > columns {
            break;
        }
        if line.width() > 0 {
            line.push("  ", TextStyle::Plain);
        }
        line.push(key, TextStyle::Strong);
        line.push(format!(" {word}"), TextStyle::Plain);
    }
    line
}
