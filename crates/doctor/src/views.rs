//! Output of `doctor`: text, JSON, a line for Nagios, and a page.

use askama::Template;
use serde::Serialize;

use crate::check::{Area, Check, CheckResult, CheckRow};
use crate::facts::Facts;
use ui::output::OutputFile;
use ui::table::wrap;

/// Indentation of the text beside the names of a finding's parts.
const INDENT: &str = "            ";

/// The document of `doctor --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Judgements of the checks, the gravest first.
    checks: Vec<RowDocument<'a>>,
}

/// Judgement of a check about one thing, such as a disk or a setting.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RowDocument<'a> {
    /// Name of the check, by which `--check` and `--ignore` choose it.
    name: &'a str,
    /// Part of the machine that it is about.
    area: Area,
    /// Result of the check.
    result: CheckResult,
    /// Value that was found, with the place where it was read.
    value: &'a str,
    /// Measurement that the judgement rests on; `null` where there is none.
    evidence: Option<&'a str>,
    /// Rule by which the value was judged, as a sentence.
    rule: &'a str,
    /// Document in which the rule stands, with `documented` (the document states the rule) or `inferred` (its
    /// threshold is this program's).
    source: String,
    /// Advice as sentences; empty where nothing is to be done.
    advice: String,
    /// Command that does what is advised, which is never run here; `null` where there is none.
    command: Option<&'a str>,
}

