//! Ansible inventories, in the output format of `ansible-inventory --list`.
//!
//! The output is one object: groups with `hosts` and `children`, and below `_meta.hostvars` the variables of each host
//! (Ansible's documentation of dynamic inventory scripts). Ansible itself reads INI and YAML; a file that already is
//! such an object is read without it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use linux::exec::Exec;
use serde_json::{Map, Value};

use crate::hosts::host::{Host, HostList, duplicates, no_address, port, shortened, user};

/// The variables with a zone, a type and an id: plain ones, and those of the inventory plugin `amazon.aws.aws_ec2`,
/// whose placement is an object.
const ZONE: [&str; 4] = ["az", "zone", "availability_zone", "ec2_placement"];
const KIND: [&str; 3] = ["type", "instance_type", "ec2_instance_type"];
const ID: [&str; 3] = ["id", "instance_id", "ec2_id"];

/// True if a file is such an object: INI and YAML begin differently, except for YAML in braces, which is unusual for
/// inventories.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    first == Some(&b'{')
}

/// The program that converts any inventory.
pub(super) fn program(file: &Path) -> Exec {
    Exec::new("ansible-inventory")
        .arg("--inventory")
        .arg(file)
        .arg("--list")
        .utf8()
}

/// Parses the output; `file` is the inventory's name, for errors.
///
/// # Errors
/// A sentence for each host that is wrong, and one for an inventory without hosts.
pub(super) fn parse(file: &str, json: &[u8]) -> Result<HostList, Vec<String>> {
    let groups: Map<String, Value> = serde_json::from_slice(json)
        .map_err(|why| vec![format!("{file} is not an inventory in JSON: {why}.")])?;
    let variables = groups.get("_meta").and_then(|meta| meta.get("hostvars"));
    let mut hosts = Vec::new();
    let mut left_out = Vec::new();
    let mut problems = Vec::new();
    for name in names(&groups) {
        let own = variables.and_then(|all| all.get(&name)?.as_object());
        if let Some(way) = own.and_then(non_ssh_connection) {
            left_out.push(format!(
                "{name} is not reached by ssh but by '{way}' (ansible_connection), and was left out."
            ));
            continue;
        }
        match host_of(&name, own) {
            Ok(host) => hosts.push(host),
            Err(why) => problems.push(format!("{file}: {why}.")),
        }
    }
    problems.extend(duplicates(&hosts, |_| file.to_owned()));
    if hosts.is_empty() && problems.is_empty() {
        problems.push(format!("{file} has no host in any of its groups."));
    }
    if !problems.is_empty() {
        return Err(shortened(problems));
    }
    Ok(HostList { hosts, left_out })
}

/// Ansible's connection to a host, if it is not ssh: such a host cannot be reached by ssh.
fn non_ssh_connection(variables: &Map<String, Value>) -> Option<String> {
    let way = word(variables.get("ansible_connection")?)?;
    let plain = way.strip_prefix("ansible.builtin.").unwrap_or(&way);
    (!["ssh", "smart", "paramiko", "paramiko_ssh"].contains(&plain)).then_some(way)
}

