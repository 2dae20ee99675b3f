//! Hosts from a list, an Ansible inventory or EC2, chosen by regular expressions.
//!
//! A host's zone, instance type and id come with it where the source knows them; the hosts' own metadata
//! service is asked for the others later.

mod ec2;
mod grouping;
mod inventory;
mod list;
mod select;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linux::exec::Exec;
use serde::Serialize;

pub(crate) use ec2::{Address, InstanceState, is_instance_id, is_keep, now as instances_now};
pub(crate) use grouping::{Per, Ties};
pub(crate) use select::{Pattern, Selection};

/// Time limit for `ansible-inventory` or one page of `aws`: both ask a cloud.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// More problems than so many are counted, not listed.
const MOST_LISTED: usize = 20;

/// A host, as its source has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Host {
    /// Its name.
    pub name: String,
    /// Host as ssh is given it: a name of its configuration, a host name or an address.
    pub address: String,
    /// User to log in as, where the source names one.
    pub user: Option<String>,
    /// Port, where the source names one.
    pub port: Option<u16>,
    /// The availability zone, such as `us-east-1a`.
    pub zone: Option<String>,
    /// The instance type, such as `i4i.large`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The instance's id.
    pub id: Option<String>,
    /// The comment behind it in a list.
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

/// Source of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A text file, or the name of one below `~/.dsh`.
    List(PathBuf),
    /// An Ansible inventory, or the output of `ansible-inventory --list` for one.
    Inventory(PathBuf),
    /// The instances that these filters match, `Name=…,Values=…`.
    Ec2(Vec<String>, Address),
}

impl Source {
    /// Asks the source. `home` is the user's home folder, if there is one.
    ///
    /// # Errors
    /// Errors in the source, as sentences with its name and line.
    pub(crate) fn ask(&self, home: Option<&Path>) -> Result<HostList, Vec<String>> {
        let alone = |why: String| vec![why];
        let found = match self {
            Source::List(name) => {
                let file = list::place(name, home).map_err(alone)?;
                let bytes = read(&file).map_err(alone)?;
                let hosts = list::parse(&file.display().to_string(), &bytes)?;
                Ok(HostList {
                    hosts,
                    left_out: Vec::new(),
                })
            }
            Source::Inventory(file) => {
                let bytes = read(file).map_err(alone)?;
                let json = if inventory::is_json(&bytes) {
                    bytes
                } else {
                    let program = inventory::program(file).limit(LIMIT);
                    run(&program).map_err(alone)?
                };
                inventory::parse(&file.display().to_string(), &json)
            }
            Source::Ec2(filters, address) => ec2::ask(filters, *address, &mut |page| {
                run(&page.clone().limit(LIMIT))
            }),
        }?;
        Ok(HostList {
            hosts: told_apart(found.hosts),
            ..found
        })
    }
}

/// The hosts with names that differ. Instances that were started together have one name, and
/// a list may have two ports of one address; everything later goes by the name.
fn told_apart(mut hosts: Vec<Host>) -> Vec<Host> {
    let mut named: BTreeMap<String, usize> = BTreeMap::new();
    for host in &hosts {
        *named.entry(host.name.clone()).or_default() += 1;
    }
    for host in &mut hosts {
        if named.get(&host.name).is_none_or(|count| *count < 2) {
            continue;
        }
        let own = match (&host.id, host.port) {
            (Some(id), _) => id.clone(),
            (None, Some(port)) if host.address == host.name => format!("port {port}"),
            (None, Some(port)) => format!("{}, port {port}", host.address),
            (None, None) if host.address == host.name => "port 22".to_owned(),
            (None, None) => host.address.clone(),
        };
        let mut name = format!("{} ({own})", host.name);
        // Somebody may have called another host just so.
        while named.contains_key(&name) {
            name.push('\'');
        }
        named.insert(name.clone(), 1);
        host.name = name;
    }
    hosts
}

/// The hosts of a list's text; `file` is its name, for errors.
///
/// # Errors
/// A sentence for each line that is wrong, and one for a list without hosts.
pub(crate) fn listed(file: &str, bytes: &[u8]) -> Result<Vec<Host>, Vec<String>> {
    list::parse(file, bytes)
}

/// Reads a file of hosts.
fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file)
        .map(formats::text::utf8)
        .map_err(|why| format!("{} cannot be read: {why}", file.display()))
}

/// Output of a program, which does not outlive this one.
///
/// # Errors
/// A sentence, where it is missing, fails or takes too long.
pub(crate) fn run(program: &Exec) -> Result<Vec<u8>, String> {
    let output = program.clone().mortal().run();
    output
        .map(|output| output.stdout)
        .map_err(|why| why.to_string())
}

