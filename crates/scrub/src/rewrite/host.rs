//! Access of a rewrite to a real array.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::Root;
use linux::block::{Device, Devices};
use linux::md::sync::{Sectors, Sync, SyncMax, Tunable};
use record::Bytes;
use record::sample::SyncAction;

use super::super::guard::{self, Guard};
use super::super::locate::{Disks, Geometry, MemberOffset, Members as _, Writer};
use super::super::saved_tunables::{RestoredBy, SavedTunables, Setting};
use super::window::RewriteAccess;

/// Maximum time for which writes to a window are suspended.
const MAX_HOLD: Duration = Duration::from_secs(60);
/// Time limit for actions that md completes in a moment.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two polls.
const POLL: Duration = Duration::from_millis(5);
/// Minimum of `stripe_cache_size` that the kernel accepts (raid5_set_cache_size in drivers/md/raid5.c).
const MIN_STRIPES: &str = "17";
/// Length of other rows that evicts all stripes from the minimal cache. md keeps the 17 stripes in eight lists, by
/// their rows of 4 KiB (`NR_STRIPE_HASH_LOCKS`), two or three in each: four other rows of each list replace them all.
const OTHER_STRIPE_BYTES: u64 = 8 * 4 * 4096;
/// Sectors that md counts for a row of 4 KiB.
const SECTORS_PER_ROW: u64 = 8;

/// Access to the array during a repair.
pub(crate) struct RepairHost<'a> {
    pub root: &'a Root,
    pub array: &'a Device,
    pub uuid: &'a str,
    pub sync: &'a Sync,
    pub geometry: &'a Geometry,
    pub disks: &'a Disks,
    pub writers: BTreeMap<u32, Writer>,
    pub held: Option<HeldWrites>,
}

/// Suspension of writes to a window.
pub(crate) struct HeldWrites {
    pub old: SavedTunables,
    pub guard: Guard,
    pub until: Instant,
}

impl<'a> RepairHost<'a> {
    /// Current values of all tunables that a window changes, to restore them at the end or after a kill.
    pub(crate) fn saved_tunables(&self, positions: &Range<u64>) -> SavedTunables {
        let (low, high) = self.suspended(positions);
        let setting = |tunable: Tunable, write: String, shows: Option<String>| Setting {
            file: tunable.file().to_owned(),
            write,
            shows,
        };
        let mut settings = vec![
            setting(Tunable::SuspendHi, "0".to_owned(), Some(high)),
            setting(Tunable::SuspendLo, "0".to_owned(), Some(low)),
        ];
        if self.geometry.has_parity() {
            let stripes = self.sync.tunable(Tunable::StripeCache);
            let least = Some(MIN_STRIPES.to_owned());
            settings.extend(stripes.map(|stripes| setting(Tunable::StripeCache, stripes, least)));
            settings.push(setting(Tunable::Max, "max".to_owned(), None));
            let min = self
                .sync
                .tunable(Tunable::Min)
                .unwrap_or_else(|| "0".to_owned());
            settings.push(setting(Tunable::Min, min, None));
        }
        SavedTunables {
            settings,
            repairs: false,
        }
    }

    /// Takes the former tunables, and the guard that restores them after a kill. From now on the tunables may be
    /// changed.
    pub(crate) fn hold(&mut self, old: SavedTunables, guard: Guard) {
        self.held = Some(HeldWrites {
            old,
            guard,
            until: Instant::now() + MAX_HOLD,
        });
    }

    /// Opens the members of these slots for writing.
    pub(crate) fn open(
        &mut self,
        devices: &Devices,
        slots: impl Iterator<Item = u32>,
    ) -> Result<(), String> {
        for slot in slots {
            if !self.writers.contains_key(&slot) {
                let writer = Writer::open(self.root, devices, self.array, slot);
                let writer = writer.map_err(|error| error.to_string())?;
                self.writers.insert(slot, writer);
            }
        }
        Ok(())
    }

