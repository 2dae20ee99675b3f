//! Report pages: HTML files that open offline. A page's template escapes every string ([`escape::Html`]); the figures
//! of its charts are in one JSON document that its script reads.

#[cfg(feature = "testing")]
pub mod browser;
pub mod charts;
pub mod escape;
pub mod plot;
mod ticks;

use std::hash::{BuildHasher, Hasher, RandomState};

use askama::Template;

use charts::{Chart, Figure};

/// The style of all pages.
pub const STYLE: &str = concat!(
    include_str!("uplot/uPlot.min.css"),
    include_str!("style.css")
);
/// Style of pages with tables of ranks.
pub const TABLE_STYLE: &str = include_str!("sweep.css");
/// uPlot 1.6.32, as published (MIT; its license text is included): axes, ticks, zoom and pointer of the charts.
pub const LIBRARY: &str = concat!(
    "/*! ",
    include_str!("uplot/LICENSE"),
    "*/\n",
    include_str!("uplot/uPlot.iife.min.js")
);
/// The script that draws a page's charts.
const SCRIPT: &str = include_str!("page.js");

/// A chart, with the index of its figure.
pub struct ChartView {
    /// Title above the chart.
    pub title: String,
    /// Text below the title.
    pub caption: String,
    /// Index of the figure in the page's document.
    pub figure: usize,
}

/// Figures that the charts of a page draw.
#[derive(Default)]
pub struct Figures(Vec<Figure>);

impl Figures {
    /// Adds the figure of a chart, and returns the rest of the chart with the figure's index.
    pub fn add(&mut self, chart: Chart) -> ChartView {
        self.0.push(chart.figure);
        ChartView {
            title: chart.title,
            caption: chart.caption,
            figure: self.0.len() - 1,
        }
    }
}

/// Frame around the main part of a page.
#[derive(Template)]
#[template(path = "frame.html")]
struct Frame<'a> {
    title: &'a str,
    /// Nonce of the page's own scripts, which data cannot contain.
    nonce: String,
    style: &'a [&'a str],
    library: &'static str,
    script: &'static str,
    main: String,
    figures: &'a [Figure],
}

/// The page with this title and main part. `style` is added to the style of all pages.
///
/// # Errors
/// When a template fails.
pub fn page(
    title: &str,
    style: Option<&str>,
    main: &impl Template,
    figures: &Figures,
) -> anyhow::Result<Vec<u8>> {
    let frame = Frame {
        title,
        nonce: nonce(),
        style: &[STYLE, style.unwrap_or_default()],
        library: LIBRARY,
        script: SCRIPT,
        main: main.render()?,
        figures: &figures.0,
    };
    Ok(frame.render()?.into_bytes())
}

/// An unpredictable number (nonce). The content security policy only permits scripts that have it, so that a script in
/// a path or a host name would not run.
fn nonce() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_pages_never_share_a_nonce() {
        assert_ne!(super::nonce(), super::nonce());
    }
}
