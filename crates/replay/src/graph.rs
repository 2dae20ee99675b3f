//! I/Os that wait for others, in a bounded window of the trace.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::depend::THREADS;
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
    /// It was issued, by a thread.
    Issued(usize),
    Complete,
}

/// An I/O that waits for the first `after` completions of its thread's recorded order, and for another's.
#[derive(Debug)]
struct Waiting {
    number: u64,
    after: u64,
    other: Option<u64>,
    think: u64,
}

/// I/Os of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// Those that wait, which become due in this order.
    waiting: VecDeque<Waiting>,
    /// Numbers in the recorded order of completion, from the first that is not complete.
    order: VecDeque<u64>,
    /// Completions of the recorded order before these.
    passed: u64,
    /// The last of these.
    last: u64,
}

/// The window. Times are in nanoseconds of the replay.
#[derive(Debug)]
pub(crate) struct Graph {
    states: VecDeque<State>,
    /// Number of the first of them.
    first: u64,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    threads: Vec<Thread>,
    /// Threads whose next I/O waits for another's.
    held: Vec<usize>,
    completed: Vec<u64>,
    speed: f64,
}

impl Graph {
    pub(crate) fn new(speed: f64) -> Graph {
        Graph {
            states: VecDeque::new(),
            first: 0,
            due: BinaryHeap::new(),
            threads: (0..THREADS).map(|_| Thread::default()).collect(),
            held: Vec::new(),
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
        let thread = &mut self.threads[item.waits.thread];
        thread.order.extend(&item.waits.completed);
        match item.waits.think {
            Some(think) => thread.waiting.push_back(Waiting {
                number,
                after: thread.passed + thread.order.len() as u64,
                other: item.waits.other,
                think: scaled(think),
            }),
            None => self.due.push(Reverse((start + scaled(item.at), number))),
        }
        let thread = item.waits.thread;
        self.states.push_back(State::Pending(Box::new(item)));
        self.pass(thread);
    }

    /// Time at which the next is due, if one is.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Takes the one that is due first.
    pub(crate) fn take(&mut self) -> Option<(u64, Item)> {
        let Reverse((due, number)) = self.due.pop()?;
        let state = self.states.get_mut((number - self.first) as usize)?;
        let State::Pending(item) = state else {
            return None;
        };
        let issued = State::Issued(item.waits.thread);
        match std::mem::replace(state, issued) {
            State::Pending(item) => Some((due, *item)),
            State::Issued(_) | State::Complete => None,
        }
    }

    /// Notes that I/O `number` completed then.
    pub(crate) fn complete(&mut self, number: u64, at: u64) {
        self.completed[number as usize % REMEMBERED] = at;
        let state = self.states.get_mut((number - self.first) as usize);
        let Some(state) = state else {
            return;
        };
        let before = std::mem::replace(state, State::Complete);
        while let Some(State::Complete) = self.states.front() {
            self.states.pop_front();
            self.first += 1;
        }
        if let State::Issued(thread) = before {
            self.pass(thread);
        }
        for thread in std::mem::take(&mut self.held) {
            self.pass(thread);
        }
    }

    fn is_complete(&self, number: u64) -> bool {
        let state = number
            .checked_sub(self.first)
            .and_then(|at| self.states.get(at as usize));
        state.is_none_or(|state| matches!(state, State::Complete))
    }

    fn completion(&self, number: u64) -> u64 {
        self.completed[number as usize % REMEMBERED]
    }

    /// Passes what is complete of a thread's recorded order, and makes due what waited for it.
    fn pass(&mut self, number: usize) {
        let mut thread = std::mem::take(&mut self.threads[number]);
        'passing: loop {
            while let Some(next) = thread.waiting.front()
                && next.after <= thread.passed
            {
                if next.other.is_some_and(|other| !self.is_complete(other)) {
                    if !self.held.contains(&number) {
                        self.held.push(number);
                    }
                    break 'passing;
                }
                let last = match next.other {
                    Some(other) => thread.last.max(self.completion(other)),
                    None => thread.last,
                };
                self.due.push(Reverse((last + next.think, next.number)));
                thread.waiting.pop_front();
            }
            let Some(done) = thread.order.front().copied() else {
                break;
            };
            if !self.is_complete(done) {
                break;
            }
            thread.last = thread.last.max(self.completion(done));
            thread.passed += 1;
            thread.order.pop_front();
        }
        self.threads[number] = thread;
    }
}
