//! Answers of Prometheus' query API (prometheus.io/docs/prometheus/latest/querying/api).

use std::collections::BTreeMap;

use serde::Deserialize;

/// Maximum number of series of an answer.
const MAX_SERIES: usize = 10_000;

/// A series of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Series {
    labels: BTreeMap<String, String>,
    /// Times in seconds since 1970, and values; values that are not finite are left out.
    pub(crate) values: Vec<(f64, f64)>,
}

impl Series {
    /// The value of a label; empty without it.
    pub(crate) fn label(&self, name: &str) -> String {
        self.labels.get(name).cloned().unwrap_or_default()
    }

    /// The host: the label `host` or `hostname`, or else `instance`.
    pub(crate) fn host(&self) -> String {
        self.label("instance")
    }

    /// Labels of the series as text.
    pub(crate) fn labels_written(&self) -> String {
        let labels = self.labels.iter().filter(|(name, _)| *name != "__name__");
        let pairs: Vec<String> = labels
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        format!("{{{}}}", pairs.join(","))
    }

    /// The last value.
    pub(crate) fn last(&self) -> f64 {
        self.values.last().map_or(f64::NAN, |(_, value)| *value)
    }

    /// Time of the last value.
    pub(crate) fn last_at(&self) -> f64 {
        self.values.last().map_or(0.0, |(at, _)| *at)
    }
}

#[derive(Deserialize)]
struct Envelope {
    status: String,
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    result: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    value: Option<Point>,
    values: Option<Vec<Point>>,
}

/// Seconds since 1970, and a number as text, which may be `NaN` or `+Inf`.
#[derive(Deserialize)]
struct Point(f64, String);

/// Reads an answer.
pub(crate) fn read(body: &[u8]) -> anyhow::Result<Vec<Series>> {
    let envelope: Envelope = serde_json::from_slice(body)
        .map_err(|error| anyhow::anyhow!("its answer is none of Prometheus' query API: {error}"))?;
    let data = match (envelope.status.as_str(), envelope.data) {
        ("success", Some(data)) => data,
        _ => anyhow::bail!(
            "it refuses the query: {}",
            envelope
                .error
                .unwrap_or_else(|| "no reason is given".to_owned())
        ),
    };
    if data.result.len() > MAX_SERIES {
        anyhow::bail!(
            "its answer has {} series, and {MAX_SERIES} are the most",
            data.result.len()
        );
    }
    Ok(data.result.into_iter().map(series).collect())
}

fn series(row: Row) -> Series {
    let points = row.values.into_iter().flatten().chain(row.value);
    let values = points.filter_map(|Point(at, value)| {
        let value: f64 = value.parse().ok()?;
        (value.is_finite() && at.is_finite()).then_some((at, value))
    });
    Series {
        labels: row.metric,
        values: values.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn vectors_and_matrices_are_read() {
        let body = br#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"instance":"a:9188","device":"vda"},"values":[[1,"0.5"],[2.5,"NaN"],[3,"+Inf"],[4,"2"]]}]}}"#;
        let found = read(body).unwrap();
        assert_eq!(found[0].values, [(1.0, 0.5), (4.0, 2.0)]);
        assert_eq!(
            (found[0].host(), found[0].label("device")),
            ("a:9188".to_owned(), "vda".to_owned())
        );
        let body = br#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"7"]}]}}"#;
        assert_eq!(read(body).unwrap()[0].last(), 7.0);
    }

    #[test]
    fn a_refusal_is_reported() {
        let body = br#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        assert!(read(body).unwrap_err().to_string().contains("parse error"));
        assert!(read(b"<html>").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
