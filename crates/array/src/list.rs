//! `array list`: the arrays, their members, and what is being done to them.

use std::path::Path;

use domain::raid::MdLevel;
use jiff::Timestamp;
use job::JobStore;
use ledger::WorkSummary;
use linux::block::Devices;
use linux::md::{self, Array};
use linux::mounts::Mounts;
use record::Bytes;
use serde::Serialize;

use super::building::Building;
use crate::args::ListArgs;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome, sentence};
use ui::table::{Column, layout, wrap};

/// An array, and who uses it.
struct ArrayUse {
    array: Array,
    /// Mount points.
    mounts: Vec<String>,
    /// The devices that are built on it.
    above: Vec<String>,
}

/// Lists the arrays.
pub(super) fn list(args: &ListArgs, context: &mut Context) -> Outcome {
    let devices = Devices::read(&context.root).refused()?;
    let mounts = Mounts::read(&context.root).refused()?;
    let arrays = md::arrays(&context.root, &devices).refused()?;
    let arrays: Vec<ArrayUse> = arrays
        .into_iter()
        .map(|array| ArrayUse {
            mounts: mounts
                .on(array.number)
                .map(|mount| mount.point.display().to_string())
                .collect(),
            above: devices
                .children(array.number)
                .iter()
                .map(|device| device.name.clone())
                .collect(),
            array,
        })
        .collect();
    let text = if args.json {
        let document = Document {
            arrays: arrays.iter().map(ArrayDocument::of).collect(),
            unfinished: unfinished(context).iter().map(LeftDocument::of).collect(),
        };
        ui::json::document("array list", &document)
    } else {
        format!(
            "{}{}",
            text(&arrays, context.columns),
            unfinished_notice(context)
        )
    };
    context.print(&text)?;
    Ok(CommandEnd::Done)
}

/// An `array create` that was killed and has left something.
struct KilledBuild {
    work: WorkSummary,
    /// Array that it was building; `None` when that cannot be read.
    building: Option<Building>,
}

impl KilledBuild {
    fn sentence(&self) -> String {
        let node = match &self.building {
            Some(building) => building.node.display().to_string(),
            None => format!("the array {}", self.work.key),
        };
        format!(
            "The 'array create' of {node} that began at {} was killed before its end. The next \
             'disksmith array create' or 'disksmith array stop {node}' repairs that.",
            self.work.began
        )
    }
}

/// Arrays left unfinished on this host, by the ledger. A host without a ledger has nothing to repair, and
/// problems while listing go to standard error.
fn unfinished(context: &Context) -> Vec<KilledBuild> {
    let found = || -> anyhow::Result<Vec<KilledBuild>> {
        let Some(store) = JobStore::open_if_there(context).map_err(Failure::error)? else {
            return Ok(Vec::new());
        };
        let works = store.abandoned::<Building>()?;
        let left = |work: WorkSummary| KilledBuild {
            building: store
                .find(&work.key)
                .ok()
                .flatten()
                .map(|work| work.document),
            work,
        };
        Ok(works.into_iter().map(left).collect())
    };
    found().unwrap_or_else(|error| {
        context.notice(&format!(
            "disksmith: it is unknown whether a killed 'array create' left something to repair: \
             {}",
            sentence(&error)
        ));
        Vec::new()
    })
}

/// Arrays left unfinished, as sentences; nothing where there are none.
pub(super) fn unfinished_notice(context: &Context) -> String {
    let left = unfinished(context);
    let sentences = left.iter().map(|left| {
        let sentence = wrap(&left.sentence(), context.columns, "  ");
        format!("\n{sentence}\n")
    });
    sentences.collect()
}

const COLUMNS: [Column; 10] = [
    Column::text("array"),
    Column::text("level"),
    Column::numbers("size", 0),
    Column::numbers("chunk", 2),
    Column::text("bitmap").ranked(4),
    Column::text("state"),
    Column::text("in sync").ranked(3),
    Column::numbers("spares", 1),
    Column::text("doing").ranked(1),
    Column::text("used as"),
];

const MEMBERS: [Column; 6] = [
    Column::text("array"),
    Column::numbers("slot", 0),
    Column::text("member"),
    Column::text("state"),
    Column::numbers("used", 1),
    Column::numbers("errors", 0),
];

