//! Output of `fleet race`: a ranked table with sentences, or one JSON document.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use study::burnin::{End, Known};

use crate::race::conclude::{Decision, GroupEnd, RaceConclusion, RankedHost};
use crate::race::course::end_word;
use crate::race::terminate::UNKNOWN;
use crate::store::FleetRun;
use crate::store::race::{RaceRecord, RacedHost};
use ui::json::SCHEMA;
use ui::table::{Column, layout, wrap};
use ui::words;

/// Clocks that differ by more are told of, in seconds.
const CLOCKS: f64 = 2.0;

/// The table, and what is to be said.
pub(crate) fn text(
    run: &FleetRun,
    record: &RaceRecord,
    concluded: &RaceConclusion,
    columns: usize,
) -> String {
    let figure = figure_name(record);
    let titles = [
        Column::words("host"),
        Column::words("group").ranked(2),
        Column::words("zone").ranked(3),
        Column::words("type").ranked(5),
        Column::words("id").ranked(4),
        Column::numbers(&figure, 0),
        Column::numbers("bounds", 0),
        Column::words("worst disk").ranked(1),
        Column::numbers("rounds", 2),
        Column::words("decision"),
    ];
    let many = concluded.groups.len() > 1;
    let rows: Vec<Vec<String>> = concluded
        .ranked
        .iter()
        .map(|one| row(one, run, record, many))
        .collect();
    let mut text = layout(&titles, &rows, columns);
    text.push('\n');
    let reasons = concluded.ranked.iter().filter_map(|one| {
        let host = run.hosts.get(one.place)?;
        Some(format!(
            "{}: {}: {}.",
            host.host,
            one.decided.word(),
            one.reason
        ))
    });
    let notes = run.hosts.iter().flat_map(|host| {
        let notes = host.notes.iter();
        notes.map(|note| format!("{}: {note}", host.host))
    });
    let clocks = run.hosts.iter().filter_map(|host| {
        let ahead = host.clock_ahead_s.filter(|ahead| ahead.abs() > CLOCKS)?;
        Some(format!(
            "{}: its clock is {} {}; rounds do not go by clocks.",
            host.host,
            words::seconds(ahead.abs()),
            if ahead > 0.0 { "ahead" } else { "behind" }
        ))
    });
    let told = sentences(record, concluded).into_iter().chain(reasons);
    let more = notes.chain(clocks);
    for sentence in told.chain(more).chain(remarks(run, record, concluded)) {
        text.push_str(&wrap(&sentence, columns, "  "));
        text.push('\n');
    }
    text
}

/// Doubts about the figures, and results for the instances that were to be terminated.
pub(crate) fn remarks(
    run: &FleetRun,
    record: &RaceRecord,
    concluded: &RaceConclusion,
) -> Vec<String> {
    let mut remarks = doubts(run, concluded);
    let targets = record.termination.iter().flat_map(|one| &one.targets);
    remarks.extend(targets.map(|one| match one.state.as_deref() {
        None => format!("{}: its instance {} is not terminated.", one.host, one.id),
        Some(UNKNOWN) => format!(
            "{}: what came of its instance {} is not known; look with 'aws ec2 describe-instances \
             --instance-ids {}'.",
            one.host, one.id, one.id
        ),
        Some(state) => format!("{}: its instance {} is {state}.", one.host, one.id),
    }));
    let spared = record.termination.iter().flat_map(|one| &one.spared);
    remarks.extend(spared.map(|one| one.sentence()));
    remarks
}

fn row(one: &RankedHost, run: &FleetRun, record: &RaceRecord, many: bool) -> Vec<String> {
    let word = |text: Option<&String>| text.cloned().unwrap_or_default();
    let host = run.hosts.get(one.place);
    let raced = record.hosts.get(one.place);
    let of_known =
        |say: &dyn Fn(&Known) -> String| one.known.as_ref().map_or_else(String::new, say);
    let group = raced
        .and_then(|raced| raced.group.as_ref())
        .filter(|_| many);
    vec![
        word(host.map(|host| &host.host)),
        word(group),
        word(host.and_then(|host| host.zone.as_ref())),
        word(host.and_then(|host| host.kind.as_ref())),
        word(host.and_then(|host| host.id.as_ref())),
        of_known(&|known| words::number(known.figure)),
        of_known(&bounds_word),
        of_known(&|known| worst(known, raced).unwrap_or_default()),
        of_known(&|known| known.rounds.to_string()),
        one.decided.word().to_owned(),
    ]
}

