//! Sentences about a sweep, shared by text and page.

use std::collections::BTreeMap;
use std::ffi::OsString;

use linux::exec;

use super::units::{
    FigureUnit, figure, objective, outcome_label, share as share_of, share_interval, side,
};
use crate::{
    CellOutcome, Factor, Figure, Layout, LayoutOutcome, LayoutResult, Objective, SweepDecision,
    SweepRecord, SweepSettings,
};
use ui::format::count;
use ui::relative;
use ui::units::duration;

/// The name of a layout by its index.
pub(crate) fn layout(record: &SweepRecord, index: usize) -> String {
    record
        .layouts
        .get(index)
        .map_or_else(|| format!("layout {index}"), Layout::to_string)
}

/// The row of a layout.
pub(crate) fn row(decision: &SweepDecision, layout: usize) -> Option<&LayoutResult> {
    decision.rows.iter().find(|row| row.layout == layout)
}

/// The rank of a layout in the table, from 1.
pub(crate) fn rank(decision: &SweepDecision, layout: usize) -> Option<usize> {
    let place = decision.rows.iter().position(|row| row.layout == layout)?;
    Some(place + 1)
}

/// The devices: `/dev/sdf … /dev/sdm (8 × 100 GiB, Amazon Elastic Block Store)`.
pub(crate) fn devices(settings: &SweepSettings) -> String {
    let devices = &settings.devices;
    let paths: Vec<String> = devices
        .iter()
        .map(|device| device.path.display().to_string())
        .collect();
    let paths = match &paths[..] {
        [first, _, _, .., last] => format!("{first} … {last}"),
        few => few.join(", "),
    };
    let mut sizes: Vec<(String, usize)> = Vec::new();
    for device in devices {
        let what = match &device.model {
            Some(model) => format!("{}, {model}", device.size),
            None => device.size.to_string(),
        };
        match sizes.iter_mut().find(|(known, _)| *known == what) {
            Some((_, many)) => *many += 1,
            None => sizes.push((what, 1)),
        }
    }
    let sizes: Vec<String> = sizes
        .into_iter()
        .map(|(what, many)| format!("{many} × {what}"))
        .collect();
    format!("{paths} ({})", sizes.join("; "))
}

/// Place of the sweep: the host, and its cloud.
pub(crate) fn place(record: &SweepRecord) -> String {
    let mut parts = vec![record.machine.hostname.clone()];
    if let Some(cloud) = &record.machine.cloud {
        parts.extend(
            [&cloud.instance_type, &cloud.zone]
                .into_iter()
                .flatten()
                .cloned(),
        );
    }
    parts.join(", ")
}

/// Objective and requirements: `most page-mixed.iops, with page-mixed.read.p99 < 10.0 ms`.
pub(crate) fn goal(settings: &SweepSettings) -> String {
    let direction = if FigureUnit::of_objective(&settings.objective).less_is_better() {
        "least"
    } else {
        "most"
    };
    let mut text = format!("{direction} {}", objective(&settings.objective));
    let mut bars: Vec<String> = settings.requires.iter().map(requirement).collect();
    if settings.factors.survives > 0 {
        bars.push(match settings.factors.survives {
            1 => "no data lost when a member fails".to_owned(),
            many => format!("no data lost when any {many} members fail"),
        });
    }
    if !bars.is_empty() {
        text = format!("{text}, with {}", bars.join(" and "));
    }
    text
}

fn requirement(requirement: &crate::Requirement) -> String {
    format!(
        "{} {} {}",
        requirement.figure,
        side(requirement.side),
        FigureUnit::of_metric(requirement.figure.metric).show(requirement.threshold)
    )
}

/// Effort: `58 measurements in 3 blocks, 5.20 h, begun 2 times`.
pub(crate) fn effort(record: &SweepRecord) -> String {
    let measured = record
        .cells
        .iter()
        .filter(|cell| matches!(cell.outcome, CellOutcome::Measured { .. }))
        .count();
    let blocks = record.cells.iter().map(|cell| cell.block + 1).max();
    let mut text = format!(
        "{} in {}, {}",
        count(measured, "measurement"),
        count(blocks.unwrap_or(0), "block"),
        duration(record.ran_s)
    );
    if record.starts > 1 {
        text = format!("{text}, begun {} times", record.starts);
    }
    text
}

