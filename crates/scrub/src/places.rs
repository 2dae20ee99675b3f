//! Located mismatches and their owners, as text and JSON.

use std::path::Path;

use record::Bytes;
#[cfg(test)]
use record::Ranges;
use serde::Serialize;

use super::array_scrub::ScrubResult;
use super::document::pairs;
use super::locate::{Located, Mismatch, Owner, OwnerKind, Owners, Summary, WrongMember, harmless};
use super::repair::{BlockResult, RepairTotals, Repaired};
use ui::table::{Column, layout, wrap};

/// Maximum number of mismatches that are shown as text; the JSON document has more.
const MAX_TEXT_PLACES: usize = 20;

const COLUMNS: [Column; 5] = [
    Column::numbers("position", 0),
    Column::numbers("length", 0),
    Column::text("odd one out"),
    Column::text("what lies there"),
    Column::text("repair"),
];

/// Located mismatches, as text.
pub(crate) fn text(one: &ScrubResult, located: &Located, columns: usize) -> String {
    let rows: Vec<Vec<String>> = located
        .mismatches
        .iter()
        .take(MAX_TEXT_PLACES)
        .map(|mismatch| row(mismatch, located, repaired(one)))
        .collect();
    let mut text = String::new();
    if let Some(first) = rows.first() {
        text.push('\n');
        text.push_str(&layout(&COLUMNS[..first.len()], &rows, columns));
    }
    let path = one.target.path();
    for sentence in sentences(one, located) {
        text.push_str(&wrap(&format!("{path}: {sentence}"), columns, "  "));
        text.push('\n');
    }
    for line in located
        .owners
        .list
        .iter()
        .filter_map(|owner| file(&owner.what))
    {
        text.push_str(&wrap(&line, columns, "  "));
        text.push('\n');
    }
    text
}

/// Result of the repair of an array; `None` where there was none.
fn repaired(one: &ScrubResult) -> Option<&Repaired> {
    one.repaired.as_ref()?.as_ref().ok()
}

/// The cells of a mismatch; that of the last column exists only after a repair.
fn row(mismatch: &Mismatch, located: &Located, repaired: Option<&Repaired>) -> Vec<String> {
    let mut cells = vec![
        mismatch.position.start.to_string(),
        Bytes(mismatch.position.end - mismatch.position.start).to_string(),
        odd(mismatch.odd, located),
        match mismatch.array.is_empty() {
            true => "parity".to_owned(),
            false => owners_of(mismatch, &located.owners)
                .map(name)
                .collect::<Vec<_>>()
                .join(", "),
        },
    ];
    cells.extend(
        repaired.map(|repaired| result_label(repaired.result_at(&mismatch.position)).to_owned()),
    );
    cells
}

/// Name of the result of a repair, in text and in the JSON document.
fn result_label(result: Option<&BlockResult>) -> &'static str {
    match result {
        None => "not tried",
        Some(BlockResult::Restored) => "restored",
        Some(BlockResult::Agrees) => "agrees",
        Some(BlockResult::Ambiguous) => "ambiguous",
        Some(BlockResult::Untold) => "untold",
        Some(BlockResult::Refused(_)) => "refused",
        Some(BlockResult::Failed(_)) => "failed",
    }
}

/// Sentences on a repair from the other members.
pub(crate) fn of_repair(repaired: &Repaired) -> Vec<String> {
    let mut notices = Vec::new();
    let RepairTotals { restored, left } = repaired.sum;
    if restored > 0 {
        notices.push(format!(
            "{} that one member alone had wrong were written anew from the other members, read again, and \
             agree. What a file system has read from there before, it may still have in memory: sync; echo 3 > \
             /proc/sys/vm/drop_caches.",
            Bytes(restored)
        ));
    }
    let has = |wanted: &str| {
        let mut results = repaired.results.values();
        results.any(|result| result_label(Some(result)) == wanted)
    };
    if has("ambiguous") {
        notices.push(
            "Where several members are wrong at once nothing was written: their bytes do not show what was \
             there. Restore what lies there from a backup; to write it anew makes the members agree."
                .to_owned(),
        );
    }
    if has("untold") {
        notices.push(
            "Where no two copies agree nothing was written. Restore what lies there from a backup; to write it \
             anew makes them agree."
                .to_owned(),
        );
    }
    if left > 0 {
        notices.push(format!("{} differ still.", Bytes(left)));
    }
    notices
}

/// Text for the wrong member.
fn odd(odd: WrongMember, located: &Located) -> String {
    match odd {
        WrongMember::Member(slot) => match located.members.get(&slot) {
            Some(label) => label.clone(),
            None => format!("slot {slot}"),
        },
        WrongMember::Several => "several".to_owned(),
        WrongMember::Untold => "cannot be told".to_owned(),
    }
}

