//! `fleet run`: a verb on every host, with the answers in the ledger under one fleet run.

mod answer;
mod differences;
mod exec;
mod figure;
mod host;
mod progress;
mod retry;
pub(crate) mod view;

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::anyhow;
use jiff::Timestamp;
use record::RunId;

use crate::args::ReachArgs;
use crate::args::RunArgs;
use crate::connection::machines::MachineRegistry;
use crate::connection::pool::each;
use crate::host_line::check::checked;
use crate::hosts::Host;
use crate::reach::{allow_connections, find, reach};
use crate::store::answers::AnswerStore;
pub(crate) use crate::store::{FleetRun, HostOutcome, HostRun, RunKind};
pub(crate) use exec::exec;
pub(crate) use host::TimeLimits;
use host::VerbRunner;
use job::{JobStore, OwnedJob, Takeover};
use progress::ProgressNotices;
pub(crate) use retry::failed;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};

/// Name of the option to lower if a process may not have that many connections.
const BATCH: &str = "hosts at the same time (--batch)";

/// Runs a verb on every host.
pub(crate) fn run(args: &RunArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let words = checked(&args.verb, args.json)?;
    let limits = TimeLimits::of_verb(args.limit);
    if args.dry_run {
        return Err(Failure::refused(format!(
            "--dry-run shows what would be overwritten, and '{}' overwrites nothing; if the verb \
             has a --dry-run of its own, give it behind '--'",
            args.verb.join(" ")
        )));
    }
    let mut found = find(&args.source)?;
    if args.retry_failed {
        found.hosts = failed(found.hosts, (RunKind::Run, &words), context)?;
    }
    for one in &found.left_out {
        context.notice(one);
    }
    let work = HostWork {
        limits,
        ..HostWork::same_for_all(RunKind::Run, words)
    };
    let run = on_all(work, &found.hosts, &args.reach, context, interrupt)?;
    answer(&run, args.json, context, interrupt)
}

/// Work on hosts.
pub(crate) struct HostWork {
    /// Verb of `fleet`.
    pub kind: RunKind,
    /// The verb and its arguments.
    pub words: Vec<String>,
    /// Additional options of the verb for each host, by its index; empty if all hosts have the same.
    pub own: Vec<Vec<String>>,
    /// Time limits.
    pub limits: TimeLimits,
}

impl HostWork {
    /// Work with the same words on all hosts.
    pub(crate) fn same_for_all(kind: RunKind, words: Vec<String>) -> HostWork {
        HostWork {
            kind,
            words,
            own: Vec::new(),
            limits: TimeLimits::NONE,
        }
    }
}

/// Runs a verb on all of these hosts, and keeps the results in the ledger.
///
/// # Errors
/// Refused, before any host is touched, because of the ledger or the program to send; failed midway, if no thread can
/// be started.
pub(crate) fn on_all(
    work: HostWork,
    hosts: &[Host],
    reach_args: &ReachArgs,
    context: &Context,
    interrupt: &AtomicBool,
) -> Result<FleetRun, Failure> {
    let ssh = reach(reach_args)?;
    allow_connections(hosts.len().min(reach_args.batch as usize), 0, BATCH)?;
    let run = begun(work.kind, work.words, hosts);
    let job =
        OwnedJob::begin(JobStore::open(context)?, &run.id, &run, Takeover::FromDead).refused()?;
    let (fleet, args) = (run.id.clone(), run.args.clone());
    let answers = AnswerStore::new(run);
    let ordered = VerbRunner {
        transport: &ssh,
        fleet: &fleet,
        args: &args,
        program: work.kind == RunKind::Exec,
        own: &work.own,
        interrupt,
        limits: work.limits,
        lost: Mutex::default(),
        met: MachineRegistry::default(),
        answers: &answers,
    };
    let under_way = ProgressNotices::new(hosts);
    let mut number = 0;
    let done = |at: usize, host_run: HostRun| {
        number += 1;
        if context.watched {
            progress(&hosts[at].name, &host_run, number, hosts.len());
        }
    };
    let worked = thread::scope(|scope| {
        scope.spawn(|| answers.write_all(job));
        scope.spawn(|| under_way.report());
        let batch = reach_args.batch as usize;
        let work = |at: usize, host: &Host| under_way.work(at, || ordered.run_on(at, host));
        let worked =
            each(hosts, batch, work, done).and_then(|()| retry_lost(&ordered, hosts, batch));
        under_way.end();
        answers.close();
        worked
    });
    worked.midway()?;
    if let Some(why) = answers.failure() {
        context.notice(&format!(
            "disksmith: the answers are not in the ledger: {why}. What the hosts have kept of them is \
             collected by the next 'fleet run'."
        ));
    }
    Ok(answers.run())
}

