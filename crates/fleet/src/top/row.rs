//! A host's row: what is known of it now, what it is sorted by, and whether it is shown.

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use record::{Bytes, Nanos};

use crate::talk::{DiskSample, Sample};

/// What hosts can be sorted by, and be left out for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sort {
    /// As in the list.
    #[default]
    Host,
    /// Bytes received and sent.
    Net,
    /// Bytes received.
    Received,
    /// Bytes sent.
    Sent,
    /// Reads and writes.
    Iops,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// The load of the last minute.
    Load,
    /// The latency of the worst disk.
    Latency,
}

/// What must be so of a host that is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Only {
    what: Sort,
    sign: Sign,
    bar: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Only {
    /// Whether it is so. What is not known is not so.
    pub(super) fn is_so(&self, row: &Row) -> bool {
        row.value(self.what).is_some_and(|value| match self.sign {
            Sign::AtLeast => value >= self.bar,
            Sign::AtMost => value <= self.bar,
            Sign::Above => value > self.bar,
            Sign::Below => value < self.bar,
        })
    }
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Only, String> {
        // The longer signs first: '>=' begins with '>'.
        let signs = [
            (">=", Sign::AtLeast),
            ("<=", Sign::AtMost),
            (">", Sign::Above),
            ("<", Sign::Below),
        ];
        let split = signs.into_iter().find_map(|(word, sign)| {
            let (what, bar) = text.split_once(word)?;
            Some((what.trim(), sign, bar.trim()))
        });
        let (what, sign, bar) =
            split.ok_or_else(|| format!("'{text}' compares nothing; write it as latency>=10ms"))?;
        let what = <Sort as clap::ValueEnum>::from_str(what, false)
            .ok()
            .filter(|what| *what != Sort::Host)
            .ok_or_else(|| {
                format!(
                    "'{what}' is nothing that is measured; there are net, received, sent, iops, reads, \
                     writes, load and latency"
                )
            })?;
        let bad = |why: &dyn fmt::Display| format!("'{bar}' in '{text}': {why}");
        let bar = match what {
            Sort::Latency => bar.parse::<Nanos>().map_err(|why| bad(&why))?.0 as f64,
            Sort::Net | Sort::Received | Sort::Sent => {
                let size = bar.strip_suffix("/s").unwrap_or(bar);
                size.parse::<Bytes>().map_err(|why| bad(&why))?.0 as f64
            }
            _ => bar.parse::<f64>().map_err(|why| bad(&why))?,
        };
        Ok(Only { what, sign, bar })
    }
}

/// What is known of a host now.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// It is being connected to.
    Connecting,
    /// It has said what it does, and when that came.
    Live(Box<Sample>, Instant),
    /// It cannot be reached, which is tried again.
    Dead(String),
}

/// A host's row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// What the host is called.
    pub host: String,
    /// Its zone.
    pub zone: Option<String>,
    /// What is known of it.
    pub state: State,
}

impl Row {
    /// What it does; `None` where that is not known.
    pub(super) fn sample(&self) -> Option<&Sample> {
        match &self.state {
            State::Live(sample, _) => Some(sample),
            _ => None,
        }
    }

    /// The disk whose requests take longest.
    pub(super) fn worst(&self) -> Option<(&DiskSample, f64)> {
        let disks = self.sample()?.disks.iter();
        disks
            .filter_map(|disk| Some((disk, disk.latency_ns?)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// What it is sorted by; `None` where that is not known, or is its place in the list.
    pub(super) fn value(&self, what: Sort) -> Option<f64> {
        let sample = self.sample()?;
        let sum = |of: fn(&DiskSample) -> f64| sample.disks.iter().map(of).sum::<f64>();
        Some(match what {
            Sort::Host => return None,
            Sort::Net => sample.received_per_s + sample.sent_per_s,
            Sort::Received => sample.received_per_s,
            Sort::Sent => sample.sent_per_s,
            Sort::Iops => sum(|disk| disk.reads_per_s + disk.writes_per_s),
            Sort::Reads => sum(|disk| disk.reads_per_s),
            Sort::Writes => sum(|disk| disk.writes_per_s),
            Sort::Load => sample.load?[0],
            Sort::Latency => self.worst()?.1,
        })
    }
}

/// The rows that are shown, in their order: those that cannot be reached last, unless it is the
/// list's order. A bar is met by none of those.
pub(super) fn shown<'a>(rows: &'a [Row], sort: Sort, only: &[Only]) -> Vec<&'a Row> {
    let mut shown: Vec<&Row> = rows
        .iter()
        .filter(|row| only.iter().all(|only| only.is_so(row)))
        .collect();
    if sort != Sort::Host {
        let key = |row: &&Row| row.value(sort).unwrap_or(f64::NEG_INFINITY);
        shown.sort_by(|a, b| key(b).total_cmp(&key(a)));
    }
    shown
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn row(host: &str, latency_ms: Option<f64>, iops: f64) -> Row {
        let disk = |name: &str, share: f64| DiskSample {
            name: name.to_owned(),
            reads_per_s: iops * share,
            writes_per_s: 0.0,
            latency_ns: latency_ms.map(|ms| ms * 1e6 * share),
            ..DiskSample::default()
        };
        let sample = Sample {
            seconds: 1.0,
            received_per_s: 1000.0,
            sent_per_s: 500.0,
            load: Some([1.0, 2.0, 3.0]),
            disks: vec![disk("sda", 0.25), disk("sdb", 0.75)],
        };
        Row {
            host: host.to_owned(),
            zone: None,
            state: State::Live(Box::new(sample), Instant::now()),
        }
    }

    fn names<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
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
            names(&shown(&rows, Sort::Host, &[])),
            ["a", "dead", "b", "c"]
        );
        assert_eq!(
            names(&shown(&rows, Sort::Latency, &[])),
            ["b", "a", "dead", "c"]
        );
        assert_eq!(
            names(&shown(&rows, Sort::Iops, &[])),
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
            let only: Only = only.parse().unwrap();
            assert_eq!(names(&shown(&rows, Sort::Host, &[only])), left);
        }
        for bad in ["latency", "dance>1", "host>1", "latency>=x", "iops>many"] {
            bad.parse::<Only>().unwrap_err();
        }
    }
}
