//! The verbs of a single host, with their calls and the properties that `fleet` needs.

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
use engine::DiskEngine;
use lab::args::LabArgs;
use linux::Root;
use scrub::args::ScrubArgs;
use sweep::args::SweepArgs;
use tally::args::TallyArgs;
use trace::args::{TraceAction, TraceArgs};
use ui::context::Context;
use ui::deferred::Deferred;
use ui::exit::{ExitClass as _, Failure, Outcome};
use ui::signals;
use warm::args::WarmArgs;
use watch::args::WatchArgs;
use watch::mark::MarkArgs;
use zero::args::ZeroArgs;

use crate::disk_arguments::{self, DiskArgument, paths, with_consents};

/// Verbs that work on one host.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Measure a directory, a file or a block device, and judge the figures
    Bench(Deferred<BenchArgs>),
    /// List the disks, what is stacked on them, and whether they may be written
    Devices(Deferred<DevicesArgs>),
    /// List the runs in the ledger, or remove one
    Runs(Deferred<RunsArgs>),
    /// Show a run again
    Show(Deferred<ShowArgs>),
    /// Compare two runs, phase by phase
    Compare(Deferred<CompareArgs>),
    /// Draw one or more runs as an HTML page that opens offline
    Report(Deferred<ReportArgs>),
    /// Keep what fio, sysbench or Bonnie++ measured, to compare with it
    Import(Deferred<ImportArgs>),
    /// Build, list and take down arrays (Linux software RAID), and replace their disks
    Array(Deferred<ArrayArgs>),
    /// Find the best layout of disks: level, members, chunk, file system, scheduler
    Sweep(Deferred<SweepArgs>),
    /// Read every block of a restored volume once, so that no later read waits for the snapshot
    Warm(Deferred<WarmArgs>),
    /// Check an array's copies and parity without slowing down the foreground
    Scrub(Deferred<ScrubArgs>),
    /// Write zeros over whole disks, and report slow and bad ones
    Zero(Deferred<ZeroArgs>),
    /// Show what the disks do and what is wrong with them
    Watch(Deferred<WatchArgs>),
    /// Mark a moment with a name, which all graphs over time show
    Mark(Deferred<MarkArgs>),
    /// Record the block I/O of a workload, look at it, and convert it
    Trace(Deferred<TraceArgs>),
    /// Issue the I/O of a trace again, on other disks, and compare
    Replay(Deferred<ReplayArgs>),
    /// Price the volumes that carry a measured workload, cheapest first
    Cost(Deferred<CostArgs>),
    /// Sum events exactly once into roll-ups by minute, hour, day and month, and show them
    Tally(Deferred<TallyArgs>),
    /// Check the host and its database against what the disks were measured to do
    Doctor(Deferred<DoctorArgs>),
    /// Print what to do about a finding of 'doctor'
    Playbook(Deferred<PlaybookArgs>),
    /// Check, compact, export or copy the ledger
    Ledger(Deferred<LedgerArgs>),
    /// Run commands on virtual volumes with known truth
    Lab(Deferred<LabArgs>),
}

