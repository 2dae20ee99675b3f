//! A host's row: its present state, its sort value, and whether it is shown.

use std::time::Instant;

use crate::host_rates::{DiskSample, HostRates};
use crate::sort_key::{Condition, SortKey};

/// State of a host.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// The host is being connected to.
    Connecting,
    /// The latest sample of the host, and its time of arrival.
    Live(Box<HostRates>, Instant),
    /// The host cannot be reached for this reason, and is retried.
    Dead(String),
}

/// A host's row.
#[derive(Clone, Debug)]
pub(super) struct HostRow {
    /// Name of the host.
    pub host: String,
    /// Zone of the host; `None` if its source names none.
    pub zone: Option<String>,
    /// State of the host.
    pub state: State,
}

impl HostRow {
    /// The latest sample of the host; `None` if it is not connected.
    pub(super) fn sample(&self) -> Option<&HostRates> {
        match &self.state {
            State::Live(sample, _) => Some(sample),
            _ => None,
        }
    }

    /// The disk with the highest mean latency, and that latency in nanoseconds.
    pub(super) fn worst(&self) -> Option<(&DiskSample, f64)> {
        self.sample()?.worst()
    }

    /// The value that it is sorted by; `None` if it is unknown, or the order is that of the list.
    pub(super) fn value(&self, key: SortKey) -> Option<f64> {
        key.value(self.sample()?)
    }
}

/// The shown rows, in order. Hosts that cannot be reached come last, unless the order is that of the list; they meet
/// no condition.
pub(super) fn shown<'a>(
    rows: &'a [HostRow],
    sort: SortKey,
    only: &[Condition],
) -> Vec<&'a HostRow> {
    let mut shown: Vec<&HostRow> = rows
        .iter()
        .filter(|row| {
            only.iter()
                .all(|only| row.sample().is_some_and(|sample| only.is_met_by(sample)))
        })
        .collect();
    if sort != SortKey::Host {
        let key = |row: &&HostRow| row.value(sort).unwrap_or(f64::NEG_INFINITY);
        shown.sort_by(|a, b| key(b).total_cmp(&key(a)));
    }
    shown
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn row(host: &str, latency_ms: Option<f64>, iops: f64) -> HostRow {
        let disk = |name: &str, share: f64| DiskSample {
            name: name.to_owned(),
            reads_per_s: iops * share,
            writes_per_s: 0.0,
            latency_ns: latency_ms.map(|ms| ms * 1e6 * share),
            ..DiskSample::default()
        };
        let sample = HostRates {
            seconds: 1.0,
            received_per_s: 1000.0,
            sent_per_s: 500.0,
            load: Some([1.0, 2.0, 3.0]),
            disks: vec![disk("sda", 0.25), disk("sdb", 0.75)],
        };
        HostRow {
            host: host.to_owned(),
            zone: None,
            state: State::Live(Box::new(sample), Instant::now()),
        }
    }

    fn names<'a>(rows: &[&'a HostRow]) -> Vec<&'a str> {
        rows.iter().map(|row| row.host.as_str()).collect()
    }

    #[test]
    fn the_largest_stands_first_and_the_unknown_last() {
        let mut dead = row("dead", None, 0.0);
        dead.state = State::Dead("gone".to_owned());
        let rows = [
            row("a", Some(1.0), 300.0),
            dead,
            row("b", Some(9.0), 100.0),
            row("c", None, 200.0),
        ];
        assert_eq!(
            names(&shown(&rows, SortKey::Host, &[])),
            ["a", "dead", "b", "c"]
        );
        assert_eq!(
            names(&shown(&rows, SortKey::Latency, &[])),
            ["b", "a", "dead", "c"]
        );
        assert_eq!(
            names(&shown(&rows, SortKey::Iops, &[])),
            ["a", "c", "b", "dead"]
        );
        let (worst, latency) = rows[0].worst().unwrap();
        assert_eq!((worst.name.as_str(), latency), ("sdb", 0.75e6));
    }

    #[test]
    fn what_does_not_meet_a_bar_is_not_shown() {
        let rows = [row("a", Some(1.0), 300.0), row("b", Some(20.0), 100.0)];
        for (only, left) in [
            ("latency>=10ms", vec!["b"]),
            ("latency < 10ms", vec!["a"]),
            ("iops>200", vec!["a"]),
            ("net<=1500", vec!["a", "b"]),
            ("received>=2KiB/s", vec![]),
            ("load>8", vec![]),
        ] {
            let only: Condition = only.parse().unwrap();
            assert_eq!(names(&shown(&rows, SortKey::Host, &[only])), left);
        }
        for bad in ["latency", "dance>1", "host>1", "latency>=x", "iops>many"] {
            bad.parse::<Condition>().unwrap_err();
        }
    }
}
