//! Report at the end: unreadable extents, the bytes of the array and the files that they hold, and advice.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use job::Resumable;
use linux::Root;
use linux::block::Devices;
use reader::ForegroundReport;
use record::{Bytes, Ranges};
use serde::Serialize;

use super::super::document::ForegroundDocument;
use super::super::locate::{OwnerKind, Owners, owners};
use super::super::progress::latency_cell;
use super::device_read::{Read, ReadEnd};
use super::member::MemberResult;
use super::places;
use super::source::{ArrayState, ReadPart};
use ui::table::{Column, layout, wrap};
use ui::units::{rate, span};

/// Maximum number of extents, and of files, that are listed in text. JSON has all.
const MAX_LISTED_EXTENTS: usize = 8;

const COLUMNS: [Column; 7] = [
    Column::text("disk"),
    Column::text("of"),
    Column::numbers("read", 0),
    Column::numbers("before", 2),
    Column::numbers("rate", 1),
    Column::numbers("foreground", 2),
    Column::text("now"),
];

/// Result of an array or disk, with the owners of its unreadable extents.
pub(crate) struct ReadResult {
    read: Read,
    /// Ranges of the array or disk that cannot be read.
    bad: Ranges,
    /// Owners of the extents, if they were requested.
    owners: Option<Owners>,
    /// Notes, in sentences.
    notes: Vec<String>,
}

impl ReadResult {
    /// Path of the source, with its foreground latency and targets, for the report page.
    pub(crate) fn foreground(&self) -> (String, Option<&ForegroundReport>) {
        (self.read.source.path(), self.read.foreground.as_ref())
    }

    /// True if no unreadable range was found.
    pub(crate) fn is_whole(&self) -> bool {
        self.read
            .parts
            .iter()
            .all(|part| part.checkpoint.unreadable.is_empty())
    }

    fn parts(&self) -> impl Iterator<Item = (&ReadPart, &MemberResult)> {
        self.read.source.parts.iter().zip(&self.read.parts)
    }

    fn is_kept(&self) -> bool {
        self.read.parts.iter().all(|part| part.is_kept == Ok(true))
    }

    fn left(&self) -> u64 {
        self.read.parts.iter().map(|part| part.left.0).sum()
    }
}

/// Finds the ranges of the array that are unreadable and, if `locates` is true, their owners.
pub(crate) fn locate_unreadable(
    read: Read,
    (root, devices): (&Root, &Devices),
    locates: bool,
    interrupt: &AtomicBool,
) -> ReadResult {
    let mut found = ReadResult {
        bad: Ranges::new(),
        owners: None,
        notes: Vec::new(),
        read,
    };
    let source = &found.read.source;
    for (part, came) in source.parts.iter().zip(&found.read.parts) {
        let path = part.volume.path.display();
        if came.is_coarse {
            found.notes.push(format!(
                "{path} has more unreadable places than could be read page by page in time: some of those listed are whole blocks, of which a part may be readable."
            ));
        }
        if let Err(error) = &came.is_kept {
            found.notes.push(format!(
                "The progress of {path} could not be saved: {error}."
            ));
        }
        let bad = &came.checkpoint.unreadable;
        if bad.is_empty() {
            continue;
        }
        found.notes.push(format!(
            "{} of {path} in {} extents cannot be read. As byte offset and length: {}.",
            bad.total(),
            bad.count(),
            extents(bad)
        ));
        match part.slot {
            None => found.bad = found.bad.union(bad),
            Some(slot) => {
                let number = part.volume.number();
                let place = (slot, part.offset);
                match places::of_array((root, devices), &source.device, number, place, bad) {
                    Ok(above) => found.bad = found.bad.union(&above),
                    Err(why) => found.notes.push(format!(
                        "Which bytes of {} these are is not known: {why}.",
                        source.path()
                    )),
                }
            }
        }
    }
    if source.array.is_some() && !found.bad.is_empty() {
        found.notes.push(format!(
            "Of {} these are, as byte offset and length: {}.",
            source.path(),
            extents(&found.bad)
        ));
    }
    if locates && !found.bad.is_empty() {
        match owners(root, devices, source.device.number, &found.bad, interrupt) {
            Ok(owners) => found.owners = Some(owners),
            Err(error) => found.notes.push(format!(
                "The owners of these bytes could not be found: {error}."
            )),
        }
    }
    let beside = found.read.foreground.as_ref();
    found.notes.extend(beside.map(ForegroundReport::text));
    if !found.is_whole() {
        let advice = advice(&found);
        found.notes.push(advice);
    }
    found
}

