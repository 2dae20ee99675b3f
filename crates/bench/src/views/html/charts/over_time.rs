//! IOPS and latency over the time of a phase.

use page::plot::{Fill, Line, LineShape, Mode, Shape, ShapeKind, Trace};
use std::ops::Range;

use record::{Direction, Histogram, Phase, Window};

use super::super::groups::{Group, Member};
use super::line::{Style, line_name};
use super::time::{as_seconds, end, marked, time_axis};
use page::charts::{Chart, Figure, axis, latency_axis, layout, rounded};
use ui::format;

/// Maximum number of points of a line over time: in a long phase each point is the mean of several windows.
const MAX_COLUMNS: usize = 300;
/// Maximum number of slices that are drawn: more cannot be distinguished.
const MAX_SLICES: usize = 1_500;

/// Consecutive windows that are shown as one point.
pub(super) struct Column<'a> {
    pub(super) windows: &'a [Window],
}

impl Column<'_> {
    /// Start and end, in seconds from the phase's start.
    pub(super) fn time(&self) -> Range<f64> {
        let begin = self.windows.first().map_or(0.0, |window| window.t_s);
        let end = self
            .windows
            .last()
            .map_or(begin, |last| last.t_s + last.seconds);
        begin..end
    }

    /// Requests a second. A window in which the direction did nothing counts as zero.
    fn rate(&self, direction: Direction) -> f64 {
        let flows = self
            .windows
            .iter()
            .filter_map(|window| window.flow(direction));
        let ops: u64 = flows.map(record::WindowFlow::ops).sum();
        let time = self.time();
        ops as f64 / (time.end - time.start).max(f64::EPSILON)
    }

    /// Latencies of the requests that completed.
    pub(super) fn latency(&self, direction: Direction) -> Histogram {
        let mut all = Histogram::new();
        for flow in self
            .windows
            .iter()
            .filter_map(|window| window.flow(direction))
        {
            all.merge(&flow.latency);
        }
        all
    }
}

/// A phase divided into columns, at most as many as a chart shows.
pub(super) fn columns(phase: &Phase) -> impl Iterator<Item = Column<'_>> {
    let per_column = phase.windows.len().div_ceil(MAX_COLUMNS).max(1);
    phase
        .windows
        .chunks(per_column)
        .map(|windows| Column { windows })
}

/// Length of a column, for captions.
fn column_seconds(group: &Group<'_>) -> f64 {
    let lengths = group.members.iter().filter_map(|member| {
        let time = columns(member.phase).next()?.time();
        Some(time.end - time.start)
    });
    lengths.fold(0.0, f64::max)
}

/// A run's lines of one direction.
struct Series<'a, 'b> {
    member: &'b Member<'a>,
    direction: Direction,
    name: String,
    style: Style,
}

fn series<'a, 'b>(
    group: &'b Group<'a>,
    directions: &[Direction],
    runs: usize,
) -> Vec<Series<'a, 'b>> {
    let mut all = Vec::new();
    for member in &group.members {
        for (nth, &direction) in directions.iter().enumerate() {
            if member.phase.flow(direction).is_some() && !member.phase.windows.is_empty() {
                let word = (directions.len() > 1).then(|| direction.name());
                all.push(Series {
                    member,
                    direction,
                    name: line_name(member, word, runs),
                    style: Style::new(member, nth, runs),
                });
            }
        }
    }
    all
}

/// Requests a second over time, with the 95 % interval of the mean in the background.
pub(super) fn rates(group: &Group<'_>, directions: &[Direction], runs: usize) -> Option<Chart> {
    let series = series(group, directions, runs);
    if series.is_empty() {
        return None;
    }
    let slices = group
        .members
        .iter()
        .map(|member| slice_count(member.phase))
        .max();
    let with_slices = slices.is_some_and(|most| most <= MAX_SLICES);
    let mut data: Vec<Trace> = Vec::new();
    if with_slices {
        data.extend(series.iter().map(slice_line));
    }
    data.extend(series.iter().map(rate_line));
    let commits = directions == [Direction::Commit];
    let (title, unit) = if commits {
        ("Commits over time", "commits per second")
    } else {
        ("IOPS over time", "requests per second")
    };
    let y = axis(unit).from_zero(true);
    let every = format::seconds(column_seconds(group));
    let mut caption = format!("Steps of {every}");
    if with_slices {
        caption.push_str("; thin: a tenth of that");
    }
    let bands: Vec<Shape> = series.iter().filter_map(interval_band).collect();
    if !bands.is_empty() {
        caption.push_str("; band: 95 % interval");
    }
    Some(Chart {
        title: title.to_owned(),
        caption,
        figure: Figure {
            layout: marked(layout(time_axis(group), y, series.len() > 1), group, bands),
            data,
        },
    })
}

fn slice_count(phase: &Phase) -> usize {
    let in_window = |window: &Window| {
        let flows = Direction::ALL
            .into_iter()
            .filter_map(|direction| window.flow(direction));
        flows
            .map(|flow| flow.slices.len())
            .max()
            .unwrap_or_default()
    };
    phase.windows.iter().map(in_window).sum()
}

fn slice_line(series: &Series<'_, '_>) -> Trace {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for window in &series.member.phase.windows {
        let slices = window
            .flow(series.direction)
            .map_or(&[][..], |flow| &flow.slices);
        // The last slice of a shortened phase would show a drop that did not happen.
        for (i, slice) in slices.iter().take(window.complete_slices()).enumerate() {
            x.push(rounded(
                window.t_s + (i as f64 + 0.5) * window.slice_seconds,
            ));
            y.push(rounded(slice.ops as f64 / window.slice_seconds));
        }
    }
    Trace::points(x, y)
        .mode(Mode::Lines)
        .line(Line::new().color(series.style.tint(45)).width(1.0))
        .skip_hover(true)
        .hide_in_legend(true)
}

