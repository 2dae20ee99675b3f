//! Output of `fleet run`: a table with sentences, or one JSON document.

use serde_json::{Value, json};

use crate::run::figure::{Comparison, Figure, compare};
use crate::store::{FleetRun, HostOutcome, HostRun};
use ui::json::SCHEMA;
use ui::table::{Column, layout, wrap};
use ui::words;

/// Clocks that differ by more are told of, in seconds: what hosts say of when something happened
/// cannot be compared then.
const CLOCKS: f64 = 2.0;

/// The table, what is to be said, and the answers that are text.
pub(crate) fn text(run: &FleetRun, columns: usize) -> String {
    let compared = compare(&run.hosts);
    let figure = compared.name.clone().unwrap_or_default();
    let titles = [
        Column::words("host"),
        Column::words("zone").ranked(1),
        Column::words("type").ranked(2),
        Column::words("id").ranked(4),
        Column::words("came"),
        Column::numbers("took", 3),
        Column::numbers(&figure, 0),
        Column::numbers("95 %", 2),
        Column::words("verdict").ranked(1),
        Column::words(""),
    ];
    let rows: Vec<Vec<String>> = (0..run.hosts.len())
        .map(|at| row(&run.hosts[at], at, &compared))
        .collect();
    let mut text = layout(&titles, &rows, columns);
    let sentences = sentences(run, &compared);
    if !sentences.is_empty() {
        text.push('\n');
    }
    for sentence in sentences {
        text.push_str(&wrap(&sentence, columns, "  "));
        text.push('\n');
    }
    for host in &run.hosts {
        if let Some(answer) = host.answer.as_str().filter(|answer| !answer.is_empty()) {
            text.push_str(&format!("\n{}:\n{}\n", host.host, answer.trim_end()));
        }
    }
    text
}

fn row(host: &HostRun, at: usize, compared: &Comparison) -> Vec<String> {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let shown = |of: &dyn Fn(&Figure) -> String| figure(compared, at).map_or_else(String::new, of);
    let is_outlying = compared.outlying.get(at) == Some(&true);
    vec![
        host.host.clone(),
        word(&host.zone),
        word(&host.kind),
        word(&host.id),
        host.outcome.word().to_owned(),
        host.seconds.map_or_else(String::new, words::seconds),
        shown(&|figure| words::number(figure.value)),
        shown(&|figure| {
            let interval = figure.interval;
            interval.map_or_else(String::new, |(low, high)| {
                format!("{}–{}", words::number(low), words::number(high))
            })
        }),
        shown(&|figure| figure.verdict.clone().unwrap_or_default()),
        if is_outlying { "outlier" } else { "" }.to_owned(),
    ]
}

fn figure(compared: &Comparison, at: usize) -> Option<&Figure> {
    compared.figures.get(at)?.as_ref()
}

/// All sentences: who failed, who is not like the others, whose clock is wrong, and where it is.
fn sentences(run: &FleetRun, compared: &Comparison) -> Vec<String> {
    let mut sentences: Vec<String> = run
        .hosts
        .iter()
        .filter_map(|host| {
            let why = host.why.as_ref()?;
            Some(format!("{}: {}: {why}", host.host, host.outcome.word()))
        })
        .collect();
    for host in &run.hosts {
        let notes = host.notes.iter();
        sentences.extend(notes.map(|note| format!("{}: {note}", host.host)));
    }
    sentences.extend(outliers(run, compared));
    for host in run.hosts.iter().filter(|host| !host.collected.is_empty()) {
        sentences.push(format!(
            "{}: what it had kept of {} is in the ledger now.",
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
                words::seconds(ahead.abs())
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
        _ => format!("; the {runs} runs are among those of 'disksmith runs'"),
    };
    sentences.push(format!(
        "{done} of {} hosts are done. 'disksmith fleet show {} --json' has all answers{shown}.",
        run.hosts.len(),
        run.id
    ));
    sentences
}

fn outliers(run: &FleetRun, compared: &Comparison) -> Vec<String> {
    let (Some(name), Some(median)) = (&compared.name, compared.median) else {
        return Vec::new();
    };
    let outlier = |(at, host): (usize, &HostRun)| {
        let figure = figure(compared, at).filter(|_| compared.outlying.get(at) == Some(&true))?;
        Some(format!(
            "{}: is not like the others: its {name} is {}, and half of the hosts have {} or more.",
            host.host,
            words::number(figure.value),
            words::number(median)
        ))
    };
    run.hosts.iter().enumerate().filter_map(outlier).collect()
}

/// The JSON document, with a line's end behind it.
pub(crate) fn json(run: &FleetRun) -> String {
    let compared = compare(&run.hosts);
    let hosts: Vec<Value> = run
        .hosts
        .iter()
        .enumerate()
        .map(|(at, host)| {
            let figure = figure(&compared, at);
            let bounds = figure.and_then(|figure| figure.interval);
            json!({
                "host": host.host,
                "address": host.address,
                "zone": host.zone,
                "type": host.kind,
                "id": host.id,
                "came": host.outcome.word(),
                "why": host.why,
                "notes": host.notes,
                "status": host.status,
                "seconds": host.seconds,
                "clock_ahead_s": host.clock_ahead_s,
                "figure": figure.map(|figure| figure.value),
                "low": bounds.map(|(low, _)| low),
                "high": bounds.map(|(_, high)| high),
                "verdict": figure.and_then(|figure| figure.verdict.as_ref()),
                "outlier": compared.outlying.get(at) == Some(&true),
                "answer": host.answer,
                "stderr": host.stderr,
                "runs": host.runs,
                "collected": host.collected,
            })
        })
        .collect();
    let document = json!({
        "schema": SCHEMA,
        "command": run.kind.word(),
        "disksmith": env!("CARGO_PKG_VERSION"),
        "fleet": run.id,
        "began": run.began,
        "args": run.args,
        "figure": compared.name,
        "median": compared.median,
        "hosts": hosts,
    });
    format!("{document:#}\n")
}