    /// First sector and exclusive end of the array's range at these positions, as text for `suspend_lo` and
    /// `suspend_hi`.
    fn suspended(&self, positions: &Range<u64>) -> (String, String) {
        let array = self.geometry.array(positions);
        let sectors = |bytes| Sectors::of(Bytes(bytes)).0.to_string();
        (sectors(array.start), sectors(array.end))
    }

    fn turn(&self, tunable: Tunable, text: &str) -> Result<(), String> {
        retried(|| self.sync.turn(tunable, text))
    }

    fn until(&self) -> Instant {
        let held = self.held.as_ref();
        held.map_or_else(Instant::now, |held| held.until)
    }

    /// Positions beside these, with so many rows that checking them replaces the whole stripe cache.
    fn others(&self, positions: &Range<u64>) -> Result<Range<u64>, String> {
        let length = OTHER_STRIPE_BYTES.next_multiple_of(self.geometry.unit());
        let behind = positions.end..positions.end.saturating_add(length);
        if behind.end <= self.geometry.span() {
            return Ok(behind);
        }
        match positions.start.checked_sub(length) {
            Some(start) => Ok(start..positions.start),
            None => Err("the array is so small that md keeps all of it in memory".to_owned()),
        }
    }

    /// Has md check these positions. Returns the number of mismatched sectors that it counts.
    fn check(&self, positions: &Range<u64>) -> Result<u64, String> {
        let sectors = |bytes| Sectors::of(Bytes(bytes));
        let (from, to) = (sectors(positions.start), sectors(positions.end));
        let before = self.held.as_ref().and_then(|held| {
            let min = held.old.settings.iter();
            let mut min = min.filter(|setting| setting.file == Tunable::Min.file());
            min.next().map(|setting| setting.write.clone())
        });
        self.turn(Tunable::Min, "0")?;
        self.turn(Tunable::Max, &to.0.to_string())?;
        self.turn(Tunable::Min, &from.0.to_string())?;
        let counted = retried(|| self.sync.write_sync_action(SyncAction::Check))
            .and_then(|()| self.count(to));
        let until = Instant::now() + TIMEOUT;
        let goes_on =
            || matches!(self.sync.state(), Ok(state) if state.action == SyncAction::Check);
        while goes_on() && Instant::now() < until {
            // md ignores the request until its thread has begun; the loop waits for the end of the check.
            let _ = self.sync.write_sync_action(SyncAction::Idle);
            sleep(POLL);
        }
        self.turn(Tunable::Min, "0")?;
        self.turn(Tunable::Max, "max")?;
        self.turn(Tunable::Min, before.as_deref().unwrap_or("0"))?;
        counted
    }

    /// Waits until md's check has reached `to`. Returns the number of mismatched sectors.
    fn count(&self, to: Sectors) -> Result<u64, String> {
        loop {
            let state = self.sync.state().map_err(|error| error.to_string())?;
            let is_there = |(done, _): (Sectors, Sectors)| done >= to;
            match state.action {
                SyncAction::Check if state.completed.is_some_and(is_there) => {
                    return Ok(state.mismatches);
                }
                SyncAction::Check => {}
                // At the end of the array md resets `sync_max`.
                SyncAction::Idle if state.until == SyncMax::End => return Ok(state.mismatches),
                other => {
                    return Err(format!(
                        "md's check of the stripes was ended by something else (sync_action is '{}')",
                        other.name()
                    ));
                }
            }
            if Instant::now() >= self.until() {
                return Err(
                    "md did not check the stripes within a minute, during which writes to them waited"
                        .to_owned(),
                );
            }
            sleep(POLL);
        }
    }
}

/// Repeats an action that md refuses while it ends a check, for at most [`TIMEOUT`].
fn retried(act: impl Fn() -> linux::Result<()>) -> Result<(), String> {
    let until = Instant::now() + TIMEOUT;
    loop {
        match act() {
            Err(error) if error.is_busy() && Instant::now() < until => sleep(POLL),
            other => return other.map_err(|error| error.to_string()),
        }
    }
}

