//! I/Os that wait for others, in a bounded window of the trace.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use crate::depend::{MAX_LATER_IOS, MAX_THREADS};
use crate::second_pass::Item;

/// Maximum number of I/Os in the window, which begins with the oldest incomplete one.
const MAX_LOOKAHEAD: usize = 8192;
/// Number of completion times that are remembered.
const MAX_COMPLETIONS: usize = 1 << 16;

// No I/O of the window waits for a completion whose time was overwritten.
const _: () = assert!(MAX_LATER_IOS as usize + MAX_LOOKAHEAD <= MAX_COMPLETIONS);

/// State of an I/O in the window.
#[derive(Debug)]
enum State {
    /// The I/O waits, or is due.
    Pending(Box<Item>),
    /// The I/O was issued, by this thread.
    Issued(usize),
    Complete,
}

/// An I/O that waits for the first `after` completions in its thread's recorded order, and for another thread's I/O.
#[derive(Debug)]
struct WaitingIo {
    number: u64,
    after: u64,
    other: Option<u64>,
    think: u64,
}

/// I/Os of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// Waiting I/Os, in the order in which they become due.
    waiting: VecDeque<WaitingIo>,
    /// Numbers in the recorded order of completion, from the first incomplete one.
    order: VecDeque<u64>,
    /// Number of completions in the recorded order before these.
    passed: u64,
    /// Time of the last of those completions.
    last: u64,
}

/// The window. Times are in nanoseconds of the replay.
#[derive(Debug)]
pub(crate) struct Graph {
    states: VecDeque<State>,
    /// Number of the first I/O in `states`.
    first: u64,
    due: BinaryHeap<Reverse<(u64, u64)>>,
    threads: Vec<Thread>,
    /// Threads whose next I/O waits for another thread's I/O: number of that I/O, and the thread.
    held: BTreeSet<(u64, usize)>,
    completed: Vec<u64>,
    speed: f64,
}

impl Graph {
    pub(crate) fn new(speed: f64) -> Graph {
        Graph {
            states: VecDeque::new(),
            first: 0,
            due: BinaryHeap::new(),
            threads: (0..MAX_THREADS).map(|_| Thread::default()).collect(),
            held: BTreeSet::new(),
            completed: vec![0; MAX_COMPLETIONS],
            speed,
        }
    }

    /// True if another I/O fits the window.
    pub(crate) fn has_room(&self) -> bool {
        self.states.len() < MAX_LOOKAHEAD
    }

    /// True if nothing waits, is due or is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Adds the next I/O of the trace; `start` is the start of the replay.
    pub(crate) fn add(&mut self, item: Item, start: u64) {
        let scaled = |time: u64| (time as f64 / self.speed) as u64;
        let number = item.number;
        debug_assert_eq!(number, self.first + self.states.len() as u64);
        let thread = &mut self.threads[item.waits.thread];
        thread.order.extend(&item.waits.completed);
        match item.waits.think {
            Some(think) => thread.waiting.push_back(WaitingIo {
                number,
                after: thread.passed + thread.order.len() as u64,
                other: item.waits.other,
                think: scaled(think),
            }),
            None => self
                .due
                .push(Reverse((start.saturating_add(scaled(item.at)), number))),
        }
        let thread = item.waits.thread;
        self.states.push_back(State::Pending(Box::new(item)));
        self.pass(thread);
    }

