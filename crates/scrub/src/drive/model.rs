//! A model of md's check, of the array below it and of a foreground, whose mismatches are known.
//!
//! As in the kernel (drivers/md/md.c, md_do_sync): a thread proceeds from `sync_min` to `sync_max`, drains and waits
//! there, sleeps for half a second where it is faster than `sync_speed_max`, resets both ends when it is done, and
//! sets `sync_min` to its position when it is interrupted. Progress is reported at a stop, every ten seconds, and when
//! half of the way to the stop is done; then md drains and writes the superblock of all members. Below
//! `sync_speed_min` it ignores the foreground; above, it is slower while there is one. `mismatch_cnt` begins at zero
//! with each check. For RAID 10 there is a [`Barrier`] too.

mod barrier;
mod direct;

use std::ops::Range;

use job::StopCause;
use linux::md::competing::CompetingArray;
use linux::md::sync::{Sectors, SpeedLimit, SyncMax, SyncState, Tunable};
use record::Nanos;
use record::sample::SyncAction;

use super::{
    ArrayControl, ComparisonResult, ForegroundSample, PendingWork, ScrubEnd, ScrubProgress, Task,
    drive,
};
pub(super) use barrier::Barrier;
use barrier::Crossing;
use direct::DirectComparison;

/// Step of the simulated time, in nanoseconds.
const STEP: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// A check of the whole array, over `wide` members at once.
pub(super) fn task(wide: u64) -> Task {
    Task {
        action: SyncAction::Check,
        from: Sectors(0),
        mismatches: 0,
        min: Sectors(0),
        chunk: Sectors(128),
        wide,
        holds_all: false,
        targets: None,
        deadline: None,
    }
}

/// Runs starts until the whole array is checked, and asserts that each of 400 mismatches is found once. Each start ends
/// by a signal at some moment, or is killed, which leaves the last reported progress. `prepare` returns the model of a
/// start and the time of its end. Returns true if members were compared directly.
pub(super) fn assert_found_once(
    of: u64,
    task: impl Fn() -> Task,
    mut prepare: impl FnMut(u64) -> (Model, u64),
) -> bool {
    let bad: Vec<u64> = (0..400_u64)
        .map(|number| number * 7_919 * 131 % of)
        .collect();
    let mut done = (Sectors(0), 0);
    let mut has_compared = false;
    for start in 0..500 {
        let (mut model, when) = prepare(start);
        model.bad.clone_from(&bad);
        model.events.push((when, Event::Stop(StopCause::Signal)));
        let rest = Task {
            from: done.0,
            mismatches: done.1,
            ..task()
        };
        let ended = drive(&mut model, &rest);
        has_compared |= model.compared > 0;
        assert_eq!(model.refused, [""; 0]);
        if matches!(ended.ending, ScrubEnd::Done) {
            assert_eq!(ended.at.mismatches, bad.len() as u64);
            assert!(start > 2, "{start}");
            return has_compared;
        }
        let at = match start % 2 {
            0 => model.reported.last().cloned().unwrap_or_default(),
            _ => ended.at,
        };
        if at.done > done.0 {
            done = (at.done, at.mismatches);
        }
        let truth = bad.iter().filter(|bad| **bad < done.0.0).count() as u64;
        assert_eq!(done.1, truth, "start {start}, at {:?}", done.0);
    }
    panic!("it goes on");
}

/// Distribution of latencies about their mean.
#[derive(Clone, Copy, Debug)]
pub(super) enum Noise {
    None,
    Exponential,
    /// One request in fifty takes much longer, as on cloud volumes.
    Tail,
}

/// The foreground, and the effect of a check on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Rate of requests, per second.
    pub rate: f64,
    /// Mean latency without a check, in seconds.
    pub alone: f64,
    /// Latency that a check at full speed adds, in seconds.
    pub cost: f64,
    /// Speed of a check that yields to the foreground, as a share of full speed.
    pub gentle: f64,
    pub noise: Noise,
    /// Delay by each request of a check of RAID 10.
    pub barrier: Option<Barrier>,
}

/// A closed-loop client, which issues the next request when the last one has completed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Client {
    since: u64,
    until: u64,
}

/// Time in which md drains and writes the superblocks, in nanoseconds.
const SUPERBLOCK: u64 = 8_000_000;
/// Effect of these writes on the foreground, as a share of the effect of a check at full speed.
const ITS_SHARE: f64 = 0.1;