/// Reason why ssh must not be given this as a host; `None` where it may.
///
/// A word that begins with a dash would be an option to ssh, and spaces and control characters are in no name
/// of a host.
fn no_address(word: &str) -> Option<String> {
    // A user of a domain has a backslash before the address, as in `DOMAIN\\me@db1`.
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
            "'{word}' is no address: a port is said apart, as in 'db1 port=2222', and brackets stand \
             around a whole IPv6 address"
        ));
    }
    match bad {
        Some(bad) => Some(format!("'{word}' is no host: {bad:?} is in no name of one")),
        None if word.is_empty() => Some("an empty name is no host".to_owned()),
        None => None,
    }
}

/// True where colons and brackets stand only where they do in one IPv6 address. With a port behind it, ssh
/// would be given another address, which may be in use.
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

/// A user's name that ssh cannot take for an option, and a shell for nothing else: ssh's own
/// configuration may hand it to one (`%r` in ssh_config(5)).
///
/// # Errors
/// A sentence, where it is none.
pub(crate) fn user(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_alphanumeric() || "._-@\\".contains(c);
    if text.is_empty() || text.starts_with('-') || !text.chars().all(fits) {
        return Err(format!("'{text}' is no name of a user"));
    }
    Ok(text.to_owned())
}

/// The port that a word names.
fn port(word: &str) -> Option<u16> {
    word.parse().ok().filter(|port| *port > 0)
}

/// The problems, shortened where there are very many.
fn shortened(mut problems: Vec<String>) -> Vec<String> {
    let more = problems.len().saturating_sub(MOST_LISTED);
    if more > 0 {
        problems.truncate(MOST_LISTED);
        problems.push(format!("{more} more of the kind."));
    }
    problems
}

/// Hosts that are there twice, by their addresses or ids. `place` gives the place of a host, such as
/// `hosts, line 3`.
fn duplicates(hosts: &[Host], place: impl Fn(usize) -> String) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (at, host) in hosts.iter().enumerate() {
        // Names of hosts know no capitals (RFC 4343).
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
    fn only_what_can_be_a_host_is_given_to_ssh() {
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
        // This one is another host, which cannot be seen.
        assert_eq!(no_address("2001:db8::5:2222"), None);
    }

    #[test]
    fn only_what_can_be_a_user_is_given_to_ssh() {
        for good in ["root", "ec2-user", "DOMAIN\\me", "a.b@c"] {
            assert!(user(good).is_ok(), "{good}");
        }
        for bad in ["", "-l", "a b", "$(x)", "a;b", "`x`"] {
            assert!(user(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_list_is_found_and_read_from_its_file() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".dsh");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("machines.burnin"), "a az=z1\nb\n").unwrap();
        let found = Source::List("burnin".into())
            .ask(Some(home.path()))
            .unwrap();
        assert_eq!(found.hosts.len(), 2);
        assert_eq!(found.hosts[0].zone.as_deref(), Some("z1"));
        let none = Source::List("absent".into())
            .ask(Some(home.path()))
            .unwrap_err();
        assert!(none[0].contains("machines.absent"), "{none:?}");
    }

    #[test]
    fn hosts_of_one_name_are_told_apart() {
        let host = |name: &str, address: &str, port: Option<u16>, id: &str| Host {
            name: name.to_owned(),
            address: address.to_owned(),
            port,
            id: Some(id.to_owned()).filter(|id| !id.is_empty()),
            ..Host::default()
        };
        let hosts = told_apart(vec![
            host("burnin", "10.0.0.1", None, "i-1"),
            host("burnin", "10.0.0.2", None, "i-2"),
            host("burnin (i-2)", "10.0.0.3", None, "i-3"),
            host("127.0.0.1", "127.0.0.1", None, ""),
            host("127.0.0.1", "127.0.0.1", Some(2201), ""),
            host("db", "10.0.0.4", None, ""),
            host("db", "10.0.0.4", Some(2201), ""),
            host("other", "10.0.0.5", None, "i-5"),
        ]);
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "burnin (i-1)",
                "burnin (i-2)'",
                "burnin (i-2)",
                "127.0.0.1 (port 22)",
                "127.0.0.1 (port 2201)",
                "db (10.0.0.4)",
                "db (10.0.0.4, port 2201)",
                "other"
            ]
        );
    }

    #[test]
    fn instances_that_were_started_together_are_found_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts");
        std::fs::write(&file, "h port=2201\nh port=2202\n").unwrap();
        let found = Source::List(file).ask(None).unwrap();
        let names: Vec<&str> = found.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["h (port 2201)", "h (port 2202)"]);
    }

    #[test]
    fn an_inventory_that_is_json_needs_no_program() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("inventory.json");
        std::fs::write(&file, r#" {"all": {"hosts": ["a", "b"]}}"#).unwrap();
        let found = Source::Inventory(file).ask(None).unwrap();
        assert_eq!(found.hosts.len(), 2);
    }

    #[test]
    fn many_problems_are_shortened() {
        let problems = shortened((0..50).map(|at| at.to_string()).collect());
        assert_eq!(problems.len(), MOST_LISTED + 1);
        assert_eq!(problems.last().unwrap(), "30 more of the kind.");
    }
}
