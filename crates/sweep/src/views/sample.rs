//! Realistic sweeps for tests of the views: network volumes on one instance, from a simple model of RAID. Their
//! conclusions follow rules of thumb, not those of the verb.

mod decide;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use record::{Bytes, Nanos, Run, RunId};

use crate::{
    Cell, CellOutcome, ExcludedSetting, Figure, Layout, LayoutResult, Metric, Objective, Probe,
    Requirement, SweepDecision, SweepRecord, SweepSettings, SweptVolume, ThresholdSide, Value,
};
use bench::views::sample as runs;
use domain::filesystem::Fs;
use domain::raid::Level;

/// Rate of a volume alone.
const ALONE: f64 = 3_000.0;
/// Limit of the instance on all volumes together.
const INSTANCE: f64 = 20_000.0;

/// Factors that vary.
struct Factors<'a> {
    levels: &'a [Level],
    members: &'a [usize],
    chunks: &'a [u64],
    fs: &'a [Fs],
    schedulers: &'a [Option<&'a str>],
}

/// Twenty-five layouts of eight priced volumes, completely measured.
pub(crate) fn measured() -> (SweepRecord, SweepDecision) {
    let factors = Factors {
        levels: &[Level::Zero, Level::One, Level::Ten, Level::Five],
        members: &[2, 4, 8],
        chunks: &[64, 256, 1024],
        fs: &[Fs::Xfs],
        schedulers: &[None],
    };
    let mut record = record(&factors, Objective::Figure(iops()));
    record.settings.requires = vec![Requirement {
        figure: read_p99(),
        side: ThresholdSide::Below,
        threshold: 25e6,
    }];
    let decision = decide::all(&record, true);
    (record, decision)
}

/// Ninety-six layouts, ranked by latency, without prices and probe.
pub(crate) fn large() -> (SweepRecord, SweepDecision) {
    let factors = Factors {
        levels: &[Level::Zero, Level::Ten, Level::Five, Level::Six],
        members: &[4, 6, 8],
        chunks: &[64, 256],
        fs: &[Fs::Xfs, Fs::Ext4],
        schedulers: &[Some("none"), Some("mq-deadline")],
    };
    let mut record = record(&factors, Objective::Figure(read_p99()));
    record.probe = None;
    let decision = decide::all(&record, false);
    (record, decision)
}

/// The sweep of [`measured`] by another objective. The ranking stays the same.
fn by(
    objective: Objective,
    value: impl Fn(&LayoutResult) -> Option<f64>,
) -> (SweepRecord, SweepDecision) {
    let (mut record, mut decision) = measured();
    record.settings.objective = objective;
    for row in &mut decision.rows {
        row.value = row.value.and(value(row)).map(Value::plain);
    }
    (record, decision)
}

/// A sweep with the objective of requests for each dollar.
pub(crate) fn per_dollar() -> (SweepRecord, SweepDecision) {
    by(Objective::PerDollar(iops()), |row| {
        row.cost?.rate_per_dollar
    })
}

/// A sweep with the objective of the lowest cost.
pub(crate) fn cheapest() -> (SweepRecord, SweepDecision) {
    by(Objective::Cost, |row| Some(row.cost?.per_month))
}

/// A sweep that was interrupted in its first block: some layouts were not measured yet.
pub(crate) fn unfinished() -> (SweepRecord, SweepDecision) {
    let (mut record, _) = measured();
    record.cells.truncate(9);
    record.starts = 2;
    record.ran_s = 5_000.0;
    let mut decision = decide::all(&record, true);
    decision.over = false;
    (record, decision)
}

/// A sweep in which no layout could be built.
pub(crate) fn all_failed() -> (SweepRecord, SweepDecision) {
    let (mut record, _) = measured();
    for cell in &mut record.cells {
        cell.outcome = CellOutcome::Failed("mdadm ended with status 1.".to_owned());
    }
    record.cells.truncate(record.layouts.len() + 1);
    let decision = decide::all(&record, true);
    (record, decision)
}

