//! The disks that a verb overwrites on all hosts, as one table that is confirmed before anything is written.

use record::Bytes;
use serde_json::Value;

use domain::plan_binding::DiskIdentity;
use ui::charset::printable;
use ui::format;
use ui::table::{Column, layout, wrap};

/// Cell for a disk without a known signature.
const NO_SIGNATURE_CELL: &str = "nothing known";

/// A disk of the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DestroyTarget {
    /// Name of its host.
    pub host: String,
    /// Zone of the host.
    pub zone: Option<String>,
    /// Path with which it is opened.
    pub path: String,
    /// Size of the disk in bytes.
    pub size_bytes: Option<u64>,
    /// The kinds of signatures on it; `None` if it was not examined.
    pub content: Option<Vec<String>>,
    /// Number of bytes left to write, if a part is already written.
    pub left_bytes: Option<u64>,
    /// Method of writing, if there are several.
    pub how: Option<String>,
    /// Model of the disk.
    pub model: Option<String>,
    /// Serial number of the disk.
    pub serial: Option<String>,
    /// Identity of the disk; `None` if the host does not report it.
    pub seen: Option<DiskIdentity>,
}

impl DestroyTarget {
    /// A disk in a host's report or dry run.
    pub(crate) fn of(host: &str, zone: Option<&str>, answer: &Value) -> DestroyTarget {
        let word = |key: &str| answer[key].as_str().map(str::to_owned);
        DestroyTarget {
            host: host.to_owned(),
            zone: zone.map(str::to_owned),
            path: word("path").unwrap_or_default(),
            size_bytes: answer["size_bytes"].as_u64(),
            content: serde_json::from_value(answer["content"].clone()).ok(),
            left_bytes: answer["left_bytes"].as_u64(),
            how: word("method"),
            model: word("model"),
            serial: word("serial"),
            seen: serde_json::from_value(answer["seen"].clone()).ok(),
        }
    }

    /// The options that bind the work on its host to this disk; empty if its identity is unknown.
    pub(crate) fn binding_options(&self) -> Vec<String> {
        let bound = self
            .seen
            .as_ref()
            .map(|seen| seen.binding_options(&self.path));
        bound.into_iter().flatten().collect()
    }
}

const COLUMNS: [Column; 9] = [
    Column::text("host"),
    Column::text("zone").ranked(4),
    Column::text("disk"),
    Column::numbers("size", 0),
    Column::text("on it"),
    Column::numbers("left", 1),
    Column::text("how").ranked(3),
    Column::text("model").ranked(2),
    Column::text("serial").ranked(1),
];

/// The plan as a table, followed by a sentence that begins with `what`.
pub(crate) fn table(disks: &[DestroyTarget], what: &str, columns: usize) -> String {
    let word = |text: &Option<String>| text.clone().unwrap_or_default();
    let size = |size: Option<u64>| size.map_or_else(String::new, |size| Bytes(size).to_string());
    let content = |content: &Option<Vec<String>>| match content.as_deref() {
        None => String::new(),
        Some([]) => NO_SIGNATURE_CELL.to_owned(),
        Some(labels) => labels.join(", "),
    };
    let row = |disk: &DestroyTarget| {
        vec![
            disk.host.clone(),
            word(&disk.zone),
            disk.path.clone(),
            size(disk.size_bytes),
            content(&disk.content),
            size(disk.left_bytes),
            word(&disk.how),
            word(&disk.model),
            word(&disk.serial),
        ]
    };
    let rows: Vec<Vec<String>> = disks.iter().map(row).collect();
    let remark = format!("{what}: {}. Nothing of it was written yet.", count(disks));
    let table = layout(&COLUMNS, &rows, columns);
    printable(&format!("{table}{}\n", wrap(&remark, columns, ""))).into_owned()
}

/// Number of disks and of hosts, in words.
pub(crate) fn count(disks: &[DestroyTarget]) -> String {
    let mut hosts: Vec<&str> = disks.iter().map(|disk| disk.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    format!(
        "{} of {}",
        format::count(disks.len(), "disk"),
        format::count(hosts.len(), "host")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use domain::plan_binding::PlannedDisk;

    #[test]
    fn a_disk_shows_its_content_and_is_bound_to_it() {
        let seen = json!({ "boot": "b", "diskseq": 1, "number": "8:0", "identity": null,
            "size_bytes": 1 << 30 });
        let answer = json!({ "path": "/dev/sdf", "size_bytes": 1 << 30, "content": ["ext4"],
            "model": "EBS", "serial": "vol-1", "seen": seen });
        let disk = DestroyTarget::of("db1", Some("a"), &answer);
        let bound = disk.binding_options();
        let planned: PlannedDisk = bound[1].parse().unwrap();
        assert_eq!(planned.path.to_str(), Some("/dev/sdf"));
        let bare = DestroyTarget::of("db2", None, &json!({ "path": "/dev/sdf", "content": [] }));
        assert_eq!(bare.binding_options(), [""; 0]);
        let shown = table(&[disk, bare], "This would be zeroed", 100);
        for part in [
            "db1",
            "1 GiB",
            "ext4",
            "vol-1",
            NO_SIGNATURE_CELL,
            "2 disks of 2 hosts",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let narrow = table(&[DestroyTarget::of("db1", Some("a"), &answer)], "x", 40);
        assert!(
            narrow.contains("1 disk of 1 host") && !narrow.contains("EBS"),
            "{narrow}"
        );
    }
}
