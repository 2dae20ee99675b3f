//! The JSON document of a sweep. Other programs read its keys: a key is only renamed, or its type changed, together
//! with [`SCHEMA`].

use std::collections::BTreeMap;

use bench::views::json::MachineDocument;
use domain::filesystem::Fs;
use jiff::Timestamp;
use record::{Bytes, RunId};
use serde::Serialize;
use ui::json::SCHEMA;

use super::sentences::resume_command;
use super::units::{FigureUnit, objective, outcome_label, side};
use crate::layout::{Factor, Layout};
use crate::price::{Cost, Prices};
use crate::{
    BaselineDrift, Cell, CellOutcome, ExcludedSetting, FactorEffect, Figure, Probe, Requirement,
    ScalingCurve, Survivor, SweepDecision, SweepRecord, SweepSettings, Value,
};

/// The document of one sweep, with a newline at the end. Layouts are in the order of the plan, and identified by their
/// index; `ranking` has the best first.
pub(crate) fn document(
    record: &SweepRecord,
    decision: &SweepDecision,
    commands: &[String],
) -> String {
    let document = SweepDocument::of(record, decision, commands);
    // Serialization into memory cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// The document of `sweep --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SweepDocument<'a> {
    /// Version of the document's form.
    schema: u32,
    /// Always `sweep`.
    command: &'static str,
    /// The version that measured.
    disksmith: &'a str,
    /// Id of the sweep.
    sweep: &'a RunId,
    /// Time of its first start.
    started: Timestamp,
    /// Number of starts: one, and one more for each time that it was resumed.
    starts: usize,
    /// Running time over all starts, in seconds.
    ran_s: f64,
    /// The command line that began it, a word each.
    command_line: &'a [String],
    /// The host that measured.
    machine: MachineDocument<'a>,
    /// Settings of the sweep.
    settings: SettingsDocument<'a>,
    /// The layouts, in the order of the plan; other keys refer to one by its index in this list.
    layouts: Vec<LayoutDocument<'a>>,
    /// Indices of the layouts, the best first.
    ranking: Vec<usize>,
    /// Index of the layout that every block measures, which shows drift.
    baseline: usize,
    /// Measurements, in order of time.
    cells: Vec<CellDocument<'a>>,
    /// Index of the best layout, also before the sweep is over; `null` where none is known.
    winner: Option<usize>,
    /// Indices of the layouts that are not distinguishable from the winner, the best first.
    ties: &'a [usize],
    /// The best layout for each number of lost disks that is survived, from `settings.survives` to 2.
    survivors: Vec<SurvivorDocument<'a>>,
    /// Indices of the layouts on the Pareto frontier of cost, speed and redundancy, the fastest first; empty without
    /// prices.
    frontier: &'a [usize],
    /// True if all measurements are done.
    over: bool,
    /// The command that resumes the sweep; `null` where it is over or was abandoned.
    resume: Option<String>,
    /// Drift of the baseline over the sweep; `null` before it was measured twice.
    drift: Option<DriftDocument<'a>>,
    /// Effects of single settings, all else equal.
    effects: Vec<EffectDocument<'a>>,
    /// Rates by the number of members, a curve for each combination of the other settings that was measured with at
    /// least two numbers.
    curves: Vec<CurveDocument<'a>>,
    /// Rates of the disks without an array; `null` where they were not probed.
    probe: Option<ProbeDocument<'a>>,
    /// Settings that could not be measured on this host.
    left_out: &'a [ExcludedSetting],
    /// Conclusions as sentences.
    answers: &'a [String],
    /// Reasons to doubt the conclusions, as sentences.
    doubts: &'a [String],
    /// The commands that build the winner.
    commands: &'a [String],
}

