//! The charts of a watch: figures over the time of day, each with findings and marks.

use page::plot::{
    Axis, ColorBar, Fill, Hover, Layout, Line, LineShape, Mode, Scale, Shape, ShapeKind, Trace,
};
use std::collections::HashMap;
use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ledger::Mark;
use record::sample::DeviceId;
use record::{Severity, Subject};
use study::watch::WatchEvent;

use super::course::{Band, DeviceSeries, FigureSeries, HOST, Step};
use super::figures::DEVICE;
use page::charts::{Chart, Figure, Marker, axis, layout, markers, rounded};
use page::escape::plain;
use ui::format;

/// Height of a chart in pixels, as in `.chart` of the page's style.
const PLAIN_HEIGHT: usize = 300;
/// Height of a row of a map, in pixels.
const ROW_HEIGHT: usize = 14;
/// Height of the space above and below the rows of a map, in pixels.
const MARGINS: usize = 60;

/// Maximum number of columns of a map.
const MAX_COLUMNS: usize = 240;
/// Maximum number of findings that are drawn in a chart, the worst first: more could not be distinguished.
const MAX_SHADED_FINDINGS: usize = 40;

/// Data that all charts of a page share.
pub(super) struct ChartFrame<'a> {
    pub(super) course: &'a FigureSeries,
    pub(super) marks: &'a [Mark],
    /// Zone of the time axis. It has a fixed offset: otherwise the hour that is repeated in autumn would be drawn
    /// twice at the same place.
    pub(super) zone: TimeZone,
}

/// A line of a chart.
pub(super) struct ChartSeries<'a> {
    pub(super) name: String,
    pub(super) colour: usize,
    pub(super) bands: Box<dyn Fn(usize) -> Option<Band> + 'a>,
}

/// Unit of a chart's figures.
#[derive(Clone, Copy)]
pub(super) struct ChartUnit {
    pub(super) axis: &'static str,
    pub(super) scale: f64,
    pub(super) word: fn(f64) -> String,
}

/// A column of a map.
struct Column {
    place: String,
    /// Start of the column; `None` in a log without timestamps.
    wall: Option<Timestamp>,
    steps: Range<usize>,
}

