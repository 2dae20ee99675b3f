//! Backups: their ends and places, and the date of the last restore test.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use linux::aws;
use linux::root::{attribute, names_in};
use linux::volume_id::VolumeId;
use serde_json::Value;

use super::host::HostFacts;

/// Maximum depth to which folders are searched.
const DEPTH: usize = 4;
/// Number of bytes at the end of a dump that are read for its last line.
const DUMP_TAIL_BYTES: u64 = 4096;

/// A finished backup.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backup {
    /// Tool that made the backup.
    pub(crate) kind: &'static str,
    pub(crate) ended: Timestamp,
    pub(crate) place: String,
    /// True if the backup is complete; false for a dump without its last line.
    pub(crate) is_whole: bool,
    /// True if the backup lies on a disk of the data; `None` where it is not known.
    pub(crate) is_with_data: Option<bool>,
}

/// Facts about backups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Safety {
    /// Maximum age of the last backup.
    pub(crate) rpo: Option<Duration>,
    pub(crate) restored_on: Option<Date>,
    pub(crate) now: Timestamp,
    pub(crate) backups: Vec<Backup>,
    /// The places that were searched.
    pub(crate) searched: Vec<String>,
    /// Places that could not be searched, each with the error.
    pub(crate) failed: Vec<String>,
}

impl Safety {
    /// Searches a folder or a file for backups.
    pub(crate) fn search(&mut self, path: &Path, host: &HostFacts) {
        self.searched.push(path.display().to_string());
        if let Err(error) = fs::metadata(path) {
            self.failed.push(format!("{}: {error}", path.display()));
            return;
        }
        let mut found = Vec::new();
        search(path, DEPTH, &mut found);
        let is_with_data = is_with_data(path, host);
        self.backups.extend(found.into_iter().map(|backup| Backup {
            is_with_data,
            ..backup
        }));
    }

    /// Snapshots of the EBS volumes of the data, through the user's own aws.
    pub(crate) fn ask_aws(&mut self, host: &HostFacts) {
        self.searched.push("snapshots of EBS".to_owned());
        let serials = host
            .disks()
            .into_iter()
            .filter_map(|disk| disk.serial.clone());
        let ids = serials.filter_map(|serial| VolumeId::parse(serial.trim()));
        let volumes: Vec<String> = ids.map(|id| id.to_string()).collect();
        if volumes.is_empty() {
            self.failed
                .push("no disk of the data is an EBS volume".to_owned());
            return;
        }
        let filter = format!("Name=volume-id,Values={}", volumes.join(","));
        let exec = aws::command(&["ec2", "describe-snapshots"])
            .args(["--owner-ids", "self", "--filters", &filter])
            .limit(Duration::from_secs(60));
        match aws::run(&exec) {
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer);
                self.backups.extend(snapshots(&text, &volumes));
            }
            Err(error) => self.failed.push(error.to_string()),
        }
    }

    /// The newest complete backup.
    pub(crate) fn last(&self) -> Option<&Backup> {
        let whole = self.backups.iter().filter(|backup| backup.is_whole);
        whole.max_by_key(|backup| backup.ended)
    }
}

/// Backup from snapshots: the latest time by which each of the volumes has a completed snapshot.
fn snapshots(json: &str, volumes: &[String]) -> Option<Backup> {
    let document: Value = serde_json::from_str(json).ok()?;
    let all = document["Snapshots"].as_array()?;
    let newest = |volume: &String| {
        let own = all
            .iter()
            .filter(|one| one["VolumeId"] == volume.as_str() && one["State"] == "completed");
        own.filter_map(|one| one["StartTime"].as_str()?.parse::<Timestamp>().ok())
            .max()
    };
    let each: Option<Vec<Timestamp>> = volumes.iter().map(newest).collect();
    Some(Backup {
        kind: "EBS snapshot",
        ended: each?.into_iter().min()?,
        place: "EBS".to_owned(),
        is_whole: true,
        is_with_data: Some(false),
    })
}

/// True if a path lies on a disk of the data; `None` where it is not known.
fn is_with_data(path: &Path, host: &HostFacts) -> Option<bool> {
    let place = linux::block::place_of(&host.root, &host.devices, path).ok()?;
    let device = host.devices.get(*place.devices.first()?)?;
    let own = host.names_below(device);
    if host.folders.is_empty() {
        return None;
    }
    let disks = host.checked_devices();
    Some(disks.iter().any(|disk| own.contains(&disk.name)))
}

fn search(path: &Path, depth: usize, found: &mut Vec<Backup>) {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return;
    };
    if metadata.is_dir() && depth > 0 {
        for name in names_in(path).unwrap_or_default() {
            search(&path.join(name), depth - 1, found);
        }
    } else if metadata.is_file() {
        found.extend(backup(path, &metadata));
    }
}

/// The backup that a file contains or describes; `None` for other files.
fn backup(path: &Path, metadata: &fs::Metadata) -> Option<Backup> {
    let name = path.file_name()?.to_str()?;
    let changed = Timestamp::from_second(metadata.mtime()).ok()?;
    let (kind, ended, is_whole) = match name {
        "xtrabackup_info" | "mariadb_backup_info" => {
            ("xtrabackup", end_of_xtrabackup(&attribute(path)?)?, true)
        }
        "backup.info" => ("pgBackRest", end_of_pgbackrest(&attribute(path)?)?, true),
        "backup_manifest" => ("pg_basebackup", changed, true),
        _ if is_wal(name) => ("WAL archive", changed, true),
        _ if name.ends_with(".sql") => {
            let (ended, is_whole) = end_of_dump(&tail(path, metadata.len())?, changed);
            ("dump", ended, is_whole)
        }
        _ if [".sql.gz", ".sql.zst", ".sql.xz", ".dump"]
            .iter()
            .any(|end| name.ends_with(end)) =>
        {
            ("dump", changed, metadata.len() > 0)
        }
        _ => return None,
    };
    Some(Backup {
        kind,
        ended,
        place: path.display().to_string(),
        is_whole,
        is_with_data: None,
    })
}

