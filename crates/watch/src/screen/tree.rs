//! The devices of a frame as a tree: arrays and LVM volumes above the devices that they lie on, with partitions folded
//! into their disk.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use record::sample::{Device, DeviceId, DeviceKind};

use super::columns::RowCells;
use super::frame::Frame;
use super::history::History;
use super::order::{DeviceSearch, SortBy};
use super::siblings::{SiblingComparison, compare};

/// Maximum depth of the tree, which also ends a loop that a log could contain.
const MAX_DEPTH: usize = 12;
/// Share of its disk below which a partition has no row: it holds only the files of firmware and boot loader.
const SMALL_PART: f64 = 0.01;

/// A line of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Branch {
    /// Index of its row in the frame.
    pub place: usize,
    /// The device.
    pub id: DeviceId,
    /// Device under which it is shown.
    pub parent: Option<DeviceId>,
    /// For each level down to its own, true if the line is in the last branch of that level; empty at the top.
    pub lasts: Vec<bool>,
    /// State of the lines below it.
    pub fold: Fold,
    /// Comparison of a member's latency with its siblings'.
    pub siblings: Option<SiblingComparison>,
    /// True if the device itself matches the search, and is not only above or below a match.
    pub is_match: bool,
}

/// State of the lines below a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// No lines.
    Leaf,
    /// The lines are shown.
    Open,
    /// The lines are hidden.
    Closed,
}

/// The user's choice of devices, and their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceSelection {
    /// Figure that the rows are sorted by.
    pub sort: SortBy,
    /// True if the order is reversed: the smallest figure first.
    pub reverse: bool,
    /// Search.
    pub wanted: DeviceSearch,
    /// True if unused loop devices, RAM disks and empty drives are shown too.
    pub all: bool,
    /// Devices whose fold the user changed.
    pub turned: HashSet<DeviceId>,
    /// State to which all folds were set, except for devices in `turned`; `None` where it was never set.
    pub folds: Option<Fold>,
}

/// The lines of a frame.
pub(crate) fn branches(
    history: &History,
    number: u64,
    choice: &DeviceSelection,
    ever_active: &HashSet<DeviceId>,
) -> Vec<Branch> {
    let Some(frame) = history.get(number) else {
        return Vec::new();
    };
    let stack = DeviceStack::of(frame);
    let mut walk = TreeWalk {
        history,
        number,
        frame,
        stack: &stack,
        choice,
        lines: Vec::new(),
    };
    let mut tops = stack.top_rows();
    tops.retain(|place| choice.all || is_worth_a_row(frame, *place, ever_active));
    walk.sort(&mut tops, &[]);
    for place in tops {
        walk.enter(place, None, &[], None, false);
    }
    walk.lines
}

/// True if a device at the top is shown by default.
fn is_worth_a_row(frame: &Frame, place: usize, ever_active: &HashSet<DeviceId>) -> bool {
    let device = &frame.rows[place].device;
    let is_empty = device.size.is_some_and(|size| size.0 == 0);
    let is_minor = matches!(device.kind, DeviceKind::Loop | DeviceKind::Memory) || is_empty;
    !is_minor || ever_active.contains(&device.id)
}

/// Stack of devices, by their indices in a frame.
struct DeviceStack {
    below: Vec<Vec<usize>>,
    parts: Vec<Vec<usize>>,
    is_top: Vec<bool>,
}

impl DeviceStack {
    fn of(frame: &Frame) -> DeviceStack {
        let rows = &frame.rows;
        let places = rows.iter().enumerate();
        let places: HashMap<DeviceId, usize> =
            places.map(|(place, row)| (row.device.id, place)).collect();
        let direct = |device: &Device| -> Vec<usize> {
            let ids = device.lies_on.iter();
            ids.filter_map(|id| places.get(id).copied()).collect()
        };
        let is_part = |place: usize| rows[place].device.kind == DeviceKind::Partition;
        let mut stack = DeviceStack {
            below: rows.iter().map(|row| direct(&row.device)).collect(),
            parts: vec![Vec::new(); rows.len()],
            is_top: vec![true; rows.len()],
        };
        for place in (0..rows.len()).filter(|place| is_part(*place)) {
            for disk in stack.below[place].clone() {
                stack.parts[disk].push(place);
                stack.is_top[place] = false;
            }
        }
        // A device on the only significant partition of a disk is shown above the disk itself.
        let whole = |stack: &DeviceStack, place: usize| -> usize {
            let [disk] = stack.below[place][..] else {
                return place;
            };
            let size = |place: usize| rows[place].device.size.map(|size| size.0 as f64);
            let others = stack.parts[disk].iter().filter(|other| **other != place);
            let is_small = |other: &usize| match (size(*other), size(disk)) {
                (Some(part), Some(disk)) => part < SMALL_PART * disk,
                _ => false,
            };
            if others.into_iter().all(is_small) {
                disk
            } else {
                place
            }
        };
        for place in (0..rows.len()).filter(|place| !is_part(*place)) {
            let below = std::mem::take(&mut stack.below[place]);
            let below = below.into_iter().map(|below| match is_part(below) {
                true => whole(&stack, below),
                false => below,
            });
            let below: Vec<usize> = below.collect();
            for place in &below {
                stack.is_top[*place] = false;
            }
            stack.below[place] = below;
        }
        stack
    }

