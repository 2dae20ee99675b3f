//! Output of `fleet run`: a table with sentences, or one JSON document.

use std::collections::HashMap;

use jiff::Timestamp;
use linux::remedy;
use serde::Serialize;
use serde_json::Value;

use crate::hosts::fold;
use crate::run::answer::DoctorCheck;
use crate::run::differences::{Difference, DoctorAnswers};
use crate::run::figure::{HostComparison, compare};
use crate::store::{FleetRun, HostOutcome, HostRun, RunKind};
use ui::format;
use ui::json::Document;
use ui::table::{Column, layout, wrap};

/// Difference of clocks from which it is reported, in seconds: times of such hosts cannot be compared.
const CLOCKS: f64 = 2.0;

/// The table, its notes, and the text answers.
pub(crate) fn text(run: &FleetRun, columns: usize) -> String {
    let compared = compare(&run.hosts);
    let checked = DoctorAnswers::of(&run.hosts);
    let report = RunReport::of(run, &compared, &checked);
    let figure = report.figure.unwrap_or_default();
    let titles = [
        Column::text("host"),
        Column::text("zone").ranked(1),
        Column::text("type").ranked(2),
        Column::text("id").ranked(4),
        Column::text("came"),
        Column::numbers("took", 3),
        Column::numbers(figure, 0),
        Column::numbers("95 %", 2),
        Column::text("verdict").ranked(1),
        Column::text(""),
    ];
    let rows: Vec<Vec<String>> = report.hosts.iter().map(HostReport::row).collect();
    let mut text = layout(&titles, &rows, columns);
    let sentences = sentences(run, &report, &checked);
    if !sentences.is_empty() {
        text.push('\n');
    }
    for sentence in sentences {
        text.push_str(&wrap(&sentence, columns, "  "));
        text.push('\n');
    }
    for (hosts, answer) in equal_answers(run) {
        let title = match hosts.len() {
            1 => fold(hosts),
            count => format!("{} ({count} hosts)", fold(hosts)),
        };
        text.push_str(&format!("\n{title}:\n{answer}\n"));
    }
    text
}

/// The text answers, each once with its hosts, ordered by the first host.
fn equal_answers(run: &FleetRun) -> Vec<(Vec<&str>, String)> {
    let mut answers: Vec<(Vec<&str>, String)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for host in &run.hosts {
        let Some(answer) = printed(host, run.kind) else {
            continue;
        };
        let place = *places.entry(answer).or_insert_with_key(|answer| {
            answers.push((Vec::new(), answer.clone()));
            answers.len() - 1
        });
        if let Some((hosts, _)) = answers.get_mut(place) {
            hosts.push(&host.host);
        }
    }
    answers
}

/// Text output of a host; for a program including its standard error, which may be all of its output.
fn printed(host: &HostRun, kind: RunKind) -> Option<String> {
    let answer = host.answer.as_str()?.trim_end();
    let errors = match kind {
        RunKind::Exec => host.stderr.trim_end(),
        RunKind::Run | RunKind::Zero | RunKind::Race => "",
    };
    match (answer, errors) {
        ("", "") => None,
        ("", only) | (only, "") => Some(only.to_owned()),
        (answer, errors) => Some(format!("{answer}\n{errors}")),
    }
}

