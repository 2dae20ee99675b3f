//! Addresses of MySQL and MariaDB, and where passwords come from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use mysql::{OptsBuilder, SslOpts};

use crate::store::redact::without_password;
use crate::store::{Result, StoreError};

/// Timeout to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for an answer: the server waits for a lock up to 50 s (`innodb_lock_wait_timeout`).
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(120);
const PORT: u16 = 3306;

/// A database of a server: `mysql://[USER@]HOST[:PORT]/DATABASE[?defaults-file=FILE][&socket=PATH][&ssl-ca=FILE]`. What
/// is left out is taken from `[client]` of `~/.my.cnf` or of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlAddress {
    user: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    socket: Option<String>,
    /// CA certificates, by one of which the server's must be signed; with them, the connection is encrypted.
    ssl_ca: Option<PathBuf>,
    database: String,
    defaults_file: Option<PathBuf>,
}

impl FromStr for MysqlAddress {
    type Err = String;

    /// Parses the part of an address after `mysql://`.
    fn from_str(text: &str) -> std::result::Result<MysqlAddress, String> {
        let wrong = || {
            format!(
                "'{}' is no store; write it as mysql://user@host:3306/database",
                without_password(&format!("mysql://{text}"))
            )
        };
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        let (server, database) = place.split_once('/').ok_or_else(wrong)?;
        let (user, host) = match server.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, server),
        };
        if user.is_some_and(|user| user.contains(':')) {
            // Arguments are seen by everyone on the host.
            return Err("a password does not belong in an argument; put it into ~/.my.cnf, or into a file that \
                        ?defaults-file=FILE names"
                .to_owned());
        }
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (host, None),
        };
        let is_name = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|one| one.is_alphanumeric() || matches!(one, '_' | '-' | '$'))
        };
        if !is_name(database) {
            return Err(wrong());
        }
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut found = MysqlAddress {
            user: user.and_then(some),
            host: some(host),
            port,
            socket: None,
            ssl_ca: None,
            database: database.to_owned(),
            defaults_file: None,
        };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("socket", path)) => found.socket = Some(path.to_owned()),
                Some(("ssl-ca", path)) => found.ssl_ca = Some(path.into()),
                Some(("defaults-file", path)) => found.defaults_file = Some(path.into()),
                _ => {
                    return Err(format!(
                        "'{option}' is no option of a store; there are socket=PATH, ssl-ca=FILE and defaults-file=FILE"
                    ));
                }
            }
        }
        Ok(found)
    }
}

impl fmt::Display for MysqlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("mysql://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(self.host.as_deref().unwrap_or_default())?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        write!(f, "/{}", self.database)?;
        let file = self
            .defaults_file
            .as_ref()
            .map(|file| format!("defaults-file={}", file.display()));
        let socket = self
            .socket
            .as_ref()
            .map(|socket| format!("socket={socket}"));
        let ssl_ca = self
            .ssl_ca
            .as_ref()
            .map(|file| format!("ssl-ca={}", file.display()));
        let options: Vec<String> = file.into_iter().chain(socket).chain(ssl_ca).collect();
        match options.is_empty() {
            true => Ok(()),
            false => write!(f, "?{}", options.join("&")),
        }
    }
}

/// `[client]` of an option file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Client {
    user: Option<String>,
    password: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    socket: Option<String>,
    ssl_ca: Option<PathBuf>,
}

impl Client {
    fn parse(text: &str) -> Client {
        let mut client = Client::default();
        let mut is_client = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                is_client = matches!(
                    section.trim_end_matches(']'),
                    "client" | "client-mariadb" | "client-server"
                );
            } else if is_client && let Some((name, value)) = line.split_once('=') {
                let value = value.trim();
                let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
                let value = quoted('"')
                    .or_else(|| quoted('\''))
                    .unwrap_or(value)
                    .to_owned();
                match name.trim() {
                    "user" => client.user = Some(value),
                    "password" => client.password = Some(value),
                    "host" => client.host = Some(value),
                    "port" => client.port = value.parse().ok(),
                    "socket" => client.socket = Some(value),
                    "ssl-ca" | "ssl_ca" => client.ssl_ca = Some(value.into()),
                    _ => {}
                }
            }
        }
        client
    }
}

impl MysqlAddress {
    /// Options with which the client connects.
    pub(super) fn options(&self) -> Result<OptsBuilder> {
        let client = match &self.defaults_file {
            Some(path) => read(path)?,
            None => match std::env::home_dir().map(|home| home.join(".my.cnf")) {
                Some(path) if path.exists() => read(&path)?,
                _ => Client::default(),
            },
        };
        let has_host = self.host.is_some();
        let socket = self
            .socket
            .clone()
            .or_else(|| client.socket.filter(|_| !has_host));
        let host = self
            .host
            .clone()
            .or(client.host)
            .unwrap_or_else(|| "localhost".to_owned());
        // A socket does not leave the host.
        let ssl_ca = self.ssl_ca.clone().or(client.ssl_ca);
        let ssl = ssl_ca
            .filter(|_| socket.is_none())
            .map(|file| SslOpts::default().with_root_cert_path(Some(file)));
        Ok(OptsBuilder::new()
            .ssl_opts(ssl)
            .ip_or_hostname(Some(host))
            .tcp_port(self.port.or(client.port).unwrap_or(PORT))
            .prefer_socket(socket.is_some())
            .socket(socket)
            .user(self.user.clone().or(client.user))
            .pass(client.password)
            .db_name(Some(self.database.clone()))
            .tcp_connect_timeout(Some(CONNECT_TIMEOUT))
            .read_timeout(Some(RESPONSE_TIMEOUT))
            .write_timeout(Some(RESPONSE_TIMEOUT)))
    }
}

fn read(path: &Path) -> Result<Client> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Client::parse(&text)),
        Err(error) => Err(StoreError::refused(linux::remedy::unread(path, &error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for text in [
            "db/sums",
            "ann@db:3307/sums",
            "/sums?socket=/run/m.sock",
            "db/sums?defaults-file=/etc/t.cnf&socket=/s",
            "db/sums?ssl-ca=/etc/ca.pem",
        ] {
            assert_eq!(
                text.parse::<MysqlAddress>().unwrap().to_string(),
                format!("mysql://{text}")
            );
        }
        for wrong in ["db", "db/", "db/a;b", "db:x/sums", "db/sums?tls=1"] {
            assert!(wrong.parse::<MysqlAddress>().is_err(), "{wrong}");
        }
        assert!(
            "ann:secret@db/sums"
                .parse::<MysqlAddress>()
                .unwrap_err()
                .contains("~/.my.cnf")
        );
    }

    #[test]
    fn passwords_are_read_from_option_files() {
        let client = Client::parse(
            "[mysqld]\nuser=mysql\n[client]\nuser = ann\npassword=\"s=c\"\nport=3307\n# x\n",
        );
        assert_eq!(
            client,
            Client {
                user: Some("ann".to_owned()),
                password: Some("s=c".to_owned()),
                port: Some(3307),
                ..Client::default()
            }
        );
    }
}
