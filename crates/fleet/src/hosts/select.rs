//! Selection of hosts: `--include` and `--exclude`.

use std::str::FromStr;

use regex_lite::Regex;

use crate::hosts::host::Host;

/// A regular expression for names of hosts.
#[derive(Clone, Debug)]
pub struct HostPattern(Regex);

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<HostPattern, String> {
        let why = |why: regex_lite::Error| format!("'{text}' is not a regular expression: {why}");
        Regex::new(text).map(HostPattern).map_err(why)
    }
}

impl HostPattern {
    /// True if it matches any part of the host's name, address or id.
    fn matches_host(&self, host: &Host) -> bool {
        let id = host.id.as_deref();
        self.0.is_match(&host.name)
            || self.0.is_match(&host.address)
            || id.is_some_and(|id| self.0.is_match(id))
    }
}

/// Patterns of the selected hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Only hosts that match any of these are selected; all if empty.
    pub include: Vec<HostPattern>,
    /// Hosts that match any of these are excluded.
    pub exclude: Vec<HostPattern>,
}

impl Selection {
    /// The selected hosts.
    ///
    /// # Errors
    /// A sentence, if none is left.
    pub(crate) fn of(&self, hosts: Vec<Host>) -> Result<Vec<Host>, String> {
        let before = hosts.len();
        let any = |patterns: &[HostPattern], host: &Host| {
            patterns.iter().any(|one| one.matches_host(host))
        };
        let wanted = |host: &Host| {
            (self.include.is_empty() || any(&self.include, host)) && !any(&self.exclude, host)
        };
        let left: Vec<Host> = hosts.into_iter().filter(wanted).collect();
        if left.is_empty() {
            return Err(format!(
                "None of the {before} hosts is left by --include and --exclude."
            ));
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hosts() -> Vec<Host> {
        let host = |name: &str, address: &str| Host {
            name: name.to_owned(),
            address: address.to_owned(),
            id: Some(format!("i-{name}")),
            ..Host::default()
        };
        vec![
            host("db1", "10.0.0.1"),
            host("db2", "10.0.0.2"),
            host("web1", "10.0.1.1"),
        ]
    }

    fn left(include: &[&str], exclude: &[&str]) -> Result<Vec<String>, String> {
        let all = |patterns: &[&str]| patterns.iter().map(|text| text.parse().unwrap()).collect();
        let selection = Selection {
            include: all(include),
            exclude: all(exclude),
        };
        let left = selection.of(hosts())?;
        Ok(left.into_iter().map(|host| host.name).collect())
    }

    #[test]
    fn hosts_are_chosen_by_name_address_and_id() {
        assert_eq!(left(&[], &[]).unwrap().len(), 3);
        assert_eq!(left(&["^db"], &[]).unwrap(), ["db1", "db2"]);
        assert_eq!(left(&["^db", "web"], &["1$"]).unwrap(), ["db2"]);
        assert_eq!(left(&["^i-web1$"], &[]).unwrap(), ["web1"]);
        assert_eq!(left(&[r"^10\.0\.1\."], &[]).unwrap(), ["web1"]);
        let errors = left(&["^x"], &[]).unwrap_err();
        assert!(errors.starts_with("None of the 3 hosts"), "{errors}");
        let errors = "db(".parse::<HostPattern>().unwrap_err();
        assert!(
            errors.contains("'db(' is not a regular expression"),
            "{errors}"
        );
    }

    proptest! {
        #[test]
        fn any_pattern_is_answered(text in ".{0,30}") {
            if let Ok(pattern) = text.parse::<HostPattern>() {
                let _ = pattern.matches_host(&hosts()[0]);
            }
        }
    }
}
