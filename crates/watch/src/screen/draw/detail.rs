//! The page of one device, with all its figures and facts.

use ratatui_core::text::Line;
use record::sample::{Device, FlowKind, LatencyBin, VendorSample};
use ui::screen::{Capabilities, Pieces as _, TextStyle};

use super::latency;
use super::table::{SPAN, name, state_label};
use crate::screen::columns::flight;
use crate::screen::figures::{MIB, rate, right_aligned, share, size, sparkline, unknown, wait};
use crate::screen::frame::{DeviceRow, Frame};
use crate::screen::model::Model;
use crate::screen::order::SparklineFigure;
use crate::screen::pages::page;

/// Maximum length of a bar, in characters.
const BAR: usize = 30;

/// The page of the selected device.
pub(super) fn lines(
    model: &Model,
    columns: usize,
    capabilities: Capabilities,
) -> Vec<Line<'static>> {
    let branches = model.branches();
    let branch = branches.get(model.selected(&branches));
    let (Some(branch), Some(number), Some(frame)) = (branch, model.number(), model.frame()) else {
        return vec![Line::of("no device is selected", TextStyle::Plain)];
    };
    let row = &frame.rows[branch.place];
    let mut lines = vec![Line::of(name(&row.device), TextStyle::Strong)];
    lines.extend(facts(&row.device, frame, columns));
    lines.push(Line::default());
    lines.extend(flows(row));
    lines.push(Line::of(
        format!(
            "in flight {}, on average {}; busy {}",
            flight(row),
            rate(row.figures.mean_in_flight.get()),
            share(row.figures.busy.get())
        ),
        TextStyle::Plain,
    ));
    lines.push(Line::default());
    let width = columns.saturating_sub(22).clamp(1, 120);
    for graph in SparklineFigure::ALL {
        let device = (branch.id, branch.place);
        let values = model
            .history
            .trace(device, number, SPAN, width, |row| graph.figure(row));
        let highest = values.iter().flatten().copied().fold(0.0, f64::max);
        let known = values.iter().any(Option::is_some);
        let most = known.then(|| highest_label(graph, highest));
        let text = format!(
            "{:<6} to {:<7} {}",
            graph.name(),
            most.unwrap_or_else(unknown),
            sparkline(&values, capabilities.unicode)
        );
        lines.push(Line::of(text, TextStyle::Plain));
    }
    if let Some(comparison) = &branch.siblings {
        let style = match comparison.stands_out {
            true => TextStyle::Warning,
            false => TextStyle::Plain,
        };
        let sign = if comparison.stands_out { " !" } else { "" };
        let text = format!(
            "await over 10 s: {:.2} times the median of its siblings{sign}",
            comparison.ratio
        );
        lines.push(Line::of(text, style));
    }
    lines.extend(latency::detail(
        model,
        (branch.id, branch.place),
        columns,
        capabilities,
    ));
    lines.extend(members(row));
    if let Some(page) = page(&model.history, number, (branch.id, branch.place)) {
        lines.extend(vendor(page, capabilities));
    }
    lines
}

fn highest_label(graph: SparklineFigure, highest: f64) -> String {
    match graph {
        SparklineFigure::Iops => rate(Some(highest)),
        SparklineFigure::Bytes => rate(Some(highest / MIB)),
        SparklineFigure::Wait => wait(Some(highest)),
        SparklineFigure::Busy => share(Some(highest)),
    }
}

/// Facts about the device, as many per line as fit.
fn facts(device: &Device, frame: &Frame, columns: usize) -> Vec<Line<'static>> {
    let mut facts = vec![device.kind.name().to_owned()];
    facts.extend(device.number.map(|number| format!("number {number}")));
    facts.extend(device.size.map(|size| size.to_string()));
    let text = |word: &str, value: &Option<String>| {
        value
            .as_ref()
            .map(|value| format!("{word} {}", value.trim()))
    };
    facts.extend(text("alias", &device.alias));
    facts.extend(text("model", &device.model));
    facts.extend(text("serial", &device.serial));
    facts.extend(
        device
            .queue_depth
            .map(|depth| format!("queue depth {depth}")),
    );
    if device.alias.is_some() {
        facts.push(format!("kernel's name {}", device.name));
    }
    let below = device.lies_on.iter();
    let below = below.filter_map(|id| frame.rows.iter().find(|row| row.device.id == *id));
    let below: Vec<&str> = below.map(|row| row.device.name.as_str()).collect();
    if !below.is_empty() {
        facts.push(format!("on {}", below.join(" ")));
    }
    let mut lines: Vec<Line<'static>> = Vec::new();
    for fact in facts {
        match lines.last_mut() {
            Some(line) if line.width() + 2 + fact.chars().count() <= columns => {
                line.push(format!(", {fact}"), TextStyle::Plain);
            }
            _ => lines.push(Line::of(fact, TextStyle::Plain)),
        }
    }
    lines
}