/// Doubts about the figures, each sentence once with the hosts that it is about.
fn doubts(run: &FleetRun, concluded: &RaceConclusion) -> Vec<String> {
    let mut said: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &concluded.ranked {
        let name = run
            .hosts
            .get(one.place)
            .map_or("", |host| host.host.as_str());
        for doubt in &one.doubts {
            said.entry(doubt).or_default().push(name);
        }
    }
    said.into_iter()
        .map(|(doubt, names)| match names.as_slice() {
            [only] => format!("{only}: {doubt}"),
            [first, ..] => format!("{first} and {} more: {doubt}", names.len() - 1),
            [] => doubt.to_owned(),
        })
        .collect()
}

/// Sentences on how the race of each group ended, how long it took, and what it rests on.
pub(crate) fn sentences(record: &RaceRecord, concluded: &RaceConclusion) -> Vec<String> {
    let groups = concluded.groups.iter();
    let empty = concluded.empty.iter();
    groups
        .map(|group| of_group(group, record))
        .chain(empty.map(|name| {
            format!("{name}: none of its hosts came to be measured, and none is kept.")
        }))
        .chain(of_race(record, concluded))
        .collect()
}

/// Name of the figure that hosts are ranked by.
pub(crate) fn figure_name(record: &RaceRecord) -> String {
    record
        .figures
        .first()
        .map_or_else(String::new, ToString::to_string)
}

/// The bounds, where there are any: a single round has none.
fn bounds(known: &Known) -> Option<(f64, f64)> {
    (known.low.is_finite() && known.high.is_finite()).then_some((known.low, known.high))
}

/// An upper bound that is so many times the figure says nothing, as after two rounds that differ by much.
const FAR: f64 = 1000.0;

/// The bounds in words.
pub(crate) fn bounds_word(known: &Known) -> String {
    bounds(known).map_or_else(String::new, |(low, high)| {
        let low = words::number(low);
        if high > FAR * known.figure {
            format!("{low} or more")
        } else {
            format!("{low}–{}", words::number(high))
        }
    })
}

/// The worst disk of a host that has several.
pub(crate) fn worst(known: &Known, raced: Option<&RacedHost>) -> Option<String> {
    let targets = &raced?.targets;
    let target = targets.get(known.disk).filter(|_| targets.len() > 1)?;
    Some(target.device.clone().unwrap_or_else(|| target.path.clone()))
}

/// Sentence on how the race of a group ended.
fn of_group(group: &GroupEnd, record: &RaceRecord) -> String {
    let name = &group.name;
    let kept = match group.kept {
        1 => "1 host is kept".to_owned(),
        kept => format!("{kept} hosts are kept"),
    };
    let ties = match group.tied {
        0 => String::new(),
        tied => format!(
            ", and {tied} tie for {}: the race cannot tell them apart; choose among them, or break \
             ties with --ties",
            words::count(group.places, "place")
        ),
    };
    match group.end {
        None => format!("{name}: not decided, since the race was ended."),
        Some(End::Few) => format!(
            "{name}: {kept} of {}, since no more are left; {} were wanted.",
            group.hosts, record.keep
        ),
        Some(End::Decided) => format!("{name}: decided: {kept} of {}{ties}.", group.hosts),
        Some(End::Equal) => format!(
            "{name}: decided: {kept} of {}{ties}. None that is left out is better than one that is \
             kept by more than 2 %.",
            group.hosts
        ),
        Some(End::Rounds) => format!(
            "{name}: after {} rounds {kept} of {}{ties}. More --rounds may tell.",
            record.rounds.len(),
            group.hosts
        ),
    }
}

/// Notice that some of a group that are kept were not there any more when the race was over; `None` where all
/// were.
pub(crate) fn not_there(group: &GroupEnd) -> Option<String> {
    let chosen = group.kept + group.places.min(group.tied);
    (group.there < chosen).then(|| {
        format!(
            "{}: of {chosen} that are kept {} were there when the race was over.",
            group.name, group.there
        )
    })
}

