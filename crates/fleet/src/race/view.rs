//! Output of `fleet race`: a ranked table with sentences, or one JSON document.

use std::collections::BTreeMap;

use study::burnin::End;

use crate::race::conclude::{Decision, GroupEnd, RaceConclusion};
use crate::race::report::{HostReport, RaceReport};
use crate::store::FleetRun;
use crate::store::race::RaceRecord;
use crate::store::termination::TerminationTarget;
use ui::format;
use ui::json::Document;
use ui::table::{Column, layout, wrap};

/// Difference of clocks from which it is reported, in seconds.
const MAX_CLOCK_DIFFERENCE_S: f64 = 2.0;

/// The table and its notes.
pub(crate) fn text(
    run: &FleetRun,
    record: &RaceRecord,
    concluded: &RaceConclusion,
    columns: usize,
) -> String {
    let report = RaceReport::of(run, record, concluded);
    let titles = [
        Column::text("host"),
        Column::text("group").ranked(2),
        Column::text("zone").ranked(3),
        Column::text("type").ranked(5),
        Column::text("id").ranked(4),
        Column::numbers(&report.figure, 0),
        Column::numbers("bounds", 0),
        Column::text("worst disk").ranked(1),
        Column::numbers("rounds", 2),
        Column::text("decision"),
    ];
    let has_groups = concluded.groups.len() > 1;
    let rows = report.hosts.iter().map(|host| row(host, has_groups));
    let rows: Vec<Vec<String>> = rows.collect();
    let mut text = layout(&titles, &rows, columns);
    text.push('\n');
    let hosts = report.hosts.iter();
    let reasons =
        hosts.map(|host| format!("{}: {}: {}.", host.host, host.decision.name(), host.reason));
    let notes = run.hosts.iter().flat_map(|host| {
        let notes = host.notes.iter();
        notes.map(|note| format!("{}: {note}", host.host))
    });
    let clocks = run.hosts.iter().filter_map(|host| {
        let ahead = host
            .clock_ahead_s
            .filter(|ahead| ahead.abs() > MAX_CLOCK_DIFFERENCE_S)?;
        Some(format!(
            "{}: its clock is {} {}; rounds do not go by clocks.",
            host.host,
            format::seconds(ahead.abs()),
            if ahead > 0.0 { "ahead" } else { "behind" }
        ))
    });
    let lines = sentences(record, concluded).into_iter().chain(reasons);
    let more = notes.chain(clocks);
    for sentence in lines.chain(more).chain(remarks(run, record, concluded)) {
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
    remarks.extend(targets.map(TerminationTarget::sentence));
    let spared = record.termination.iter().flat_map(|one| &one.spared);
    remarks.extend(spared.map(|one| one.sentence()));
    remarks
}

fn row(host: &HostReport<'_>, has_groups: bool) -> Vec<String> {
    let cells = host.cells();
    vec![
        cells.host,
        if has_groups {
            cells.group
        } else {
            String::new()
        },
        cells.zone,
        cells.kind,
        cells.id,
        cells.figure,
        cells.bounds,
        cells.worst,
        cells.rounds,
        cells.decision.to_owned(),
    ]
}

/// Doubts about the figures, each sentence once with its hosts.
fn doubts(run: &FleetRun, concluded: &RaceConclusion) -> Vec<String> {
    let mut doubts_by_host: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &concluded.ranked {
        let name = run.name(one.place);
        for doubt in &one.doubts {
            doubts_by_host.entry(doubt).or_default().push(name);
        }
    }
    doubts_by_host
        .into_iter()
        .map(|(doubt, names)| match names.as_slice() {
            [only] => format!("{only}: {doubt}"),
            [first, ..] => format!("{first} and {} more: {doubt}", names.len() - 1),
            [] => doubt.to_owned(),
        })
        .collect()
}

/// Sentences about the end of each group's race, its length, and its basis.
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

/// Sentence about the end of a group's race.
fn of_group(group: &GroupEnd, record: &RaceRecord) -> String {
    let name = &group.name;
    let kept = match group.kept {
        1 => "1 host is kept".to_owned(),
        kept => format!("{kept} hosts are kept"),
    };
    let ties = match group.tied {
        0 => String::new(),
        tied => format!(
            ", and {tied} tie for {}: the race cannot distinguish them; choose among them, or break \
             ties with --ties",
            format::count(group.places, "place")
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
            "{name}: after {} rounds {kept} of {}{ties}. More --rounds may decide it.",
            record.rounds.len(),
            group.hosts
        ),
    }
}

/// Notice that some kept hosts of a group were unreachable at the end of the race; `None` if all were reachable.
pub(crate) fn missing_hosts_notice(group: &GroupEnd) -> Option<String> {
    let chosen = group.kept + group.places.min(group.tied);
    (group.there < chosen).then(|| {
        format!(
            "{}: of {chosen} that are kept {} were there when the race was over.",
            group.name, group.there
        )
    })
}

/// Sentences about the length of the race, and its basis.
fn of_race(record: &RaceRecord, concluded: &RaceConclusion) -> Vec<String> {
    let measurements: usize = record.rounds.iter().map(|round| round.measured.len()).sum();
    let noise = concluded.noise.map_or_else(String::new, |noise| {
        format!(
            " One round of a disk scatters by {}.",
            format::percent(noise)
        )
    });
    let mut sentences = vec![format!(
        "{} rounds of {}, in which {:.1} host-hours were measured.{noise}",
        record.rounds.len(),
        format::seconds(record.round_s),
        measurements as f64 * record.round_s / 3600.0
    )];
    if record.rounds.len() < concluded.proof_rounds && !record.interrupted {
        sentences.push(format!(
            "That is too short to see each host that is slow in one of ten rounds: it takes {} rounds \
             ({}).",
            concluded.proof_rounds,
            format::seconds(concluded.proof_rounds as f64 * record.round_s)
        ));
    }
    sentences.extend(record.floors.iter().map(|floor| {
        // A host that missed several floors is out for the first.
        let missed = concluded.ranked.iter().filter(|one| {
            one.decided == Decision::HostFloor && one.reason.contains(&format!("missed {floor}:"))
        });
        format!(
            "Hosts that are out for the floor {floor}: {}.",
            missed.count()
        )
    }));
    sentences
}

/// The race as one JSON document.
pub(crate) fn json(run: &FleetRun, record: &RaceRecord, concluded: &RaceConclusion) -> String {
    let report = RaceReport::of(run, record, concluded);
    format!("{:#}", Document::of("fleet race", report))
}
