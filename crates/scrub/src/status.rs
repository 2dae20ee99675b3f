//! `scrub --status`: progress and results of the scrubs of this host's arrays.

use array::programs::InstalledPrograms;
use domain::raid::MdLevel;
use jiff::{Timestamp, Zoned};
use job::JobStore;
use linux::block::Devices;
use linux::md::health::Health;
use linux::md::sync::{Sectors, Sync};
use linux::md::{self, Array};
use record::sample::SyncAction;
use serde::Serialize;

use super::checkpoint::Checkpoint;
use super::document::ForegroundDocument;
use super::health::{self, Errors, UnreadableDocument};
use super::live_progress::{self, LiveStatus};
use super::lock;
use super::progress::message;
use super::saved_tunables::SavedTunables;
use super::scheduled::{Plans, PlansDocument};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};
use ui::format::{date, percent};
use ui::table::{Column, layout, wrap};

const COLUMNS: [Column; 5] = [
    Column::text("array"),
    Column::text("level"),
    Column::text("scrub"),
    Column::numbers("mismatches", 0),
    Column::text("last change"),
];

/// State of an array and of its scrub.
struct ArrayStatus {
    array: Array,
    uuid: Option<String>,
    checkpoint: Option<Checkpoint>,
    finished: Option<Timestamp>,
    changed: Option<Timestamp>,
    running: bool,
    /// Current progress, while the scrub runs.
    now: Option<LiveStatus>,
    /// Mismatches of md's last check, by any program; `None` where md's last action was not a check.
    counted: Option<u64>,
    /// Health of the members.
    members: Vec<Health>,
    /// Sign of a killed scrub that is not in the ledger, as a clause.
    left_over: Option<String>,
    action: Option<SyncAction>,
}

impl ArrayStatus {
    fn mismatches(&self) -> Option<u64> {
        match &self.checkpoint {
            Some(checkpoint) if checkpoint.repaired.is_some() => Some(checkpoint.left()),
            Some(checkpoint) => Some(checkpoint.mismatches),
            None => self.counted,
        }
    }

    /// True if nothing needs attention. Mismatches of a repair by md do not count: they were rewritten.
    fn is_clean(&self) -> bool {
        let repairs = self
            .checkpoint
            .as_ref()
            .is_some_and(|checkpoint| checkpoint.repairs);
        (repairs || self.mismatches().unwrap_or(0) == 0)
            && self.left_over.is_none()
            && health::are_sound(&self.errors(), &self.members)
    }

    /// Problems other than mismatches, as sentences.
    fn troubles(&self) -> Vec<String> {
        let left = self.left_over.iter().map(|why| format!("{why}."));
        left.chain(health::sentences(&self.errors(), &self.members))
            .collect()
    }

    fn errors(&self) -> Errors {
        let checkpoint = self.checkpoint.as_ref();
        checkpoint
            .map(|checkpoint| checkpoint.errors.clone())
            .unwrap_or_default()
    }

    /// Obstacles of a scrub that is not done.
    fn obstacles(&self, plans: &Plans) -> Vec<String> {
        match &self.checkpoint {
            Some(checkpoint) if self.finished.is_none() => {
                plans.obstacles(&self.array.name, checkpoint, None)
            }
            _ => Vec::new(),
        }
    }

    fn name(&self) -> &'static str {
        match (&self.checkpoint, self.running, self.finished) {
            (_, true, _) => "running",
            (None, _, _) => "never",
            (Some(_), _, Some(_)) => "done",
            (Some(_), _, None) => "unfinished",
        }
    }
}

