//! Lists of hosts, one a line, in the format of the dsh family.
//!
//! ```text
//! # The burn-in of Tuesday.
//! db1 az=us-east-1a type=i4i.large id=i-0123   # was slow last week
//! admin@db2 port=2222
//! web[1-12,14] az=us-east-1b
//! ```
//!
//! The first word is a host or node sets ([`super::node_set`]), whose hosts all get the attributes of the line.
//!
//! | attribute | meaning |
//! | --- | --- |
//! | `az`, `zone` | the availability zone |
//! | `type` | the instance type |
//! | `id` | the instance's id |
//! | `port` | the port of its sshd |
//! | others | kept as they are |
//!
//! A `#` begins a comment at the start of a line and after a space. A comment after a host is kept with it.

use std::path::{Path, PathBuf};

use linux::exec;

use crate::hosts::host::{Host, duplicates, no_address, port, shortened};
use crate::hosts::node_set::evaluate;

/// The file of a list: a word without a slash is `~/.dsh/machines.WORD`, or, if that does not exist, a file in this
/// folder.
///
/// # Errors
/// A sentence, if neither exists or both do.
pub(super) fn list_path(name: &Path, home: Option<&Path>) -> Result<PathBuf, String> {
    let bare =
        name.components().count() == 1 && !name.as_os_str().as_encoded_bytes().contains(&b'/');
    let (true, Some(home)) = (bare, home) else {
        return Ok(name.to_owned());
    };
    let mut file = std::ffi::OsString::from("machines.");
    file.push(name);
    let machines = home.join(".dsh").join(file);
    match (machines.exists(), name.exists()) {
        (true, false) => Ok(machines),
        (false, true) => Ok(name.to_owned()),
        (true, true) => Err(format!(
            "'{0}' is both {1} and a file of this folder; write the whole path of the first, or \
             ./{0} for the second.",
            name.display(),
            machines.display()
        )),
        (false, false) => {
            let folder = exec::line("mkdir".as_ref(), &["-p".into(), home.join(".dsh").into()]);
            Err(format!(
                "There is no list '{}': neither {} nor a file of this name in this folder exists. A host \
                 is added to a list by: {folder} && echo HOST >> {}",
                name.display(),
                machines.display(),
                exec::line(machines.as_ref(), &[])
            ))
        }
    }
}

/// Parses a list; `file` is its name, for errors.
///
/// # Errors
/// A sentence for each line that is wrong, and one for a list without hosts.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Host>, Vec<String>> {
    let mut hosts = Vec::new();
    let mut lines = Vec::new();
    let mut problems = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        match hosts_of(line) {
            Ok(found) => {
                lines.resize(lines.len() + found.len(), at + 1);
                hosts.extend(found);
            }
            Err(why) => problems.push(format!("{file}, line {}: {why}.", at + 1)),
        }
    }
    problems.extend(duplicates(&hosts, |at| {
        format!("{file}, line {}", lines[at])
    }));
    if hosts.is_empty() && problems.is_empty() {
        problems.push(format!(
            "{file} lists no host; write one a line, as in 'db1 az=us-east-1a type=i4i.large'."
        ));
    }
    if problems.is_empty() {
        Ok(hosts)
    } else {
        Err(shortened(problems))
    }
}

/// The hosts of a line; none if it is empty or a comment.
fn hosts_of(line: &[u8]) -> Result<Vec<Host>, String> {
    let line = std::str::from_utf8(line).map_err(|_| "the line is not UTF-8 text".to_owned())?;
    let (words, comment) = commented(line.trim_start_matches('\u{feff}'));
    let mut words = words.split_whitespace();
    let Some(name) = words.next() else {
        return Ok(Vec::new());
    };
    let names = evaluate(name)?;
    if let Some(why) = names.iter().find_map(|name| no_address(name)) {
        return Err(why);
    }
    let mut host = Host {
        comment: comment.map(str::to_owned),
        ..Host::default()
    };
    for word in words {
        let (key, value) = word
            .split_once('=')
            .filter(|(key, value)| !key.is_empty() && !value.is_empty())
            .ok_or_else(|| {
                format!(
                    "'{word}' is not KEY=VALUE; a line has one host, followed by its attributes"
                )
            })?;
        set(&mut host, key, value)?;
    }
    let named = |name: String| Host {
        address: name.clone(),
        name,
        ..host.clone()
    };
    Ok(names.into_iter().map(named).collect())
}

