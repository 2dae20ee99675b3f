//! `keep.txt` and `cull.txt`: lists of hosts in the format that every verb of `fleet` reads.

use std::path::Path;

use anyhow::Context as _;

use crate::hosts::{Host, is_keep};
use crate::race::conclude::{Decision, RaceConclusion, RankedHost};
use crate::race::ranked_by::RankedBy;
use crate::race::report::RankedFigure;
use crate::store::{FleetRun, HostRun};
use ui::exit::{ExitClass as _, Failure};
use ui::output::{HOST_LIST_MARK, OutputFile, OutputFormat};

/// The names of the files.
const KEEP_FILE: &str = "keep.txt";
const CULL_FILE: &str = "cull.txt";
/// The files `keep.txt` and `cull.txt`, checked before the race.
pub(crate) struct ListFiles {
    keep: OutputFile,
    cull: OutputFile,
}

impl ListFiles {
    /// Checks that they can be written, and that existing files are lists of a race, unless `force` permits replacing
    /// them.
    ///
    /// # Errors
    /// Refused, if another file would be replaced, or a list could not be written at the end of the race.
    pub(crate) fn at(folder: &Path, force: bool) -> Result<ListFiles, Failure> {
        if !folder.is_dir() {
            return Err(Failure::refused(format!(
                "{} is not a folder, so {KEEP_FILE} and {CULL_FILE} cannot be written there (--out)",
                folder.display()
            )));
        }
        let list =
            |name: &str| OutputFile::check(&folder.join(name), OutputFormat::HostList, force);
        Ok(ListFiles {
            keep: list(KEEP_FILE)?,
            cull: list(CULL_FILE)?,
        })
    }

    /// Paths of the two lists: the hosts that are kept, and those that are not.
    pub(crate) fn paths(&self) -> [&Path; 2] {
        [self.keep.path(), self.cull.path()]
    }

    /// Writes both if the race is over and hosts were measured; true if it did.
    ///
    /// # Errors
    /// As [`ListFiles::write`].
    pub(crate) fn write_of(
        &self,
        run: &FleetRun,
        hosts: &[Host],
        concluded: &RaceConclusion,
    ) -> Result<bool, Failure> {
        let interrupted = run.race.as_ref().is_none_or(|record| record.interrupted);
        if interrupted || concluded.groups.is_empty() {
            return Ok(false);
        }
        self.write(run, hosts, concluded).map(|()| true)
    }

    /// Writes both, each completely or not at all.
    ///
    /// # Errors
    /// Failed midway, if that is not possible.
    fn write(
        &self,
        run: &FleetRun,
        hosts: &[Host],
        concluded: &RaceConclusion,
    ) -> Result<(), Failure> {
        let is_kept = |one: &&RankedHost| one.decided == Decision::Keep;
        let is_culled = |one: &&RankedHost| one.decided == Decision::Cull || one.is_bad;
        let kept: Vec<&RankedHost> = concluded.ranked.iter().filter(is_kept).collect();
        let culled: Vec<&RankedHost> = concluded.ranked.iter().filter(is_culled).collect();
        let [kept, culled] = [kept, culled].map(|chosen| list(run, hosts, &chosen));
        // Lists of two races in one folder would contradict each other.
        let keep = self.keep.prepare(kept.as_bytes()).midway()?;
        let cull = self.cull.prepare(culled.as_bytes()).midway()?;
        keep.put().midway()?;
        let half = || {
            format!("only {KEEP_FILE} is of this race, and {CULL_FILE} is none or an earlier one's")
        };
        cull.put().with_context(half).midway()
    }
}

/// Attributes of a host in a list: its names, and the other facts from its source, such as its price and its
/// protection. Attributes that a list cannot represent are left out.
fn attributes(host_run: &HostRun, host: &Host) -> Vec<(String, String)> {
    let own = [
        ("port", host.port.map(|port| port.to_string())),
        ("az", host_run.zone.clone()),
        ("type", host_run.kind.clone()),
        ("id", host_run.id.clone()),
    ];
    let is_own = |key: &str| ["port", "az", "zone", "type", "id"].contains(&key);
    let is_word = |text: &str| {
        !text.is_empty() && !text.starts_with('#') && !text.contains(char::is_whitespace)
    };
    // A protection counts even if the list cannot represent it, such as an EC2 tag with an empty value.
    let tags = host.tags.iter().map(|(key, value)| {
        let is_lost = is_keep(key) && !is_word(value);
        let value = if is_lost { "yes" } else { value };
        (key.clone(), value.to_owned())
    });
    own.into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .chain(tags.filter(|(key, _)| !is_own(key) && !key.contains('=')))
        .filter(|(key, value)| is_word(key) && is_word(value))
        .collect()
}

