//! Counts of a replay: by class, by window, and over time.

use engine::Observer;
use engine::list::CompletedRequest;
use record::{Bytes, Direction, Flow, Histogram, ReplayClass, Slice, Window, WindowFlow};
use rustix::time::{ClockId, clock_gettime};

use trace::Class;

use crate::class::{direction, is_small_read};
use crate::curve::Curve;
use crate::second_pass::Item;

/// Number of parts of the replay from which intervals of percentiles are computed.
pub(crate) const PERCENTILE_PARTS: usize = 30;
/// Number of slices in a window.
const SLICES: usize = 10;
/// Maximum number of windows; an even number.
const MAX_WINDOWS: usize = 1200;
/// An I/O that is delayed by more than this, in nanoseconds, is late.
pub(crate) const LATE_NANOS: u64 = 1_000_000;

/// Cause of a delay other than a slow reader of the trace or busy processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delay {
    /// The limit of I/Os in flight is reached.
    Full,
    /// The kernel blocked the submission of earlier I/Os.
    Blocked,
}

/// Counts of each class.
struct ByClass {
    ios: u64,
    bytes: u64,
    failed: u64,
    failed_recorded: u64,
    recorded: Vec<Histogram>,
    replayed: Vec<Histogram>,
    service: Histogram,
}

/// Counts of a running replay. Times are in nanoseconds of the engine's clock.
pub(crate) struct Tally<'a> {
    observer: &'a mut dyn Observer,
    start: Option<u64>,
    /// Factor by which recorded times are shortened.
    speed: f64,
    /// Number of I/Os in a part.
    per_part: u64,
    /// Counts of each class, in the order of `Class::place`.
    classes: Vec<Option<(Class, Box<ByClass>)>>,
    pub(crate) lateness: Histogram,
    pub(crate) issued: u64,
    pub(crate) full: u64,
    pub(crate) blocked: u64,
    pub(crate) lone_recorded: Histogram,
    pub(crate) lone_replayed: Histogram,
    pub(crate) curve: Curve,
    flows: Flows,
    /// Width of a window.
    width: u64,
    open: Window,
    pub(crate) windows: Vec<Window>,
    busy_before: u64,
    /// Time of the last completion.
    last: u64,
}

/// Totals by direction, in the order of [`Direction`].
type Flows = [Option<Flow>; 4];

