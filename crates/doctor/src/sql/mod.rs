//! Statements that cannot use their index, which EXPLAIN reports in a note (MySQL: warning 1739; MariaDB 10.6.16 and
//! later: note 1105). The text is always EXPLAIN followed by the SELECT of [`select::as_select`], so that the statement
//! itself is never executed. It is prepared, so that the server accepts only a single statement, whatever the text is.

mod out_of_range;
pub(crate) mod select;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use linux::root::read_bytes;

use crate::client::mysql::{MysqlClient, MysqlRow};
use formats::slow_log::{Statement, distinct, parse};
use select::as_select;
use ui::format::hex;

/// Maximum number of kinds of statements that are explained.
const MAX_STATEMENTS: usize = 200;
/// Time limit for explaining all statements.
const EXPLAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes of a slow log that are read, from its end.
const MAX_SLOW_LOG_BYTES: usize = 16 << 20;
/// Number of rows below which a full scan of a table is negligible.
const FEW_ROWS: f64 = 100.0;

/// A statement that cannot use its index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnusableIndex {
    pub(crate) statement: Statement,
    /// Reason: the server's note, or a sentence of this program for a literal out of range.
    pub(crate) reason: String,
    /// Number of rows to read, as estimated by EXPLAIN.
    pub(crate) rows: Option<f64>,
}

/// Statements that were explained.
#[derive(Default)]
pub(crate) struct ExplainedStatements {
    /// The places that statements were taken from.
    pub(crate) sources: Vec<String>,
    pub(crate) explained: usize,
    /// Number of statements that were left out.
    pub(crate) left_out: usize,
    /// Reason why the first of them was left out.
    pub(crate) why_left_out: Option<String>,
    /// True if the server reports an index that it cannot use.
    pub(crate) has_notes: bool,
    pub(crate) unusable: Vec<UnusableIndex>,
}

/// The server whose statements are explained.
pub(crate) struct ExplainedServer<'a> {
    pub(crate) client: &'a MysqlClient,
    /// True if its version reports an index that it cannot use.
    pub(crate) has_notes: bool,
    /// Slow log of the server; `None` where it is not on this host.
    pub(crate) slow_log: Option<&'a Path>,
}

/// Explains the statements of a file, or those in the server's history.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn explain(
    server: &ExplainedServer<'_>,
    file: Option<&Path>,
) -> anyhow::Result<ExplainedStatements> {
    let mut found = ExplainedStatements {
        has_notes: server.has_notes,
        ..ExplainedStatements::default()
    };
    let statements = match file {
        Some(path) => {
            found.sources.push(path.display().to_string());
            let bytes = read_bytes(path).context("the statements cannot be explained")?;
            parse(&String::from_utf8_lossy(&bytes))
        }
        None => remembered(server, &mut found.sources),
    };
    let began = Instant::now();
    for (at, statement) in distinct(statements).into_iter().enumerate() {
        let is_over = at >= MAX_STATEMENTS || began.elapsed() > EXPLAIN_TIMEOUT;
        let judged = match is_over {
            true => Err(format!(
                "no more than {MAX_STATEMENTS} statements are explained, for {} s",
                EXPLAIN_TIMEOUT.as_secs()
            )),
            false => explain_one(server.client, &statement),
        };
        match judged {
            Ok(unusable) => {
                found.explained += 1;
                found.unusable.extend(unusable);
            }
            Err(why) => {
                found.left_out += 1;
                found.why_left_out.get_or_insert(why);
            }
        }
    }
    found
        .unusable
        .sort_by(|a, b| b.rows.unwrap_or(0.0).total_cmp(&a.rows.unwrap_or(0.0)));
    Ok(found)
}

/// Explains a statement; `None` where it can use its index.
fn explain_one(
    client: &MysqlClient,
    statement: &Statement,
) -> Result<Option<UnusableIndex>, String> {
    let select = as_select(&statement.text).map_err(str::to_owned)?;
    let hex = hex(format!("EXPLAIN {select}").as_bytes());
    let script = [
        format!("SET @disksmith = CONVERT(0x{hex} USING utf8mb4)"),
        "PREPARE disksmith FROM @disksmith".to_owned(),
        "EXECUTE disksmith".to_owned(),
        "SHOW WARNINGS".to_owned(),
    ];
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let results = client
        .results(statement.schema.as_deref(), &script)
        .map_err(|error| error.to_string())?;
    let (plan, notes) = match results.as_slice() {
        [.., plan, notes] => (plan, notes),
        _ => return Err("the client printed no plan".to_owned()),
    };
    let rows = plan
        .iter()
        .filter_map(|row| row.get("rows")?.parse().ok())
        .reduce(f64::max);
    let reason = notes
        .iter()
        .find_map(note)
        .or_else(|| out_of_range::find(client, statement, &select, plan));
    Ok(reason
        .filter(|_| rows.is_none_or(|rows| rows >= FEW_ROWS))
        .map(|reason| UnusableIndex {
            statement: statement.clone(),
            reason,
            rows,
        }))
}

/// The note that a key cannot be used.
fn note(row: &MysqlRow) -> Option<String> {
    let message = row.get("message")?;
    let is_note = match row.get("code")?.as_str() {
        "1739" => true,
        "1105" => message.starts_with("Cannot use key"),
        _ => false,
    };
    is_note.then(|| message.clone())
}

/// Statements in the server's history: samples of digests (MySQL 8), the statement history, the slow log. Adds their
/// names to `sources`.
fn remembered(server: &ExplainedServer<'_>, sources: &mut Vec<String>) -> Vec<Statement> {
    let mut found = Vec::new();
    for (source, query) in [
        (
            "samples of digests",
            "SELECT schema_name AS s, query_sample_text AS q FROM \
             performance_schema.events_statements_summary_by_digest \
             WHERE query_sample_text IS NOT NULL ORDER BY sum_timer_wait DESC LIMIT 1000",
        ),
        (
            "the history of statements",
            "SELECT current_schema AS s, sql_text AS q FROM performance_schema.events_statements_history_long \
             WHERE sql_text IS NOT NULL ORDER BY timer_wait DESC LIMIT 1000",
        ),
        (
            "the history of statements of each thread",
            "SELECT current_schema AS s, sql_text AS q FROM performance_schema.events_statements_history \
             WHERE sql_text IS NOT NULL ORDER BY timer_wait DESC LIMIT 1000",
        ),
        (
            "mysql.slow_log",
            "SELECT db AS s, CONVERT(sql_text USING utf8mb4) AS q FROM mysql.slow_log \
             ORDER BY query_time DESC LIMIT 1000",
        ),
    ] {
        let rows = server.client.rows(query).unwrap_or_default();
        if !rows.is_empty() {
            sources.push(source.to_owned());
        }
        found.extend(rows.into_iter().filter_map(|mut row| {
            let schema = row
                .remove("s")
                .filter(|name| !name.is_empty() && name != "NULL");
            Some(Statement {
                schema,
                text: row.remove("q")?,
            })
        }));
    }
    if let Some((path, bytes)) = server
        .slow_log
        .and_then(|path| Some((path, read_bytes(path).ok()?)))
    {
        let tail = &bytes[bytes.len().saturating_sub(MAX_SLOW_LOG_BYTES)..];
        let statements = parse(&String::from_utf8_lossy(tail));
        if !statements.is_empty() {
            sources.push(path.display().to_string());
        }
        found.extend(statements);
    }
    found
}
