//! The loop that keeps requests in flight and times them.
//!
//! It is generic over the way to the kernel, so that tests run it in simulated time against a
//! simulated disk. One clock reading serves a whole batch: all answers found by one look have come
//! back by then, and the requests that replace them leave together a moment later.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use record::{Direction, Workload};

use crate::arrivals::Arrivals;
use crate::job::EngineError;
use crate::places::Places;
use crate::random::Random;
use crate::tally::{Flows, Tally, Timetable, WindowTally};

/// The way to the kernel, for one worker.
pub(crate) trait Backend {
    /// The clock, in ticks.
    fn now(&self) -> u64;
    /// Processor time that this thread has used, in nanoseconds.
    fn cpu_nanos(&self) -> u64;
    /// Queues a request. There is room for one in each slot.
    fn push(&mut self, slot: u32, direction: Direction, offset: u64);
    /// Submits what was queued, and waits until an answer is there or the clock shows `wake_at`.
    fn submit_and_wait(&mut self, wake_at: u64) -> io::Result<()>;
    /// Takes the answers that are there.
    fn reap(&mut self, into: &mut Vec<Completion>);
}

/// An answer: bytes moved, or a negative error number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub slot: u32,
    pub result: i32,
}

/// What all workers of a phase share.
pub(crate) struct Plan<'a> {
    pub workload: &'a Workload,
    pub timetable: Timetable,
    pub seed: u64,
    /// Requests that may still be issued, where their number is limited.
    pub budget: Option<&'a AtomicU64>,
    /// Set by the signal handler.
    pub interrupt: &'a AtomicBool,
    /// Set when the phase is precise enough, or another worker failed.
    pub enough: &'a AtomicBool,
}

/// What the workers that stand for one thread of the workload share: a ring is one worker with many
/// slots; blocking calls take a worker for each request in flight.
#[derive(Clone)]
pub(crate) struct Share {
    pub places: Places,
    /// Open loop: whoever is free takes the next arrival.
    pub arrivals: Option<Arc<Mutex<Arrivals>>>,
    /// Whether this worker is the one that counts what waits in the shared schedule.
    pub leads: bool,
    /// Requests that this worker keeps in flight.
    pub slots: u32,
}

/// What a worker has when its loop is over.
#[derive(Debug)]
pub(crate) struct WorkerEnd {
    /// The window that was under way.
    pub cut: WindowTally,
    /// What came back after that.
    pub drained: Flows,
    /// How long that took, in ticks.
    pub drain_ticks: u64,
}

/// What a worker tells the gatherer.
pub(crate) enum Message {
    /// A window is complete.
    Window {
        worker: usize,
        tally: Box<WindowTally>,
    },
    /// The worker's loop is over.
    End {
        worker: usize,
        end: Result<Box<WorkerEnd>, EngineError>,
    },
}

/// A request in flight.
#[derive(Clone, Copy)]
struct Slot {
    direction: Direction,
    offset: u64,
    /// When it was submitted.
    started: u64,
    /// When it was due: in a closed loop the same.
    scheduled: u64,
    /// For a sync: when the first write of its group was due.
    group: u64,
}

pub(crate) struct Worker<'a, B> {
    id: usize,
    plan: &'a Plan<'a>,
    backend: B,
    windows: Sender<Message>,
    random: Random,
    share: Share,
    /// Open loop: when the next request that this worker took from the schedule is due.
    due: Option<u64>,
    tally: Tally,
    slots: Vec<Slot>,
    idle: Vec<u32>,
    block: u64,
    /// A random number below this is a read; `None` where all requests are alike.
    read_below: Option<u64>,
    unsynced: u32,
    group: Option<u64>,
    budget_spent: bool,
    cpu_nanos: u64,
}

