//! The verbs of one host, each with its call and with what `fleet` must know of it. A new verb is added here alone.

use std::ffi::OsString;
use std::{io, mem};

use clap::Subcommand;

use admin::args::LedgerArgs;
use array::args::{ArrayArgs, ArrayVerb};
use bench::ReplayArgs;
use bench::args::BenchArgs;
use bench::imported::args::ImportArgs;
use bench::runs::args::{CompareArgs, ReportArgs, RunsArgs, ShowArgs};
use cost::args::CostArgs;
use devices::args::DevicesArgs;
use doctor::args::{DoctorArgs, PlaybookArgs};
use engine::Disks;
use lab::args::LabArgs;
use scrub::args::ScrubArgs;
use sweep::args::SweepArgs;
use tally::args::TallyArgs;
use trace::args::TraceArgs;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure, Outcome};
use ui::signals;
use warm::args::WarmArgs;
use watch::args::WatchArgs;
use watch::mark::MarkArgs;
use zero::args::ZeroArgs;

/// Verbs that work on one host.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Measure a directory, a file or a block device, and judge the figures
    Bench(Box<BenchArgs>),
    /// List the disks, what is stacked on them, and whether they may be written
    Devices(DevicesArgs),
    /// List the runs in the ledger, or remove one
    Runs(RunsArgs),
    /// Show a run again
    Show(ShowArgs),
    /// Compare two runs, phase by phase
    Compare(CompareArgs),
    /// Draw one or more runs as an HTML page that opens offline
    Report(ReportArgs),
    /// Keep what fio, sysbench or Bonnie++ measured, to compare with it
    Import(ImportArgs),
    /// Build, list and take down arrays of disks (Linux software RAID)
    Array(ArrayArgs),
    /// Find the best layout of disks: level, members, chunk, file system, scheduler
    Sweep(Box<SweepArgs>),
    /// Read every block of a restored volume once, so that no later read waits for the snapshot
    Warm(Box<WarmArgs>),
    /// Check an array's copies and parity without slowing down the foreground
    Scrub(Box<ScrubArgs>),
    /// Write zeros over whole disks, and report slow and bad ones
    Zero(ZeroArgs),
    /// Show what the disks do and what is wrong with them
    Watch(Box<WatchArgs>),
    /// Mark a moment with a name, which all graphs over time show
    Mark(MarkArgs),
    /// Record the block I/O of a workload, look at it, and convert it
    Trace(TraceArgs),
    /// Issue the I/O of a trace again, on other disks, and compare
    Replay(Box<ReplayArgs>),
    /// Price the volumes that carry a measured workload, cheapest first
    Cost(Box<CostArgs>),
    /// Sum events exactly once into roll-ups by minute, hour, day and month, and show them
    Tally(Box<TallyArgs>),
    /// Check the host and its database against what the disks were measured to do
    Doctor(Box<DoctorArgs>),
    /// Print what to do about a finding of 'doctor'
    Playbook(PlaybookArgs),
    /// Check, compact, export or copy the ledger
    Ledger(LedgerArgs),
    /// Rehearse on virtual volumes with known truth
    Lab(LabArgs),
}

impl HostVerb {
    /// Runs it on this host.
    pub fn run(&self, context: &mut Context) -> Outcome {
        let interrupt = || signals::interrupt_flag().refused();
        match self {
            HostVerb::Bench(args) => bench::bench(args, context, &Disks, &*interrupt()?),
            HostVerb::Devices(args) => devices::devices(args, context),
            HostVerb::Runs(args) => bench::runs::runs(args, context),
            HostVerb::Show(args) => bench::runs::show(args, context),
            HostVerb::Compare(args) => bench::runs::compare(args, context),
            HostVerb::Report(args) => bench::runs::report(args, context),
            HostVerb::Import(args) => bench::imported::import(args, context),
            HostVerb::Array(args) => array::array(args, context, &*interrupt()?),
            HostVerb::Sweep(args) => sweep::sweep(args, context, &Disks, &*interrupt()?),
            HostVerb::Warm(args) => warm::warm(args, context, &Disks, &*interrupt()?),
            HostVerb::Scrub(args) => scrub::scrub(args, context, &*interrupt()?),
            HostVerb::Zero(args) => zero::zero(args, context, &*interrupt()?),
            HostVerb::Watch(args) => {
                let interrupt = match watch::takes_the_terminal(args) {
                    true => signals::gentle_flag().refused(),
                    false => interrupt(),
                };
                watch::watch(args, context, &interrupt?)
            }
            HostVerb::Mark(args) => watch::mark::mark(args, context),
            HostVerb::Trace(args) => trace::trace(args, context, &*interrupt()?),
            HostVerb::Replay(args) => bench::replay(args, context, &Disks, &*interrupt()?),
            HostVerb::Cost(args) => cost::cost(args, context),
            HostVerb::Tally(args) => {
                let (interrupt, reload) = signals::interrupt_and_reload_flags().refused()?;
                tally::tally(args, context, &interrupt, &reload)
            }
            HostVerb::Doctor(args) => doctor::doctor(args, context),
            HostVerb::Playbook(args) => doctor::playbook(args, context),
            HostVerb::Ledger(args) => admin::ledger(args, context),
            HostVerb::Lab(args) => lab::command::lab(args, context, &*interrupt()?),
        }
    }

