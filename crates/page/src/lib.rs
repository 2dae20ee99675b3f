//! Report pages: HTML files that open offline. A page's template escapes every string
//! ([`escape::Html`]); what its charts draw stands in one JSON document that its script reads.

#[cfg(feature = "testing")]
pub mod browser;
pub mod charts;
pub mod escape;
mod ticks;

use std::hash::{BuildHasher, Hasher, RandomState};

/// The style of all pages.
pub const STYLE: &str = include_str!("style.css");
/// Style of pages with tables of ranks.
pub const TABLE_STYLE: &str = include_str!("sweep.css");
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

/// A number that nobody can foresee. The content security policy lets only scripts run that carry
/// it, so a script that came in with a path or a host name would not.
pub fn nonce() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Plotly's part of the scripts that the crate embeds. The rest is MathJax, which a page without
/// formulas has no use for and which would add 2 MB.
pub fn plotly_script(sources: &str) -> &str {
    sources
        .split("</script>")
        .filter_map(|element| Some(element.split_once("<script")?.1.split_once('>')?.1))
        .find(|script| script.contains("plotly.js v"))
        .unwrap_or_default()
}
