//! Answers to requests, and problems as answers.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

use crate::documents::{self, Document as _};
use ui::PROMETHEUS_TEXT;
use ui::format::hex;

/// Content security policy of all pages but reports: no inline scripts or styles, nothing from other sites.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Content security policy of a report. The sandbox gives it an opaque origin, so that its scripts cannot use this
/// server's API.
const REPORT_POLICY: &str = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'";

/// An error answer.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// Status of the answer.
    pub(crate) status: StatusCode,
    /// What is wrong, as a sentence.
    pub(crate) text: String,
}

impl Problem {
    /// An error answer with this status and sentence.
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Problem {
        Problem {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            text: text.into(),
        }
    }

    /// Status 400: the request has an invalid parameter or body.
    pub(crate) fn misused(text: impl Into<String>) -> Problem {
        Problem::new(400, text)
    }
}

impl From<anyhow::Error> for Problem {
    /// Status 503: a source failed.
    fn from(error: anyhow::Error) -> Problem {
        Problem::new(503, ui::exit::sentence(&error))
    }
}

impl From<ui::exit::Failure> for Problem {
    fn from(failure: ui::exit::Failure) -> Problem {
        let status = match &failure {
            ui::exit::Failure::Refused(_) => 404,
            ui::exit::Failure::Midway(_) => 503,
        };
        Problem::new(status, ui::exit::sentence(&failure.error()))
    }
}

impl IntoResponse for Problem {
    /// Answers with a document of the API.
    fn into_response(self) -> Response {
        let document = documents::Error {
            status: self.status.as_u16(),
            error: self.text,
        };
        let mut response = json(document.json());
        *response.status_mut() = self.status;
        response
    }
}

/// An answer of media type `kind`, which is not cached.
pub(crate) fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A JSON document.
pub(crate) fn json(body: impl Into<Body>) -> Response {
    typed("application/json", body)
}

/// Metrics in Prometheus' text format.
pub(crate) fn text(body: impl Into<Body>) -> Response {
    typed(PROMETHEUS_TEXT, body)
}

/// CSV, as a download of this name.
pub(crate) fn csv(name: &str, body: impl Into<Body>) -> Response {
    let mut response = typed("text/csv; charset=utf-8", body);
    let disposition = format!("attachment; filename=\"{name}.csv\"");
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        response
            .headers_mut()
            .insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// A page with an entity tag; status 304 if the browser's copy is current.
pub(crate) fn page(request: &HeaderMap, body: String) -> Response {
    let digest = Sha256::digest(body.as_bytes());
    let tag = format!("\"{}\"", hex(&digest[..12]));
    let is_known = request
        .get(header::IF_NONE_MATCH)
        .and_then(|known| known.to_str().ok())
        .is_some_and(|known| {
            known
                .split(',')
                .any(|one| one.trim().trim_start_matches("W/") == tag)
        });
    let mut response = match is_known {
        true => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        false => typed("text/html; charset=utf-8", body),
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

/// A report of runs.
pub(crate) fn report(body: Vec<u8>) -> Response {
    let mut response = typed("text/html; charset=utf-8", body);
    response.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(REPORT_POLICY),
    );
    response
}

/// A file whose path has its content's hash, compressed if the browser accepts gzip.
pub(crate) fn asset(request: &HeaderMap, asset: &'static crate::pages::Asset) -> Response {
    let takes_gzip = request
        .get(header::ACCEPT_ENCODING)
        .and_then(|codings| codings.to_str().ok())
        .is_some_and(takes_gzip);
    let body: &'static [u8] = match takes_gzip {
        true => &asset.gzip,
        false => &asset.bytes,
    };
    let mut response = typed(asset.content_type, body);
    let headers = response.headers_mut();
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if takes_gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// True if this value of `Accept-Encoding` accepts gzip.
fn takes_gzip(codings: &str) -> bool {
    codings.split(',').any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = quality
            .trim()
            .strip_prefix("q=")
            .is_some_and(|q| q.trim().parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Adds the security headers that every answer has.
pub(crate) fn harden(response: &mut Response, secure: bool) {
    let headers = response.headers_mut();
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(
        "cross-origin-opener-policy",
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("same-origin"),
    );
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        );
    }
    if secure {
        headers.insert(
            header::STRICT_TRANSPORT_SECURITY,
            HeaderValue::from_static("max-age=31536000"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        for (codings, takes) in [
            ("gzip, deflate, br", true),
            ("br;q=1, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(codings), takes, "{codings}");
        }
    }
}