fn text(arrays: &[ArrayUse], columns: usize) -> String {
    if arrays.is_empty() {
        return "There is no array on this host.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = arrays.iter().map(ArrayUse::row).collect();
    let members: Vec<Vec<String>> = arrays.iter().flat_map(ArrayUse::member_rows).collect();
    let mut text = layout(&COLUMNS, &rows, columns);
    if !members.is_empty() {
        text.push('\n');
        text.push_str(&layout(&MEMBERS, &members, columns));
    }
    text
}

/// Text of an empty cell.
const EMPTY_CELL: &str = "–";

fn or_empty_cell(text: Option<String>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or_else(|| EMPTY_CELL.to_owned())
}

impl ArrayUse {
    fn title(&self) -> String {
        match self.array.names.first() {
            Some(name) => format!("{} ({name})", self.array.name),
            None => self.array.name.clone(),
        }
    }

    fn level(&self) -> Option<String> {
        let level = self.array.level.as_ref()?;
        Some(match &self.array.layout {
            Some(copies) => format!("{level} {copies}"),
            None => level.to_string(),
        })
    }

    /// md's sync action on the array, with its progress; `None` where none is under way.
    fn sync_progress(&self) -> Option<String> {
        let action = self
            .array
            .action
            .as_deref()
            .filter(|word| *word != "idle")?;
        Some(match self.array.position {
            Some((done, of)) if of.0 > 0 => {
                let share = done.0 as f64 / of.0 as f64 * 100.0;
                format!("{action} {share:.1} %")
            }
            _ => action.to_owned(),
        })
    }

    fn state(&self) -> Option<String> {
        let state = self.array.state.clone();
        match self.array.degraded {
            Some(missing) if missing > 0 => {
                Some(format!("degraded by {missing}, {}", or_empty_cell(state)))
            }
            _ => state,
        }
    }

    fn row(&self) -> Vec<String> {
        let array = &self.array;
        let in_use: Vec<String> = self.mounts.iter().chain(&self.above).cloned().collect();
        let in_sync = |member: &&md::Member| member.has("in_sync");
        let members = array.members.iter().filter(in_sync).count();
        let members = match array.wanted {
            Some(wanted) => format!("{members} of {wanted}"),
            None => members.to_string(),
        };
        vec![
            self.title(),
            or_empty_cell(self.level()),
            array.size.to_string(),
            or_empty_cell(array.chunk.map(|chunk| chunk.to_string())),
            or_empty_cell(array.bitmap.clone()),
            or_empty_cell(self.state()),
            members,
            or_empty_cell(
                Some(array.spares())
                    .filter(|count| *count > 0)
                    .map(|count| count.to_string()),
            ),
            or_empty_cell(self.sync_progress()),
            or_empty_cell(Some(in_use.join(" "))),
        ]
    }

    fn member_rows(&self) -> Vec<Vec<String>> {
        let row = |member: &md::Member| {
            vec![
                self.title(),
                or_empty_cell(member.slot.map(|slot| slot.to_string())),
                member.name.clone(),
                or_empty_cell(Some(member.state.join(","))),
                or_empty_cell(member.used.map(|used: Bytes| used.to_string())),
                or_empty_cell(member.errors.map(|errors| errors.to_string())),
            ]
        };
        self.array.members.iter().map(row).collect()
    }
}

/// The document of `array list --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a> {
    /// The arrays that the kernel lists, also those that are not fully assembled.
    arrays: Vec<ArrayDocument<'a>>,
    /// Each `array create` that was killed and is not repaired yet.
    unfinished: Vec<LeftDocument>,
}

/// An `array create` that was killed and has left something.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LeftDocument {
    /// UUID that the array was to have.
    uuid: String,
    /// Path of the array's device; `null` where what it was building cannot be read.
    node: Option<String>,
    /// Paths of its members; `null` where they cannot be read.
    members: Option<Vec<String>>,
    /// Start of the `array create`.
    began: Timestamp,
}

