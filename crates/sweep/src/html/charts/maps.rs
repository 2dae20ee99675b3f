//! Maps, one for each level: chunks over members, each cell with the best layout with this chunk and these members.

use super::super::view::PageView;
use crate::layout::level_name;
use crate::views::sentences;
use crate::views::units::{FigureUnit, outcome_label};
use crate::{Factor, Layout, LayoutOutcome, LayoutResult};
use domain::raid::Level;
use page::charts::{Chart, Figure, axis, layout, rounded};
use page::escape::plain;
use page::plot::{Annotation, Axis, ColorBar, Hover, Trace};

/// Number of columns above which the text of cells is smaller.
const SMALL_TEXT_COLUMNS: usize = 5;

/// A row of a map: its name, and the predicate of its layouts.
type Band = (String, Box<dyn Fn(&Layout) -> bool>);

/// The maps of all levels.
pub(crate) fn all(view: PageView<'_>) -> Vec<Chart> {
    let record = view.record;
    let best = view
        .decision
        .winner
        .and_then(|winner| sentences::row(view.decision, winner)?.value);
    let Some(best) = best else {
        return Vec::new();
    };
    let mut levels: Vec<String> = Vec::new();
    for layout in record
        .layouts
        .iter()
        .filter(|layout| layout.chunk.is_some())
    {
        let level = layout.setting(Factor::Level);
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    let mut maps: Vec<Map<'_>> = levels
        .into_iter()
        .map(|level| Map::of_level(view, best.mean, &level))
        .collect();
    if record.layouts.iter().any(|layout| layout.chunk.is_none()) {
        maps.push(Map::without_chunks(view, best.mean));
    }
    // A level that was not tried yet has no map.
    maps.retain(|map| !map.is_open());
    let least = maps.iter().map(Map::least).fold(1.0, f64::min);
    maps.into_iter().map(|map| map.chart(least)).collect()
}

struct Map<'a> {
    title: String,
    rows_are: &'static str,
    members: Vec<usize>,
    bands: Vec<String>,
    /// The best row of each band and column; `None` if no layout has both.
    cells: Vec<Vec<Option<&'a LayoutResult>>>,
    view: PageView<'a>,
    unit: FigureUnit,
    best: f64,
}

