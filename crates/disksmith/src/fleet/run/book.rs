//! Keeps what comes of the hosts, on a thread of its own. Those who put something down wait until it
//! is on the ledger's disk, many of them for one commit: what a host has kept may be forgotten
//! there only then.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ledger::{Claim, Ledger, Owner};
use record::Run;

use super::super::hosts::Host;
use super::super::talk::Ended;
use super::outcome::{FleetRun, HostRun};
use crate::bench::conclusion::Conclusion;
use crate::longwork::Here;

/// What is put down, and by whom it is waited for.
pub(super) struct Book {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    run: FleetRun,
    /// Runs that are to be kept.
    runs: Vec<Run>,
    /// Answers of earlier runs of the fleet.
    earlier: Vec<Ended>,
    /// How often something was put down, and how much of that is on the disk.
    put: u64,
    kept: u64,
    failed: Option<String>,
    over: bool,
}

impl Book {
    /// A book for this run.
    pub(super) fn new(run: FleetRun) -> Book {
        Book {
            state: Mutex::new(State {
                run,
                runs: Vec::new(),
                earlier: Vec::new(),
                put: 0,
                kept: 0,
                failed: None,
                over: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts down what came of a host, and the runs that belong to it. Whether it is kept now.
    pub(super) fn put(&self, at: usize, host: HostRun, runs: Vec<Run>) -> bool {
        self.write(|state| {
            if let Some(place) = state.run.hosts.get_mut(at) {
                *place = host;
            }
            state.runs.extend(runs);
        })
    }

    /// Puts down an answer that a host has kept. Whether it is kept now.
    pub(super) fn put_collected(&self, ended: Ended) -> bool {
        self.write(|state| {
            let own = state.run.id == ended.order.fleet;
            let name = &ended.order.host;
            match state
                .run
                .hosts
                .iter_mut()
                .find(|host| own && host.host == *name)
            {
                Some(host) => {
                    host.take(&ended);
                    state.runs.extend(ended.runs);
                }
                None => state.earlier.push(ended),
            }
        })
    }

    /// Writes, and waits until it is on the disk.
    fn write(&self, write: impl FnOnce(&mut State)) -> bool {
        let mut state = self.lock();
        write(&mut state);
        state.put += 1;
        let own = state.put;
        self.changed.notify_all();
        while state.kept < own && state.failed.is_none() && !state.over {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.kept >= own
    }

    /// Nothing more is put down.
    pub(super) fn close(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// What was put down until now.
    pub(super) fn run(&self) -> FleetRun {
        self.lock().run.clone()
    }

    /// Why nothing is kept any more.
    pub(super) fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    /// Keeps what is put down until the book is closed, and finishes it then.
    pub(super) fn keep_all(&self, mut ledger: Ledger, claim: Claim<FleetRun>, here: &Here) {
        loop {
            let mut state = self.lock();
            while state.kept == state.put && !state.over {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let (over, put, run) = (state.over, state.put, state.run.clone());
            let runs = std::mem::take(&mut state.runs);
            let earlier = std::mem::take(&mut state.earlier);
            drop(state);
            let kept = keep(&mut ledger, &runs, &earlier, here).and_then(|()| {
                if over {
                    return Ok(());
                }
                ledger.keep_work(&claim, &run)
            });
            let mut state = self.lock();
            match kept {
                Ok(()) => state.kept = put,
                Err(why) => state.failed = Some(why.to_string()),
            }
            self.changed.notify_all();
            if state.failed.is_some() {
                return;
            }
            if over {
                if let Err(why) = ledger.finish_work(claim, &run) {
                    state.failed = Some(why.to_string());
                }
                return;
            }
        }
    }
}

/// Keeps runs, and answers that belong to earlier runs of the fleet.
fn keep(ledger: &mut Ledger, runs: &[Run], earlier: &[Ended], here: &Here) -> ledger::Result<()> {
    let of_earlier = earlier.iter().flat_map(|ended| &ended.runs);
    for run in runs.iter().chain(of_earlier) {
        let conclusion = Conclusion::of(run);
        match ledger.save(run, conclusion.verdict, &conclusion.findings) {
            // One that was collected twice, as when two do so at once.
            Ok(()) | Err(ledger::Error::AlreadyKept { .. }) => {}
            Err(why) => return Err(why),
        }
    }
    for ended in earlier {
        amend(ledger, ended, here)?;
    }
    Ok(())
}

/// Puts a late answer to the run of the fleet that it belongs to. Where this ledger does not know
/// that, since another did it, or where somebody is at it, it is kept under its own name.
fn amend(ledger: &mut Ledger, ended: &Ended, here: &Here) -> ledger::Result<()> {
    let fleet = &ended.order.fleet;
    let known = ledger.work::<FleetRun>(fleet)?;
    let finished = known
        .as_ref()
        .is_none_or(|work| work.summary.finished.is_some());
    let mut run = known.map_or_else(|| alone(ended), |work| work.document);
    put(&mut run, ended);
    let owner = here.owner();
    let standing = |other: &Owner| here.standing(other);
    let claim = if finished {
        ledger.begin_work(fleet, owner, &run, standing)
    } else {
        let claimed = ledger.claim_work::<FleetRun>(fleet, owner, standing);
        claimed.map(|(claim, _)| claim)
    };
    match claim {
        Ok(claim) => ledger.finish_work(claim, &run),
        Err(ledger::Error::Work(_)) => {
            let mut run = alone(ended);
            put(&mut run, ended);
            let claim = ledger.begin_work(&ended.name, owner, &run, standing)?;
            ledger.finish_work(claim, &run)
        }
        Err(why) => Err(why),
    }
}

/// A run of the fleet of which nothing but an answer is known.
fn alone(ended: &Ended) -> FleetRun {
    FleetRun {
        id: ended.order.fleet.clone(),
        began: jiff::Timestamp::now(),
        args: ended.order.args.clone(),
        hosts: Vec::new(),
    }
}

/// Puts an answer to its host.
fn put(run: &mut FleetRun, ended: &Ended) {
    let name = &ended.order.host;
    if let Some(host) = run.hosts.iter_mut().find(|host| host.host == *name) {
        host.take(ended);
        return;
    }
    let mut host = HostRun::waiting(&Host {
        name: name.clone(),
        address: name.clone(),
        ..Host::default()
    });
    host.take(ended);
    run.hosts.push(host);
}
