//! Keeps the rules of earlier hours across restarts: an event is routed by the rules of its hour, so that two stores do
//! not both count it when it is delivered again after a change.

use std::io::{self, Write as _};
use std::path::Path;

use super::RouteRule;
use super::routes::RouteVersion;
use crate::level::{HOUR, Seconds};

/// Maximum number of versions kept.
const MAX_VERSIONS: usize = 100;

/// Appends these rules as a new version if they differ from the last one, and returns all versions. The first version
/// applies to all times, a later one from the next full hour on.
pub(super) fn keep(
    path: &Path,
    rules: &[RouteRule],
    now: Seconds,
) -> io::Result<Vec<RouteVersion>> {
    let mut versions: Vec<RouteVersion> = match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    if versions.last().is_some_and(|last| last.rules == rules) {
        return Ok(versions);
    }
    let from = match versions.is_empty() {
        true => 0,
        false => now - now.rem_euclid(HOUR) + HOUR,
    };
    // A version that is not yet in force is replaced.
    versions.retain(|version| version.from < from || from == 0);
    versions.push(RouteVersion {
        from,
        rules: rules.to_vec(),
    });
    let beyond = versions.len().saturating_sub(MAX_VERSIONS);
    versions.drain(..beyond);
    write(path, &serde_json::to_vec(&versions)?)?;
    Ok(versions)
}

/// Replaces the file atomically.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let next = path.with_extension("next");
    let mut file = std::fs::File::create(&next)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(&next, path)
}

#[cfg(test)]
mod tests {
    use super::super::TagPattern;
    use super::*;

    #[test]
    fn a_change_holds_from_the_next_full_hour_on_and_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h");
        let rules = |store: &str| {
            [RouteRule {
                when: TagPattern::Rest,
                store: store.to_owned(),
            }]
        };
        let times = |store: &str, now| -> Vec<Seconds> {
            let versions = keep(&path, &rules(store), now).unwrap();
            versions.iter().map(|version| version.from).collect()
        };
        assert_eq!(times("a", 100), [0]);
        assert_eq!(times("b", 4000), [0, 7200]);
        assert_eq!(times("b", 8000), [0, 7200]);
        assert_eq!(times("a", 9000), [0, 7200, 10_800]);
        // Changed again within the hour.
        assert_eq!(times("b", 9001), [0, 7200, 10_800]);
        assert_eq!(keep(&path, &rules("b"), 9002).unwrap().len(), 3);
    }
}