/// The commands that build the winner of [`measured`].
pub(crate) fn commands() -> Vec<String> {
    let devices: Vec<String> = ('f'..='m')
        .map(|letter| format!("/dev/sd{letter}"))
        .collect();
    vec![
        format!(
            "disksmith array create --level 0 --chunk 256k --members {} --destroy {} --name data \
             --fs xfs --mount /data --persist",
            devices.join(","),
            devices.join(" --destroy ")
        ),
        "disksmith array list".to_owned(),
    ]
}

/// The runs of the winner and its ties.
pub(crate) fn finalists(record: &SweepRecord, decision: &SweepDecision) -> Vec<(String, Run)> {
    let of = |index: usize| record.layouts[index].to_string();
    decision
        .winner
        .iter()
        .chain(&decision.ties)
        .take(4)
        .enumerate()
        .map(|(nth, index)| (of(*index), runs::database_run(nth as u64 + 1).0))
        .collect()
}

pub(crate) fn iops() -> Figure {
    Figure::of("page-mixed", Metric::Iops)
}

pub(crate) fn read_p99() -> Figure {
    "page-mixed.read.p99".parse().unwrap()
}

fn record(factors: &Factors<'_>, objective: Objective) -> SweepRecord {
    let started = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_795_293_912);
    let (run, _) = runs::interrupted_run(1);
    let devices: Vec<SweptVolume> = ('f'..='m').enumerate().map(volume).collect();
    let settings = SweepSettings {
        devices,
        objective,
        requires: Vec::new(),
        factors: crate::Factors::for_tests(),
        phases: vec!["page-mixed".to_owned()],
        workload: None,
        replay: None,
        seconds: Nanos::from_secs(60),
        precision: 0.03,
        size: Bytes::gib(16),
        threads: None,
        depth: None,
        blocks: 3,
        tie: 0.02,
        full: false,
        seed: 7,
        prices: None,
    };
    let mut record = SweepRecord {
        id: RunId::new(started, 7),
        started,
        disksmith: "0.1.0".to_owned(),
        command: ["disksmith", "sweep", "/dev/sd[f-m]"]
            .map(String::from)
            .to_vec(),
        machine: run.machine,
        layouts: layouts(factors),
        baseline: 0,
        left_out: vec![
            ExcludedSetting {
                what: "RAID 5 of 2".to_owned(),
                why: "a RAID 5 of two is a RAID 1".to_owned(),
            },
            ExcludedSetting {
                what: "scheduler bfq".to_owned(),
                why: "the kernel has no such scheduler for /dev/sdf; load the module bfq"
                    .to_owned(),
            },
        ],
        probe: Some(Probe {
            phase: "page-mixed".to_owned(),
            alone: (0..settings.devices.len())
                .map(|nth| interval(ALONE * (1.0 + 0.01 * noise(nth as u64)), 0.01))
                .collect(),
            together: (0..settings.devices.len())
                .map(|_| interval(INSTANCE / 8.0, 0.02))
                .collect(),
        }),
        settings,
        blocks: Vec::new(),
        cells: Vec::new(),
        ran_s: 0.0,
        starts: 1,
        given_up: false,
    };
    measure(&mut record);
    record
}

fn volume((nth, letter): (usize, char)) -> SweptVolume {
    SweptVolume {
        path: format!("/dev/sd{letter}").into(),
        id: None,
        serial: Some(format!("vol0123456789abcde{nth:02}")),
        model: Some("Amazon Elastic Block Store".to_owned()),
        size: Bytes::gib(100),
    }
}

