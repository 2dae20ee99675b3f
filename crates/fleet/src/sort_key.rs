//! Sort key of the table of `fleet top`, and the conditions on its rows.

use std::fmt;
use std::str::FromStr;

use record::{Bytes, Nanos};

use crate::host_rates::{DiskSample, HostRates};

/// Value by which hosts are sorted and filtered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SortKey {
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

/// Condition for a host to be shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    what: SortKey,
    sign: ComparisonSign,
    threshold: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparisonSign {
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Condition {
    /// True if a host meets it. An unknown value meets no condition.
    pub(crate) fn is_met_by(&self, sample: &HostRates) -> bool {
        self.what
            .value(sample)
            .is_some_and(|value| match self.sign {
                ComparisonSign::AtLeast => value >= self.threshold,
                ComparisonSign::AtMost => value <= self.threshold,
                ComparisonSign::Above => value > self.threshold,
                ComparisonSign::Below => value < self.threshold,
            })
    }
}

impl SortKey {
    /// The value that a host is sorted by; `None` if it is unknown, or the order is that of the list.
    pub(crate) fn value(self, sample: &HostRates) -> Option<f64> {
        let sum = |of: fn(&DiskSample) -> f64| sample.disks.iter().map(of).sum::<f64>();
        Some(match self {
            SortKey::Host => return None,
            SortKey::Net => sample.received_per_s + sample.sent_per_s,
            SortKey::Received => sample.received_per_s,
            SortKey::Sent => sample.sent_per_s,
            SortKey::Iops => sum(|disk| disk.reads_per_s + disk.writes_per_s),
            SortKey::Reads => sum(|disk| disk.reads_per_s),
            SortKey::Writes => sum(|disk| disk.writes_per_s),
            SortKey::Load => sample.load?[0],
            SortKey::Latency => sample.worst()?.1,
        })
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        // Longer operators first: '>=' begins with '>'.
        let signs = [
            (">=", ComparisonSign::AtLeast),
            ("<=", ComparisonSign::AtMost),
            (">", ComparisonSign::Above),
            ("<", ComparisonSign::Below),
        ];
        let split = signs.into_iter().find_map(|(word, sign)| {
            let (what, threshold) = text.split_once(word)?;
            Some((what.trim(), sign, threshold.trim()))
        });
        let (what, sign, threshold) =
            split.ok_or_else(|| format!("'{text}' compares nothing; write it as latency>=10ms"))?;
        let what = <SortKey as clap::ValueEnum>::from_str(what, false)
            .ok()
            .filter(|what| *what != SortKey::Host)
            .ok_or_else(|| {
                format!(
                    "'{what}' is nothing that is measured; there are net, received, sent, iops, reads, \
                     writes, load and latency"
                )
            })?;
        let bad = |why: &dyn fmt::Display| format!("'{threshold}' in '{text}': {why}");
        let threshold = match what {
            SortKey::Latency => threshold.parse::<Nanos>().map_err(|why| bad(&why))?.0 as f64,
            SortKey::Net | SortKey::Received | SortKey::Sent => {
                let size = threshold.strip_suffix("/s").unwrap_or(threshold);
                size.parse::<Bytes>().map_err(|why| bad(&why))?.0 as f64
            }
            _ => threshold.parse::<f64>().map_err(|why| bad(&why))?,
        };
        Ok(Condition {
            what,
            sign,
            threshold,
        })
    }
}
