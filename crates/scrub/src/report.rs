//! Output of a scrub: text, or one JSON document.

use job::{Resumable, StopCause};
use linux::md::sync::Sectors;
use reader::ForegroundReport;
use serde::Serialize;

use super::array_scrub::{ScrubResult, end_reason};
use super::document::ForegroundDocument;
use super::drive::ScrubEnd;
use super::health::{self, UnreadableDocument};
use super::places::{self, LocatedDocument, MismatchDocument};
use super::progress::latency_cell;
use ui::exit::{CommandEnd, Outcome};
use ui::format::{number, percent};
use ui::journal::{self, JournalField, JournalPriority};
use ui::table::{Column, layout, wrap};
use ui::units::{rate, span};

const COLUMNS: [Column; 7] = [
    Column::text("array"),
    Column::text("level"),
    Column::numbers("done", 0),
    Column::numbers("rate", 0),
    Column::numbers("took", 1),
    Column::numbers("foreground", 2),
    Column::text("mismatches"),
];

/// The results as text.
pub(crate) fn text(scrubbed: &[ScrubResult], columns: usize) -> String {
    let rows: Vec<Vec<String>> = scrubbed.iter().map(row).collect();
    let mut text = layout(&COLUMNS, &rows, columns);
    for one in scrubbed {
        let meaning = (one.checkpoint.mismatches > 0).then(|| meaning(one));
        let unread = health::sentences(&one.checkpoint.errors, &one.members);
        let repaired = one.repaired.iter().flatten().flat_map(places::of_repair);
        let repaired: Vec<String> = repaired.collect();
        let beside = one.foreground.as_ref().map(ForegroundReport::text);
        let lines = one
            .notes
            .iter()
            .chain(&meaning)
            .chain(&repaired)
            .chain(&beside);
        for line in lines.chain(&unread) {
            text.push_str(&wrap(
                &format!("{}: {line}", one.target.path()),
                columns,
                "  ",
            ));
            text.push('\n');
        }
        match &one.located {
            Some(Ok(located)) => text.push_str(&places::text(one, located, columns)),
            Some(Err(why)) => {
                let line = format!("{}: where they are is not known: {why}.", one.target.path());
                text.push_str(&wrap(&line, columns, "  "));
                text.push('\n');
            }
            None => {}
        }
    }
    text
}

fn row(one: &ScrubResult) -> Vec<String> {
    let seconds = one.seconds;
    vec![
        one.target.path(),
        one.target.level.to_string(),
        percent(one.checkpoint.share()),
        match seconds > 0.0 {
            true => rate(one.moved as f64 / seconds),
            false => String::new(),
        },
        span(seconds),
        latency_cell(&one.at),
        number_of(one.checkpoint.mismatches),
    ]
}

/// A count as text, without decimals below 100.
fn number_of(count: u64) -> String {
    match count {
        0..100 => count.to_string(),
        _ => number(count as f64),
    }
}

/// Meaning of mismatches, and what to do.
fn meaning(one: &ScrubResult) -> String {
    let count = number_of(one.checkpoint.mismatches);
    let has_parity = one.target.level.has_parity();
    if one.checkpoint.repairs {
        return match has_parity {
            true => format!(
                "{count} sectors differed. md kept the data as it was and computed the parity anew: where it was \
                 the data that was wrong, it is still wrong, and nothing shows that any more. Compare with a \
                 backup what may have lain there."
            ),
            false => format!(
                "{count} sectors differed. md kept the first copy that it could read and wrote it over the \
                 other: where that was the wrong one, the right one is gone. Compare with a backup what may \
                 have lain there."
            ),
        };
    }
    let harmless = match has_parity {
        false => {
            " On mirrors a few may be harmless: memory that changed while it was written, such as swap."
        }
        true => "",
    };
    let counted = format!(
        "{count} sectors differ (md counts whole requests, so that it may be fewer).{harmless}"
    );
    if one.repaired.is_some() {
        return counted;
    }
    let is_located = one.located.is_some();
    let what = match one.target.names_odd {
        Some(true) if is_located => {
            "--repair writes the member that is wrong anew from the others, where it is one alone."
        }
        Some(true) => {
            "--locate names the member that is wrong, where it is one alone, and --repair writes that one anew \
             from the others."
        }
        _ if has_parity && is_located => {
            "Nothing tells whether data or parity is wrong; a backup tells more. --repair has md keep the data as \
             it is and compute the parity anew."
        }
        _ if has_parity => {
            "Nothing tells whether data or parity is wrong. --locate names the files that may be, and a backup \
             tells more; --repair has md keep the data as it is and compute the parity anew."
        }
        _ if is_located => {
            "Nothing tells which copy is right: look at the members' errors, and at a backup. --repair has md write \
             the first copy over the other."
        }
        _ => {
            "Nothing tells which copy is right. --locate names the files that may be wrong; look at the members' \
             errors, and at a backup. --repair has md write the first copy over the other."
        }
    };
    format!("{counted} Nothing was written. {what}")
}