/// The hosts of all groups, each once: a host may be in several groups.
fn names(groups: &Map<String, Value>) -> BTreeSet<String> {
    let of_groups = groups.iter().filter(|(name, _)| *name != "_meta");
    let hosts = of_groups.filter_map(|(_, group)| {
        // An old form has a group's hosts directly, without an object.
        let hosts = group.get("hosts").unwrap_or(group);
        hosts.as_array()
    });
    let names = hosts.flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

fn host_of(name: &str, variables: Option<&Map<String, Value>>) -> Result<Host, String> {
    let none = Map::new();
    let variables = variables.unwrap_or(&none);
    let first = |keys: &[&str]| keys.iter().find_map(|key| word(variables.get(*key)?));
    let address = first(&["ansible_host", "ansible_ssh_host"]).unwrap_or_else(|| name.to_owned());
    if let Some(why) = no_address(&address) {
        return Err(why);
    }
    let login = first(&["ansible_user", "ansible_ssh_user"]);
    if let Some(Err(why)) = login.as_deref().map(user) {
        return Err(format!("{why}, which {name} has"));
    }
    let given = first(&["ansible_port", "ansible_ssh_port"]);
    let number = given.as_deref().map(port);
    if number == Some(None) {
        return Err(format!(
            "the port of {name} is a number from 1 to 65535, not '{}'",
            given.unwrap_or_default()
        ));
    }
    let placed = || {
        let placement = variables.get("placement")?;
        word(placement.get("availability_zone")?)
    };
    Ok(Host {
        name: name.to_owned(),
        address,
        user: login,
        port: number.flatten(),
        zone: first(&ZONE).or_else(placed),
        kind: first(&KIND),
        id: first(&ID),
        comment: None,
        tags: tags(variables.get("tags")),
    })
}

/// A variable that is a word or a number, as text; `None` if it is empty.
fn word(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

fn tags(value: Option<&Value>) -> BTreeMap<String, String> {
    let tags = value.and_then(Value::as_object).into_iter().flatten();
    tags.filter_map(|(key, value)| Some((key.clone(), word(value).or_else(|| empty(value))?)))
        .collect()
}

/// A tag without a value still counts as a tag.
fn empty(value: &Value) -> Option<String> {
    (value.as_str() == Some("")).then(String::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANSWER: &str = r#"{
        "_meta": {"hostvars": {
            "db1": {"ansible_host": "10.0.0.1", "ansible_user": "admin", "ansible_port": 2222,
                    "az": "us-east-1a", "instance_type": "i4i.large", "instance_id": "i-01"},
            "db2": {"placement": {"availability_zone": "us-east-1b"}, "tags": {"keep": ""}}
        }},
        "all": {"children": ["ungrouped", "db"]},
        "db": {"hosts": ["db1", "db2"]},
        "spare": {"hosts": ["db2"]}
    }"#;

    #[test]
    fn hosts_are_read_with_their_variables() {
        let hosts = parse("inventory", ANSWER.as_bytes()).unwrap().hosts;
        assert_eq!(hosts.len(), 2);
        let one = &hosts[0];
        assert_eq!(
            (one.name.as_str(), one.address.as_str()),
            ("db1", "10.0.0.1")
        );
        assert_eq!((one.user.as_deref(), one.port), (Some("admin"), Some(2222)));
        assert_eq!(one.zone.as_deref(), Some("us-east-1a"));
        assert_eq!(one.kind.as_deref(), Some("i4i.large"));
        assert_eq!(one.id.as_deref(), Some("i-01"));
        assert_eq!(hosts[1].zone.as_deref(), Some("us-east-1b"));
        assert!(hosts[1].tags.contains_key("keep"));
    }

    #[test]
    fn hosts_that_ansible_does_not_reach_by_ssh_are_left_out() {
        let text = r#"{"all": {"hosts": ["a", "localhost"]}, "_meta": {"hostvars": {
            "a": {"ansible_connection": "ssh"}, "localhost": {"ansible_connection": "local"}}}}"#;
        let found = parse("inventory", text.as_bytes()).unwrap();
        assert_eq!(found.hosts.len(), 1);
        assert_eq!(found.hosts[0].name, "a");
        assert!(found.left_out[0].starts_with("localhost is not reached by ssh but by 'local'"));
    }

    #[test]
    fn errors_are_reported() {
        for (text, problem) in [
            (
                r#"{"a": {"hosts": ["x"]}, "_meta": {"hostvars": {"x": {"ansible_user": "$(y)"}}}}"#,
                "inventory: '$(y)' is not a user name, which x has",
            ),
            ("{}", "inventory has no host"),
            ("[]", "inventory is not an inventory in JSON"),
            ("{", "inventory is not an inventory in JSON"),
            (
                r#"{"all": {"hosts": ["-x"]}}"#,
                "inventory: '-x' begins with a dash",
            ),
            (
                r#"{"a": {"hosts": ["x"]}, "_meta": {"hostvars": {"x": {"ansible_port": 70000}}}}"#,
                "inventory: the port of x",
            ),
            (
                r#"{"a": {"hosts": ["x", "y"]}, "_meta": {"hostvars": {"x": {"ansible_host": "y"}}}}"#,
                "inventory: y is the same host as x",
            ),
        ] {
            let problems = parse("inventory", text.as_bytes()).unwrap_err();
            assert!(problems[0].starts_with(problem), "{text}: {problems:?}");
        }
    }

    #[test]
    fn json_is_distinguished_from_ini_and_yaml() {
        assert!(is_json(b" \n{\"all\": {}}") && is_json(b"{"));
        assert!(!is_json(b"[db]\ndb1") && !is_json(b"all:\n  hosts:") && !is_json(b""));
        let line = program(Path::new("a b.yml")).line();
        assert_eq!(line, "ansible-inventory --inventory 'a b.yml' --list");
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = is_json(&bytes);
            let _ = parse("inventory", &bytes);
        }

        #[test]
        fn any_shape_is_answered(
            group in prop::sample::select(vec!["null", "[]", "[\"a\"]", "{\"hosts\": 5}", "{\"hosts\": [1, \"b\"]}"]),
            vars in prop::sample::select(vec!["null", "7", "{\"b\": null}", "{\"b\": {\"az\": [], \"tags\": 3, \"placement\": 1}}"]),
        ) {
            let text = format!("{{\"_meta\": {{\"hostvars\": {vars}}}, \"g\": {group}}}");
            let _ = parse("inventory", text.as_bytes());
        }
    }
}
