//! Conclusions from a sample, by rules of thumb, with all that views can show.

use std::collections::BTreeMap;

use crate::views::units::{FigureUnit, figure};
use crate::{
    BaselineDrift, Cell, CellOutcome, Cost, Factor, FactorEffect, Figure, Layout, LayoutOutcome,
    LayoutResult, Point, ScalingCurve, SweepDecision, SweepRecord, Value,
};
use domain::raid::Level;

use super::{ALONE, interval, truth};

/// Dollars a month of one volume.
const VOLUME: f64 = 12.5;

/// Conclusions from a sample.
pub(super) fn all(record: &SweepRecord, priced: bool) -> SweepDecision {
    let mut rows: Vec<LayoutResult> = (0..record.layouts.len())
        .map(|index| row(record, index, priced))
        .collect();
    let unit = FigureUnit::of_objective(&record.settings.objective);
    let key = |row: &LayoutResult| {
        let last = row.outcome == LayoutOutcome::Failed || row.value.is_none();
        let missed = row.outcome == LayoutOutcome::Missed;
        let value = row.value.map_or(0.0, |value| value.mean);
        let value = if unit.less_is_better() { value } else { -value };
        (last, missed, value)
    };
    rows.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap());
    judge(&mut rows, unit);
    let of = |wanted: LayoutOutcome| {
        let found = rows.iter().filter(move |row| row.outcome == wanted);
        found.map(|row| row.layout).collect::<Vec<usize>>()
    };
    let winner = of(LayoutOutcome::Winner).first().copied();
    let ties = of(LayoutOutcome::Tie);
    SweepDecision {
        winner,
        ties,
        survivors: crate::survivors::of(&rows, record),
        frontier: frontier(&rows),
        over: true,
        drift: drift(record),
        effects: if winner.is_some() {
            effects(record)
        } else {
            Vec::new()
        },
        curves: if winner.is_some() && !unit.less_is_better() {
            curves(record)
        } else {
            Vec::new()
        },
        answers: if winner.is_some() {
            vec![
                "RAID 10 gives 77 % of what RAID 0 gives on as many members, and survives the loss of one.".to_owned(),
                "More than 6 members bring nothing: the instance lets 20,000 IOPS through.".to_owned(),
            ]
        } else {
            Vec::new()
        },
        doubts: vec![
            "1 of the measurements stalled (run finding 'stall'); it is left in.".to_owned(),
        ],
        rows,
    }
}

fn row(record: &SweepRecord, index: usize, priced: bool) -> LayoutResult {
    let layout = &record.layouts[index];
    let cells = || {
        record
            .cells
            .iter()
            .filter(move |cell| cell.layout == index && !cell.baseline)
    };
    let figures = figures(&cells().collect::<Vec<_>>());
    let value = figure(&record.settings.objective).and_then(|figure| figures.get(figure).copied());
    let failure = cells().find_map(|cell| match &cell.outcome {
        CellOutcome::Failed(why) => Some(why.clone()),
        CellOutcome::Measured { .. } => None,
    });
    let missed = record.settings.requires.iter().find(|requirement| {
        let figure = figures.get(&requirement.figure);
        figure.is_some_and(|value| value.mean > requirement.threshold)
    });
    let (outcome, why) = match (failure, value, missed) {
        (Some(why), _, _) => (LayoutOutcome::Failed, why),
        (None, None, _) => (LayoutOutcome::Open, "not measured yet".to_owned()),
        (None, Some(_), Some(missed)) => (
            LayoutOutcome::Missed,
            format!("its {} is above the threshold", missed.figure),
        ),
        (None, Some(_), None) => (LayoutOutcome::Behind, String::new()),
    };
    let value = value.filter(|_| outcome != LayoutOutcome::Failed);
    let per_month = VOLUME * layout.members as f64;
    let sizes: Vec<_> = record
        .settings
        .devices
        .iter()
        .map(|device| device.size)
        .collect();
    LayoutResult {
        layout: index,
        blocks: cells().count(),
        value,
        of_winner: None,
        figures,
        outcome,
        why,
        cost: priced.then_some(Cost {
            per_month,
            rate_per_dollar: value.map(|value| value.mean / per_month),
        }),
        survives: layout.survives(),
        capacity: layout.capacity(&sizes),
    }
}

fn figures(cells: &[&Cell]) -> BTreeMap<Figure, Value> {
    let mut all: BTreeMap<Figure, Vec<f64>> = BTreeMap::new();
    for cell in cells {
        if let CellOutcome::Measured { figures, .. } = &cell.outcome {
            for (figure, value) in figures {
                all.entry(figure.clone()).or_default().push(value.mean);
            }
        }
    }
    all.into_iter()
        .map(|(figure, values)| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            (figure, interval(mean, 0.012 / (values.len() as f64).sqrt()))
        })
        .collect()
}