/// Retries the lost hosts once.
fn retry_lost(ordered: &VerbRunner<'_>, hosts: &[Host], batch: usize) -> std::io::Result<()> {
    let lost = ordered
        .lost
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let (since, lost): (Vec<Instant>, Vec<Host>) = lost
        .into_iter()
        .filter_map(|(at, since)| Some((since, hosts.get(at)?.clone())))
        .unzip();
    let work = |at: usize, host: &Host| {
        if let Some(since) = since.get(at) {
            ordered.collect_after_loss(host, *since);
        }
    };
    each(&lost, batch, work, |_, ()| {})
}

/// Prints the results of a run, and returns its exit status.
pub(crate) fn answer(
    run: &FleetRun,
    as_json: bool,
    context: &mut Context,
    interrupt: &AtomicBool,
) -> Outcome {
    let answer = if as_json {
        view::json(run)
    } else {
        view::text(run, context.columns)
    };
    context.print(&answer)?;
    ended(run, interrupt.load(Relaxed))
}

/// The new run.
pub(crate) fn begun(kind: RunKind, args: Vec<String>, hosts: &[Host]) -> FleetRun {
    let began = Timestamp::now();
    FleetRun {
        id: RunId::new(began, u64::from(std::process::id())).to_string(),
        began,
        kind,
        args,
        hosts: hosts.iter().map(HostRun::waiting).collect(),
        race: None,
    }
}

/// Reports on standard error that a host is done.
fn progress(name: &str, host_run: &HostRun, number: usize, all: usize) {
    let line = format!("{number} of {all}: {name}: {}", host_run.outcome.name());
    let line = ui::charset::printable(&line);
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Outcome of the command: a failure if a host failed; refused if nothing was changed on any host.
fn ended(run: &FleetRun, interrupted: bool) -> Outcome {
    let is = |outcome: HostOutcome| move |host: &HostRun| host.outcome == outcome;
    let badly: Vec<&HostRun> = run
        .hosts
        .iter()
        .filter(|host| !matches!(host.outcome, HostOutcome::Done | HostOutcome::No))
        .collect();
    let summary = format!(
        "{} of {} hosts did not complete; the answer has the reason for each host",
        badly.len(),
        run.hosts.len()
    );
    if interrupted && !badly.is_empty() {
        let summary = format!("interrupted: {summary}");
        // A verb that never began has no exit status and no run time.
        let began = run.hosts.iter().any(HostRun::has_begun);
        return Err(if began {
            Failure::Midway(anyhow!(summary))
        } else {
            Failure::refused(format!("nothing was touched on any host: {summary}"))
        });
    }
    if run.hosts.iter().all(|host| host.outcome.is_untouched()) {
        return Err(Failure::refused(format!(
            "nothing was touched on any host: {summary}"
        )));
    }
    if !badly.is_empty() {
        return Err(Failure::Midway(anyhow!(summary)));
    }
    Ok(if run.hosts.iter().any(is(HostOutcome::No)) {
        CommandEnd::No
    } else {
        CommandEnd::Done
    })
}

#[cfg(test)]
mod tests;
