//! Store of the answers of hosts. A thread that adds an answer waits until it is on the ledger's disk: only then may
//! the host delete it.

use std::collections::BTreeMap;

use bench::conclusion::Conclusion;
use job::{CheckpointExtra, JobStore, OwnedJob, SharedJob, Takeover};
use ledger::Ledger;
use record::{Run, RunId};

use crate::hosts::Host;
use crate::protocol::{EndedVerb, HEARTBEAT_INTERVAL};
use crate::store::{FleetRun, HostRun, RunKind};

/// Answers to a fleet run, as its hosts send them.
pub(crate) struct AnswerStore(SharedJob<FleetRun, ReceivedAnswers>);

/// Runs and answers that are written to the ledger together with the fleet run.
#[derive(Default)]
struct ReceivedAnswers {
    /// Runs measured by hosts, each with the index of its host.
    runs: Vec<(usize, Run)>,
    /// Answers to earlier runs of the fleet.
    earlier: Vec<EndedVerb>,
    /// Runs that got another id in the ledger: the index of the host, and both ids.
    renamed: Vec<(usize, String, String)>,
}

impl AnswerStore {
    /// A store for the answers to this run.
    pub(crate) fn new(run: FleetRun) -> AnswerStore {
        AnswerStore(SharedJob::new(run))
    }

    /// Adds the result of a host, with its runs; true if it is on the disk. During the wait, `beat` is called as often
    /// as an agent expects a message.
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

    /// Adds a kept answer of a host, like [`AnswerStore::put`].
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

    /// Writes answers as they arrive, on the calling thread, until the store is closed.
    pub(crate) fn write_all(&self, job: OwnedJob<FleetRun>) {
        self.0.write_all(job);
    }

    /// Ends [`AnswerStore::write_all`].
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// The run with all results so far.
    pub(crate) fn run(&self) -> FleetRun {
        self.0.checkpoint()
    }

    /// The error because of which nothing more is written; returned once.
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

/// Keeps a run, under another id if another host's run has the same. Ids are unique on one host: similar hosts that
/// start in the same second may choose the same one.
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
            // It was collected twice, by two processes at once.
            return Ok(());
        }
        entropy = entropy.wrapping_add(1);
        run.id = RunId::new(run.started, entropy);
    }
}

/// Adds late answers to their fleet run, all of them at once: the job of the run has the answers of all its hosts. If
/// this ledger does not have the run, since another ledger does, it is created; if another process works on it, each
/// answer is stored beside it, under its own name.
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

/// A fleet run with only one known answer.
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

/// Adds an answer to its host.
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