/// The factors in which layouts differ, in the order in which they are shown.
pub(crate) fn varying(record: &SweepRecord) -> Vec<Factor> {
    let differs = |factor: &Factor| {
        let mut settings = record.layouts.iter().map(|layout| layout.setting(*factor));
        let first = settings.next();
        settings.any(|setting| Some(setting) != first)
    };
    let varying: Vec<Factor> = Factor::ALL.into_iter().filter(differs).collect();
    if varying.is_empty() {
        // For a single layout all factors are shown.
        Factor::ALL.to_vec()
    } else {
        varying
    }
}

/// Settings that all layouts have in common: `All with fs xfs, scheduler none.` Empty if they differ in all.
pub(crate) fn alike(record: &SweepRecord) -> String {
    let varying = varying(record);
    let Some(first) = record.layouts.first() else {
        return String::new();
    };
    let alike: Vec<String> = Factor::ALL
        .into_iter()
        .filter(|factor| !varying.contains(factor))
        .map(|factor| (factor, first.setting(factor)))
        .filter(|(_, setting)| setting != "–")
        .map(|(factor, setting)| format!("{} {setting}", factor.name()))
        .collect();
    if alike.is_empty() {
        String::new()
    } else {
        format!("All with {}.", alike.join(", "))
    }
}

/// The best layout, or the reason why there is none.
pub(crate) fn winner(record: &SweepRecord, decision: &SweepDecision) -> String {
    let Some(winner) = decision.winner else {
        return no_winner(decision);
    };
    let so_far = if decision.over { "Best" } else { "Best so far" };
    let unit = FigureUnit::of_objective(&record.settings.objective);
    let row = row(decision, winner);
    let value = row
        .and_then(|row| row.value)
        .map_or_else(String::new, |value| format!(", {}", unit.show_value(value)));
    format!("{so_far}: {}{value}.", layout(record, winner))
}

fn no_winner(decision: &SweepDecision) -> String {
    let all = |wanted: LayoutOutcome| {
        !decision.rows.is_empty() && decision.rows.iter().all(|row| row.outcome == wanted)
    };
    let text = if all(LayoutOutcome::Failed) {
        "No layout could be built and measured."
    } else if decision
        .rows
        .iter()
        .any(|row| row.outcome == LayoutOutcome::Missed)
        && decision.over
    {
        "No layout meets the requirements."
    } else if decision.over {
        "No layout is best."
    } else {
        "Nothing is decided yet."
    };
    text.to_owned()
}

/// Layouts not distinguishable from the winner; `None` if there are none.
pub(crate) fn ties(record: &SweepRecord, decision: &SweepDecision) -> Option<String> {
    if decision.ties.is_empty() {
        return None;
    }
    Some(format!(
        "As good, as far as can be determined: {}.",
        named(record, decision, &decision.ties)
    ))
}

/// The best layout for each number of members that may fail.
pub(crate) fn survivors(record: &SweepRecord, decision: &SweepDecision) -> Vec<String> {
    let lines = decision.survivors.iter().map(|survivor| {
        let losses = match survivor.losses {
            0 => "Best with or without redundancy".to_owned(),
            1 => "Best that survives the loss of any volume".to_owned(),
            many => format!("Best that survives the loss of any {many} volumes"),
        };
        let Some(best) = survivor.best else {
            return format!("{losses}: none was measured.");
        };
        let share = row(decision, best).and_then(|row| row.of_winner);
        let share = share.map_or_else(String::new, |value| match share_interval(value) {
            none if none.is_empty() => format!(", {} of the best", share_of(value.mean)),
            bounds => format!(", {} of the best ({bounds})", share_of(value.mean)),
        });
        let ties = match survivor.ties.len() {
            0 => String::new(),
            _ => format!(
                "; not distinguished from it: {}",
                named(record, decision, &survivor.ties)
            ),
        };
        format!(
            "{losses}: {}{share}{ties}.",
            named(record, decision, &[best])
        )
    });
    lines.collect()
}

/// The Pareto frontier of cost, speed and redundancy, if prices are known.
pub(crate) fn frontier(record: &SweepRecord, decision: &SweepDecision) -> Option<String> {
    (!decision.frontier.is_empty()).then(|| {
        format!(
            "Not beaten in cost, speed and redundancy at once: {}.",
            named(record, decision, &decision.frontier)
        )
    })
}

