//! Where the mismatches that a scrub has counted are, and what lies there, as text and JSON.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use jiff::{SignedDuration, Timestamp};
use linux::Root;
use linux::block::Devices;
use record::{Bytes, Ranges};
use serde_json::{Value, json};

use super::drive::Ending;
use super::locate::{
    Again, Located, Mismatch, Odd, Owners, Summary, What, harmless, locate, to_read,
};
use super::one::Scrubbed;
use super::start::Book;
use super::target::Target;
use crate::context::{Context, tell};
use crate::render::table::{Column, layout, wrap};

/// What an older scrub has counted may be no more, or may be more: a monthly one begins anew.
const FRESH: SignedDuration = SignedDuration::from_hours(7 * 24);
/// So much is read of the members where a scrub was to end: who ended it does not want to wait.
const MOST_IN_HASTE: Bytes = Bytes(256 << 20);
/// So many places are shown as text; the JSON document has more.
const SHOWN: usize = 20;

const COLUMNS: [Column; 4] = [
    Column::numbers("position", 0),
    Column::numbers("length", 0),
    Column::words("odd one out"),
    Column::words("what lies there"),
];

/// Reads the members where a scrub has counted mismatches, and finds what lies where they differ.
/// `None` where there are none.
pub(crate) fn find(
    one: &Scrubbed,
    root: &Root,
    interrupt: &AtomicBool,
) -> Option<Result<Located, String>> {
    if one.kept.mismatches == 0 || one.kept.repairs {
        return None;
    }
    Some(look(one, root, interrupt).map_err(|error| format!("{error:#}")))
}

/// Of arrays whose last scrub was done within a week and found mismatches, what is known of them; and the arrays of
/// which nothing is, and which have to be scrubbed.
pub(crate) fn known(targets: Vec<Target>, context: &Context) -> (Vec<Scrubbed>, Vec<Target>) {
    let book = Book::open(context, false).ok().flatten();
    let mut known = Vec::new();
    let mut others = Vec::new();
    for target in targets {
        let work = book.as_ref().and_then(|book| book.of(&target.uuid).ok()?);
        let is_fresh = |finished| Timestamp::now().duration_since(finished) < FRESH;
        let kept = work
            .filter(|work| work.summary.finished.is_some_and(is_fresh))
            .map(|work| work.document)
            .filter(|kept| !kept.repairs && kept.mismatches > 0 && !kept.places.is_empty())
            .filter(|kept| kept.level == target.level && kept.of == target.end.0)
            // Of what was counted before a reshape, nothing lies where it was.
            .filter(|kept| kept.shape == target.sync.shape());
        match kept {
            Some(kept) => {
                context.tell(&format!(
                    "disksmith: {}: its last scrub is done and has counted mismatches; they are looked \
                     for where it did, and it is not scrubbed again (--anew would).",
                    target.path()
                ));
                known.push(Scrubbed::known(target, kept));
            }
            None => others.push(target),
        }
    }
    (known, others)
}

fn look(one: &Scrubbed, root: &Root, interrupt: &AtomicBool) -> anyhow::Result<Located> {
    let path = one.target.path();
    let places = one.kept.places_in_bytes();
    anyhow::ensure!(
        !places.is_empty(),
        "in which parts they are was not kept; --anew --locate checks and looks anew"
    );
    if let Ending::Recovery(action) = &one.ending {
        anyhow::bail!(
            "md is busy with a {}, which nothing should slow down; ask again with --locate when it is \
             done",
            action.word()
        );
    }
    if let Ending::Waits(waits) = &one.ending {
        anyhow::bail!(
            "{}; ask again with --locate when it is done",
            waits.sentence()
        );
    }
    let devices = Devices::read(root)?;
    let device = devices
        .get(one.target.device.number)
        .filter(|_| one.target.sync.is_there())
        .ok_or_else(|| anyhow::anyhow!("the array is not there any more"))?;
    let bytes = to_read(root, device, &places)?;
    anyhow::ensure!(
        bytes <= MOST_IN_HASTE || !matches!(one.ending, Ending::Ordered(_)),
        "the scrub was to end, and {bytes} of the members would have to be read; the same command goes \
         on, and looks at its end"
    );
    tell(&format!(
        "disksmith: {path}: looking where the mismatches are: {bytes} of its members are read, with a \
         rest after each read. Ctrl-C ends it."
    ));
    locate(root, &devices, device, &places, Again::LIVE, interrupt)
}