/// An event in a simulation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Stop(StopCause),
    /// Another program writes this to `sync_action`.
    Act(SyncAction),
    /// md begins this action by itself.
    Begins(SyncAction),
    Fails,
    Turns(Tunable, u64),
    Gone,
    /// md has to recover another array on the same disks.
    Waits,
    /// md does not let the check begin, because of another array on the same disks.
    Delayed,
    Load(Load),
    /// A closed-loop client appears.
    Client,
}

pub(super) struct Model {
    pub now: u64,
    pub action: SyncAction,
    pub position: f64,
    completed: u64,
    completed_at: u64,
    pub of: u64,
    pub min: u64,
    pub until: SyncMax,
    pub speed_min: SpeedLimit,
    pub speed_max: SpeedLimit,
    /// Full speed of the members, in sectors a second.
    pub fastest: f64,
    sleeps_until: u64,
    writes_until: u64,
    /// Time for which md refuses actions after the end of a check, in nanoseconds.
    pub reaps: u64,
    /// Time until which md refuses actions now.
    reaped: u64,
    /// Number of times that md has written the superblocks.
    pub superblocks: u32,
    due: f64,
    /// Time in nanoseconds and latency in seconds of each foreground request.
    pub latencies: Vec<(u64, f64)>,
    /// Positions of mismatches.
    pub bad: Vec<u64>,
    pub found: u64,
    /// True while md's thread has not begun yet, so that md shows the count of the previous check.
    begins: bool,
    pub degraded: u32,
    pub there: bool,
    waits: Option<PendingWork>,
    delayed: bool,
    pub load: Load,
    crossing: Crossing,
    pub direct: DirectComparison,
    /// Number of direct comparisons.
    pub compared: u32,
    pub events: Vec<(u64, Event)>,
    order: Option<StopCause>,
    probed: Vec<f64>,
    client: Option<Client>,
    others: f64,
    busy: f64,
    /// Time for which foreground requests were in flight since `seen_at`, in seconds.
    waited: f64,
    /// Time of the last sample, in nanoseconds.
    seen_at: u64,
    probes_at: u64,
    /// Minimum time between two probes, in seconds; `None` without probes.
    probing: Option<f64>,
    pub random: u64,
    /// For each second: sectors checked, and the mean latency of the foreground.
    pub history: Vec<(f64, f64)>,
    second: (f64, f64, u32),
    pub reported: Vec<ScrubProgress>,
    /// Writes that were refused.
    pub refused: Vec<String>,
}

impl Model {
    pub(super) fn new(of: u64, fastest: f64) -> Model {
        Model {
            now: 0,
            action: SyncAction::Idle,
            position: 0.0,
            completed: 0,
            completed_at: 0,
            of,
            min: 0,
            until: SyncMax::End,
            speed_min: SpeedLimit {
                kib: 1000,
                local: false,
            },
            speed_max: SpeedLimit {
                kib: 200_000,
                local: false,
            },
            fastest,
            sleeps_until: 0,
            writes_until: 0,
            reaps: 0,
            reaped: 0,
            superblocks: 0,
            due: 0.0,
            latencies: Vec::new(),
            bad: Vec::new(),
            found: 0,
            begins: false,
            degraded: 0,
            there: true,
            waits: None,
            delayed: false,
            load: Load {
                rate: 0.0,
                alone: 0.001,
                cost: 0.0,
                gentle: 1.0,
                noise: Noise::None,
                barrier: None,
            },
            crossing: Crossing::default(),
            direct: DirectComparison::default(),
            compared: 0,
            events: Vec::new(),
            order: None,
            probed: Vec::new(),
            client: None,
            others: 0.0,
            busy: 0.0,
            waited: 0.0,
            seen_at: 0,
            probes_at: 0,
            probing: None,
            random: 1,
            history: Vec::new(),
            second: (0.0, 0.0, 0),
            reported: Vec::new(),
            refused: Vec::new(),
        }
    }

    fn window_end(&self) -> f64 {
        match self.until {
            SyncMax::End => self.of as f64,
            SyncMax::At(at) => (at.0 as f64).min(self.of as f64),
        }
    }

