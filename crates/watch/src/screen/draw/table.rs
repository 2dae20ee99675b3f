//! The table of devices. Only visible rows are drawn.

use ratatui_core::text::Line;
use record::Nanos;
use record::sample::{ArraySample, Device, DeviceKind};
use ui::screen::{Capabilities, Pieces as _, TextStyle};

use super::plan::{AvailableData, ColumnPlan, SIGNS};
use crate::screen::columns::RowCells;
use crate::screen::figures::{MIB, cut, rate, right_aligned, span, sparkline};
use crate::screen::frame::DeviceRow;
use crate::screen::history::History;
use crate::screen::model::Model;
use crate::screen::pages::{TimeOverCaps, page};
use crate::screen::tree::{Branch, Fold};
use record::Severity;

/// Span of the sparklines.
pub(super) const SPAN: Nanos = Nanos::from_secs(120);

/// The table of a frame.
pub(super) struct DeviceTable<'a> {
    model: &'a Model,
    capabilities: Capabilities,
    branches: Vec<Branch>,
    plan: ColumnPlan,
}

/// The visible part of a table.
#[derive(Default)]
pub(super) struct Rows {
    /// Visible lines, with the heads.
    pub lines: Vec<Line<'static>>,
    /// Number of visible rows.
    pub page_rows: usize,
}