impl<'a> SweepDocument<'a> {
    fn of(
        record: &'a SweepRecord,
        decision: &'a SweepDecision,
        commands: &'a [String],
    ) -> SweepDocument<'a> {
        let layouts = record.layouts.iter().enumerate();
        SweepDocument {
            schema: SCHEMA,
            command: "sweep",
            disksmith: &record.disksmith,
            sweep: &record.id,
            started: record.started,
            starts: record.starts,
            ran_s: record.ran_s,
            command_line: &record.command,
            machine: MachineDocument::of(&record.machine),
            settings: SettingsDocument::of(&record.settings),
            layouts: layouts
                .map(|(index, layout)| LayoutDocument::of(record, decision, index, layout))
                .collect(),
            ranking: decision.rows.iter().map(|row| row.layout).collect(),
            baseline: record.baseline,
            cells: record.cells.iter().map(CellDocument::of).collect(),
            winner: decision.winner,
            ties: &decision.ties,
            survivors: decision
                .survivors
                .iter()
                .map(SurvivorDocument::of)
                .collect(),
            frontier: &decision.frontier,
            over: decision.over,
            resume: (!decision.over && !record.given_up).then(|| resume_command(record)),
            drift: decision.drift.as_ref().map(DriftDocument::of),
            effects: decision.effects.iter().map(EffectDocument::of).collect(),
            curves: decision.curves.iter().map(CurveDocument::of).collect(),
            probe: record.probe.as_ref().map(ProbeDocument::of),
            left_out: &record.left_out,
            answers: &decision.answers,
            doubts: &decision.doubts,
            commands,
        }
    }
}

/// The best layout that survives the loss of a number of disks, whichever they are.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SurvivorDocument<'a> {
    /// Number of lost disks.
    losses: usize,
    /// Index of the layout; `null` where no measured layout survives so many.
    winner: Option<usize>,
    /// Indices of the layouts that are not distinguishable from it.
    ties: &'a [usize],
}

impl<'a> SurvivorDocument<'a> {
    fn of(one: &'a Survivor) -> SurvivorDocument<'a> {
        SurvivorDocument {
            losses: one.losses,
            winner: one.best,
            ties: &one.ties,
        }
    }
}

/// Settings of the sweep.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SettingsDocument<'a> {
    /// The disks, in the order in which layouts take them.
    devices: Vec<VolumeDocument<'a>>,
    /// The objective by which layouts are ranked, as on the command line.
    objective: String,
    /// Unit of the objective: `per_s` (requests), `bytes_per_s`, `ns`, `per_s_per_dollar`, `bytes_per_s_per_dollar`
    /// or `dollars_per_month`.
    unit: &'static str,
    /// Requirements that a layout must meet.
    requires: Vec<RequirementDocument<'a>>,
    /// Number of lost disks that a layout must survive.
    survives: usize,
    /// The phases that are measured, by name.
    phases: &'a [String],
    /// The workload of `--workload`; `null` where a suite or a trace is measured.
    workload: Option<&'a str>,
    /// Path of the trace that is replayed in place of a suite; `null` without one.
    replay: Option<String>,
    /// Longest time of a phase, in seconds.
    seconds: f64,
    /// A phase ends when the 95 % interval of its IOPS is within this share of the mean; 0 never ends it early.
    precision: f64,
    /// Size of the test file, the same on every layout.
    size_bytes: Bytes,
    /// Threads that issue I/O; `null` leaves those of each phase.
    threads: Option<u32>,
    /// Requests in flight of each thread; `null` leaves those of each phase.
    depth: Option<u32>,
    /// Maximum number of blocks in which a layout is measured.
    blocks: usize,
    /// Share by which two layouts may differ and tie.
    tie: f64,
    /// True if no layout is dropped early.
    full: bool,
    /// Seed of the random order of measurements.
    seed: u64,
    /// Prices of `--price`; `null` without it.
    prices: &'a Option<Prices>,
}

/// A disk of the sweep.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VolumeDocument<'a> {
    /// Path as given by the user.
    path: String,
    /// Serial number, on EBS the volume's id; `null` where the kernel shows none.
    serial: Option<&'a str>,
    /// Model; `null` where the kernel shows none.
    model: Option<&'a str>,
    /// Size of the disk.
    size_bytes: Bytes,
}