/// Layouts of all valid combinations.
fn layouts(factors: &Factors<'_>) -> Vec<Layout> {
    let mut layouts = Vec::new();
    for &level in factors.levels {
        let chunkless = level == Level::One;
        let least = level.least_members();
        for &members in factors.members.iter().filter(|members| **members >= least) {
            for (nth, &chunk) in factors.chunks.iter().enumerate() {
                if chunkless && (nth > 0 || members > 2) {
                    continue;
                }
                for &fs in factors.fs {
                    for scheduler in factors.schedulers {
                        layouts.push(Layout {
                            level: Some(level),
                            members,
                            copies: None,
                            chunk: (!chunkless).then_some(Bytes::kib(chunk)),
                            fs,
                            scheduler: scheduler.map(str::to_owned),
                        });
                    }
                }
            }
        }
    }
    layouts
}

/// A number between -1 and 1, the same for the same seed.
fn noise(seed: u64) -> f64 {
    let mut random = bench::views::sample::Random::new(seed);
    2.0 * random.uniform() - 1.0
}

fn interval(mean: f64, half: f64) -> Value {
    Value {
        mean,
        low: Some(mean * (1.0 - half)),
        high: Some(mean * (1.0 + half)),
    }
}

/// True rate of a layout in the long run: requests a second of 70 % reads.
fn truth(layout: &Layout) -> f64 {
    let per_write = match layout.level {
        Some(Level::One) => layout.members as f64,
        Some(Level::Ten) => 2.0,
        Some(Level::Five) => 4.0,
        Some(Level::Six) => 6.0,
        _ => 1.0,
    };
    let below = layout.members as f64 * ALONE / (0.7 + 0.3 * per_write);
    let chunk = match layout.chunk.map_or(256, |chunk| chunk.0 >> 10) {
        ..=64 => 0.93,
        65..=256 => 1.0,
        _ => 0.994,
    };
    let fs = if layout.fs == Fs::Xfs { 1.0 } else { 0.965 };
    let scheduler = match layout.scheduler.as_deref() {
        Some("mq-deadline") => 0.985,
        _ => 1.0,
    };
    below.min(INSTANCE) * chunk * fs * scheduler
}

/// Adds one cell for each layout and block, with the baseline between the blocks. Slow layouts are measured once.
fn measure(record: &mut SweepRecord) {
    let best = record.layouts.iter().map(truth).fold(0.0, f64::max);
    let mut cells = Vec::new();
    for block in 0..record.settings.blocks {
        push_cell(&mut cells, record, block, record.baseline, true);
        for index in 0..record.layouts.len() {
            if block == 0 || truth(&record.layouts[index]) > 0.85 * best {
                push_cell(&mut cells, record, block, index, false);
            }
        }
    }
    push_cell(
        &mut cells,
        record,
        record.settings.blocks - 1,
        record.baseline,
        true,
    );
    record.ran_s = cells.iter().map(|cell| cell.took_s).sum();
    record.cells = cells;
}

fn push_cell(
    cells: &mut Vec<Cell>,
    record: &SweepRecord,
    block: usize,
    index: usize,
    baseline: bool,
) {
    let layout = &record.layouts[index];
    let began_s = cells.iter().map(|cell| cell.took_s).sum();
    let seed = (index + 1_000 * block + 77 * cells.len()) as u64;
    let rate = truth(layout) * (1.0 + 0.008 * noise(seed));
    // Latencies follow from the depth by Little's law; the slowest take three times as long.
    let p99 = 3.0 * 64.0 / rate * 1e9;
    let failed = layout.level == Some(Level::Six) && layout.members == 6 && block == 0;
    let outcome = if failed {
        CellOutcome::Failed("mdadm ended with status 1: /dev/sdk is busy.".to_owned())
    } else {
        let started = record.started + SignedDuration::from_secs_f64(began_s);
        CellOutcome::Measured {
            run: RunId::new(started, seed),
            figures: BTreeMap::from([
                (iops(), interval(rate, 0.012)),
                (read_p99(), interval(p99, 0.02)),
            ]),
            doubts: if cells.len() == 5 {
                vec!["stall".to_owned()]
            } else {
                Vec::new()
            },
        }
    };
    cells.push(Cell {
        block,
        layout: index,
        baseline,
        began_s,
        measured_s: 62.0,
        took_s: 190.0,
        outcome,
    });
}