    /// Targets that it was allowed to overwrite, and does: `fleet run` shows them and asks first.
    pub(crate) fn overwrites(&self) -> &[OsString] {
        match self {
            HostVerb::Bench(args) if bench::overwrites(args) => &args.destroy,
            HostVerb::Replay(args) if !args.options.reads_only => &args.destroy,
            HostVerb::Zero(args) if !args.dry_run => &args.destroy,
            // One that is shown or given up overwrites nothing of what is named.
            HostVerb::Sweep(args)
                if !args.dry_run && args.show.is_none() && args.abandon.is_none() =>
            {
                &args.destroy
            }
            HostVerb::Array(args) => match &args.verb {
                ArrayVerb::Create(args) if !args.dry_run => &args.destroy,
                ArrayVerb::Replace(args) if !args.dry_run => &args.destroy,
                ArrayVerb::Stop(args) if !args.dry_run => &args.destroy,
                _ => &[],
            },
            _ => &[],
        }
    }

    /// True where hosts are compared by its answer.
    pub(crate) fn is_compared(&self) -> bool {
        matches!(
            self,
            HostVerb::Bench(_) | HostVerb::Zero(_) | HostVerb::Warm(_) | HostVerb::Doctor(_)
        )
    }

    /// True where its result is worthless while another measures next to it.
    pub(crate) fn measures(&self) -> bool {
        match self {
            HostVerb::Bench(_) | HostVerb::Replay(_) => true,
            HostVerb::Sweep(args) => !args.dry_run && args.show.is_none(),
            _ => false,
        }
    }

    /// Checks by its own rules what it would overwrite, and writes nothing.
    ///
    /// # Errors
    /// As the verb itself would refuse.
    pub(crate) fn rehearse(self, context: &mut Context) -> Result<(), Failure> {
        let interrupt = signals::interrupt_flag().refused()?;
        match self {
            HostVerb::Bench(args) => bench::rehearse(&args, context, &Disks),
            HostVerb::Replay(args) => bench::rehearse(&args.bench_args(), context, &Disks),
            // These go another way, on which nothing asks whether it is a rehearsal.
            HostVerb::Sweep(args) if args.show.is_some() || args.abandon.is_some() => {
                Err(Failure::refused(
                    "a sweep that is shown or given up overwrites nothing, so there is nothing to check",
                ))
            }
            HostVerb::Sweep(mut args) => {
                args.dry_run = true;
                silently(context, |context| {
                    sweep::sweep(&args, context, &Disks, &interrupt)
                })
            }
            HostVerb::Array(mut args) => {
                match &mut args.verb {
                    ArrayVerb::Create(args) => args.dry_run = true,
                    ArrayVerb::Replace(args) => args.dry_run = true,
                    ArrayVerb::Stop(args) => args.dry_run = true,
                    ArrayVerb::List(_) => {}
                }
                silently(context, |context| array::array(&args, context, &interrupt))
            }
            // It reports all of this itself.
            other => Err(Failure::refused(format!(
                "{other:?} is checked by its own --dry-run"
            ))),
        }
    }
}

/// Runs a rehearsal without its output: only whether it would run matters here.
fn silently(
    context: &mut Context,
    rehearsal: impl FnOnce(&mut Context) -> Outcome,
) -> Result<(), Failure> {
    let out = mem::replace(&mut context.out, Box::new(io::sink()));
    let rehearsed = rehearsal(context);
    context.out = out;
    rehearsed.map(drop)
}
