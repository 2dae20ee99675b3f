//! One JSON document a sweep. Its keys are read by other programs: none is renamed or retyped
//! without raising [`SCHEMA`].

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::sentences::resume_command;
use super::units::{Unit, objective, side, standing};
use crate::{
    Cell, CellOutcome, Curve, Decided, Drift, Effect, Figure, Probe, Row, Settings, Survivor,
    SweepRecord, Value,
};
use bench::views::json::MachineDocument;
use ui::json::SCHEMA;

/// The document of one sweep, with a line's end behind it. Layouts keep the order in which they
/// were made, and are named by their index; `ranking` has them with the best first.
pub(crate) fn document(record: &SweepRecord, decided: &Decided, commands: &[String]) -> String {
    let mut text = format!("{:#}", value(record, decided, commands));
    text.push('\n');
    text
}

fn value(record: &SweepRecord, decided: &Decided, commands: &[String]) -> Json {
    let layouts: Vec<Json> = (0..record.layouts.len())
        .map(|index| layout(record, decided, index))
        .collect();
    let ranking: Vec<usize> = decided.rows.iter().map(|row| row.layout).collect();
    json!({
        "schema": SCHEMA,
        "command": "sweep",
        "disksmith": record.disksmith,
        "sweep": record.id,
        "started": record.started,
        "starts": record.starts,
        "ran_s": record.ran_s,
        "command_line": record.command,
        "machine": MachineDocument::of(&record.machine),
        "settings": settings(&record.settings),
        "layouts": layouts,
        "ranking": ranking,
        "baseline": record.baseline,
        "cells": record.cells.iter().map(cell).collect::<Vec<_>>(),
        "winner": decided.winner,
        "ties": decided.ties,
        "survivors": decided.survivors.iter().map(survivor).collect::<Vec<_>>(),
        "frontier": decided.frontier,
        "over": decided.over,
        "resume": (!decided.over && !record.given_up).then(|| resume_command(record)),
        "drift": decided.drift.as_ref().map(drift),
        "effects": decided.effects.iter().map(effect).collect::<Vec<_>>(),
        "curves": decided.curves.iter().map(curve).collect::<Vec<_>>(),
        "probe": record.probe.as_ref().map(probe),
        "left_out": record.left_out,
        "answers": decided.answers,
        "doubts": decided.doubts,
        "commands": commands,
    })
}

/// The best that survives a number of losses, by its index.
fn survivor(one: &Survivor) -> Json {
    json!({ "losses": one.losses, "winner": one.best, "ties": one.ties })
}

fn settings(settings: &Settings) -> Json {
    let devices: Vec<Json> = settings
        .devices
        .iter()
        .map(|device| {
            json!({
                "path": device.path.to_string_lossy(),
                "serial": device.serial,
                "model": device.model,
                "size_bytes": device.size,
            })
        })
        .collect();
    let requires: Vec<Json> = settings
        .requires
        .iter()
        .map(|requirement| {
            json!({
                "figure": requirement.figure,
                "side": side(requirement.side),
                "bar": requirement.bar,
                "unit": Unit::of_metric(requirement.figure.metric).code(),
            })
        })
        .collect();
    json!({
        "devices": devices,
        "objective": objective(&settings.objective),
        "unit": Unit::of_objective(&settings.objective).code(),
        "requires": requires,
        "survives": settings.factors.survives,
        "phases": settings.phases,
        "workload": settings.workload,
        "seconds": settings.seconds.as_secs_f64(),
        "precision": settings.precision,
        "size_bytes": settings.size,
        "threads": settings.threads,
        "depth": settings.depth,
        "blocks": settings.blocks,
        "tie": settings.tie,
        "full": settings.full,
        "seed": settings.seed,
        "prices": settings.prices,
    })
}

/// A layout and, where it has a row, what was concluded of it.
fn layout(record: &SweepRecord, decided: &Decided, index: usize) -> Json {
    let mut object = Map::new();
    let mut put = |key: &str, value: Json| object.insert(key.to_owned(), value);
    put("index", json!(index));
    if let Some(layout) = record.layouts.get(index) {
        put("name", json!(layout.to_string()));
        put("level", json!(layout.level.map(|level| level.word())));
        put("members", json!(layout.members));
        put("chunk_bytes", json!(layout.chunk));
        put("fs", json!(layout.fs));
        put("scheduler", json!(layout.scheduler));
    }
    let row = super::sentences::row(decided, index);
    let unit = Unit::of_objective(&record.settings.objective);
    put("survives", json!(row.map(|row| row.survives)));
    put("capacity_bytes", json!(row.map(|row| row.capacity)));
    put("blocks", json!(row.map_or(0, |row| row.blocks)));
    put("standing", json!(row.map(|row| standing(row.standing))));
    put("why", json!(row.map(|row| &row.why)));
    put(
        "objective",
        json!(
            row.and_then(|row| row.value)
                .map(|value| with_unit(value, unit))
        ),
    );
    put("of_winner", json!(row.and_then(|row| row.of_winner)));
    put(
        "figures",
        row.map_or_else(|| json!({}), |row| figures(&row.figures)),
    );
    put("cost", row.map_or(Json::Null, cost));
    Json::Object(object)
}