/// A requirement of a layout, such as `commit.p99<5ms`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RequirementDocument<'a> {
    /// The figure that is compared.
    figure: &'a Figure,
    /// Comparison: `<`, `<=`, `>` or `>=`.
    side: &'static str,
    /// Threshold, in `unit`.
    bar: f64,
    /// Unit of the threshold: `per_s` (requests), `bytes_per_s` or `ns`.
    unit: &'static str,
}

impl<'a> SettingsDocument<'a> {
    fn of(settings: &'a SweepSettings) -> SettingsDocument<'a> {
        let devices = settings.devices.iter().map(|device| VolumeDocument {
            path: device.path.to_string_lossy().into_owned(),
            serial: device.serial.as_deref(),
            model: device.model.as_deref(),
            size_bytes: device.size,
        });
        let requires = settings.requires.iter();
        let requires = requires.map(|requirement: &Requirement| RequirementDocument {
            figure: &requirement.figure,
            side: side(requirement.side),
            bar: requirement.threshold,
            unit: FigureUnit::of_metric(requirement.figure.metric).code(),
        });
        SettingsDocument {
            devices: devices.collect(),
            objective: objective(&settings.objective),
            unit: FigureUnit::of_objective(&settings.objective).code(),
            requires: requires.collect(),
            survives: settings.factors.survives,
            phases: &settings.phases,
            workload: settings.workload.as_deref(),
            replay: settings
                .replay
                .as_ref()
                .map(|trace| trace.path.display().to_string()),
            seconds: settings.seconds.as_secs_f64(),
            precision: settings.precision,
            size_bytes: settings.size,
            threads: settings.threads,
            depth: settings.depth,
            blocks: settings.blocks,
            tie: settings.tie,
            full: settings.full,
            seed: settings.seed,
            prices: &settings.prices,
        }
    }
}

/// A layout with its results. Keys of results are `null`, and maps empty, where it has none.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LayoutDocument<'a> {
    /// Index of the layout.
    index: usize,
    /// Name as in tables: `RAID 10 of 8, 256 KiB, xfs, mq-deadline`.
    name: String,
    /// RAID level, such as `10`; `null` for a single disk.
    level: Option<&'static str>,
    /// Number of members.
    members: usize,
    /// Layout of the copies of RAID 10; `null` at other levels.
    layout: Option<&'static str>,
    /// Chunk size; `null` where the level has none.
    chunk_bytes: Option<Bytes>,
    /// File system.
    fs: &'a Fs,
    /// I/O scheduler of the members; `null` leaves what they have.
    scheduler: Option<&'a str>,
    /// Number of lost disks that it survives, whichever they are.
    survives: Option<usize>,
    /// Usable capacity.
    capacity_bytes: Option<Bytes>,
    /// Number of blocks in which it was measured.
    blocks: usize,
    /// Outcome: `best`, `tie`, `behind` (worse, and measured in all blocks), `dropped` (worse, and not measured
    /// further), `missed` (misses a requirement), `failed` or `open` (not decided yet).
    standing: Option<&'static str>,
    /// Reason for the outcome, as a clause.
    why: Option<&'a str>,
    /// Value of the objective; `null` where it was not measured.
    objective: Option<FigureDocument>,
    /// The objective as a ratio to the winner's, over the blocks that measured both; `null` for the winner.
    of_winner: Option<Value>,
    /// Figures over all blocks, by their names on the command line.
    figures: BTreeMap<String, FigureDocument>,
    /// Cost; `null` without prices.
    cost: Option<CostDocument>,
}

