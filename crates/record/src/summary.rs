//! A run as other tools report it: totals, without windows. A value that a tool does not report is `None`, never zero,
//! so that nothing is concluded from it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Activity, Bytes, Histogram, JobOptions, Pattern, RunId, TargetKind};

/// Output of another tool about one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The tool and its version, such as `fio 3.33`.
    pub tool: String,
    /// Time at which it ran, or wrote its output.
    pub ran: Option<Timestamp>,
    /// The host on which it ran.
    pub host: Option<String>,
    /// The file, directory or device that was measured.
    pub target: Option<String>,
    /// Kind of the target.
    #[serde(default)]
    pub target_kind: Option<TargetKind>,
    /// Options of the whole run, by the tool's names and as it writes them: the fields of a line of Bonnie++ that are
    /// not figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
    /// Measured phases, in the order of the output.
    pub phases: Vec<PhaseSummary>,
}

/// A phase as a tool reports it: one kind of I/O.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseSummary {
    /// The job's or the test's name.
    pub name: String,
    /// The workload.
    pub work: WorkSummary,
    /// Measured seconds.
    pub seconds: Option<f64>,
    /// Processor time used, as shares of one processor.
    pub cpu: CpuShares,
    /// Results by kind of request.
    pub flows: Vec<FlowSummary>,
    /// Fairness between the threads.
    pub fairness: Option<Fairness>,
    /// Failure that the tool reports, as a clause.
    pub failure: Option<String>,
}

/// Workload; `None` for values that the output does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkSummary {
    /// Pattern of offsets.
    pub pattern: Option<Pattern>,
    /// The share of requests that are reads, 0 to 1.
    pub read_fraction: Option<f64>,
    /// The size of a request.
    pub block: Option<Bytes>,
    /// Number of threads or processes that issue I/O.
    pub threads: Option<u32>,
    /// Number of requests that each keeps in flight.
    pub depth: Option<u32>,
    /// Target rate in requests per second over all threads; 0 for a closed loop.
    pub rate_per_s: Option<f64>,
    /// Bytes of the target that are used.
    pub span: Option<Bytes>,
    /// Number of files, all of one size.
    #[serde(default)]
    pub files: Option<u32>,
    /// Number of writes after each of which a sync follows; 0 for never.
    pub sync_every: Option<u32>,
    /// True if the page cache was bypassed.
    pub direct: Option<bool>,
    /// The tool's name of its I/O engine, such as `libaio`.
    pub engine: Option<String>,
    /// True if a sync follows the last write.
    #[serde(default)]
    pub sync_at_end: Option<bool>,
    /// Extended options.
    #[serde(default)]
    pub details: Option<Box<JobOptions>>,
    /// The options that the tool was given, by name and value. Empty if they are not known, and if the tool has none.
    #[serde(default)]
    pub options: Vec<(String, String)>,
}

/// Shares of one processor's time; 2 is two processors busy all the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuShares {
    /// Share in user mode.
    pub user: Option<f64>,
    /// Share in the kernel.
    pub system: Option<f64>,
    /// Share of both, if the tool does not distinguish them.
    pub total: Option<f64>,
}

/// Measure of how evenly the threads were served, by requests and by time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Mean of the number of requests per thread.
    pub ops_mean: f64,
    /// Standard deviation (of the population) of the number of requests per thread.
    pub ops_stddev: f64,
    /// Mean of the seconds that a thread spent in requests; `None` if not known.
    pub seconds_mean: Option<f64>,
    /// Standard deviation (of the population) of the seconds that a thread spent in requests; `None` if not known.
    pub seconds_stddev: Option<f64>,
}

/// Results of one kind of request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSummary {
    /// Activity that the figures count.
    pub activity: Activity,
    /// Number of requests.
    pub ops: Option<u64>,
    /// Bytes that they moved.
    pub bytes: Option<u64>,
    /// Requests per second.
    pub ops_per_s: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// True if it was too fast for the tool to give a rate (Bonnie++'s `+++++`).
    pub too_fast: bool,
    /// Statistics of the tool's samples of the requests per second.
    pub ops_spread: Option<Samples>,
    /// Latency of the requests.
    pub latency: LatencySummary,
    /// Latency from submission, if `latency` is from the due time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<LatencySummary>,
}