fn extents(ranges: &Ranges) -> String {
    let extents: Vec<String> = ranges
        .iter()
        .take(MAX_LISTED_EXTENTS)
        .map(|range| format!("{}+{}", range.start, range.end - range.start))
        .collect();
    let more = match ranges.count().saturating_sub(MAX_LISTED_EXTENTS) {
        0 => String::new(),
        more => format!(" and {more} more (--json lists all)"),
    };
    format!("{}{more}", extents.join(", "))
}

/// Advice about unreadable extents.
fn advice(found: &ReadResult) -> String {
    let source = &found.read.source;
    let path = source.path();
    if source
        .array
        .as_ref()
        .is_some_and(|array| array.is_redundant())
    {
        return format!(
            "The other members have what lies there: 'disksmith scrub {path}' makes md read these places \
             too, and write anew what it cannot read; the drive remaps these sectors then. If it happens again, replace the disk."
        );
    }
    let files = if found.owners.is_some() {
        ""
    } else {
        " (--locate names the files)"
    };
    format!(
        "No second copy of it is here{files}: restore what lies there from a backup or a replica. When such a sector is written, the drive remaps it. If it happens again, replace the disk."
    )
}

/// Owners of the extents, as lines of text.
fn owner_lines(owners: &Owners) -> Vec<String> {
    let mut lines: Vec<String> = owners
        .list
        .iter()
        .take(MAX_LISTED_EXTENTS)
        .map(|owner| {
            let what = match &owner.what {
                OwnerKind::File { path, parts, .. } => {
                    format!("the file {}, of it {}", path.display(), extents(parts))
                }
                OwnerKind::Unwritten { path } => {
                    format!("space that {} has never written", path.display())
                }
                OwnerKind::Free(point) => format!("free space of {}", point.display()),
                OwnerKind::Nameless(point) => format!(
                    "of {}, but of no file that could be seen: metadata, a log, or a deleted file",
                    point.display()
                ),
                OwnerKind::Swap(device) => format!("swap on {device}"),
                OwnerKind::Unknown(why) => format!("not known: {why}"),
            };
            format!("What lies at {} is {what}.", extents(&owner.array))
        })
        .collect();
    let more = owners.list.len().saturating_sub(MAX_LISTED_EXTENTS) as u64 + owners.more_files;
    if more > 0 {
        lines.push(format!("{more} more lie there (--json lists up to 1,000)."));
    }
    if owners.unseen > 0 || owners.interrupted {
        lines.push("Not all files could be read, so that some may be missing here.".to_owned());
    }
    lines
}

/// The results as text.
pub(crate) fn text(found: &[ReadResult], columns: usize) -> String {
    let rows: Vec<Vec<String>> = found
        .iter()
        .flat_map(|one| one.parts().map(|(part, came)| row(one, part, came)))
        .collect();
    let mut text = layout(&COLUMNS, &rows, columns);
    for one in found {
        let lines = one.owners.as_ref().map(owner_lines).unwrap_or_default();
        for line in one.notes.iter().chain(&lines) {
            let line = format!("{}: {line}", one.read.source.path());
            text.push_str(&wrap(&line, columns, "  "));
            text.push('\n');
        }
    }
    text
}

