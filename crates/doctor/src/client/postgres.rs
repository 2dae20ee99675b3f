//! PostgreSQL through `psql`.

use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;

use super::{STATEMENT_S, is_installed, output};

/// A server, with the arguments by which psql reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostgresClient {
    /// Connection URI or string of libpq; empty for its environment and defaults.
    connection: String,
}

impl PostgresClient {
    /// Client for a connection string or URI of libpq.
    ///
    /// # Errors
    /// When it contains a password, or psql is missing.
    pub(crate) fn of(connection: &str) -> anyhow::Result<PostgresClient> {
        if has_password(connection) {
            bail!(
                "the connection has a password, which every user of this host could read; write it into ~/.pgpass"
            );
        }
        if !is_installed("psql") {
            bail!(
                "psql is not on the PATH; install postgresql-client, which reads your credentials"
            );
        }
        Ok(PostgresClient {
            connection: connection.to_owned(),
        })
    }

    /// Returns the rows of a query, each deserialized from its columns.
    ///
    /// # Errors
    /// When psql or the query fails, or a row cannot be deserialized.
    pub(crate) fn rows<T: DeserializeOwned>(&self, query: &str) -> anyhow::Result<Vec<T>> {
        let mut args: Vec<String> = Vec::new();
        // An option rather than an argument, which psql could take for the name of a database.
        if !self.connection.is_empty() {
            args.push(format!("--dbname={}", self.connection));
        }
        args.extend(["-X", "-A", "-t", "-q", "-w", "-v", "ON_ERROR_STOP=1"].map(str::to_owned));
        let json = format!("SELECT coalesce(json_agg(row_to_json(q)), '[]') FROM ({query}) AS q");
        for command in [
            "SET default_transaction_read_only = on",
            &format!("SET statement_timeout = '{STATEMENT_S}s'"),
            &json,
        ] {
            args.push("-c".to_owned());
            args.push(command.to_owned());
        }
        let text = output("psql", &args)?;
        serde_json::from_str(&text).context("psql printed something other than the requested rows")
    }
}

/// True if a URI or a connection string contains a password.
fn has_password(connection: &str) -> bool {
    let of_uri = connection
        .split_once("://")
        .map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default())
        .and_then(|authority| authority.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(':'));
    let squeezed: String = connection.chars().filter(|c| !c.is_whitespace()).collect();
    of_uri || squeezed.contains("password=")
}

#[cfg(test)]
mod tests {
    use super::has_password;

    #[test]
    fn passwords_are_seen() {
        for (connection, expected) in [
            ("postgresql://me@db1/app", false),
            ("postgresql://me:secret@db1/app", true),
            ("postgresql:///app?host=/tmp&password=x", true),
            ("host=/tmp password = x", true),
            ("service=app", false),
            ("", false),
        ] {
            assert_eq!(has_password(connection), expected, "{connection}");
        }
    }
}
