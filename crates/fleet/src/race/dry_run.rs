//! Output of `fleet race --dry-run`: a table with sentences, or one JSON document.

use serde::Serialize;
use ui::table::{Column, layout, wrap};

use super::setup::Setup;
use crate::hosts::Host;
use ui::json::Document;

const COLUMNS: [Column; 3] = [
    Column::text("group"),
    Column::numbers("hosts", 0),
    Column::numbers("kept", 0),
];

/// The race that would be run, as a table with sentences.
pub(crate) fn text(setup: &Setup, hosts: &[Host], columns: usize) -> String {
    let kept = |size: usize| size.min(setup.rule.keep).to_string();
    let rows: Vec<Vec<String>> = setup
        .groups
        .iter()
        .zip(setup.sizes())
        .map(|(group, size)| vec![group.clone(), size.to_string(), kept(size)])
        .collect();
    let mut text = layout(&COLUMNS, &rows, columns);
    for sentence in setup.sentences(hosts.len()) {
        text.push_str(&wrap(&sentence, columns, ""));
        text.push('\n');
    }
    text
}

/// Body of the document.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DryRun<'a> {
    /// Always true: nothing was measured.
    dry_run: bool,
    /// Number of hosts to keep of each group.
    keep: usize,
    /// Floors that a host must reach throughout, as on the command line.
    floors: Vec<String>,
    /// Length of a round, in seconds.
    round_s: f64,
    /// Number of rounds in which every host is measured before any drops out.
    least_rounds: usize,
    /// Number of rounds in which a host is measured before it is kept: enough to show one that is slow in a tenth of
    /// them.
    proof_rounds: usize,
    /// Maximum number of rounds of the race.
    most_rounds: usize,
    /// The hosts that would race.
    hosts: Vec<ListedHost<'a>>,
}

/// A host, and the group in which it competes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ListedHost<'a> {
    /// The host, as its source has it.
    host: &'a Host,
    /// Name of its group.
    group: Option<&'a String>,
}

/// The race that would be run, as one JSON document.
pub(crate) fn json(setup: &Setup, hosts: &[Host]) -> String {
    let entrant = |(host, group): (_, &usize)| ListedHost {
        host,
        group: setup.groups.get(*group),
    };
    let body = DryRun {
        dry_run: true,
        keep: setup.rule.keep,
        floors: setup.floors.iter().map(ToString::to_string).collect(),
        round_s: setup.round_s,
        least_rounds: setup.rule.least,
        proof_rounds: setup.proof_rounds,
        most_rounds: setup.rule.rounds,
        hosts: hosts.iter().zip(&setup.group_of).map(entrant).collect(),
    };
    format!("{:#}", Document::of("fleet race", body))
}
