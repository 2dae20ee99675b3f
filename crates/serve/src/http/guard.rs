//! Refusal of requests by their `Host`, `Origin` and `Sec-Fetch-Site` headers.

use std::net::IpAddr;

use axum::http::{HeaderMap, Method, StatusCode, header};

/// Names under which the server is reached.
#[derive(Clone, Debug)]
pub(crate) struct ServerNames {
    /// True if the server listens on a loopback address.
    pub(crate) loopback: bool,
    /// Further names in lower case, besides IP addresses and, on loopback, `localhost`.
    pub(crate) named: Vec<String>,
}

impl ServerNames {
    /// True if `host` names this server. A foreign site whose name resolves to this server's address (DNS rebinding)
    /// sends its own name instead.
    fn is_this_server(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else {
            return false;
        };
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        let address = name.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = address.parse::<IpAddr>() {
            return !self.loopback
                || address.is_loopback()
                || self.named.iter().any(|one| one == name);
        }
        (self.loopback && name == "localhost") || self.named.iter().any(|one| one == name)
    }
}

/// A host without its port: `[::1]:80` gives `[::1]`. `None` if `host` has no valid form.
fn without_port(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(rest) => rest.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end);
    let is_port = |port: &str| {
        port.strip_prefix(':')
            .is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    (!name.is_empty() && (port.is_empty() || is_port(port))).then_some(name)
}

/// Status and text with which a request is refused.
pub(crate) type Refusal = (StatusCode, &'static str);

/// Checks the host of a request and, if its method is neither GET nor HEAD, its origin.
///
/// # Errors
/// The refusal.
pub(crate) fn check(
    names: &ServerNames,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), Refusal> {
    let host = single(headers, header::HOST)?.unwrap_or_default();
    if !names.is_this_server(host) {
        return Err((
            StatusCode::MISDIRECTED_REQUEST,
            "This server is not known under that name; --name adds one.",
        ));
    }
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let foreign = Err((
        StatusCode::FORBIDDEN,
        "A page of another site may not change anything here.",
    ));
    if let Some(origin) = single(headers, header::ORIGIN)? {
        let of_page = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        if of_page.is_none_or(|page| !page.eq_ignore_ascii_case(host)) {
            return foreign;
        }
    }
    match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => foreign,
    }
}

/// The value of a header that may occur at most once.
fn single(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(&name).iter();
    let first = values.next();
    let text = first.map(|value| value.to_str()).transpose();
    match (text, values.next()) {
        (Ok(text), None) => Ok(text),
        _ => Err((
            StatusCode::BAD_REQUEST,
            "A header is broken, or there twice.",
        )),
    }
}

/// True if the content type is `application/json`.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let text = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let kind = text.and_then(|text| text.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn hosts_are_those_of_the_server() {
        let loopback = ServerNames {
            loopback: true,
            named: vec!["disks.example".to_owned()],
        };
        for host in [
            "localhost:9188",
            "LOCALHOST",
            "127.0.0.1:9188",
            "[::1]:9188",
            "disks.example",
            "disks.example.:443",
        ] {
            assert!(loopback.is_this_server(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "192.0.2.1:9188",
            "[::1",
            "localhost:",
            "localhost:x",
            "a b",
        ] {
            assert!(!loopback.is_this_server(host), "{host}");
        }
        let open = ServerNames {
            loopback: false,
            named: Vec::new(),
        };
        assert!(open.is_this_server("192.0.2.1:9188"));
        assert!(!open.is_this_server("localhost") && !open.is_this_server("evil.example"));
    }

    #[test]
    fn changes_come_from_no_foreign_page() {
        let names = ServerNames {
            loopback: true,
            named: Vec::new(),
        };
        let post =
            |pairs: &[(&'static str, &str)]| check(&names, &Method::POST, &headers(pairs)).is_ok();
        let host = ("host", "localhost:9188");
        assert!(post(&[host]));
        assert!(post(&[host, ("origin", "http://localhost:9188")]));
        assert!(!post(&[host, ("origin", "http://localhost:9189")]));
        assert!(!post(&[host, ("origin", "https://evil.example")]));
        assert!(!post(&[host, ("origin", "null")]));
        assert!(!post(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(!post(&[host, host]));
        let get = check(
            &names,
            &Method::GET,
            &headers(&[host, ("origin", "https://evil.example")]),
        );
        assert!(get.is_ok());
    }

    #[test]
    fn json_is_known_by_its_type() {
        for (kind, is) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
        ] {
            assert_eq!(is_json(&headers(&[("content-type", kind)])), is, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
