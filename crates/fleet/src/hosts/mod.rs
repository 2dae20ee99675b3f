//! Hosts from node sets, a list, an Ansible inventory or EC2, selected by regular expressions.
//!
//! A host's zone, instance type and id come from the source if it has them; otherwise the host's own metadata service
//! is queried later.

mod command;
mod ec2;
mod group;
mod grouping;
mod host;
mod inventory;
mod list;
mod node_set;
mod select;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linux::aws;

use command::{LIMIT, run};
pub(crate) use ec2::now::{InstanceState, now as instances_now};
pub(crate) use ec2::{AddressKind, is_keep};
pub(crate) use grouping::{GroupBy, TieBreak};
pub(crate) use host::{Host, HostList, user};
pub(crate) use node_set::fold;
pub(crate) use select::{HostPattern, Selection};

/// Source of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A text file, or the name of one below `~/.dsh`.
    List(PathBuf),
    /// Node sets, such as `db[1-30]`.
    Named(String),
    /// An Ansible inventory, or the output of `ansible-inventory --list` for one.
    Inventory(PathBuf),
    /// The instances that match these filters, `Name=…,Values=…`.
    Ec2(Vec<String>, AddressKind),
}

impl Source {
    /// Queries the source. `home` is the user's home folder, if there is one.
    ///
    /// # Errors
    /// Errors in the source, as sentences with its name and line.
    pub(crate) fn ask(&self, home: Option<&Path>) -> Result<HostList, Vec<String>> {
        let alone = |why: String| vec![why];
        let found = match self {
            Source::List(name) => {
                let file = list::list_path(name, home).map_err(alone)?;
                let bytes = read(&file).map_err(alone)?;
                let hosts = list::parse(&file.display().to_string(), &bytes)?;
                Ok(HostList {
                    hosts,
                    left_out: Vec::new(),
                })
            }
            Source::Named(sets) => {
                let hosts = list::parse("--hosts", sets.as_bytes())?;
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
                aws::run(page).map_err(|why| why.to_string())
            }),
        }?;
        Ok(HostList {
            hosts: with_unique_names(found.hosts),
            ..found
        })
    }
}

/// The hosts with unique names. Instances that were started together have the same name, and a list may have two ports
/// of one address; all later steps identify hosts by name.
fn with_unique_names(mut hosts: Vec<Host>) -> Vec<Host> {
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
        // Another host may have this name.
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
        .map_err(|error| linux::remedy::unread(file, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn hosts_of_one_name_are_distinguished() {
        let host = |name: &str, address: &str, port: Option<u16>, id: &str| Host {
            name: name.to_owned(),
            address: address.to_owned(),
            port,
            id: Some(id.to_owned()).filter(|id| !id.is_empty()),
            ..Host::default()
        };
        let hosts = with_unique_names(vec![
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
}