/// Statistics of the samples of a rate, as a tool prints them. It does not print the samples themselves, so no
/// confidence interval can be computed: their correlation is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// The smallest.
    pub min: f64,
    /// Mean of the samples.
    pub mean: f64,
    /// The standard deviation.
    pub stddev: f64,
    /// The largest.
    pub max: f64,
    /// Number of samples.
    pub samples: u64,
}

impl FlowSummary {
    /// Unknown results of an activity.
    pub fn of(activity: Activity) -> FlowSummary {
        FlowSummary {
            activity,
            ops: None,
            bytes: None,
            ops_per_s: None,
            bytes_per_s: None,
            too_fast: false,
            ops_spread: None,
            latency: LatencySummary::default(),
            service: None,
        }
    }
}

/// Latencies in nanoseconds; `None` for values that the tool does not give.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencySummary {
    /// The smallest.
    pub min_ns: Option<f64>,
    /// Mean latency.
    pub mean_ns: Option<f64>,
    /// The standard deviation.
    pub stddev_ns: Option<f64>,
    /// The largest.
    pub max_ns: Option<f64>,
    /// The percentiles that the tool gives, in ascending order.
    pub percentiles: Vec<Percentile>,
    /// Histogram of all latencies, if the tool gives its buckets. Its resolution is the tool's.
    pub histogram: Option<Histogram>,
}

/// A percentile of the latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentile {
    /// Percentage of values that do not exceed it, 0 to 100.
    pub percent: f64,
    /// The value, in nanoseconds.
    pub ns: f64,
}

impl LatencySummary {
    /// The value that a share `quantile` (0 to 1) does not exceed, in nanoseconds: as the tool gave it, or else from
    /// its buckets. `None` if it gave neither; values are not interpolated.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let same = |given: &&Percentile| (given.percent - quantile * 100.0).abs() < 1e-6;
        let given = self.percentiles.iter().find(same).map(|given| given.ns);
        let histogram = self.histogram.as_ref().filter(|all| !all.is_empty());
        given.or_else(|| Some(histogram?.quantile(quantile) as f64))
    }

    /// True if nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == LatencySummary::default()
    }
}

/// A run that was imported from another tool's output, as the ledger stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportedRun {
    /// Name of the run in the ledger.
    pub id: RunId,
    /// Time at which it was imported.
    pub imported: Timestamp,
    /// The version of the program that imported it.
    pub disksmith: String,
    /// The imported file; bytes that are not UTF-8 are shown as U+FFFD.
    pub source: String,
    /// The output that was read.
    pub summary: Summary,
}

impl ImportedRun {
    /// Time at which it ran, or else was imported.
    pub fn started(&self) -> Timestamp {
        self.summary.ran.unwrap_or(self.imported)
    }

    /// The tool's name without its version, such as `fio`, which is used as the suite's name.
    pub fn suite(&self) -> &str {
        self.summary.tool.split(' ').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_that_the_tool_does_not_give_is_unknown() {
        let mut latency = LatencySummary {
            percentiles: vec![Percentile {
                percent: 95.0,
                ns: 140.0,
            }],
            ..LatencySummary::default()
        };
        assert_eq!(latency.quantile(0.95), Some(140.0));
        assert_eq!(latency.quantile(0.99), None);
        let mut all = Histogram::new();
        all.record_many(100, 10);
        latency.histogram = Some(all);
        assert_eq!(latency.quantile(0.99), Some(100.0));
        assert_eq!(
            latency.quantile(0.95),
            Some(140.0),
            "what was given goes first"
        );
    }

    #[test]
    fn words_are_those_of_the_json() {
        for activity in [Activity::All, Activity::Commit, Activity::Stat] {
            let json = serde_json::to_string(&activity).unwrap();
            assert_eq!(json, format!("\"{}\"", activity.name()));
        }
    }
}