impl<'a> DeviceTable<'a> {
    pub(super) fn new(
        model: &'a Model,
        columns: usize,
        capabilities: Capabilities,
    ) -> DeviceTable<'a> {
        let branches = model.branches();
        let rows = model.frame().map_or(&[][..], |frame| &frame.rows);
        let label = |branch: &Branch| {
            2 * branch.lasts.len() + name(&rows[branch.place].device).chars().count()
        };
        let wish = AvailableData {
            name: branches.iter().map(label).max().unwrap_or(0),
            siblings: branches.iter().any(|branch| branch.siblings.is_some()),
            caps: has_pages(model),
            latency: model
                .frame()
                .is_some_and(|frame| frame.host.tracing.is_some()),
        };
        DeviceTable {
            model,
            capabilities,
            plan: ColumnPlan::new(columns, wish),
            branches,
        }
    }

    /// Number of lines of the whole table, with the heads.
    pub(super) fn height(&self) -> usize {
        let rows: usize = (0..self.branches.len())
            .map(|index| self.row_height(index))
            .sum();
        rows + 1
    }

    /// At most `room` lines, with the selected row among them.
    pub(super) fn lines(&self, room: usize) -> Rows {
        let (Some(number), true) = (self.model.number(), room > 0) else {
            return Rows::default();
        };
        let mut rows = Rows::default();
        let has_heads = room > 1;
        if has_heads {
            rows.lines.push(self.heads());
        }
        if self.branches.is_empty() {
            let text = "no device is shown: a shows all, esc ends a filter";
            rows.lines.push(Line::of(text, TextStyle::Plain));
        }
        let room = room - rows.lines.len().min(room);
        let selected = self.model.selected(&self.branches);
        let first = self.first_seen(selected, room);
        let mut left = room;
        for index in first..self.branches.len() {
            let mut lines = self.row(index, number, index == selected);
            lines.truncate(left);
            left -= lines.len();
            rows.page_rows += 1;
            rows.lines.extend(lines);
            if left == 0 {
                break;
            }
        }
        let hidden = self.branches.len() - first - rows.page_rows.min(self.branches.len() - first);
        if hidden > 0 || first > 0 {
            let (last, all) = (first + rows.page_rows, self.branches.len());
            let part = match format!("{}-{last} of {all}", first + 1) {
                long if long.len() > self.plan.name => format!("{last}/{all}"),
                part => part,
            };
            if let Some(head) = rows.lines.first_mut().filter(|_| has_heads) {
                *head = self.column_heads(&part);
            }
        }
        rows
    }

    /// Index of the first visible row, such that the selected one is visible.
    fn first_seen(&self, selected: usize, room: usize) -> usize {
        let mut first = selected;
        let mut height = self
            .branches
            .get(selected)
            .map_or(0, |_| self.row_height(selected));
        // The rows that follow it are shown too, down to the end of the list.
        let after = (selected + 1..self.branches.len()).map(|index| self.row_height(index));
        let half = room / 2;
        height += after.sum::<usize>().min(half);
        while first > 0 && height + self.row_height(first - 1) <= room {
            first -= 1;
            height += self.row_height(first);
        }
        first
    }

    fn row_height(&self, index: usize) -> usize {
        1 + usize::from(self.state(index).is_some())
    }

    /// Text on md's action on an array and its missing members.
    fn state(&self, index: usize) -> Option<(String, TextStyle)> {
        let row = self.device_row(index)?;
        state_label(row.array.as_ref()?)
    }

    fn device_row(&self, index: usize) -> Option<&DeviceRow> {
        let place = self.branches.get(index)?.place;
        self.model.frame()?.rows.get(place)
    }

    fn heads(&self) -> Line<'static> {
        self.column_heads("")
    }

    /// The heads of the columns. `part` is the visible part of the list, where it is longer than the screen.
    fn column_heads(&self, part: &str) -> Line<'static> {
        let choice = &self.model.choice;
        let name = if part.is_empty() { "device" } else { part };
        let mut line = Line::of(" ".repeat(SIGNS), TextStyle::Strong);
        line.push(cut(name, self.plan.name), TextStyle::Strong);
        for column in &self.plan.columns {
            line.push(" ", TextStyle::Plain);
            let is_sorted = choice.sort.is_by(column);
            let style = if is_sorted {
                TextStyle::Reverse
            } else {
                TextStyle::Strong
            };
            line.push(
                right_aligned(
                    column.head(self.capabilities, self.plan.is_short),
                    column.width(self.plan.is_short),
                ),
                style,
            );
        }
        if self.plan.spark > 0 {
            line.push(" ", TextStyle::Strong);
            self.push_graph_head(&mut line);
        }
        line
    }

    /// Adds the head of the sparklines: the name of their figure, and the marks within their span.
    fn push_graph_head(&self, line: &mut Line<'static>) {
        let text = format!("{}, 2 min", self.model.graph.name());
        let strong = |sign| (sign, TextStyle::Strong);
        let mut signs: Vec<(char, TextStyle)> =
            cut(&text, self.plan.spark).chars().map(strong).collect();
        for (_, before) in self.model.recent_marks() {
            let number = self.model.number();
            let part = number.and_then(|number| {
                self.model
                    .history
                    .part(number, SPAN, self.plan.spark, before)
            });
            if let Some(sign) = part.and_then(|part| signs.get_mut(part)) {
                let arrow = if self.capabilities.unicode {
                    '↓'
                } else {
                    '|'
                };
                *sign = (arrow, TextStyle::Mark);
            }
        }
        for (sign, style) in signs {
            line.push(sign, style);
        }
    }

    /// The lines of a device.
    fn row(&self, index: usize, number: u64, is_selected: bool) -> Vec<Line<'static>> {
        let (Some(branch), Some(row)) = (self.branches.get(index), self.device_row(index)) else {
            return Vec::new();
        };
        let style = match row.figures.is_active() && branch.is_match {
            true => TextStyle::Plain,
            false => TextStyle::Faint,
        };
        let mut line = Line::of(if is_selected { ">" } else { " " }, TextStyle::Strong);
        let time = self
            .model
            .frame()
            .map_or(Nanos(0), |frame| frame.at.elapsed);
        match self.model.found.mark(branch.id, time) {
            None => line.push(" ", TextStyle::Plain),
            Some(Severity::Note) => line.push("*", TextStyle::Note),
            Some(Severity::Warn | Severity::Invalid) => line.push("!", TextStyle::Warning),
        }
        line.push(fold_sign(branch.fold, self.capabilities), style);
        let label = format!(
            "{}{}",
            branch_lines(&branch.lasts, self.capabilities),
            name(&row.device)
        );
        let name_style = if is_selected {
            TextStyle::Reverse
        } else {
            style
        };
        line.push(cut(&label, self.plan.name), name_style);
        let device = (branch.id, branch.place);
        let cells = RowCells {
            row,
            siblings: branch.siblings.as_ref(),
            caps: page(&self.model.history, number, device).map(|page| TimeOverCaps::of(page)),
        };
        for column in &self.plan.columns {
            let (text, own) = column.cell(&cells);
            line.push(" ", TextStyle::Plain);
            line.push(
                right_aligned(&text, column.width(self.plan.is_short)),
                own.unwrap_or(style),
            );
        }
        if self.plan.spark > 0 {
            line.push(" ", TextStyle::Plain);
            line.push(self.spark(&self.model.history, number, device), style);
        }
        let mut lines = vec![line];
        if let Some((text, style)) = self.state(index) {
            let indent = " ".repeat(SIGNS + 2 * branch.lasts.len() + 2);
            let mut line = Line::of(indent, TextStyle::Plain);
            line.push(text, style);
            lines.push(line);
        }
        lines
    }

    fn spark(
        &self,
        history: &History,
        number: u64,
        device: (record::sample::DeviceId, usize),
    ) -> String {
        let graph = self.model.graph;
        let values = history.trace(device, number, SPAN, self.plan.spark, |row| {
            graph.figure(row)
        });
        sparkline(&values, self.capabilities.unicode)
    }
}