/// Reason why an array's members must not be written without md, as a clause; `None` where they may be.
pub(crate) fn refusal(sync: &Sync) -> Option<String> {
    let is_suspended = |tunable| {
        sync.tunable(tunable)
            .is_none_or(|shown| shown.trim() != "0")
    };
    let bad = sync.health().into_iter().find(|member| member.bad.0 > 0);
    match sync.state() {
        Err(error) => return Some(error.to_string()),
        Ok(state) if state.degraded > 0 => {
            return Some("a member is missing; replace it first".to_owned());
        }
        Ok(state) if state.action != SyncAction::Idle => {
            return Some(format!(
                "md is at work on it (its sync_action is '{}')",
                state.action.name()
            ));
        }
        Ok(_) => {}
    }
    if is_suspended(Tunable::SuspendLo) || is_suspended(Tunable::SuspendHi) {
        return Some(
            "its suspend_lo and suspend_hi, by which writes are made to wait, are in use or not there"
                .to_owned(),
        );
    }
    if let Some(member) = bad {
        return Some(format!(
            "md has a list of unreadable sectors of /dev/{} (bad_blocks), where other bytes count than those \
             that the disk has; replace that member first",
            member.name
        ));
    }
    if sync.is_to_replace() {
        return Some("a member is to be replaced, which comes first".to_owned());
    }
    let policy = linux::root::attribute(&sync.folder().join("consistency_policy"));
    (policy.as_deref() == Some("journal")).then(|| {
        "it has a journal for its writes, which may hold other bytes than the members do".to_owned()
    })
}

impl RewriteAccess for RepairHost<'_> {
    fn suspend(&mut self, positions: &Range<u64>) -> Result<(), String> {
        refusal(self.sync).map_or(Ok(()), Err)?;
        let (low, high) = self.suspended(positions);
        self.turn(Tunable::SuspendLo, &low)?;
        self.turn(Tunable::SuspendHi, &high)
    }

    fn release(&mut self) -> Result<(), String> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        let back = held.old.put_back(self.sync, RestoredBy::Another);
        if back.is_all() {
            guard::note_restored(self.uuid);
        }
        held.guard.dismiss(&back);
        match back.is_all() {
            true => Ok(()),
            false => Err(back.left().join("; ")),
        }
    }

    fn forget(&mut self, positions: &Range<u64>) -> Result<(), String> {
        if !self.geometry.has_parity() {
            return Ok(());
        }
        let others = self.others(positions)?;
        self.turn(Tunable::StripeCache, MIN_STRIPES)?;
        self.check(&others).map(|_| ())
    }

    fn counted(&mut self, positions: &Range<u64>) -> Result<Option<u64>, String> {
        if !self.geometry.has_parity() {
            return Ok(None);
        }
        let sectors = self.check(positions)?;
        Ok(Some(sectors.div_ceil(SECTORS_PER_ROW)))
    }

    fn read(&mut self, place: MemberOffset, into: &mut [u8]) -> io::Result<()> {
        self.disks.read_at(place.slot, place.at, into)
    }

    fn write(&mut self, place: MemberOffset, bytes: &[u8]) -> io::Result<()> {
        // This cannot be certain: a member may still fail during the write.
        let state = self.sync.state().map_err(io::Error::other)?;
        if state.degraded > 0 || !self.disks.has(place.slot) {
            return Err(io::Error::other("a member has failed meanwhile"));
        }
        let held = self.held.as_mut();
        let held = held.ok_or_else(|| io::Error::other("nothing holds other writes back"))?;
        let writer = self.writers.get(&place.slot);
        let writer = writer.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        held.guard.report_write(true)?;
        let written = writer.write_at(place.at, bytes);
        held.guard.report_write(false)?;
        written
    }
}
