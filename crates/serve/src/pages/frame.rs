//! Frame of a page: head, navigation and foot.

use super::address;
use super::assets::ASSETS;

/// Facts about the request that every page shows around its content.
pub(crate) struct Frame<'a> {
    /// Path of the page.
    pub(crate) path: &'a str,
    /// Query of the page's address, unchanged.
    pub(crate) query: &'a str,
    /// True if the reader may set markers.
    pub(crate) can_write: bool,
    /// True if the reader has signed in, and can sign out.
    pub(crate) signed_in: bool,
}

/// The frame in the form that templates use.
pub(super) struct FrameView<'a> {
    pub(super) path: &'a str,
    pub(super) query: address::Query,
    pub(super) can_write: bool,
    pub(super) signed_in: bool,
    pub(super) style: &'static str,
    pub(super) library: &'static str,
    pub(super) charts: &'static str,
    pub(super) script: &'static str,
    pub(super) icon: &'static str,
}

impl<'a> FrameView<'a> {
    pub(super) fn new(frame: &Frame<'a>) -> FrameView<'a> {
        FrameView {
            path: frame.path,
            query: address::Query::of(frame.query),
            can_write: frame.can_write,
            signed_in: frame.signed_in,
            style: &ASSETS.style.path,
            library: &ASSETS.library.path,
            charts: &ASSETS.charts.path,
            script: &ASSETS.script.path,
            icon: &ASSETS.icon.path,
        }
    }

    pub(super) fn pages(&self) -> [(&'static str, &'static str); 5] {
        [
            ("/", "Now"),
            ("/response-times", "Response times"),
            ("/verdicts", "Verdicts"),
            ("/runs", "Runs"),
            ("/markers", "Markers"),
        ]
    }

    pub(super) fn is_at(&self, path: &str) -> bool {
        self.path == path
    }
}