impl ChartFrame<'_> {
    /// Position on the time axis, as text for the script: a time of day, or seconds where no time of day is known.
    pub(super) fn place(&self, seconds: f64) -> String {
        match self.course.wall(seconds) {
            Some(wall) => self.time(wall),
            None => rounded(seconds).to_string(),
        }
    }

    /// Position of a step's start.
    fn begin(&self, step: &Step) -> String {
        match self.course.begin(step) {
            Some(wall) => self.time(wall),
            None => rounded(step.begin).to_string(),
        }
    }

    /// Position of a step's end.
    fn end(&self, step: &Step) -> String {
        match step.wall {
            Some(wall) => self.time(wall),
            None => rounded(step.end).to_string(),
        }
    }

    fn time(&self, at: Timestamp) -> String {
        let local = at.to_zoned(self.zone.clone());
        local.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
    }

    /// Position of a time on the time axis, from 0 to 1.
    fn share(&self, at: Timestamp) -> f64 {
        let (begin, end) = self.course.span();
        let (Some(first), Some(last)) = (self.course.wall(begin), self.course.wall(end)) else {
            return 0.0;
        };
        let seconds = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64();
        seconds(first, at) / seconds(first, last).max(f64::MIN_POSITIVE)
    }

    pub(super) fn time_axis(&self) -> Axis {
        let (begin, end) = self.course.span();
        let has_wall = self.course.wall(begin).is_some();
        if has_wall {
            axis("").scale(Scale::Date)
        } else {
            axis("seconds")
                .scale(Scale::Linear)
                .range(vec![rounded(begin), rounded(end)])
        }
    }

    /// Adds to a chart the findings about these devices or the host, and all marks.
    fn decorate(&self, layout: Layout, devices: &[DeviceId]) -> Layout {
        let mut events: Vec<&WatchEvent> = self
            .course
            .events
            .iter()
            .filter(|event| match event.subject {
                Subject::Host => true,
                Subject::Device(id) => devices.contains(&id),
            })
            .collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.severity));
        events.truncate(MAX_SHADED_FINDINGS);
        let mut shapes: Vec<Shape> = events.iter().map(|event| self.event_band(event)).collect();
        let marks: Vec<Marker<'_>> = self
            .marks
            .iter()
            .map(|one| Marker {
                place: self.time(one.at),
                share: self.share(one.at),
                name: &one.text,
            })
            .collect();
        let (lines, notes) = markers(&marks);
        shapes.extend(lines);
        layout.shapes(shapes).annotations(notes)
    }

    fn event_band(&self, event: &WatchEvent) -> Shape {
        let (_, last) = self.course.span();
        let begin = self.course.seconds(event.began);
        let end = event
            .ended
            .map_or(last, |ended| self.course.seconds(ended))
            // A very short finding must be visible too.
            .max(begin + last / 2e3);
        let colour = match event.severity {
            Severity::Note => "var(--note) 22%",
            Severity::Warn | Severity::Invalid => "var(--invalid) 22%",
        };
        Shape::new()
            .kind(ShapeKind::Rect)
            .x0(self.place(begin))
            .x1(self.place(end))
            .fill_color(colour)
    }

    /// The points of a line, drawn as steps, and interrupted at gaps.
    fn points(&self, value: impl Fn(usize) -> Option<f64>) -> (Vec<String>, Vec<Option<f64>>) {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        let steps = &self.course.steps;
        for (at, step) in steps.iter().enumerate() {
            if step.after_gap
                && let Some(before) = at.checked_sub(1).map(|before| &steps[before])
            {
                x.push(self.end(before));
                y.push(None);
            }
            x.push(self.begin(step));
            y.push(value(at).map(rounded));
        }
        if let (Some(step), Some(last)) = (steps.last(), y.last().copied()) {
            x.push(self.end(step));
            y.push(last);
        }
        (x, y)
    }

    /// A chart of lines over time, each with the area between its minimum and maximum where a step has several samples.
    /// `None` where no line has a value.
    pub(super) fn lines(
        &self,
        title: &str,
        unit: ChartUnit,
        series: Vec<ChartSeries<'_>>,
        devices: &[DeviceId],
    ) -> Option<Chart> {
        let steps = self.course.steps.len();
        let known: Vec<ChartSeries<'_>> = series
            .into_iter()
            .filter(|series| (0..steps).any(|at| (series.bands)(at).is_some()))
            .collect();
        if known.is_empty() {
            return None;
        }
        let mut data: Vec<Trace> = Vec::new();
        // With many lines, the bands would hide each other.
        let has_bands = known.len() <= 4 && self.course.steps.iter().any(|step| step.samples > 1);
        if has_bands {
            data.extend(known.iter().map(|one| self.band(one, unit)));
        }
        let legend = known.len() > 1;
        for one in &known {
            let (x, y) = self.points(|at| Some(f64::from((one.bands)(at)?.mean) * unit.scale));
            let text = y
                .iter()
                .map(|y| y.map_or_else(String::new, unit.word))
                .collect();
            data.push(
                Trace::points(x, y)
                    .name(plain(&one.name))
                    .mode(Mode::Lines)
                    .line(
                        Line::new()
                            .color(format!("var(--run-{})", one.colour % 7))
                            .width(if known.len() > 8 { 1.1 } else { 1.8 })
                            .shape(LineShape::Hv),
                    )
                    .text_array(text)
                    .hover_template("%{text}"),
            );
        }
        let y = axis(unit.axis).from_zero(true);
        Some(Chart {
            title: title.to_owned(),
            caption: if has_bands {
                "Mean; pale: from minimum to maximum".to_owned()
            } else {
                String::new()
            },
            figure: Figure {
                layout: self.decorate(layout(self.time_axis(), y, legend), devices),
                data,
            },
        })
    }

    /// The area between minimum and maximum, with a separate outline for each stretch in which both are known: an area
    /// that is filled from line to line would cross the gaps.
    fn band(&self, series: &ChartSeries<'_>, unit: ChartUnit) -> Trace {
        let steps = &self.course.steps;
        let (mut x, mut y) = (Vec::new(), Vec::new());
        let mut stretch: Vec<(usize, Band)> = Vec::new();
        let mut close = |stretch: &mut Vec<(usize, Band)>| {
            let Some((last, end)) = stretch.last().copied() else {
                return;
            };
            let scaled = |value: f32| Some(rounded(f64::from(value) * unit.scale));
            for (at, band) in stretch.iter() {
                x.push(self.begin(&steps[*at]));
                y.push(scaled(band.most));
            }
            for value in [end.most, end.least] {
                x.push(self.end(&steps[last]));
                y.push(scaled(value));
            }
            for (at, band) in stretch.drain(..).rev() {
                x.push(self.begin(&steps[at]));
                y.push(scaled(band.least));
            }
            x.push(self.end(&steps[last]));
            y.push(None);
        };
        for (at, step) in steps.iter().enumerate() {
            let band = (series.bands)(at);
            if step.after_gap || band.is_none() {
                close(&mut stretch);
            }
            stretch.extend(band.map(|band| (at, band)));
        }
        close(&mut stretch);
        Trace::points(x, y)
            .mode(Mode::Lines)
            .line(Line::new().width(0.0))
            .fill(Fill::ToSelf)
            .fill_color(format!("var(--run-{}) 22%", series.colour % 7))
            .skip_hover(true)
            .hide_in_legend(true)
    }

    /// The steps of each column of a map, and the positions of their starts, followed by the end of the last.
    pub(super) fn map_columns(&self) -> Option<(Vec<Range<usize>>, Vec<String>)> {
        let columns = self.columns();
        let mut times: Vec<String> = columns.iter().map(|one| one.place.clone()).collect();
        let last = columns.last()?.steps.clone().last();
        let last = last.and_then(|last| self.course.steps.get(last));
        times.extend(last.map(|last| self.end(last)));
        let steps = columns.into_iter().map(|one| one.steps).collect();
        Some((steps, times))
    }

    /// The columns of a map; those in gaps have no steps. Their times ascend: after the time of day was set back, steps
    /// with times that are already covered are left out.
    fn columns(&self) -> Vec<Column> {
        let steps = &self.course.steps;
        let most = steps.len().div_ceil(MAX_COLUMNS).max(1);
        let mut columns: Vec<Column> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            match columns.last_mut() {
                Some(last) if !step.after_gap && last.steps.len() < most => {
                    last.steps.end = at + 1;
                }
                _ => {
                    let before = at.checked_sub(1).map(|before| &steps[before]);
                    if let Some(before) = before.filter(|_| step.after_gap) {
                        columns.push(Column {
                            place: self.end(before),
                            wall: before.wall,
                            steps: at..at,
                        });
                    }
                    columns.push(Column {
                        place: self.begin(step),
                        wall: self.course.begin(step),
                        steps: at..at + 1,
                    });
                }
            }
        }
        let mut reached: Option<Timestamp> = None;
        columns.retain(|column| {
            let rises = reached
                .zip(column.wall)
                .is_none_or(|(last, wall)| wall > last);
            if rises {
                reached = column.wall.or(reached);
            }
            rises
        });
        // The last column must have steps, since its end is the end of the map.
        while columns.last().is_some_and(|last| last.steps.is_empty()) {
            columns.pop();
        }
        columns
    }

    /// A heat map of a figure over time, with a row for each device.
    pub(super) fn map(
        &self,
        title: &str,
        unit: ChartUnit,
        devices: &[&DeviceSeries],
        at: usize,
    ) -> Option<Chart> {
        let (columns, times) = self.map_columns()?;
        let most = |steps: &[[Option<Band>; DEVICE]]| {
            let values = steps.iter().filter_map(|step| Some(step[at]?.most));
            let most = values.reduce(f32::max)?;
            (most > 0.0).then(|| rounded((f64::from(most) * unit.scale).log10()))
        };
        let row = |device: &&DeviceSeries| -> Vec<Option<f64>> {
            let column = |steps: &Range<usize>| most(device.steps.get(steps.clone())?);
            columns.iter().map(column).collect()
        };
        let values: Vec<Vec<Option<f64>>> = devices.iter().map(row).collect();
        let all = || values.iter().flatten().flatten().copied();
        let (low, high) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
        // Four decades are shown; smaller values are negligible beside them.
        let low = low.max(high - 4.0);
        let names = rows(devices);
        let height = PLAIN_HEIGHT.max(names.len() * ROW_HEIGHT + MARGINS);
        let ticks = key_ticks(low, high);
        let word = |tick: &f64| (unit.word)(10_f64.powf(*tick));
        let bar = ColorBar::new()
            .title(unit.axis)
            .tick_text(ticks.iter().map(word).collect())
            .tick_values(ticks);
        let trace = Trace::heat_map(times, names, values)
            .zmin(low)
            .zmax(if high > low { high } else { low + 1.0 })
            .color_bar(bar)
            .hover_template("%{y} at %{x}: %{text}")
            .nameless(true);
        let lines = axis("").scale(Scale::Category);
        let layout = layout(self.time_axis(), lines, false)
            .hover(Hover::Closest)
            .height(height);
        let ids: Vec<DeviceId> = Vec::new();
        Some(Chart {
            title: title.to_owned(),
            caption: "Maximum of each step".to_owned(),
            figure: Figure {
                layout: self.decorate(layout, &ids),
                data: vec![trace],
            },
        })
    }
}

