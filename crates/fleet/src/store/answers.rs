//! Store of the answers of hosts. A thread that adds one waits until it is on the ledger's disk: only then may
//! the host forget it.

use std::collections::BTreeMap;

use bench::conclusion::Conclusion;
use job::{CheckpointExtra, JobStore, OwnedJob, SharedJob, Takeover};
use ledger::Ledger;
use record::{Run, RunId};

use crate::hosts::Host;
use crate::protocol::{EndedVerb, HEARTBEAT_INTERVAL};
use crate::store::{FleetRun, HostRun, RunKind};

/// Answers to a run of the fleet, as its hosts give them.
pub(crate) struct AnswerStore(SharedJob<FleetRun, ReceivedAnswers>);

/// Runs and answers that go into the ledger alongside the run of the fleet.
#[derive(Default)]
struct ReceivedAnswers {
    /// Runs that hosts have measured, each with the place of its host.
    runs: Vec<(usize, Run)>,
    /// Answers to earlier runs of the fleet.
    earlier: Vec<EndedVerb>,
    /// Runs that got another id in the ledger: the place of the host, and both ids.
    renamed: Vec<(usize, String, String)>,
}

impl AnswerStore {
    /// A store for the answers to this run.
    pub(crate) fn new(run: FleetRun) -> AnswerStore {
        AnswerStore(SharedJob::new(run))
    }

    /// Puts the result of a host there, and the runs that belong to it; true where it is on the disk now.
    /// `beat` is called as often as an agent expects a message, while that is waited for.
    pub(crate) fn put(
        &self,
        place: usize,
        host: HostRun,
        runs: Vec<Run>,
        beat: &mut dyn FnMut(),
    ) -> bool {
        let change = |run: &mut FleetRun, received: &mut ReceivedAnswers| {
            if let Some(own) = run.hosts.get_mut(place) {
                *own = host;
            }
            received.add(place, runs);
        };
        self.0.change(change, HEARTBEAT_INTERVAL, beat)
    }

    /// Puts an answer there that a host has kept, as [`AnswerStore::put`] does.
    pub(crate) fn put_collected(&self, ended: EndedVerb, beat: &mut dyn FnMut()) -> bool {
        let change = |run: &mut FleetRun, received: &mut ReceivedAnswers| {
            let is_own = run.id == ended.order.fleet;
            let mut hosts = run.hosts.iter_mut().enumerate();
            let own = hosts.find(|(_, host)| is_own && host.host == ended.order.host);
            match own {
                Some((place, host)) => {
                    host.take(&ended);
                    received.add(place, ended.runs);
                }
                None => received.earlier.push(ended),
            }
        };
        self.0.change(change, HEARTBEAT_INTERVAL, beat)
    }

    /// Writes answers as they come, on the thread that calls, until the store is closed.
    pub(crate) fn write_all(&self, job: OwnedJob<FleetRun>) {
        self.0.write_all(job);
    }

    /// Ends [`AnswerStore::write_all`].
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// The run with all results until now.
    pub(crate) fn run(&self) -> FleetRun {
        self.0.checkpoint()
    }

    /// The error for which nothing is written any more, once.
    pub(crate) fn failure(&self) -> Option<ledger::Error> {
        self.0.failure()
    }
}

impl ReceivedAnswers {
    fn add(&mut self, place: usize, runs: Vec<Run>) {
        self.runs.extend(runs.into_iter().map(|run| (place, run)));
    }
}

impl CheckpointExtra<FleetRun> for ReceivedAnswers {
    fn write(&mut self, store: &mut JobStore) -> ledger::Result<()> {
        for (place, run) in &mut self.runs {
            let before = run.id.to_string();
            save(store.ledger_mut(), run)?;
            if before != run.id.as_str() {
                self.renamed.push((*place, before, run.id.to_string()));
            }
        }
        for run in self.earlier.iter_mut().flat_map(|ended| &mut ended.runs) {
            save(store.ledger_mut(), run)?;
        }
        let mut by_fleet: BTreeMap<&str, Vec<&EndedVerb>> = BTreeMap::new();
        for ended in &self.earlier {
            by_fleet.entry(&ended.order.fleet).or_default().push(ended);
        }
        for (fleet, answers) in by_fleet {
            add_late_answers(store, fleet, &answers)?;
        }
        Ok(())
    }

    fn update_checkpoint(&self, run: &mut FleetRun) {
        for (place, before, now) in &self.renamed {
            let ids = run.hosts.get_mut(*place).map(|host| &mut host.runs);
            for id in ids.into_iter().flatten().filter(|id| *id == before) {
                id.clone_from(now);
            }
        }
    }
}

/// Keeps a run, under another id where another host's run has its own. The id of a run distinguishes
/// the runs of one host: hosts that are alike, and begin in the same second, may give it twice.
fn save(ledger: &mut Ledger, run: &mut Run) -> ledger::Result<()> {
    let conclusion = Conclusion::of(run);
    let mut entropy = run.machine.hostname.bytes().fold(0_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    loop {
        match ledger.save(run, conclusion.verdict, &conclusion.findings) {
            Err(ledger::Error::AlreadySaved { .. }) => {}
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
/// begun here; where another process is at work on it, each answer is kept next to it, under its own name.
fn add_late_answers(
    store: &mut JobStore,
    fleet: &str,
    answers: &[&EndedVerb],
) -> ledger::Result<()> {
    let Some(first) = answers.first() else {
        return Ok(());
    };
    let Some(work) = store.find::<FleetRun>(fleet)? else {
        let mut run = run_of(first);
        answers.iter().for_each(|ended| put(&mut run, ended));
        return add(store, fleet, &run);
    };
    let mut run = work.document;
    answers.iter().for_each(|ended| put(&mut run, ended));
    if work.summary.finished.is_some() {
        return store.ledger_mut().amend_work(fleet, &run);
    }
    match OwnedJob::<FleetRun, _>::claim(&mut *store, fleet, Takeover::FromDead) {
        Ok((job, _)) => job.finish(&run).map(drop),
        Err(ledger::Error::Work(_)) => answers.iter().try_for_each(|ended| {
            let mut run = run_of(ended);
            put(&mut run, ended);
            add(store, &ended.name, &run)
        }),
        Err(error) => Err(error),
    }
}

/// Adds a run that is over.
fn add(store: &mut JobStore, key: &str, run: &FleetRun) -> ledger::Result<()> {
    let job = OwnedJob::begin(store, key, run, Takeover::FromDead)?;
    job.finish(run).map(drop)
}

/// A run of the fleet of which nothing but an answer is known.
fn run_of(ended: &EndedVerb) -> FleetRun {
    FleetRun {
        id: ended.order.fleet.clone(),
        began: jiff::Timestamp::now(),
        kind: RunKind::Run,
        args: ended.order.args.clone(),
        hosts: Vec::new(),
        race: None,
    }
}

/// Puts an answer to its host.
fn put(run: &mut FleetRun, ended: &EndedVerb) {
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
