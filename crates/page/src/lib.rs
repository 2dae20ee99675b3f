//! Report pages: HTML files that open offline. A page's template escapes every string
//! ([`escape::Html`]); what its charts draw is in one JSON document that its script reads.

#[cfg(feature = "testing")]
pub mod browser;
pub mod charts;
pub mod escape;
pub mod plot;
mod ticks;

use std::hash::{BuildHasher, Hasher, RandomState};

/// The style of all pages.
pub const STYLE: &str = concat!(
    include_str!("uplot/uPlot.min.css"),
    include_str!("style.css")
);
/// Style of pages with tables of ranks.
pub const TABLE_STYLE: &str = include_str!("sweep.css");
/// uPlot 1.6.32, as published (MIT, whose text goes along): axes, ticks, zoom and pointer of the charts.
pub const LIBRARY: &str = concat!(
    "/*! ",
    include_str!("uplot/LICENSE"),
    "*/\n",
    include_str!("uplot/uPlot.iife.min.js")
);
/// The script that draws a page's charts.
pub const SCRIPT: &str = include_str!("page.js");

/// A chart and the index of what it draws.
pub struct ChartView {
    /// Title.
    pub title: String,
    /// Text below the title.
    pub caption: String,
    /// Index of the figure in the page's document.
    pub figure: usize,
}

/// An unpredictable number (nonce). The content security policy lets only scripts run that carry
/// it, so a script that came in with a path or a host name would not.
pub fn nonce() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}
