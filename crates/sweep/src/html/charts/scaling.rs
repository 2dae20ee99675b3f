//! Growth of the rate with the members, next to the sum of the volumes' own rates.

use super::super::view::PageView;
use super::speed::{speed, whiskers};
use crate::views::units::FigureUnit;
use crate::{Metric, ScalingCurve, Value};
use page::charts::{Chart, Figure, axis, colour_index, layout, rounded};
use page::escape::plain;
use page::plot::{Dash, Hover, Line, Marker, Mode, Symbol, Trace};

/// Maximum number of curves of a chart.
const MAX_CURVES: usize = 5;

/// The best curve of each level against its ideal.
pub(super) fn chart(view: PageView<'_>) -> Option<Chart> {
    // Only rates grow with the members.
    let (figure, unit) = speed(view).filter(|(_, unit)| !unit.less_is_better())?;
    let curves = chosen(&view.decision.curves);
    if curves.is_empty() {
        return None;
    }
    let mut data: Vec<Trace> = Vec::new();
    let mut ideals = false;
    for (slot, curve) in curves.iter().enumerate() {
        let colour = format!("var(--run-{})", colour_index(slot));
        if let Some(ideal) = ideal(curve, unit, &colour) {
            ideals = true;
            data.push(ideal);
        }
        data.push(measured(curve, unit, &colour));
    }
    let summed = figure.metric == Metric::Iops
        && view
            .record
            .probe
            .as_ref()
            .is_some_and(|probe| probe.phase == figure.phase);
    if summed {
        data.extend(volumes(view));
    }
    let mut caption = format!(
        "{} by members, with 95 % intervals, the best of each level; a line that bends away from \
         its ideal has met a limit",
        unit.name()
    );
    if ideals {
        caption.push_str(
            "; dotted: the sum of so many members alone, each with all requests in flight",
        );
    }
    if view.decision.curves.len() > curves.len() {
        caption.push_str(&format!(
            "; {} of {} curves",
            curves.len(),
            view.decision.curves.len()
        ));
    }
    let y = axis(unit.name()).from_zero(true);
    let x = axis("members").from_zero(true).whole(true);
    Some(Chart {
        title: format!("{figure} by members"),
        caption,
        figure: Figure {
            layout: layout(x, y, true).hover(Hover::Closest),
            data,
        },
    })
}

/// The curve of each level with the highest rate. A label begins with its level.
fn chosen(curves: &[ScalingCurve]) -> Vec<&ScalingCurve> {
    let level = |curve: &ScalingCurve| {
        let level = curve.label.split(", ").next();
        level.unwrap_or_default().to_owned()
    };
    let height = |curve: &ScalingCurve| {
        let values = curve.points.iter().map(|point| point.value.mean);
        values.fold(0.0, f64::max)
    };
    let mut sorted: Vec<&ScalingCurve> = curves.iter().filter(|c| !c.points.is_empty()).collect();
    sorted.sort_by(|a, b| height(b).total_cmp(&height(a)));
    let mut levels: Vec<String> = Vec::new();
    sorted.retain(|curve| {
        let level = level(curve);
        let first = !levels.contains(&level);
        levels.push(level);
        first
    });
    sorted.truncate(MAX_CURVES);
    sorted
}

fn measured(curve: &ScalingCurve, unit: FigureUnit, colour: &str) -> Trace {
    let values: Vec<Value> = curve.points.iter().map(|point| point.value).collect();
    let label = plain(&curve.label);
    let text = curve.points.iter().map(|point| {
        format!(
            "{label}, {} members: {}",
            point.members,
            unit.show_value(point.value)
        )
    });
    Trace::points(members(curve), scaled(&values, unit))
        .name(&label)
        .mode(Mode::LinesMarkers)
        .line(Line::new().color(colour.to_owned()).width(2.2))
        .marker(Marker::new().color(colour.to_owned()).size(7))
        .error_y(whiskers(&values, unit).color(colour.to_owned()))
        .text_array(text.collect())
        .hover_template("%{text}")
        .nameless(true)
}

fn ideal(curve: &ScalingCurve, unit: FigureUnit, colour: &str) -> Option<Trace> {
    let points: Vec<(usize, f64)> = curve
        .points
        .iter()
        .filter_map(|point| Some((point.members, unit.scaled(point.ideal?))))
        .collect();
    if points.is_empty() {
        return None;
    }
    let (x, y): (Vec<f64>, Vec<f64>) = points
        .into_iter()
        .map(|(members, ideal)| (members as f64, rounded(ideal)))
        .unzip();
    Some(
        Trace::points(x, y)
            .mode(Mode::Lines)
            .line(
                Line::new()
                    .color(format!("{colour} 70%"))
                    .width(1.5)
                    .dash(Dash::Dot),
            )
            .hide_in_legend(true)
            .hover_template(format!(
                "{}: ideal %{{y:,.4~r}}",
                plain(&curve.label).replace('%', "")
            )),
    )
}

/// Rates of the volumes without an array: the sum of each alone, and all at once.
fn volumes(view: PageView<'_>) -> Vec<Trace> {
    let Some(probe) = &view.record.probe else {
        return Vec::new();
    };
    let grey = "var(--muted)";
    let sums: Vec<f64> = probe
        .alone
        .iter()
        .scan(0.0, |sum, value| {
            *sum += value.mean;
            Some(rounded(*sum))
        })
        .collect();
    let members: Vec<f64> = (1..=sums.len()).map(|members| members as f64).collect();
    let together: f64 = probe.together.iter().map(|value| value.mean).sum();
    let mut traces: Vec<Trace> = vec![
        Trace::points(members, sums)
            .name("volumes alone, added up")
            .mode(Mode::Lines)
            .line(Line::new().color(grey).width(1.5).dash(Dash::Dash))
            .hover_template("%{x} volumes alone, added up: %{y:,.0f}")
            .nameless(true),
    ];
    if !probe.together.is_empty() {
        traces.push(
            Trace::points(vec![probe.together.len() as f64], vec![rounded(together)])
                .name("all volumes at once")
                .mode(Mode::Markers)
                .marker(
                    Marker::new()
                        .symbol(Symbol::DiamondOpen)
                        .color(grey)
                        .size(11),
                )
                .hover_template("all volumes at once: %{y:,.0f}")
                .nameless(true),
        );
    }
    traces
}

fn members(curve: &ScalingCurve) -> Vec<f64> {
    let members = curve.points.iter().map(|point| point.members as f64);
    members.collect()
}

fn scaled(values: &[Value], unit: FigureUnit) -> Vec<f64> {
    let scaled = values.iter().map(|value| rounded(unit.scaled(value.mean)));
    scaled.collect()
}