/// Owners of a mismatch.
fn owners_of<'a>(
    mismatch: &'a Mismatch,
    owners: &'a Owners,
) -> impl Iterator<Item = &'a OwnerKind> {
    let owners = owners.list.iter();
    owners
        .filter(|owner| !owner.array.intersect(&mismatch.array).is_empty())
        .map(|owner| &owner.what)
}

fn name(what: &OwnerKind) -> String {
    match what {
        OwnerKind::File { path, .. } => path.display().to_string(),
        OwnerKind::Unwritten { path } => format!("{} (allocated, not written)", path.display()),
        OwnerKind::Free(mount) => format!("free space of {}", mount.display()),
        OwnerKind::Nameless(mount) => format!("metadata or unused space of {}", mount.display()),
        OwnerKind::Swap(device) => format!("swap on {device}"),
        OwnerKind::Unknown(why) => format!("not known: {why}"),
    }
}

/// Line that names the bytes of a file.
fn file(what: &OwnerKind) -> Option<String> {
    let OwnerKind::File {
        path,
        parts,
        shared,
    } = what
    else {
        return None;
    };
    let count = parts.count();
    let mut listed: Vec<String> = parts
        .iter()
        .take(MAX_TEXT_PLACES)
        .map(|part| format!("{}-{}", part.start, part.end.saturating_sub(1)))
        .collect();
    if count > MAX_TEXT_PLACES {
        listed.push(format!("and {} more parts", count - MAX_TEXT_PLACES));
    }
    let shared = if *shared { ", which others share" } else { "" };
    Some(format!(
        "{}: bytes {}{shared}",
        path.display(),
        listed.join(", ")
    ))
}

/// Sentences on the search.
fn sentences(one: &ScrubResult, located: &Located) -> Vec<String> {
    let Summary {
        compared,
        alone,
        moving,
        unreadable,
        more_unreadable,
        interrupted,
    } = &located.summary;
    let count = located.mismatches.len() as u64 + located.more;
    let mut notices = Vec::new();
    let compared = Bytes(*compared);
    if count == 0 {
        notices.push(format!(
            "Of the {compared} of positions in which md counted, all agrees now: what differed has been \
             written since."
        ));
    } else {
        let places = match count {
            1 => "1 place differs".to_owned(),
            _ => format!("{count} places differ"),
        };
        notices.push(format!(
            "{places}, {} in all, of {compared} of positions that were compared.",
            Bytes(located.bytes)
        ));
        notices.extend(harmless(one.target.level).map(str::to_owned));
    }
    if count > MAX_TEXT_PLACES as u64 {
        notices.push(format!(
            "{MAX_TEXT_PLACES} are shown; --json lists {}.",
            located.mismatches.len()
        ));
    }
    if *moving > 0 {
        notices.push(format!(
            "{moving} blocks differed at first and were being written."
        ));
    }
    if *alone > 0 {
        let alone = Bytes(*alone);
        notices.push(format!(
            "{alone} have no second member to be compared with."
        ));
    }
    if let Some(first) = unreadable.first() {
        let label = located
            .members
            .get(&first.slot)
            .map_or("a member", String::as_str);
        notices.push(format!(
            "{} parts could not be read, the first on {label}: {}.",
            unreadable.len() as u64 + more_unreadable,
            first.error
        ));
    }
    if located.owners.more_files > 0 {
        notices.push(format!(
            "{} more files are not listed.",
            located.owners.more_files
        ));
    }
    if located.owners.unseen > 0 {
        notices.push(format!(
            "{} files and folders could not be read.",
            located.owners.unseen
        ));
    }
    if *interrupted || located.owners.interrupted {
        notices.push("It was interrupted before its end; --locate searches again.".to_owned());
    }
    notices
}

/// A place where members differ.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MismatchDocument<'a> {
    /// First byte and end of the range in each member's data, counted from the start of that data.
    position_bytes: [u64; 2],
    /// First byte and end of each range of the array that differs; none where parity differs.
    array_bytes: Vec<[u64; 2]>,
    /// `member` where one member differs from all others, `several` where more than one does, `untold` where that
    /// cannot be decided.
    odd: &'static str,
    /// The member that differs from all others; null where none can be named.
    odd_member: Option<&'a str>,
    /// Ranges of the array that this member has wrong, as `array_bytes`.
    odd_member_bytes: Vec<[u64; 2]>,
    /// Ranges of this member's device, as first byte and end.
    odd_member_device_bytes: Vec<[u64; 2]>,
    /// Result of the repair: `restored`, `agrees`, `ambiguous`, `untold`, `refused`, `failed` or `not tried`; null
    /// without a repair.
    repair: Option<&'static str>,
    /// Reason for which the repair wrote nothing, or failed; null of other results.
    repair_why: Option<&'a str>,
    /// Paths of the files whose bytes are there.
    files: Vec<String>,
}