fn row(one: &ReadResult, part: &ReadPart, came: &MemberResult) -> Vec<String> {
    let array = match (&one.read.source.array, part.slot) {
        (Some(array), Some(_)) => format!("{} {}", one.read.source.path(), array.level_name()),
        _ => "itself".to_owned(),
    };
    let bad = came.checkpoint.unreadable.total();
    let mut now = match bad.0 {
        0 => "all can be read".to_owned(),
        _ => format!("{bad} cannot be read"),
    };
    if came.left.0 > 0 {
        now = match bad.0 {
            0 => format!("{} left", came.left),
            _ => format!("{now}, {} left", came.left),
        };
    }
    let done = came.checkpoint.done.total();
    vec![
        part.volume.path.display().to_string(),
        array,
        came.read.to_string(),
        (done - came.read).to_string(),
        rate(came.read.0 as f64 / one.read.seconds),
        latency_cell(&one.read.at),
        now,
    ]
}

/// Sentence on why an array or disk was not read to its end, with the rest; `None` where it was.
pub(crate) fn incomplete_reason(one: &ReadResult) -> Option<String> {
    let why = end_reason(&one.read.ending)?;
    let hint = Resumable::if_written(one.is_kept()).hint();
    Some(format!(
        "{}: {why} after {}, with {} left to read. {hint}",
        one.read.source.path(),
        span(one.read.seconds),
        Bytes(one.left()),
    ))
}

fn end_reason(ending: &ReadEnd) -> Option<String> {
    Some(match ending {
        ReadEnd::Done => return None,
        ReadEnd::Interrupted => "it was interrupted".to_owned(),
        ReadEnd::TimeUp => "its time was up".to_owned(),
        ReadEnd::Gone(why) | ReadEnd::Failed(why) => why.clone(),
        ReadEnd::Busy(action) => format!("md has begun a {action} of its own, which has priority,"),
    })
}

fn end_label(ending: &ReadEnd) -> &'static str {
    match ending {
        ReadEnd::Done => "done",
        ReadEnd::Interrupted => "interrupted",
        ReadEnd::TimeUp => "time-up",
        ReadEnd::Gone(_) => "gone",
        ReadEnd::Busy(_) => "recovery",
        ReadEnd::Failed(_) => "failed",
    }
}

/// The results as one JSON document.
pub(crate) fn document(found: &[ReadResult]) -> String {
    let read = found.iter().map(SourceDocument::of).collect();
    let document = Document { mode: "read", read };
    ui::json::document("scrub", &document)
}

/// The document of `scrub --read --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Mode of the command: `read`.
    mode: &'static str,
    /// Result of each array or disk.
    read: Vec<SourceDocument<'a>>,
}

/// Result of an array or disk.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SourceDocument<'a> {
    /// Path of the array or disk.
    device: String,
    /// UUID of the array; null for a disk.
    uuid: Option<&'a str>,
    /// RAID level as md names it, such as `raid0`; null for a disk.
    level: Option<&'a str>,
    /// Result of each disk that was read: the members of the array, or the disk itself.
    disks: Vec<DiskDocument<'a>>,
    /// Unreadable extents, as bytes of the array or disk.
    unreadable: Vec<ExtentDocument>,
    /// Owners of the unreadable extents; null where there are none, without `--locate`, or where the search
    /// failed.
    located: Option<Vec<OwnerDocument<'a>>>,
    /// End of the reading: `done`, `interrupted`, `time-up`, `gone`, `recovery` or `failed`.
    ended: &'static str,
    /// Reason for an early end, as a clause; null where all was read.
    why: Option<String>,
    /// Duration of this start, in seconds.
    seconds: f64,
    /// True if the progress of all its disks is in the ledger, so that the same command continues from there.
    kept: bool,
    /// Latency of the foreground, and its targets.
    foreground: ForegroundDocument,
    /// Notes for people, in sentences.
    notes: &'a [String],
}

/// Result of a disk that was read.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiskDocument<'a> {
    /// Path of the disk.
    device: &'a Path,
    /// Slot of the member in its array; null for a disk that is no member.
    slot: Option<u32>,
    /// Bytes of the disk that are to be read in all.
    of_bytes: Bytes,
    /// Bytes that earlier starts read.
    before_bytes: Bytes,
    /// Bytes that this start read.
    read_bytes: Bytes,
    /// Bytes that are still to be read.
    left_bytes: Bytes,
    /// Unreadable extents, as bytes of the disk.
    unreadable: Vec<ExtentDocument>,
    /// Number of starts, this one included.
    starts: u32,
    /// Running time of all starts, in seconds.
    seconds_of_all_starts: f64,
}