    fn top_rows(&self) -> Vec<usize> {
        let places = 0..self.is_top.len();
        places.filter(|place| self.is_top[*place]).collect()
    }
}

struct TreeWalk<'a> {
    history: &'a History,
    number: u64,
    frame: &'a Frame,
    stack: &'a DeviceStack,
    choice: &'a DeviceSelection,
    lines: Vec<Branch>,
}

impl TreeWalk<'_> {
    /// Adds a device and the devices below it. Returns true if any of them matches the search.
    fn enter(
        &mut self,
        place: usize,
        parent: Option<DeviceId>,
        lasts: &[bool],
        siblings: Option<SiblingComparison>,
        is_wanted: bool,
    ) -> bool {
        let device = &self.frame.rows[place].device;
        let is_match = self.choice.wanted.matches(device);
        let is_part_of_parent =
            device.kind == DeviceKind::Partition && parent.is_some_and(|id| device.lies_on == [id]);
        let mut below = if is_part_of_parent || lasts.len() >= MAX_DEPTH {
            Vec::new()
        } else {
            self.stack.below[place].clone()
        };
        let compared = match device.kind {
            DeviceKind::Array => {
                compare(self.history, self.number, &self.frame.rows[place], &below)
            }
            _ => Vec::new(),
        };
        let parts = &self.stack.parts[place];
        below.extend(
            parts
                .iter()
                .filter(|part| !self.is_shown_above(**part, parent)),
        );
        self.sort(&mut below, &compared);
        let fold = match (below.is_empty(), self.is_open(device)) {
            (true, _) => Fold::Leaf,
            (_, true) => Fold::Open,
            (_, false) => Fold::Closed,
        };
        let at = self.lines.len();
        let id = device.id;
        self.lines.push(Branch {
            place,
            id,
            parent,
            lasts: lasts.to_vec(),
            fold,
            siblings,
            is_match,
        });
        let mut is_found = is_match;
        let count = below.len();
        for (index, place) in below.into_iter().enumerate() {
            let lasts = [lasts, &[index + 1 == count]].concat();
            let own = compared.iter().find(|comparison| comparison.place == place);
            is_found |= self.enter(place, Some(id), &lasts, own.cloned(), is_wanted || is_match);
        }
        let keep_below = fold == Fold::Open;
        if !is_found && !is_wanted {
            self.lines.truncate(at);
        } else if !keep_below {
            self.lines.truncate(at + 1);
        }
        is_found
    }

    /// True if the member above a disk is this partition of it.
    fn is_shown_above(&self, part: usize, parent: Option<DeviceId>) -> bool {
        parent == Some(self.frame.rows[part].device.id)
    }

    /// True if the lines below a device are shown: members are, partitions are not.
    fn is_open(&self, device: &Device) -> bool {
        let by_kind = matches!(device.kind, DeviceKind::Array | DeviceKind::Mapper);
        let open = match self.choice.folds {
            Some(folds) => folds == Fold::Open,
            None => by_kind,
        };
        open != self.choice.turned.contains(&device.id)
    }

    /// Sorts the rows of one level: the largest figure first, and rows without a figure last.
    fn sort(&self, places: &mut [usize], compared: &[SiblingComparison]) {
        let choice = self.choice;
        if choice.sort.is_name() {
            places.sort_unstable();
            if choice.reverse {
                places.reverse();
            }
            return;
        }
        let figure = |place: usize| {
            choice.sort.figure(&RowCells {
                row: &self.frame.rows[place],
                siblings: compared.iter().find(|comparison| comparison.place == place),
                caps: None,
            })
        };
        places.sort_by(|a, b| match (figure(*a), figure(*b)) {
            (Some(x), Some(y)) if choice.reverse => x.total_cmp(&y),
            (Some(x), Some(y)) => y.total_cmp(&x),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => a.cmp(b),
        });
    }
}

#[cfg(test)]
mod tests;
