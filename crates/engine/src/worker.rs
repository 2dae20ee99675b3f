//! The loop that keeps requests in flight and times them.
//!
//! It is generic over the interface to the kernel, so that tests run it in simulated time against a simulated disk.
//! The clock is read once for a whole batch: all completions of a batch have arrived by then, and the requests that
//! replace them are submitted together immediately after.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use record::{CpuTime, Direction};

use crate::arrivals::Arrivals;
use crate::backend::{Backend, Completion};
use crate::clock::{cpu_since, thread_cpu_time};
use crate::contents::DataGenerator;
use crate::failures::Failures;
use crate::job::EngineError;
use crate::plan::{Message, Plan, ThreadShare, WorkerEnd};
use crate::positions::{in_file, position_in};
use crate::random::{Random, derive_seed};
use crate::sizes::Sizes;
use crate::tally::{Tally, WindowTally};
use crate::throttle::Kind;

/// A request in flight.
#[derive(Clone, Copy)]
struct Slot {
    direction: Direction,
    position: u64,
    bytes: u64,
    /// Time of submission.
    started: u64,
    /// Due time; in a closed loop the time of submission.
    scheduled: u64,
    /// Due time of the first write of its group, for a sync.
    group: u64,
}

pub(crate) struct Worker<'a, B> {
    id: usize,
    plan: &'a Plan<'a>,
    backend: B,
    windows: Sender<Message>,
    random: Random,
    share: ThreadShare,
    /// Due time of the next request that this worker took from the schedule of an open loop.
    due: Option<u64>,
    tally: Tally,
    slots: Vec<Slot>,
    idle: Vec<u32>,
    sizes: Sizes,
    /// Generator of the data of writes, if it is not random.
    filler: Option<DataGenerator>,
    /// True if the worker fills or checks the data of requests.
    uses_data: bool,
    /// Threshold of random numbers for reads; `None` if all requests have the same direction.
    read_below: Option<u64>,
    unsynced: u32,
    /// Due time of the first completed write that is not yet synced.
    group: Option<u64>,
    budget_spent: bool,
    /// True if each write follows a discard of its blocks.
    trims_first: bool,
    /// Non-fatal failures.
    failures: Failures,
    /// Processor time of this thread at the start of the present window.
    cpu: CpuTime,
}