/// End of a backup of xtrabackup, from a line in the host's time zone: `end_time = 2026-11-23 02:10:11`.
fn end_of_xtrabackup(text: &str) -> Option<Timestamp> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("end_time"))?;
    local(line.trim_start_matches([' ', '=']).trim())
}

fn local(text: &str) -> Option<Timestamp> {
    let time: DateTime = text.replacen(' ', "T", 1).parse().ok()?;
    Some(time.to_zoned(TimeZone::system()).ok()?.timestamp())
}

/// End of the last backup of pgBackRest, from lines such as `20261123-021000F={…,"backup-timestamp-stop":1795…}` in the
/// section `[backup:current]`.
fn end_of_pgbackrest(text: &str) -> Option<Timestamp> {
    let lines = text
        .lines()
        .skip_while(|line| *line != "[backup:current]")
        .skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let stop = |line: &str| {
        let json: Value = serde_json::from_str(line.split_once('=')?.1).ok()?;
        let is_good = json["backup-error"] != true;
        json["backup-timestamp-stop"].as_i64().filter(|_| is_good)
    };
    Timestamp::from_second(lines.filter_map(stop).max()?).ok()
}

/// True for the name of a WAL segment in an archive: 24 hexadecimal digits, with or without a suffix.
fn is_wal(name: &str) -> bool {
    let stem = name.split(['.', '-']).next().unwrap_or_default();
    stem.len() == 24 && stem.bytes().all(|c| matches!(c, b'0'..=b'9' | b'A'..=b'F'))
}

/// End of a dump, and true if it has the last line that marks it as complete.
fn end_of_dump(tail: &str, changed: Timestamp) -> (Timestamp, bool) {
    let line = tail
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    if let Some(time) = line.strip_prefix("-- Dump completed on ") {
        // `2026-11-23  2:10:11`: the hour is padded with a space.
        let mut words = time.split_whitespace();
        let words = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let ended = local(&format!("{} {:0>8}", words.0, words.1));
        return (ended.unwrap_or(changed), true);
    }
    let is_of_postgres = tail.contains("-- PostgreSQL database dump complete")
        || tail.contains("-- PostgreSQL database cluster dump complete");
    (
        changed,
        is_of_postgres || line.starts_with("-- Dump completed"),
    )
}

fn tail(path: &Path, length: u64) -> Option<String> {
    use std::os::unix::fs::FileExt as _;
    let file = fs::File::open(path).ok()?;
    let mut bytes = vec![0; length.min(DUMP_TAIL_BYTES) as usize];
    file.read_exact_at(&mut bytes, length - length.min(DUMP_TAIL_BYTES))
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Existing default folders of backup tools.
pub(crate) fn usual_places() -> Vec<PathBuf> {
    let places = [
        "/var/lib/pgbackrest",
        "/var/backups/mysql",
        "/var/lib/automysqlbackup",
    ];
    let places = places.iter().map(PathBuf::from);
    places.filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_tool_says_when_its_backup_ended() {
        let stop = end_of_pgbackrest(
            "[backup:current]\n20261123-021000F={\"backup-timestamp-stop\":1795000000}\n\
             20261124-021000F={\"backup-error\":true,\"backup-timestamp-stop\":1796000000}\n[db]\n",
        );
        assert_eq!(stop.map(Timestamp::as_second), Some(1_795_000_000));
        let end = end_of_xtrabackup(
            "tool_version = 8\nstart_time = 2026-11-23 02:00:00\nend_time = 2026-11-23 02:10:11\n",
        );
        assert_eq!(end, local("2026-11-23 02:10:11"));
        assert!(end.is_some());
        let (ended, whole) = end_of_dump(
            "x\n-- Dump completed on 2026-11-23  2:10:11\n",
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!((Some(ended), whole), (local("2026-11-23 02:10:11"), true));
        assert!(!end_of_dump("INSERT INTO t VALUES (1", Timestamp::UNIX_EPOCH).1);
        assert!(is_wal("000000010000000000000004") && is_wal("000000010000000000000004.gz"));
        assert!(!is_wal("00000001000000000000000") && !is_wal("00000001.history"));
    }

    #[test]
    fn all_volumes_must_have_a_snapshot() {
        let json = r#"{"Snapshots": [
            {"VolumeId": "vol-1", "State": "completed", "StartTime": "2026-11-20T00:00:00.000Z"},
            {"VolumeId": "vol-1", "State": "pending", "StartTime": "2026-11-22T00:00:00.000Z"},
            {"VolumeId": "vol-2", "State": "completed", "StartTime": "2026-11-19T00:00:00+00:00"}]}"#;
        let of = |volumes: &[&str]| {
            let volumes: Vec<String> = volumes.iter().map(|name| (*name).to_owned()).collect();
            snapshots(json, &volumes).map(|backup| backup.ended.to_string())
        };
        assert_eq!(of(&["vol-1"]).as_deref(), Some("2026-11-20T00:00:00Z"));
        assert_eq!(
            of(&["vol-1", "vol-2"]).as_deref(),
            Some("2026-11-19T00:00:00Z")
        );
        assert_eq!(of(&["vol-3"]), None);
    }

    proptest! {
        #[test]
        fn any_file_is_read(text: String) {
            let _ = end_of_dump(&text, Timestamp::UNIX_EPOCH);
            let _ = end_of_pgbackrest(&format!("[backup:current]\n{text}"));
            let _ = end_of_xtrabackup(&text);
            let _ = is_wal(&text);
        }
    }
}
