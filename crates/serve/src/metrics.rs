//! Metrics of the server itself, in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::documents::{SourceDocument, SourceState};

/// Counters.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Number of connections accepted.
    pub(crate) connections: AtomicU64,
    /// Number of connections closed immediately: too many were open, or the peer is not the proxy.
    pub(crate) refused_connections: AtomicU64,
    /// Number of requests answered.
    pub(crate) requests: AtomicU64,
    /// Number of requests refused with status 4xx.
    pub(crate) refused: AtomicU64,
    /// Number of requests that failed with status 5xx.
    pub(crate) failed: AtomicU64,
    /// Number of requests with a wrong token.
    pub(crate) wrong_tokens: AtomicU64,
    /// Total time of all answers in microseconds.
    pub(crate) answer_us: AtomicU64,
    /// Current number of viewers of the live page.
    pub(crate) viewers: AtomicU64,
}

impl Metrics {
    /// The metrics as text.
    pub(crate) fn text(&self, sources: &[SourceDocument]) -> String {
        let mut text = String::new();
        let rows: [(&str, &str, &str, &AtomicU64, f64); 8] = [
            (
                "connections_total",
                "counter",
                "Connections that came",
                &self.connections,
                1.0,
            ),
            (
                "refused_connections_total",
                "counter",
                "Connections that were closed at once",
                &self.refused_connections,
                1.0,
            ),
            (
                "requests_total",
                "counter",
                "Requests that were answered",
                &self.requests,
                1.0,
            ),
            (
                "refused_requests_total",
                "counter",
                "Requests that were refused (4xx)",
                &self.refused,
                1.0,
            ),
            (
                "failed_requests_total",
                "counter",
                "Requests that failed (5xx)",
                &self.failed,
                1.0,
            ),
            (
                "wrong_tokens_total",
                "counter",
                "Tokens and sessions that are not known",
                &self.wrong_tokens,
                1.0,
            ),
            (
                "answer_seconds_total",
                "counter",
                "Time of all answers",
                &self.answer_us,
                1e6,
            ),
            (
                "viewers",
                "gauge",
                "Viewers of the live page",
                &self.viewers,
                1.0,
            ),
        ];
        for (name, kind, meaning, value, unit) in rows {
            let value = value.load(Relaxed) as f64 / unit;
            let _ = writeln!(
                text,
                "# HELP disksmith_serve_{name} {meaning}\n# TYPE disksmith_serve_{name} {kind}\ndisksmith_serve_{name} {value}"
            );
        }
        let name = "disksmith_serve_source_up";
        let _ = writeln!(
            text,
            "# HELP {name} 1 where a source answers\n# TYPE {name} gauge"
        );
        for source in sources {
            let up = u8::from(source.state == SourceState::Ok);
            let _ = writeln!(text, "{name}{{kind={:?}}} {up}", source.kind);
        }
        text
    }
}
