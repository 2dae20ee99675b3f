//! The page Now: hosts and the current figures of their disks.

use askama::Template;

use super::frame::FrameView;
use super::text;
use crate::documents::{DiskNow, HostNow, NowDocument};

#[derive(Template)]
#[template(path = "now.html")]
struct View<'a> {
    frame: FrameView<'a>,
    now: &'a NowDocument,
    hosts: Vec<(&'a HostNow, Vec<(&'a DiskNow, usize)>)>,
}

pub(super) fn page(frame: FrameView<'_>, now: &NowDocument) -> Result<String, askama::Error> {
    let hosts = now.hosts.iter();
    View {
        frame,
        now,
        hosts: hosts.map(|host| (host, tree(&host.disks))).collect(),
    }
    .render()
}

/// Maximum indentation of a row, in levels.
const MAX_INDENT: usize = 3;

/// Disks in the order of the rows, each with its depth. A disk that others lie on follows the first of those.
fn tree(disks: &[DiskNow]) -> Vec<(&DiskNow, usize)> {
    let mut rows: Vec<(&DiskNow, usize)> = Vec::with_capacity(disks.len());
    let is_below = |disk: &&DiskNow| disks.iter().any(|other| other.lies_on.contains(&disk.name));
    let (below, top): (Vec<&DiskNow>, Vec<&DiskNow>) = disks.iter().partition(is_below);
    for disk in top {
        add(&mut rows, disks, disk, 0);
    }
    // Disks of a cycle, which the kernel does not allow, are below no top disk.
    for disk in below {
        add(&mut rows, disks, disk, 0);
    }
    rows
}

fn add<'a>(
    rows: &mut Vec<(&'a DiskNow, usize)>,
    disks: &'a [DiskNow],
    disk: &'a DiskNow,
    depth: usize,
) {
    if rows.iter().any(|(other, _)| other.name == disk.name) {
        return;
    }
    rows.push((disk, depth));
    for below in disks
        .iter()
        .filter(|other| disk.lies_on.contains(&other.name))
    {
        add(rows, disks, below, (depth + 1).min(MAX_INDENT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{Flow, RoundedFigure};

    fn disk(name: &str, lies_on: &[&str]) -> DiskNow {
        let unknown = RoundedFigure(f64::NAN);
        let flow = Flow {
            iops: unknown,
            bytes_per_s: unknown,
            await_ms: unknown,
        };
        DiskNow {
            name: name.to_owned(),
            alias: None,
            kind: "disk",
            model: None,
            size_bytes: None,
            lies_on: lies_on.iter().map(|name| (*name).to_owned()).collect(),
            read: flow.clone(),
            write: flow,
            await_ms: unknown,
            queue: unknown,
            busy_fraction: unknown,
            findings: Vec::new(),
            array: None,
        }
    }

    #[test]
    fn each_disk_is_listed_once_below_what_lies_on_it() {
        let disks = [
            disk("a", &[]),
            disk("b", &[]),
            disk("dm-0", &["md0"]),
            disk("md0", &["a", "b"]),
            disk("x", &["y"]),
            disk("y", &["x"]),
        ];
        let rows: Vec<(&str, usize)> = tree(&disks)
            .iter()
            .map(|(disk, depth)| (disk.name.as_str(), *depth))
            .collect();
        assert_eq!(
            rows,
            [
                ("dm-0", 0),
                ("md0", 1),
                ("a", 2),
                ("b", 2),
                ("x", 0),
                ("y", 1)
            ]
        );
    }
}