impl LeftDocument {
    fn of(left: &KilledBuild) -> LeftDocument {
        let building = left.building.as_ref();
        let shown = |path: &Path| path.display().to_string();
        let members = building.map(|building| {
            let members = building.members.iter();
            members.map(|member| shown(&member.path)).collect()
        });
        LeftDocument {
            uuid: left.work.key.clone(),
            node: building.map(|building| shown(&building.node)),
            members,
            began: left.work.began,
        }
    }
}

/// An array as md has it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ArrayDocument<'a> {
    /// The kernel's name, such as `md127`.
    device: &'a str,
    /// Major and minor number: `9:0`.
    number: String,
    /// Names of the array under `/dev/md`.
    names: &'a [String],
    /// RAID level in md's words, such as `raid10`; `null` while it is not assembled.
    level: Option<&'a MdLevel>,
    /// Layout of the copies of RAID 10, such as `n2`; `null` at other levels.
    layout: Option<&'a str>,
    /// Write-intent bitmap: `internal`, `external`, `lockless` or `none`; `null` at levels that can have none, and
    /// where the kernel does not report it.
    bitmap: Option<&'a str>,
    /// Size of the array.
    size_bytes: Bytes,
    /// Chunk size; `null` at levels without chunks.
    chunk_bytes: Option<Bytes>,
    /// md's `array_state`, such as `clean` or `active`; `null` where the kernel does not report it.
    state: Option<&'a str>,
    /// Version of its superblocks, such as `1.2`; `null` where the kernel does not report it.
    metadata: Option<&'a str>,
    /// Number of members that it should have, without spares; `null` where the kernel does not report it.
    members_wanted: Option<u32>,
    /// Number of members that are missing; `null` at levels that cannot miss any.
    degraded: Option<u32>,
    /// Number of hot spares that wait.
    spares: usize,
    /// Sync action of the array.
    sync: SyncDocument<'a>,
    /// Mount points.
    mounted: &'a [String],
    /// Names of the devices that are built on it.
    above: &'a [String],
    /// Members of the array in the order of their slots; spares and failed members come last.
    members: Vec<MemberDocument<'a>>,
}

/// Sync action of md: a resync, a recovery, a check or a reshape.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SyncDocument<'a> {
    /// md's `sync_action`, such as `idle`, `recover` or `check`; `null` at levels without copies or parity.
    action: Option<&'a str>,
    /// Position on each member; `null` where nothing is under way.
    done_bytes: Option<Bytes>,
    /// Bytes of each member to process; `null` where nothing is under way.
    of_bytes: Option<Bytes>,
}

/// A member or a spare of an array.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MemberDocument<'a> {
    /// The kernel's name, such as `nvme1n1`.
    device: &'a str,
    /// Major and minor number: `259:0`; `null` where the kernel no longer lists the device.
    number: Option<String>,
    /// Place in the array; `null` for a spare or a failed member.
    slot: Option<u32>,
    /// State in md's words, such as `in_sync`.
    state: &'a [String],
    /// Read errors that md corrected from a copy; `null` where the kernel does not report them.
    errors: Option<u64>,
    /// Bytes of it that the array uses; `null` where the kernel does not report it.
    used_bytes: Option<Bytes>,
}

impl<'a> ArrayDocument<'a> {
    fn of(used: &'a ArrayUse) -> ArrayDocument<'a> {
        let array = &used.array;
        let members = array.members.iter().map(|member| MemberDocument {
            device: &member.name,
            number: member.number.map(|number| number.to_string()),
            slot: member.slot,
            state: &member.state,
            errors: member.errors,
            used_bytes: member.used,
        });
        ArrayDocument {
            device: &array.name,
            number: array.number.to_string(),
            names: &array.names,
            level: array.level.as_ref(),
            layout: array.layout.as_deref(),
            bitmap: array.bitmap.as_deref(),
            size_bytes: array.size,
            chunk_bytes: array.chunk,
            state: array.state.as_deref(),
            metadata: array.metadata.as_deref(),
            members_wanted: array.wanted,
            degraded: array.degraded,
            spares: array.spares(),
            sync: SyncDocument {
                action: array.action.as_deref(),
                done_bytes: array.position.map(|(done, _)| done),
                of_bytes: array.position.map(|(_, of)| of),
            },
            mounted: &used.mounts,
            above: &used.above,
            members: members.collect(),
        }
    }
}
