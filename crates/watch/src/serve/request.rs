//! The head of an HTTP request, and the reply to it.

use std::net::IpAddr;

use super::guard::Refusal;

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The metrics; a HEAD gets them without the text.
    Metrics {
        /// True if the text is sent.
        text: bool,
    },
    /// The metrics are at another path.
    NotFound,
    /// The method is neither GET nor HEAD.
    OtherMethod,
    /// The text is not an HTTP request.
    Nonsense,
    /// The `Host` of the request is a name that does not belong to this host.
    Foreign,
    /// The request was sent without TLS where TLS is required.
    Plain,
    /// The guard refuses the request.
    Refused(Refusal),
    /// The guard's file cannot be used.
    Unguarded,
}

impl Reply {
    /// The reply to a request's head. `local` is true where only this host can connect: then a web site whose name
    /// resolves to the loopback (DNS rebinding) could make a browser on this host send requests, which carry that
    /// name, and foreign names are refused. `refuses` is called with the request's `Authorization`.
    pub(super) fn to(
        head: &[u8],
        local: bool,
        refuses: impl FnOnce(Option<&str>) -> Option<Refusal>,
    ) -> Reply {
        let Some(request) = Request::parse(head) else {
            return Reply::Nonsense;
        };
        if local && !request.host.is_none_or(is_this_host) {
            return Reply::Foreign;
        }
        if let Some(refusal) = refuses(request.authorization) {
            return Reply::Refused(refusal);
        }
        match (request.method, request.path) {
            ("GET", "/metrics") => Reply::Metrics { text: true },
            ("HEAD", "/metrics") => Reply::Metrics { text: false },
            ("GET" | "HEAD", _) => Reply::NotFound,
            _ => Reply::OtherMethod,
        }
    }

    /// End of the status line, and header lines that only this status has.
    pub(super) fn status(self) -> &'static str {
        match self {
            Reply::Metrics { .. } => "200 OK",
            Reply::NotFound => "404 Not Found",
            Reply::OtherMethod => "405 Method Not Allowed\r\nAllow: GET, HEAD",
            Reply::Nonsense => "400 Bad Request",
            Reply::Foreign => "421 Misdirected Request",
            Reply::Plain => "400 Bad Request",
            Reply::Refused(Refusal::Unauthorized) => "401 Unauthorized\r\nWWW-Authenticate: Basic",
            Reply::Refused(Refusal::TooMany) => "429 Too Many Requests",
            Reply::Unguarded => "500 Internal Server Error",
        }
    }

    /// Advice on a correct request.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Reply::Metrics { .. } => "",
            Reply::NotFound => "The metrics are at /metrics.\n",
            Reply::OtherMethod => "Only GET and HEAD are answered.\n",
            Reply::Nonsense => "This is not an HTTP request.\n",
            Reply::Foreign => "Request localhost or an address, or serve at another address.\n",
            Reply::Plain => "This port takes TLS: use https.\n",
            Reply::Refused(Refusal::Unauthorized) => "A user and a password are needed.\n",
            Reply::Refused(Refusal::TooMany) => "Too many requests came.\n",
            Reply::Unguarded => {
                "The web configuration cannot be used; the reason is in the program's log.\n"
            }
        }
    }
}

/// The parts of a request that are used.
struct Request<'a> {
    method: &'a str,
    /// Path without its query.
    path: &'a str,
    /// The requested host, with or without a port.
    host: Option<&'a str>,
    /// The value of `Authorization`.
    authorization: Option<&'a str>,
}