impl<'a> LayoutDocument<'a> {
    fn of(
        record: &SweepRecord,
        decision: &'a SweepDecision,
        index: usize,
        layout: &'a Layout,
    ) -> LayoutDocument<'a> {
        let row = super::sentences::row(decision, index);
        let unit = FigureUnit::of_objective(&record.settings.objective);
        let value = row.and_then(|row| row.value);
        LayoutDocument {
            index,
            name: layout.to_string(),
            level: layout.level.map(|level| level.mdadm_name()),
            members: layout.members,
            layout: layout.copies_label(),
            chunk_bytes: layout.chunk,
            fs: &layout.fs,
            scheduler: layout.scheduler.as_deref(),
            survives: row.map(|row| row.survives),
            capacity_bytes: row.map(|row| row.capacity),
            blocks: row.map_or(0, |row| row.blocks),
            standing: row.map(|row| outcome_label(row.outcome)),
            why: row.map(|row| row.why.as_str()),
            objective: value.map(|value| FigureDocument::of(value, unit)),
            of_winner: row.and_then(|row| row.of_winner),
            figures: row.map_or_else(BTreeMap::new, |row| figures(&row.figures)),
            cost: row.and_then(|row| row.cost).map(CostDocument::of),
        }
    }
}

/// Cost of a layout, in the currency of the prices.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CostDocument {
    /// Cost of a month.
    per_month: f64,
    /// The objective's rate divided by the cost of a month; `null` where the objective is no rate.
    rate_per_dollar: Option<f64>,
}

impl CostDocument {
    fn of(cost: Cost) -> CostDocument {
        CostDocument {
            per_month: cost.per_month,
            rate_per_dollar: cost.rate_per_dollar,
        }
    }
}

/// A figure with the bounds of its 95 % interval.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FigureDocument {
    /// The mean, in `unit`.
    mean: f64,
    /// Lower bound of the interval; `null` where there is none.
    low: Option<f64>,
    /// Upper bound of the interval; `null` where there is none.
    high: Option<f64>,
    /// Unit: `per_s` (requests), `bytes_per_s`, `ns`, `per_s_per_dollar`, `bytes_per_s_per_dollar` or
    /// `dollars_per_month`.
    unit: &'static str,
}

impl FigureDocument {
    fn of(value: Value, unit: FigureUnit) -> FigureDocument {
        FigureDocument {
            mean: value.mean,
            low: value.low,
            high: value.high,
            unit: unit.code(),
        }
    }
}

/// Figures by the names that users write.
fn figures(figures: &BTreeMap<Figure, Value>) -> BTreeMap<String, FigureDocument> {
    let named = |(figure, value): (&Figure, &Value)| {
        let unit = FigureUnit::of_metric(figure.metric);
        (figure.to_string(), FigureDocument::of(*value, unit))
    };
    figures.iter().map(named).collect()
}

/// A measurement: a layout that was built and measured once. It has either a run with its figures, or the reason why
/// it failed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CellDocument<'a> {
    /// The block, from 0.
    block: usize,
    /// Index of the layout.
    layout: usize,
    /// True if this is a measurement of the baseline.
    baseline: bool,
    /// Start, in seconds of the running time of the sweep.
    began_s: f64,
    /// Time that the phases took, in seconds.
    measured_s: f64,
    /// Time including building and taking down, in seconds.
    took_s: f64,
    /// Id of the run in the ledger; `null` where it failed.
    run: Option<&'a RunId>,
    /// Figures by their names on the command line; empty where it failed.
    figures: BTreeMap<String, FigureDocument>,
    /// Codes of the findings that make the run doubtful or invalid.
    doubts: &'a [String],
    /// Reason why the layout could not be built or measured, as a sentence; `null` where it was measured.
    failed: Option<&'a str>,
}

