//! Past results of hosts.
//!
//! They are read from the answer of `fleet race --json` (`figure`, and for each of `hosts`: `host`, `zone`, `type`,
//! `figure.value` and `decision`); from a list of hosts with the attributes `figure` and `decision`; or from a ledger:
//! for each host the worst of its runs and races, and the hosts of `fleet run -- bench …` without any run. A host
//! without a figure, such as one that was never reached, counts as bad.

mod host;
mod measured;
mod text;
mod verdicts;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use measured::of_ledger;

pub(crate) use host::{PastHost, PastHosts};
use sweep::Requirement;
use text::of_text;
use ui::exit::Failure;
use verdicts::of_verdicts;

/// First bytes of a ledger (SQLite's file format, section 1.3).
const SQLITE: &[u8] = b"SQLite format 3\0";

impl PastHosts {
    /// Reads past results. Good hosts meet the requirement; without one, those that the races of a ledger found good,
    /// or, for other sources, those at least as good as the worst kept host.
    ///
    /// # Errors
    /// Refused, if they cannot be read or do not show which hosts were good.
    pub(crate) fn read(from: &Path, good: Option<&Requirement>) -> Result<PastHosts, Failure> {
        let name = from.display().to_string();
        let unread = |why| Failure::refused(format!("{name} cannot be read: {why}"));
        let mut file = File::open(from).map_err(unread)?;
        let mut bytes = Vec::new();
        let first = (&mut file)
            .take(SQLITE.len() as u64)
            .read_to_end(&mut bytes);
        first.map_err(unread)?;
        let hosts = if bytes == SQLITE {
            drop(file);
            let Some(requirement) = good else {
                return of_verdicts(from);
            };
            of_ledger(from, requirement)?
        } else {
            file.read_to_end(&mut bytes).map_err(unread)?;
            let refused =
                |problems: Vec<String>| Failure::refused_for("no past results", &problems);
            of_text(&name, &bytes, good).map_err(refused)?
        };
        PastHosts::of(&name, hosts, good).map_err(Failure::refused)
    }

    /// Separates the good hosts from the others.
    ///
    /// # Errors
    /// A sentence, if it cannot be determined which hosts were good.
    fn of(
        name: &str,
        hosts: Vec<PastHost>,
        good: Option<&Requirement>,
    ) -> Result<PastHosts, String> {
        if hosts.is_empty() {
            return Err(format!("{name} holds no past result of any host."));
        }
        if let Some(requirement) = good {
            let met = |host: &PastHost| {
                host.figure
                    .is_some_and(|value| requirement.is_met_by(value))
            };
            return Ok(PastHosts {
                hosts: hosts
                    .into_iter()
                    .map(|host| (met(&host), host))
                    .map(swap)
                    .collect(),
                good: requirement.to_string(),
            });
        }
        let kept = || hosts.iter().filter(|host| host.kept == Some(true));
        if kept().next().is_none() {
            return Err(format!(
                "{name} has no host that was kept, so it is unknown which were good; give --good, \
                 as in --good 'page-write.iops>=10000'."
            ));
        }
        // A race ranks by figures of which a larger one is better.
        let least = kept()
            .filter_map(|host| host.figure)
            .fold(f64::INFINITY, f64::min);
        let as_good = |host: &PastHost| {
            host.kept == Some(true) || host.figure.is_some_and(|figure| figure >= least)
        };
        let good = if least.is_finite() {
            format!("as good as the worst that was kept, {least:.0} or more")
        } else {
            "kept".to_owned()
        };
        Ok(PastHosts {
            hosts: hosts
                .into_iter()
                .map(|host| (as_good(&host), host))
                .map(swap)
                .collect(),
            good,
        })
    }
}

fn swap((good, host): (bool, PastHost)) -> (PastHost, bool) {
    (host, good)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, good: Option<&str>) -> Result<PastHosts, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("past");
        std::fs::write(&file, text).unwrap();
        let good: Option<Requirement> = good.map(|text| text.parse().unwrap());
        PastHosts::read(&file, good.as_ref()).map_err(|failure| failure.error().to_string())
    }

    pub(crate) fn good_hosts(past: &PastHosts) -> Vec<bool> {
        past.hosts.iter().map(|(_, good)| *good).collect()
    }

    const RACE: &str = r#"{"command": "fleet race", "figure": "page-write.iops", "hosts": [
        {"host": "a", "zone": "z1", "type": "t", "figure": {"value": 12000}, "decision": "keep"},
        {"host": "b", "zone": "z1", "figure": {"value": 12500.5}, "decision": "cull"},
        {"host": "c", "zone": "z2", "figure": null, "decision": "unreachable"},
        {"host": "d", "zone": "z2", "figure": {"value": 13000}, "decision": "floor"}]}"#;

    #[test]
    fn a_race_shows_the_good_hosts() {
        let past = read(RACE, None).unwrap();
        assert_eq!(good_hosts(&past), [true, true, false, false]);
        assert!(past.good.contains("12000"), "{}", past.good);
        let lower = read(RACE, Some("page-write.iops>=9000")).unwrap();
        // A host that missed a floor was not good, however high its figure.
        assert_eq!(good_hosts(&lower), [true, true, false, false]);
        let problem = read(RACE, Some("page-read.iops>=9000")).unwrap_err();
        assert!(problem.contains("page-write.iops, and --good"), "{problem}");
    }

    #[test]
    fn a_list_shows_the_good_hosts() {
        let text = "a az=z1 figure=100 decision=keep\nb figure=90\nc decision=failed # dead\n";
        assert_eq!(good_hosts(&read(text, None).unwrap()), [true, false, false]);
        let requirement = read(text, Some("a.iops>=90")).unwrap();
        assert_eq!(good_hosts(&requirement), [true, true, false]);
        for (text, problem) in [
            ("a\n", "a has neither figure"),
            ("a figure=fast\n", "'fast', is not a number"),
            ("a figure=5\n", "no host that was kept"),
            ("", "lists no host"),
            ("{", "not the answer"),
            (r#"{"hosts": []}"#, "holds no past result"),
        ] {
            let error = read(text, None).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
