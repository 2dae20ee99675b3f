//! I/Os that wait for others, in a bounded window of the trace.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::second_pass::Item;

/// I/Os that are examined ahead of the oldest that is not complete.
const AHEAD: usize = 8192;
/// Completions whose times are remembered until they are waited for.
const REMEMBERED: usize = 1 << 16;

/// State of an I/O in the window.
#[derive(Debug)]
enum State {
    /// It waits, or is due.
    Pending(Box<Item>),
    Issued,
    Complete,
}

/// An I/O that waits for the first `after` completions of the recorded order.
#[derive(Debug)]
struct Waiting {
    number: u64,
    after: u64,
    think: u64,
}

/// The window. Times are in nanoseconds of the replay.
#[derive(Debug)]
pub(crate) struct Graph {
    states: VecDeque<State>,
    /// Number of the first of them.
    first: u64,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    /// Those that wait, which become due in this order.
    waiting: VecDeque<Waiting>,
    /// Numbers in the recorded order of completion, from the first that is not complete.
    order: VecDeque<u64>,
    /// Completions of the recorded order before these.
    passed: u64,
    /// The last of these.
    last: u64,
    completed: Vec<u64>,
    speed: f64,
}

impl Graph {
    pub(crate) fn new(speed: f64) -> Graph {
        Graph {
            states: VecDeque::new(),
            first: 0,
            due: BinaryHeap::new(),
            waiting: VecDeque::new(),
            order: VecDeque::new(),
            passed: 0,
            last: 0,
            completed: vec![0; REMEMBERED],
            speed,
        }
    }

    /// True if there is room for one more.
    pub(crate) fn has_room(&self) -> bool {
        self.states.len() < AHEAD
    }

    /// True if nothing waits, is due or is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Adds the next I/O of the trace, where the replay began at `start`.
    pub(crate) fn add(&mut self, item: Item, start: u64) {
        let scaled = |time: u64| (time as f64 / self.speed) as u64;
        let number = item.number;
        debug_assert_eq!(number, self.first + self.states.len() as u64);
        self.order.extend(&item.waits.completed);
        match item.waits.think {
            Some(think) => self.waiting.push_back(Waiting {
                number,
                after: self.passed + self.order.len() as u64,
                think: scaled(think),
            }),
            None => self.due.push(Reverse((start + scaled(item.at), number))),
        }
        self.states.push_back(State::Pending(Box::new(item)));
        self.pass();
    }

    /// Time at which the next is due, if one is.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes the one that is due first.
    pub(crate) fn take(&mut self) -> Option<(u64, Item)> {
        let Reverse((due, number)) = self.due.pop()?;
        let state = self.states.get_mut((number - self.first) as usize)?;
        match std::mem::replace(state, State::Issued) {
            State::Pending(item) => Some((due, *item)),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Notes that I/O `number` completed then.
    pub(crate) fn complete(&mut self, number: u64, at: u64) {
        self.completed[number as usize % REMEMBERED] = at;
        if let Some(state) = self.states.get_mut((number - self.first) as usize) {
            *state = State::Complete;
        }
        while let Some(State::Complete) = self.states.front() {
            self.states.pop_front();
            self.first += 1;
        }
        self.pass();
    }

    fn is_complete(&self, number: u64) -> bool {
        let state = number
            .checked_sub(self.first)
            .and_then(|at| self.states.get(at as usize));
        state.is_none_or(|state| matches!(state, State::Complete))
    }

    /// Passes what is complete of the recorded order, and makes due what waited for it.
    fn pass(&mut self) {
        loop {
            while let Some(next) = self.waiting.front()
                && next.after <= self.passed
            {
                self.due
                    .push(Reverse((self.last + next.think, next.number)));
                self.waiting.pop_front();
            }
            let Some(number) = self.order.front().copied() else {
                return;
            };
            if !self.is_complete(number) {
                return;
            }
            self.last = self.last.max(self.completed[number as usize % REMEMBERED]);
            self.passed += 1;
            self.order.pop_front();
        }
    }
}
