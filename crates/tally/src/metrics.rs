//! `/metrics` of Prometheus.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::pipeline::meter::Meter;
use crate::server::{Server, answer};
use ui::PROMETHEUS_TEXT;

/// A source with its counters.
pub(crate) type NamedMeter = (String, Arc<Meter>);

const FORM: HeaderValue = HeaderValue::from_static(PROMETHEUS_TEXT);

/// Serves metrics.
pub(crate) fn serve(address: SocketAddr, meters: Vec<NamedMeter>) -> std::io::Result<Server> {
    let meters = Arc::new(meters);
    Server::start(address, move |request| {
        let found = (request.uri().path() == "/metrics").then(|| text(&meters));
        async move {
            match found {
                Some(text) => {
                    let mut answer = answer(StatusCode::OK, text);
                    answer.headers_mut().insert(CONTENT_TYPE, FORM);
                    answer
                }
                None => answer(StatusCode::NOT_FOUND, "Metrics are at /metrics.\n"),
            }
        }
    })
}

/// Counter of a metric.
type Counter = fn(&Meter) -> &AtomicU64;

/// Metrics: name, type, help text, divisor of the counter's value, counter.
const METRICS: [(&str, &str, &str, f64, Counter); 12] = [
    ("events_total", "counter", "Events summed", 1.0, |meter| {
        &meter.events
    }),
    (
        "rejected_total",
        "counter",
        "Lines that are no events",
        1.0,
        |meter| &meter.rejected,
    ),
    (
        "unidentified_total",
        "counter",
        "Deliveries counted at least once, for want of an identity",
        1.0,
        |meter| &meter.unidentified,
    ),
    (
        "lost_total",
        "counter",
        "Datagrams that the kernel dropped, as they came faster than they were taken",
        1.0,
        |meter| &meter.lost,
    ),
    (
        "flushes_total",
        "counter",
        "Batches committed",
        1.0,
        |meter| &meter.flushes,
    ),
    (
        "flushed_sums_total",
        "counter",
        "Sums committed",
        1.0,
        |meter| &meter.flushed_sums,
    ),
    (
        "flush_seconds_total",
        "counter",
        "Time of all flushes",
        1e6,
        |meter| &meter.flush_us,
    ),
    (
        "last_flush_seconds",
        "gauge",
        "Time of the last flush",
        1e6,
        |meter| &meter.last_flush_us,
    ),
    ("sums", "gauge", "Sums in memory", 1.0, |meter| &meter.sums),
    (
        "lag",
        "gauge",
        "Records of Kafka, or bytes of a file, that are not read yet",
        1.0,
        |meter| &meter.lag,
    ),
    ("tags", "gauge", "Tags in the dictionary", 1.0, |meter| {
        &meter.tags
    }),
    (
        "other_tags_total",
        "counter",
        "Tags beyond the bound, summed as (other)",
        1.0,
        |meter| &meter.others,
    ),
];

fn text(meters: &[NamedMeter]) -> String {
    let mut text = String::new();
    for (name, kind, meaning, unit, counter) in METRICS {
        let _ = write!(
            text,
            "# HELP disksmith_tally_{name} {meaning}\n# TYPE disksmith_tally_{name} {kind}\n"
        );
        for (source, meter) in meters {
            let value = counter(meter).load(Relaxed) as f64 / unit;
            let _ = writeln!(text, "disksmith_tally_{name}{{source={source:?}}} {value}");
        }
    }
    text.push_str("# HELP disksmith_tally_down Sources and stores that do not answer\n# TYPE disksmith_tally_down gauge\n");
    for (source, meter) in meters {
        let _ = writeln!(
            text,
            "disksmith_tally_down{{source={source:?}}} {}",
            meter.reasons().len()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_a_line_for_each_source() {
        let meters = [
            ("a\"b".to_owned(), Arc::default()),
            ("-".to_owned(), Arc::default()),
        ];
        let text = text(&meters);
        assert_eq!(
            text.lines().filter(|line| !line.starts_with('#')).count(),
            2 * (METRICS.len() + 1)
        );
        assert!(
            text.contains("disksmith_tally_events_total{source=\"a\\\"b\"} 0\n"),
            "{text}"
        );
    }
}