/// Prints the state of all arrays' scrubs.
pub(crate) fn status(
    json: bool,
    notes: &[String],
    store: Option<&JobStore>,
    devices: &Devices,
    context: &mut Context,
) -> Outcome {
    let arrays = md::arrays(&context.root, devices).refused()?;
    let mut statuses = Vec::new();
    for array in arrays {
        let Some(device) = devices.get(array.number) else {
            continue;
        };
        let sync = Sync::of(&context.root, device);
        let state = sync.state().ok();
        let uuid = sync.uuid();
        let work = match (store, &uuid) {
            (Some(store), Some(uuid)) => store.find::<Checkpoint>(uuid).refused()?,
            _ => None,
        };
        let running = lock::is_taken(device);
        // md also counts mismatches in a resync or repair, and then has rewritten them.
        let is_check = sync.last_action() == Some(SyncAction::Check);
        let now = uuid.as_ref().filter(|_| running);
        let now = now.and_then(|uuid| live_progress::read(uuid, Timestamp::now()));
        statuses.push(ArrayStatus {
            now,
            running,
            left_over: SavedTunables::left_over(&sync).filter(|_| !running),
            members: sync.health(),
            finished: work.as_ref().and_then(|work| work.summary.finished),
            changed: work.as_ref().map(|work| work.summary.changed),
            checkpoint: work.map(|work| work.document),
            counted: state
                .as_ref()
                .filter(|_| is_check)
                .map(|state| state.mismatches),
            action: state.map(|state| state.action),
            uuid,
            array,
        });
    }
    let plans = Plans::read(&context.root, &Zoned::now(), &mut InstalledPrograms);
    let text = if json {
        document(&statuses, notes, &plans)
    } else {
        text(&statuses, notes, &plans, context.columns)
    };
    context.print(&text)?;
    Ok(if statuses.iter().all(ArrayStatus::is_clean) {
        CommandEnd::Done
    } else {
        CommandEnd::No
    })
}

fn text(statuses: &[ArrayStatus], notes: &[String], plans: &Plans, columns: usize) -> String {
    if statuses.is_empty() {
        return "There are no arrays on this host.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = statuses.iter().map(row).collect();
    let mut text = layout(&COLUMNS, &rows, columns);
    let in_the_way = statuses.iter().flat_map(|one| {
        let path = format!("/dev/{}", one.array.name);
        let lines = one.now.iter().map(progress_line).chain(one.troubles());
        let lines = lines.chain(one.obstacles(plans));
        lines.map(move |sentence| format!("{path}: {sentence}"))
    });
    for note in notes
        .iter()
        .cloned()
        .chain(plans.sentences())
        .chain(in_the_way)
    {
        text.push_str(&wrap(&note, columns, "  "));
        text.push('\n');
    }
    text
}

/// Progress of a running scrub, as in its own progress line.
fn progress_line(now: &LiveStatus) -> String {
    let moment = now.moment.to_zoned(jiff::tz::TimeZone::system());
    format!("{}.", message(&now.at(), now.rate, &moment))
}

fn row(one: &ArrayStatus) -> Vec<String> {
    let far = one.checkpoint.as_ref().map(Checkpoint::share).map(percent);
    let scrub = match (one.name(), far) {
        (word @ ("running" | "unfinished"), Some(far)) => format!("{word}, {far}"),
        (word, _) => word.to_owned(),
    };
    vec![
        format!("/dev/{}", one.array.name),
        one.array
            .level
            .as_ref()
            .map_or("", MdLevel::name)
            .to_owned(),
        scrub,
        one.mismatches()
            .map_or("–".to_owned(), |count| count.to_string()),
        one.finished.or(one.changed).map(date).unwrap_or_default(),
    ]
}

/// The document of `scrub --status --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// Always true: the mode of the command.
    status: bool,
    /// State of each array's scrub.
    arrays: Vec<ArrayDocument<'a>>,
    /// Notes for people, in sentences.
    notes: &'a [String],
    /// The checks of arrays that are scheduled on the host.
    scheduled: PlansDocument<'a>,
}

/// State of the scrub of an array.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ArrayDocument<'a> {
    /// Path of the array's device.
    array: String,
    /// UUID of the array; null where neither the kernel nor a member's superblock shows it.
    uuid: Option<&'a str>,
    /// RAID level as md names it, such as `raid10`; null where the kernel does not show it.
    level: Option<&'a str>,
    /// State of the scrub: `running`, `unfinished`, `done` or `never`.
    scrub: &'static str,
    /// Present action of md, as in its `sync_action`; null where it cannot be read.
    action: Option<&'static str>,
    /// Present state of a running scrub; null of others.
    now: Option<NowDocument>,
    /// Position up to which the scrub is done, in bytes as md counts them; null where there was none.
    done_bytes: Option<u64>,
    /// Position at which the scrub ends, in bytes as md counts them; null where there was none.
    of_bytes: Option<u64>,
    /// Sectors of 512 bytes that differed, without those that a repair from the other members has written anew; of
    /// an array that was never scrubbed, those of md's last check. Null where neither is known.
    mismatched_sectors: Option<u64>,
    /// Members with sectors that md could not read.
    unreadable: Vec<UnreadableDocument>,
    /// Settings of md that a killed scrub left changed, as a clause; null where there are none.
    left_over: Option<&'a str>,
    /// True if the scrub repairs through md; null where there was none.
    repair: Option<bool>,
    /// Time of the first start of the scrub; null where there was none.
    began: Option<String>,
    /// Time of the last change of the scrub in the ledger; null where there was none.
    changed: Option<String>,
    /// Time at which the scrub ended; null where it is not done.
    finished: Option<String>,
    /// Running time of all starts, in seconds; null where there was none.
    seconds_of_all_starts: Option<f64>,
    /// Number of starts; null where there was none.
    starts: Option<u32>,
    /// Scheduled checks that would disturb the scrub, as sentences.
    in_the_way: Vec<String>,
}