    /// Interrupts md's check, as an error or a write to `sync_action` does.
    fn break_off(&mut self) {
        if self.action != SyncAction::Idle {
            self.min = self.completed;
            self.action = SyncAction::Idle;
            self.reaped = self.now + self.reaps;
        }
    }

    /// Refuses a write while md ends a check.
    fn is_reaped(&self) -> linux::Result<()> {
        match self.now < self.reaped {
            true => Err(busy("md")),
            false => Ok(()),
        }
    }

    fn apply_event(&mut self, event: Event) {
        match event {
            Event::Stop(order) => self.order = Some(order),
            Event::Act(SyncAction::Idle) => self.break_off(),
            Event::Act(action) => self.action = action,
            Event::Begins(action) => {
                self.break_off();
                self.action = action;
            }
            Event::Fails => {
                self.break_off();
                self.degraded += 1;
            }
            Event::Turns(Tunable::SpeedMin, kib) => {
                self.speed_min = SpeedLimit { kib, local: true }
            }
            Event::Turns(Tunable::SpeedMax, kib) => {
                self.speed_max = SpeedLimit { kib, local: true }
            }
            Event::Turns(_, sectors) => self.until = SyncMax::At(Sectors(sectors)),
            Event::Gone => self.there = false,
            Event::Waits => {
                self.waits = Some(PendingWork::Competing(CompetingArray {
                    name: "md1".to_owned(),
                    action: SyncAction::Recover,
                }));
            }
            Event::Delayed => self.delayed = true,
            Event::Load(load) => self.load = load,
            Event::Client => self.client = Some(Client::default()),
        }
    }

    fn step(&mut self) {
        let due: Vec<Event> = {
            let now = self.now;
            let (due, later): (Vec<_>, Vec<_>) =
                self.events.drain(..).partition(|(at, _)| *at <= now);
            self.events = later;
            due.into_iter().map(|(_, event)| event).collect()
        };
        due.into_iter().for_each(|event| self.apply_event(event));
        let seconds = STEP as f64 / SECOND as f64;
        let before = self.position;
        if matches!(self.action, SyncAction::Check | SyncAction::Repair) && !self.delayed {
            self.check(seconds);
        }
        let mut share = (self.position - before) / (self.fastest * seconds);
        if self.now < self.writes_until {
            share = ITS_SHARE;
        }
        let (read, read_share) = self.direct.pass(self.load.barrier, self.fastest, seconds);
        let read_cost = self
            .load
            .barrier
            .map_or(self.load.cost, |barrier| barrier.cost);
        let latency = self.load.alone + share * self.load.cost;
        // Each read of a member starts in an idle gap: a request that arrives then waits for the rest of one read.
        let one_read = 2.0 * read_share * read_cost;
        let waits = self.crossing.waits(self.load.barrier, self.now, seconds);
        self.others += self.load.rate * seconds;
        self.due += self.load.rate * seconds;
        while self.due >= 1.0 {
            self.due -= 1.0;
            let latency = latency * self.noise() + waits + self.rest_of(one_read);
            self.busy += latency;
            self.waited += latency;
            self.latencies.push((self.now, latency));
        }
        if let Some(client) = &mut self.client {
            self.waited += seconds;
            if self.now >= client.until {
                let took = Nanos(self.now - client.since).as_secs_f64();
                self.busy += took;
                self.others += 1.0;
                self.latencies.push((self.now, took));
                let until = self.now + (latency * 1e9) as u64;
                *client = Client {
                    since: self.now,
                    until,
                };
            }
        }
        if let Some(gap_s) = self.probing
            && self.now >= self.probes_at
        {
            // At random intervals: at constant ones each probe would fall at the same moment of a step.
            let latency = latency * self.noise() + waits + self.rest_of(one_read);
            let gap_s = gap_s * (0.5 + self.draw());
            self.probes_at = self.now + ((gap_s + latency) * 1e9) as u64;
            self.probed.push(latency);
        }
        self.second.0 += self.position - before + read;
        self.second.1 += latency + waits + one_read / 2.0;
        self.second.2 += 1;
        self.now += STEP;
        if self.now.is_multiple_of(SECOND) {
            let (sectors, latency, count) = std::mem::take(&mut self.second);
            self.history.push((sectors, latency / f64::from(count)));
        }
    }

