//! The arrays of software RAID: their progress from `/proc/mdstat`, and facts that change rarely from sysfs.

use std::collections::HashMap;

use linux::block::Devices;
use linux::pulse::{ArrayLine, MdStat};
use linux::{Root, md};
use record::Nanos;
use record::sample::{ArraySample, Member, SyncAction};

use super::device_registry::DeviceRegistry;

/// Maximum time between two readings of errors and mismatches, for which sysfs has a file per member.
const REREAD_INTERVAL: Nanos = Nanos::from_secs(10);

/// The arrays of the host.
pub(super) struct Arrays {
    file: Option<MdStat>,
    lines: Vec<ArrayLine>,
    details: HashMap<String, Details>,
    last: Option<Nanos>,
    is_due: bool,
}

/// An array's facts from sysfs.
struct Details {
    array: md::Array,
    mismatched: Option<u64>,
}

impl Arrays {
    /// Opens the kernel's list of arrays, if it has one.
    pub(super) fn open(root: &Root) -> Arrays {
        Arrays {
            file: MdStat::open(root).ok(),
            lines: Vec::new(),
            details: HashMap::new(),
            last: None,
            is_due: false,
        }
    }

    /// Reads the state of the arrays. Returns true if anything except their progress changed.
    pub(super) fn poll(&mut self) -> bool {
        let Some(file) = &mut self.file else {
            return false;
        };
        let lines = file.read().unwrap_or_default();
        let frame = |line: &ArrayLine| {
            let members = line.members.clone();
            (
                line.name.clone(),
                line.action,
                line.wanted_and_working,
                line.broken,
                members,
            )
        };
        let same = self.lines.iter().map(frame).eq(lines.iter().map(frame));
        self.lines = lines;
        self.is_due |= !same;
        !same
    }

    /// Reads sysfs again, if the last reading is old or the arrays changed.
    pub(super) fn keep_fresh(&mut self, now: Nanos, root: &Root, devices: &Devices) {
        let old = self.last.is_none_or(|last| now - last >= REREAD_INTERVAL);
        if !self.lines.is_empty() && (old || self.is_due) {
            self.last = Some(now);
            self.refresh(root, devices);
        }
    }

    /// Reads the arrays' facts from sysfs again.
    pub(super) fn refresh(&mut self, root: &Root, devices: &Devices) {
        if self.file.is_none() {
            // md may be loaded only when the first array is built.
            self.file = MdStat::open(root).ok();
            self.poll();
        }
        self.is_due = false;
        if self.lines.is_empty() {
            self.details.clear();
            return;
        }
        // An array that is being stopped cannot be listed for a moment; it is gone at the next reading.
        let arrays = md::arrays(root, devices).unwrap_or_default();
        self.details = arrays
            .into_iter()
            .map(|array| {
                let mismatched = md::mismatches(root, &array.name);
                (array.name.clone(), Details { array, mismatched })
            })
            .collect();
    }

    /// State of an array; `None` for other devices.
    pub(super) fn sample(&self, name: &str, registry: &DeviceRegistry) -> Option<ArraySample> {
        let line = self.lines.iter().find(|line| line.name == name)?;
        let details = self.details.get(name);
        let array = details.map(|details| &details.array);
        let counted = line.wanted_and_working;
        Some(ArraySample {
            action: action(line, array),
            position: line.position,
            speed: line.speed,
            wanted: counted
                .map(|(wanted, _)| wanted)
                .or(array.and_then(|array| array.wanted)),
            degraded: degraded(line, array),
            mismatched: details.and_then(|details| details.mismatched),
            members: members(line, array, registry),
        })
    }
}

/// Number of missing members. At levels without redundancy md does not count them, and reports only that the array is
/// broken.
fn degraded(line: &ArrayLine, array: Option<&md::Array>) -> Option<u32> {
    let counted = line
        .wanted_and_working
        .map(|(wanted, working)| wanted.saturating_sub(working))
        .or(array.and_then(|array| array.degraded));
    match line.broken {
        true => Some(counted.unwrap_or(0).max(1)),
        false => counted,
    }
}

/// Sync action of an array. `/proc/mdstat` has the current one, but calls a repair a resync; sysfs is more exact, but
/// was read earlier.
fn action(line: &ArrayLine, array: Option<&md::Array>) -> Option<SyncAction> {
    let known = array.and_then(|array| SyncAction::from_name(array.action.as_deref()?));
    match (line.action, known) {
        (Some(SyncAction::Resync), Some(SyncAction::Repair)) => Some(SyncAction::Repair),
        (Some(action), _) => Some(action),
        (None, Some(SyncAction::Frozen)) => Some(SyncAction::Frozen),
        (None, known) => known.map(|_| SyncAction::Idle),
    }
}

fn members(line: &ArrayLine, array: Option<&md::Array>, registry: &DeviceRegistry) -> Vec<Member> {
    let mut members: Vec<Member> = line
        .members
        .iter()
        .map(|word| {
            let known = array
                .into_iter()
                .flat_map(|array| &array.members)
                .find(|member| member.name == word.name);
            let mut state = known.map(|member| member.state.clone()).unwrap_or_default();
            if word.faulty && !state.iter().any(|word| word == "faulty") {
                state.push("faulty".to_owned());
            }
            Member {
                device: registry.id_of(&word.name),
                name: word.name.clone(),
                slot: known.and_then(|member| member.slot),
                state,
                errors: known.and_then(|member| member.errors),
            }
        })
        .collect();
    members.sort_by_key(|member| member.slot.unwrap_or(u32::MAX));
    members
}
