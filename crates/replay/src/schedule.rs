//! Order and times in which I/Os are issued: the source of the engine's requests.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use engine::list::{CompletedRequest, Next, Request, RequestSource};
use record::{Nanos, Pace, ReplaySettings};

use crate::graph::Graph;
use crate::second_pass::Item;
use crate::stall::Stalls;
use crate::tally::{Delay, LATE_NANOS, Tally};

/// Time in nanoseconds from the start to the first I/O, in which the queue fills.
const LEAD_NANOS: u64 = 2_000_000;
/// Pause in nanoseconds before the queue is examined again, if the trace is not read fast enough.
const STARVED_PAUSE_NANOS: u64 = 50_000;
/// Interval at which an interrupt is polled during the wait for the first batch.
const START_POLL: Duration = Duration::from_millis(10);

/// The queue that the reading thread fills.
struct Queue {
    from: Receiver<Vec<Item>>,
    batch: std::vec::IntoIter<Item>,
    has_begun: bool,
    is_over: bool,
    starved: u64,
}

/// State of a queue.
enum Head {
    Item,
    Starved,
    Over,
}

impl Queue {
    /// Before the replay begins, waits briefly for the first batch; true if it had to wait.
    fn waits_for_first(&mut self) -> bool {
        if self.has_begun {
            return false;
        }
        match self.from.recv_timeout(START_POLL) {
            Ok(batch) => self.batch = batch.into_iter(),
            Err(RecvTimeoutError::Disconnected) => self.is_over = true,
            Err(RecvTimeoutError::Timeout) => return true,
        }
        self.has_begun = true;
        true
    }

    fn head(&mut self) -> Head {
        while self.batch.as_slice().is_empty() {
            if self.is_over {
                return Head::Over;
            }
            match self.from.try_recv() {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(TryRecvError::Empty) => return Head::Starved,
                Err(TryRecvError::Disconnected) => self.is_over = true,
            }
        }
        Head::Item
    }
}

/// An I/O in flight.
struct IoInFlight {
    item: Item,
    /// Time at which it was due.
    due: u64,
    /// True if nothing else was in flight when it was issued.
    is_alone: bool,
}

/// A running replay.
pub(crate) struct Schedule<'a> {
    queue: Queue,
    rule: Rule,
    speed: f64,
    depth: u32,
    discards: bool,
    start: Option<u64>,
    flights: Vec<Option<IoInFlight>>,
    free: Vec<usize>,
    /// Cause of delays since the last time that no I/O was due.
    delay: Option<Delay>,
    /// Time at which the engine was to ask for the next I/O.
    expected: u64,
    stalls: Stalls,
    tally: Tally<'a>,
}

