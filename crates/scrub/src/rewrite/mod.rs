//! `scrub --repair` where the wrong member can be identified: RAID 6, and arrays with three copies or more. That
//! member's block is rewritten from the others.
//!
//! md's own `repair` does not do that. With RAID 6 it keeps the data and recomputes both parities
//! (`handle_parity_checks6` in drivers/md/raid5.c), and of copies it keeps the first that it can read: where that one
//! is wrong, only the wrong bytes remain, and nothing disagrees any more.
//!
//! - `window`: one rewrite, from the suspension of writes to the proof that md sees the written bytes;
//! - `host`: the real array. Writes are suspended by `suspend_lo` and `suspend_hi`, as by mdadm's `raid6check`. md
//!   caches stripes after it has checked them, so they are evicted first: otherwise the next write to such a stripe
//!   would compute parity from outdated bytes;
//! - this module: the choice of blocks, and the ledger. Each window is stored there before it begins, with the tunables
//!   to restore.

mod host;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context as _, ensure};
use domain::raid::Redundancy;
use job::{JobStore, OwnedJob};
use linux::Root;
use linux::block::Devices;

use self::host::RepairHost;
use self::window::{Block, Window, rewrite};
use super::array_scrub::ScrubResult;
use super::checkpoint::Checkpoint;
use super::guard::{self, Guard};
use super::locate::{self, Geometry, Located, NotCompared, OpenedArray, WrongMember};
use super::repair::{BlockResult, Intent, RepairMethod, RepairTotals, Repaired, blocks};
use super::start::TAKEOVER;
use super::target::Target;
use ui::context::Context;
use ui::exit::Failure;

/// Maximum size of a window to which writes are suspended, in bytes of positions, or one unit where that is more.
const MAX_WINDOW_BYTES: u64 = 1 << 20;

/// Method of an array's repair.
pub(crate) fn repair_method(target: &Target, root: &Root) -> RepairMethod {
    let folder = locate::folder(root, &target.device);
    match locate::geometry(&folder, &target.device) {
        Ok(geometry) if geometry.names_odd() => {
            host::refusal(&target.sync).map_or(RepairMethod::Others, RepairMethod::Not)
        }
        Ok(_) => RepairMethod::Md,
        // With one parity nothing could be identified in any layout.
        Err(NotCompared::Layout(..)) if target.level.redundancy() == Redundancy::Parity(1) => {
            RepairMethod::Md
        }
        Err(why) => RepairMethod::Not(why.to_string()),
    }
}

/// Rewrites the located mismatches of an array, and stores the remaining ones in the ledger.
///
/// # Errors
/// When nothing could be written, or the result could not be stored.
pub(crate) fn repair(
    one: &mut ScrubResult,
    located: &Located,
    context: &Context,
    interrupt: &AtomicBool,
) -> anyhow::Result<Repaired> {
    ensure!(
        !located.summary.interrupted,
        "the members were not compared to the end"
    );
    let devices = Devices::read(&context.root)?;
    let device = devices.get(one.target.device.number);
    let device = device
        .filter(|_| one.target.sync.is_there())
        .context("the array no longer exists")?;
    let OpenedArray { geometry, members } = locate::open(&context.root, &devices, device)?;
    let mut access = RepairHost {
        root: &context.root,
        array: device,
        uuid: &one.target.uuid,
        sync: &one.target.sync,
        geometry: &geometry,
        disks: &members,
        writers: BTreeMap::new(),
        held: None,
    };
    let mut repaired = Repaired {
        results: known_results(located),
        ..Repaired::default()
    };
    let windows = windows(located, &geometry);
    let mut noted = RepairJob::begin(context, &one.target.uuid, &mut one.checkpoint)?;
    for window in &windows {
        if interrupt.load(Relaxed) {
            repaired.interrupted = true;
            break;
        }
        let slots: BTreeSet<u32> = window.blocks.iter().map(|block| block.slot).collect();
        let refused = match hold(&mut access, &devices, &mut noted, window, &slots) {
            Ok(()) => None,
            Err(why) => Some(format!("{why:#}")),
        };
        let outcome = match refused {
            None => rewrite(&mut access, &geometry, window),
            Some(why) => window::WindowResult {
                results: vec![BlockResult::Refused(why.clone()); window.blocks.len()],
                trouble: Some(why),
            },
        };
        let positions = window.blocks.iter().map(|block| block.position);
        repaired.results.extend(positions.zip(outcome.results));
        if outcome.trouble.is_some() {
            repaired.trouble = outcome.trouble;
            break;
        }
    }
    repaired.sum = sum(located, &repaired);
    one.is_kept = true;
    noted.end(&repaired)?;
    Ok(repaired)
}