/// Sets the winner, and the distances of the others.
fn judge(rows: &mut [LayoutResult], unit: FigureUnit) {
    let Some(place) = rows
        .iter()
        .position(|row| row.outcome == LayoutOutcome::Behind)
    else {
        return;
    };
    let best = rows[place].value.unwrap().mean;
    rows[place].outcome = LayoutOutcome::Winner;
    rows[place].why = "the best".to_owned();
    for row in &mut *rows {
        let Some(value) = row.value.filter(|_| row.outcome != LayoutOutcome::Winner) else {
            continue;
        };
        let share = value.mean / best;
        row.of_winner = Some(interval(share, 0.008));
        let worse = if unit.less_is_better() {
            share - 1.0
        } else {
            1.0 - share
        };
        if row.outcome != LayoutOutcome::Behind {
            continue;
        }
        row.outcome = match worse {
            w if w < 0.012 => LayoutOutcome::Tie,
            _ if row.blocks == 1 => LayoutOutcome::Dropped,
            _ => LayoutOutcome::Behind,
        };
        row.why = match row.outcome {
            LayoutOutcome::Tie => "within 2 % of the best".to_owned(),
            _ => format!(
                "{:.0} to {:.0} % worse than the best after {} blocks",
                100.0 * worse - 1.0,
                100.0 * worse + 1.0,
                row.blocks
            ),
        };
    }
}

fn frontier(rows: &[LayoutResult]) -> Vec<usize> {
    let point = |row: &LayoutResult| Some((row.cost?.per_month, row.value?.mean, row.survives));
    let beaten = |row: &LayoutResult| {
        let Some((cost, speed, survives)) = point(row) else {
            return true;
        };
        rows.iter().filter_map(point).any(|(c, s, f)| {
            c <= cost && s >= speed && f >= survives && (c, s, f) != (cost, speed, survives)
        })
    };
    rows.iter()
        .filter(|row| !beaten(row))
        .map(|row| row.layout)
        .collect()
}

fn drift(record: &SweepRecord) -> Option<BaselineDrift> {
    let shown = figure(&record.settings.objective)?;
    let points: Vec<(f64, f64)> = record
        .cells
        .iter()
        .filter(|cell| cell.baseline)
        .filter_map(|cell| Some((cell.began_s, cell.figure(shown)?.mean)))
        .collect();
    let (first, last) = (points.first()?.1, points.last()?.1);
    (points.len() > 1).then(|| BaselineDrift {
        change: Some(interval(last / first - 1.0, 0.01)),
        jump: 0.011,
        text: format!(
            "The baseline, {}, changed by {:.1} % from the first to the last of {} measurements: no drift to speak of.",
            record.layouts[record.baseline],
            100.0 * (last / first - 1.0),
            points.len()
        ),
        points,
    })
}

/// The pairs of layouts that differ in one factor alone, by their true rates.
fn effects(record: &SweepRecord) -> Vec<FactorEffect> {
    let mut found: BTreeMap<(Factor, String, String), Vec<f64>> = BTreeMap::new();
    for (a, from) in record.layouts.iter().enumerate() {
        for to in &record.layouts[a + 1..] {
            let differing: Vec<Factor> = Factor::ALL
                .into_iter()
                .filter(|factor| from.setting(*factor) != to.setting(*factor))
                .collect();
            if let [factor] = differing[..] {
                let key = (factor, from.setting(factor), to.setting(factor));
                found.entry(key).or_default().push(ratio(record, from, to));
            }
        }
    }
    found
        .into_iter()
        .map(|((factor, from, to), ratios)| effect(factor, from, to, &ratios))
        .collect()
}

fn ratio(record: &SweepRecord, from: &Layout, to: &Layout) -> f64 {
    let ratio = truth(to) / truth(from);
    if FigureUnit::of_objective(&record.settings.objective).less_is_better() {
        1.0 / ratio
    } else {
        ratio
    }
}

fn effect(factor: Factor, from: String, to: String, ratios: &[f64]) -> FactorEffect {
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let ratio = if ratios.len() > 1 {
        interval(mean, 0.02)
    } else {
        Value::plain(mean)
    };
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = ratios.iter().copied().fold(0.0, f64::max);
    let shown = ratio.low.is_some_and(|low| low > 1.0) || ratio.high.is_some_and(|high| high < 1.0);
    FactorEffect {
        text: format!(
            "{} {to} in place of {from}: {:+.0} % ({} pairs).",
            factor.name(),
            100.0 * (mean - 1.0),
            ratios.len()
        ),
        factor,
        from,
        to,
        pairs: ratios.len(),
        ratio,
        range: (least, greatest),
        shown,
    }
}

/// Rates by the number of members, for each level, chunk, file system and scheduler.
fn curves(record: &SweepRecord) -> Vec<ScalingCurve> {
    let mut curves: Vec<ScalingCurve> = Vec::new();
    for layout in record
        .layouts
        .iter()
        .filter(|layout| layout.chunk.is_some())
    {
        let level = layout.setting(Factor::Level);
        let label = format!(
            "RAID {level}, {}, {}",
            layout.setting(Factor::Chunk),
            layout.setting(Factor::Fs)
        );
        let copies = if layout.level == Some(Level::Ten) {
            1.3
        } else {
            1.0
        };
        let point = Point {
            members: layout.members,
            value: interval(truth(layout), 0.015),
            ideal: record
                .probe
                .as_ref()
                .map(|_| layout.members as f64 * ALONE / copies),
        };
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(ScalingCurve {
                label,
                points: vec![point],
            }),
        }
    }
    curves
}
