//! A host, and the rules for its name, address and user.

use std::collections::BTreeMap;

use serde::Serialize;

/// Maximum number of problems that are listed; more are counted.
const MAX_LISTED_PROBLEMS: usize = 20;

/// A host, as its source has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Host {
    /// Name of the host.
    pub name: String,
    /// Host as ssh is given it: a name of its configuration, a host name or an address.
    pub address: String,
    /// User to log in as; `null` where the source names none.
    pub user: Option<String>,
    /// Port of ssh; `null` where the source names none.
    pub port: Option<u16>,
    /// The zone, such as `us-east-1a`; `null` where the source of the hosts names none.
    pub zone: Option<String>,
    /// The instance type, such as `i4i.large`; `null` where the source names none.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Id of its instance; `null` where the source names none.
    pub id: Option<String>,
    /// Comment behind it in a list; `null` where there is none.
    pub comment: Option<String>,
    /// Further attributes of its source: those of a list, tags of an instance.
    pub tags: BTreeMap<String, String>,
}

/// Hosts of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostList {
    /// The hosts, in the order of the source.
    pub hosts: Vec<Host>,
    /// Hosts that were left out, with the reason, as sentences: instances that do not run.
    pub left_out: Vec<String>,
}

/// Reason why a word must not be passed to ssh as a host; `None` if it may.
///
/// A word that begins with a dash would be parsed as an option of ssh, and spaces and control characters are invalid
/// in host names.
pub(super) fn no_address(word: &str) -> Option<String> {
    // A user in a domain has a backslash before the address, as in `DOMAIN\\me@db1`.
    let user_end = word.rfind('@').unwrap_or(0);
    let fits = |at: usize, c: char| {
        c.is_alphanumeric() || "._-:%@[]".contains(c) || (c == '\\' && at < user_end)
    };
    if word.starts_with('-') {
        return Some(format!(
            "'{word}' begins with a dash, which ssh would take for an option"
        ));
    }
    let bad = word.char_indices().find(|(at, c)| !fits(*at, *c));
    let bad = bad.map(|(_, c)| c);
    let host = word.rsplit_once('@').map_or(word, |(_, host)| host);
    if bad.is_none() && !is_one_address(host) {
        return Some(format!(
            "'{word}' is not an address: give a port as in 'db1 port=2222', and put brackets \
             around a whole IPv6 address"
        ));
    }
    match bad {
        Some(bad) => Some(format!(
            "'{word}' is not a host: a name cannot contain {bad:?}"
        )),
        None if word.is_empty() => Some("a host's name cannot be empty".to_owned()),
        None => None,
    }
}

/// True if colons and brackets only occur as in a single IPv6 address. With a port after it, ssh would use another
/// address, which may exist.
fn is_one_address(host: &str) -> bool {
    if !host.contains([':', '[', ']']) {
        return true;
    }
    let inner = host
        .strip_prefix('[')
        .map_or(Some(host), |rest| rest.strip_suffix(']'));
    let address = inner.map(|inner| inner.split_once('%').map_or(inner, |(address, _)| address));
    address.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
}

/// Checks a user name: ssh cannot parse it as an option, nor a shell as a command, since ssh's configuration may pass
/// it to a shell (`%r` in ssh_config(5)).
///
/// # Errors
/// A sentence, if it is invalid.
pub(crate) fn user(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_alphanumeric() || "._-@\\".contains(c);
    if text.is_empty() || text.starts_with('-') || !text.chars().all(fits) {
        return Err(format!("'{text}' is not a user name"));
    }
    Ok(text.to_owned())
}

/// The port that a word names.
pub(super) fn port(word: &str) -> Option<u16> {
    word.parse().ok().filter(|port| *port > 0)
}

/// The problems, shortened if there are many.
pub(super) fn shortened(mut problems: Vec<String>) -> Vec<String> {
    let more = problems.len().saturating_sub(MAX_LISTED_PROBLEMS);
    if more > 0 {
        problems.truncate(MAX_LISTED_PROBLEMS);
        problems.push(format!("{more} more of the kind."));
    }
    problems
}

/// Problems with hosts that occur twice, by their addresses or ids. `place` returns the position of a host, such as
/// `hosts, line 3`.
pub(super) fn duplicates(hosts: &[Host], place: impl Fn(usize) -> String) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (at, host) in hosts.iter().enumerate() {
        // Host names are case-insensitive (RFC 4343).
        let address = format!(
            "{}:{}",
            host.address.to_lowercase(),
            host.port.unwrap_or(22)
        );
        let keys = [Some(address), host.id.as_ref().map(|id| format!("id {id}"))];
        let earlier: Vec<usize> = keys
            .into_iter()
            .flatten()
            .filter_map(|key| match seen.entry(key) {
                std::collections::btree_map::Entry::Occupied(first) => Some(*first.get()),
                std::collections::btree_map::Entry::Vacant(free) => {
                    free.insert(at);
                    None
                }
            })
            .collect();
        if let Some(first) = earlier.first() {
            problems.push(format!(
                "{}: {} is the same host as {} of {}; leave one of them out.",
                place(at),
                host.name,
                hosts[*first].name,
                place(*first)
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_hosts_are_given_to_ssh() {
        for good in [
            "db1",
            "root@10.0.0.1",
            "fe80::1%eth0",
            "[::1]",
            "münchen.example",
            "admin@[2001:db8::5]",
            "::ffff:10.0.0.1",
            "DOMAIN\\me@db1",
        ] {
            assert_eq!(no_address(good), None);
        }
        for bad in [
            "",
            "-oProxyCommand=x",
            "a b",
            "a\u{7}",
            "a;b",
            "$(x)",
            "a\0",
            "[2001:db8::5]:2222",
            "db1:2222",
            "root@db1:2222",
            "[db1]",
            "[::1",
            "a[b]",
            "a\\b",
            "me@a\\b",
        ] {
            assert!(no_address(bad).is_some(), "{bad}");
        }
        // This is another, valid address, which cannot be recognized as a mistake.
        assert_eq!(no_address("2001:db8::5:2222"), None);
    }

    #[test]
    fn only_valid_users_are_given_to_ssh() {
        for good in ["root", "ec2-user", "DOMAIN\\me", "a.b@c"] {
            assert!(user(good).is_ok(), "{good}");
        }
        for bad in ["", "-l", "a b", "$(x)", "a;b", "`x`"] {
            assert!(user(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn many_problems_are_shortened() {
        let problems = shortened((0..50).map(|at| at.to_string()).collect());
        assert_eq!(problems.len(), MAX_LISTED_PROBLEMS + 1);
        assert_eq!(problems.last().unwrap(), "30 more of the kind.");
    }
}
