//! Simulated sweeps for tests: true figures, and noise from a seed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use record::random::SplitMix64;
use record::{Bytes, Machine, Nanos, RunId};

use crate::figure::Figure;
use crate::layout::Layout;
use crate::price::Prices;
use crate::record::{Cell, CellOutcome, Probe, SweepRecord, SweepSettings, SweptVolume, Value};
use domain::filesystem::Fs;
use domain::raid::Level;

/// A RAID 10 of `members`, with 256 KiB and xfs.
pub(super) fn raid10(members: usize) -> Layout {
    Layout {
        level: Some(Level::Ten),
        members,
        copies: None,
        chunk: Some(Bytes::kib(256)),
        fs: Fs::Xfs,
        scheduler: None,
    }
}

/// True properties of the layouts of a sweep.
pub(super) struct Truth<'a> {
    /// Figures of each layout.
    pub of: &'a dyn Fn(&Layout) -> Vec<(&'static str, f64)>,
    /// The standard deviation of a cell as a share.
    pub noise: f64,
    /// Change of speed from block to block, as a share.
    pub drift: f64,
    /// Seed of the noise.
    pub seed: u64,
}

/// A sweep without measurements, of eight volumes of 100 GiB.
pub(super) fn sweep(objective: &str, layouts: Vec<Layout>) -> SweepRecord {
    let volume = |at: usize| SweptVolume {
        path: PathBuf::from(format!("/dev/nvme{at}n1")),
        id: None,
        serial: Some(format!("vol-{at}")),
        model: None,
        size: Bytes::gib(100),
    };
    SweepRecord {
        id: RunId::new(jiff::Timestamp::UNIX_EPOCH, 1),
        started: jiff::Timestamp::UNIX_EPOCH,
        disksmith: "0.1.0".to_owned(),
        command: Vec::new(),
        machine: Machine::default(),
        settings: SweepSettings {
            devices: (1..=8).map(volume).collect(),
            objective: objective.parse().unwrap(),
            requires: Vec::new(),
            factors: crate::Factors::for_tests(),
            phases: vec!["page-mixed".to_owned()],
            workload: None,
            replay: None,
            seconds: Nanos::from_secs(8),
            precision: 0.03,
            size: Bytes::gib(4),
            threads: None,
            depth: None,
            blocks: 5,
            tie: 0.02,
            full: false,
            seed: 1,
            prices: None,
        },
        layouts,
        baseline: 0,
        left_out: Vec::new(),
        probe: None,
        blocks: Vec::new(),
        cells: Vec::new(),
        ran_s: 0.0,
        starts: 1,
        given_up: false,
    }
}

/// Adds prices of 0.1 for a GiB and month: 10 for a volume.
pub(super) fn priced(mut record: SweepRecord) -> SweepRecord {
    record.settings.prices = Some(Prices::parse("prices", "gib-month 0.1").unwrap());
    record
}

/// Adds a probe of the volumes: the rate of each alone, and the share of their sum that all reach at once.
pub(super) fn probed(mut record: SweepRecord, alone: &[f64], share: f64) -> SweepRecord {
    let value = |iops: f64| Value {
        mean: iops,
        low: Some(iops * 0.99),
        high: Some(iops * 1.01),
    };
    record.probe = Some(Probe {
        phase: "page-mixed".to_owned(),
        alone: alone.iter().map(|iops| value(*iops)).collect(),
        together: alone.iter().map(|iops| value(iops * share)).collect(),
    });
    record
}

impl Truth<'_> {
    /// A measured cell.
    pub(super) fn cell(&self, record: &SweepRecord, block: usize, layout: usize) -> Cell {
        let seed = (block * 1000 + layout) as u64 + self.seed * 1_000_000;
        let mut noise = SplitMix64::new(seed.wrapping_mul(0x9e37_79b9));
        let today = 1.0 + self.drift * block as f64;
        let truths = (self.of)(&record.layouts[layout]);
        let figures: BTreeMap<Figure, Value> = truths
            .into_iter()
            .map(|(name, truth)| {
                let mean = truth * today * (self.noise * noise.normal()).exp();
                let value = Value {
                    mean,
                    low: Some(mean * 0.98),
                    high: Some(mean * 1.02),
                };
                (name.parse().unwrap(), value)
            })
            .collect();
        Cell {
            block,
            layout,
            baseline: false,
            began_s: record.cells.len() as f64 * 60.0,
            measured_s: 8.0,
            took_s: 60.0,
            outcome: CellOutcome::Measured {
                run: RunId::new(jiff::Timestamp::UNIX_EPOCH, seed),
                figures,
                doubts: Vec::new(),
            },
        }
    }

    /// Measures these layouts in a block.
    pub(super) fn measure(&self, record: &mut SweepRecord, block: usize, layouts: &[usize]) {
        for layout in layouts {
            let cell = self.cell(record, block, *layout);
            record.cells.push(cell);
        }
    }

    /// Measures the baseline after a block.
    pub(super) fn baseline(&self, record: &mut SweepRecord, block: usize) {
        let cell = self.cell(record, block, record.baseline);
        record.cells.push(Cell {
            baseline: true,
            ..cell
        });
    }

    /// Measures all layouts in so many blocks.
    pub(super) fn all(&self, mut record: SweepRecord, blocks: usize) -> SweepRecord {
        let layouts: Vec<usize> = (0..record.layouts.len()).collect();
        for block in 0..blocks {
            self.measure(&mut record, block, &layouts);
        }
        record
    }
}

/// A cell that failed.
pub(super) fn failed(block: usize, layout: usize) -> Cell {
    Cell {
        block,
        layout,
        baseline: false,
        began_s: 0.0,
        measured_s: 0.0,
        took_s: 1.0,
        outcome: CellOutcome::Failed("mkfs.xfs ended with status 1.".to_owned()),
    }
}