impl<'a> MismatchDocument<'a> {
    /// Documents of all mismatches that were located.
    pub(crate) fn all(
        located: &'a Located,
        repaired: Option<&'a Repaired>,
    ) -> Vec<MismatchDocument<'a>> {
        let mismatches = located.mismatches.iter();
        let document = |one: &'a Mismatch| {
            let slot = one.odd.slot();
            let result = repaired.map(|repaired| repaired.result_at(&one.position));
            let files = owners_of(one, &located.owners).filter_map(|what| match what {
                OwnerKind::File { path, .. } => Some(path.display().to_string()),
                _ => None,
            });
            MismatchDocument {
                position_bytes: [one.position.start, one.position.end],
                array_bytes: pairs(&one.array),
                odd: odd_label(one.odd),
                odd_member: slot.and_then(|slot| Some(located.members.get(&slot)?.as_str())),
                odd_member_bytes: slot.map_or_else(Vec::new, |_| pairs(&one.array)),
                odd_member_device_bytes: pairs(&one.device),
                repair: result.map(result_label),
                repair_why: result.and_then(|result| repair_failure(result?)),
                files: files.collect(),
            }
        };
        mismatches.map(document).collect()
    }
}

/// Reason why a repair has written nothing, or has failed.
fn repair_failure(result: &BlockResult) -> Option<&str> {
    match result {
        BlockResult::Refused(why) | BlockResult::Failed(why) => Some(why),
        _ => None,
    }
}

fn odd_label(odd: WrongMember) -> &'static str {
    match odd {
        WrongMember::Member(_) => "member",
        WrongMember::Several => "several",
        WrongMember::Untold => "untold",
    }
}

/// Totals of the search for mismatches, and the owners of the bytes there.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LocatedDocument<'a> {
    /// Bytes that differ, in bytes as md counts them, also of mismatches that are not listed.
    bytes: u64,
    /// Number of mismatches that are not listed.
    more_mismatches: u64,
    /// Bytes that were compared, as md counts them.
    compared_bytes: u64,
    /// Bytes without a second member to be compared with, as md counts them.
    alone_bytes: u64,
    /// Number of blocks that differed at first and were being written.
    moving_blocks: u64,
    /// Parts of members that could not be read, the first of them.
    unreadable: Vec<UnreadDocument<'a>>,
    /// Number of parts that could not be read and are not listed.
    more_unreadable: u64,
    /// Owners of the bytes that differ.
    owners: Vec<OwnerDocument>,
    /// Number of files with such bytes that are not listed.
    more_files: u64,
    /// Number of files and folders that could not be examined.
    unseen: u64,
    /// True if the search was interrupted before its end.
    interrupted: bool,
}

/// A part of a member that could not be read.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UnreadDocument<'a> {
    /// First byte and end of the range in the member's data, counted from the start of that data.
    position_bytes: [u64; 2],
    /// Path of the member's device; null where it is not known.
    member: Option<&'a str>,
    /// Error of the read.
    error: &'a str,
}

/// Owner of some ranges of the array.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OwnerDocument {
    /// Kind of the owner: `file`, `unwritten`, `free`, `nameless`, `swap` or `unknown`.
    kind: &'static str,
    /// Path of the file, mount point, swap device, or reason for which the owner is not known.
    of: String,
    /// First byte and end of each range of the array.
    array_bytes: Vec<[u64; 2]>,
    /// First byte and end of each range of the file; null of other owners.
    file_bytes: Option<Vec<[u64; 2]>>,
    /// True if a snapshot or another file shares these bytes; null of owners other than files.
    shared: Option<bool>,
}