/// What was located, as text.
pub(crate) fn text(one: &Scrubbed, located: &Located, columns: usize) -> String {
    let rows: Vec<Vec<String>> = located
        .mismatches
        .iter()
        .take(SHOWN)
        .map(|mismatch| row(mismatch, located))
        .collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text.push('\n');
        text.push_str(&layout(&COLUMNS, &rows, columns));
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

fn row(mismatch: &Mismatch, located: &Located) -> Vec<String> {
    vec![
        mismatch.position.start.to_string(),
        Bytes(mismatch.position.end - mismatch.position.start).to_string(),
        odd(mismatch.odd, located),
        there(mismatch, &located.owners)
            .map(name)
            .collect::<Vec<_>>()
            .join(", "),
    ]
}

/// The member that is the odd one out, where one can be named.
fn odd(odd: Odd, located: &Located) -> String {
    match odd {
        Odd::Member(slot) => match located.members.get(&slot) {
            Some(label) => label.clone(),
            None => format!("slot {slot}"),
        },
        Odd::Several => "several".to_owned(),
        Odd::Untold => "cannot be told".to_owned(),
    }
}

/// What lies where a mismatch is: what the odd member holds of it, where one is named.
fn there<'a>(mismatch: &'a Mismatch, owners: &'a Owners) -> impl Iterator<Item = &'a What> {
    let wanted: &Ranges = match mismatch.culprit.is_empty() {
        true => &mismatch.array,
        false => &mismatch.culprit,
    };
    let owners = owners.list.iter();
    owners
        .filter(|owner| !owner.array.intersect(wanted).is_empty())
        .map(|owner| &owner.what)
}

fn name(what: &What) -> String {
    match what {
        What::File { path, .. } => path.display().to_string(),
        What::Unwritten { path } => format!("{} (allocated, not written)", path.display()),
        What::Free(mount) => format!("free space of {}", mount.display()),
        What::Nameless(mount) => format!("metadata or no file's, of {}", mount.display()),
        What::Swap(device) => format!("swap on {device}"),
        What::Unknown(why) => format!("not known: {why}"),
    }
}

/// Which bytes of a file are concerned, as a line.
fn file(what: &What) -> Option<String> {
    let What::File {
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
        .take(SHOWN)
        .map(|part| format!("{}-{}", part.start, part.end.saturating_sub(1)))
        .collect();
    if count > SHOWN {
        listed.push(format!("and {} more parts", count - SHOWN));
    }
    let shared = if *shared { ", which others share" } else { "" };
    Some(format!(
        "{}: bytes {}{shared}",
        path.display(),
        listed.join(", ")
    ))
}

/// What is to be said of the search.
fn sentences(one: &Scrubbed, located: &Located) -> Vec<String> {
    let Summary {
        compared,
        alone,
        moving,
        unreadable,
        more_unreadable,
        interrupted,
    } = &located.summary;
    let count = located.mismatches.len() as u64 + located.more;
    let mut said = Vec::new();
    let compared = Bytes(*compared);
    if count == 0 {
        said.push(format!(
            "Of the {compared} of positions in which md counted, all agrees now: what differed has been \
             written since."
        ));
    } else {
        let places = match count {
            1 => "1 place differs".to_owned(),
            _ => format!("{count} places differ"),
        };
        said.push(format!(
            "{places}, {} in all, of {compared} of positions that were compared.",
            Bytes(located.bytes)
        ));
        said.extend(harmless(&one.target.level).map(str::to_owned));
    }
    if count > SHOWN as u64 {
        said.push(format!(
            "{SHOWN} are shown; --json lists {}.",
            located.mismatches.len()
        ));
    }
    if *moving > 0 {
        said.push(format!(
            "{moving} blocks differed at first and were being written."
        ));
    }
    if *alone > 0 {
        let alone = Bytes(*alone);
        said.push(format!(
            "{alone} have no second member to be compared with."
        ));
    }
    if let Some(first) = unreadable.first() {
        let label = located
            .members
            .get(&first.slot)
            .map_or("a member", String::as_str);
        said.push(format!(
            "{} parts could not be read, the first on {label}: {}.",
            unreadable.len() as u64 + more_unreadable,
            first.error
        ));
    }
    if located.owners.more_files > 0 {
        said.push(format!(
            "{} more files are not listed.",
            located.owners.more_files
        ));
    }
    if located.owners.unseen > 0 {
        said.push(format!(
            "{} files and folders could not be looked at.",
            located.owners.unseen
        ));
    }
    if *interrupted || located.owners.interrupted {
        said.push("It was interrupted before its end; --locate looks again.".to_owned());
    }
    said
}

fn pairs(ranges: &Ranges) -> Vec<[u64; 2]> {
    ranges
        .iter()
        .map(|range| [range.start, range.end])
        .collect()
}

/// The mismatches for the JSON document.
pub(crate) fn mismatches(located: &Located) -> Value {
    let all = located.mismatches.iter().map(|one| {
        let files: Vec<&Path> = there(one, &located.owners)
            .filter_map(|what| match what {
                What::File { path, .. } => Some(path.as_path()),
                _ => None,
            })
            .collect();
        json!({
            "position_bytes": [one.position.start, one.position.end],
            "array_bytes": pairs(&one.array),
            "odd": odd_word(one.odd),
            "odd_member": one.odd.slot().and_then(|slot| located.members.get(&slot)),
            "odd_member_bytes": pairs(&one.culprit),
            "files": files.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        })
    });
    Value::Array(all.collect())
}

fn odd_word(odd: Odd) -> &'static str {
    match odd {
        Odd::Member(_) => "member",
        Odd::Several => "several",
        Odd::Untold => "untold",
    }
}

/// What else was located, for the JSON document.
pub(crate) fn document(located: &Located) -> Value {
    let owners: Vec<Value> = located
        .owners
        .list
        .iter()
        .map(|owner| {
            let (kind, path) = match &owner.what {
                What::File { path, .. } => ("file", path.display().to_string()),
                What::Unwritten { path } => ("unwritten", path.display().to_string()),
                What::Free(mount) => ("free", mount.display().to_string()),
                What::Nameless(mount) => ("nameless", mount.display().to_string()),
                What::Swap(device) => ("swap", device.clone()),
                What::Unknown(why) => ("unknown", why.clone()),
            };
            let (parts, shared) = match &owner.what {
                What::File { parts, shared, .. } => (Some(pairs(parts)), Some(*shared)),
                _ => (None, None),
            };
            json!({
                "kind": kind,
                "of": path,
                "array_bytes": pairs(&owner.array),
                "file_bytes": parts,
                "shared": shared,
            })
        })
        .collect();
    let summary = &located.summary;
    let unreadable: Vec<Value> = summary
        .unreadable
        .iter()
        .map(|one| {
            json!({
                "position_bytes": [one.position.start, one.position.end],
                "member": located.members.get(&one.slot),
                "error": one.error,
            })
        })
        .collect();
    json!({
        "bytes": located.bytes,
        "more_mismatches": located.more,
        "compared_bytes": summary.compared,
        "alone_bytes": summary.alone,
        "moving_blocks": summary.moving,
        "unreadable": unreadable,
        "more_unreadable": summary.more_unreadable,
        "owners": owners,
        "more_files": located.owners.more_files,
        "unseen": located.owners.unseen,
        "interrupted": summary.interrupted || located.owners.interrupted,
    })
}

#[cfg(test)]
mod tests {
    use super::super::locate::Owner;
    use super::*;

    #[test]
    fn a_mismatch_is_shown_with_its_odd_member_and_the_file_that_lies_there() {
        let mismatch = Mismatch {
            position: 8192..12_288,
            array: [0..4096, 65_536..69_632].into_iter().collect(),
            culprit: Ranges::from(65_536..69_632),
            odd: Odd::Member(1),
        };
        let owner = |at: u64, path: &str| Owner {
            array: Ranges::from(at..at + 4096),
            what: What::File {
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
            row(&located.mismatches[0], &located),
            ["8192", "4 KiB", "/dev/vdb", "/b"]
        );
        let document = mismatches(&located);
        assert_eq!(document[0]["files"], json!(["/b"]));
        assert_eq!(document[0]["odd_member"], "/dev/vdb");
        assert_eq!(document[0]["position_bytes"], json!([8192, 12_288]));
        let untold = Located {
            mismatches: vec![Mismatch {
                odd: Odd::Untold,
                culprit: Ranges::new(),
                ..located.mismatches[0].clone()
            }],
            ..located
        };
        assert_eq!(mismatches(&untold)[0]["files"], json!(["/a", "/b"]));
        let lines: Vec<_> = untold
            .owners
            .list
            .iter()
            .filter_map(|one| file(&one.what))
            .collect();
        assert_eq!(lines, ["/a: bytes 0-4095", "/b: bytes 0-4095"]);
    }
}
