//! Pages and what they load.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use askama::Template;

use crate::documents;

/// A file with its content's hash in its path.
pub(crate) struct Asset {
    /// Path: `/assets/NAME.HASH.EXT`.
    pub(crate) path: String,
    /// Type.
    pub(crate) content_type: &'static str,
    /// Content.
    pub(crate) bytes: Vec<u8>,
    /// Content, compressed.
    pub(crate) gzip: Vec<u8>,
}

/// All around a page.
pub(crate) struct Frame<'a> {
    /// Path of the page.
    pub(crate) path: &'a str,
    /// Query, as it came.
    pub(crate) query: &'a str,
    /// True if the visitor may set markers.
    pub(crate) can_write: bool,
    /// True if the visitor has signed in.
    pub(crate) signed_in: bool,
}

/// A page with its document.
pub(crate) enum Page<'a> {
    /// Hosts and disks, now.
    Now(&'a documents::Now),
    /// Response times and what lies below.
    ResponseTimes(&'a documents::ResponseTimes),
    /// Verdicts.
    Verdicts(&'a documents::Verdicts),
    /// Runs.
    Runs(&'a documents::Runs),
    /// Two runs beside each other: the document of `disksmith compare --json`.
    Compare(&'a str),
    /// Markers.
    Markers(&'a documents::Markers),
    /// Signing in.
    SignIn {
        /// True after a wrong token.
        failed: bool,
        /// Path to go on to.
        next: &'a str,
    },
    /// A refusal or a failure.
    Problem {
        /// Status.
        status: u16,
        /// A sentence.
        text: &'a str,
    },
}

static ASSETS: LazyLock<BTreeMap<String, Asset>> = LazyLock::new(BTreeMap::new);

/// The file at a path.
pub(crate) fn asset(path: &str) -> Option<&'static Asset> {
    ASSETS.get(path).filter(|asset| asset.path == path)
}

#[derive(Template)]
#[template(
    source = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>disksmith</title><h1>{{ title }}</h1><pre>{{ body }}</pre>{% if form %}<form method=\"post\"><input name=\"token\" type=\"password\"><input type=\"hidden\" name=\"next\" value=\"{{ next }}\"><button>Sign in</button></form>{% endif %}</html>",
    ext = "html"
)]
struct Plain<'a> {
    title: &'a str,
    body: String,
    form: bool,
    next: &'a str,
}

/// The page.
///
/// # Errors
/// When a template fails.
pub(crate) fn render(frame: &Frame<'_>, page: &Page<'_>) -> Result<String, askama::Error> {
    use documents::Document as _;
    let (title, body) = match page {
        Page::Now(document) => ("Now", document.json()),
        Page::ResponseTimes(document) => ("Response times", document.json()),
        Page::Verdicts(document) => ("Verdicts", document.json()),
        Page::Runs(document) => ("Runs", document.json()),
        Page::Compare(document) => ("Comparison", (*document).to_owned()),
        Page::Markers(document) => ("Markers", document.json()),
        Page::SignIn { failed, .. } => ("Sign in", format!("failed: {failed}")),
        Page::Problem { status, text } => ("Problem", format!("{status}: {text}")),
    };
    let _ = (frame.path, frame.query, frame.can_write, frame.signed_in);
    Plain {
        title,
        body,
        form: matches!(page, Page::SignIn { .. }),
        next: match page {
            Page::SignIn { next, .. } => next,
            _ => "",
        },
    }
    .render()
}