/// The results as one JSON document.
pub(crate) fn document(scrubbed: &[ScrubResult]) -> String {
    let arrays = scrubbed.iter().map(ArrayDocument::of).collect();
    ui::json::document("scrub", &Document { arrays })
}

/// The document of `scrub --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Result of each array.
    arrays: Vec<ArrayDocument<'a>>,
}

/// Result of an array.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ArrayDocument<'a> {
    /// Path of the array's device.
    array: String,
    /// UUID of the array.
    uuid: &'a str,
    /// RAID level as md names it, such as `raid10`.
    level: &'static str,
    /// `check` or `repair`.
    action: &'static str,
    /// Position up to which the check is done, in bytes as md counts them: of RAID 10 over the array, of other
    /// levels over one member.
    done_bytes: u64,
    /// Position at which the check ends, counted as `done_bytes`.
    of_bytes: u64,
    /// Sectors of 512 bytes that md counted as differing.
    mismatched_sectors: u64,
    /// Members with sectors that md could not read.
    unreadable: Vec<UnreadableDocument>,
    /// End of the check: `done`, `interrupted`, `time-up`, `stopped`, `begun`, `gone`, `degraded`, `recovery`,
    /// `delayed`, `turned` or `failed`.
    ended: &'static str,
    /// Reason for an early end, as a clause; null where the check is done.
    why: Option<String>,
    /// Duration of this start, in seconds.
    seconds: f64,
    /// Bytes that this start checked, counted as `done_bytes`.
    bytes: u64,
    /// Running time of all starts, in seconds.
    seconds_of_all_starts: f64,
    /// Number of starts, this one included.
    starts: u32,
    /// True if the progress is in the ledger, so that the same command continues from there.
    kept: bool,
    /// Latency of the foreground, and its targets.
    foreground: ForegroundDocument,
    /// Notes for people, in sentences.
    notes: &'a [String],
    /// Settings of md that were not restored, as clauses.
    not_put_back: &'a [String],
    /// Places where members differ, up to 10,000; null where they were not searched for, or `not_located` says why
    /// they are not known.
    mismatches: Option<Vec<MismatchDocument<'a>>>,
    /// Totals of the search for mismatches, and the owners of the bytes there; null where `mismatches` is.
    located: Option<LocatedDocument<'a>>,
    /// Result of a repair from the other members; null where there was none.
    repaired: Option<RepairedDocument>,
    /// Reason for which a repair from the other members was not made, or not to its end, as a clause.
    not_repaired: Option<String>,
    /// Reason for which the places of mismatches are not known, as a clause.
    not_located: Option<&'a str>,
}

/// Result of a repair from the other members.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RepairedDocument {
    /// Bytes that were written anew.
    restored_bytes: u64,
    /// Bytes that still differ.
    left_bytes: u64,
    /// True if the repair was interrupted before its end.
    interrupted: bool,
}

impl<'a> ArrayDocument<'a> {
    fn of(one: &'a ScrubResult) -> ArrayDocument<'a> {
        let located = one.located.as_ref();
        let found = located.and_then(|located| located.as_ref().ok());
        let repaired = one.repaired.as_ref();
        let repaired = repaired.and_then(|repaired| repaired.as_ref().ok());
        ArrayDocument {
            array: one.target.path(),
            uuid: &one.target.uuid,
            level: one.target.level.md_name(),
            action: if one.repair_method.is_some() {
                "repair"
            } else {
                "check"
            },
            done_bytes: Sectors(one.checkpoint.done).bytes().0,
            of_bytes: Sectors(one.checkpoint.of).bytes().0,
            mismatched_sectors: one.checkpoint.mismatches,
            unreadable: health::documents(&one.checkpoint.errors, &one.members),
            ended: ended(&one.ending),
            why: end_reason(&one.ending),
            seconds: one.seconds,
            bytes: one.moved,
            seconds_of_all_starts: one.checkpoint.ran_s,
            starts: one.checkpoint.starts,
            kept: one.is_kept,
            foreground: ForegroundDocument::of(&one.at, one.foreground.as_ref()),
            notes: &one.notes,
            not_put_back: &one.left,
            mismatches: found.map(|found| MismatchDocument::all(found, repaired)),
            located: found.map(LocatedDocument::of),
            repaired: repaired.map(|repaired| RepairedDocument {
                restored_bytes: repaired.sum.restored,
                left_bytes: repaired.sum.left,
                interrupted: repaired.interrupted,
            }),
            not_repaired: not_repaired(one),
            not_located: located.and_then(|located| located.as_ref().err().map(String::as_str)),
        }
    }
}

/// Reason for which a repair from the other members was not made, or not to its end, as a clause.
fn not_repaired(one: &ScrubResult) -> Option<String> {
    match one.repaired.as_ref()? {
        Err(why) => Some(why.clone()),
        Ok(repaired) => match &repaired.trouble {
            None if repaired.interrupted => Some("it was interrupted".to_owned()),
            trouble => trouble.clone(),
        },
    }
}

fn ended(ending: &ScrubEnd) -> &'static str {
    match ending {
        ScrubEnd::Done => "done",
        ScrubEnd::Ordered(StopCause::Signal) => "interrupted",
        ScrubEnd::Ordered(StopCause::Deadline) => "time-up",
        ScrubEnd::Stopped => "stopped",
        ScrubEnd::Begun => "begun",
        ScrubEnd::Gone => "gone",
        ScrubEnd::Degraded => "degraded",
        ScrubEnd::Recovery(_) | ScrubEnd::Waits(_) => "recovery",
        ScrubEnd::Delayed => "delayed",
        ScrubEnd::Turned(_) => "turned",
        ScrubEnd::Failed(_) => "failed",
    }
}