/// Prepares a window: opens the members, stores the window in the ledger and starts the guard. After this its tunables
/// may be changed.
fn hold(
    access: &mut RepairHost<'_>,
    devices: &Devices,
    noted: &mut RepairJob<'_>,
    window: &Window,
    slots: &BTreeSet<u32>,
) -> anyhow::Result<()> {
    access
        .open(devices, slots.iter().copied())
        .map_err(anyhow::Error::msg)?;
    let old = access.saved_tunables(&window.positions);
    noted.save_window(window, slots, &old)?;
    guard::note_turned(access.uuid);
    let guard = Guard::start_rewrite(access.array.number, access.uuid, &old)
        .context("no guard could be started, which lets writes continue after a kill -9")?;
    access.hold(old, guard);
    Ok(())
}

/// Results of blocks that are not tried, since no single member is wrong.
fn known_results(located: &Located) -> BTreeMap<u64, BlockResult> {
    let mut results = BTreeMap::new();
    for mismatch in &located.mismatches {
        let result = match mismatch.odd {
            WrongMember::Member(_) => continue,
            WrongMember::Several => BlockResult::Ambiguous,
            WrongMember::Untold => BlockResult::Untold,
        };
        results.extend(blocks(&mismatch.position).map(|block| (block, result.clone())));
    }
    results
}

/// The blocks that are wrong on a single member, grouped in windows.
fn windows(located: &Located, geometry: &Geometry) -> Vec<Window> {
    let odd = located.mismatches.iter().flat_map(|mismatch| {
        let slot = mismatch.odd.slot();
        let blocks = blocks(&mismatch.position);
        blocks.filter_map(move |position| Some((position, slot?)))
    });
    let blocks: BTreeMap<u64, u32> = odd.collect();
    let unit = geometry.unit();
    let most = unit.max(MAX_WINDOW_BYTES / unit * unit);
    let mut windows: Vec<Window> = Vec::new();
    for (position, slot) in blocks {
        let start = position / unit * unit;
        let end = (start + unit).min(geometry.span());
        let block = Block { position, slot };
        match windows.last_mut() {
            Some(last) if last.positions.end >= start && end - last.positions.start <= most => {
                last.positions.end = end;
                last.blocks.push(block);
            }
            _ => windows.push(Window {
                positions: start..end,
                blocks: vec![block],
            }),
        }
    }
    windows
}

/// Totals of restored and remaining bytes, including mismatches that are not listed or could not be read.
fn sum(located: &Located, repaired: &Repaired) -> RepairTotals {
    let mut sum = RepairTotals::default();
    for mismatch in &located.mismatches {
        let bytes = mismatch.position.end - mismatch.position.start;
        match repaired.result_at(&mismatch.position) {
            Some(BlockResult::Restored) => sum.restored += bytes,
            Some(BlockResult::Agrees) => {}
            _ => sum.left += bytes,
        }
    }
    let listed: u64 = located
        .mismatches
        .iter()
        .map(|one| one.position.end - one.position.start)
        .sum();
    let unread = located.summary.unreadable.iter();
    let unread: u64 = unread
        .map(|one| one.position.end - one.position.start)
        .sum();
    sum.left += located.bytes.saturating_sub(listed) + unread;
    sum
}

/// The job of a repair in the ledger.
struct RepairJob<'a> {
    job: OwnedJob<Checkpoint>,
    checkpoint: &'a mut Checkpoint,
}

impl<'a> RepairJob<'a> {
    /// Reopens the job of a finished check, so that the next start cleans up after a kill.
    fn begin(
        context: &Context,
        uuid: &str,
        checkpoint: &'a mut Checkpoint,
    ) -> anyhow::Result<RepairJob<'a>> {
        let store = JobStore::open(context).map_err(Failure::error)?;
        let job = OwnedJob::open(store, uuid, checkpoint, TAKEOVER).context(
            "the planned writes could not be stored in the ledger, so nothing was written",
        )?;
        Ok(RepairJob { job, checkpoint })
    }

    /// Stores in the ledger that a window is about to be rewritten.
    fn save_window(
        &mut self,
        window: &Window,
        slots: &BTreeSet<u32>,
        old: &super::saved_tunables::SavedTunables,
    ) -> anyhow::Result<()> {
        self.checkpoint.old = Some(old.clone());
        self.checkpoint.rewriting = Some(Intent {
            positions: window.positions.clone(),
            slots: slots.iter().copied().collect(),
        });
        Ok(self.job.save(self.checkpoint)?)
    }

    /// Stores the result of the repair.
    fn end(mut self, repaired: &Repaired) -> anyhow::Result<()> {
        let checkpoint = self.checkpoint;
        if repaired.trouble.is_none() {
            checkpoint.old = None;
            checkpoint.rewriting = None;
        }
        let is_all = !repaired.interrupted && repaired.trouble.is_none();
        if is_all {
            checkpoint.repaired = Some(repaired.sum);
        }
        match is_all {
            true => self.job.finish(checkpoint).map(drop)?,
            false => self.job.save(checkpoint)?,
        }
        Ok(())
    }
}
