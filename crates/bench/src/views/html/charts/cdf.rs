//! Distribution of latencies: the share of requests at least as fast. On its axis the slowest one in ten thousand has
//! as much room as the median.

use page::plot::{Axis, Hover, Mode, Scale, Trace};
use record::{Direction, Histogram};

use super::super::groups::Group;
use super::line::{Style, line_name};
use super::time::as_seconds;
use page::charts::{Chart, Figure, axis, latency_axis, layout, rounded};
use ui::format;

/// Minimum number of requests for a distribution.
const MIN_SAMPLES: u64 = 10;
/// Minimum distance of points on the percentile axis, in units of that axis, of which the chart is about four high.
const CLOSEST: f64 = 0.004;

/// A curve: latencies in seconds, their positions on the axis, and the text of both.
struct Curve {
    latency: Vec<f64>,
    place: Vec<f64>,
    text: Vec<String>,
}

impl Curve {
    /// The curve of `histogram`. A latency that `seen` of `count` requests did not exceed has the quantile (seen -
    /// 1/2) / count, so that the slowest request has a finite position (Hazen's plotting position).
    fn new(histogram: &Histogram) -> Curve {
        let mut curve = Curve {
            latency: Vec::new(),
            place: Vec::new(),
            text: Vec::new(),
        };
        let count = histogram.count() as f64;
        let mut seen = 0;
        for (_, high, here) in histogram.buckets() {
            seen += here;
            let beyond = (count - seen as f64 + 0.5) / count;
            let place = -beyond.log10();
            let is_last = seen == histogram.count();
            if is_last
                || curve
                    .place
                    .last()
                    .is_none_or(|last| place - last >= CLOSEST)
            {
                let latency = high.min(histogram.max());
                let (percentile, within) = (percentile(1.0 - beyond), format::latency(latency));
                curve.latency.push(as_seconds(latency));
                curve.place.push(rounded(place));
                curve.text.push(format!("{percentile} within {within}"));
            }
        }
        curve
    }
}

/// A quantile as a percentile, with as many digits as its distance from 100 % requires.
fn percentile(quantile: f64) -> String {
    // The addition keeps 0.9999 at four nines, since its binary fraction is slightly smaller.
    let nines = 1e-6 - (1.0 - quantile).log10();
    let digits = (nines.clamp(1.0, 9.0) as usize) - 1;
    format!("{:.digits$} %", quantile * 100.0)
}

/// The distributions of all directions of all members.
pub(super) fn all(group: &Group<'_>, runs: usize) -> Option<Chart> {
    let directions = group.directions_where(|flow| flow.latency.count() >= MIN_SAMPLES);
    of(group, &directions, runs)
}

/// The distributions of these directions of all members.
pub(super) fn of(group: &Group<'_>, directions: &[Direction], runs: usize) -> Option<Chart> {
    let mut data: Vec<Trace> = Vec::new();
    let mut highest = 2.0_f64;
    let (mut fastest, mut slowest) = (u64::MAX, 0);
    let mut open_loop = false;
    for member in &group.members {
        for (nth, &direction) in directions.iter().enumerate() {
            let Some(flow) = member.phase.flow(direction) else {
                continue;
            };
            let activity = member.phase.workload.activity(direction).name();
            let word = (directions.len() > 1).then_some(activity);
            let service_word = format!("{activity} service");
            let mut add = |histogram: &Histogram, nth, word| {
                if histogram.count() < MIN_SAMPLES {
                    return;
                }
                let curve = Curve::new(histogram);
                fastest = fastest.min(histogram.min());
                slowest = slowest.max(histogram.max());
                highest = curve.place.iter().copied().fold(highest, f64::max);
                let name = line_name(member, word, runs);
                let style = Style::new(member, nth, runs);
                data.push(line(curve, &name, &style));
            };
            let service = flow.service.as_ref();
            add(
                &flow.latency,
                nth,
                service.map_or(word, |_| Some(direction.name())),
            );
            if let Some(service) = service {
                open_loop = true;
                add(service, nth + directions.len(), Some(&service_word));
            }
        }
    }
    if data.is_empty() {
        return None;
    }
    let legend = data.len() > 1;
    let mut caption = "The share of requests that took at most this long".to_owned();
    if open_loop {
        caption.push_str("; service: from submission, the rest from the scheduled time");
    }
    Some(Chart {
        title: "Latency distribution".to_owned(),
        caption,
        figure: Figure {
            layout: layout(
                latency_axis(fastest, slowest),
                percentile_axis(highest),
                legend,
            )
            .hover(Hover::Closest),
            data,
        },
    })
}

fn line(curve: Curve, name: &str, style: &Style) -> Trace {
    Trace::points(curve.latency, curve.place)
        .name(name)
        .mode(Mode::Lines)
        .line(style.line(2.0))
        .text_array(curve.text)
        .hover_template("%{text}")
}

/// An axis on which every further nine takes the same space.
fn percentile_axis(highest: f64) -> Axis {
    let nines = highest.ceil().clamp(2.0, 9.0) as usize;
    let mut values = vec![0.0, -(0.5_f64.log10())];
    let mut texts = vec!["0 %".to_owned(), "50 %".to_owned()];
    for nine in 1..=nines {
        values.push(nine as f64);
        texts.push(match nine {
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            more => format!("99.{} %", "9".repeat(more - 2)),
        });
    }
    axis("share of requests")
        .scale(Scale::Linear)
        .tick_values(values)
        .tick_text(texts)
        .range(vec![0.0, highest * 1.03])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nine_is_one_step_and_the_slowest_request_is_on_the_curve() {
        let mut histogram = Histogram::new();
        histogram.record_many(100_000, 9_900);
        histogram.record_many(200_000, 99);
        histogram.record(5_000_000);
        let curve = Curve::new(&histogram);
        assert_eq!(curve.latency.last(), Some(&0.005));
        assert!((curve.place[0] - 2.0).abs() < 0.01, "99 % is two nines");
        assert!((curve.place[1] - 4.0).abs() < 0.2, "99.99 % is four");
        assert!(curve.place.is_sorted());
    }

    #[test]
    fn percentiles_have_a_digit_for_every_further_nine() {
        for (quantile, text) in [
            (0.0, "0 %"),
            (0.5, "50 %"),
            (0.995, "99.5 %"),
            (0.9999, "99.990 %"),
        ] {
            assert_eq!(percentile(quantile), text);
        }
    }
}