/// Decimal logarithms of the colour key's ticks: the decades from `low` to `high`, or both ends where there are fewer
/// than two decades.
fn key_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades: Vec<f64> = (low.ceil() as i32..=high.floor() as i32)
        .map(f64::from)
        .collect();
    match decades.len() {
        0 | 1 if high > low => vec![low, high],
        0 => vec![low],
        _ => decades,
    }
}

/// The names of a map's rows, the last of which is the topmost. Rows with the same name would be drawn over each other,
/// so a second device with a name, as after a volume was replaced, gets a number.
fn rows(devices: &[&DeviceSeries]) -> Vec<String> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut names = Vec::with_capacity(devices.len());
    for device in devices.iter().rev() {
        let name = device.device.name.as_str();
        let nth = seen.entry(name).or_default();
        *nth += 1;
        names.push(match *nth {
            1 => plain(name),
            nth => plain(&format!("{name} ({nth})")),
        });
    }
    names.reverse();
    names
}

/// A line of a device.
pub(super) fn of_device<'a>(
    device: &'a DeviceSeries,
    name: &str,
    colour: usize,
    at: usize,
) -> ChartSeries<'a> {
    ChartSeries {
        name: name.to_owned(),
        colour,
        bands: Box::new(move |step| device.steps.get(step)?[at]),
    }
}

