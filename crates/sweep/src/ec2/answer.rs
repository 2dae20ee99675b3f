//! The answer of a sweep of volume types: their figures and prices, and the best one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linux::remedy;
use serde::Serialize;
use study::compare::ratio_of_intervals;
use study::interval::Interval;
use study::small_samples::means_of_blocks;

use super::checkpoint::{DOCUMENT, TypeSweepCheckpoint, VolumeSpec};
use super::plan::{MONTH_H, figures};
use crate::figure::{Figure, Metric};
use crate::objective::Objective;
use ui::format;
use ui::table::{Column, layout, wrap};

/// A volume type with its results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TypeResult {
    /// The type as given by the user.
    volume: String,
    /// The id of its volume; `null` where none was created.
    id: Option<String>,
    /// Price of the volume for a month of 730 hours, in `currency`.
    price_per_month: f64,
    /// Currency of the price.
    currency: String,
    /// Means of the requested figures over the rounds: requests or bytes a second, latencies in nanoseconds.
    figures: BTreeMap<String, TypeMean>,
    /// The objective; `null` where it was not measured.
    objective: Option<TypeMean>,
    /// Requirements that it misses.
    missed: Vec<String>,
    /// Ids of its runs in the ledger.
    runs: Vec<String>,
    /// Reasons to doubt the figures.
    doubts: Vec<String>,
    /// Reasons for which measurements failed.
    failed: Vec<String>,
}

/// A mean with its 95 % interval, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TypeMean {
    /// The mean over the rounds.
    mean: f64,
    /// The lower bound; `null` after a single round.
    low: Option<f64>,
    /// The upper bound; `null` after a single round.
    high: Option<f64>,
}

/// The comparison of all types.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TypeComparison {
    /// Id of the sweep, which its volumes carry as a tag.
    sweep: String,
    /// Id of the instance that the volumes were attached to.
    instance: String,
    /// Availability zone of the instance.
    zone: String,
    /// The objective by which types are ranked, as on the command line.
    objective: String,
    /// Number of rounds, in each of which every type is measured once.
    rounds: usize,
    /// True if all was measured.
    over: bool,
    /// The types with their results, in the order of the command line.
    volumes: Vec<TypeResult>,
    /// The best type that meets the requirements; `null` where none does.
    best: Option<String>,
    /// Types not distinguishable from the best.
    as_good: Vec<String>,
}

/// Compares the volumes.
pub(crate) fn compare(checkpoint: &TypeSweepCheckpoint) -> TypeComparison {
    let of_figure: BTreeMap<&Figure, Vec<Option<TypeMean>>> =
        figures(&checkpoint.objective, &checkpoint.requires)
            .into_iter()
            .map(|figure| (figure, means(checkpoint, figure)))
            .collect();
    let mean = |figure: &Figure, at: usize| of_figure.get(figure).and_then(|all| all[at]);
    let volumes: Vec<TypeResult> = checkpoint
        .specs
        .iter()
        .enumerate()
        .map(|(at, spec)| {
            let missed = checkpoint.requires.iter().filter(|require| {
                !mean(&require.figure, at).is_some_and(|found| require.is_met_by(found.mean))
            });
            let cells = checkpoint.cells.iter().filter(|cell| cell.spec == at);
            let mut doubts: Vec<String> =
                cells.clone().flat_map(|cell| cell.doubts.clone()).collect();
            doubts.sort();
            doubts.dedup();
            TypeResult {
                volume: spec.text.clone(),
                id: checkpoint.volumes.get(at).and_then(|made| made.id.clone()),
                price_per_month: month(spec),
                currency: spec.currency.clone(),
                figures: of_figure
                    .iter()
                    .filter_map(|(figure, all)| Some((figure.to_string(), all[at]?)))
                    .collect(),
                objective: objective(checkpoint, at, &mean),
                missed: missed.map(ToString::to_string).collect(),
                runs: cells
                    .clone()
                    .filter_map(|cell| Some(cell.run.as_ref()?.to_string()))
                    .collect(),
                doubts,
                failed: cells.filter_map(|cell| cell.failed.clone()).collect(),
            }
        })
        .collect();
    let less = checkpoint.objective.less_is_better();
    let best = best(&volumes, less);
    let as_good = best.map_or_else(Vec::new, |best| ties(&volumes, best, less));
    let name = |at: usize| volumes[at].volume.clone();
    TypeComparison {
        sweep: checkpoint.id.clone(),
        instance: checkpoint.instance.clone(),
        zone: checkpoint.zone.clone(),
        objective: checkpoint.objective.to_string(),
        rounds: checkpoint.rounds,
        over: checkpoint.cells.len() == checkpoint.rounds * checkpoint.specs.len(),
        best: best.map(name),
        as_good: as_good.into_iter().map(name).collect(),
        volumes,
    }
}