/// A contiguous range of bytes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ExtentDocument {
    /// Offset of its first byte.
    offset_bytes: u64,
    /// Length in bytes.
    length_bytes: u64,
}

/// Owners of some extents.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OwnerDocument<'a> {
    /// The extents, as bytes of the array or disk.
    extents: Vec<ExtentDocument>,
    /// The owner of their bytes.
    what: OwnerKindDocument<'a>,
}

/// Owner of bytes on a disk.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
enum OwnerKindDocument<'a> {
    /// A file.
    File {
        /// Path of the file.
        path: &'a Path,
        /// The extents, as bytes of the file.
        parts: Vec<ExtentDocument>,
        /// True if a snapshot or another file shares these bytes.
        shared: bool,
    },
    /// Space that is allocated to a file and was never written.
    Unwritten {
        /// Path of the file.
        path: &'a Path,
    },
    /// Free space of a file system.
    Free {
        /// Mount point of the file system.
        mount: &'a Path,
    },
    /// Space in use by a file system, but by no file that could be seen: metadata, its log, or a deleted file.
    Nameless {
        /// Mount point of the file system.
        mount: &'a Path,
    },
    /// Swap space.
    Swap {
        /// Path of the swap device.
        device: &'a str,
    },
    /// Bytes whose owner is not known.
    Unknown {
        /// Reason for which it is not known, as a clause.
        why: &'a str,
    },
}

impl<'a> SourceDocument<'a> {
    fn of(one: &'a ReadResult) -> SourceDocument<'a> {
        let array = one.read.source.array.as_ref();
        let disks = one.parts().map(|(part, came)| {
            let done = came.checkpoint.done.total();
            DiskDocument {
                device: &part.volume.path,
                slot: part.slot,
                of_bytes: part.whole.total(),
                before_bytes: done - came.read,
                read_bytes: came.read,
                left_bytes: came.left,
                unreadable: extent_documents(&came.checkpoint.unreadable),
                starts: came.checkpoint.starts,
                seconds_of_all_starts: came.checkpoint.ran_s,
            }
        });
        let located = one.owners.as_ref().map(|owners| {
            let owners = owners.list.iter().map(|owner| OwnerDocument {
                extents: extent_documents(&owner.array),
                what: OwnerKindDocument::of(&owner.what),
            });
            owners.collect()
        });
        SourceDocument {
            device: one.read.source.path(),
            uuid: array.map(|array| array.uuid.as_str()),
            level: array.map(ArrayState::level_name),
            disks: disks.collect(),
            unreadable: extent_documents(&one.bad),
            located,
            ended: end_label(&one.read.ending),
            why: end_reason(&one.read.ending),
            seconds: one.read.seconds,
            kept: one.is_kept(),
            foreground: ForegroundDocument::of(&one.read.at, one.read.foreground.as_ref()),
            notes: &one.notes,
        }
    }
}

fn extent_documents(ranges: &Ranges) -> Vec<ExtentDocument> {
    let extents = ranges.iter().map(|range| ExtentDocument {
        offset_bytes: range.start,
        length_bytes: range.end - range.start,
    });
    extents.collect()
}

impl<'a> OwnerKindDocument<'a> {
    fn of(what: &'a OwnerKind) -> OwnerKindDocument<'a> {
        match what {
            OwnerKind::File {
                path,
                parts,
                shared,
            } => OwnerKindDocument::File {
                path,
                parts: extent_documents(parts),
                shared: *shared,
            },
            OwnerKind::Unwritten { path } => OwnerKindDocument::Unwritten { path },
            OwnerKind::Free(mount) => OwnerKindDocument::Free { mount },
            OwnerKind::Nameless(mount) => OwnerKindDocument::Nameless { mount },
            OwnerKind::Swap(device) => OwnerKindDocument::Swap { device },
            OwnerKind::Unknown(why) => OwnerKindDocument::Unknown { why },
        }
    }
}
