//! Reads statements from a slow log of MySQL or MariaDB, or from a file of SQL.

pub mod tokens;

use tokens::{LineEndContext, fingerprint, tokens};

/// A statement, and the schema in which it was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Default schema of the statement; `None` if the log does not give it.
    pub schema: Option<String>,
    /// The statement, without the semicolon.
    pub text: String,
}

/// The statements of a slow log of MySQL or MariaDB, or of a file of SQL.
pub fn parse(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut schema: Option<String> = None;
    let mut open = String::new();
    let mut within = LineEndContext::default();
    for line in text.lines() {
        let is_between = open.trim().is_empty() || is_header(line);
        if let Some(header) = line.strip_prefix("# ").filter(|_| is_between) {
            // A statement without an end was cut off by a log rotation.
            open.clear();
            within = LineEndContext::default();
            schema = schema_of(header).or(schema);
            continue;
        }
        if is_end_of_start(line) && open.contains(", Version: ") {
            open.clear();
            within = LineEndContext::default();
            continue;
        }
        open.push_str(line);
        open.push('\n');
        within = within.after(line);
        if !line.trim_end().ends_with(';') || within != LineEndContext::Statement {
            continue;
        }
        let statement = std::mem::take(&mut open);
        let statement = statement.trim().trim_end_matches(';').trim_end();
        let first = statement.split_whitespace().next().unwrap_or_default();
        if first.eq_ignore_ascii_case("use") {
            let name = statement[first.len()..].trim().trim_matches('`');
            schema = Some(name.to_owned());
        } else if !statement.is_empty() && !is_of_the_log(statement) {
            found.push(Statement {
                schema: schema.clone(),
                text: statement.to_owned(),
            });
        }
    }
    let rest = open.trim();
    if !rest.is_empty() && tokens(rest).is_some_and(|tokens| !tokens.is_empty()) {
        found.push(Statement {
            schema,
            text: rest.to_owned(),
        });
    }
    found
}

/// True if this is the last of the lines that a server writes when it starts.
fn is_end_of_start(line: &str) -> bool {
    line.split_whitespace()
        .eq(["Time", "Id", "Command", "Argument"])
}

/// True if the log added this statement, to record the session's state.
fn is_of_the_log(statement: &str) -> bool {
    let states = ["SET timestamp=", "SET insert_id=", "SET last_insert_id="];
    states.iter().any(|state| statement.starts_with(state))
}

/// True if this is the first header line of a statement; it also ends a statement that was cut off.
fn is_header(line: &str) -> bool {
    let first = ["# Time:", "# User@Host:"];
    first.iter().any(|header| line.starts_with(header))
}

/// Schema in a header of MariaDB or Percona Server: `Thread_id: 4  Schema: app  QC_hit: No`.
fn schema_of(header: &str) -> Option<String> {
    let mut words = header.split_whitespace();
    words.find(|word| *word == "Schema:")?;
    let name = words.next().filter(|name| !name.ends_with(':'))?;
    Some(name.to_owned())
}

/// The first statement of each kind; statements that differ only in literals are of the same kind.
pub fn distinct(statements: Vec<Statement>) -> Vec<Statement> {
    let mut seen = std::collections::BTreeSet::new();
    let mut statements = statements;
    statements.retain(|one| seen.insert((one.schema.clone(), fingerprint(&one.text))));
    statements
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOW_LOG: &str = "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB. started with:\n\
        Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\n\
        Time\t\t    Id Command\tArgument\n\
        # Time: 261124 11:00:00\n\
        # User@Host: app[app] @ localhost []\n\
        # Thread_id: 4  Schema: app  QC_hit: No\n\
        # Query_time: 2.000100  Lock_time: 0.000050  Rows_sent: 0  Rows_examined: 900000\n\
        # Rows_affected: 3  Bytes_sent: 11\n\
        SET timestamp=1732446000;\n\
        DELETE FROM a\n  WHERE v = 5 AND w = 'x;\ny';\n\
        # User@Host: app[app] @ localhost []\n\
        use other;\n\
        SET timestamp=1732446001;\n\
        select * from b where v = 6;\n\
        # User@Host: app[app] @ localhost []\n\
        SET last_insert_id=3,insert_id=4,timestamp=1732446002;\n\
        insert into b (v) values (7);\n\
        /usr/sbin/mariadbd, Version: 10.11.6-MariaDB. started with:\n\
        Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\n\
        Time\t\t    Id Command\tArgument\n";

    #[test]
    fn a_slow_log_gives_statements_with_their_schema() {
        let found = parse(SLOW_LOG);
        let found: Vec<(Option<&str>, &str)> = found
            .iter()
            .map(|one| (one.schema.as_deref(), one.text.as_str()))
            .collect();
        assert!(
            found[0]
                .1
                .ends_with("DELETE FROM a\n  WHERE v = 5 AND w = 'x;\ny'"),
            "{found:?}"
        );
        assert_eq!(found[0].0, Some("app"));
        assert_eq!(found[1], (Some("other"), "select * from b where v = 6"));
        assert_eq!(found[2], (Some("other"), "insert into b (v) values (7)"));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_file_of_statements_is_read_and_repeated_ones_are_one() {
        let found = parse("use app;\nselect 1;\nselect 2;\n-- a note\nupdate t set a=1 where b=2");
        assert_eq!(found.len(), 3);
        assert_eq!(distinct(found).len(), 2);
        assert!(parse("").is_empty());
    }

    #[test]
    fn statements_of_a_dump_end_after_comments_that_servers_execute() {
        let found = parse("/*!40101 SET NAMES utf8 */;\nselect 1;\n");
        assert_eq!(found.len(), 2, "{found:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = parse(&text);
        }
    }
}
