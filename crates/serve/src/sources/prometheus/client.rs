//! Client of Prometheus' query API.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::answer::{self, Series};
use crate::axis::Axis;

/// Time limit for an answer.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Maximum size of an answer in bytes.
const MAX_ANSWER_BYTES: u64 = 32 << 20;

/// Address of a server, such as `http://prometheus:9090`, optionally with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(String);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let text = text.trim_end_matches('/');
        let rest = text.strip_prefix("http://");
        let is_sound = rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['?', '#', ' ']));
        match is_sound {
            true => Ok(Address(text.to_owned())),
            false if text.starts_with("https://") => Err(format!(
                "'{text}' is reached by TLS, which is not spoken here: name http://host:9090 in a private network, or the end of a tunnel"
            )),
            false => Err(format!(
                "'{text}' is no address of a server with Prometheus' query API; write it as http://host:9090"
            )),
        }
    }
}

impl fmt::Display for Address {
    /// Writes the address without its user and password, if it has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.0.strip_prefix("http://").unwrap_or(&self.0);
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        write!(f, "http://{host}{path}")
    }
}

/// A client with its connection.
pub(crate) struct Client {
    agent: ureq::Agent,
    address: Address,
}

impl Client {
    /// A client of a server.
    pub(crate) fn new(address: &Address) -> Client {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        Client {
            agent: config.into(),
            address: address.clone(),
        }
    }

    /// Current values of an expression; for a range vector, all its samples.
    pub(crate) fn now(&self, query: &str) -> anyhow::Result<Vec<Series>> {
        self.ask("query", &[("query", query)])
    }

    /// Values at the end of each slot.
    pub(crate) fn range(&self, query: &str, axis: &Axis) -> anyhow::Result<Vec<Series>> {
        let step = axis.slot_s();
        let [start, end, step] = [axis.from() + step, axis.to(), step].map(|at| at.to_string());
        let form = [
            ("query", query),
            ("start", &start),
            ("end", &end),
            ("step", &step),
        ];
        self.ask("query_range", &form)
    }

    fn ask(&self, path: &str, form: &[(&str, &str)]) -> anyhow::Result<Vec<Series>> {
        let named = |error: anyhow::Error| error.context(format!("{}", self.address));
        let url = format!("{}/api/v1/{path}", self.address.0);
        let sent = self.agent.post(url).send_form(form.iter().copied());
        let mut answer = sent.map_err(|error| named(error.into()))?;
        let body = answer
            .body_mut()
            .with_config()
            .limit(MAX_ANSWER_BYTES)
            .read_to_vec()
            .map_err(|error| named(error.into()))?;
        answer::read(&body).map_err(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_secrets() {
        let address: Address = "http://me:secret@host:9090/prefix/".parse().unwrap();
        assert_eq!(address.to_string(), "http://host:9090/prefix");
        for wrong in ["", "host:9090", "http://", "http://a?b", "ftp://a"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