enum Rule {
    Recorded,
    Asap,
    Dependencies(Box<Graph>),
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(
        from: Receiver<Vec<Item>>,
        settings: ReplaySettings,
        tally: Tally<'a>,
    ) -> Schedule<'a> {
        Schedule {
            queue: Queue {
                from,
                batch: Vec::new().into_iter(),
                has_begun: false,
                is_over: false,
                starved: 0,
            },
            rule: match settings.pace {
                Pace::Recorded => Rule::Recorded,
                Pace::Asap => Rule::Asap,
                Pace::Dependencies => Rule::Dependencies(Box::new(Graph::new(settings.speed))),
            },
            speed: settings.speed,
            depth: settings.depth,
            discards: settings.discards,
            start: None,
            flights: Vec::new(),
            free: Vec::new(),
            delay: None,
            expected: u64::MAX,
            stalls: Stalls::default(),
            tally,
        }
    }

    /// The counts, and the number of times that the queue was empty.
    pub(crate) fn end(self) -> (Tally<'a>, u64) {
        (self.tally, self.queue.starved)
    }

    fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// Next step in the recorded order, at the recorded times or as fast as possible.
    fn next_in_order(&mut self, now: u64, start: u64) -> Next {
        let is_timed = matches!(self.rule, Rule::Recorded);
        match self.queue.head() {
            Head::Over => return Next::End,
            Head::Starved => return self.starve(now),
            Head::Item => {}
        }
        let due = match self.queue.batch.as_slice().first() {
            Some(item) if is_timed => start.saturating_add((item.at as f64 / self.speed) as u64),
            _ => now,
        };
        if due > now {
            return Next::Wait(Nanos(due));
        }
        match self.queue.batch.next() {
            Some(item) => self.issue(item, due, now),
            None => Next::End,
        }
    }

    /// Next step by dependencies.
    fn next_of_graph(&mut self, now: u64, start: u64) -> Next {
        let Rule::Dependencies(graph) = &mut self.rule else {
            return Next::End;
        };
        let mut starved = false;
        while graph.has_room() {
            match self.queue.head() {
                Head::Item => {}
                Head::Starved => {
                    starved = true;
                    break;
                }
                Head::Over => break,
            }
            if let Some(item) = self.queue.batch.next() {
                graph.add(item, start);
            }
        }
        match graph.next_due() {
            Some(due) if due <= now => match graph.take() {
                Some((due, item)) => self.issue(item, due, now),
                None => Next::Wait(Nanos(now)),
            },
            // An I/O that was not read yet may be due earlier.
            due if starved => {
                self.queue.starved += 1;
                Next::Wait(Nanos(
                    due.unwrap_or(u64::MAX).min(now + STARVED_PAUSE_NANOS),
                ))
            }
            Some(due) => Next::Wait(Nanos(due)),
            None if graph.is_empty() && self.queue.is_over => Next::End,
            // All I/Os of the window wait for those in flight.
            None => Next::Wait(Nanos(now + 10_000_000)),
        }
    }

    fn starve(&mut self, now: u64) -> Next {
        self.queue.starved += 1;
        Next::Wait(Nanos(now + STARVED_PAUSE_NANOS))
    }

    fn issue(&mut self, item: Item, due: u64, now: u64) -> Next {
        let in_flight = self.in_flight();
        self.tally.issued(&item, due, now, self.delay);
        if in_flight + 1 >= self.depth as usize {
            self.delay = Some(Delay::Full);
        }
        let request = Request {
            op: item.op,
            file: item.file,
            offset: item.offset,
            len: item.len,
            tag: 0,
        };
        let flight = IoInFlight {
            item,
            due,
            is_alone: in_flight == 0,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.flights[slot] = Some(flight);
                slot
            }
            None => {
                self.flights.push(Some(flight));
                self.flights.len() - 1
            }
        };
        Next::Request(Request {
            tag: slot as u64,
            ..request
        })
    }
}

impl RequestSource for Schedule<'_> {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn next(&mut self, now: Nanos) -> Next {
        if self.queue.waits_for_first() {
            // The wait may have been long, so the time must be read again.
            return Next::Wait(Nanos(0));
        }
        let lead = match self.rule {
            Rule::Asap => 0,
            Rule::Recorded | Rule::Dependencies(_) => LEAD_NANOS,
        };
        let start = *self.start.get_or_insert(now.0 + lead);
        self.tally.begin(start);
        let held = now.0.saturating_sub(self.expected);
        if held > LATE_NANOS && self.delay.is_none() && self.stalls.is_of_the_kernel(held) {
            self.delay = Some(Delay::Blocked);
        }
        self.tally.close_windows(now.0, self.in_flight());
        let next = match self.rule {
            Rule::Recorded | Rule::Asap => self.next_in_order(now.0, start),
            Rule::Dependencies(_) => self.next_of_graph(now.0, start),
        };
        match &next {
            Next::Request(_) => self.expected = now.0,
            Next::Wait(until) => {
                self.expected = until.0;
                self.delay = None;
            }
            Next::End => {}
        }
        next
    }

    fn may_discard(&self) -> bool {
        self.discards
    }

    fn done(&mut self, _: Nanos, done: CompletedRequest) {
        let slot = done.request.tag as usize;
        let Some(flight) = self.flights.get_mut(slot).and_then(Option::take) else {
            return;
        };
        self.free.push(slot);
        let at = (done.began + done.latency).0;
        self.tally.close_windows(at, self.in_flight());
        self.tally
            .done(&flight.item, flight.due, flight.is_alone, &done);
        if let Rule::Dependencies(graph) = &mut self.rule {
            graph.complete(flight.item.number, at);
        }
    }
}