    /// Time at which the next I/O is due; `None` if no I/O is due.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due, _))| *due)
    }

    /// Removes the I/O that is due first, with its due time.
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

    /// Records that I/O `number` completed at `at`.
    pub(crate) fn complete(&mut self, number: u64, at: u64) {
        self.completed[number as usize % MAX_COMPLETIONS] = at;
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
        while let Some(held) = self.held.range((number, 0)..).next().copied()
            && held.0 == number
        {
            self.held.remove(&held);
            self.pass(held.1);
        }
    }

    fn is_complete(&self, number: u64) -> bool {
        let state = number
            .checked_sub(self.first)
            .and_then(|at| self.states.get(at as usize));
        state.is_none_or(|state| matches!(state, State::Complete))
    }

    fn completion(&self, number: u64) -> u64 {
        self.completed[number as usize % MAX_COMPLETIONS]
    }

    /// Advances a thread's recorded order past completed I/Os, and makes I/Os due that waited for them.
    fn pass(&mut self, number: usize) {
        let mut thread = std::mem::take(&mut self.threads[number]);
        'passing: loop {
            while let Some(next) = thread.waiting.front()
                && next.after <= thread.passed
            {
                if let Some(other) = next.other
                    && !self.is_complete(other)
                {
                    self.held.insert((other, number));
                    break 'passing;
                }
                let last = match next.other {
                    Some(other) => thread.last.max(self.completion(other)),
                    None => thread.last,
                };
                self.due
                    .push(Reverse((last.saturating_add(next.think), next.number)));
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

#[cfg(test)]
mod tests {
    use engine::list;
    use proptest::prelude::*;
    use trace::Class;

    use super::*;
    use crate::depend::{Arrival, Inference, MIN_CAUSAL_NANOS};

    const US: u64 = 1000;
    const START: u64 = 5000 * US;

    /// An I/O of a trace, and its latency in the replay.
    #[derive(Clone, Copy, Debug)]
    struct Recorded {
        arrival: Arrival,
        takes: u64,
    }

    /// Any trace; times are in microseconds. Two of the threads share a number, and I/Os without a thread have number
    /// 0.
    fn any_trace() -> impl Strategy<Value = Vec<Recorded>> {
        let thread =
            prop::sample::select(vec![None, Some(1), Some(2), Some(2 + MAX_THREADS as u32)]);
        let io = (0_u64..50, 1_u64..200, thread, any::<bool>(), 0_u64..400);
        prop::collection::vec(io, 1..200).prop_map(|ios| {
            let mut at = 0;
            let recorded = |(number, (gap, took, thread, is_commit, takes))| {
                at += gap * US;
                let arrival = Arrival {
                    number: number as u64,
                    at,
                    completed: Some(at + took * US),
                    thread,
                    is_commit,
                };
                Recorded {
                    arrival,
                    takes: takes * US,
                }
            };
            ios.into_iter().enumerate().map(recorded).collect()
        })
    }

    fn item(inference: &mut Inference, one: &Recorded) -> Item {
        Item {
            number: one.arrival.number,
            at: one.arrival.at,
            latency: None,
            class: Class::Flush,
            op: list::Op::Flush,
            file: 0,
            offset: 0,
            len: 0,
            was_alone: false,
            had_failed: false,
            waits: inference.waits(one.arrival),
        }
    }

    /// I/Os of its thread that an I/O waits for, by the definition.
    fn parents(trace: &[Recorded], of: &Arrival) -> impl Iterator<Item = u64> {
        let place = |arrival: &Arrival| arrival.thread.unwrap_or(0) as usize % MAX_THREADS;
        let before = trace.iter().map(|one| one.arrival);
        let parents = before.filter(move |one| {
            one.number < of.number
                && place(one) == place(of)
                && one
                    .completed
                    .is_some_and(|done| done + MIN_CAUSAL_NANOS <= of.at)
        });
        parents.map(|one| one.number)
    }

    proptest! {
        #[test]
        fn each_io_is_issued_when_those_that_it_waits_for_are_complete_and_it_has_thought(
            trace in any_trace(), ahead in 1_usize..50,
        ) {
            let mut inference = Inference::default();
            let mut items = trace.iter().map(|one| item(&mut inference, one));
            let mut graph = Graph::new(1.0);
            let mut in_flight = BinaryHeap::new();
            let mut done: Vec<Option<u64>> = vec![None; trace.len()];
            let mut now = START;
            loop {
                while graph.states.len() < ahead && let Some(item) = items.next() {
                    graph.add(item, START);
                }
                let completion = in_flight.peek().map(|Reverse((at, _))| *at);
                if graph.next_due().is_some_and(|due| completion.is_none_or(|at| due <= at)) {
                    let (due, item) = graph.take().unwrap();
                    let one = &trace[item.number as usize];
                    let parents = parents(&trace, &one.arrival).chain(item.waits.other);
                    let parents: Option<Vec<u64>> = parents.map(|one| done[one as usize]).collect();
                    prop_assert!(parents.is_some(), "{:?}", item);
                    let latest = parents.unwrap().into_iter().max();
                    let expected = match (latest, item.waits.think) {
                        (Some(latest), Some(think)) => latest + think,
                        _ => START + item.at,
                    };
                    prop_assert_eq!(due, expected, "{:?}", item);
                    now = now.max(due);
                    in_flight.push(Reverse((now + one.takes, item.number)));
                } else if let Some(Reverse((at, number))) = in_flight.pop() {
                    now = now.max(at);
                    done[number as usize] = Some(at);
                    graph.complete(number, at);
                } else {
                    break;
                }
            }
            prop_assert!(graph.is_empty());
            prop_assert!(done.iter().all(Option::is_some));
        }
    }
}
