//! A sweep as saved in the ledger: its settings and measurements. Conclusions are in [`super::decision`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use record::{Bytes, Machine, Nanos, RunId};
use replay::ReplayOptions;
use serde::{Deserialize, Serialize};

use super::figure::Figure;
use super::layout::{Factors, Layout};
use super::objective::{Objective, Requirement};
use super::price::Prices;
use domain::values::WorkloadText;

/// A device of the sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SweptVolume {
    /// Path as given by the user.
    pub path: PathBuf,
    /// Identity that is stable over a reboot; `None` if the kernel reports none.
    pub id: Option<String>,
    /// Serial number, on EBS the volume's id; `None` if the kernel reports none.
    pub serial: Option<String>,
    /// Model; `None` if the kernel reports none.
    pub model: Option<String>,
    /// Size of the device.
    pub size: Bytes,
}

/// Settings of a sweep. Two sweeps with the same settings measure the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SweepSettings {
    /// The devices, in the order in which layouts take them.
    pub devices: Vec<SweptVolume>,
    /// Objective by which layouts are ranked.
    pub objective: Objective,
    /// Factors of the layouts.
    pub factors: Factors,
    /// Requirements that a layout must meet.
    pub requires: Vec<Requirement>,
    /// The phases that are measured.
    pub phases: Vec<String>,
    /// Workload given by the user, in place of a suite.
    pub workload: Option<String>,
    /// The trace that is replayed in place of a suite.
    #[serde(default)]
    pub replay: Option<SweptTrace>,
    /// Longest time of a phase.
    pub seconds: Nanos,
    /// Half the width of the 95 % interval of IOPS, as a share of the mean, at which a phase ends.
    pub precision: f64,
    /// The size of the test file, the same on every layout.
    pub size: Bytes,
    /// Threads that issue I/O; `None` for the number of each phase.
    pub threads: Option<u32>,
    /// Requests in flight of each thread; `None` for the depth of each phase.
    pub depth: Option<u32>,
    /// Maximum number of blocks in which a layout is measured.
    pub blocks: usize,
    /// Share within which layouts count as equal to the best.
    pub tie: f64,
    /// True if every layout is measured in every block.
    pub full: bool,
    /// Seed of the random order.
    pub seed: u64,
    /// Prices of the volumes.
    pub prices: Option<Prices>,
}

/// A trace by whose replay layouts are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SweptTrace {
    /// Path of the trace.
    pub path: PathBuf,
    /// Options of the replay.
    pub options: ReplayOptions,
}

/// A value with its 95 % interval, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Value {
    /// The value: requests or bytes a second, or nanoseconds; of a ratio or a share no unit.
    pub mean: f64,
    /// The lower bound; `null` where there is no interval.
    pub low: Option<f64>,
    /// The upper bound; `null` where there is no interval.
    pub high: Option<f64>,
}

/// A block: the layouts in the race when it began, each measured once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RaceBlock {
    /// The layouts that are in the race.
    pub wanted: Vec<usize>,
    /// The order of measurement: the baseline, and then the layouts in the race.
    pub order: Vec<usize>,
}

/// A measurement: a layout that was built and measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// The block, from 0.
    pub block: usize,
    /// The layout, by its place in [`SweepRecord::layouts`].
    pub layout: usize,
    /// True if this is a measurement of the baseline, which is measured first in every block and once after the last.
    pub baseline: bool,
    /// Start, in seconds of the running time of the sweep.
    pub began_s: f64,
    /// Time that the phases took, in seconds.
    pub measured_s: f64,
    /// Time including building and taking down, in seconds.
    pub took_s: f64,
    /// Outcome of the measurement.
    pub outcome: CellOutcome,
}

/// Outcome of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CellOutcome {
    /// The layout was measured.
    Measured {
        /// The run in the ledger.
        run: RunId,
        /// Figures of the run, by name.
        figures: BTreeMap<Figure, Value>,
        /// The codes of findings that make the run doubtful or invalid.
        doubts: Vec<String>,
    },
    /// The layout could not be built or measured: the reason, as a sentence.
    Failed(String),
}

/// Rates of the volumes without an array: each alone, and all at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Probe {
    /// The phase whose workload was used.
    pub phase: String,
    /// Requests a second of each device alone, in the order of the devices.
    pub alone: Vec<Value>,
    /// Requests a second of each device while all were probed at once.
    pub together: Vec<Value>,
}

/// A setting that cannot be measured on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ExcludedSetting {
    /// Name of the setting or layouts left out, such as `fs xfs` or `RAID 5 of 2`.
    pub what: String,
    /// The reason, as a clause: `mkfs.xfs is not on the PATH; install it: apt-get install xfsprogs`.
    pub why: String,
}

/// A sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SweepRecord {
    /// Id of the sweep.
    pub id: RunId,
    /// Start.
    pub started: Timestamp,
    /// The version of the program that began it.
    pub disksmith: String,
    /// The command line.
    pub command: Vec<String>,
    /// Facts about the machine.
    pub machine: Machine,
    /// Settings.
    pub settings: SweepSettings,
    /// The layouts.
    pub layouts: Vec<Layout>,
    /// Index of the layout that is measured again in every block.
    pub baseline: usize,
    /// Settings that are not measured, and the reasons.
    pub left_out: Vec<ExcludedSetting>,
    /// Result of the probe of the volumes.
    pub probe: Option<Probe>,
    /// The blocks that were begun.
    pub blocks: Vec<RaceBlock>,
    /// Cells, in order of time.
    pub cells: Vec<Cell>,
    /// Running time in seconds, over all its starts.
    pub ran_s: f64,
    /// Number of starts: one, and one more for each time that it was resumed.
    pub starts: usize,
    /// True if the user abandoned the sweep.
    pub given_up: bool,
}

impl SweepRecord {
    /// True if a layout of the sweep is an array.
    pub(crate) fn has_arrays(&self) -> bool {
        self.layouts.iter().any(|layout| layout.level.is_some())
    }
}

impl SweepSettings {
    /// The paths of the devices.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let paths = self.devices.iter().map(|volume| volume.path.clone());
        paths.collect()
    }

    /// The sizes of the devices.
    pub(crate) fn sizes(&self) -> Vec<Bytes> {
        self.devices.iter().map(|volume| volume.size).collect()
    }

    /// Workload given by the user.
    ///
    /// # Errors
    /// When its text is invalid, as a sentence.
    pub(crate) fn own_workload(&self) -> Result<Option<WorkloadText>, String> {
        let read = |text: &String| {
            text.parse()
                .map_err(|why| format!("--workload {text}: {why}"))
        };
        self.workload.as_ref().map(read).transpose()
    }
}

impl SweptVolume {
    /// True if both are the same volume: by the stable identity or, without one, by path and size.
    pub(crate) fn is_same_volume(&self, other: &SweptVolume) -> bool {
        match (&self.id, &other.id) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.path == other.path && self.size == other.size,
            _ => false,
        }
    }
}

impl Value {
    /// A value without an interval.
    pub(crate) fn plain(mean: f64) -> Value {
        Value {
            mean,
            low: None,
            high: None,
        }
    }
}

impl Cell {
    /// A figure of the cell; `None` if it does not have this figure, or failed.
    pub(crate) fn figure(&self, figure: &Figure) -> Option<Value> {
        match &self.outcome {
            CellOutcome::Measured { figures, .. } => figures.get(figure).copied(),
            CellOutcome::Failed(_) => None,
        }
    }
}
