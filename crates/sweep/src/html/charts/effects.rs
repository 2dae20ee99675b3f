//! Effects of the settings, all else equal: a dot with its interval for each pair of settings.

use super::super::view::PageView;
use super::speed::speed;
use crate::views::units::{self, FigureUnit};
use crate::{FactorEffect, Value};
use page::charts::{Chart, Figure, axis, layout, rounded};
use page::escape::plain;
use page::plot::{
    Axis, Hover, Line, Marker, Mode, Position, Scale, Shape, ShapeKind, Symbol, Trace, Whiskers,
};

/// Maximum number of rows; the largest effects are shown.
const MAX_ROWS: usize = 20;
/// Ratios for the ticks; the narrower the range, the denser the set.
const LADDERS: [&[f64]; 4] = [
    &[0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 100.0],
    &[0.1, 0.2, 0.33, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0],
    &[
        0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8,
    ],
    &[
        0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3,
    ],
];

/// The chart of effects, grouped by factor; `None` if there are no effects.
pub(super) fn chart(view: PageView<'_>) -> Option<Chart> {
    let objective = &view.record.settings.objective;
    let (name, unit) = match speed(view) {
        Some((figure, unit)) => (figure.to_string(), unit),
        None => (
            units::objective(objective),
            FigureUnit::of_objective(objective),
        ),
    };
    let effects = chosen(&view.decision.effects);
    if effects.is_empty() {
        return None;
    }
    let (shown, unclear): (Vec<_>, Vec<_>) = effects
        .iter()
        .enumerate()
        // The first row is at the top.
        .map(|(place, effect)| ((effects.len() - 1 - place) as f64, *effect))
        .partition(|(_, effect)| effect.shown);
    let mut data: Vec<Trace> = Vec::new();
    for (rows, colour, name) in [
        (&shown, "var(--run-0)", "shown"),
        (&unclear, "var(--muted)", "not shown: may be no difference"),
    ] {
        if !rows.is_empty() {
            data.push(ranges(rows, colour));
            data.push(dots(rows, colour, name));
        }
    }
    let (least, greatest) = extent(&effects);
    let better = if unit.less_is_better() {
        "left of the line is better"
    } else {
        "right of the line is better"
    };
    let mut caption = format!(
        "The change of {name} when one setting alone is another; {better}. Thick: the 95 % \
         interval of the mean over pairs of layouts; thin: the least and the greatest of a pair. \
         The scale is logarithmic"
    );
    if view.decision.effects.len() > effects.len() {
        caption.push_str(&format!(
            "; the {} greatest of {}",
            effects.len(),
            view.decision.effects.len()
        ));
    }
    Some(Chart {
        title: "Main effects".to_owned(),
        caption,
        figure: Figure {
            layout: layout(changes(least, greatest), names(&effects), data.len() > 2)
                .hover(Hover::Closest)
                .shapes(vec![no_change()]),
            data,
        },
    })
}

/// The largest effects that fit, in their original order.
fn chosen(effects: &[FactorEffect]) -> Vec<&FactorEffect> {
    let size = |effect: &FactorEffect| effect.ratio.mean.max(f64::MIN_POSITIVE).ln().abs();
    let mut sizes: Vec<f64> = effects.iter().map(size).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let bar = sizes.get(MAX_ROWS - 1).copied().unwrap_or(0.0);
    let chosen = effects.iter().filter(|effect| size(effect) >= bar);
    chosen.take(MAX_ROWS).collect()
}

fn extent(effects: &[&FactorEffect]) -> (f64, f64) {
    let all = || {
        effects.iter().flat_map(|effect| {
            let Value { mean, low, high } = effect.ratio;
            let (least, greatest) = effect.range;
            [Some(mean), low, high, Some(least), Some(greatest)]
                .into_iter()
                .flatten()
                .filter(|ratio| *ratio > 0.0 && ratio.is_finite())
        })
    };
    (all().fold(0.98, f64::min), all().fold(1.02, f64::max))
}

fn dots(rows: &[(f64, &FactorEffect)], colour: &'static str, name: &str) -> Trace {
    let above = |value: Value| value.high.map_or(0.0, |high| high - value.mean);
    let below = |value: Value| value.low.map_or(0.0, |low| value.mean - low);
    let column = |of: fn(&FactorEffect) -> f64| rows.iter().map(|(_, e)| rounded(of(e))).collect();
    let ratios: Vec<f64> = column(|effect| effect.ratio.mean);
    let whisker = Whiskers::new()
        .array(rows.iter().map(|(_, e)| above(e.ratio)).collect())
        .array_minus(rows.iter().map(|(_, e)| below(e.ratio)).collect())
        .thickness(3.0)
        .color(colour);
    Trace::points(ratios, rows.iter().map(|(y, _)| *y).collect())
        .name(name)
        .mode(Mode::MarkersText)
        .marker(Marker::new().color(colour).size(9))
        .error_x(whisker)
        .labels(rows.iter().map(|(_, e)| change(e.ratio.mean)).collect())
        .label_side(Position::TopCenter)
        .label_size(10)
        .text_array(rows.iter().map(|(_, e)| plain(&e.text)).collect())
        .hover_template("%{text}")
        .nameless(true)
}