fn cost(row: &Row) -> Json {
    row.cost.map_or(
        Json::Null,
        |cost| json!({ "per_month": cost.per_month, "rate_per_dollar": cost.rate_per_dollar }),
    )
}

fn with_unit(value: Value, unit: Unit) -> Json {
    json!({ "mean": value.mean, "low": value.low, "high": value.high, "unit": unit.code() })
}

/// Figures by the names that users write, each with its unit.
fn figures(figures: &BTreeMap<Figure, Value>) -> Json {
    let figures = figures.iter().map(|(figure, value)| {
        let unit = Unit::of_metric(figure.metric);
        (figure.to_string(), with_unit(*value, unit))
    });
    Json::Object(figures.collect())
}

/// A measurement. It has either a run with its figures, or the reason why it failed.
fn cell(cell: &Cell) -> Json {
    let (run, values, doubts, failed) = match &cell.outcome {
        CellOutcome::Measured {
            run,
            figures: values,
            doubts,
        } => (Some(run), figures(values), doubts.as_slice(), None),
        CellOutcome::Failed(why) => (None, json!({}), &[][..], Some(why)),
    };
    json!({
        "block": cell.block,
        "layout": cell.layout,
        "baseline": cell.baseline,
        "began_s": cell.began_s,
        "measured_s": cell.measured_s,
        "took_s": cell.took_s,
        "run": run,
        "figures": values,
        "doubts": doubts,
        "failed": failed,
    })
}

fn drift(drift: &Drift) -> Json {
    let points: Vec<Json> = drift
        .points
        .iter()
        .map(|(began_s, value)| json!({ "began_s": began_s, "value": value }))
        .collect();
    json!({
        "points": points,
        "change": drift.change,
        "jump": drift.jump,
        "text": drift.text,
    })
}

fn effect(effect: &Effect) -> Json {
    json!({
        "factor": effect.factor,
        "from": effect.from,
        "to": effect.to,
        "pairs": effect.pairs,
        "ratio": effect.ratio,
        "least_ratio": effect.range.0,
        "greatest_ratio": effect.range.1,
        "shown": effect.shown,
        "text": effect.text,
    })
}

fn curve(curve: &Curve) -> Json {
    let points: Vec<Json> = curve
        .points
        .iter()
        .map(
            |point| json!({ "members": point.members, "value": point.value, "ideal": point.ideal }),
        )
        .collect();
    json!({ "label": curve.label, "points": points })
}

fn probe(probe: &Probe) -> Json {
    json!({
        "phase": probe.phase,
        "alone_per_s": probe.alone,
        "together_per_s": probe.together,
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn parsed(sample: &(SweepRecord, Decided)) -> Json {
        serde_json::from_str(&document(&sample.0, &sample.1, &sample::commands())).unwrap()
    }

    fn keys(object: &Json) -> String {
        let keys = object.as_object().unwrap().keys();
        keys.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// All keys, in the order of the alphabet, which is how they are written.
    #[test]
    fn the_document_holds_what_was_promised_and_nothing_else() {
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
                "blocks depth devices full objective phases precision prices requires seconds \
                 seed size_bytes survives threads tie unit workload",
            ),
            ("/settings/devices/0", "model path serial size_bytes"),
            ("/settings/requires/0", "bar figure side unit"),
            (
                "/layouts/0",
                "blocks capacity_bytes chunk_bytes cost figures fs index level members name \
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
    fn a_cell_that_failed_says_why_and_has_no_run() {
        let sample = sample::all_failed();
        let document = parsed(&sample);
        assert!(document["winner"].is_null());
        let cell = &document["cells"][0];
        assert!(cell["run"].is_null());
        assert_eq!(cell["failed"], "mdadm ended with status 1.");
        assert!(document["layouts"][0]["objective"].is_null());
    }

    #[test]
    fn a_sweep_that_is_not_over_says_how_to_go_on() {
        let sample = sample::unfinished();
        let document = parsed(&sample);
        assert_eq!(document["over"], false);
        let resume = document["resume"].as_str().unwrap();
        assert!(resume.starts_with("disksmith sweep"), "{resume}");
    }
}
