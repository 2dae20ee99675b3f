//! Arrays of a log, as named on the command line.

use std::str::FromStr;

use domain::raid::Level;

use crate::filter::name_in_path;

/// An array of a log with its members, such as `md0:raid10=sda,sdb,sdc,sdd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogArray {
    /// Name of the array, whether the log shows it or not.
    pub name: String,
    /// Level of the array; `None` where it is not given.
    pub level: Option<Level>,
    /// The names of its members, two or more.
    pub members: Vec<String>,
}

impl FromStr for LogArray {
    type Err = String;

    fn from_str(text: &str) -> Result<LogArray, String> {
        let wrong =
            || format!("'{text}' is not NAME[:LEVEL]=MEMBER,MEMBER,…, such as md0:raid10=sda,sdb");
        let (array, members) = text.split_once('=').ok_or_else(wrong)?;
        let (name, level) = match array.split_once(':') {
            None => (array, None),
            Some((name, word)) => (name, Some(level_of(word)?)),
        };
        let bare = |word: &str| name_in_path(word.trim());
        let members: Vec<String> = members.split(',').map(bare).collect();
        let mut names: Vec<&str> = members.iter().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let name = bare(name);
        let is_odd =
            names.len() < members.len() || names.iter().any(|one| one.is_empty() || *one == name);
        if name.is_empty() || members.len() < 2 || is_odd {
            return Err(wrong());
        }
        Ok(LogArray {
            name,
            level,
            members,
        })
    }
}

/// The level with this md name.
fn level_of(word: &str) -> Result<Level, String> {
    levels()
        .find(|level| level.md_name() == word)
        .ok_or_else(|| {
            let known: Vec<&str> = levels().map(Level::md_name).collect();
            format!("'{word}' is not a level; {} are", known.join(", "))
        })
}

/// Levels whose members can be compared, at least by their latency.
fn levels() -> impl Iterator<Item = Level> {
    let all = Level::ALL.into_iter();
    all.filter(|level| level.has_chunks() || level.is_redundant())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_a_name_and_its_members() {
        let array: LogArray = "/dev/md0:raid10=sda,/dev/sdb".parse().unwrap();
        assert_eq!(
            (array.name.as_str(), array.level.map(Level::md_name)),
            ("md0", Some("raid10"))
        );
        assert_eq!(array.members, ["sda", "sdb"]);
        assert_eq!("data=sda,sdb".parse::<LogArray>().unwrap().level, None);
        for wrong in [
            "",
            "md0",
            "md0=sda",
            "md0=sda,sda",
            "md0=sda,md0",
            "=sda,sdb",
            "md0=sda,",
            "md0:9=sda,sdb",
        ] {
            assert!(wrong.parse::<LogArray>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn members_are_named_as_devices_are() {
        let array: LogArray = "/dev/md/data=/dev/mapper/a, /dev/sdb".parse().unwrap();
        assert_eq!(array.name, "data");
        assert_eq!(array.members, ["a", "sdb"]);
    }
}
