//! The web configuration file of Prometheus' exporters, for TLS and passwords (`--web.config.file`).
//!
//! Source: `docs/web-configuration.md` and `web/tls_config.go` of `prometheus/exporter-toolkit`.

mod tls_section;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustls::ServerConfig;
use serde::Deserialize;

use tls_section::TlsSection;

/// Headers that may be set, with their allowed values; empty for any value.
const HEADERS: [(&str, &[&str]); 5] = [
    ("Strict-Transport-Security", &[]),
    ("X-Content-Type-Options", &["nosniff"]),
    ("X-Frame-Options", &["deny", "sameorigin"]),
    ("X-XSS-Protection", &[]),
    ("Content-Security-Policy", &[]),
];

/// Content of the file.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    tls_server_config: Option<TlsSection>,
    http_server_config: Option<HttpSection>,
    basic_auth_users: Option<BTreeMap<String, String>>,
    rate_limit: Option<RateSection>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HttpSection {
    /// Accepted without effect: only HTTP/1.1 is served, which every client of HTTP/2 supports too.
    #[serde(rename = "http2")]
    _http2: Option<bool>,
    headers: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RateSection {
    interval: Option<String>,
    burst: u32,
}

/// Protection of the metrics.
#[derive(Clone, Debug, Default)]
pub(super) struct WebConfig {
    /// TLS, if it is on.
    pub(super) tls: Option<Arc<ServerConfig>>,
    /// Bcrypt hashes of the passwords, by user; if empty, no password is needed.
    pub(super) users: BTreeMap<String, String>,
    /// Headers of each answer.
    pub(super) headers: Vec<(String, String)>,
    /// Limit on the rate of requests.
    pub(super) rate: Option<RateLimit>,
}

/// A limit on the rate of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateLimit {
    /// Interval after which one more request is allowed.
    pub(super) interval: Duration,
    /// Maximum number of requests that are allowed at once.
    pub(super) burst: u32,
}

impl WebConfig {
    /// Reads the file and the files that it names, relative to its folder.
    ///
    /// # Errors
    /// When a file cannot be read, or an option is unknown or insecure.
    pub(super) fn read(path: &Path) -> anyhow::Result<WebConfig> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| anyhow::anyhow!(linux::remedy::unread(path, &error)))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        WebConfig::parse(&text, folder).with_context(name)
    }

    fn parse(text: &str, folder: &Path) -> anyhow::Result<WebConfig> {
        // An empty file, which is not a mapping, is allowed.
        let file: Option<File> = serde_yaml_ng::from_str(text)?;
        let file = file.unwrap_or_default();
        let users = file.basic_auth_users.unwrap_or_default();
        for (user, hash) in &users {
            hash.parse::<bcrypt::HashParts>().map_err(|_| {
                anyhow::anyhow!(
                    "basic_auth_users: the password of '{user}' is not a bcrypt hash; \
                     make one with: htpasswd -nBC 10 '' | tr -d ':\\n'"
                )
            })?;
        }
        let tls = match file.tls_server_config {
            Some(section) => section.config(folder).context("tls_server_config")?,
            None => None,
        };
        let headers = file.http_server_config.and_then(|http| http.headers);
        let headers = headers.unwrap_or_default();
        headers
            .iter()
            .try_for_each(|(name, value)| check_header(name, value))?;
        Ok(WebConfig {
            tls: tls.map(Arc::new),
            users,
            headers: headers
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            rate: file
                .rate_limit
                .map(RateSection::limit)
                .transpose()?
                .flatten(),
        })
    }

    /// True if TLS or passwords are missing that were set before: a file that is being rewritten is empty for a moment,
    /// and must not remove the protection.
    pub(super) fn protects_less_than(&self, before: &WebConfig) -> bool {
        (before.tls.is_some() && self.tls.is_none())
            || (!before.users.is_empty() && self.users.is_empty())
    }
}

impl RateSection {
    fn limit(self) -> anyhow::Result<Option<RateLimit>> {
        let Some(text) = self.interval.filter(|text| text != "0") else {
            return Ok(None);
        };
        let interval: ::record::Nanos = text.parse().context("rate_limit: interval")?;
        let interval = Duration::from(interval);
        if interval.is_zero() {
            return Ok(None);
        }
        if self.burst == 0 {
            bail!(
                "rate_limit: burst is 0, so that nothing would ever be answered; set it to 1 or more"
            );
        }
        Ok(Some(RateLimit {
            interval,
            burst: self.burst,
        }))
    }
}

/// Checks a header that is to be set.
fn check_header(name: &str, value: &str) -> anyhow::Result<()> {
    let Some((_, allowed)) = HEADERS.iter().find(|(one, _)| *one == name) else {
        let names: Vec<&str> = HEADERS.iter().map(|(name, _)| *name).collect();
        bail!(
            "http_server_config: the header '{name}' cannot be set; these can: {}",
            names.join(", ")
        );
    };
    if !allowed.is_empty() && !allowed.contains(&value) {
        bail!(
            "http_server_config: {name} is '{value}'; allowed: {}",
            allowed.join(", ")
        );
    }
    if value.contains(|letter: char| letter.is_control()) {
        bail!(
            "http_server_config: the value of {name} has a line break or another control character"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
