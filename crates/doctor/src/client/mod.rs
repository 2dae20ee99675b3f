//! Access to databases through their own clients, which read their own configuration: option files, sockets, services
//! and password files. A password is never an argument.

pub(crate) mod mysql;
pub(crate) mod postgres;

use std::time::Duration;

use linux::exec::{Error, Exec};

/// Time limit of a statement at the server, in seconds.
pub(crate) const STATEMENT_S: u32 = 10;
/// Time limit of a client, which connects and runs a few statements.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Standard output of a client.
///
/// # Errors
/// When it is missing, fails or takes too long.
fn output(program: &str, args: &[String]) -> anyhow::Result<String> {
    let exec = Exec::new(program)
        .args(args)
        .utf8()
        .bound()
        .limit(CLIENT_TIMEOUT);
    match exec.run() {
        Ok(output) => Ok(output.text()),
        // The command line contains the statements, and is left out of the error.
        Err(Error::Failed { stderr, .. }) => Err(anyhow::anyhow!(failure(program, &stderr))),
        Err(Error::Late { .. }) => Err(anyhow::anyhow!(
            "{program} was not done after {} s and was ended",
            CLIENT_TIMEOUT.as_secs()
        )),
        Err(error) => Err(error.into()),
    }
}

/// Messages of a client that could not connect, each with a remedy.
const REMEDIES: [(&str, &str); 4] = [
    (
        "Can't connect",
        "start the server, or name another one: disksmith doctor --mysql mysql://USER@HOST:3306",
    ),
    (
        "Is the server running",
        "start the server, or name another one: disksmith doctor --postgres postgresql://USER@HOST/DATABASE",
    ),
    (
        "(using password: NO)",
        "write user and password into ~/.my.cnf, below [client]",
    ),
    ("no password supplied", "write it into ~/.pgpass"),
];

/// The error of a client on one line, with a remedy if one is known.
fn failure(program: &str, stderr: &str) -> String {
    let words: Vec<&str> = stderr.split_whitespace().collect();
    let text = words.join(" ");
    let text = text.trim_start_matches(&format!("{program}: "));
    let known = REMEDIES.iter().find(|(said, _)| text.contains(said));
    match known {
        Some((_, remedy)) => format!("{program}: {text}; {remedy}"),
        None => format!("{program}: {text}"),
    }
}

/// True if a program is on the PATH.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Decodes percent-encoded bytes such as `%2F`; `None` where the result is not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).filter(|_| first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_client_is_one_line_and_says_where_a_password_belongs() {
        for (program, stderr, expected) in [
            (
                "psql",
                "psql: error: no\n\tIs it there?\n",
                "psql: error: no Is it there?",
            ),
            (
                "psql",
                "psql: error: fe_sendauth: no password supplied\n",
                "psql: error: fe_sendauth: no password supplied; write it into ~/.pgpass",
            ),
            (
                "mariadb",
                "ERROR 1045 (28000): Access denied for user 'p'@'localhost' (using password: NO)\n",
                "mariadb: ERROR 1045 (28000): Access denied for user 'p'@'localhost' (using password: NO); \
                 write user and password into ~/.my.cnf, below [client]",
            ),
        ] {
            assert_eq!(failure(program, stderr), expected);
        }
    }

    #[test]
    fn percent_signs_are_undone() {
        for (text, plain) in [
            ("%2Ftmp%2fa", "/tmp/a"),
            ("50%", "50%"),
            ("%zz", "%zz"),
            ("", ""),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), Some(plain));
        }
        assert_eq!(percent_decoded("%ff"), None);
    }
}
