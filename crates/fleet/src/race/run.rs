//! Runs a race: waits for the hosts to be ready, and has them measured until it is over.

use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use job::RaiseOnDrop;

use crate::args::RaceArgs;
use crate::connection::Transport;
use crate::connection::machines::MachineRegistry;
use crate::connection::pool::{ConnectionLimit, STACK};
use crate::hosts::Host;
use crate::protocol::SMALL_STACK;
use crate::protocol::rounds::Round;
use crate::race::board::{Board, BoardView};
use crate::race::entrants::{Entrants, State};
use crate::race::groups;
use crate::race::outage::Outage;
use crate::race::overwrite_plan::OverwritePlan;
use crate::race::runner::{HostRunner, RunnerContext};
use crate::race::running_race::{ReplayedRace, RunningRace};
use crate::store::race::{RaceRecord, RoundRecord};
use crate::store::{FleetRun, HostOutcome};
use ui::exit::{ExitClass as _, Failure};

/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(50);

/// Settings of a race: connection, interrupt and limits.
pub(super) struct RaceConditions<'a> {
    /// The transport to the hosts.
    pub transport: &'a dyn Transport,
    /// Set by a signal.
    pub interrupt: &'a AtomicBool,
    /// Maximum number of hosts that are connected to at the same time.
    pub batch: usize,
    /// Time within which hosts must be ready.
    pub ready: Duration,
    /// Time to wait for a late host after a round.
    pub late: Duration,
    /// Pause after a loss before a host is tried again.
    pub after_loss: Duration,
    /// Asks for confirmation to overwrite.
    pub agree: &'a dyn Fn(&OverwritePlan) -> Result<(), Failure>,
    /// True if the user watches it on a terminal.
    pub watched: bool,
}

impl RaceConditions<'_> {
    /// Races these hosts. `keep` is called with the run so far whenever it has changed.
    ///
    /// # Errors
    /// Refused, if the race cannot be run with the ready hosts, or the user does not confirm what it overwrites;
    /// failed midway, if no thread can be started.
    pub(super) fn race(
        &self,
        hosts: &[Host],
        args: &RaceArgs,
        mut run: FleetRun,
        keep: &mut dyn FnMut(&FleetRun),
    ) -> Result<FleetRun, Failure> {
        let (limit, met) = (ConnectionLimit::new(self.batch), MachineRegistry::default());
        let (fleet, command) = (run.id.clone(), run.args.clone());
        let running = RunnerContext {
            transport: self.transport,
            fleet: &fleet,
            args: &command,
            limit: &limit,
            met: &met,
            after_loss: self.after_loss,
        };
        let over: Vec<AtomicBool> = hosts.iter().map(|_| AtomicBool::new(false)).collect();
        let is_done = AtomicBool::new(false);
        let (mut field, (events, receivers)) = Entrants::new(hosts, &over, self.interrupt);
        let raced = thread::scope(|scope| {
            // After a panic, too, the threads must end.
            let _over = [RaiseOnDrop(&over), RaiseOnDrop(from_ref(&is_done))];
            let watch = || relay_interrupt(self.interrupt, &over, &is_done);
            let watching = small_thread("interrupt").spawn_scoped(scope, watch);
            let mut started = watching
                .map(drop)
                .context("a thread could not be started")
                .midway();
            for ((place, host), rounds) in hosts.iter().enumerate().zip(receivers) {
                if started.is_err() {
                    break;
                }
                let runner = HostRunner::new(&running, host, rounds, &over[place]);
                let events = events.clone();
                let thread = thread::Builder::new()
                    .name("host".to_owned())
                    .stack_size(STACK);
                let spawned = thread.spawn_scoped(scope, move || runner.run(place, &events));
                if let Err(why) = spawned {
                    started = Err(why)
                        .context("a thread for each host could not be started")
                        .midway();
                }
            }
            drop(events);
            let raced = started.and_then(|()| self.rounds(&mut field, args, &mut run, keep));
            field.end();
            raced
        });
        raced?;
        Ok(run)
    }

    /// Waits for the hosts to be ready, and measures round by round.
    fn rounds(
        &self,
        field: &mut Entrants<'_>,
        args: &RaceArgs,
        run: &mut FleetRun,
        keep: &mut dyn FnMut(&FleetRun),
    ) -> Result<(), Failure> {
        field.gather(self.ready, &mut |sentence| ui::context::notice(sentence));
        let Some(record) = run.race.as_mut() else {
            return Ok(());
        };
        group_entrants(field, args, record)?;
        let base = record.as_ref().clone();
        note(field, run);
        keep(run);
        if !self.interrupt.load(Relaxed) {
            (self.agree)(&OverwritePlan::of(field, run))?;
        }
        let replayed = ReplayedRace::of(&base);
        let setup = replayed.setup(&base);
        let mut course = RunningRace::new(&setup);
        let mut dark = Outage::new(self.ready);
        let mut board = Board::new(self.watched, || BoardView::of(&course, run, &base));
        loop {
            let next = course.next();
            if next.is_empty() || self.interrupt.load(Relaxed) {
                break;
            }
            let round = Round {
                number: course.rounds(),
                seconds: base.round_s,
            };
            let mut tick = |measured: usize| {
                if let Some(board) = &mut board {
                    board.tick(round.number, next.len(), measured);
                }
            };
            let mut measured = field.measure(&next, round, self.late, &mut tick);
            // A partial round would only have the hosts that answered first.
            if self.interrupt.load(Relaxed) {
                break;
            }
            if !dark.sort(&mut measured, round.number, Instant::now()) {
                continue;
            }
            let out = course.take(&measured);
            match &mut board {
                Some(board) => {
                    board.view().take(&course, run, &base, &measured, &out);
                    board.hide();
                }
                None => notice(&course, &next, &measured, &out, run),
            }
            out.iter().for_each(|place| field.release(*place));
            if let Some(record) = run.race.as_mut() {
                record.rounds.push(measured);
            }
            note(field, run);
            keep(run);
        }
        // A signal after the last round interrupts nothing.
        let is_open = course.rounds() == 0 || !course.next().is_empty();
        let interrupted = is_open && self.interrupt.load(Relaxed);
        if let Some(record) = run.race.as_mut() {
            record.interrupted = interrupted;
        }
        if !interrupted {
            field.receive_uninterrupted();
        }
        end(field, interrupted, run);
        Ok(())
    }
}