    /// A uniformly distributed number between 0 and 1 (Knuth's generator for 64 bits).
    fn draw(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) as f64 + 0.5) / f64::from(1_u32 << 31)
    }

    /// Remaining time of an operation of `seconds` for a request that arrives at a random moment of it.
    fn rest_of(&mut self, seconds: f64) -> f64 {
        match seconds > 0.0 {
            true => seconds * self.draw(),
            false => 0.0,
        }
    }

    /// A random factor with a mean of 1, by the load's distribution.
    pub(super) fn noise(&mut self) -> f64 {
        match self.load.noise {
            Noise::None => 1.0,
            Noise::Exponential => -self.draw().ln(),
            Noise::Tail => match self.draw() < 0.02 {
                true => 0.7 * (8.0 - 12.0 * self.draw().ln()),
                false => 0.7 * (0.6 + 0.4 * self.draw()),
            },
        }
    }

    /// True if md writes the superblocks now: when half of the way to the stop is done.
    fn is_to_write(&self) -> bool {
        let done = self.position - self.completed as f64;
        let way = self.window_end() - self.completed as f64;
        done >= 128.0 && 2.0 * done >= way || self.now - self.completed_at >= 10 * SECOND
    }

    fn check(&mut self, seconds: f64) {
        if self.now < self.writes_until {
            return;
        }
        let stands = self.position >= self.window_end();
        if self.now >= self.sleeps_until && self.is_to_write() {
            self.completed = self.position as u64;
            self.completed_at = self.now;
            self.superblocks += 1;
            self.crossing.superblock(self.load.barrier);
            self.writes_until = self.now + SUPERBLOCK;
            return;
        }
        if stands {
            self.completed = self.position as u64;
            self.completed_at = self.now;
        }
        if self.position >= self.of as f64 {
            // The check has reached the end, and md resets `sync_min` and `sync_max`.
            (self.min, self.until) = (0, SyncMax::End);
            self.action = SyncAction::Idle;
            return;
        }
        if self.now < self.sleeps_until || stands {
            return;
        }
        let speed_max = self.speed_max.kib as f64 * 2.0;
        let takes_notice = self.fastest > self.speed_min.kib as f64 * 2.0;
        if takes_notice && speed_max < 1000.0 {
            self.sleeps_until = self.now + SECOND / 2;
            return;
        }
        let others = takes_notice && self.load.rate > 0.0;
        let share = if others { self.load.gentle } else { 1.0 };
        let step = (share * self.fastest).min(speed_max) * seconds;
        let to = (self.position + step).min(self.window_end());
        let to = match self.load.barrier.filter(|_| self.load.rate > 0.0) {
            None => to,
            // The check proceeds by one request at a time.
            Some(barrier) => match self.crossing.is_over(barrier, self.now) {
                true => (self.position + 128.0).min(self.window_end()),
                false => return,
            },
        };
        let (from, to_sector) = (self.position as u64, to as u64);
        let passed = |bad: &&u64| (from..to_sector).contains(*bad);
        if std::mem::take(&mut self.begins) {
            self.found = 0;
        }
        self.found += self.bad.iter().filter(passed).count() as u64;
        if self.action == SyncAction::Repair {
            self.bad.retain(|bad| !passed(&bad));
        }
        self.position = to;
    }

    fn refuse(&mut self, what: &str) -> linux::Result<()> {
        self.refused.push(what.to_owned());
        Err(busy(what))
    }
}

fn busy(what: &str) -> linux::Error {
    linux::Error::Write {
        path: what.into(),
        source: std::io::ErrorKind::ResourceBusy.into(),
    }
}

impl ArrayControl for Model {
    fn now(&mut self) -> Nanos {
        Nanos(self.now)
    }

    fn rest(&mut self, span: Nanos) {
        let until = self.now + span.0;
        while self.now < until {
            self.step();
        }
    }

    fn sync_state(&mut self) -> linux::Result<SyncState> {
        if !self.there {
            return Err(linux::Error::NoDevice("md0".to_owned()));
        }
        let is_busy = self.action != SyncAction::Idle;
        Ok(SyncState {
            action: self.action,
            state: "clean".to_owned(),
            degraded: self.degraded,
            completed: (is_busy && !self.delayed)
                .then_some((Sectors(self.completed), Sectors(self.of))),
            delayed: is_busy && self.delayed,
            mismatches: self.found,
            until: self.until,
        })
    }