/// Sentences after the table: failed hosts, outliers, wrong clocks, and where the run is kept.
fn sentences(run: &FleetRun, report: &RunReport<'_>, checked: &DoctorAnswers) -> Vec<String> {
    let mut sentences: Vec<String> = run
        .hosts
        .iter()
        .filter_map(|host| {
            let why = host.why.as_ref()?;
            Some(format!("{}: {}: {why}", host.host, host.outcome.name()))
        })
        .collect();
    for host in &run.hosts {
        let notes = host.notes.iter();
        sentences.extend(notes.map(|note| format!("{}: {note}", host.host)));
    }
    sentences.extend(outliers(report));
    sentences.extend(findings(run, checked));
    sentences.extend(report.differences.iter().map(difference));
    for host in run.hosts.iter().filter(|host| !host.collected.is_empty()) {
        sentences.push(format!(
            "{}: its stored answer to {} is in the ledger now.",
            host.host,
            host.collected.join(", ")
        ));
    }
    for host in &run.hosts {
        if let Some(ahead) = host.clock_ahead_s.filter(|ahead| ahead.abs() > CLOCKS) {
            let way = if ahead > 0.0 { "ahead" } else { "behind" };
            sentences.push(format!(
                "{}: its clock is {} {way}; set it by NTP.",
                host.host,
                format::seconds(ahead.abs())
            ));
        }
    }
    let done = run
        .hosts
        .iter()
        .filter(|host| host.outcome == HostOutcome::Done)
        .count();
    let runs: usize = run.hosts.iter().map(|host| host.runs.len()).sum();
    let shown = match runs {
        0 => String::new(),
        _ => {
            let runs_there = remedy::command("runs");
            format!("; the {runs} runs are among those of '{runs_there}'")
        }
    };
    sentences.push(format!(
        "{done} of {} hosts are done. '{}' has all answers{shown}.",
        run.hosts.len(),
        remedy::command(&format!("fleet show {} --json", run.id))
    ));
    sentences
}

/// Findings of `doctor`, each once with its hosts.
fn findings(run: &FleetRun, checked: &DoctorAnswers) -> Vec<String> {
    let name = |at: &usize| run.hosts.get(*at).map(|host| host.host.as_str());
    let sentence = |(check, hosts): (&DoctorCheck, Vec<usize>)| {
        let on = match hosts.len() {
            all if all == checked.count() && all > 1 => format!("all {all} hosts"),
            _ => hosts.iter().filter_map(name).collect::<Vec<_>>().join(", "),
        };
        format!(
            "{} {}: {} (on {on})",
            check.result.name(),
            check.name,
            check.value
        )
    };
    checked.findings().into_iter().map(sentence).collect()
}

/// Sentence about a check of `doctor` in which a host differs from the majority.
fn difference(one: &Difference<'_>) -> String {
    format!(
        "{}: differs from most in {}: {} ({}); {} hosts have {}.",
        one.host,
        one.check,
        one.result.name(),
        one.value,
        one.hosts,
        one.usual.name()
    )
}

fn outliers(report: &RunReport<'_>) -> Vec<String> {
    let (Some(name), Some(median)) = (report.figure, report.median) else {
        return Vec::new();
    };
    let outliers = report.hosts.iter().filter(|host| host.outlier);
    let sentence = |host: &HostReport<'_>| {
        Some(format!(
            "{}: is not like the others: its {name} is {}, and half of the hosts have {} or more.",
            host.host,
            format::number(host.figure?),
            format::number(median)
        ))
    };
    outliers.filter_map(sentence).collect()
}

/// Results of a verb on all hosts.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunReport<'a> {
    /// Id of the run.
    fleet: &'a str,
    /// Start.
    began: Timestamp,
    /// The verb and its arguments.
    args: &'a [String],
    /// Name of the figure by which hosts are compared; `null` where there is none.
    figure: Option<&'a str>,
    /// Median of the figure over the hosts that are compared, in its unit; `null` where there is none.
    median: Option<f64>,
    /// The hosts, in the order of their source.
    hosts: Vec<HostReport<'a>>,
    /// Checks of `doctor` in which a host differs from most others.
    differences: Vec<Difference<'a>>,
}

