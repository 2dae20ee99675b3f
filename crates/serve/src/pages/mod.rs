//! Pages: HTML that is complete without a script, from the documents of the API. Templates escape every string
//! ([`page::escape::Html`]).

mod address;
mod assets;
mod controls;
mod frame;
mod listing;
mod now;
mod response_times;
mod text;
mod verdicts;

use askama::Template;

pub(crate) use assets::{Asset, asset};
pub(crate) use frame::Frame;

use crate::documents;
use frame::FrameView;

/// A page of the site, with the document that it shows.
pub(crate) enum Page<'a> {
    /// Hosts and their disks.
    Now(&'a documents::NowDocument),
    /// Response times and disks on one axis.
    ResponseTimes(&'a documents::ResponseTimes),
    /// Verdicts on response times.
    Verdicts(&'a documents::Verdicts),
    /// Runs of the ledger.
    Runs(&'a documents::Runs),
    /// Comparison of two runs: the document of `compare --json`.
    Compare(&'a str),
    /// Markers that were set.
    Markers(&'a documents::Markers),
    /// Terminal output as text.
    Text {
        /// Heading of the page.
        title: &'a str,
        /// The lines.
        text: &'a str,
        /// Path of the same document as JSON.
        json: &'a str,
    },
    /// Form for a token.
    SignIn {
        /// True if the last token was wrong.
        failed: bool,
        /// Path to return to.
        next: &'a str,
    },
    /// An error.
    Problem {
        /// HTTP status.
        status: u16,
        /// What is wrong, as a sentence.
        text: &'a str,
    },
}

/// The page as HTML.
///
/// # Errors
/// When a template fails.
pub(crate) fn render(frame: &Frame<'_>, page: &Page<'_>) -> Result<String, askama::Error> {
    let frame = FrameView::new(frame);
    match page {
        Page::Now(now) => now::page(frame, now),
        Page::ResponseTimes(view) => response_times::page(frame, view),
        Page::Verdicts(view) => verdicts::page(frame, view),
        Page::Runs(runs) => listing::runs(frame, runs),
        Page::Compare(document) => listing::compare(frame, document),
        Page::Markers(markers) => listing::markers(frame, markers),
        Page::Text { title, text, json } => Text {
            frame,
            title,
            text,
            json,
        }
        .render(),
        Page::SignIn { failed, next } => SignIn {
            frame,
            failed: *failed,
            next,
        }
        .render(),
        Page::Problem { status, text } => Problem {
            frame,
            title: title(*status),
            text,
        }
        .render(),
    }
}

fn title(status: u16) -> &'static str {
    match status {
        400 => "This address cannot be read",
        403 => "Not allowed",
        404 => "There is no such page",
        429 | 503 => "Too much at once",
        502 | 504 => "A source does not answer",
        _ => "This page cannot be shown",
    }
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn<'a> {
    frame: FrameView<'a>,
    failed: bool,
    next: &'a str,
}

#[derive(Template)]
#[template(path = "text.html")]
struct Text<'a> {
    frame: FrameView<'a>,
    title: &'a str,
    text: &'a str,
    json: &'a str,
}

#[derive(Template)]
#[template(path = "problem.html")]
struct Problem<'a> {
    frame: FrameView<'a>,
    title: &'static str,
    text: &'a str,
}