impl<'a, B: Backend> Worker<'a, B> {
    pub(crate) fn new(
        id: usize,
        plan: &'a Plan<'a>,
        share: Share,
        backend: B,
        windows: Sender<Message>,
    ) -> Worker<'a, B> {
        let workload = plan.workload;
        let free = Slot {
            direction: Direction::Read,
            offset: 0,
            started: 0,
            scheduled: 0,
            group: 0,
        };
        let mixed = workload.reads() && workload.writes();
        Worker {
            id,
            plan,
            random: Random::new(plan.seed.wrapping_add(id as u64)),
            due: None,
            tally: Tally::new(workload, plan.timetable),
            slots: vec![free; share.slots as usize],
            idle: (0..share.slots).rev().collect(),
            share,
            block: workload.block.0,
            read_below: mixed.then_some((workload.read_fraction * u64::MAX as f64) as u64),
            unsynced: 0,
            group: None,
            budget_spent: false,
            cpu_nanos: backend.cpu_nanos(),
            backend,
            windows,
        }
    }

    /// Runs until the phase ends, and then until everything in flight has come back.
    pub(crate) fn run(mut self) -> Result<WorkerEnd, EngineError> {
        let mut now = self.backend.now();
        let mut answers = Vec::with_capacity(self.slots.len());
        while !self.is_over(now) {
            self.issue_to_idle(now);
            self.backend
                .submit_and_wait(self.wake_at())
                .map_err(EngineError::Ring)?;
            now = self.backend.now();
            if now >= self.tally.slice_end() {
                self.advance(now);
            }
            self.backend.reap(&mut answers);
            for index in 0..answers.len() {
                if let Err(error) = self.complete(answers[index], now) {
                    self.settle(&answers[index..]);
                    return Err(error);
                }
            }
            answers.clear();
        }
        self.finish(now)
    }

    /// After a failure: waits for what is in flight, whatever becomes of it. Until then the kernel
    /// has our file open, and its file system would be busy after we have ended.
    fn settle(&mut self, answers: &[Completion]) {
        self.idle.extend(answers.iter().map(|answer| answer.slot));
        let mut late = Vec::new();
        while self.in_flight() > 0 && self.backend.submit_and_wait(self.never()).is_ok() {
            self.backend.reap(&mut late);
            self.idle.extend(late.drain(..).map(|answer| answer.slot));
        }
    }

    /// A time so far off that only an answer wakes us.
    fn never(&self) -> u64 {
        self.backend.now().saturating_add(1 << 60)
    }

    fn is_over(&self, now: u64) -> bool {
        now >= self.plan.timetable.end()
            || self.plan.enough.load(Relaxed)
            || self.plan.interrupt.load(Relaxed)
            || (self.budget_spent && self.in_flight() == 0)
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.idle.len()
    }

    /// When to look up even though nothing came back.
    fn wake_at(&self) -> u64 {
        let slice_end = self.tally.slice_end();
        match self.due {
            Some(due) if !self.idle.is_empty() => due.min(slice_end),
            _ => slice_end,
        }
    }

    /// Gives idle slots their requests: in a closed loop all of them, in an open one those due.
    fn issue_to_idle(&mut self, now: u64) {
        while let Some(&slot) = self.idle.last() {
            let scheduled = match self.next_due() {
                None => now,
                Some(due) if due <= now => due,
                Some(_) => return,
            };
            if !self.take_budget() {
                return;
            }
            self.due = None;
            self.idle.pop();
            self.issue(slot, scheduled, now);
        }
    }

    /// Open loop: when the next request is due, taken from the schedule if none was taken yet.
    fn next_due(&mut self) -> Option<u64> {
        if self.due.is_none() {
            self.due = self.share.arrivals.as_ref().map(|arrivals| {
                let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
                let due = arrivals.due();
                arrivals.advance();
                due
            });
        }
        self.due
    }

    /// Open loop: how many requests are due at `now` and not issued.
    fn backlog(&self, now: u64) -> u64 {
        let taken = u64::from(self.due.is_some_and(|due| due <= now));
        let waiting = match &self.share.arrivals {
            Some(arrivals) if self.share.leads => arrivals
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .backlog(now),
            _ => 0,
        };
        taken + waiting
    }

    #[inline(always)]
    fn take_budget(&mut self) -> bool {
        let Some(budget) = self.plan.budget else {
            return true;
        };
        let took = budget
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1))
            .is_ok();
        self.budget_spent = !took;
        took
    }

    #[inline(always)]
    fn draw_direction(&mut self) -> Direction {
        let reads = match self.read_below {
            None => self.plan.workload.read_fraction >= 1.0,
            Some(bound) => self.random.next() < bound,
        };
        if reads {
            Direction::Read
        } else {
            Direction::Write
        }
    }

    #[inline(always)]
    fn issue(&mut self, slot: u32, scheduled: u64, now: u64) {
        let direction = self.draw_direction();
        let offset = self.share.places.next(&mut self.random);
        if direction == Direction::Write && self.group.is_none() {
            self.group = Some(scheduled);
        }
        self.slots[slot as usize] = Slot {
            direction,
            offset,
            started: now,
            scheduled,
            group: 0,
        };
        self.backend.push(slot, direction, offset);
    }

    fn issue_sync(&mut self, slot: u32, now: u64) {
        self.unsynced = 0;
        self.slots[slot as usize] = Slot {
            direction: Direction::Sync,
            offset: 0,
            started: now,
            scheduled: now,
            group: self.group.take().unwrap_or(now),
        };
        self.backend.push(slot, Direction::Sync, 0);
    }

    #[inline(always)]
    fn complete(&mut self, answer: Completion, now: u64) -> Result<(), EngineError> {
        let slot = self.slots[answer.slot as usize];
        self.check(&slot, answer.result)?;
        self.count(&slot, now);
        if self.wants_sync(&slot) {
            self.issue_sync(answer.slot, now);
        } else if self.share.arrivals.is_none() && self.take_budget() {
            self.issue(answer.slot, now, now);
        } else {
            self.idle.push(answer.slot);
        }
        Ok(())
    }

    #[inline(always)]
    fn check(&self, slot: &Slot, result: i32) -> Result<(), EngineError> {
        let asked = if slot.direction == Direction::Sync {
            0
        } else {
            self.block
        };
        if result as i64 == asked as i64 {
            return Ok(());
        }
        Err(failure(slot.direction, slot.offset, result, asked))
    }

    #[inline(always)]
    fn count(&mut self, slot: &Slot, now: u64) {
        // Saturating: readings of the counter on two processors may be a few ticks apart.
        let latency = now.saturating_sub(slot.scheduled);
        if slot.direction == Direction::Sync {
            self.tally.record(Direction::Sync, 0, latency);
            let commit = now.saturating_sub(slot.group);
            self.tally.record(Direction::Commit, 0, commit);
            return;
        }
        self.tally.record(slot.direction, self.block, latency);
        if self.share.arrivals.is_some() {
            let service = now.saturating_sub(slot.started);
            self.tally.record_service(slot.direction, service);
        }
    }

    #[inline(always)]
    fn wants_sync(&mut self, slot: &Slot) -> bool {
        if slot.direction != Direction::Write || self.plan.workload.sync_every == 0 {
            return false;
        }
        self.unsynced += 1;
        self.unsynced >= self.plan.workload.sync_every
    }

    /// Hands on the windows that are complete.
    fn advance(&mut self, now: u64) {
        let in_flight = self.in_flight() as u64 + self.backlog(now);
        let (id, windows) = (self.id, &self.windows);
        let (backend, cpu_before) = (&self.backend, &mut self.cpu_nanos);
        self.tally.advance(now, |index, ticks, flows| {
            let cpu_now = backend.cpu_nanos();
            let tally = WindowTally {
                index,
                ticks,
                flows,
                in_flight,
                cpu_nanos: cpu_now - std::mem::replace(cpu_before, cpu_now),
            };
            // The gatherer outlives the workers; if it is gone, so is whoever wanted the figures.
            let _ = windows.send(Message::Window {
                worker: id,
                tally: Box::new(tally),
            });
        });
    }

    /// Waits for what is in flight, syncs where that belongs to the phase, and counts what was due
    /// and never issued.
    fn finish(mut self, now: u64) -> Result<WorkerEnd, EngineError> {
        let cut = self.cut(now);
        let last_due = now;
        let mut answers = Vec::with_capacity(self.slots.len());
        let mut now = now;
        while self.in_flight() > 0 {
            now = self.drain_once(&mut answers)?;
        }
        if self.plan.workload.sync_at_end {
            self.idle.pop();
            let submitted = self.backend.now();
            self.issue_sync(0, submitted);
            while self.in_flight() > 0 {
                now = self.drain_once(&mut answers)?;
            }
        }
        self.count_overdue(last_due, now);
        let (_, _, drained) = self.tally.cut(now);
        Ok(WorkerEnd {
            cut,
            drained,
            drain_ticks: now.saturating_sub(last_due),
        })
    }

    /// Takes the window that is under way out of the tally, which goes on with an empty one.
    fn cut(&mut self, now: u64) -> WindowTally {
        let in_flight = self.in_flight() as u64 + self.backlog(now);
        let fresh = Tally::new(self.plan.workload, self.plan.timetable);
        let (index, ticks, flows) = std::mem::replace(&mut self.tally, fresh).cut(now);
        WindowTally {
            index,
            ticks,
            flows,
            in_flight,
            cpu_nanos: self.backend.cpu_nanos() - self.cpu_nanos,
        }
    }

    fn drain_once(&mut self, answers: &mut Vec<Completion>) -> Result<u64, EngineError> {
        self.backend
            .submit_and_wait(self.never())
            .map_err(EngineError::Ring)?;
        let now = self.backend.now();
        self.backend.reap(answers);
        for index in 0..answers.len() {
            let answer = answers[index];
            let slot = self.slots[answer.slot as usize];
            if let Err(error) = self.check(&slot, answer.result) {
                self.settle(&answers[index..]);
                return Err(error);
            }
            self.count(&slot, now);
            self.idle.push(answer.slot);
        }
        answers.clear();
        Ok(now)
    }

    /// Requests that were due before the end and found no free slot waited at least until now. To
    /// leave them out would be coordinated omission at the phase's end.
    fn count_overdue(&mut self, last_due: u64, now: u64) {
        while let Some(due) = self.next_due() {
            if due >= last_due || !self.take_budget() {
                return;
            }
            self.due = None;
            let direction = self.draw_direction();
            self.tally
                .record(direction, self.block, now.saturating_sub(due));
        }
    }
}

