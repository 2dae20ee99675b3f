//! A check: its rule, the source of the rule, and the function that judges facts by it.

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::facts::mysql::Mysql;
use crate::facts::postgres::Postgres;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    /// The setting is wrong, and the advice corrects it.
    Fix,
    /// Another setting is probably better.
    Consider,
    /// A fact is missing; the advice says how to get it.
    Unknown,
    /// The setting follows the rule.
    Ok,
}

impl CheckResult {
    /// All results, the most serious first.
    pub const ALL: [CheckResult; 4] = [
        CheckResult::Fix,
        CheckResult::Consider,
        CheckResult::Unknown,
        CheckResult::Ok,
    ];

    /// Name of the result, in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            CheckResult::Fix => "fix",
            CheckResult::Consider => "consider",
            CheckResult::Unknown => "unknown",
            CheckResult::Ok => "ok",
        }
    }
}

/// Part of the machine that a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Area {
    /// The kernel, the disks and the programs.
    Host,
    /// MySQL and MariaDB.
    Mysql,
    /// Statements that cannot use their index.
    Sql,
    /// PostgreSQL.
    Postgres,
    /// Backups and replicas.
    Safety,
}

impl Area {
    /// Name of the area, in tables and JSON, and for `--check` and `--ignore`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Area::Host => "host",
            Area::Mysql => "mysql",
            Area::Sql => "sql",
            Area::Postgres => "postgres",
            Area::Safety => "safety",
        }
    }
}

/// Certainty of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The source states the rule as it is applied.
    Documented,
    /// The rule follows from the source, with a threshold of this program.
    Inferred,
}

/// A check.
pub(crate) struct Check {
    /// Name of the check, for `--check` and `--ignore`.
    pub(crate) name: &'static str,
    /// Part of the machine that it is about.
    pub(crate) area: Area,
    /// The files or settings that it reads.
    pub(crate) reads: &'static str,
    /// Rule by which the facts are judged, as a sentence.
    pub(crate) rule: &'static str,
    /// Document that states the rule, or from which it follows.
    pub(crate) source: &'static str,
    /// Certainty of the rule.
    pub(crate) basis: Basis,
    /// Page in `docs/playbooks/`, without its ending.
    pub(crate) playbook: &'static str,
    /// Function that judges the facts. It returns a judgement for each object that the check is about, such as each
    /// disk; empty where there is none.
    pub(crate) judge: fn(&Facts) -> Vec<Judgement>,
}

/// Judgement of a check about one object, such as a disk or a setting.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    /// Result of the check.
    pub(crate) result: CheckResult,
    /// The value that was read, with the name of the setting or file.
    pub(crate) value: String,
    /// Measurement on which the judgement is based.
    pub(crate) evidence: Option<String>,
    /// Advice as sentences; empty where nothing is to be done.
    pub(crate) advice: String,
    /// Command that carries out the advice; this program never runs it.
    pub(crate) command: Option<String>,
}

impl Judgement {
    pub(crate) fn new(
        result: CheckResult,
        value: impl Into<String>,
        advice: impl Into<String>,
    ) -> Judgement {
        Judgement {
            result,
            value: value.into(),
            evidence: None,
            advice: advice.into(),
            command: None,
        }
    }

    pub(crate) fn ok(value: impl Into<String>) -> Judgement {
        Judgement::new(CheckResult::Ok, value, "")
    }

    pub(crate) fn consider(value: impl Into<String>, advice: impl Into<String>) -> Judgement {
        Judgement::new(CheckResult::Consider, value, advice)
    }

    pub(crate) fn fix(value: impl Into<String>, advice: impl Into<String>) -> Judgement {
        Judgement::new(CheckResult::Fix, value, advice)
    }

    pub(crate) fn unknown(value: impl Into<String>, advice: impl Into<String>) -> Judgement {
        Judgement::new(CheckResult::Unknown, value, advice)
    }

    /// Adds the measurement on which the judgement is based.
    pub(crate) fn evidence(self, text: impl Into<String>) -> Judgement {
        Judgement {
            evidence: Some(text.into()),
            ..self
        }
    }

    /// Adds the command that carries out the advice.
    pub(crate) fn command(self, text: impl Into<String>) -> Judgement {
        Judgement {
            command: Some(text.into()),
            ..self
        }
    }
}

/// A judgement with its check: a row of the output.
pub(crate) struct CheckRow {
    pub(crate) check: &'static Check,
    pub(crate) judgement: Judgement,
}

impl CheckRow {
    pub(crate) fn result(&self) -> CheckResult {
        self.judgement.result
    }

    /// The source of the rule, with its certainty.
    pub(crate) fn source(&self) -> String {
        let basis = match self.check.basis {
            Basis::Documented => "documented",
            Basis::Inferred => "inferred",
        };
        format!("{} ({basis})", self.check.source)
    }

    /// The command that prints the page of a finding.
    pub(crate) fn playbook(&self) -> String {
        format!("disksmith playbook {}", self.check.playbook)
    }

    /// True where something is to be done or considered.
    pub(crate) fn is_finding(&self) -> bool {
        matches!(self.result(), CheckResult::Fix | CheckResult::Consider)
    }
}

/// Judges facts by checks.
pub(crate) fn judge<'a>(
    checks: impl IntoIterator<Item = &'static Check> + 'a,
    facts: &'a Facts,
) -> Vec<CheckRow> {
    let rows = checks.into_iter().flat_map(|check| {
        let judgements = (check.judge)(facts).into_iter();
        judgements.map(move |judgement| CheckRow { check, judgement })
    });
    let mut rows: Vec<CheckRow> = rows.collect();
    rows.sort_by_key(|row| (row.result(), row.check.area));
    rows
}

/// A count, without decimals.
pub(crate) fn format_count(count: f64) -> String {
    match count < 1000.0 {
        true => format!("{count:.0}"),
        false => ui::format::number(count),
    }
}

/// Judgement of a MySQL or MariaDB server; empty where none was queried.
pub(crate) fn of_mysql(
    facts: &Facts,
    judge: fn(&Facts, &Mysql) -> Option<Judgement>,
) -> Vec<Judgement> {
    let judgement = facts.mysql.as_ref().and_then(|mysql| judge(facts, mysql));
    judgement.into_iter().collect()
}

/// Judgement of a PostgreSQL server; empty where none was queried.
pub(crate) fn of_postgres(
    facts: &Facts,
    judge: fn(&Facts, &Postgres) -> Option<Judgement>,
) -> Vec<Judgement> {
    let postgres = facts.postgres.as_ref();
    postgres
        .and_then(|server| judge(facts, server))
        .into_iter()
        .collect()
}