fn rate_line(series: &Series<'_, '_>) -> Trace {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for column in columns(series.member.phase) {
        x.push(rounded(column.time().start));
        y.push(rounded(column.rate(series.direction)));
    }
    // As in `QuantileSeries::new`: the last step needs an end point.
    if let Some(&last) = y.last() {
        x.push(rounded(end(series.member.phase)));
        y.push(last);
    }
    Trace::points(x, y)
        .name(&series.name)
        .mode(Mode::Lines)
        .line(series.style.line(2.2).shape(LineShape::Hv))
        .hover_template("%{y:,.0f}/s")
}

/// The interval of the mean, starting at the end of the warm-up.
fn interval_band(series: &Series<'_, '_>) -> Option<Shape> {
    let phase = series.member.phase;
    let warmup = series.member.figures?.warmup_slices as f64 * phase.slice_seconds();
    let iops = series.member.flow(series.direction)?.iops;
    Some(
        Shape::new()
            .kind(ShapeKind::Rect)
            .x0(rounded(warmup))
            .x1(rounded(end(phase)))
            .y0(rounded(iops.low?))
            .y1(rounded(iops.high?))
            .fill_color(series.style.tint(16)),
    )
}

/// p50 and p99 over time, with the area between them filled.
pub(super) fn latencies(group: &Group<'_>, directions: &[Direction], runs: usize) -> Option<Chart> {
    let series = series(group, directions, runs);
    let courses: Vec<QuantileSeries> = series.iter().map(QuantileSeries::new).collect();
    let low = courses
        .iter()
        .filter_map(|course| course.p50.iter().flatten().min())
        .min()?;
    let high = courses
        .iter()
        .filter_map(|course| course.p99.iter().flatten().max())
        .max()?;
    let y = latency_axis(*low, *high);
    let mut data: Vec<Trace> = Vec::new();
    for (series, course) in series.iter().zip(&courses) {
        data.extend(course.lines(series));
    }
    Some(Chart {
        title: "Latency over time".to_owned(),
        caption: "From p50 (thin) to p99 (thick)".to_owned(),
        figure: Figure {
            layout: marked(
                layout(time_axis(group), y, series.len() > 1),
                group,
                Vec::new(),
            ),
            data,
        },
    })
}

/// Quantiles in nanoseconds, column by column; `None` where no request completed.
struct QuantileSeries {
    time: Vec<f64>,
    p50: Vec<Option<u64>>,
    p99: Vec<Option<u64>>,
}

impl QuantileSeries {
    fn new(series: &Series<'_, '_>) -> QuantileSeries {
        let mut course = QuantileSeries {
            time: Vec::new(),
            p50: Vec::new(),
            p99: Vec::new(),
        };
        for column in columns(series.member.phase) {
            let latency = column.latency(series.direction);
            let at = |quantile| (!latency.is_empty()).then(|| latency.quantile(quantile));
            course.time.push(rounded(column.time().start));
            course.p50.push(at(0.5));
            course.p99.push(at(0.99));
        }
        // A step is as long as its window, and the last one needs an end point.
        if let (Some(&p50), Some(&p99)) = (course.p50.last(), course.p99.last()) {
            course.time.push(rounded(end(series.member.phase)));
            course.p50.push(p50);
            course.p99.push(p99);
        }
        course
    }

    /// The lines of p50 and of p99, in this order: the second fills down to the first.
    fn lines(&self, series: &Series<'_, '_>) -> [Trace; 2] {
        let group = format!("{} {}", series.member.subject.slot, series.direction.name());
        let line = |nanos: &[Option<u64>], width, word: &str| {
            let shown = |nanos: &Option<u64>| nanos.map_or_else(String::new, format::latency);
            let seconds = nanos.iter().map(|nanos| nanos.map(as_seconds)).collect();
            Trace::points(self.time.clone(), seconds)
                .name(&series.name)
                .legend_group(&group)
                .mode(Mode::Lines)
                .line(series.style.line(width).shape(LineShape::Hv))
                .text_array(nanos.iter().map(shown).collect())
                .hover_template(format!("{word} %{{text}}"))
        };
        let low = line(&self.p50, 1.2, "p50").hide_in_legend(true);
        let high = line(&self.p99, 2.2, "p99")
            .fill(Fill::ToPrevious)
            .fill_color(series.style.tint(series.style.area));
        [low, high]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::sample;

    #[test]
    fn a_long_phase_has_few_columns_that_still_cover_it() {
        let (run, _) = sample::interrupted_run(1);
        let mut phase = run.phases[0].clone();
        phase.windows = (0..3_601)
            .map(|second| Window {
                t_s: f64::from(second),
                seconds: 1.0,
                slice_seconds: 0.1,
                ..Window::default()
            })
            .collect();
        let times: Vec<_> = columns(&phase).map(|column| column.time()).collect();
        assert!(times.len() <= MAX_COLUMNS);
        assert_eq!(times.last().map(|time| time.end), Some(3_601.0));
        assert!(times.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn a_window_in_which_a_direction_did_nothing_counts_as_zero() {
        let (run, _) = sample::interrupted_run(1);
        let mut phase = run.phases[0].clone();
        phase.windows[1].read = None;
        let rates: Vec<_> = columns(&phase)
            .map(|column| column.rate(Direction::Read))
            .collect();
        assert!(rates[0] > 0.0);
        assert_eq!(rates[1], 0.0);
    }
}