/// A line of the host.
pub(super) fn of_host<'a>(
    course: &'a FigureSeries,
    name: &str,
    colour: usize,
    at: usize,
) -> ChartSeries<'a> {
    debug_assert!(at < HOST);
    ChartSeries {
        name: name.to_owned(),
        colour,
        bands: Box::new(move |step| course.host.get(step)?[at]),
    }
}

/// Requests a second.
pub(super) const RATE: ChartUnit = ChartUnit {
    axis: "requests per second",
    scale: 1.0,
    word: |value| format!("{}/s", format::number(value)),
};
/// MiB a second.
pub(super) const BYTES: ChartUnit = ChartUnit {
    axis: "MiB per second",
    scale: 1.0 / 1_048_576.0,
    word: |value| format!("{} MiB/s", format::number(value)),
};
/// Waits in milliseconds.
pub(super) const WAIT: ChartUnit = ChartUnit {
    axis: "await, ms",
    scale: 1e3,
    word: |value| format::latency((value * 1e6) as u64),
};
/// Times of single requests in milliseconds.
pub(super) const TIME: ChartUnit = ChartUnit { axis: "ms", ..WAIT };
/// Requests.
pub(super) const FLIGHT: ChartUnit = ChartUnit {
    axis: "requests",
    scale: 1.0,
    word: format::number,
};
/// Percent.
pub(super) const PERCENT: ChartUnit = ChartUnit {
    axis: "percent of the time",
    scale: 1.0,
    word: |value| format!("{value:.1} %"),
};
/// MiB.
pub(super) const MEMORY: ChartUnit = ChartUnit {
    axis: "MiB",
    scale: 1.0 / 1_048_576.0,
    word: |value| format!("{} MiB", format::number(value)),
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;
    use jiff::tz::Offset;
    use record::Nanos;
    use record::sample::{
        Device, DeviceSample, Gap, PerSecond, RecordedInterval, Sample, SampleTime,
    };

    use super::super::fixed;
    use super::*;

    /// Reads during an hour from `began` on, where the clock is set back by `back` minutes after half of the time.
    fn reads_of_an_hour(began: &str, back: i64, names: &[&str]) -> FigureSeries {
        let began: Timestamp = began.parse().unwrap();
        let mut course = FigureSeries::default();
        for minute in 1..=60 {
            let off = if minute > 30 { back } else { 0 };
            let devices = names.iter().zip(0..).map(|(name, id)| {
                let device = Device::by_name(DeviceId(id), name, SampleTime::default());
                let mut one = DeviceSample::unknown(Arc::new(device));
                one.read.iops = Some(PerSecond(f64::from(id) + 1.0));
                one
            });
            let is_set = back > 0 && minute == 31;
            course.observe(
                &RecordedInterval::taken(Sample {
                    at: SampleTime {
                        wall: Some(began + SignedDuration::from_mins(minute - off)),
                        elapsed: Nanos::from_secs(60 * minute as u64),
                    },
                    length: Nanos::from_secs(60),
                    gap: is_set.then_some(Gap::SetBack(Nanos::from_secs(60 * back as u64))),
                    devices: devices.collect(),
                    ..Sample::default()
                }),
                &[],
            );
        }
        course
    }

    fn frame(course: &FigureSeries) -> ChartFrame<'_> {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        ChartFrame {
            course,
            marks: &[],
            zone: fixed(course, &zone),
        }
    }

    fn rises(times: &[String]) -> bool {
        times.windows(2).all(|pair| pair[0] < pair[1])
    }

    #[test]
    fn the_hour_that_is_repeated_in_autumn_is_drawn_once_each_time() {
        let course = reads_of_an_hour("2026-10-25T00:30:00Z", 0, &["vda"]);
        let frame = frame(&course);
        assert_eq!(frame.zone, TimeZone::fixed(Offset::constant(2)));
        let (x, _) = frame.points(|_| Some(1.0));
        assert_eq!(x.len(), 61);
        assert!(rises(&x), "{x:?}");
        assert_eq!(x[60], "2026-10-25 03:30:00.000");
    }

    #[test]
    fn where_the_clock_was_set_back_lines_break_and_maps_rise() {
        let course = reads_of_an_hour("2026-11-20T02:00:00Z", 10, &["vda"]);
        let frame = frame(&course);
        let (x, y) = frame.points(|_| Some(1.0));
        let gap = y.iter().position(Option::is_none).unwrap();
        assert_eq!(x[gap], "2026-11-20 03:30:00.000");
        assert_eq!(x[gap + 1], "2026-11-20 03:20:00.000");
        assert!(rises(&x[..=gap]) && rises(&x[gap + 1..]));
        let columns = frame.columns();
        let places: Vec<String> = columns.iter().map(|one| one.place.clone()).collect();
        assert!(rises(&places), "{places:?}");
        assert_eq!(columns.last().unwrap().steps, 59..60);
        assert_eq!((course.set_back, course.gaps), (1, 0));
    }

    #[test]
    fn a_key_has_two_ticks_where_there_are_two_values() {
        assert_eq!(key_ticks(-0.2, 2.1), [0.0, 1.0, 2.0]);
        assert_eq!(key_ticks(2.2, 3.1), [2.2, 3.1]);
        assert_eq!(key_ticks(2.2, 2.7), [2.2, 2.7]);
        assert_eq!(key_ticks(2.2, 2.2), [2.2]);
    }

    #[test]
    fn devices_of_one_name_have_rows_of_their_own() {
        let course = reads_of_an_hour("2026-11-20T02:00:00Z", 0, &["vda", "vdb", "vda"]);
        let from_below: Vec<&DeviceSeries> = course.devices.iter().rev().collect();
        assert_eq!(rows(&from_below), ["vda (2)", "vdb", "vda"]);
    }
}