impl<'a, B: Backend> Worker<'a, B> {
    pub(crate) fn new(
        id: usize,
        plan: &'a Plan<'a>,
        share: ThreadShare,
        backend: B,
        windows: Sender<Message>,
    ) -> Worker<'a, B> {
        let workload = plan.workload;
        let free = Slot {
            direction: Direction::Read,
            position: 0,
            bytes: 0,
            started: 0,
            scheduled: 0,
            group: 0,
        };
        let mixed = workload.reads() && workload.writes();
        let details = workload.details.as_ref();
        let filler = details
            .and_then(|details| details.contents.as_ref())
            .map(|contents| {
                DataGenerator::new(contents, derive_seed(plan.seed, id as u64), plan.seed)
            });
        Worker {
            id,
            plan,
            random: Random::new(derive_seed(plan.seed, id as u64)),
            due: None,
            tally: Tally::new(workload, plan.timetable),
            slots: vec![free; share.slots as usize],
            idle: (0..share.slots).rev().collect(),
            share,
            sizes: Sizes::of(workload),
            uses_data: plan.verifier.is_some() || filler.is_some(),
            filler,
            read_below: mixed.then_some((workload.read_fraction * u64::MAX as f64) as u64),
            unsynced: 0,
            group: None,
            budget_spent: false,
            trims_first: workload.trims_first(),
            failures: Failures::default(),
            cpu: thread_cpu_time(),
            backend,
            windows,
        }
    }

    /// Runs until the phase ends and all requests in flight have completed.
    pub(crate) fn run(mut self) -> Result<WorkerEnd, EngineError> {
        let mut now = self.backend.now();
        let mut completions = Vec::with_capacity(self.slots.len());
        while !self.is_over(now) {
            self.issue_to_idle(now);
            self.backend
                .submit_and_wait(self.wake_at())
                .map_err(EngineError::Ring)?;
            now = self.backend.now();
            if now >= self.tally.slice_end() {
                self.advance(now);
            }
            self.backend.reap(&mut completions);
            for index in 0..completions.len() {
                if let Err(error) = self.complete(completions[index], now) {
                    self.drain_after_failure(&completions[index..]);
                    return Err(error);
                }
            }
            completions.clear();
        }
        self.finish(now)
    }

    /// Waits for all requests in flight after a failure, whatever their results. Until then the kernel keeps the file
    /// open, and its file system could not be unmounted.
    fn drain_after_failure(&mut self, completions: &[Completion]) {
        self.idle
            .extend(completions.iter().map(|completion| completion.slot));
        let mut late = Vec::new();
        while self.in_flight() > 0 && self.backend.submit_and_wait(self.far_future()).is_ok() {
            self.backend.reap(&mut late);
            self.idle
                .extend(late.drain(..).map(|completion| completion.slot));
        }
    }

    /// A time so late that only a completion ends the wait.
    fn far_future(&self) -> u64 {
        self.backend.now().saturating_add(1 << 60)
    }

    fn is_over(&self, now: u64) -> bool {
        now >= self.plan.timetable.end()
            || self.plan.enough.load(Relaxed)
            || self.plan.interrupt.load(Relaxed)
            || self.plan.finished.load(Relaxed)
            || (self.budget_spent && self.in_flight() == 0)
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.idle.len()
    }

    /// Time at which the wait ends even if nothing completes.
    fn wake_at(&self) -> u64 {
        let slice_end = self.tally.slice_end();
        let pause = self.share.throttle.as_ref().and_then(|it| it.resumes_at());
        match self.due.max(pause) {
            Some(due) if !self.idle.is_empty() => due.min(slice_end),
            _ => slice_end,
        }
    }

    /// Issues requests from idle slots: in a closed loop from all of them, in an open loop for the due requests.
    fn issue_to_idle(&mut self, mut now: u64) {
        while let Some(&slot) = self.idle.last() {
            if self.is_blocked(&mut now) {
                return;
            }
            let scheduled = match self.next_due() {
                None => now,
                Some(due) if due <= now => self.counts_from(due),
                Some(_) => return,
            };
            let Some(request) = self.next_request(now) else {
                return;
            };
            self.due = None;
            self.idle.pop();
            self.issue(slot, request, scheduled, now);
        }
    }

    /// True if the throttle blocks all requests. If writes were read back for it, `now` is advanced.
    #[inline(always)]
    fn is_blocked(&mut self, now: &mut u64) -> bool {
        self.share.throttle.is_some() && self.is_throttled(now)
    }

    #[cold]
    fn is_throttled(&mut self, now: &mut u64) -> bool {
        let in_flight = self.in_flight();
        let Some(throttle) = &mut self.share.throttle else {
            return false;
        };
        if in_flight == 0
            && throttle.reads_back_next()
            && let Some(verifier) = self.plan.verifier
        {
            verifier.read_pending(self.plan.interrupt);
            throttle.was_read_back();
            *now = self.backend.now();
            if verifier.is_fatal() {
                self.plan.finished.store(true, Relaxed);
            }
        }
        throttle.is_blocked(*now, in_flight)
    }

    /// Due time of the next request of an open loop, taken from the schedule if none was taken yet.
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

    /// Time from which the latency of a request that was due at `due` counts.
    fn counts_from(&self, due: u64) -> u64 {
        let throttle = self.share.throttle.as_ref();
        throttle.map_or(due, |throttle| throttle.counts_from(due))
    }

    /// Number of requests of an open loop that are due at `now` and not yet issued.
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

    /// The next request's direction and size, unless the budget is spent.
    #[inline(always)]
    fn next_request(&mut self, now: u64) -> Option<(Direction, u64)> {
        let direction = self.draw_direction(now);
        let bytes = self.sizes.draw(direction, &mut self.random);
        if let Some(budget) = self.plan.budget
            && now >= self.plan.free_until
        {
            self.budget_spent = !budget.take(bytes);
        }
        (!self.budget_spent).then_some((direction, bytes))
    }

    #[inline(always)]
    fn draw_direction(&mut self, now: u64) -> Direction {
        let reads = match self.read_below {
            None => self.plan.workload.read_fraction >= 1.0,
            Some(bound) => self.random.next() < bound,
        };
        let direction = if reads {
            Direction::Read
        } else {
            Direction::Write
        };
        match &self.share.one_sided {
            Some((limited, arrivals)) if *limited == direction => {
                direction_by_rate(arrivals, direction, now)
            }
            _ => direction,
        }
    }

    #[inline(always)]
    fn issue(&mut self, slot: u32, request: (Direction, u64), scheduled: u64, now: u64) {
        let (direction, bytes) = request;
        let position = self
            .share
            .positions
            .next(direction, bytes, &mut self.random);
        let request = Slot {
            direction: self.first_step(direction),
            position,
            bytes,
            started: now,
            scheduled,
            group: 0,
        };
        self.send(slot, request);
        if let Some(throttle) = &mut self.share.throttle {
            throttle.issued(now, self.idle.is_empty());
        }
    }

    /// Direction of the first step of a request: a write may follow a discard.
    #[inline(always)]
    fn first_step(&self, direction: Direction) -> Direction {
        match direction {
            Direction::Write if self.trims_first => Direction::Trim,
            _ => direction,
        }
    }

    /// Queues a slot's request.
    #[inline(always)]
    fn send(&mut self, slot: u32, request: Slot) {
        let Slot {
            direction,
            position,
            bytes,
            ..
        } = request;
        self.slots[slot as usize] = request;
        if self.uses_data && direction == Direction::Write {
            self.fill(slot, position, bytes as u32);
        }
        self.backend.push(slot, direction, position, bytes as u32);
    }

    /// Queues the write that follows a completed discard; it is due when the discard completes.
    fn write_trimmed(&mut self, index: u32, trim: Slot, now: u64) {
        let write = Slot {
            direction: Direction::Write,
            started: now,
            scheduled: now,
            ..trim
        };
        self.send(index, write);
    }

    /// Fills the data of a write.
    #[cold]
    fn fill(&mut self, slot: u32, position: u64, bytes: u32) {
        let data = self.backend.data(slot, bytes);
        if let Some(filler) = &mut self.filler {
            filler.fill(data);
        }
        if let Some(verifier) = self.plan.verifier {
            verifier.prepare_write(position, data);
        }
    }

    /// Passes a completed request to the verifier.
    #[cold]
    fn verify(&mut self, index: u32, slot: &Slot) {
        let Some(verifier) = self.plan.verifier else {
            return;
        };
        match slot.direction {
            Direction::Write => verifier.write_completed(slot.position),
            Direction::Read if verifier.checks_reads() => {
                verifier.check_read(slot.position, self.backend.data(index, slot.bytes as u32));
                if verifier.is_fatal() {
                    self.plan.finished.store(true, Relaxed);
                }
            }
            _ => {}
        }
    }

    /// Passes a completed request to the throttle.
    #[cold]
    fn notify_throttle(&mut self, slot: &Slot, now: u64, in_flight: usize) {
        let Some(throttle) = &mut self.share.throttle else {
            return;
        };
        let kind = match slot.direction {
            Direction::Read => Kind::Read,
            Direction::Write => Kind::Write,
            Direction::Sync | Direction::Commit | Direction::Trim => Kind::Sync,
        };
        let latency = now.saturating_sub(slot.scheduled);
        let pause = throttle.completed(now, latency, in_flight, kind);
        if throttle.is_over() {
            self.plan.finished.store(true, Relaxed);
        }
        if let (Some(pause), Some(arrivals)) = (pause, &self.share.arrivals) {
            let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            let ticks = arrivals.postpone(pause);
            self.due = self.due.map(|due| due + ticks);
        }
    }

    /// Queues a sync of the file of `position`.
    fn issue_sync(&mut self, slot: u32, position: u64, now: u64) {
        self.unsynced = 0;
        self.slots[slot as usize] = Slot {
            direction: Direction::Sync,
            position,
            bytes: 0,
            started: now,
            scheduled: now,
            group: self.group.take().unwrap_or(now),
        };
        self.backend.push(slot, Direction::Sync, position, 0);
    }

    #[inline(always)]
    fn complete(&mut self, completion: Completion, now: u64) -> Result<(), EngineError> {
        let (slot, is_done) = self.accept(completion, now)?;
        if slot.direction == Direction::Trim {
            self.write_trimmed(completion.slot, slot, now);
            return Ok(());
        }
        let syncs = is_done && self.wants_sync(&slot);
        if self.share.throttle.is_some() {
            let in_flight = self.in_flight() - usize::from(!syncs);
            self.notify_throttle(&slot, now, in_flight);
        }
        if syncs {
            self.issue_sync(completion.slot, slot.position, now);
            return Ok(());
        }
        if self.share.throttle.is_some() {
            self.idle.push(completion.slot);
            // As in fio, completions are processed one by one: a pause may be due before the next one counts.
            self.issue_to_idle(now);
            return Ok(());
        }
        let closed = self.share.arrivals.is_none();
        match closed.then(|| self.next_request(now)).flatten() {
            Some(request) => self.issue(completion.slot, request, now, now),
            None => self.idle.push(completion.slot),
        }
        Ok(())
    }

    /// Checks a completion, verifies its data if the job requests it, and counts it. Returns the request, and true
    /// unless it failed with a non-fatal error.
    #[inline(always)]
    fn accept(&mut self, completion: Completion, now: u64) -> Result<(Slot, bool), EngineError> {
        let slot = self.slots[completion.slot as usize];
        if let Err(error) = self.check(&slot, completion.result) {
            self.count_failed(&slot, completion.result, error)?;
            return Ok((slot, false));
        }
        if self.uses_data {
            self.verify(completion.slot, &slot);
        }
        self.count(&slot, now);
        if self.plan.is_late(slot.direction, slot.started, now) {
            let (_, offset) = in_file(slot.position);
            self.failures
                .add_late(self.plan.workload, slot.direction, offset)?;
        }
        Ok((slot, true))
    }

    /// Counts a failed request, unless its error ends the phase.
    #[cold]
    fn count_failed(
        &mut self,
        slot: &Slot,
        result: i32,
        error: EngineError,
    ) -> Result<(), EngineError> {
        let workload = self.plan.workload;
        self.failures.add(workload, slot.direction, result, error)?;
        if slot.direction == Direction::Write
            && let Some(verifier) = self.plan.verifier
        {
            verifier.write_failed(slot.position);
        }
        Ok(())
    }

    #[inline(always)]
    fn check(&self, slot: &Slot, result: i32) -> Result<(), EngineError> {
        if result as i64 == slot.bytes as i64 {
            return Ok(());
        }
        let (_, offset) = in_file(slot.position);
        if result < 0 && slot.direction == Direction::Write && self.plan.workload.trims() {
            return Err(EngineError::Call {
                what: format!("a trim at byte {offset}"),
                source: io::Error::from_raw_os_error(-result),
            });
        }
        Err(failure(slot.direction, offset, result, slot.bytes))
    }

    #[inline(always)]
    fn count(&mut self, slot: &Slot, now: u64) {
        // Saturating: readings of the counter on two processors may differ by a few ticks.
        let latency = now.saturating_sub(slot.scheduled);
        if slot.direction == Direction::Sync {
            self.tally.record(Direction::Sync, 0, latency);
            let commit = now.saturating_sub(slot.group);
            self.tally.record(Direction::Commit, 0, commit);
            return;
        }
        self.tally.record(slot.direction, slot.bytes, latency);
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
        let first = self
            .group
            .map_or(slot.scheduled, |first| first.min(slot.scheduled));
        self.group = Some(first);
        self.unsynced >= self.plan.workload.sync_every
    }

    /// Sends the complete windows.
    fn advance(&mut self, now: u64) {
        let in_flight = self.in_flight() as u64 + self.backlog(now);
        let (id, windows) = (self.id, &self.windows);
        let (backend, cpu_before) = (&mut self.backend, &mut self.cpu);
        // After a stall several windows end at once, with one share for all of them.
        let mut busy_share = None;
        self.tally.advance(now, |index, ticks, flows| {
            let cpu_now = thread_cpu_time();
            let tally = WindowTally {
                index,
                ticks,
                flows,
                in_flight,
                busy_share: *busy_share.get_or_insert_with(|| backend.busy_share()),
                cpu: cpu_since(cpu_now, std::mem::replace(cpu_before, cpu_now)),
            };
            // The gatherer outlives the workers; if it is gone, nothing uses the figures.
            let _ = windows.send(Message::Window {
                worker: id,
                tally: Box::new(tally),
            });
        });
    }

    /// Waits for the requests in flight, syncs if that belongs to the phase, and counts the requests that were due and
    /// never issued.
    fn finish(mut self, now: u64) -> Result<WorkerEnd, EngineError> {
        let mut cut = self.take_window(now);
        // A blocking call may have returned long after the end; requests that became due after the end do not count.
        let last_due = now.min(self.plan.timetable.end());
        let cut_at = now;
        let mut completions = Vec::with_capacity(self.slots.len());
        let mut now = now;
        while self.in_flight() > 0 {
            now = self.drain_once(&mut completions)?;
        }
        let drain_ticks = now.saturating_sub(cut_at);
        if self.plan.workload.sync_at_end {
            for file in 0..self.files() {
                let Some(slot) = self.idle.pop() else { break };
                let submitted = self.backend.now();
                self.issue_sync(slot, position_in(file, 0), submitted);
                while self.in_flight() > 0 {
                    now = self.drain_once(&mut completions)?;
                }
            }
        }
        self.count_overdue(last_due, now);
        let (_, _, drained) = self.tally.cut(now);
        // Includes the wait for requests in flight, and the last sync.
        cut.cpu = cpu_since(thread_cpu_time(), self.cpu);
        Ok(WorkerEnd {
            cut,
            drained,
            drain_ticks,
            depth: self.share.throttle.as_ref().and_then(|it| it.depth()),
            failed: self.failures.counted(),
        })
    }

    /// Takes the present window out of the tally, which continues with an empty one.
    fn take_window(&mut self, now: u64) -> WindowTally {
        let in_flight = self.in_flight() as u64 + self.backlog(now);
        let fresh = Tally::new(self.plan.workload, self.plan.timetable);
        let (index, ticks, flows) = std::mem::replace(&mut self.tally, fresh).cut(now);
        WindowTally {
            index,
            ticks,
            flows,
            in_flight,
            busy_share: self.backend.busy_share(),
            cpu: CpuTime::default(),
        }
    }

    fn drain_once(&mut self, completions: &mut Vec<Completion>) -> Result<u64, EngineError> {
        self.backend
            .submit_and_wait(self.far_future())
            .map_err(EngineError::Ring)?;
        let now = self.backend.now();
        self.backend.reap(completions);
        for index in 0..completions.len() {
            let completion = completions[index];
            match self.accept(completion, now) {
                Err(error) => {
                    self.drain_after_failure(&completions[index..]);
                    return Err(error);
                }
                // A discarded block is also written after the end.
                Ok((slot, _)) if slot.direction == Direction::Trim => {
                    self.write_trimmed(completion.slot, slot, now);
                }
                Ok(_) => self.idle.push(completion.slot),
            }
        }
        completions.clear();
        Ok(now)
    }

    /// Counts requests that were due before the end and found no free slot: they waited at least until now. To leave
    /// them out would be coordinated omission at the end of the phase. Requests in a pause wait for the worker.
    fn count_overdue(&mut self, last_due: u64, now: u64) {
        while let Some(due) = self.next_due() {
            let due = self.counts_from(due);
            if due >= last_due {
                return;
            }
            let Some((direction, bytes)) = self.next_request(now) else {
                return;
            };
            self.due = None;
            let direction = self.first_step(direction);
            self.tally.record(direction, bytes, now.saturating_sub(due));
        }
    }

    /// Number of files of the workload.
    fn files(&self) -> u64 {
        let details = self.plan.workload.details.as_ref();
        details.map_or(1, |details| u64::from(details.files.max(1)))
    }
}

/// The direction of the next request: the one with a rate if a request is due now, otherwise the other. As in fio.
#[cold]
fn direction_by_rate(arrivals: &Mutex<Arrivals>, direction: Direction, now: u64) -> Direction {
    let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    match (arrivals.due() <= now, direction) {
        (true, direction) => {
            arrivals.advance();
            direction
        }
        (false, Direction::Read) => Direction::Write,
        (false, _) => Direction::Read,
    }
}

/// The error for a completion that failed or is short.
pub(crate) fn failure(
    direction: Direction,
    offset: u64,
    result: i32,
    requested: u64,
) -> EngineError {
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
            requested,
        }
    }
}

#[cfg(test)]
mod tests;