/// Passes an interrupt to all hosts' threads immediately, whatever the race waits for.
fn relay_interrupt(interrupt: &AtomicBool, over: &[AtomicBool], is_done: &AtomicBool) {
    while !is_done.load(Relaxed) {
        if interrupt.load(Relaxed) {
            over.iter().for_each(|one| one.store(true, Relaxed));
            return;
        }
        thread::sleep(POLL);
    }
}

/// A thread with a small stack.
fn small_thread(name: &str) -> thread::Builder {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.stack_size(SMALL_STACK)
}

/// Assigns the ready hosts to their groups.
///
/// # Errors
/// Refused, if a floor is watched for longer than the race.
fn group_entrants(
    field: &Entrants<'_>,
    args: &RaceArgs,
    record: &mut RaceRecord,
) -> Result<(), Failure> {
    let ready: Vec<Option<_>> = field
        .entrants
        .iter()
        .map(|entrant| match entrant.state {
            // A host that was just lost may reconnect.
            State::Ready | State::Away(_) => Some((&entrant.host_run, &entrant.targets[..])),
            _ => None,
        })
        .collect();
    groups::assign_groups(&ready, args, record)?;
    for (raced, entrant) in record.hosts.iter_mut().zip(&field.entrants) {
        raced.targets.clone_from(&entrant.targets);
        raced.boot.clone_from(&entrant.boot);
        raced.own_id.clone_from(&entrant.own_id);
    }
    Ok(())
}

/// Copies the hosts' results so far to the run.
fn note(field: &Entrants<'_>, run: &mut FleetRun) {
    for (host, entrant) in run.hosts.iter_mut().zip(&field.entrants) {
        host.clone_from(&entrant.host_run);
    }
}

/// Ends the race for all hosts.
fn end(field: &Entrants<'_>, interrupted: bool, run: &mut FleetRun) {
    note(field, run);
    let raced = run.race.iter_mut().flat_map(|record| &mut record.hosts);
    for (raced, entrant) in raced.zip(&field.entrants) {
        // Its metadata service may not have answered at first.
        raced.own_id = raced.own_id.take().or_else(|| entrant.own_id.clone());
        raced.may_be_other = entrant.may_be_other;
    }
    for (host, entrant) in run.hosts.iter_mut().zip(&field.entrants) {
        match &entrant.state {
            State::Gone => {}
            State::Away(why) => {
                host.outcome = HostOutcome::Lost;
                host.why = Some(why.clone());
            }
            // The result of its last round is unknown.
            State::Busy if !interrupted => {
                host.outcome = HostOutcome::Lost;
                host.why = Some("it had not answered its last round.".to_owned());
            }
            _ if interrupted => host.outcome = HostOutcome::Interrupted,
            _ => host.outcome = HostOutcome::Done,
        }
    }
}

/// Reports the state of the race on standard error after a round.
fn notice(
    course: &RunningRace<'_>,
    next: &[usize],
    measured: &RoundRecord,
    out: &[usize],
    run: &FleetRun,
) {
    let name = |place: &usize| run.name(*place);
    for place in out {
        let why = course
            .out_reason(*place)
            .map_or("", |out_reason| out_reason.reason());
        let why = why.trim_end_matches('.');
        ui::context::notice(&format!(
            "disksmith: round {}: {} is out: {why}.",
            course.rounds(),
            name(place)
        ));
    }
    let left = course.next().len();
    if left != next.len() || !measured.missed.is_empty() {
        ui::context::notice(&format!(
            "disksmith: round {}: {} of {} hosts were measured, and {left} are measured next.",
            course.rounds(),
            measured.measured.len(),
            next.len()
        ));
    }
}
