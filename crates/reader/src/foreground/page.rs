//! The page of a foreground: its latency without and with background I/O, as distributions and over time.

use askama::Template;
use page::charts::{Chart, Figure, axis, latency_axis, layout};
use page::plot::{Line, Mode, Trace};
use page::{ChartView, Figures};

use super::report::ForegroundReport;

/// A device and its charts.
struct Section {
    device: String,
    text: String,
    charts: Vec<ChartView>,
}

/// The main part of the page.
#[derive(Template)]
#[template(path = "foreground.html")]
struct Page {
    verb: &'static str,
    sections: Vec<Section>,
}

pub(super) fn page(
    verb: &'static str,
    devices: &[(String, Option<&ForegroundReport>)],
) -> anyhow::Result<Vec<u8>> {
    let mut figures = Figures::default();
    let sections = devices.iter().map(|(device, report)| Section {
        device: device.clone(),
        text: report.map_or_else(
            || "There was no foreground I/O.".to_owned(),
            ForegroundReport::text,
        ),
        charts: report
            .iter()
            .flat_map(|report| [distributions(report), latency(report), rate(report)])
            .map(|chart| figures.add(chart))
            .collect(),
    });
    let main = Page {
        verb,
        sections: sections.collect(),
    };
    page::page(&format!("{verb} – disksmith"), None, &main, &figures)
}

fn line(name: &str, colour: usize, x: Vec<f64>, y: Vec<Option<f64>>) -> Trace {
    let style = Line::new().color(format!("var(--run-{colour})")).width(1.5);
    Trace::points(x, y).name(name).mode(Mode::Lines).line(style)
}

/// Minimum and maximum of times in seconds, converted to nanoseconds.
fn bounds(seconds: impl Iterator<Item = f64> + Clone) -> (u64, u64) {
    let low = seconds.clone().fold(f64::INFINITY, f64::min);
    let high = seconds.fold(0.0, f64::max);
    ((1e9 * low) as u64, (1e9 * high) as u64)
}

fn distributions(report: &ForegroundReport) -> Chart {
    let [alone, beside] = &report.distributions;
    let (low, high) = bounds(alone.iter().chain(beside).map(|point| point.0));
    let drawn = [("alone", 0, alone), ("beside", 1, beside)].map(|(name, colour, points)| {
        let (x, y) = points.iter().map(|(x, y)| (*x, Some(*y))).unzip();
        line(name, colour, x, y)
    });
    let shares = axis("% of the probes").range(vec![0.0, 100.0]);
    Chart {
        title: "Distribution of latency".to_owned(),
        caption: "Probes of 4 KiB, alone and beside the background".to_owned(),
        figure: Figure {
            data: drawn.into(),
            layout: layout(latency_axis(low, high), shares, true),
        },
    }
}

/// Ends of the slices, in seconds of foreground time.
fn seconds(report: &ForegroundReport) -> Vec<f64> {
    let mut sum = 0.0;
    let ends = report.over_time.iter().map(|slice| {
        sum += slice.seconds;
        sum
    });
    ends.collect()
}

fn latency(report: &ForegroundReport) -> Chart {
    let mean = |(number, sum): (f64, f64)| (number > 0.0).then(|| sum / number);
    let alone: Vec<_> = report.over_time.iter().map(|one| mean(one.alone)).collect();
    let beside: Vec<_> = report
        .over_time
        .iter()
        .map(|one| mean(one.beside))
        .collect();
    let all = alone.iter().chain(&beside).flatten().copied();
    let (low, high) = bounds(all);
    let drawn = vec![
        line("alone", 0, seconds(report), alone),
        line("beside", 1, seconds(report), beside),
    ];
    Chart {
        title: "Mean latency over time".to_owned(),
        caption: "In seconds with a foreground".to_owned(),
        figure: Figure {
            data: drawn,
            layout: layout(axis("s"), latency_axis(low, high), true),
        },
    }
}

fn rate(report: &ForegroundReport) -> Chart {
    let mib = report.over_time.iter().map(|one| {
        let rate = one.bytes / one.seconds.max(1e-9) / f64::from(1 << 20);
        Some(page::charts::rounded(rate))
    });
    Chart {
        title: "Rate of the background".to_owned(),
        caption: String::new(),
        figure: Figure {
            data: vec![line("rate", 2, seconds(report), mib.collect())],
            layout: layout(axis("s"), axis("MiB/s").from_zero(true), false),
        },
    }
}

#[cfg(test)]
mod tests {
    use study::pace::Targets;

    use super::super::tests::example;
    use super::*;

    #[test]
    fn both_curves_are_drawn_and_a_device_without_a_foreground_is_named() {
        let report = ForegroundReport::of(&example(60, Targets::default())).unwrap();
        let devices = [
            ("/dev/vd<a>".to_owned(), Some(&report)),
            ("/dev/vdb".to_owned(), None),
        ];
        let page = String::from_utf8(page("warm", &devices).unwrap()).unwrap();
        assert!(!page.contains("vd<a>") && page.contains("There was no foreground I/O."));
        page::browser::assert_drawn("foreground", &page);
        page::browser::assert_narrow("foreground", &page);
    }
}