/// Price of a month.
fn month(spec: &VolumeSpec) -> f64 {
    spec.per_hour * MONTH_H
}

/// Means of a figure, one for each type, without the differences between rounds.
fn means(checkpoint: &TypeSweepCheckpoint, figure: &Figure) -> Vec<Option<TypeMean>> {
    let values = |at: usize| -> Vec<(usize, f64)> {
        let cells = checkpoint.cells.iter().filter(|cell| cell.spec == at);
        cells
            .filter_map(|cell| Some((cell.round, cell.figures.get(figure)?.mean)))
            .collect()
    };
    let groups: Vec<Vec<(usize, f64)>> = (0..checkpoint.specs.len()).map(values).collect();
    let known = means_of_blocks(&groups);
    let alone = |group: &Vec<(usize, f64)>| {
        // A single round has no interval.
        let sum: f64 = group.iter().map(|(_, value)| value).sum();
        (!group.is_empty()).then(|| TypeMean {
            mean: sum / group.len() as f64,
            low: None,
            high: None,
        })
    };
    let mean = |(group, interval): (&Vec<(usize, f64)>, Option<Interval>)| match interval {
        Some(interval) => Some(TypeMean {
            mean: interval.mean,
            low: Some(interval.low),
            high: Some(interval.high),
        }),
        None => alone(group),
    };
    groups.iter().zip(known).map(mean).collect()
}

fn objective(
    checkpoint: &TypeSweepCheckpoint,
    at: usize,
    mean: &dyn Fn(&Figure, usize) -> Option<TypeMean>,
) -> Option<TypeMean> {
    let price = month(&checkpoint.specs[at]);
    match &checkpoint.objective {
        Objective::Figure(figure) => mean(figure, at),
        Objective::PerDollar(figure) => mean(figure, at).map(|found| TypeMean {
            mean: found.mean / price,
            low: found.low.map(|low| low / price),
            high: found.high.map(|high| high / price),
        }),
        Objective::Cost => Some(TypeMean {
            mean: price,
            low: None,
            high: None,
        }),
    }
}