/// Reads, writes, discards and flushes.
fn flows(row: &DeviceRow) -> Vec<Line<'static>> {
    let cells = |first: &str, rest: [&str; 5]| {
        let rest = rest.map(|cell| right_aligned(cell, 9)).concat();
        format!("{first:<8}{rest}")
    };
    let heads = cells("", ["per s", "MiB/s", "merged/s", "await", "size"]);
    let mut lines = vec![Line::of(heads, TextStyle::Strong)];
    for kind in FlowKind::ALL {
        let rates = row.figures.flow(kind);
        let text = cells(
            kind.name(),
            [
                &rate(rates.iops.get()),
                &rate(rates.bytes.get().map(|bytes| bytes / MIB)),
                &rate(rates.merged.get()),
                &wait(rates.wait.get()),
                &size(rates.size.get()),
            ],
        );
        lines.push(Line::of(text, TextStyle::Plain));
    }
    lines
}

/// An array's state and members.
fn members(row: &DeviceRow) -> Vec<Line<'static>> {
    let Some(state) = &row.array else {
        return Vec::new();
    };
    let mut lines = vec![Line::default()];
    let (text, style) =
        state_label(state).unwrap_or(("nothing under way".to_owned(), TextStyle::Plain));
    lines.push(Line::of(text, style));
    for member in &state.members {
        let slot = member.slot.map_or_else(unknown, |slot| slot.to_string());
        let errors = member.errors.filter(|errors| *errors > 0);
        let errors = errors.map_or(String::new(), |count| {
            format!(", {count} read errors corrected")
        });
        let style = match member.is_faulty() || !errors.is_empty() {
            true => TextStyle::Warning,
            false => TextStyle::Plain,
        };
        let text = format!(
            "  {slot:>3} {} {}{errors}",
            member.name,
            member.state.join(",")
        );
        lines.push(Line::of(text, style));
    }
    lines
}

/// The vendor's page.
fn vendor(page: &VendorSample, capabilities: Capabilities) -> Vec<Line<'static>> {
    let exceeded = &page.exceeded;
    let over = |time: Option<record::Nanos>| share(time.map(|time| page.share(time)));
    let mut lines = vec![
        Line::default(),
        Line::of(
            format!("The volume's own page ({})", page.page.name()),
            TextStyle::Strong,
        ),
    ];
    let caps = [
        ("over the volume's IOPS", Some(exceeded.volume_iops)),
        ("over the volume's throughput", Some(exceeded.volume_bytes)),
        ("over the instance's IOPS", exceeded.instance_iops),
        ("over the instance's throughput", exceeded.instance_bytes),
    ];
    for (word, time) in caps {
        let is_over = time.is_some_and(|time| time.0 > 0);
        let (sign, style) = match is_over {
            true => ("!", TextStyle::Warning),
            false => (" ", TextStyle::Plain),
        };
        lines.push(Line::of(
            format!("{sign} {word:<31}{:>6}", over(time)),
            style,
        ));
    }
    let mean = |time: record::Nanos, count: u64| {
        wait((count > 0).then(|| time.as_secs_f64() / count as f64))
    };
    lines.push(Line::of(
        format!(
            "  queue {}, IOPS {}, MiB/s {}, read {}, write {}",
            page.queue,
            rate(page.iops().map(|iops| iops.0)),
            rate(page.bytes().map(|bytes| bytes.0 / MIB)),
            mean(page.read_time, page.reads),
            mean(page.write_time, page.writes)
        ),
        TextStyle::Plain,
    ));
    lines.extend(histogram(
        "latency of reads",
        &page.read_latency,
        capabilities,
    ));
    lines.extend(histogram(
        "latency of writes",
        &page.write_latency,
        capabilities,
    ));
    lines
}

fn histogram(title: &str, bins: &[LatencyBin], capabilities: Capabilities) -> Vec<Line<'static>> {
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    if most == 0 {
        return Vec::new();
    }
    let mut lines = vec![Line::of(format!("  {title}"), TextStyle::Strong)];
    for bin in bins.iter().filter(|bin| bin.count > 0) {
        let to = bin
            .to
            .map_or_else(unknown, |to| wait(Some(to.as_secs_f64())));
        let length = (bin.count as f64 / most as f64 * BAR as f64).ceil() as usize;
        let bar = capabilities.sign("█", "#").repeat(length);
        let from = wait(Some(bin.from.as_secs_f64()));
        let text = format!(
            "  {from:>6} to {to:<6}{:>7} {bar}",
            rate(Some(bin.count as f64))
        );
        lines.push(Line::of(text, TextStyle::Plain));
    }
    lines
}