impl HostVerb {
    /// Runs the verb on this host.
    pub fn run(&mut self, context: &mut Context) -> Outcome {
        self.name_disks(&context.root)?;
        let interrupt = || signals::interrupt_flag().refused();
        match self {
            HostVerb::Bench(args) => bench::bench(args, context, &DiskEngine, &*interrupt()?),
            HostVerb::Devices(args) => devices::devices(args, context, &*interrupt()?),
            HostVerb::Runs(args) => bench::runs::runs(args, context),
            HostVerb::Show(args) => bench::runs::show(args, context),
            HostVerb::Compare(args) => bench::runs::compare(args, context),
            HostVerb::Report(args) => bench::runs::report(args, context),
            HostVerb::Import(args) => bench::imported::import(args, context),
            HostVerb::Array(args) => array::array(args, context, &*interrupt()?),
            HostVerb::Sweep(args) => sweep::sweep(args, context, &DiskEngine, &*interrupt()?),
            HostVerb::Warm(args) => warm::warm(args, context, &DiskEngine, &*interrupt()?),
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
            HostVerb::Replay(args) => bench::replay(args, context, &DiskEngine, &*interrupt()?),
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

    /// Performs the checks with which a verb refuses at its start as a service, without using the network.
    ///
    /// # Errors
    /// As when it starts.
    pub fn validate(&self, context: &Context) -> Result<(), Failure> {
        match self {
            HostVerb::Scrub(args) => scrub::validate(args),
            HostVerb::Tally(args) => tally::validate(args, context),
            HostVerb::Watch(args) => watch::validate(args, context),
            _ => Ok(()),
        }
    }

    /// Replaces the ids of volumes with the paths of their disks, in all arguments that name disks of this host.
    ///
    /// # Errors
    /// If a volume is not attached to this host.
    pub(crate) fn name_disks(&mut self, root: &Root) -> Result<(), Failure> {
        disk_arguments::name_disks(self.disk_arguments(), root)
    }

    /// Arguments that name disks of this host. (`watch` resolves its words itself, since they may also name devices in
    /// a recording.)
    fn disk_arguments(&mut self) -> Vec<DiskArgument<'_>> {
        match self {
            HostVerb::Bench(Deferred(args)) => {
                // A target after --phase is parsed as one of its names.
                let targets = paths(&mut args.target).chain(paths(&mut args.more_targets));
                let words = args.phase.iter_mut().chain(&mut args.destroy);
                let filenames = args.fio_options.filenames_mut().map(DiskArgument::Text);
                targets
                    .chain(words.map(DiskArgument::Word))
                    .chain(filenames)
                    .collect()
            }
            HostVerb::Replay(Deferred(args)) => with_consents(&mut args.targets, &mut args.destroy),
            HostVerb::Array(args) => match &mut args.verb {
                ArrayVerb::Create(args) => {
                    let disks = args.members.iter_mut().chain(&mut args.spares);
                    with_consents(disks, &mut args.destroy)
                }
                ArrayVerb::Replace(args) => {
                    with_consents([&mut args.member, &mut args.with], &mut args.destroy)
                }
                ArrayVerb::Stop(args) => with_consents([], &mut args.destroy),
                ArrayVerb::List(_) => Vec::new(),
            },
            HostVerb::Sweep(Deferred(args)) => with_consents(&mut args.devices, &mut args.destroy),
            HostVerb::Zero(Deferred(args)) => with_consents(&mut args.devices, &mut args.destroy),
            HostVerb::Warm(args) => paths(&mut args.devices).collect(),
            HostVerb::Scrub(args) => args.arrays.iter_mut().map(DiskArgument::Text).collect(),
            HostVerb::Trace(args) => match &mut args.action {
                TraceAction::Record(args) => paths(&mut args.devices).collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Targets that the verb may overwrite: `fleet run` shows them and asks for confirmation first.
    pub(crate) fn overwrites(&self) -> &[OsString] {
        self.effects().overwrites
    }

    /// True if hosts are compared by the verb's answer.
    pub(crate) fn is_compared(&self) -> bool {
        self.effects().is_compared
    }

    /// True if the verb's result is worthless while another process measures.
    pub(crate) fn measures(&self) -> bool {
        self.effects().measures
    }

    /// The effects of the verb. All verbs are listed, so that the compiler requires an entry for a new one.
    fn effects(&self) -> VerbEffects<'_> {
        let none = VerbEffects::default();
        let compared = VerbEffects {
            is_compared: true,
            ..none
        };
        match self {
            HostVerb::Bench(args) => VerbEffects {
                overwrites: destroyed(bench::overwrites(args), &args.destroy),
                measures: true,
                ..compared
            },
            HostVerb::Replay(args) => VerbEffects {
                overwrites: destroyed(!args.options.reads_only, &args.destroy),
                measures: true,
                ..none
            },
            // A sweep that is shown or abandoned overwrites nothing that is named.
            HostVerb::Sweep(args) => {
                let runs = !args.dry_run && args.show.is_none();
                VerbEffects {
                    overwrites: destroyed(runs && args.abandon.is_none(), &args.destroy),
                    measures: runs,
                    ..none
                }
            }
            HostVerb::Zero(args) => VerbEffects {
                overwrites: destroyed(!args.dry_run, &args.destroy),
                ..compared
            },
            HostVerb::Array(args) => VerbEffects {
                overwrites: match &args.verb {
                    ArrayVerb::Create(args) => destroyed(!args.dry_run, &args.destroy),
                    ArrayVerb::Replace(args) => destroyed(!args.dry_run, &args.destroy),
                    ArrayVerb::Stop(args) => destroyed(!args.dry_run, &args.destroy),
                    ArrayVerb::List(_) => &[],
                },
                ..none
            },
            HostVerb::Warm(_) | HostVerb::Doctor(_) => compared,
            HostVerb::Devices(_)
            | HostVerb::Runs(_)
            | HostVerb::Show(_)
            | HostVerb::Compare(_)
            | HostVerb::Report(_)
            | HostVerb::Import(_)
            | HostVerb::Scrub(_)
            | HostVerb::Watch(_)
            | HostVerb::Mark(_)
            | HostVerb::Trace(_)
            | HostVerb::Cost(_)
            | HostVerb::Tally(_)
            | HostVerb::Playbook(_)
            | HostVerb::Ledger(_)
            | HostVerb::Lab(_) => none,
        }
    }

    /// Checks by the verb's own rules what it would overwrite, without writing.
    ///
    /// # Errors
    /// Any refusal of the verb itself.
    pub(crate) fn dry_run(self, context: &mut Context) -> Result<(), Failure> {
        let interrupt = signals::interrupt_flag().refused()?;
        match self {
            HostVerb::Bench(args) => bench::dry_run(&args, context, &DiskEngine),
            HostVerb::Replay(args) => bench::dry_run(&args.bench_args(), context, &DiskEngine),
            // These do something else, without a check for a dry run.
            HostVerb::Sweep(args) if args.show.is_some() || args.abandon.is_some() => {
                Err(Failure::refused(
                    "a sweep that is shown or given up overwrites nothing, so there is nothing to check",
                ))
            }
            HostVerb::Sweep(mut args) => {
                args.dry_run = true;
                run_silently(context, |context| {
                    sweep::sweep(&args, context, &DiskEngine, &interrupt)
                })
            }
            HostVerb::Array(mut args) => {
                match &mut args.verb {
                    ArrayVerb::Create(args) => args.dry_run = true,
                    ArrayVerb::Replace(args) => args.dry_run = true,
                    ArrayVerb::Stop(args) => args.dry_run = true,
                    ArrayVerb::List(_) => {}
                }
                run_silently(context, |context| array::array(&args, context, &interrupt))
            }
            // It reports all of this itself.
            other => Err(Failure::refused(format!(
                "{other:?} is checked by its own --dry-run"
            ))),
        }
    }
}

/// Properties of a verb for `fleet`.
#[derive(Clone, Copy, Debug, Default)]
struct VerbEffects<'a> {
    /// Targets that it may overwrite.
    overwrites: &'a [OsString],
    /// True if its result is worthless while another process measures.
    measures: bool,
    /// True if hosts are compared by its answer.
    is_compared: bool,
}

/// The targets of `--destroy` if the verb overwrites any, otherwise none.
fn destroyed(overwrites: bool, targets: &[OsString]) -> &[OsString] {
    if overwrites { targets } else { &[] }
}

/// The types of the documents that the verbs print.
#[cfg(feature = "schema")]
pub(crate) fn document_types() -> Vec<ui::schema::DocumentType> {
    let verbs = [
        admin::document_types(),
        array::document_types(),
        bench::document_types(),
        cost::document_types(),
        devices::document_types(),
        doctor::document_types(),
        lab::document_types(),
        scrub::document_types(),
        sweep::document_types(),
        tally::document_types(),
        trace::document_types(),
        warm::document_types(),
        watch::document_types(),
        zero::document_types(),
    ];
    verbs.into_iter().flatten().collect()
}

/// Makes a dry run without its output: only its success matters here.
fn run_silently(
    context: &mut Context,
    dry_run: impl FnOnce(&mut Context) -> Outcome,
) -> Result<(), Failure> {
    let out = mem::replace(&mut context.out, Box::new(io::sink()));
    let outcome = dry_run(context);
    context.out = out;
    outcome.map(drop)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Arg, Command, CommandFactory as _};

    use super::*;
    use crate::host_line::{HostLine, LineVerb, parse};

    const ID: &str = "vol-0123456789abcdef0";

    /// Placeholders in the help for values that name a disk.
    const DISKS: [&str; 6] = [
        "DEVICE",
        "DEVICE,…",
        "TARGET",
        "ARRAY",
        "PATH[=SIGNATURE]",
        "PATH=SIGNATURE",
    ];

    /// Command lines in which all arguments with these placeholders name a disk.
    const LINES: [&str; 11] = [
        "bench ID --destroy ID=ext4",
        "bench --rw randread --filename ID",
        "replay a.dst ID --destroy ID=ext4",
        "array create --level 1 --members ID,ID --spares ID --destroy ID=ext4 --destroy ID",
        "array replace data --member ID --with ID --destroy ID",
        "array stop data --erase --destroy ID=linux_raid_member",
        "sweep --devices ID,ID --destroy ID=ext4 --destroy ID",
        "zero ID --destroy ID=ext4",
        "warm ID",
        "scrub --read ID",
        "trace record ID -o a.dst",
    ];

    /// Arguments with these placeholders that are resolved elsewhere, name an array, or filter the ledger.
    const ARGUMENTS_LOOKED_UP_ELSEWHERE: [&str; 4] = [
        "watch devices",
        "array stop array",
        "array replace array",
        "runs target",
    ];

    fn named(verb: &mut HostVerb) -> Vec<String> {
        let word = |argument: DiskArgument<'_>| match argument {
            DiskArgument::Word(word) => word.to_string_lossy().into_owned(),
            DiskArgument::Text(text) => text.clone(),
        };
        verb.disk_arguments().into_iter().map(word).collect()
    }