/// The best type that meets the requirements.
fn best(volumes: &[TypeResult], less: bool) -> Option<usize> {
    let rank = |outcome: &TypeResult| {
        let value = outcome.objective.map(|it| it.mean)?;
        outcome
            .missed
            .is_empty()
            .then_some(if less { value } else { -value })
    };
    let ranked = volumes.iter().enumerate();
    ranked
        .filter_map(|(at, outcome)| Some((at, rank(outcome)?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))
        .map(|(at, _)| at)
}

/// Types that also meet the requirements and are not distinguishable from the best.
fn ties(volumes: &[TypeResult], best: usize, less: bool) -> Vec<usize> {
    let interval = |at: usize| {
        let mean = volumes[at].objective?;
        Some(Interval {
            mean: mean.mean,
            low: mean.low?,
            high: mean.high?,
        })
    };
    let is_tied = |at: &usize| {
        if *at == best || !volumes[*at].missed.is_empty() {
            return false;
        }
        match (interval(best), interval(*at)) {
            (Some(first), Some(other)) => {
                let (one, two) = if less { (other, first) } else { (first, other) };
                !ratio_of_intervals(one, two).is_some_and(|ratio| ratio.shows_difference())
            }
            // Without intervals only equal values tie, as for prices.
            _ => {
                let mean = |at: usize| volumes[at].objective.map(|it| it.mean);
                mean(best) == mean(*at)
            }
        }
    };
    (0..volumes.len()).filter(is_tied).collect()
}

impl TypeComparison {
    /// True if a type meets the requirements.
    pub(crate) fn has_best(&self) -> bool {
        self.best.is_some()
    }

    /// True if anything was measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.volumes.iter().any(|outcome| !outcome.runs.is_empty())
    }

    /// The comparison as a JSON document.
    pub(crate) fn document(&self) -> String {
        ui::json::document(DOCUMENT, self)
    }

    /// The table, and conclusions from it.
    pub(crate) fn text(&self, columns: usize) -> String {
        let mut heads = vec![Column::text("volume"), Column::numbers("a month", 1)];
        let mut names: Vec<&String> = self
            .volumes
            .iter()
            .flat_map(|outcome| outcome.figures.keys())
            .collect();
        names.sort();
        names.dedup();
        for name in &names {
            heads.push(Column::numbers(name, 0));
        }
        heads.push(Column::text("misses").ranked(1));
        let row = |outcome: &TypeResult| {
            let price = format!("{:.2} {}", outcome.price_per_month, outcome.currency);
            let mut row = vec![outcome.volume.clone(), price];
            for name in &names {
                row.push(
                    outcome
                        .figures
                        .get(*name)
                        .map_or("–".to_owned(), |mean| mean.shown(name)),
                );
            }
            row.push(outcome.missed.join(", "));
            row
        };
        let rows: Vec<Vec<String>> = self.volumes.iter().map(row).collect();
        let mut text = layout(&heads, &rows, columns);
        text.push('\n');
        for sentence in self.sentences() {
            let _ = writeln!(text, "{}", wrap(&sentence, columns, "  "));
        }
        text
    }

    fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        match &self.best {
            Some(best) => sentences.push(format!("The best by {} is {best}.", self.objective)),
            None => sentences.push("No volume meets the requirements.".to_owned()),
        }
        if !self.as_good.is_empty() {
            sentences.push(format!(
                "Not shown to be worse: {}.",
                self.as_good.join("; ")
            ));
        }
        if !self.over {
            sentences.push("Not all rounds were measured.".to_owned());
        }
        for outcome in &self.volumes {
            if !outcome.doubts.is_empty() {
                let doubts = outcome.doubts.join(", ");
                sentences.push(format!("warning: {}: {doubts}", outcome.volume));
            }
            for failed in &outcome.failed {
                sentences.push(format!("{} failed: {failed}", outcome.volume));
            }
        }
        sentences.push(format!(
            "{} shows this again; the runs of the volumes are in the ledger.",
            remedy::command(&format!("sweep --show {}", self.sweep))
        ));
        sentences
    }
}

impl TypeMean {
    /// The mean in the unit of a figure, with half the width of its interval.
    fn shown(&self, figure: &str) -> String {
        let metric = figure.parse::<Figure>().map(|figure| figure.metric);
        let value = match metric {
            Ok(metric) if metric.is_latency() => format::latency(self.mean.max(0.0) as u64),
            Ok(Metric::Bytes) => format!("{}/s", record::Bytes(self.mean.max(0.0) as u64)),
            _ => format::number(self.mean),
        };
        match (self.low, self.high) {
            (Some(low), Some(high)) if self.mean > 0.0 => {
                let share = 50.0 * (high - low) / self.mean;
                format!("{value} ± {share:.1} %")
            }
            _ => value,
        }
    }
}