fn has_pages(model: &Model) -> bool {
    let Some(number) = model.number() else {
        return false;
    };
    let mut frames = model.history.back(number, Nanos::from_secs(5));
    frames.any(|frame| frame.rows.iter().any(|row| row.vendor.is_some()))
}

/// Displayed name of a device: its alias, or its name with the level of an array.
pub(super) fn name(device: &Device) -> String {
    match (device.kind, &device.alias, &device.level) {
        (DeviceKind::Mapper, Some(alias), _) => alias.clone(),
        (DeviceKind::Array, _, Some(level)) => format!("{} {level}", device.name),
        _ => device.name.clone(),
    }
}

fn fold_sign(fold: Fold, capabilities: Capabilities) -> &'static str {
    match fold {
        Fold::Leaf => " ",
        Fold::Open => capabilities.sign("▾", "-"),
        Fold::Closed => capabilities.sign("▸", "+"),
    }
}

/// Lines that draw the tree before a name.
fn branch_lines(lasts: &[bool], capabilities: Capabilities) -> String {
    let Some((own, above)) = lasts.split_last() else {
        return String::new();
    };
    let mut text = String::new();
    for is_last in above {
        text.push_str(if *is_last {
            "  "
        } else {
            capabilities.sign("│ ", "| ")
        });
    }
    text.push_str(match own {
        true => capabilities.sign("└ ", "`-"),
        false => capabilities.sign("├ ", "|-"),
    });
    text
}

/// Text on the state of an array: missing and faulty members, and its sync action; `None` where there are none of
/// these.
pub(super) fn state_label(state: &ArraySample) -> Option<(String, TextStyle)> {
    let mut parts = Vec::new();
    let mut style = TextStyle::Note;
    if let Some(missing) = state.degraded.filter(|missing| *missing > 0) {
        style = TextStyle::Warning;
        let of = state.wanted.map(|wanted| format!(" of {wanted}"));
        parts.push(format!(
            "! degraded: {missing}{} missing",
            of.unwrap_or_default()
        ));
    }
    let faulty = state.members.iter().filter(|member| member.is_faulty());
    let faulty: Vec<&str> = faulty.map(|member| member.name.as_str()).collect();
    if !faulty.is_empty() {
        style = TextStyle::Warning;
        parts.push(format!("! faulty: {}", faulty.join(" ")));
    }
    if let Some(action) = state.action.filter(|action| action.is_work()) {
        let mut text = action.name().to_owned();
        if let Some(position) = state.position {
            text.push_str(&format!(" {:.1}%", 100.0 * position.fraction()));
        }
        if let Some(speed) = state.speed {
            text.push_str(&format!(" at {} MiB/s", rate(Some(speed.0 / MIB))));
            let left = state.position.and_then(|position| position.left(speed));
            text.push_str(&left.map_or(String::new(), |left| format!(", {} left", span(left))));
        }
        parts.push(text);
    }
    if let Some(sectors) = state.mismatched.filter(|sectors| *sectors > 0) {
        parts.push(format!("{sectors} sectors differ"));
    }
    (!parts.is_empty()).then(|| (parts.join("; "), style))
}
