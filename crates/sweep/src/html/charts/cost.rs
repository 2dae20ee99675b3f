//! Cost and speed, with the Pareto frontier of cost, speed and redundancy.

use super::super::view::PageView;
use super::speed::speed;
use crate::views::sentences;
use crate::views::units::FigureUnit;
use page::charts::{Chart, Figure, axis, colour_index, layout, rounded};
use page::escape::plain;
use page::plot::{Axis, Dash, Hover, Line, Marker, Mode, Position, Symbol, Trace};

/// A layout of the chart.
struct Dot {
    rank: usize,
    dollars: f64,
    speed: f64,
    survives: usize,
    on_frontier: bool,
    text: String,
}

/// The chart; `None` without prices.
pub(super) fn chart(view: PageView<'_>) -> Option<Chart> {
    let (figure, unit) = speed(view)?;
    let dots = dots(view);
    if dots.is_empty() {
        return None;
    }
    let mut kinds: Vec<usize> = dots.iter().map(|dot| dot.survives).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut data: Vec<Trace> = Vec::new();
    for (slot, survives) in kinds.into_iter().enumerate() {
        let of_kind = |dot: &&Dot| dot.survives == survives;
        let (on, off): (Vec<&Dot>, Vec<&Dot>) =
            dots.iter().filter(of_kind).partition(|dot| dot.on_frontier);
        let colour = format!("var(--run-{})", colour_index(slot));
        let name = match survives {
            0 => "none may fail".to_owned(),
            many => format!("{many} may fail"),
        };
        if !off.is_empty() {
            data.push(beaten(&off, &colour, &name, on.is_empty()));
        }
        if !on.is_empty() {
            data.push(frontier(on, &colour, &name, label_side(slot, unit)));
        }
    }
    let y = from_zero(unit.name(), dots.iter().map(|dot| dot.speed));
    let x = from_zero("$ a month", dots.iter().map(|dot| dot.dollars));
    let better = if unit.less_is_better() {
        "lower"
    } else {
        "higher"
    };
    Some(Chart {
        title: format!("{figure} by cost"),
        caption: format!(
            "Further left is cheaper, {better} is faster. Full, with the number in the table: not \
             beaten in cost, speed and redundancy at once; hollow: beaten"
        ),
        figure: Figure {
            layout: layout(x, y, true).hover(Hover::Closest),
            data,
        },
    })
}

/// Side of the numbers of line `slot`: the first line is the fastest, and its numbers are beyond it.
fn label_side(slot: usize, unit: FigureUnit) -> Position {
    match (slot, unit.less_is_better()) {
        (0, false) => Position::TopLeft,
        (0, true) => Position::BottomLeft,
        (1, false) => Position::BottomRight,
        (1, true) => Position::TopRight,
        (_, false) => Position::BottomLeft,
        (_, true) => Position::TopLeft,
    }
}

/// An axis from zero, with room for the numbers beside the outermost dots.
fn from_zero(title: &str, values: impl Iterator<Item = f64>) -> Axis {
    let most = values.fold(0.0, f64::max);
    axis(title).range(vec![0.0, rounded(1.12 * most)])
}

fn dots(view: PageView<'_>) -> Vec<Dot> {
    let Some((figure, unit)) = speed(view) else {
        return Vec::new();
    };
    let rows = view.decision.rows.iter().enumerate();
    rows.filter_map(|(place, row)| {
        let dollars = row.cost?.per_month;
        let value = *row.figures.get(figure)?;
        let layout = sentences::layout(view.record, row.layout);
        Some(Dot {
            rank: place + 1,
            dollars: rounded(dollars),
            speed: rounded(unit.scaled(value.mean)),
            survives: row.survives,
            on_frontier: view.decision.frontier.contains(&row.layout),
            text: plain(&format!(
                "#{} {layout}: {}, {}",
                place + 1,
                unit.show_value(value),
                FigureUnit::Dollars.show(dollars)
            )),
        })
    })
    .collect()
}

fn scatter(dots: &[&Dot], name: &str) -> Trace {
    Trace::points(
        dots.iter().map(|dot| dot.dollars).collect(),
        dots.iter().map(|dot| dot.speed).collect(),
    )
    .name(name)
    .legend_group(name)
    .text_array(dots.iter().map(|dot| dot.text.clone()).collect())
    .hover_template("%{text}")
    .nameless(true)
}

fn beaten(dots: &[&Dot], colour: &str, name: &str, alone: bool) -> Trace {
    scatter(dots, name)
        .mode(Mode::Markers)
        .marker(
            Marker::new()
                .symbol(Symbol::CircleOpen)
                .color(format!("{colour} 60%"))
                .size(7),
        )
        .hide_in_legend(!alone)
}

/// The frontier, from the cheapest layout to the most expensive.
fn frontier(mut dots: Vec<&Dot>, colour: &str, name: &str, side: Position) -> Trace {
    dots.sort_by(|a, b| a.dollars.total_cmp(&b.dollars));
    let ranks = dots.iter().map(|dot| format!("#{}", dot.rank)).collect();
    scatter(&dots, name)
        .mode(Mode::LinesMarkersText)
        .line(
            Line::new()
                .color(colour.to_owned())
                .width(1.5)
                .dash(Dash::Dot),
        )
        .marker(Marker::new().color(colour.to_owned()).size(10))
        .labels(ranks)
        .label_side(side)
        .label_size(11)
}