/// The smallest and the largest ratio of the pairs, as a thin line with ends.
fn ranges(rows: &[(f64, &FactorEffect)], colour: &'static str) -> Trace {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (place, effect) in rows {
        x.extend([
            Some(rounded(effect.range.0)),
            Some(rounded(effect.range.1)),
            None,
        ]);
        y.extend([Some(*place), Some(*place), None]);
    }
    Trace::points(x, y)
        .mode(Mode::LinesMarkers)
        .line(Line::new().color(format!("{colour} 60%")).width(1.0))
        .marker(
            Marker::new()
                .symbol(Symbol::TickOpen)
                .color(format!("{colour} 60%"))
                .size(5),
        )
        .skip_hover(true)
        .hide_in_legend(true)
}

/// A ratio as a change: `+8 %`, `-18 %`, `×3.7`.
fn change(ratio: f64) -> String {
    match ratio {
        r if r >= 1.995 => format!("×{}", (r * 10.0).round() / 10.0),
        r => {
            let percent = (r - 1.0) * 100.0;
            if percent.abs() < 9.95 {
                let rounded = (percent * 10.0).round() / 10.0;
                format!("{:+} %", rounded + 0.0)
            } else {
                format!("{percent:+.0} %")
            }
        }
    }
    .replace('-', "−")
}

/// The axis of ratios.
fn changes(least: f64, greatest: f64) -> Axis {
    let room = (0.06 * (greatest / least).log10()).max(0.004);
    let (from, to) = (least.log10() - room, greatest.log10() + room);
    let ticks = ticks(from, to);
    axis("change, all else equal")
        .scale(Scale::Log)
        .range(vec![rounded(from), rounded(to)])
        .tick_text(
            ticks
                .iter()
                .map(|ratio| match *ratio {
                    1.0 => "0 %".to_owned(),
                    ratio => change(ratio),
                })
                .collect(),
        )
        .tick_values(ticks)
}

/// The ratios between two decimal logarithms at which there is a tick.
fn ticks(from: f64, to: f64) -> Vec<f64> {
    let mut ticks = Vec::new();
    for ladder in LADDERS {
        let within = |ratio: &f64| (from..=to).contains(&ratio.log10());
        ticks = ladder.iter().copied().filter(within).collect();
        if ticks.len() >= 4 {
            break;
        }
    }
    ticks
}

/// The axis with the names of the effects; it needs no title.
fn names(effects: &[&FactorEffect]) -> Axis {
    let name = |effect: &&FactorEffect| {
        plain(&format!(
            "{} {} → {}",
            effect.factor.name(),
            effect.from,
            effect.to
        ))
    };
    axis("")
        .tick_values((0..effects.len()).map(|place| place as f64).collect())
        .tick_text(effects.iter().rev().map(name).collect())
        .range(vec![-0.7, effects.len() as f64 - 0.3])
}

/// The line at which nothing changes.
fn no_change() -> Shape {
    Shape::new()
        .kind(ShapeKind::Line)
        .x0(1.0)
        .x1(1.0)
        .line(Line::new().color("var(--muted)").width(1.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_reads_as_a_change() {
        for (ratio, text) in [
            (1.08, "+8 %"),
            (0.82, "−18 %"),
            (0.987, "−1.3 %"),
            (3.667, "×3.7"),
            (2.0, "×2"),
            (0.5, "−50 %"),
        ] {
            assert_eq!(change(ratio), text);
        }
    }

    /// Each half of the axis has a label, whatever its range.
    #[test]
    fn losses_and_gains_of_any_size_have_ticks() {
        for extreme in [0.02, 0.1, 0.3, 0.45, 0.55, 0.65, 0.75, 0.9] {
            for (least, greatest) in [(extreme, 1.02), (0.98, 1.0 / extreme)] {
                let (from, to) = (f64::log10(least), f64::log10(greatest));
                let ticks = ticks(from, to);
                let middle = 10_f64.powf((from + to) / 2.0);
                let below = ticks.iter().filter(|ratio| **ratio < middle).count();
                assert!(
                    ticks.len() <= 14 && (1..ticks.len()).contains(&below),
                    "{least} to {greatest}: {ticks:?}"
                );
            }
        }
    }
}