    fn live(&mut self) -> Option<Sectors> {
        (self.action != SyncAction::Idle && !self.delayed).then_some(Sectors(self.position as u64))
    }

    fn tunable(&mut self, tunable: Tunable) -> Option<String> {
        let speed = |speed: SpeedLimit| {
            let whose = if speed.local { "local" } else { "system" };
            format!("{} ({whose})", speed.kib)
        };
        match tunable {
            Tunable::SpeedMin => Some(speed(self.speed_min)),
            Tunable::SpeedMax => Some(speed(self.speed_max)),
            Tunable::Max => Some(self.until.to_write()),
            Tunable::Min => Some(self.min.to_string()),
            Tunable::IoDepth | Tunable::StripeCache | Tunable::SuspendLo | Tunable::SuspendHi => {
                None
            }
        }
    }

    fn turn(&mut self, tunable: Tunable, text: &str) -> linux::Result<()> {
        if matches!(tunable, Tunable::Min | Tunable::Max) {
            self.is_reaped()?;
        }
        let is_busy = self.action != SyncAction::Idle;
        match (tunable, text.parse::<u64>()) {
            (Tunable::SpeedMin, Ok(kib)) => self.speed_min = SpeedLimit { kib, local: true },
            (Tunable::SpeedMax, Ok(kib)) => self.speed_max = SpeedLimit { kib, local: true },
            (Tunable::Min, Ok(_)) if is_busy => return self.refuse("sync_min"),
            (Tunable::Min, Ok(at)) => self.min = at,
            (Tunable::Max, Ok(at)) if at < self.min => return self.refuse("sync_max"),
            (Tunable::Max, Ok(at)) => {
                let lowers = match self.until {
                    SyncMax::End => true,
                    SyncMax::At(there) => at < there.0,
                };
                if (is_busy && lowers) || !at.is_multiple_of(128) {
                    return self.refuse("sync_max");
                }
                self.until = SyncMax::At(Sectors(at));
            }
            (Tunable::Max, Err(_)) => self.until = SyncMax::End,
            _ => return self.refuse(tunable.file()),
        }
        Ok(())
    }

    fn write_sync_action(&mut self, action: SyncAction) -> linux::Result<()> {
        match action {
            SyncAction::Idle => self.break_off(),
            _ if self.now < self.reaped => return self.is_reaped(),
            _ if self.action != SyncAction::Idle => return self.refuse("sync_action"),
            _ => {
                self.action = action;
                self.position = self.min as f64;
                self.completed = self.min;
                self.completed_at = self.now;
                // Its thread takes a moment to begin, and only then counts from zero.
                self.begins = true;
            }
        }
        Ok(())
    }

    fn waits(&mut self) -> Option<PendingWork> {
        self.waits.clone()
    }

    fn is_there(&mut self) -> bool {
        self.there
    }

    fn foreground_sample(&mut self, probing: Option<f64>) -> ForegroundSample {
        let probes = std::mem::take(&mut self.probed);
        let others = std::mem::take(&mut self.others);
        let busy = std::mem::take(&mut self.busy);
        let waited = std::mem::take(&mut self.waited);
        let passed = Nanos(self.now - std::mem::replace(&mut self.seen_at, self.now));
        self.probing = probing;
        ForegroundSample {
            probes,
            waiting: 0.0,
            others: Some(others),
            counted: Some((others.round() as u64, busy)),
            busy: waited.min(passed.as_secs_f64()),
        }
    }

    fn can_compare(&mut self) -> bool {
        self.direct.can
    }

    fn compare(&mut self, step: &Range<Sectors>, _: Option<Nanos>) -> bool {
        self.compared += 1;
        self.direct.begin(step)
    }

    fn compared(&mut self, _: &Range<Sectors>) -> Option<ComparisonResult> {
        self.direct.try_result(&self.bad)
    }

    fn in_flight(&mut self) -> u64 {
        let mean = self.load.rate * self.load.alone;
        (-mean * self.draw().ln()) as u64
    }

    fn stop_cause(&mut self) -> Option<StopCause> {
        self.order
    }

    fn take_progress(&mut self, at: &ScrubProgress) {
        self.reported.push(at.clone());
    }
}
