//! Addresses of ClickHouse, and statements over its HTTP interface.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::store::redact::without_password;
use crate::store::{Result, StoreError};

/// Timeout of a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum bytes of an answer.
const MAX_RESPONSE_BYTES: u64 = 1 << 30;
const PORT: u16 = 8123;
/// HTTP statuses after which a retry is useless: the user is refused, or the database does not exist.
const PERMANENT_STATUSES: [u16; 3] = [401, 403, 404];
/// The first version that supports the tables and inserts used here.
const MIN_VERSION: (u32, u32) = (22, 2);

/// A database: `clickhouse://[USER@]HOST[:PORT]/DATABASE?outbox=FILE[&password-file=FILE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickhouseAddress {
    user: Option<String>,
    host: String,
    database: String,
    outbox: Option<PathBuf>,
    password_file: Option<PathBuf>,
}

impl FromStr for ClickhouseAddress {
    type Err = String;

    /// Parses the part of an address after `clickhouse://`.
    fn from_str(text: &str) -> std::result::Result<ClickhouseAddress, String> {
        let wrong = || {
            format!(
                "'{}' is no store; write it as clickhouse://user@host:8123/database?outbox=FILE",
                without_password(&format!("clickhouse://{text}"))
            )
        };
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        let (server, database) = place.split_once('/').ok_or_else(wrong)?;
        let (user, host) = match server.rsplit_once('@') {
            Some((user, host)) => (Some(user.to_owned()), host),
            None => (None, server),
        };
        if user.as_ref().is_some_and(|user| user.contains(':')) {
            return Err(
                "a password does not belong in an argument; put it into a file that ?password-file=FILE names"
                    .to_owned(),
            );
        }
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || one == '_')
        };
        if host.is_empty() || !is_name(database) {
            return Err(wrong());
        }
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let mut found = ClickhouseAddress {
            user,
            host: if has_port {
                host.to_owned()
            } else {
                format!("{host}:{PORT}")
            },
            database: database.to_owned(),
            outbox: None,
            password_file: None,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("outbox", path)) => found.outbox = Some(path.into()),
                Some(("password-file", path)) => found.password_file = Some(path.into()),
                _ => {
                    return Err(format!(
                        "'{option}' is no option of a store; there are outbox=FILE and password-file=FILE"
                    ));
                }
            }
        }
        Ok(found)
    }
}

impl fmt::Display for ClickhouseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("clickhouse://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        write!(f, "{}/{}", self.host, self.database)?;
        let mut sign = '?';
        for (name, file) in [
            ("outbox", &self.outbox),
            ("password-file", &self.password_file),
        ] {
            if let Some(file) = file {
                write!(f, "{sign}{name}={}", file.display())?;
                sign = '&';
            }
        }
        Ok(())
    }
}

impl ClickhouseAddress {
    /// Path of the outbox, which only writing needs.
    pub(super) fn outbox(&self) -> Result<PathBuf> {
        self.outbox.clone().ok_or_else(|| {
            StoreError::refused(format!(
                "{self} needs a file where batches wait until they are confirmed: ?outbox=FILE"
            ))
        })
    }

    /// Runs a statement, and returns its answer.
    pub(super) fn run(
        &self,
        statement: &str,
        options: &[(&str, &str)],
        data: &[u8],
    ) -> Result<String> {
        let password = match &self.password_file {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| StoreError::refused(linux::remedy::unread(path, &error)))?,
            None => String::new(),
        };
        let mut request = ureq::post(format!("http://{}/", self.host))
            .config()
            .http_status_as_error(false)
            .timeout_global(Some(STATEMENT_TIMEOUT))
            .build()
            .query("database", &self.database)
            .header(
                "X-ClickHouse-User",
                self.user.as_deref().unwrap_or("default"),
            )
            .header("X-ClickHouse-Key", password.trim());
        for (name, value) in options {
            request = request.query(*name, *value);
        }
        // Data goes in the body; the statement then goes in the URL.
        let answer = match data.is_empty() {
            true => request.send(statement.as_bytes()),
            false => request.query("query", statement).send(data),
        };
        let unavailable =
            |text: String| StoreError::Unavailable(anyhow::Error::msg(format!("{self}: {text}")));
        let mut answer = answer.map_err(|error| unavailable(error.to_string()))?;
        let status = answer.status().as_u16();
        let body = answer
            .body_mut()
            .with_config()
            .limit(MAX_RESPONSE_BYTES)
            .read_to_string();
        let body = body.map_err(|error| unavailable(error.to_string()))?;
        match status {
            200 => Ok(body),
            status if PERMANENT_STATUSES.contains(&status) => Err(StoreError::refused(format!(
                "{self}: {}",
                first_line(&body)
            ))),
            _ => Err(unavailable(first_line(&body).to_owned())),
        }
    }

    /// Returns an error unless the server's version is recent enough.
    pub(super) fn check_version(&self) -> Result<()> {
        let version = self.run("SELECT version()", &[], b"")?;
        let version = version.trim();
        match is_recent(version) {
            true => Ok(()),
            false => Err(StoreError::refused(format!(
                "{self} is ClickHouse {version}; this needs {}.{} or later",
                MIN_VERSION.0, MIN_VERSION.1
            ))),
        }
    }

    /// Rows of a query.
    pub(super) fn rows(&self, query: &str) -> Result<Vec<Vec<String>>> {
        let answer = self.run(&format!("{query} FORMAT TabSeparated"), &[], b"")?;
        let row = |line: &str| line.split('\t').map(unescaped).collect();
        Ok(answer.lines().map(row).collect())
    }
}

/// True of a version from [`MIN_VERSION`] on, and of a version that is not a number.
fn is_recent(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= MIN_VERSION,
        _ => true,
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A field of TabSeparated. Tags have no control characters, so that only the backslash is escaped.
fn unescaped(field: &str) -> String {
    field.replace("\\\\", "\\").replace("\\'", "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, expected) in [
            ("18.16.1", false),
            ("22.1.4.30", false),
            ("22.2.2.1", true),
            ("23.1", true),
            ("26.10.1.1", true),
            ("head", true),
        ] {
            assert_eq!(is_recent(version), expected, "{version}");
        }
    }

    #[test]
    fn addresses_are_read_and_written() {
        for text in ["a:8123/sums", "ann@a:1/sums?outbox=/o.db&password-file=/p"] {
            let server: ClickhouseAddress = text.parse().unwrap();
            assert_eq!(server.to_string(), format!("clickhouse://{text}"));
        }
        for wrong in ["a", "a/", "/x", "a/x;y", "a/x?tls=1"] {
            assert!(wrong.parse::<ClickhouseAddress>().is_err(), "{wrong}");
        }
        let error = "ann:s3cret@a/x".parse::<ClickhouseAddress>().unwrap_err();
        assert!(
            error.contains("password-file") && !error.contains("s3cret"),
            "{error}"
        );
    }
}