impl<'a> Map<'a> {
    fn of_level(view: PageView<'a>, best: f64, level: &str) -> Map<'a> {
        let mut chunks: Vec<_> = view
            .record
            .layouts
            .iter()
            .filter(|layout| layout.setting(Factor::Level) == level)
            .filter_map(|layout| layout.chunk)
            .collect();
        chunks.sort_unstable();
        chunks.dedup();
        let bands = chunks.into_iter().map(|chunk| {
            let level = level.to_owned();
            let has = move |layout: &Layout| {
                layout.setting(Factor::Level) == level && layout.chunk == Some(chunk)
            };
            (
                chunk.to_string(),
                Box::new(has) as Box<dyn Fn(&Layout) -> bool>,
            )
        });
        let title = level_name(level, Level::title);
        Map::new(view, best, title, "chunk", bands.collect())
    }

    fn without_chunks(view: PageView<'a>, best: f64) -> Map<'a> {
        let mut names: Vec<String> = Vec::new();
        for layout in view
            .record
            .layouts
            .iter()
            .filter(|layout| layout.chunk.is_none())
        {
            let name = layout.setting(Factor::Level);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let bands = names.into_iter().map(|name| {
            let level = name.clone();
            let has = move |layout: &Layout| {
                layout.chunk.is_none() && layout.setting(Factor::Level) == level
            };
            let shown = level_name(&name, Level::name);
            (shown, Box::new(has) as Box<dyn Fn(&Layout) -> bool>)
        });
        let title = "Without chunks".to_owned();
        Map::new(view, best, title, "level", bands.collect())
    }

    fn new(
        view: PageView<'a>,
        best: f64,
        title: String,
        rows_are: &'static str,
        bands: Vec<Band>,
    ) -> Map<'a> {
        let layouts = &view.record.layouts;
        // The same columns on every map, so that maps are comparable.
        let mut members: Vec<usize> = layouts.iter().map(|layout| layout.members).collect();
        members.sort_unstable();
        members.dedup();
        let cell = |has: &dyn Fn(&Layout) -> bool, members: usize| {
            // The rows are sorted, the best first.
            view.decision.rows.iter().find(|row| {
                let layout = layouts.get(row.layout);
                layout.is_some_and(|layout| layout.members == members && has(layout))
            })
        };
        Map {
            title,
            rows_are,
            cells: bands
                .iter()
                .map(|(_, has)| members.iter().map(|&members| cell(has, members)).collect())
                .collect(),
            bands: bands.into_iter().map(|(name, _)| name).collect(),
            members,
            view,
            unit: FigureUnit::of_objective(&view.record.settings.objective),
            best,
        }
    }

    /// The value as a share of the best value; for latencies the inverse, so that higher is better. `None` for a
    /// layout that misses a requirement.
    fn share(&self, row: &LayoutResult) -> Option<f64> {
        if row.outcome == LayoutOutcome::Missed {
            return None;
        }
        let value = row.value?.mean;
        let (value, best) = if self.unit.less_is_better() {
            (self.best, value)
        } else {
            (value, self.best)
        };
        (best > 0.0).then(|| rounded(value / best))
    }

    fn is_open(&self) -> bool {
        let mut rows = self.cells.iter().flatten().flatten();
        rows.all(|row| row.outcome == LayoutOutcome::Open)
    }

    fn least(&self) -> f64 {
        let rows = self.cells.iter().flatten().flatten();
        rows.filter_map(|row| self.share(row)).fold(1.0, f64::min)
    }

    fn chart(self, least: f64) -> Chart {
        let shares: Vec<Vec<Option<f64>>> = self
            .cells
            .iter()
            .map(|cells| {
                let share = |row: &Option<&LayoutResult>| row.and_then(|row| self.share(row));
                cells.iter().map(share).collect()
            })
            .collect();
        let hover: Vec<Vec<String>> = self
            .cells
            .iter()
            .map(|cells| cells.iter().map(|row| self.hover(*row)).collect())
            .collect();
        let columns: Vec<f64> = (0..self.members.len()).map(|x| x as f64).collect();
        let bands: Vec<f64> = (0..self.bands.len()).map(|y| y as f64).collect();
        let least = least.min(0.99);
        let trace = Trace::heat_map(columns.clone(), bands.clone(), shares)
            .zmin(rounded(least))
            .zmax(1.0)
            .color_bar(bar(self.unit, least))
            .gap(2)
            .text_matrix(hover)
            .hover_template("%{text}")
            .nameless(true);
        let members = self.members.iter().map(usize::to_string).collect();
        let layout = layout(
            categories("members", columns, members),
            categories(self.rows_are, bands, self.bands.clone()),
            false,
        )
        .hover(Hover::Closest)
        .annotations(self.notes(least));
        Chart {
            title: self.title.clone(),
            caption: format!(
                "{} of the best layout by {} and members, whatever its other settings; the fuller \
                 the colour, the nearer to the winner; without colour: missed, failed or open",
                self.unit.name(),
                self.rows_are
            ),
            figure: Figure {
                data: vec![trace],
                layout,
            },
        }
    }

    fn hover(&self, row: Option<&LayoutResult>) -> String {
        row.map_or_else(String::new, |row| {
            let layout = plain(&sentences::layout(self.view.record, row.layout));
            let value = row.value.map_or_else(
                || "no figure".to_owned(),
                |value| self.unit.show_value(value),
            );
            format!("{layout}\n{value}\n{}", outcome_label(row.outcome))
        })
    }

    /// Text of the cells: the value, and the outcome of the layout unless the colour shows it.
    fn notes(&self, least: f64) -> Vec<Annotation> {
        let mut notes = Vec::new();
        for (y, cells) in self.cells.iter().enumerate() {
            for (x, row) in cells.iter().enumerate() {
                let Some(row) = row else { continue };
                let share = self.share(row);
                let middle = f64::midpoint(least, 1.0);
                // Dark on light and light on dark, in both themes.
                let ink = match share {
                    Some(share) if share > middle => "var(--surface)",
                    _ => "var(--ink)",
                };
                let size = if self.members.len() > SMALL_TEXT_COLUMNS {
                    9
                } else {
                    11
                };
                notes.push(
                    Annotation::new()
                        .x(x as f64)
                        .y(y as f64)
                        .size(size)
                        .color(ink)
                        .text(self.note(row)),
                );
            }
        }
        notes
    }

    fn note(&self, row: &LayoutResult) -> String {
        let value = row.value.map(|value| self.unit.digits(value.mean));
        let mark = match row.outcome {
            LayoutOutcome::Behind => None,
            other => Some(outcome_label(other)),
        };
        match (value, mark) {
            (Some(value), Some("best")) => format!("{value}\nbest"),
            (Some(value), Some(mark)) => format!("{value}\n{mark}"),
            (Some(value), None) => value,
            (None, mark) => mark.unwrap_or_default().to_owned(),
        }
    }
}

/// An axis of names: each at its whole number.
fn categories(title: &str, places: Vec<f64>, names: Vec<String>) -> Axis {
    axis(title)
        .range(vec![-0.5, places.len() as f64 - 0.5])
        .tick_values(places)
        .tick_text(names)
        .grid(false)
}

fn bar(unit: FigureUnit, least: f64) -> ColorBar {
    // For latencies the share is inverted, so that the best has the highest.
    let title = if unit.less_is_better() {
        "best ÷ this"
    } else {
        "of best"
    };

    let ticks: Vec<f64> = (0..=10)
        .map(|tenth| f64::from(tenth) / 10.0)
        .filter(|share| *share >= least)
        .collect();
    // At most six labels; the winner's is always among them.
    let every = ticks.len().div_ceil(6).max(1);
    let mut shown: Vec<f64> = ticks.into_iter().rev().step_by(every).collect();
    shown.reverse();
    ColorBar::new()
        .title(title)
        .tick_text(
            shown
                .iter()
                .map(|share| format!("{:.0} %", share * 100.0))
                .collect(),
        )
        .tick_values(shown)
}