impl<'a> Tally<'a> {
    /// Counts for a trace of `ios` I/Os, in windows of `width` nanoseconds.
    pub(crate) fn new(
        ios: u64,
        speed: f64,
        width: u64,
        observer: &'a mut dyn Observer,
    ) -> Tally<'a> {
        Tally {
            observer,
            start: None,
            speed,
            per_part: ios.div_ceil(PERCENTILE_PARTS as u64).max(1),
            classes: (0..Class::COUNT).map(|_| None).collect(),
            lateness: Histogram::new(),
            issued: 0,
            full: 0,
            blocked: 0,
            lone_recorded: Histogram::new(),
            lone_replayed: Histogram::new(),
            curve: Curve::new(),
            flows: [None, None, None, None],
            width,
            open: empty_window(0, width),
            windows: Vec::new(),
            busy_before: busy(),
            last: 0,
        }
    }

    /// Sets the start of the replay, unless it has begun.
    pub(crate) fn begin(&mut self, start: u64) {
        if self.start.is_none() {
            self.start = Some(start);
            self.busy_before = busy();
            self.observer.begin();
        }
    }

    fn since(&self, time: u64) -> u64 {
        time.saturating_sub(self.start.unwrap_or(0))
    }

    /// Records that an I/O is issued.
    pub(crate) fn issued(&mut self, item: &Item, due: u64, now: u64, delay: Option<Delay>) {
        self.issued += 1;
        let late = now.saturating_sub(due);
        if late > LATE_NANOS {
            self.full += u64::from(delay == Some(Delay::Full));
            self.blocked += u64::from(delay == Some(Delay::Blocked));
        }
        self.lateness.record(late);
        let at = self.since(due);
        self.curve.at(at).due += 1;
        if let Some(latency) = item.latency {
            let scale = |time: u64| (time as f64 / self.speed) as u64;
            let (from, to) = (scale(item.at), scale(item.at + latency));
            self.curve
                .span(from, to, |sums, time| sums.recorded_time += time);
            let sums = self.curve.at(to);
            sums.recorded_ios += 1;
            sums.recorded_bytes += u64::from(item.len);
            if item.was_alone && is_small_read(item.class) {
                self.lone_recorded.record(latency);
            }
        }
    }

    /// Records that an I/O completed.
    pub(crate) fn done(&mut self, item: &Item, due: u64, is_alone: bool, done: &CompletedRequest) {
        let at = (done.began + done.latency).0;
        self.last = self.last.max(at);
        // Counted from the due time, so that delays of this program are included.
        let latency = at.saturating_sub(due);
        let bytes = done.moved().0;
        let part = ((item.number / self.per_part) as usize).min(PERCENTILE_PARTS - 1);
        let place = &mut self.classes[item.class.place()];
        let (_, class) = place.get_or_insert_with(|| (item.class, ByClass::new()));
        class.ios += 1;
        class.failed += u64::from(done.result.is_err());
        class.failed_recorded += u64::from(item.had_failed);
        if let Some(recorded) = item.latency {
            class.recorded[part].record(recorded);
        }
        if done.result.is_ok() {
            class.bytes += bytes;
            class.replayed[part].record(latency);
            class.service.record(done.latency.0);
            if is_alone && is_small_read(item.class) {
                self.lone_replayed.record(done.latency.0);
            }
            self.flow(direction(item.class), at, bytes, latency, done.latency.0);
            if item.class.is_durable() {
                self.flow(Direction::Commit, at, bytes, latency, done.latency.0);
            }
        }
        let (from, to) = (self.since(due), self.since(at));
        self.curve
            .span(from, to, |sums, time| sums.replayed_time += time);
        self.curve.at(to).replayed_ios += 1;
    }

    fn flow(&mut self, direction: Direction, at: u64, bytes: u64, latency: u64, service: u64) {
        let since = self.since(at);
        let from = self.windows.len() as u64 * self.width;
        let slice = since.saturating_sub(from) * SLICES as u64 / self.width;
        let window = window_flow(&mut self.open, direction);
        let slice = &mut window.slices[(slice as usize).min(SLICES - 1)];
        slice.ops += 1;
        slice.bytes += bytes;
        window.latency.record(latency);
        let flow = self.flows[direction as usize].get_or_insert_with(|| Flow {
            ops: 0,
            bytes: 0,
            latency: Histogram::new(),
            service: Some(Histogram::new()),
        });
        flow.ops += 1;
        flow.bytes += bytes;
        flow.latency.record(latency);
        if let Some(times) = &mut flow.service {
            times.record(service);
        }
    }

    /// Closes the windows that have ended by `now`.
    #[inline]
    pub(crate) fn close_windows(&mut self, now: u64, in_flight: usize) {
        while self
            .start
            .is_some_and(|start| now >= start + (self.windows.len() as u64 + 1) * self.width)
        {
            self.close(self.width, in_flight);
        }
    }

    fn close(&mut self, length: u64, in_flight: usize) {
        let next = (self.windows.len() as u64 + 1) * self.width;
        let mut window = std::mem::replace(&mut self.open, empty_window(next, self.width));
        window.seconds = length as f64 / 1e9;
        window.in_flight = in_flight as u64;
        let now = busy();
        let share = (now - self.busy_before) as f64 / length.max(1) as f64;
        window.idle_fraction = (1.0 - share).clamp(0.0, 1.0);
        self.busy_before = now;
        self.observer.window(&mut window);
        self.windows.push(window);
        if self.windows.len() >= MAX_WINDOWS {
            self.join_windows();
        }
    }

    /// Joins windows in pairs, so that memory is bounded if a replay takes many times as long as its trace.
    fn join_windows(&mut self) {
        let pairs = std::mem::take(&mut self.windows);
        let mut pairs = pairs.into_iter();
        while let (Some(mut first), Some(second)) = (pairs.next(), pairs.next()) {
            first.join(&second);
            self.windows.push(first);
        }
        self.width *= 2;
        self.open = empty_window(self.windows.len() as u64 * self.width, self.width);
    }

    /// Ends the replay, and returns its duration in seconds.
    pub(crate) fn finish(&mut self) -> f64 {
        let took = self.since(self.last);
        let rest = took.saturating_sub(self.windows.len() as u64 * self.width);
        if rest > 0 {
            self.close(rest, 0);
        }
        took as f64 / 1e9
    }

    /// Totals of a direction.
    pub(crate) fn total(&self, direction: Direction) -> Option<Flow> {
        self.flows[direction as usize].clone()
    }

    /// The classes with I/Os, in the order in which they are shown.
    pub(crate) fn classes(&mut self) -> Vec<ReplayClass> {
        let taken = self.classes.iter_mut().filter_map(Option::take);
        taken
            .map(|(class, counts)| ReplayClass {
                name: class.name(),
                direction: direction(class),
                ios: counts.ios,
                bytes: counts.bytes,
                failed: counts.failed,
                failed_recorded: counts.failed_recorded,
                recorded: Histogram::merged(&counts.recorded),
                recorded_parts: counts.recorded,
                replayed: counts.replayed,
                service: counts.service,
            })
            .collect()
    }

    /// Mean bytes of reads and writes.
    pub(crate) fn mean_size(&self) -> Bytes {
        let moved = [Direction::Read, Direction::Write].map(|direction| {
            self.flows[direction as usize]
                .as_ref()
                .map_or((0, 0), |flow| (flow.ops, flow.bytes))
        });
        let (ops, bytes) = (moved[0].0 + moved[1].0, moved[0].1 + moved[1].1);
        Bytes(bytes.checked_div(ops).unwrap_or(4096).max(512))
    }
}

impl ByClass {
    fn new() -> Box<ByClass> {
        Box::new(ByClass {
            ios: 0,
            bytes: 0,
            failed: 0,
            failed_recorded: 0,
            recorded: vec![Histogram::new(); PERCENTILE_PARTS],
            replayed: vec![Histogram::new(); PERCENTILE_PARTS],
            service: Histogram::new(),
        })
    }
}

fn empty_window(from: u64, width: u64) -> Window {
    Window {
        t_s: from as f64 / 1e9,
        slice_seconds: width as f64 / 1e9 / SLICES as f64,
        ..Window::default()
    }
}

fn window_flow(window: &mut Window, direction: Direction) -> &mut WindowFlow {
    window
        .flow_mut(direction)
        .get_or_insert_with(|| WindowFlow {
            slices: vec![Slice::default(); SLICES],
            latency: Histogram::new(),
        })
}

/// Processor time of the calling thread, in nanoseconds.
fn busy() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