/// Notes, and the exit status of the command. With `scheduled`, an end by the hours, the duration or a signal is no
/// failure: the next start continues. `left_out` are the reasons why arrays of later rounds were not begun.
pub(crate) fn conclusion(
    scrubbed: &[ScrubResult],
    left_out: Vec<String>,
    scheduled: bool,
) -> (Vec<String>, Outcome) {
    let (mut sentences, mut failed) = (Vec::new(), left_out);
    for one in scrubbed {
        match scheduled && is_as_ordered(one) {
            true => sentences.extend(incomplete_reason(one)),
            false => failed.extend(incomplete_reason(one)),
        }
        failed.extend(not_repaired(one).map(|why| {
            format!(
                "The repair of {} ended before its end: {why}. The same command goes on with it.",
                one.target.path()
            )
        }));
    }
    let is_clean = scrubbed.iter().all(ScrubResult::is_clean);
    let answer = if is_clean {
        CommandEnd::Done
    } else {
        CommandEnd::No
    };
    (sentences, job::outcome(&failed, answer))
}

/// Adds each result to the systemd journal, with the array and its mismatches as fields.
pub(crate) fn add_to_journal(scrubbed: &[ScrubResult]) {
    for one in scrubbed {
        let (priority, text, fields) = journal_entry(one);
        journal::add(priority, &text, &fields);
    }
}

/// The journal entry of a result.
fn journal_entry(one: &ScrubResult) -> (JournalPriority, String, [JournalField; 2]) {
    let priority = match one.is_clean() {
        true => JournalPriority::Notice,
        false => JournalPriority::Warning,
    };
    let (share, mismatches) = (percent(one.checkpoint.share()), one.checkpoint.mismatches);
    let path = one.target.path();
    let text = format!("{path}: {share} is checked, with {mismatches} mismatches.");
    let mismatches = ("DISKSMITH_MISMATCHES".to_owned(), mismatches.to_string());
    (priority, text, [one.target.field(), mismatches])
}

/// True if a scrub ended early as it was told to, with all tunables restored and its progress stored.
fn is_as_ordered(one: &ScrubResult) -> bool {
    matches!(one.ending, ScrubEnd::Ordered(_)) && one.left.is_empty() && one.is_kept
}

/// Sentence on why an array was not scrubbed to its end, with the tunables that were not restored; `None` where it was
/// scrubbed to its end and all are restored.
pub(crate) fn incomplete_reason(one: &ScrubResult) -> Option<String> {
    let path = one.target.path();
    let left = if one.left.is_empty() {
        String::new()
    } else {
        format!(" Of its tunables, {}.", one.left.join("; "))
    };
    let Some(why) = end_reason(&one.ending) else {
        return (!left.is_empty()).then(|| format!("{path} is done.{left}"));
    };
    let back = if one.left.is_empty() && !matches!(one.ending, ScrubEnd::Gone | ScrubEnd::Turned(_))
    {
        " All tunables are as they were."
    } else {
        ""
    };
    let hint = Resumable::if_written(one.is_kept).hint();
    Some(format!(
        "{path} is done up to {}, with {} mismatches: {why}.{back}{left} {hint}",
        percent(one.checkpoint.share()),
        one.checkpoint.mismatches,
    ))
}

#[cfg(test)]
mod tests {
    use domain::raid::Level;
    use ui::exit::Failure;

    use super::super::checkpoint::{Checkpoint, example};
    use super::super::repair::Repaired;
    use super::super::target::tests::find;
    use super::*;

