//! Choice of tag, host, disks and range of time.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::frame::FrameView;
use crate::documents::{DiskName, ResponseTimes, Verdicts};

/// Ranges that end now.
const RANGES: [(&str, &str); 7] = [
    ("10m", "10 min"),
    ("1h", "1 h"),
    ("6h", "6 h"),
    ("1d", "1 day"),
    ("7d", "7 days"),
    ("30d", "30 days"),
    ("365d", "1 year"),
];

pub(super) struct Controls<'a> {
    pub(super) selection: &'a str,
    pub(super) tags: &'a [String],
    pub(super) hosts: Vec<&'a str>,
    pub(super) host: String,
    pub(super) disks: Vec<(String, bool)>,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// True if the range has a beginning and an end; false if it ends now.
    pub(super) is_fixed: bool,
    /// The range that ends now, if one was requested.
    pub(super) last: String,
    /// Name, address, and whether it is the one that is shown.
    pub(super) ranges: Vec<(&'static str, String, bool)>,
    /// Id, sign, name and address.
    pub(super) steps: [(&'static str, &'static str, &'static str, String); 4],
}

impl<'a> Controls<'a> {
    pub(super) fn of_view(frame: &FrameView<'_>, view: &'a ResponseTimes) -> Controls<'a> {
        let hosts: BTreeSet<&str> = view
            .known_disks
            .iter()
            .map(|disk| disk.hostname.as_str())
            .collect();
        let shown: BTreeSet<&DiskName> = view.disks.iter().map(|disk| &disk.disk).collect();
        let disks = view.known_disks.iter();
        Controls {
            hosts: hosts.into_iter().collect(),
            disks: disks
                .map(|disk| {
                    (
                        format!("{}/{}", disk.hostname, disk.name),
                        shown.contains(disk),
                    )
                })
                .collect(),
            ..Controls::new(
                frame,
                (view.selection.as_deref(), &view.tags),
                (view.from, view.to),
                "1h",
            )
        }
    }

    pub(super) fn of_verdicts(frame: &FrameView<'_>, view: &'a Verdicts) -> Controls<'a> {
        Controls::new(
            frame,
            (view.selection.as_deref(), &view.tags),
            (view.from, view.to),
            "1d",
        )
    }

    fn new(
        frame: &FrameView<'_>,
        (selection, tags): (Option<&'a str>, &'a [String]),
        (from, to): (Timestamp, Timestamp),
        usual: &str,
    ) -> Controls<'a> {
        let query = &frame.query;
        let is_fixed = !(query.get("from").is_empty() && query.get("to").is_empty());
        let last = if is_fixed { "" } else { query.get("last") };
        let current = match (is_fixed, last) {
            (false, "") => usual,
            (_, last) => last,
        };
        let ranges = RANGES.map(|(range, name)| {
            (
                name,
                query.in_range(frame.path, &[("last", range)]),
                range == current,
            )
        });
        let (start, end) = (from.as_second(), to.as_second());
        let half = (end - start) / 2;
        let step = |id, sign, name, from, to| (id, sign, name, query.between(frame.path, from, to));
        Controls {
            selection: selection.unwrap_or_default(),
            tags,
            hosts: Vec::new(),
            host: query.get("host").to_owned(),
            disks: Vec::new(),
            from,
            to,
            is_fixed,
            last: last.to_owned(),
            ranges: ranges.into(),
            steps: [
                step("earlier", "←", "Earlier", start - half, end - half),
                step("later", "→", "Later", start + half, end + half),
                step("closer", "+", "Zoom in", start + half / 2, end - half / 2),
                step("wider", "−", "Zoom out", start - half, end + half),
            ],
        }
    }
}