impl<'a> Request<'a> {
    fn parse(head: &'a [u8]) -> Option<Request<'a>> {
        let text = std::str::from_utf8(head).ok()?;
        let (head, _) = text.split_once("\r\n\r\n")?;
        let (first, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        let field = |sought: &str| {
            fields
                .split("\r\n")
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case(sought))
                .map(|(_, value)| value.trim())
        };
        let mut words = first.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if !version.starts_with("HTTP/1.") || words.next().is_some() || method.is_empty() {
            return None;
        }
        // Requests to a proxy have an absolute URL, which any server must accept (RFC 9112, 3.2.2).
        let (host, target) = match target.strip_prefix("http://") {
            None => (field("host"), target),
            Some(rest) => {
                let at = rest.find('/').unwrap_or(rest.len());
                (Some(&rest[..at]), &rest[at..])
            }
        };
        Some(Request {
            method,
            path: target.split('?').next()?,
            host,
            authorization: field("authorization"),
        })
    }
}

/// True if a host name cannot be registered by others: an address, `localhost`, or a name without a domain.
fn is_this_host(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let address = rest.split(']').next().unwrap_or_default();
        return address.parse::<IpAddr>().is_ok();
    }
    let name = host.split(':').next().unwrap_or_default();
    let name = name.trim_end_matches('.');
    let is_simple = !name.contains(['.', '@']);
    name.parse::<IpAddr>().is_ok() || is_simple || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(text: &str) -> Reply {
        Reply::to(text.as_bytes(), true, |_| None)
    }

    #[test]
    fn only_a_request_for_the_metrics_gets_them() {
        let text = |text| Reply::Metrics { text };
        for (head, expected) in [
            ("GET /metrics HTTP/1.1\r\n\r\n", text(true)),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", text(true)),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", text(false)),
            (
                "GET http://127.0.0.1:9187/metrics HTTP/1.1\r\n\r\n",
                text(true),
            ),
            ("GET / HTTP/1.1\r\n\r\n", Reply::NotFound),
            ("GET http://localhost HTTP/1.1\r\n\r\n", Reply::NotFound),
            ("POST /metrics HTTP/1.1\r\n\r\n", Reply::OtherMethod),
            ("GET /metrics\r\n\r\n", Reply::Nonsense),
            ("GET /metrics HTTP/1.1 x\r\n\r\n", Reply::Nonsense),
            ("GET /metrics HTTP/1.1\r\nHost: a", Reply::Nonsense),
            ("PRI * HTTP/2.0\r\n\r\n", Reply::Nonsense),
            ("", Reply::Nonsense),
        ] {
            assert_eq!(reply(head), expected, "{head}");
        }
        assert_eq!(
            Reply::to(b"\xff\xfe\r\n\r\n", true, |_| None),
            Reply::Nonsense
        );
    }

    #[test]
    fn a_strangers_name_is_refused_where_only_this_host_may_ask() {
        let get = |host: &str| format!("GET /metrics HTTP/1.1\r\nhOsT: {host}\r\n\r\n");
        for host in [
            "127.0.0.1:9187",
            "[::1]:9187",
            "localhost",
            "Localhost:9187",
            "a.localhost",
            "db1:9187",
            "192.0.2.7",
        ] {
            assert_eq!(reply(&get(host)), Reply::Metrics { text: true }, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:9187",
            "[evil.example]",
        ] {
            assert_eq!(reply(&get(host)), Reply::Foreign, "{host}");
            let public = Reply::to(get(host).as_bytes(), false, |_| None);
            assert_eq!(public, Reply::Metrics { text: true }, "{host}");
        }
        assert_eq!(
            reply("GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            Reply::Foreign
        );
    }

    #[test]
    fn the_guard_decides_before_anything_is_answered() {
        let refusal = Refusal::Unauthorized;
        for target in ["/metrics", "/", "/other"] {
            let head = format!("GET {target} HTTP/1.1\r\nAuthorization:  Basic eA==\r\n\r\n");
            let reply = Reply::to(head.as_bytes(), true, |authorization| {
                assert_eq!(authorization, Some("Basic eA=="));
                Some(refusal)
            });
            assert_eq!(reply, Reply::Refused(refusal));
        }
    }

    proptest! {
        #[test]
        fn any_head_is_answered(head: Vec<u8>, target: String, host: String, local: bool) {
            let _ = Reply::to(&head, local, |_| None).status();
            let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let _ = Reply::to(request.as_bytes(), local, |_| None).advice();
        }
    }
}