impl<'a> CellDocument<'a> {
    fn of(cell: &'a Cell) -> CellDocument<'a> {
        let (run, values, doubts, failed) = match &cell.outcome {
            CellOutcome::Measured {
                run,
                figures: values,
                doubts,
            } => (Some(run), figures(values), doubts.as_slice(), None),
            CellOutcome::Failed(why) => (None, BTreeMap::new(), &[][..], Some(why.as_str())),
        };
        CellDocument {
            block: cell.block,
            layout: cell.layout,
            baseline: cell.baseline,
            began_s: cell.began_s,
            measured_s: cell.measured_s,
            took_s: cell.took_s,
            run,
            figures: values,
            doubts,
            failed,
        }
    }
}

/// Change of the baseline over the sweep.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DriftDocument<'a> {
    /// Measurements of the baseline, in order of time.
    points: Vec<DriftPointDocument>,
    /// Change from the first to the last by a fitted line, as a share: 0.03 is a rise of 3 %; `null` before there are
    /// three.
    change: &'a Option<Value>,
    /// Largest change from one measurement to the next, as a share of the earlier.
    jump: f64,
    /// The drift as a sentence.
    text: &'a str,
}

/// A measurement of the baseline.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DriftPointDocument {
    /// Start, in seconds of the running time of the sweep.
    began_s: f64,
    /// Figure that ranks the layouts: requests or bytes a second, or nanoseconds.
    value: f64,
}

impl<'a> DriftDocument<'a> {
    fn of(drift: &'a BaselineDrift) -> DriftDocument<'a> {
        let points = drift.points.iter();
        let points = points.map(|&(began_s, value)| DriftPointDocument { began_s, value });
        DriftDocument {
            points: points.collect(),
            change: &drift.change,
            jump: drift.jump,
            text: &drift.text,
        }
    }
}

/// Effect of one setting instead of another on the figure that ranks the layouts, all else equal.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EffectDocument<'a> {
    /// The property that differs.
    factor: &'a Factor,
    /// The reference setting, as text.
    from: &'a str,
    /// The setting that is compared with it.
    to: &'a str,
    /// Number of pairs of layouts that differ in this property alone.
    pairs: usize,
    /// Figure with `to` divided by figure with `from`, over all pairs.
    ratio: &'a Value,
    /// Smallest ratio of a pair.
    least_ratio: f64,
    /// Largest ratio of a pair.
    greatest_ratio: f64,
    /// True if the interval of the ratio excludes 1.
    shown: bool,
    /// The effect as a sentence.
    text: &'a str,
}

impl<'a> EffectDocument<'a> {
    fn of(effect: &'a FactorEffect) -> EffectDocument<'a> {
        EffectDocument {
            factor: &effect.factor,
            from: &effect.from,
            to: &effect.to,
            pairs: effect.pairs,
            ratio: &effect.ratio,
            least_ratio: effect.range.0,
            greatest_ratio: effect.range.1,
            shown: effect.shown,
            text: &effect.text,
        }
    }
}

/// Rate by the number of members, all else equal.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CurveDocument<'a> {
    /// Common part of its layouts: `RAID 10, 256 KiB, xfs`.
    label: &'a str,
    /// Points by the number of members, ascending.
    points: Vec<PointDocument<'a>>,
}

/// A point of a curve.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PointDocument<'a> {
    /// Number of members.
    members: usize,
    /// Rate in an average block: requests a second, or bytes a second where the objective is bytes.
    value: &'a Value,
    /// Rate of this many members if none limited another, in requests a second; `null` where the disks were not
    /// probed.
    ideal: Option<f64>,
}

impl<'a> CurveDocument<'a> {
    fn of(curve: &'a ScalingCurve) -> CurveDocument<'a> {
        let points = curve.points.iter().map(|point| PointDocument {
            members: point.members,
            value: &point.value,
            ideal: point.ideal,
        });
        CurveDocument {
            label: &curve.label,
            points: points.collect(),
        }
    }
}

/// Rates of the disks without an array.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ProbeDocument<'a> {
    /// The phase whose workload was used.
    phase: &'a str,
    /// Requests a second of each disk alone, in the order of `settings.devices`.
    alone_per_s: &'a [Value],
    /// Requests a second of each disk while all were probed at once, in the same order.
    together_per_s: &'a [Value],
}

