//! One JSON document a sweep. Its keys are read by other programs: none is renamed or retyped
//! without raising [`SCHEMA`].

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
    schema: u32,
    command: &'static str,
    /// The version that measured.
    disksmith: &'a str,
    sweep: &'a RunId,
    started: Timestamp,
    starts: usize,
    /// Time of all starts, in seconds.
    ran_s: f64,
    command_line: &'a [String],
    machine: MachineDocument<'a>,
    settings: SettingsDocument<'a>,
    layouts: Vec<LayoutDocument<'a>>,
    ranking: Vec<usize>,
    /// The layout that every block measures, which shows drift.
    baseline: usize,
    cells: Vec<CellDocument<'a>>,
    winner: Option<usize>,
    ties: &'a [usize],
    survivors: Vec<SurvivorDocument<'a>>,
    /// The Pareto frontier.
    frontier: &'a [usize],
    /// True if all measurements are done.
    over: bool,
    /// The command that resumes the sweep.
    resume: Option<String>,
    drift: Option<DriftDocument<'a>>,
    effects: Vec<EffectDocument<'a>>,
    curves: Vec<CurveDocument<'a>>,
    probe: Option<ProbeDocument<'a>>,
    left_out: &'a [ExcludedSetting],
    /// Conclusions as sentences.
    answers: &'a [String],
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

/// The best that survives a number of lost disks, by its index.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SurvivorDocument<'a> {
    losses: usize,
    winner: Option<usize>,
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
    devices: Vec<VolumeDocument<'a>>,
    /// The objective by which layouts are ranked.
    objective: String,
    unit: &'static str,
    requires: Vec<RequirementDocument<'a>>,
    /// Number of lost disks that a layout must survive.
    survives: usize,
    phases: &'a [String],
    workload: Option<&'a str>,
    /// Path of the trace that is replayed in place of a suite.
    replay: Option<String>,
    /// Longest time of a phase.
    seconds: f64,
    precision: f64,
    size_bytes: Bytes,
    threads: Option<u32>,
    depth: Option<u32>,
    blocks: usize,
    /// Share by which two layouts may differ and tie.
    tie: f64,
    /// True if no layout is dropped early.
    full: bool,
    seed: u64,
    prices: &'a Option<Prices>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct VolumeDocument<'a> {
    path: String,
    serial: Option<&'a str>,
    model: Option<&'a str>,
    size_bytes: Bytes,
}

/// A requirement of a layout, such as `commit.p99<5ms`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RequirementDocument<'a> {
    figure: &'a Figure,
    side: &'static str,
    bar: f64,
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

/// A layout and, where it has a row, its conclusions.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LayoutDocument<'a> {
    index: usize,
    name: String,
    level: Option<&'static str>,
    members: usize,
    /// Layout of the copies of RAID 10.
    layout: Option<&'static str>,
    chunk_bytes: Option<Bytes>,
    fs: &'a Fs,
    scheduler: Option<&'a str>,
    /// Number of lost disks that it survives.
    survives: Option<usize>,
    capacity_bytes: Option<Bytes>,
    /// Number of blocks in which it was measured.
    blocks: usize,
    standing: Option<&'static str>,
    why: Option<&'a str>,
    objective: Option<FigureDocument>,
    /// Its objective over that of the winner.
    of_winner: Option<Value>,
    /// Figures by their names on the command line.
    figures: BTreeMap<String, FigureDocument>,
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

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CostDocument {
    per_month: f64,
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
    mean: f64,
    low: Option<f64>,
    high: Option<f64>,
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

/// A measurement. It has either a run with its figures, or the reason why it failed.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CellDocument<'a> {
    block: usize,
    layout: usize,
    baseline: bool,
    /// Start, in seconds from the start of the sweep.
    began_s: f64,
    measured_s: f64,
    /// Time including building and taking down.
    took_s: f64,
    run: Option<&'a RunId>,
    figures: BTreeMap<String, FigureDocument>,
    doubts: &'a [String],
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
    points: Vec<DriftPointDocument>,
    change: &'a Option<Value>,
    jump: f64,
    text: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DriftPointDocument {
    began_s: f64,
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

/// Effect of a setting instead of another, all else equal.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EffectDocument<'a> {
    factor: &'a Factor,
    from: &'a str,
    to: &'a str,
    /// Number of pairs of layouts that differ in this factor alone.
    pairs: usize,
    ratio: &'a Value,
    least_ratio: f64,
    greatest_ratio: f64,
    shown: bool,
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

/// Objective by the number of members.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CurveDocument<'a> {
    label: &'a str,
    points: Vec<PointDocument<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PointDocument<'a> {
    members: usize,
    value: &'a Value,
    /// Rate of this many members if none limited another.
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

/// Rates of each disk alone, and of all at once.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ProbeDocument<'a> {
    phase: &'a str,
    alone_per_s: &'a [Value],
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