    /// The exit status, and the number of notes, of a scrub with this change to its result.
    fn ends(scheduled: bool, change: impl Fn(&mut ScrubResult)) -> (u8, usize) {
        let checkpoint = Checkpoint {
            mismatches: 0,
            ..example()
        };
        let mut one = ScrubResult::known(find(&[]).unwrap(), checkpoint);
        change(&mut one);
        let (sentences, outcome) = conclusion(&[one], Vec::new(), scheduled);
        let status = match outcome {
            Ok(CommandEnd::Done) => 0,
            Ok(CommandEnd::No) => 1,
            Ok(CommandEnd::Status(_)) | Err(Failure::Refused(_)) => panic!("{sentences:?}"),
            Err(Failure::Midway(_)) => 3,
        };
        (status, sentences.len())
    }

    #[test]
    fn the_end_of_its_hours_is_a_success_of_a_timer_and_of_nobody_else() {
        let over = |one: &mut ScrubResult| one.ending = ScrubEnd::Ordered(StopCause::Deadline);
        assert_eq!(ends(false, over), (3, 0));
        assert_eq!(ends(true, over), (0, 1), "what it did is said all the same");
        assert_eq!(ends(true, |_| ()), (0, 0));
        let found = |one: &mut ScrubResult| {
            over(one);
            one.checkpoint.mismatches = 8;
        };
        assert_eq!(
            ends(true, found),
            (1, 1),
            "whatever watches units finds out"
        );
    }

    #[test]
    fn an_entry_of_the_journal_has_the_array_and_its_mismatches_as_fields() {
        let entry = |mismatches: u64| {
            let checkpoint = Checkpoint {
                mismatches,
                ..example()
            };
            journal_entry(&ScrubResult::known(find(&[]).unwrap(), checkpoint))
        };
        let (priority, text, fields) = entry(3);
        assert_eq!(priority, JournalPriority::Warning);
        assert_eq!(text, "/dev/md0: 25 % is checked, with 3 mismatches.");
        let fields = fields.map(|(name, value)| format!("{name}={value}"));
        assert_eq!(fields, ["DISKSMITH_DEVICE=md0", "DISKSMITH_MISMATCHES=3"]);
        assert_eq!(entry(0).0, JournalPriority::Notice);
    }

    #[test]
    fn the_effect_of_a_repair_is_described_for_each_level() {
        let message = |level: Level, names_odd: bool, by_md: bool| {
            let mut target = find(&[]).unwrap();
            target.level = level;
            target.names_odd = Some(names_odd);
            let checkpoint = Checkpoint {
                repairs: by_md,
                ..example()
            };
            meaning(&ScrubResult::known(target, checkpoint))
        };
        for level in [Level::Four, Level::Five, Level::Six] {
            assert!(message(level, false, true).contains("md kept the data as it was"));
            assert!(message(level, false, false).contains("compute the parity anew"));
        }
        for level in [Level::One, Level::Ten] {
            assert!(message(level, false, true).contains("the right one is gone"));
            assert!(message(level, false, false).contains("write the first copy over the other"));
        }
        for level in [Level::One, Level::Six, Level::Ten] {
            assert!(message(level, true, false).contains("anew from the others"));
        }
    }

    #[test]
    fn a_repair_that_did_not_come_to_its_end_is_a_failure() {
        let ends_with = |repaired: Result<Repaired, String>| {
            ends(false, |one| one.repaired = Some(repaired.clone())).0
        };
        assert_eq!(ends_with(Ok(Repaired::default())), 0);
        let interrupted = Repaired {
            interrupted: true,
            ..Repaired::default()
        };
        assert_eq!(ends_with(Ok(interrupted)), 3);
        let trouble = Repaired {
            trouble: Some("the write failed".to_owned()),
            ..Repaired::default()
        };
        assert_eq!(ends_with(Ok(trouble)), 3);
        assert_eq!(ends_with(Err("there is no ledger".to_owned())), 3);
    }

    #[test]
    fn errors_are_a_failure_of_a_timer_too() {
        let over = |one: &mut ScrubResult| one.ending = ScrubEnd::Ordered(StopCause::Deadline);
        for scheduled in [false, true] {
            assert_eq!(ends(scheduled, |one| one.ending = ScrubEnd::Degraded).0, 3);
            assert_eq!(ends(scheduled, |one| one.ending = ScrubEnd::Gone).0, 3);
            let left = |one: &mut ScrubResult| {
                over(one);
                one.left.push("sync_min is not as it was".to_owned());
            };
            assert_eq!(ends(scheduled, left).0, 3);
            let lost = |one: &mut ScrubResult| {
                over(one);
                one.is_kept = false;
            };
            assert_eq!(ends(scheduled, lost).0, 3);
        }
    }
}