/// A list of these hosts.
fn list(run: &FleetRun, hosts: &[Host], chosen: &[&RankedHost]) -> String {
    let mut text = format!("{HOST_LIST_MARK}{}\n", run.id);
    for one in chosen {
        if let (Some(host_run), Some(host)) = (run.hosts.get(one.place), hosts.get(one.place)) {
            let login = host.user.as_ref().filter(|_| !host.address.contains('@'));
            let mut line = login.map_or_else(String::new, |user| format!("{user}@"));
            line.push_str(&host.address);
            for (key, value) in attributes(host_run, host) {
                line.push_str(&format!(" {key}={value}"));
            }
            let figure = one.known.map_or_else(String::new, |known| {
                let figures = run.race.as_ref().map_or(&[][..], |race| &race.figures);
                let figure = RankedFigure::of(&known, RankedBy::of(figures));
                format!(", figure {}", figure.text())
            });
            let reason = one.reason.replace('\n', " ");
            let gone = match one.is_gone {
                true => "; not there any more when the race was over",
                false => "",
            };
            text.push_str(&format!(
                "{line}   # {}{figure}: {reason}{gone}\n",
                one.decided.name()
            ));
        }
    }
    ui::charset::printable(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::hosts::listed;
    use crate::race::conclude::GroupEnd;

    fn run(hosts: &[Host]) -> FleetRun {
        FleetRun {
            id: "20260101-000000-abcd".to_owned(),
            began: jiff::Timestamp::UNIX_EPOCH,
            kind: crate::store::RunKind::Race,
            args: Vec::new(),
            hosts: hosts.iter().map(HostRun::waiting).collect(),
            race: None,
        }
    }

    fn ranked(place: usize, decided: Decision, is_bad: bool) -> RankedHost {
        RankedHost {
            is_bad,
            is_gone: false,
            ..RankedHost::unmeasured(place, decided, "of\na reason")
        }
    }

    #[test]
    fn the_lists_are_read_as_lists_and_a_list_of_someone_s_own_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let host = |(name, keep): (&str, &str)| Host {
            name: name.to_owned(),
            address: name.to_owned(),
            user: Some("DOMAIN\\me".to_owned()),
            port: Some(2222),
            zone: Some("us-east-1a".to_owned()),
            id: Some(format!("i-{name}")),
            tags: [("keep", keep), ("price", "0.5"), ("Name", "a b")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            ..Host::default()
        };
        let hosts = [
            ("a", ""),
            ("b", "until friday"),
            ("c", "1"),
            ("d", ""),
            ("e", ""),
        ];
        let hosts = hosts.map(host);
        let concluded = RaceConclusion {
            groups: Vec::<GroupEnd>::new(),
            ranked: vec![
                ranked(1, Decision::Keep, false),
                ranked(0, Decision::Tie, false),
                ranked(2, Decision::Cull, true),
                ranked(3, Decision::HostFloor, true),
                ranked(4, Decision::Failed, false),
            ],
            empty: Vec::new(),
            noise: None,
            proof_rounds: 0,
        };
        for _ in 0..2 {
            let lists = ListFiles::at(place.path(), false).unwrap();
            lists.write(&run(&hosts), &hosts, &concluded).unwrap();
            let [keep, cull] = lists.paths();
            let read = |path: &Path| listed("list", &fs::read(path).unwrap()).unwrap();
            let kept = read(keep);
            assert_eq!(kept.len(), 1);
            assert_eq!(kept[0].address, "DOMAIN\\me@b");
            assert_eq!(
                (kept[0].port, kept[0].id.as_deref()),
                (Some(2222), Some("i-b"))
            );
            // A host that was protected in this race is protected in the next.
            let tags: Vec<(&str, &str)> = kept[0]
                .tags
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect();
            assert_eq!(tags, [("keep", "yes"), ("price", "0.5")]);
            assert_eq!(kept[0].comment.as_deref(), Some("keep: of a reason"));
            let culled: Vec<String> = read(cull).into_iter().map(|host| host.address).collect();
            assert_eq!(culled, ["DOMAIN\\me@c", "DOMAIN\\me@d"]);
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
        // If only one list could be written, the error says which list is of this race.
        let lists = ListFiles::at(place.path(), false).unwrap();
        fs::remove_file(place.path().join(CULL_FILE)).unwrap();
        fs::create_dir(place.path().join(CULL_FILE)).unwrap();
        let failed = lists.write(&run(&hosts), &hosts, &concluded);
        let why = format!("{:#}", failed.unwrap_err().error());
        assert!(why.contains("only keep.txt is of this race"), "{why}");
        fs::remove_dir(place.path().join(CULL_FILE)).unwrap();
        fs::write(place.path().join(CULL_FILE), "db1\n").unwrap();
        let refused = ListFiles::at(place.path(), false).err().unwrap();
        let why = format!("{:#}", refused.error());
        assert!(why.contains("is not a host list of disksmith"), "{why}");
        assert!(ListFiles::at(place.path(), true).is_ok());
        assert!(ListFiles::at(&place.path().join("none"), false).is_err());
    }
}
