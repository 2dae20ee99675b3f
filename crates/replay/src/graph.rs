//! I/Os that wait for others, in a bounded window of the trace.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::feed::Item;

/// I/Os that are looked at ahead of the oldest that is not complete.
const AHEAD: usize = 8192;
/// Completions that are remembered: more than an I/O and its parents are ever apart.
const REMEMBERED: usize = 1 << 16;

/// State of an I/O in the window.
#[derive(Debug)]
enum State {
    /// It waits for so many parents; the last of those that completed did so then.
    Waits {
        left: u32,
        last: u64,
        item: Box<Item>,
    },
    /// It is due.
    Due(Box<Item>),
    /// It was issued.
    Issued,
    /// It is complete.
    Complete,
}

#[derive(Debug)]
struct Node {
    state: State,
    /// Those that wait for it.
    children: Vec<u64>,
}

/// The window. Times are in nanoseconds of the replay.
#[derive(Debug)]
pub(crate) struct Graph {
    nodes: VecDeque<Node>,
    /// Number of the first node.
    first: u64,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    completed: Vec<u64>,
    speed: f64,
}

impl Graph {
    pub(crate) fn new(speed: f64) -> Graph {
        Graph {
            nodes: VecDeque::new(),
            first: 0,
            due: BinaryHeap::new(),
            completed: vec![0; REMEMBERED],
            speed,
        }
    }

    /// True if there is room for one more.
    pub(crate) fn has_room(&self) -> bool {
        self.nodes.len() < AHEAD
    }

    /// True if nothing waits or is due.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds the next I/O of the trace, where the replay began at `start`.
    pub(crate) fn add(&mut self, item: Item, start: u64) {
        let number = self.first + self.nodes.len() as u64;
        debug_assert_eq!(number, item.number);
        let (mut left, mut last) = (0, 0);
        for parent in &item.waits.parents {
            match parent
                .checked_sub(self.first)
                .and_then(|at| self.nodes.get_mut(at as usize))
            {
                Some(node) if !matches!(node.state, State::Complete) => {
                    node.children.push(number);
                    left += 1;
                }
                _ => last = last.max(self.completed[*parent as usize % REMEMBERED]),
            }
        }
        let item = Box::new(item);
        let state = match (left, item.waits.parents.is_empty()) {
            (0, true) => {
                let due = start + (item.at as f64 / self.speed) as u64;
                self.due.push(Reverse((due, number)));
                State::Due(item)
            }
            (0, false) => {
                self.due.push(Reverse((last + self.think(&item), number)));
                State::Due(item)
            }
            (left, _) => State::Waits { left, last, item },
        };
        self.nodes.push_back(Node {
            state,
            children: Vec::new(),
        });
    }

    fn think(&self, item: &Item) -> u64 {
        (item.waits.think as f64 / self.speed) as u64
    }

    /// Time at which the next is due, if one is.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes the one that is due first.
    pub(crate) fn take(&mut self) -> Option<(u64, Item)> {
        let Reverse((due, number)) = self.due.pop()?;
        let node = self.nodes.get_mut((number - self.first) as usize)?;
        match std::mem::replace(&mut node.state, State::Issued) {
            State::Due(item) => Some((due, *item)),
            other => {
                node.state = other;
                None
            }
        }
    }

    /// Notes that I/O `number` completed then.
    pub(crate) fn complete(&mut self, number: u64, at: u64) {
        self.completed[number as usize % REMEMBERED] = at;
        let Some(node) = self.nodes.get_mut((number - self.first) as usize) else {
            return;
        };
        node.state = State::Complete;
        for child in std::mem::take(&mut node.children) {
            self.release(child, at);
        }
        while let Some(Node {
            state: State::Complete,
            ..
        }) = self.nodes.front()
        {
            self.nodes.pop_front();
            self.first += 1;
        }
    }

    /// Notes that a parent of `number` completed then.
    fn release(&mut self, number: u64, at: u64) {
        let think = |item: &Item| (item.waits.think as f64 / self.speed) as u64;
        let Some(node) = self.nodes.get_mut((number - self.first) as usize) else {
            return;
        };
        let State::Waits { left, last, .. } = &mut node.state else {
            return;
        };
        *left -= 1;
        *last = (*last).max(at);
        if *left > 0 {
            return;
        }
        if let State::Waits { last, item, .. } = std::mem::replace(&mut node.state, State::Issued) {
            self.due.push(Reverse((last + think(&item), number)));
            node.state = State::Due(item);
        }
    }
}