    fn add_disks(command: &Command, verb: &str, found: &mut BTreeSet<String>) {
        let is_disk = |arg: &&Arg| {
            let names = arg.get_value_names().unwrap_or_default();
            names.iter().any(|name| DISKS.contains(&name.as_str()))
        };
        let own = command.get_arguments().filter(is_disk);
        found.extend(own.map(|arg| format!("{verb}{}", arg.get_id())));
        let is_host_verb = |command: &&Command| {
            let name = command.get_name();
            !["fleet", "rounds", "look", "help"].contains(&name)
        };
        for command in command.get_subcommands().filter(is_host_verb) {
            add_disks(command, &format!("{verb}{} ", command.get_name()), found);
        }
    }

    #[test]
    fn a_volume_may_stand_wherever_a_disk_does() {
        for line in LINES {
            let words = line.replace("ID", ID);
            let verb = parse(words.split(' '));
            let Ok(LineVerb::Host(mut verb)) = verb else {
                panic!("{line}: {verb:?}");
            };
            let count = words.matches(ID).count();
            let named = named(&mut verb);
            let volumes = named.iter().filter(|word| word.starts_with(ID));
            assert_eq!(volumes.count(), count, "{line}: {named:?}");
            let root = Root::under(std::path::Path::new("/no/such"));
            let refused = verb.name_disks(&root).unwrap_err();
            assert!(refused.error().to_string().contains(ID), "{line}");
        }
        let behind_phase = format!("bench --phase page-read {ID}");
        let Ok(LineVerb::Host(mut verb)) = parse(behind_phase.split(' ')) else {
            panic!("{behind_phase}");
        };
        assert!(named(&mut verb).contains(&ID.to_owned()));
    }

    #[test]
    fn no_argument_that_names_a_disk_is_left_out() {
        let mut found = BTreeSet::new();
        let mut line = HostLine::command();
        line.build();
        add_disks(&line, "", &mut found);
        let known = [
            "bench target",
            "bench destroy",
            "replay targets",
            "replay destroy",
            "array create members",
            "array create spares",
            "array create destroy",
            "array replace member",
            "array replace with",
            "array replace destroy",
            "array stop destroy",
            "sweep devices",
            "sweep destroy",
            "zero devices",
            "zero destroy",
            "warm devices",
            "scrub arrays",
            "trace record devices",
        ];
        let known: BTreeSet<String> = known
            .iter()
            .chain(&ARGUMENTS_LOOKED_UP_ELSEWHERE)
            .map(|one| (*one).to_owned())
            .collect();
        assert_eq!(found, known);
    }
}