/// Layouts with their ranks in the table.
fn named(record: &SweepRecord, decision: &SweepDecision, layouts: &[usize]) -> String {
    let name = |index: &usize| match rank(decision, *index) {
        Some(rank) => format!("#{rank} {}", layout(record, *index)),
        None => layout(record, *index),
    };
    let names: Vec<String> = layouts.iter().map(name).collect();
    names.join("; ")
}

/// Command that resumes a sweep that is not over.
pub(crate) fn resume(record: &SweepRecord, decision: &SweepDecision) -> Option<String> {
    if decision.over {
        None
    } else if record.given_up {
        Some("The sweep was given up before it was over.".to_owned())
    } else {
        Some(format!(
            "The sweep is not complete. The same command continues it: {}",
            resume_command(record)
        ))
    }
}

/// The command that resumes a sweep: the one that began it.
pub(crate) fn resume_command(record: &SweepRecord) -> String {
    let words: Vec<OsString> = record.command.iter().map(OsString::from).collect();
    words
        .split_first()
        .map_or_else(String::new, |(program, args)| exec::line(program, args))
}

/// Reasons why layouts failed or miss a requirement: each reason once, with the ranks of its layouts in the table.
pub(crate) fn exclusions(decision: &SweepDecision) -> Vec<String> {
    let mut reasons: BTreeMap<(&'static str, &str), Vec<usize>> = BTreeMap::new();
    for (place, row) in decision.rows.iter().enumerate() {
        if matches!(row.outcome, LayoutOutcome::Failed | LayoutOutcome::Missed) {
            let word = outcome_label(row.outcome);
            let places = reasons.entry((word, &row.why)).or_default();
            places.push(place + 1);
        }
    }
    reasons
        .into_iter()
        .map(|((word, why), places)| format!("{word}: {}: {why}", ranges(&places)))
        .collect()
}

/// Ascending ranks, with consecutive ones as one range: `#3, #5–#9`.
fn ranges(places: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &place in places {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == place => *last = place,
            _ => ranges.push((place, place)),
        }
    }
    let ranges: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => format!("#{first}"),
            1 => format!("#{first}, #{last}"),
            _ => format!("#{first}–#{last}"),
        })
        .collect();
    ranges.join(", ")
}

/// The figures besides the objective's that the table shows: those of the requirements, and the rate of a rate for
/// each dollar.
pub(crate) fn further_figures(settings: &SweepSettings) -> Vec<&Figure> {
    let mut figures: Vec<&Figure> = Vec::new();
    if let Objective::PerDollar(figure) = &settings.objective {
        figures.push(figure);
    }
    for requirement in &settings.requires {
        let known = figures.contains(&&requirement.figure);
        let shown = settings.objective == Objective::Figure(requirement.figure.clone());
        if !known && !shown {
            figures.push(&requirement.figure);
        }
    }
    figures
}

/// Title of a figure's column. The phase is omitted if it is the objective's.
pub(crate) fn figure_title(settings: &SweepSettings, shown: &Figure) -> String {
    let phase = figure(&settings.objective).map(|figure| figure.phase.as_str());
    let mut parts = Vec::new();
    if phase != Some(shown.phase.as_str()) {
        parts.push(shown.phase.as_str());
    }
    if let Some(direction) = shown.direction {
        parts.push(direction.name());
    }
    let unit = FigureUnit::of_metric(shown.metric);
    if unit == FigureUnit::Time {
        parts.push(shown.metric.name());
    }
    parts.push(unit.name());
    parts.join(" ")
}

/// The interval of a row's objective (see [`relative::interval`]); `?` without an interval.
pub(crate) fn plus_minus(row: &LayoutResult, unit: FigureUnit) -> String {
    match row.value {
        None => String::new(),
        Some(value) => {
            let shown = |bound| unit.digits(bound);
            let interval = relative::interval(value.mean, value.low, value.high, shown);
            interval.unwrap_or("?".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_follow_one_another_are_a_range() {
        assert_eq!(ranges(&[1]), "#1");
        assert_eq!(ranges(&[1, 2, 4, 5, 6, 9]), "#1, #2, #4–#6, #9");
        assert_eq!(ranges(&[]), "");
    }
}
