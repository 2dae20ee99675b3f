//! MySQL and MariaDB through `mariadb` or `mysql`.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

use super::{STATEMENT_S, is_installed, output, percent_decoded};

/// A row: values by the lower-case names of their columns.
pub(crate) type MysqlRow = BTreeMap<String, String>;

/// Column name and value of the row that separates two results.
const RESULT_SEPARATOR: &str = "disksmith-next-result";

/// A server, with the arguments by which its client reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MysqlClient {
    program: &'static str,
    args: Vec<String>,
}

impl MysqlClient {
    /// Client for a URL, `mysql://[USER@][HOST[:PORT]][/DATABASE][?socket=PATH]`; for an empty one, the server of the
    /// client's own option files.
    ///
    /// # Errors
    /// When the URL is invalid or contains a password, or no client is installed.
    pub(crate) fn of(url: &str) -> anyhow::Result<MysqlClient> {
        let args = arguments(url)?;
        let programs = ["mariadb", "mysql"];
        let program = programs.into_iter().find(|program| is_installed(program));
        let program = program.context(
            "no client of MySQL is on the PATH; install mariadb-client or mysql-client, which reads your credentials",
        )?;
        Ok(MysqlClient { program, args })
    }

    /// Returns the rows of a statement.
    ///
    /// # Errors
    /// When the client or the statement fails.
    pub(crate) fn rows(&self, statement: &str) -> anyhow::Result<Vec<MysqlRow>> {
        Ok(self.results(None, &[statement])?.pop().unwrap_or_default())
    }

    /// Returns the results of statements in one read-only session.
    ///
    /// # Errors
    /// When the client or one of the statements fails.
    pub(crate) fn results(
        &self,
        database: Option<&str>,
        statements: &[&str],
    ) -> anyhow::Result<Vec<Vec<MysqlRow>>> {
        // MySQL and MariaDB each ignore the comment for the other.
        let mut script = format!(
            "SET SESSION TRANSACTION READ ONLY; /*M!100101 SET SESSION max_statement_time={STATEMENT_S} */; \
             /*!50708 SET SESSION max_execution_time={STATEMENT_S}000 */"
        );
        for statement in statements {
            script.push_str(&format!(
                "; SELECT '{RESULT_SEPARATOR}' AS `{RESULT_SEPARATOR}`; {statement}"
            ));
        }
        let mut args = self.args.clone();
        args.extend(["--batch", "--connect-timeout=10"].map(str::to_owned));
        args.extend(database.map(|name| format!("--database={name}")));
        args.push(format!("--execute={script}"));
        let text = output(self.program, &args)?;
        let next = format!("{RESULT_SEPARATOR}\n{RESULT_SEPARATOR}\n");
        let results = text.split(&next).skip(1);
        Ok(results.map(table).collect())
    }
}

/// Arguments of the client for a URL.
fn arguments(url: &str) -> anyhow::Result<Vec<String>> {
    let Some(rest) = url
        .strip_prefix("mysql://")
        .or(url.strip_prefix("mariadb://"))
    else {
        if url.is_empty() {
            return Ok(Vec::new());
        }
        bail!("'{url}' is no URL of MySQL; write mysql://USER@HOST:PORT, or mysql://?socket=PATH");
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (rest, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, server) = rest.rsplit_once('@').unwrap_or(("", rest));
    if user.contains(':') {
        bail!(
            "the URL has a password, which every user of this host could read; write it into ~/.my.cnf, below [client]"
        );
    }
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|c| c.is_ascii_digit()) => (host, port),
        _ => (server, ""),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut args = Vec::new();
    let mut add = |name: &str, value: &str| -> anyhow::Result<()> {
        if !value.is_empty() {
            let value = percent_decoded(value).context("the URL is no UTF-8")?;
            args.push(format!("--{name}={value}"));
        }
        Ok(())
    };
    add("user", user)?;
    add("host", host)?;
    add("port", port)?;
    add("database", database)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("socket", path)) => add("socket", path)?,
            _ => bail!("'{pair}' in the URL is not understood; socket=PATH is"),
        }
    }
    Ok(args)
}

/// Rows of a result in the client's format of `--batch`: cells are separated by tabs, and tabs, newlines and
/// backslashes within them are escaped with a backslash.
fn table(text: &str) -> Vec<MysqlRow> {
    let mut lines = text.lines();
    let titles: Vec<String> = lines
        .next()
        .unwrap_or_default()
        .split('\t')
        .map(|title| title.to_lowercase())
        .collect();
    let row = |line: &str| {
        let cells = line.split('\t').map(unescaped);
        titles.iter().cloned().zip(cells).collect()
    };
    lines.map(row).collect()
}

fn unescaped(cell: &str) -> String {
    let mut text = String::with_capacity(cell.len());
    let mut chars = cell.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('0') => text.push('\0'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_url_becomes_arguments_and_a_password_is_refused() {
        let of = |url: &str| arguments(url).unwrap().join(" ");
        for (url, expected) in [
            ("", ""),
            ("mysql://", ""),
            ("mysql://db1", "--host=db1"),
            (
                "mysql://me@db1:3307/app",
                "--user=me --host=db1 --port=3307 --database=app",
            ),
            (
                "mariadb://root@?socket=/run/a%20b",
                "--user=root --socket=/run/a b",
            ),
            ("mysql://[::1]:3306", "--host=::1 --port=3306"),
        ] {
            assert_eq!(of(url), expected, "{url}");
        }
        for (url, word) in [
            ("mysql://me:secret@db1", "~/.my.cnf"),
            ("db1", "no URL"),
            ("mysql://db1?ssl=1", "ssl=1"),
        ] {
            let error = arguments(url).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn cells_are_what_they_were() {
        let rows = table("Name\tValue\na\t1\\t2\\n3\\\\\nb\t\n");
        assert_eq!(rows[0]["value"], "1\t2\n3\\");
        assert_eq!(rows[1]["value"], "");
    }

    proptest! {
        #[test]
        fn any_output_is_read(text: String) {
            let _ = table(&text);
            let _ = arguments(&text);
        }
    }
}