/// Sentences on how long it took, and what it rests on.
fn of_race(record: &RaceRecord, concluded: &RaceConclusion) -> Vec<String> {
    let measurements: usize = record.rounds.iter().map(|round| round.measured.len()).sum();
    let noise = concluded.noise.map_or_else(String::new, |noise| {
        format!(
            " One round of a disk scatters by {}.",
            words::percent(noise)
        )
    });
    let mut sentences = vec![format!(
        "{} rounds of {}, in which {:.1} host-hours were measured.{noise}",
        record.rounds.len(),
        words::seconds(record.round_s),
        measurements as f64 * record.round_s / 3600.0
    )];
    if record.rounds.len() < concluded.proof_rounds && !record.interrupted {
        sentences.push(format!(
            "That is too short to see each host that is slow in one of ten rounds: it takes {} rounds \
             ({}).",
            concluded.proof_rounds,
            words::seconds(concluded.proof_rounds as f64 * record.round_s)
        ));
    }
    sentences.extend(record.floors.iter().map(|floor| {
        // One that missed several is out for the first.
        let missed = concluded.ranked.iter().filter(|one| {
            one.decided == Decision::Floor && one.reason.contains(&format!("missed {floor}:"))
        });
        format!(
            "Hosts that are out for the floor {floor}: {}.",
            missed.count()
        )
    }));
    sentences
}

/// One JSON document.
pub(crate) fn json(run: &FleetRun, record: &RaceRecord, concluded: &RaceConclusion) -> String {
    let hosts: Vec<Value> = concluded
        .ranked
        .iter()
        .filter_map(|one| host_json(one, run, record))
        .collect();
    let groups: Vec<Value> = concluded.groups.iter().map(group_json).collect();
    let document = json!({
        "schema": SCHEMA,
        "command": "fleet race",
        "disksmith": env!("CARGO_PKG_VERSION"),
        "fleet": run.id,
        "began": run.began,
        "args": run.args,
        "figure": figure_name(record),
        "keep": record.keep,
        "floors": record.floors,
        "round_s": record.round_s,
        "rounds": record.rounds.len(),
        "least_rounds": record.least_rounds,
        "most_rounds": record.most_rounds,
        "interrupted": record.interrupted,
        "terminated": record.termination.as_ref().map(|termination| &termination.targets),
        "spared": record.termination.as_ref().map(|termination| &termination.spared),
        "noise": concluded.noise,
        "proof_rounds": concluded.proof_rounds,
        "empty_groups": concluded.empty,
        "groups": groups,
        "hosts": hosts,
    });
    format!("{document:#}\n")
}

fn group_json(group: &GroupEnd) -> Value {
    json!({
        "group": group.name,
        "hosts": group.hosts,
        "end": end_word(group.end),
        "kept": group.kept,
        "there": group.there,
        "tied": group.tied,
        "places": group.places,
    })
}

fn host_json(one: &RankedHost, run: &FleetRun, record: &RaceRecord) -> Option<Value> {
    let host = run.hosts.get(one.place)?;
    let raced = record.hosts.get(one.place);
    let figure = one.known.map(|known| {
        json!({
            "value": known.figure,
            "low": bounds(&known).map(|(low, _)| low),
            "high": bounds(&known).map(|(_, high)| high),
        })
    });
    Some(json!({
        "host": host.host,
        "address": host.address,
        "group": raced.and_then(|raced| raced.group.as_ref()),
        "zone": host.zone,
        "type": host.kind,
        "id": host.id,
        "came": host.outcome.word(),
        "decision": one.decided.word(),
        "reason": one.reason,
        "figure": figure,
        "rounds": one.known.map_or(0, |known| known.rounds),
        "missed_rounds": one.missed,
        "slow_rounds": one.known.map(|known| known.slow),
        "left_when_slow": one.known.map(|known| known.left),
        "worst_target": one.known.and_then(|known| raced?.targets.get(known.disk).cloned()),
        "targets": raced.map(|raced| &raced.targets),
        "clock_ahead_s": host.clock_ahead_s,
        "doubts": one.doubts,
        "notes": host.notes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_says_nothing_is_not_spelled_out() {
        let known = |high| Known {
            figure: 100.0,
            low: 90.0,
            high,
            disk: 0,
            rounds: 2,
            slow: 0,
            left: 1.0,
        };
        assert_eq!(bounds_word(&known(110.0)), "90.0–110");
        assert_eq!(bounds_word(&known(1e200)), "90.0 or more");
        assert_eq!(bounds_word(&known(f64::INFINITY)), "");
    }
}