/// The line without its comment, and the comment.
fn commented(line: &str) -> (&str, Option<&str>) {
    let begins = |(at, _): &(usize, &str)| {
        let before = line
            .get(..*at)
            .and_then(|before| before.chars().next_back());
        before.is_none_or(char::is_whitespace)
    };
    match line.match_indices('#').find(begins) {
        Some((at, _)) => {
            let comment = line[at..].trim_start_matches('#').trim();
            (&line[..at], Some(comment).filter(|text| !text.is_empty()))
        }
        None => (line, None),
    }
}

fn set(host: &mut Host, key: &str, value: &str) -> Result<(), String> {
    let twice = |taken: bool| {
        if taken {
            Err(format!("{key} is given twice; leave one of them out"))
        } else {
            Ok(())
        }
    };
    let mut once = |place: fn(&mut Host) -> &mut Option<String>| {
        twice(place(host).replace(value.to_owned()).is_some())
    };
    match key {
        "az" | "zone" => once(|host| &mut host.zone),
        "type" => once(|host| &mut host.kind),
        "id" => once(|host| &mut host.id),
        "port" => {
            let number = port(value)
                .ok_or_else(|| format!("port is a number from 1 to 65535, not '{value}'"))?;
            twice(host.port.replace(number).is_some())
        }
        _ => twice(host.tags.insert(key.to_owned(), value.to_owned()).is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_list_is_read_with_its_attributes_and_comments() {
        let text = "# all\n\ndb1 az=us-east-1a type=i4i.large id=i-01 rack=7   # was slow\n\
                    \tadmin@db2 port=2222\r\n#db3\n";
        let hosts = parse("hosts", text.as_bytes()).unwrap();
        let names: Vec<&str> = hosts.iter().map(|host| host.address.as_str()).collect();
        assert_eq!(names, ["db1", "admin@db2"]);
        assert_eq!(hosts[1].port, Some(2222));
        // After a letter it is not a comment, and it is invalid in a host name.
        let reported = parse("hosts", b"db#4\n").unwrap_err();
        assert!(reported[0].contains("'db#4' is not a host"), "{reported:?}");
    }

    #[test]
    fn a_line_may_name_many_hosts() {
        let text = "db[08-10]!db09 az=z1 # racked\nx1\n";
        let hosts = parse("hosts", text.as_bytes()).unwrap();
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["db08", "db10", "x1"]);
        assert_eq!(hosts[1].zone.as_deref(), Some("z1"));
        for (text, reported) in [
            (
                "a\ndb[1-2]\ndb2\n",
                "hosts, line 3: db2 is the same host as db2 of hosts, line 2",
            ),
            (
                "db[1-2] id=i-1",
                "hosts, line 1: db2 is the same host as db1",
            ),
            (
                "db[2-1]",
                "hosts, line 1: 'db[2-1]': '2-1' is no range of numbers",
            ),
            (
                "db[1-2]:22",
                "hosts, line 1: 'db[1-2]:22' is not an address",
            ),
        ] {
            let problems = parse("hosts", text.as_bytes()).unwrap_err();
            assert!(problems[0].starts_with(reported), "{text}: {problems:?}");
        }
    }

    #[test]
    fn attributes_are_distinguished() {
        let text = "db1 az=us-east-1a type=i4i.large id=i-01 rack=7   ## was slow #2\n";
        let hosts = parse("hosts", text.as_bytes()).unwrap();
        let host = &hosts[0];
        assert_eq!(host.zone.as_deref(), Some("us-east-1a"));
        assert_eq!(host.kind.as_deref(), Some("i4i.large"));
        assert_eq!(host.id.as_deref(), Some("i-01"));
        assert_eq!(host.tags.get("rack").map(String::as_str), Some("7"));
        assert_eq!(host.comment.as_deref(), Some("was slow #2"));
    }

    #[test]
    fn errors_are_reported_with_their_lines() {
        for (text, reported) in [
            ("", "hosts lists no host"),
            ("# nothing\n\n", "hosts lists no host"),
            (
                "a\nb\nA\n",
                "hosts, line 3: A is the same host as a of hosts, line 1",
            ),
            (
                "a id=i-1\nb id=i-1",
                "hosts, line 2: b is the same host as a of hosts, line 1",
            ),
            (
                "a\n-oProxyCommand=x",
                "hosts, line 2: '-oProxyCommand=x' begins with a dash",
            ),
            ("a b", "hosts, line 1: 'b' is not KEY=VALUE"),
            ("a az=", "hosts, line 1: 'az=' is not KEY=VALUE"),
            ("a az=x zone=y", "hosts, line 1: zone is given twice"),
            ("a x=1 x=2", "hosts, line 1: x is given twice"),
            ("a port=0", "hosts, line 1: port is a number"),
            ("a;b", "hosts, line 1: 'a;b' is not a host"),
        ] {
            let problems = parse("hosts", text.as_bytes()).unwrap_err();
            assert!(problems[0].starts_with(reported), "{text}: {problems:?}");
            assert!(
                problems.iter().all(|why| why.ends_with('.')),
                "{problems:?}"
            );
        }
        let bytes = parse("hosts", b"ok\n\xff\xfe\n").unwrap_err();
        assert_eq!(bytes, ["hosts, line 2: the line is not UTF-8 text."]);
    }

    #[test]
    fn a_bare_name_is_a_list_of_dsh_unless_a_file_has_it() {
        let home = tempfile::tempdir().unwrap();
        let path = |text: &str| list_path(Path::new(text), Some(home.path()));
        assert_eq!(path("./x").unwrap(), Path::new("./x"));
        assert_eq!(path("/a/b").unwrap(), Path::new("/a/b"));
        let reported = path("no-such-list").unwrap_err();
        assert!(
            reported.contains(".dsh/machines.no-such-list"),
            "{reported}"
        );
        // The command works if the folder does not exist, and with any names.
        let spaced = home.path().join("my home");
        let reported = list_path(Path::new("it's"), Some(&spaced)).unwrap_err();
        let (_, command) = reported.rsplit_once(": ").unwrap();
        let mut shell = std::process::Command::new("sh");
        assert!(shell.args(["-c", command]).status().unwrap().success());
        let machines = spaced.join(".dsh/machines.it's");
        assert_eq!(std::fs::read_to_string(machines).unwrap(), "HOST\n");
        std::fs::create_dir(home.path().join(".dsh")).unwrap();
        let own = home.path().join(".dsh/machines.mine");
        std::fs::write(&own, "a\n").unwrap();
        assert_eq!(path("mine").unwrap(), own);
        assert_eq!(
            list_path(Path::new("mine"), None).unwrap(),
            Path::new("mine")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>) {
            let _ = parse("hosts", &bytes);
        }

        #[test]
        fn near_lists_are_answered(text in "((a@)?[a-c.12,!\\[\\]-]{1,5}( (az|id|x)=[ab]?)?( ?# \
                                            ?z)?[\n\r]{1,2}){0,6}") {
            match parse("hosts", text.as_bytes()) {
                Ok(hosts) => prop_assert!(hosts.iter().all(|host| no_address(&host.address).is_none())),
                Err(problems) => prop_assert!(!problems.is_empty()),
            }
        }

        #[test]
        fn a_written_list_is_read_back(
            names in prop::collection::btree_set("[a-z][a-z0-9.-]{0,9}", 1..20),
            zone in "[a-z0-9-]{1,9}", comment in "[a-z][a-z ]{0,8}[a-z]"
        ) {
            let lines: Vec<String> =
                names.iter().map(|name| format!("{name}  zone={zone} # {comment}")).collect();
            let hosts = parse("hosts", lines.join("\n").as_bytes()).unwrap();
            prop_assert!(hosts.iter().map(|host| &host.name).eq(&names));
            for host in hosts {
                prop_assert_eq!(host.zone.as_deref(), Some(zone.as_str()));
                prop_assert_eq!(host.comment.as_deref(), Some(comment.as_str()));
            }
        }
    }
}
