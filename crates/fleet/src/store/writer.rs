//! Keeps what comes of the hosts, on a thread of its own. Those who put something down wait until it
//! is on the ledger's disk, many of them for one commit: what a host has kept may be forgotten
//! there only then.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ledger::{Claim, Ledger, Owner};
use record::{Run, RunId};

use crate::hosts::Host;
use crate::protocol::{BEAT, Ended};
use crate::store::{FleetRun, HostRun, Kind};
use bench::conclusion::Conclusion;
use job::process::ProcessIdentity;

/// How many times as long as the last write took nothing is written, and how long at most.
const REST: u32 = 3;
const LONGEST_REST: Duration = Duration::from_secs(2);

/// What is put down, and by whom it is waited for.
pub(crate) struct Book {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    run: FleetRun,
    /// Runs that are to be kept, each with the place of its host.
    runs: Vec<(usize, Run)>,
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
    pub(crate) fn new(run: FleetRun) -> Book {
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
    /// `beat` is called as often as an agent wants to hear something, while that is waited for.
    pub(crate) fn put(
        &self,
        at: usize,
        host: HostRun,
        runs: Vec<Run>,
        beat: &mut dyn FnMut(),
    ) -> bool {
        self.write(beat, |state| {
            if let Some(place) = state.run.hosts.get_mut(at) {
                *place = host;
            }
            state.runs.extend(runs.into_iter().map(|run| (at, run)));
        })
    }

    /// Puts down an answer that a host has kept. Whether it is kept now. `beat` is as in [`Book::put`].
    pub(crate) fn put_collected(&self, ended: Ended, beat: &mut dyn FnMut()) -> bool {
        self.write(beat, |state| {
            let own = state.run.id == ended.order.fleet;
            let hosts = &mut state.run.hosts;
            let name = &ended.order.host;
            let at = hosts.iter().position(|host| own && host.host == *name);
            match at.and_then(|at| Some((at, hosts.get_mut(at)?))) {
                Some((at, host)) => {
                    host.take(&ended);
                    let runs = ended.runs.into_iter();
                    state.runs.extend(runs.map(|run| (at, run)));
                }
                None => state.earlier.push(ended),
            }
        })
    }

    /// Writes, and waits until it is on the disk.
    fn write(&self, beat: &mut dyn FnMut(), write: impl FnOnce(&mut State)) -> bool {
        let mut state = self.lock();
        write(&mut state);
        state.put += 1;
        let own = state.put;
        self.changed.notify_all();
        while state.kept < own && state.failed.is_none() && !state.over {
            let (next, waited) = self
                .changed
                .wait_timeout(state, BEAT)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() {
                // An agent that hears nothing for long takes the connection for lost.
                drop(state);
                beat();
                state = self.lock();
            }
        }
        state.kept >= own
    }

    /// Nothing more is put down.
    pub(crate) fn close(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// Run with all results until now.
    pub(crate) fn run(&self) -> FleetRun {
        self.lock().run.clone()
    }

    /// Reason why nothing is kept any more.
    pub(crate) fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    /// Keeps what is put down until the book is closed, and finishes it then.
    ///
    /// Each time all that is known of the run is written, which takes the longer the more hosts have
    /// answered. So it rests in between for some times as long, and takes in what comes meanwhile.
    pub(crate) fn keep_all(
        &self,
        mut ledger: Ledger,
        claim: Claim<FleetRun>,
        here: &ProcessIdentity,
    ) {
        let mut rested = Instant::now();
        loop {
            let mut state = self.lock();
            while state.kept == state.put && !state.over {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            while let Some(left) = rested.checked_duration_since(Instant::now()) {
                if state.over || left.is_zero() {
                    break;
                }
                let waited = self.changed.wait_timeout(state, left);
                (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let began = Instant::now();
            let (over, put) = (state.over, state.put);
            let mut run = state.run.clone();
            let mut runs = std::mem::take(&mut state.runs);
            let mut earlier = std::mem::take(&mut state.earlier);
            drop(state);
            let kept = keep(&mut ledger, &mut run, &mut runs, &mut earlier, here).and_then(|()| {
                if over {
                    return Ok(());
                }
                ledger.keep_work(&claim, &run)
            });
            rested = Instant::now() + (began.elapsed() * REST).min(LONGEST_REST);
            let mut state = self.lock();
            for (at, _) in &runs {
                // What they are called in the ledger.
                if let (Some(now), Some(host)) = (run.hosts.get(*at), state.run.hosts.get_mut(*at))
                {
                    host.runs.clone_from(&now.runs);
                }
            }
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
fn keep(
    ledger: &mut Ledger,
    fleet: &mut FleetRun,
    runs: &mut [(usize, Run)],
    earlier: &mut [Ended],
    here: &ProcessIdentity,
) -> ledger::Result<()> {
    for (at, run) in runs {
        let before = run.id.to_string();
        save(ledger, run)?;
        let ids = fleet.hosts.get_mut(*at).map(|host| &mut host.runs);
        for id in ids.into_iter().flatten().filter(|id| **id == before) {
            *id = run.id.to_string();
        }
    }
    let mut by_fleet: BTreeMap<&str, Vec<&Ended>> = BTreeMap::new();
    for ended in earlier.iter_mut() {
        for run in &mut ended.runs {
            save(ledger, run)?;
        }
    }
    for ended in earlier.iter() {
        by_fleet.entry(&ended.order.fleet).or_default().push(ended);
    }
    for (fleet, answers) in by_fleet {
        amend(ledger, fleet, &answers, here)?;
    }
    Ok(())
}

/// Keeps a run, under another id where another host's run has its own. The id of a run tells apart
/// the runs of one host: hosts that are alike, and begin in the same second, may give it twice.
fn save(ledger: &mut Ledger, run: &mut Run) -> ledger::Result<()> {
    let conclusion = Conclusion::of(run);
    let mut entropy = run.machine.hostname.bytes().fold(0_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    loop {
        match ledger.save(run, conclusion.verdict, &conclusion.findings) {
            Err(ledger::Error::AlreadyKept { .. }) => {}
            kept => return kept,
        }
        if ledger.load(run.id.as_str()).is_ok_and(|kept| kept == *run) {
            // It was collected twice, as when two do so at once.
            return Ok(());
        }
        entropy = entropy.wrapping_add(1);
        run.id = RunId::new(run.started, entropy);
    }
}

/// Puts late answers to the run of the fleet that they belong to, all of them at once: what is kept of
/// it has the answers of all its hosts. Where this ledger does not know it, since another did it, it is
/// begun here; where somebody is at it, each answer is kept beside it, under its own name.
fn amend(
    ledger: &mut Ledger,
    fleet: &str,
    answers: &[&Ended],
    here: &ProcessIdentity,
) -> ledger::Result<()> {
    let Some(first) = answers.first() else {
        return Ok(());
    };
    let owner = here.owner();
    let standing = |other: &Owner| here.standing(other);
    let Some(work) = ledger.work::<FleetRun>(fleet)? else {
        let mut run = alone(first);
        answers.iter().for_each(|ended| put(&mut run, ended));
        let claim = ledger.begin_work(fleet, owner, &run, standing)?;
        return ledger.finish_work(claim, &run);
    };
    let mut run = work.document;
    answers.iter().for_each(|ended| put(&mut run, ended));
    if work.summary.finished.is_some() {
        return ledger.amend_work(fleet, &run);
    }
    match ledger.claim_work::<FleetRun>(fleet, owner, standing) {
        Ok((claim, _)) => ledger.finish_work(claim, &run),
        Err(ledger::Error::Work(_)) => {
            for ended in answers {
                let mut run = alone(ended);
                put(&mut run, ended);
                let claim = ledger.begin_work(&ended.name, owner, &run, standing)?;
                ledger.finish_work(claim, &run)?;
            }
            Ok(())
        }
        Err(why) => Err(why),
    }
}

/// A run of the fleet of which nothing but an answer is known.
fn alone(ended: &Ended) -> FleetRun {
    FleetRun {
        id: ended.order.fleet.clone(),
        began: jiff::Timestamp::now(),
        kind: Kind::Run,
        args: ended.order.args.clone(),
        hosts: Vec::new(),
        race: None,
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

#[cfg(test)]
mod tests;