/// Result of a verb on a host.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HostReport<'a> {
    /// Name of the host.
    host: &'a str,
    /// Address given to ssh.
    address: &'a str,
    /// The zone, such as `us-east-1a`; `null` where it is not known.
    zone: Option<&'a str>,
    /// The instance type, such as `i4i.large`; `null` where it is not known.
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    /// Id of its instance; `null` where it is not known.
    id: Option<&'a str>,
    /// Outcome: `waiting`, `done`, `no` (done, and the answer is no), `refused`, `failed`, `unreached`, `unfit` (no
    /// agent can run there), `busy` (another run measures there), `lost` (the connection broke) or `interrupted`.
    #[serde(rename = "came")]
    outcome: &'static str,
    /// Reason, as a sentence, where it did not succeed; else `null`.
    why: Option<&'a str>,
    /// Further notes, as sentences.
    notes: &'a [String],
    /// Exit status of the verb; `null` where it has none.
    status: Option<i32>,
    /// Run time of the verb, in seconds; `null` where that is not known.
    seconds: Option<f64>,
    /// Seconds by which its clock is ahead of this host's; `null` where it was not compared.
    clock_ahead_s: Option<f64>,
    /// Figure by which it is compared, in the figure's unit; `null` where it has none.
    figure: Option<f64>,
    /// Lower bound of the 95 % interval of the figure; `null` where there is none.
    low: Option<f64>,
    /// Upper bound of the 95 % interval of the figure; `null` where there is none.
    high: Option<f64>,
    /// Verdict of its run: `trusted`, `doubtful` or `invalid`; `null` where the verb has none.
    verdict: Option<&'a str>,
    /// True where its figure is far from those of the other hosts.
    outlier: bool,
    /// Answer of the verb: its document, or text; `null` where there is none.
    answer: &'a Value,
    /// End of the verb's standard error, at most 2,000 characters.
    stderr: &'a str,
    /// Ids of its runs in the ledger.
    runs: &'a [String],
    /// Ids of earlier runs of the fleet whose answers the host had kept, and which were collected now.
    collected: &'a [String],
}

impl<'a> RunReport<'a> {
    fn of(
        run: &'a FleetRun,
        compared: &'a HostComparison,
        checked: &'a DoctorAnswers,
    ) -> RunReport<'a> {
        let hosts = run.hosts.iter().enumerate();
        RunReport {
            fleet: &run.id,
            began: run.began,
            args: &run.args,
            figure: compared.name.as_deref(),
            median: compared.median,
            hosts: hosts
                .map(|(at, host)| HostReport::of(host, at, compared))
                .collect(),
            differences: checked.differences(&run.hosts),
        }
    }
}

impl<'a> HostReport<'a> {
    fn of(host: &'a HostRun, at: usize, compared: &'a HostComparison) -> HostReport<'a> {
        let figure = compared.figures.get(at).and_then(Option::as_ref);
        let bounds = figure.and_then(|figure| figure.interval);
        HostReport {
            host: &host.host,
            address: &host.address,
            zone: host.zone.as_deref(),
            kind: host.kind.as_deref(),
            id: host.id.as_deref(),
            outcome: host.outcome.name(),
            why: host.why.as_deref(),
            notes: &host.notes,
            status: host.status,
            seconds: host.seconds,
            clock_ahead_s: host.clock_ahead_s,
            figure: figure.map(|figure| figure.value),
            low: bounds.map(|(low, _)| low),
            high: bounds.map(|(_, high)| high),
            verdict: figure.and_then(|figure| figure.verdict.as_deref()),
            outlier: compared.outlying.get(at) == Some(&true),
            answer: &host.answer,
            stderr: &host.stderr,
            runs: &host.runs,
            collected: &host.collected,
        }
    }

    /// Cells of the host in the table.
    fn row(&self) -> Vec<String> {
        let word = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let bounds = self.low.zip(self.high);
        vec![
            self.host.to_owned(),
            word(self.zone),
            word(self.kind),
            word(self.id),
            self.outcome.to_owned(),
            self.seconds.map_or_else(String::new, format::seconds),
            self.figure.map_or_else(String::new, format::number),
            bounds.map_or_else(String::new, |(low, high)| {
                format!("{}–{}", format::number(low), format::number(high))
            }),
            word(self.verdict),
            if self.outlier { "outlier" } else { "" }.to_owned(),
        ]
    }
}

/// The JSON document, with a line's end behind it.
pub(crate) fn json(run: &FleetRun) -> String {
    let compared = compare(&run.hosts);
    let checked = DoctorAnswers::of(&run.hosts);
    let report = RunReport::of(run, &compared, &checked);
    format!("{:#}", Document::of(run.kind.name(), report))
}