/// Present state of a running scrub.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NowDocument {
    /// Position that md has reached, in bytes as md counts them.
    position_bytes: u64,
    /// Recent rate, in bytes a second as md counts them; null where it is not known yet.
    bytes_per_s: Option<f64>,
    /// Remaining time, in seconds; null where it is not known yet.
    seconds_left: Option<f64>,
    /// Expected end; null where it is not known yet.
    done: Option<String>,
    /// True if no other program uses the array.
    alone: bool,
    /// True while the latency of the foreground without the scrub is measured.
    measuring: bool,
    /// Latency of the foreground, and its targets.
    foreground: ForegroundDocument,
}

impl NowDocument {
    fn of(now: &LiveStatus) -> NowDocument {
        let at = now.at();
        NowDocument {
            position_bytes: at.live.bytes().0,
            bytes_per_s: now.rate,
            seconds_left: now.left_s(),
            done: now.done().map(|moment| moment.to_string()),
            alone: !at.beside,
            measuring: at.measuring,
            foreground: ForegroundDocument::of(&at, None),
        }
    }
}

impl<'a> ArrayDocument<'a> {
    fn of(one: &'a ArrayStatus, plans: &Plans) -> ArrayDocument<'a> {
        let checkpoint = one.checkpoint.as_ref();
        ArrayDocument {
            array: format!("/dev/{}", one.array.name),
            uuid: one.uuid.as_deref(),
            level: one.array.level.as_ref().map(MdLevel::name),
            scrub: one.name(),
            action: one.action.map(SyncAction::name),
            now: one.now.as_ref().map(NowDocument::of),
            done_bytes: checkpoint.map(|checkpoint| Sectors(checkpoint.done).bytes().0),
            of_bytes: checkpoint.map(|checkpoint| Sectors(checkpoint.of).bytes().0),
            mismatched_sectors: one.mismatches(),
            unreadable: health::documents(&one.errors(), &one.members),
            left_over: one.left_over.as_deref(),
            repair: checkpoint.map(|checkpoint| checkpoint.repairs),
            began: checkpoint.map(|checkpoint| checkpoint.began.to_string()),
            changed: one.changed.map(|moment| moment.to_string()),
            finished: one.finished.map(|moment| moment.to_string()),
            seconds_of_all_starts: checkpoint.map(|checkpoint| checkpoint.ran_s),
            starts: checkpoint.map(|checkpoint| checkpoint.starts),
            in_the_way: one.obstacles(plans),
        }
    }
}

fn document(statuses: &[ArrayStatus], notes: &[String], plans: &Plans) -> String {
    let arrays = statuses.iter().map(|one| ArrayDocument::of(one, plans));
    let document = Document {
        status: true,
        arrays: arrays.collect(),
        notes,
        scheduled: plans.document(),
    };
    ui::json::document("scrub", &document)
}

#[cfg(test)]
mod tests {
    use super::super::live_progress::tests::a_quarter_done;
    use super::*;

    #[test]
    fn a_running_scrub_is_shown_with_its_rate_its_latency_and_its_eta() {
        let moment = Timestamp::from_second(1_000).unwrap();
        let now = LiveStatus::new(&a_quarter_done(), Some(1_048_576.0), moment);
        let line = progress_line(&now);
        assert!(
            line.starts_with("25 %, 1.0 MiB/s, p99 3.1 ms of 5 ms, 26 min left, done "),
            "{line}"
        );
        let value = serde_json::to_value(NowDocument::of(&now)).unwrap();
        assert_eq!(value["position_bytes"], 512 << 20);
        assert_eq!(value["seconds_left"], 1536.0);
        assert_eq!(value["done"], "1970-01-01T00:42:16Z");
        assert_eq!(value["foreground"]["p99_ns"], 3_100_000);
        assert_eq!(value["foreground"]["keep_p99_ns"], 5_000_000);
        assert_eq!(value["foreground"]["mean_ns"], serde_json::Value::Null);
    }
}