impl<'a> ProbeDocument<'a> {
    fn of(probe: &'a Probe) -> ProbeDocument<'a> {
        ProbeDocument {
            phase: &probe.phase,
            alone_per_s: &probe.alone,
            together_per_s: &probe.together,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::super::sample;
    use super::*;

    fn parsed(sample: &(SweepRecord, SweepDecision)) -> Json {
        serde_json::from_str(&document(&sample.0, &sample.1, &sample::commands())).unwrap()
    }

    fn keys(object: &Json) -> String {
        let keys = object.as_object().unwrap().keys();
        keys.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// All keys, in alphabetical order, as in the document.
    #[test]
    fn the_document_has_exactly_the_documented_keys() {
        let document = parsed(&sample::measured());
        let promised = [
            (
                "",
                "answers baseline cells command command_line commands curves disksmith doubts \
                 drift effects frontier layouts left_out machine over probe ran_s ranking resume \
                 schema settings started starts survivors sweep ties winner",
            ),
            (
                "/settings",
                "blocks depth devices full objective phases precision prices replay requires seconds \
                 seed size_bytes survives threads tie unit workload",
            ),
            ("/settings/devices/0", "model path serial size_bytes"),
            ("/settings/requires/0", "bar figure side unit"),
            (
                "/layouts/0",
                "blocks capacity_bytes chunk_bytes cost figures fs index layout level members name \
                 objective of_winner scheduler standing survives why",
            ),
            ("/layouts/0/objective", "high low mean unit"),
            ("/layouts/0/of_winner", "high low mean"),
            (
                "/layouts/0/figures/page-mixed.read.p99",
                "high low mean unit",
            ),
            ("/layouts/0/cost", "per_month rate_per_dollar"),
            (
                "/cells/0",
                "baseline began_s block doubts failed figures layout measured_s run took_s",
            ),
            ("/drift", "change jump points text"),
            ("/drift/points/0", "began_s value"),
            (
                "/effects/0",
                "factor from greatest_ratio least_ratio pairs ratio shown text to",
            ),
            ("/curves/0", "label points"),
            ("/curves/0/points/0", "ideal members value"),
            ("/probe", "alone_per_s phase together_per_s"),
            ("/left_out/0", "what why"),
        ];
        for (place, expected) in promised {
            let object = document.pointer(place).unwrap();
            assert_eq!(keys(object), expected, "{place}");
        }
    }

    #[test]
    fn values_keep_their_type_and_their_unit() {
        let sample = sample::measured();
        let document = parsed(&sample);
        assert_eq!(document["schema"], 1);
        assert_eq!(document["command"], "sweep");
        assert_eq!(document["settings"]["objective"], "page-mixed.iops");
        assert_eq!(document["settings"]["requires"][0]["unit"], "ns");
        let winner = sample.1.winner.unwrap();
        let best = &document["layouts"][winner];
        assert_eq!(best["standing"], "best");
        assert_eq!(best["level"], "0");
        assert_eq!(best["chunk_bytes"], 262_144);
        assert_eq!(best["objective"]["unit"], "per_s");
        assert!(best["of_winner"].is_null());
        assert_eq!(document["ranking"][0], winner);
        assert!(document["cells"][0]["run"].is_string());
        assert!(document["resume"].is_null());
    }

    #[test]
    fn a_failed_cell_has_its_reason_and_no_run() {
        let sample = sample::all_failed();
        let document = parsed(&sample);
        assert!(document["winner"].is_null());
        let cell = &document["cells"][0];
        assert!(cell["run"].is_null());
        assert_eq!(cell["failed"], "mdadm ended with status 1.");
        assert!(document["layouts"][0]["objective"].is_null());
    }

    #[test]
    fn an_unfinished_sweep_shows_how_to_resume() {
        let sample = sample::unfinished();
        let document = parsed(&sample);
        assert_eq!(document["over"], false);
        let resume = document["resume"].as_str().unwrap();
        assert!(resume.starts_with("disksmith sweep"), "{resume}");
    }
}