impl<'a> LocatedDocument<'a> {
    pub(crate) fn of(located: &'a Located) -> LocatedDocument<'a> {
        let summary = &located.summary;
        let unreadable = summary.unreadable.iter().map(|one| UnreadDocument {
            position_bytes: [one.position.start, one.position.end],
            member: located.members.get(&one.slot).map(String::as_str),
            error: &one.error,
        });
        LocatedDocument {
            bytes: located.bytes,
            more_mismatches: located.more,
            compared_bytes: summary.compared,
            alone_bytes: summary.alone,
            moving_blocks: summary.moving,
            unreadable: unreadable.collect(),
            more_unreadable: summary.more_unreadable,
            owners: located.owners.list.iter().map(OwnerDocument::of).collect(),
            more_files: located.owners.more_files,
            unseen: located.owners.unseen,
            interrupted: summary.interrupted || located.owners.interrupted,
        }
    }
}

impl OwnerDocument {
    fn of(owner: &Owner) -> OwnerDocument {
        let shown = |path: &Path| path.display().to_string();
        let (kind, of) = match &owner.what {
            OwnerKind::File { path, .. } => ("file", shown(path)),
            OwnerKind::Unwritten { path } => ("unwritten", shown(path)),
            OwnerKind::Free(mount) => ("free", shown(mount)),
            OwnerKind::Nameless(mount) => ("nameless", shown(mount)),
            OwnerKind::Swap(device) => ("swap", device.clone()),
            OwnerKind::Unknown(why) => ("unknown", why.clone()),
        };
        let (file_bytes, shared) = match &owner.what {
            OwnerKind::File { parts, shared, .. } => (Some(pairs(parts)), Some(*shared)),
            _ => (None, None),
        };
        OwnerDocument {
            kind,
            of,
            array_bytes: pairs(&owner.array),
            file_bytes,
            shared,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn documents(located: &Located, repaired: Option<&Repaired>) -> Value {
        serde_json::to_value(MismatchDocument::all(located, repaired)).unwrap()
    }

    #[test]
    fn a_mismatch_is_shown_with_its_odd_member_and_the_file_that_lies_there() {
        let mismatch = Mismatch {
            position: 8192..12_288,
            array: Ranges::from(65_536..69_632),
            device: Ranges::from(1_056_768..1_060_864),
            odd: WrongMember::Member(1),
        };
        let owner = |at: u64, path: &str| Owner {
            array: Ranges::from(at..at + 4096),
            what: OwnerKind::File {
                path: path.into(),
                parts: Ranges::from(0..4096),
                shared: false,
            },
        };
        let located = Located {
            mismatches: vec![mismatch],
            owners: Owners {
                list: vec![owner(0, "/a"), owner(65_536, "/b")],
                ..Owners::default()
            },
            members: [(1, "/dev/vdb".to_owned())].into(),
            ..Located::default()
        };
        assert_eq!(
            row(&located.mismatches[0], &located, None),
            ["8192", "4 KiB", "/dev/vdb", "/b"]
        );
        let document = documents(&located, None);
        assert_eq!(document[0]["files"], json!(["/b"]));
        assert_eq!(document[0]["odd_member"], "/dev/vdb");
        assert_eq!(document[0]["position_bytes"], json!([8192, 12_288]));
        assert_eq!(document[0]["array_bytes"], json!([[65_536, 69_632]]));
        assert_eq!(
            document[0]["odd_member_device_bytes"],
            json!([[1_056_768, 1_060_864]])
        );
        assert_eq!(document[0]["repair"], Value::Null);
        let untold = Located {
            mismatches: vec![Mismatch {
                odd: WrongMember::Untold,
                array: [0..4096, 65_536..69_632].into_iter().collect(),
                device: Ranges::new(),
                ..located.mismatches[0].clone()
            }],
            ..located.clone()
        };
        let document = documents(&untold, None);
        assert_eq!(document[0]["files"], json!(["/a", "/b"]));
        assert_eq!(document[0]["odd_member_bytes"], json!([]));
        let lines: Vec<_> = untold
            .owners
            .list
            .iter()
            .filter_map(|one| file(&one.what))
            .collect();
        assert_eq!(lines, ["/a: bytes 0-4095", "/b: bytes 0-4095"]);
        let parity = Mismatch {
            array: Ranges::new(),
            ..located.mismatches[0].clone()
        };
        assert_eq!(row(&parity, &located, None)[3], "parity");
        assert!(owners_of(&parity, &located.owners).next().is_none());
    }

    #[test]
    fn a_mismatch_that_was_repaired_says_so_and_the_worst_of_its_blocks_counts() {
        let mismatch = Mismatch {
            position: 8192..16_384,
            array: Ranges::from(8192..16_384),
            device: Ranges::new(),
            odd: WrongMember::Member(1),
        };
        let located = Located {
            mismatches: vec![mismatch],
            ..Located::default()
        };
        let refused = || BlockResult::Refused("it is degraded".to_owned());
        let cases = [
            (
                [Some(BlockResult::Restored), Some(BlockResult::Agrees)],
                "restored",
                None,
            ),
            (
                [Some(BlockResult::Restored), Some(refused())],
                "refused",
                Some("it is degraded"),
            ),
            ([Some(BlockResult::Restored), None], "not tried", None),
        ];
        for (results, word, why) in cases {
            let blocks = [8192, 12_288].into_iter().zip(results);
            let repaired = Repaired {
                results: blocks
                    .filter_map(|(at, result)| Some((at, result?)))
                    .collect(),
                ..Repaired::default()
            };
            let row = row(&located.mismatches[0], &located, Some(&repaired));
            assert_eq!(row[4], word);
            let document = documents(&located, Some(&repaired));
            assert_eq!(document[0]["repair"], word);
            assert_eq!(document[0]["repair_why"], json!(why));
        }
    }
}