/// The error for an answer that is not what was asked for.
pub(crate) fn failure(direction: Direction, offset: u64, result: i32, asked: u64) -> EngineError {
    if result < 0 {
        EngineError::Io {
            direction,
            offset,
            source: io::Error::from_raw_os_error(-result),
        }
    } else {
        EngineError::Short {
            direction,
            offset,
            moved: result as u64,
            asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::simulated::SimulatedDisk;
    use crate::tally::{merge_flows, ops_of, tests::workload};
    use record::{Bytes, Pattern};

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;

    /// Runs one worker over `disk` for `seconds`, and gives its windows' flows and its end.
    fn run(
        workload: &Workload,
        disk: SimulatedDisk,
        seconds: u64,
        budget: Option<u64>,
    ) -> Result<(Vec<WindowTally>, WorkerEnd), EngineError> {
        let budget = budget.map(AtomicU64::new);
        let (interrupt, enough) = (AtomicBool::new(false), AtomicBool::new(false));
        let plan = Plan {
            workload,
            timetable: Timetable {
                start: 0,
                slice: 100 * MS,
                slices: seconds * 10,
            },
            seed: 1,
            budget: budget.as_ref(),
            interrupt: &interrupt,
            enough: &enough,
        };
        let share = Share {
            places: Places::new(workload.pattern, 1 << 30, workload.block.0, 0, 1),
            arrivals: workload
                .rate_per_s
                .map(|rate| Arc::new(Mutex::new(Arrivals::new(1e9 / rate, 0, 2)))),
            leads: true,
            slots: workload.depth,
        };
        let (sender, receiver) = channel();
        let end = Worker::new(0, &plan, share, disk, sender).run()?;
        Ok((windows(&receiver), end))
    }

    fn windows(receiver: &Receiver<Message>) -> Vec<WindowTally> {
        receiver
            .try_iter()
            .filter_map(|message| match message {
                Message::Window { tally, .. } => Some(*tally),
                Message::End { .. } => None,
            })
            .collect()
    }

    fn total(windows: &[WindowTally], end: &WorkerEnd, workload: &Workload) -> Flows {
        let mut total = crate::tally::flows_for(workload);
        windows
            .iter()
            .map(|window| &window.flows)
            .chain([&end.cut.flows, &end.drained])
            .for_each(|flows| merge_flows(&mut total, flows));
        total
    }

    #[test]
    fn a_closed_loop_does_depth_over_latency() {
        let mut workload = workload();
        workload.depth = 4;
        let (windows, end) = run(&workload, SimulatedDisk::new(MS), 3, None).unwrap();
        assert_eq!(windows.len(), 3);
        for window in &windows {
            assert!(
                ops_of(&window.flows).abs_diff(4000) <= 4,
                "{}",
                ops_of(&window.flows)
            );
            assert_eq!(window.flows[0].as_ref().unwrap().slices.len(), 10);
            assert_eq!(window.in_flight, 4);
        }
        let reads = total(&windows, &end, &workload)[0].clone().unwrap();
        assert_eq!((reads.latency.min(), reads.latency.max()), (MS, MS));
        assert_eq!(
            reads.latency.count() % 4,
            0,
            "what was in flight at the end came back"
        );
    }

    /// Two seconds without answers, at 1,000 requests a second due: some 2,000 of them are late,
    /// by 1 s on average. A closed loop would have seen one late request for each slot.
    #[test]
    fn an_open_loop_shows_a_stall_as_two_thousand_late_requests() {
        for depth in [4096, 8] {
            let mut workload = workload();
            workload.rate_per_s = Some(1000.0);
            workload.depth = depth;
            let mut disk = SimulatedDisk::new(MS);
            disk.stall = Some((2 * SECOND, 4 * SECOND));
            let (windows, end) = run(&workload, disk, 8, None).unwrap();
            let reads = total(&windows, &end, &workload)[0].clone().unwrap();
            let late = reads.latency.count() - reads.latency.count_at_most(10 * MS);
            assert!(late.abs_diff(2000) < 250, "{late} late at depth {depth}");
            assert!(reads.latency.max().abs_diff(2 * SECOND) < SECOND / 50);
            assert!(reads.latency.count().abs_diff(8000) < 400);
            assert_eq!(
                ops_of(&windows[3].flows),
                0,
                "nothing came back in the stall"
            );
            assert!(windows[3].in_flight > 1500, "{}", windows[3].in_flight);
            let service = reads.service.unwrap();
            let slow = service.count() - service.count_at_most(10 * MS);
            assert!(slow <= u64::from(depth), "{slow} slow from submission");
        }
    }

    #[test]
    fn a_stall_at_the_end_of_an_open_loop_is_not_left_out() {
        let mut workload = workload();
        workload.rate_per_s = Some(1000.0);
        workload.depth = 8;
        let mut disk = SimulatedDisk::new(MS);
        disk.stall = Some((2 * SECOND, 6 * SECOND));
        let (windows, end) = run(&workload, disk, 4, None).unwrap();
        let reads = total(&windows, &end, &workload)[0].clone().unwrap();
        let late = reads.latency.count() - reads.latency.count_at_most(SECOND);
        assert!(late.abs_diff(2000) < 200, "{late}");
        assert_eq!(end.drain_ticks, 2 * SECOND);
    }

    #[test]
    fn the_number_of_requests_is_kept_exactly() {
        let mut workload = workload();
        workload.depth = 7;
        let (windows, end) = run(&workload, SimulatedDisk::new(MS), 3, Some(100)).unwrap();
        assert!(windows.is_empty());
        assert_eq!(ops_of(&end.cut.flows), 100);
        // 100 requests, 7 at a time, of 1 ms each.
        assert_eq!(end.cut.ticks, 15 * MS);
    }

    #[test]
    fn a_commit_is_its_writes_and_the_sync_that_ends_them() {
        let mut workload = workload();
        workload.pattern = Pattern::Sequential;
        workload.read_fraction = 0.0;
        workload.sync_every = 3;
        let (windows, end) = run(&workload, SimulatedDisk::new(MS), 2, None).unwrap();
        let flows = total(&windows, &end, &workload);
        let [None, Some(write), Some(sync), Some(commit)] = flows else {
            panic!("{flows:?}");
        };
        assert_eq!(sync.latency.max(), MS);
        assert_eq!(commit.latency.min(), 4 * MS);
        assert_eq!(commit.latency.max(), 4 * MS);
        assert_eq!(sync.latency.count(), commit.latency.count());
        assert!(write.latency.count().abs_diff(3 * sync.latency.count()) <= 3);
    }

    #[test]
    fn the_last_sync_is_made_when_the_writes_are_back() {
        let mut workload = workload();
        workload.read_fraction = 0.0;
        workload.sync_at_end = true;
        workload.depth = 4;
        let (_, end) = run(&workload, SimulatedDisk::new(MS), 1, None).unwrap();
        assert_eq!(end.drained[2].as_ref().unwrap().latency.count(), 1);
    }

    #[test]
    fn a_mix_keeps_its_share() {
        let mut workload = workload();
        workload.read_fraction = 0.7;
        workload.depth = 16;
        let (windows, end) = run(&workload, SimulatedDisk::new(MS), 3, None).unwrap();
        let flows = total(&windows, &end, &workload);
        let reads = flows[0].as_ref().unwrap().latency.count() as f64;
        let writes = flows[1].as_ref().unwrap().latency.count() as f64;
        assert!((reads / (reads + writes) - 0.7).abs() < 0.01);
    }

    #[test]
    fn an_error_names_what_failed_and_where() {
        let mut workload = workload();
        workload.pattern = Pattern::Sequential;
        let mut disk = SimulatedDisk::new(MS);
        disk.fails_at = Some((40_960, -libc::EIO));
        let error = run(&workload, disk, 3, None).unwrap_err().to_string();
        assert!(error.contains("a read at byte 40960 failed"), "{error}");

        let mut disk = SimulatedDisk::new(MS);
        disk.fails_at = Some((8192, 512));
        let error = run(&workload, disk, 3, None).unwrap_err().to_string();
        assert!(error.contains("moved 512 of 4096 bytes"), "{error}");
    }

    #[test]
    fn requests_of_another_size_are_counted_in_bytes() {
        let mut workload = workload();
        workload.block = Bytes::kib(16);
        let mut disk = SimulatedDisk::new(MS);
        disk.block = 16 << 10;
        let (windows, _) = run(&workload, disk, 1, None).unwrap();
        let slice = windows[0].flows[0].as_ref().unwrap().slices[5];
        assert_eq!(slice.bytes, slice.ops * (16 << 10));
    }
}