impl<'a> RowDocument<'a> {
    fn of(row: &'a CheckRow) -> RowDocument<'a> {
        let judgement = &row.judgement;
        RowDocument {
            name: row.check.name,
            area: row.check.area,
            result: row.result(),
            value: &judgement.value,
            evidence: judgement.evidence.as_deref(),
            rule: row.check.rule,
            source: row.source(),
            advice: match row.is_finding() {
                true => format!("{} See '{}'.", judgement.advice, row.playbook()),
                false => judgement.advice.clone(),
            },
            command: judgement.command.as_deref(),
        }
    }
}

/// The results as one JSON document.
pub(crate) fn json(rows: &[CheckRow]) -> String {
    let checks = rows.iter().map(RowDocument::of).collect();
    ui::json::document("doctor", &Document { checks })
}

/// The results as text: findings in full, unknown results in short, and passed checks only with `with_ok`.
pub(crate) fn text(rows: &[CheckRow], with_ok: bool, columns: usize) -> String {
    if rows.is_empty() {
        let none = "None of these checks applies here. Those of a database need one that is named: disksmith doctor --mysql\n";
        return wrap(none, columns, "");
    }
    let mut text = String::new();
    for row in rows {
        match row.result() {
            CheckResult::Fix | CheckResult::Consider => text.push_str(&finding(row, columns)),
            CheckResult::Unknown => text.push_str(&short(row, &row.judgement.advice, columns)),
            CheckResult::Ok if with_ok => {
                let evidence = row.judgement.evidence.as_deref().unwrap_or_default();
                text.push_str(&short(row, evidence, columns));
            }
            CheckResult::Ok => {}
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let more = match with_ok || rows.iter().all(|row| row.result() != CheckResult::Ok) {
        true => ".",
        false => "; --all shows these too.",
    };
    text.push_str(&wrap(&format!("{}{more}", counts(rows)), columns, "  "));
    text.push('\n');
    text
}

fn counts(rows: &[CheckRow]) -> String {
    let of = |result| rows.iter().filter(|row| row.result() == result).count();
    format!(
        "{} to fix, {} to consider, {} unknown, {} ok",
        of(CheckResult::Fix),
        of(CheckResult::Consider),
        of(CheckResult::Unknown),
        of(CheckResult::Ok)
    )
}

/// A name with wrapped text beside it, or below it in a narrow window.
fn line(name: &str, text: &str, columns: usize) -> String {
    let indent = if columns > 60 { INDENT } else { "    " };
    let text = wrap(&format!("{indent}{text}"), columns, indent);
    match text.strip_prefix(INDENT).filter(|_| columns > 60) {
        Some(rest) => format!("{name:<width$}{rest}\n", width = INDENT.len()),
        None => format!("{name}\n{text}\n"),
    }
}

fn finding(row: &CheckRow, columns: usize) -> String {
    let judgement = &row.judgement;
    let mut text = line(
        &row.result().name().to_uppercase(),
        &format!("{}: {}", row.check.name, judgement.value),
        columns,
    );
    let mut part = |name: &str, content: &str| {
        if !content.is_empty() {
            text.push_str(&line(&format!("  {name}"), content, columns));
        }
    };
    part("do", &judgement.advice);
    part(
        "rule",
        &format!("{} Source: {}", row.check.rule, row.source()),
    );
    part(
        "evidence",
        judgement.evidence.as_deref().unwrap_or_default(),
    );
    part("command", judgement.command.as_deref().unwrap_or_default());
    part("more", &row.playbook());
    text.push('\n');
    text
}

fn short(row: &CheckRow, rest: &str, columns: usize) -> String {
    let dot = if rest.is_empty() { "" } else { ". " };
    let text = format!("{}: {}{dot}{rest}", row.check.name, row.judgement.value);
    line(row.result().name(), &text, columns)
}

/// The checks with their rules.
pub(crate) fn list(checks: &[&Check], columns: usize) -> String {
    let one = |check: &&Check| {
        format!(
            "{} ({})\n{}\n{}\n{}\n",
            check.name,
            check.area.name(),
            wrap(&format!("  {}", check.rule), columns, "  "),
            wrap(&format!("  Reads {}.", check.reads), columns, "  "),
            wrap(&format!("  Source: {}.", check.source), columns, "  ")
        )
    };
    checks.iter().map(one).collect()
}

/// Exit status and line in the form of a Nagios plugin.
pub(crate) fn nagios(rows: &[CheckRow]) -> (u8, String) {
    let of = |result| rows.iter().filter(move |row| row.result() == result);
    let count = |result| of(result).count();
    let (status, word) = match () {
        () if count(CheckResult::Fix) > 0 => (2, "CRITICAL"),
        () if count(CheckResult::Consider) > 0 => (1, "WARNING"),
        () => (0, "OK"),
    };
    let mut names: Vec<&str> = of(CheckResult::Fix)
        .chain(of(CheckResult::Consider))
        .map(|row| row.check.name)
        .collect();
    names.dedup();
    let names = match names.is_empty() {
        true => String::new(),
        false => format!(": {}", names.join(", ")),
    };
    let figures: Vec<String> = CheckResult::ALL
        .iter()
        .map(|result| format!("{}={}", result.name(), count(*result)))
        .collect();
    (
        status,
        format!(
            "DISKSMITH {word} - {}{names} | {}\n",
            counts(rows),
            figures.join(" ")
        ),
    )
}

/// Exit status and line of a failed check in the form of a Nagios plugin.
pub(crate) fn nagios_unknown(why: &str) -> (u8, String) {
    (
        3,
        format!("DISKSMITH UNKNOWN - {}\n", why.replace(['|', '\n'], " ")),
    )
}

/// The main part of the page.
#[derive(Template)]
#[template(path = "doctor.html")]
struct Page<'a> {
    host: &'a str,
    counts: String,
    sections: Vec<Section<'a>>,
}

/// Rows of one result.
struct Section<'a> {
    word: &'static str,
    title: &'static str,
    class: &'static str,
    rows: Vec<RowDocument<'a>>,
}

/// Writes the page.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_page(
    output: &OutputFile,
    facts: &Facts,
    rows: &[CheckRow],
) -> anyhow::Result<()> {
    let section = |result: CheckResult| {
        let (title, class) = match result {
            CheckResult::Fix => ("To fix", "invalid"),
            CheckResult::Consider => ("To consider", "doubtful"),
            CheckResult::Unknown => ("Unknown", "note"),
            CheckResult::Ok => ("Well", "trusted"),
        };
        let own = rows.iter().filter(|row| row.result() == result);
        Section {
            word: result.name(),
            title,
            class,
            rows: own.map(RowDocument::of).collect(),
        }
    };
    let main = Page {
        host: &facts.host.name,
        counts: counts(rows),
        sections: CheckResult::ALL
            .map(section)
            .into_iter()
            .filter(|one| !one.rows.is_empty())
            .collect(),
    };
    let title = format!("{}: checks – disksmith", facts.host.name);
    output.write(&page::page(
        &title,
        Some(page::TABLE_STYLE),
        &main,
        &page::Figures::default(),
    )?)
}
