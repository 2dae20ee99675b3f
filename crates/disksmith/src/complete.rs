//! Completion of a command line by the shell: verbs and options from their definitions, and values from what this host
//! has: the ledger's runs, sweeps and runs on hosts, the phases of suites, disks, arrays, files, and the hosts that ssh
//! knows.
//!
//! The scripts of `disksmith completions` call the program itself with [`VARIABLE`] in its environment, so that a
//! completion knows the run that was made a moment ago.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::ValueCompleter as _;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, Shell,
};
use ledger::{Ledger, WorkSummary};
use linux::block::{BlockDeviceKind, Device, Devices};
use linux::remedy;
use linux::root::Root;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};

use crate::cli::Cli;

/// Names the shell that asks, in the environment.
const VARIABLE: &str = "DISKSMITH_COMPLETE";

/// Runs that are offered, the newest.
const RUNS: u32 = 50;

/// Answers a shell that asks for completions, and ends the process then.
pub(crate) fn answer_a_shell() {
    CompleteEnv::with_factory(with_values)
        .var(VARIABLE)
        .completer("disksmith")
        .complete();
}

/// Prints the completion script of a shell.
pub(crate) fn script(shell: Shell, context: &mut Context) -> Outcome {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    // Both lists of shells are the library's, and have the same names.
    if let Some(shell) = shells.completer(&shell.to_string()) {
        shell
            .write_registration(VARIABLE, "disksmith", "disksmith", "disksmith", &mut script)
            .refused()?;
    }
    context.print(&String::from_utf8_lossy(&script))?;
    Ok(CommandEnd::Done)
}

/// The command line, whose arguments know their values.
fn with_values() -> Command {
    let mut program = Cli::command();
    program.build();
    values_of(program)
}

fn values_of(command: Command) -> Command {
    command
        .mut_args(|arg| match Values::of(&arg) {
            Some(Values::Targets) => arg.add(ArgValueCompleter::new(targets)),
            Some(values) => arg.add(ArgValueCandidates::new(move || values.candidates())),
            None => arg,
        })
        .mut_subcommands(values_of)
}

/// Kind of values that an argument takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    Runs,
    FleetRuns,
    Sweeps,
    UnfinishedSweeps,
    Targets,
    Phases,
    Disks,
    Arrays,
    Hosts,
}

impl Values {
    /// The kind that an argument takes: by the name that its help gives the value, and where that is general, by its
    /// own.
    fn of(arg: &Arg) -> Option<Values> {
        let shown = arg.get_value_names().and_then(|names| names.first());
        match (shown.map(|name| name.as_str()), arg.get_id().as_str()) {
            // A consent names what it overwrites, up to a signature.
            (Some("DEVICE" | "DEVICE,…" | "PATH[=SIGNATURE]" | "PATH=SIGNATURE"), _) => {
                Some(Values::Disks)
            }
            (Some("ARRAY"), _) => Some(Values::Arrays),
            (Some("NODESET"), _) => Some(Values::Hosts),
            // Those that 'compare' takes are A and B.
            (Some("RUN" | "A" | "B"), _) => Some(Values::Runs),
            (Some("ID"), "run") => Some(Values::FleetRuns),
            (Some("SWEEP"), "abandon") => Some(Values::UnfinishedSweeps),
            (Some("SWEEP"), _) => Some(Values::Sweeps),
            // Lists of runs are narrowed by targets of any host, which are no paths here.
            (Some("TARGET"), _) if arg.get_value_hint() == ValueHint::AnyPath => {
                Some(Values::Targets)
            }
            (_, "phase") => Some(Values::Phases),
            _ => None,
        }
    }

    /// Values of this kind on this host. None where they cannot be read: a shell shows no errors while it completes.
    fn candidates(self) -> Vec<CompletionCandidate> {
        match self {
            Values::Runs => runs(),
            // An answer that came late is kept beside its run, by a key with a dot.
            Values::FleetRuns => works(|work| work.kind == "fleet" && !work.key.contains('.')),
            Values::Sweeps => works(is_sweep),
            Values::UnfinishedSweeps => works(|work| is_sweep(work) && work.finished.is_none()),
            Values::Targets => targets(OsStr::new("")),
            Values::Phases => bench::suite::phase_names()
                .into_iter()
                .map(CompletionCandidate::new)
                .collect(),
            Values::Disks => devices(|device| !matches!(device.kind, BlockDeviceKind::Ram)),
            Values::Arrays => devices(|device| matches!(device.kind, BlockDeviceKind::Raid { .. })),
            Values::Hosts => std::env::home_dir()
                .map(|home| hosts_of_ssh(&home.join(".ssh")))
                .unwrap_or_default()
                .into_iter()
                .map(CompletionCandidate::new)
                .collect(),
        }
    }
}

/// The ledger that the command line to complete names, or the environment, or the default one. An empty value of the
/// environment is none, as for the verbs.
fn ledger_path() -> Option<PathBuf> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let in_environment = std::env::var_os("DISKSMITH_LEDGER").filter(|path| !path.is_empty());
    let named = remedy::named_ledger(&words).or(in_environment);
    Context::of_process(named.map(PathBuf::from))
        .ledger_path()
        .ok()
}

/// True of a sweep of layouts or of volume types.
fn is_sweep(work: &WorkSummary) -> bool {
    matches!(work.kind.as_str(), "sweep" | "sweep-ec2")
}

/// The work in the ledger that is wanted, by its keys, the newest first.
fn works(is_wanted: impl Fn(&WorkSummary) -> bool) -> Vec<CompletionCandidate> {
    let works = open_ledger().and_then(|ledger| ledger.list_work(None).ok());
    let mut works = works.unwrap_or_default();
    works.retain(is_wanted);
    // Sweeps of volume types are named by their ids alone.
    let last = works.iter().any(|work| work.kind != "sweep-ec2");
    let last = last.then(|| CompletionCandidate::new("last"));
    let work = |work: &WorkSummary| {
        let state = match work.finished {
            Some(_) => "",
            None => ", not finished",
        };
        let what = format!("{}{state}", work.began);
        CompletionCandidate::new(&work.key).help(Some(what.into()))
    };
    let newest = works.iter().take(RUNS as usize);
    last.into_iter().chain(newest.map(work)).collect()
}

/// Disks, and the files and directories that a shell would complete, which begin with `word`.
fn targets(word: &OsStr) -> Vec<CompletionCandidate> {
    let begins = |candidate: &CompletionCandidate| {
        let value = candidate.get_value().as_encoded_bytes();
        value.starts_with(word.as_encoded_bytes())
    };
    let mut all = Values::Disks.candidates();
    all.retain(begins);
    let is_disk = |path: &CompletionCandidate| {
        let mut disks = all.iter();
        disks.any(|disk| disk.get_value() == path.get_value())
    };
    let mut paths = PathCompleter::any().complete(word);
    paths.retain(|path| !is_disk(path));
    all.extend(paths);
    all
}

fn open_ledger() -> Option<Ledger> {
    ledger_path().and_then(|path| Ledger::open_to_read(path).ok().flatten())
}

fn runs() -> Vec<CompletionCandidate> {
    let filter = ledger::Filter {
        limit: Some(RUNS),
        ..ledger::Filter::default()
    };
    let listed = open_ledger().and_then(|ledger| ledger.list(&filter).ok());
    let listed = listed.unwrap_or_default();
    let last = (!listed.is_empty()).then(|| CompletionCandidate::new("last"));
    let run = |run: ledger::RunSummary| {
        let what = format!(
            "{}, {} on {} of {}",
            run.started, run.suite, run.target, run.host
        );
        CompletionCandidate::new(run.id.to_string()).help(Some(what.into()))
    };
    last.into_iter()
        .chain(listed.into_iter().map(run))
        .collect()
}

fn devices(wanted: impl Fn(&Device) -> bool) -> Vec<CompletionCandidate> {
    let devices = Devices::read_without_waiting(&Root::host(), |_, _| None).unwrap_or_default();
    let candidate = |device: &Device| {
        let what = format!("{}, {}", device.title(), device.size);
        CompletionCandidate::new(device.node()).help(Some(what.into()))
    };
    let there = devices
        .iter()
        .filter(|device| !device.is_empty() && !device.hidden);
    there
        .filter(|device| wanted(device))
        .map(candidate)
        .collect()
}

/// The hosts that a user's configuration of ssh names (ssh_config(5)) and those that it has seen (sshd(8),
/// known_hosts), each once. Patterns and hashed names are none.
fn hosts_of_ssh(folder: &Path) -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let (config, known) = (read("config"), read("known_hosts"));
    let configured = config.lines().filter_map(|line| {
        let (word, rest) = line.trim().split_once([' ', '\t', '='])?;
        word.eq_ignore_ascii_case("host")
            .then(|| rest.split_whitespace())
    });
    let seen = known.lines().filter_map(|line| {
        let first = line.split_whitespace().next()?;
        let is_name = !first.starts_with(['#', '@', '|']);
        is_name.then(|| first.split(','))
    });
    let is_plain = |host: &&str| !host.contains(['*', '?', '!', '[', '"', '=']);
    let mut hosts: Vec<String> = configured
        .flatten()
        .chain(seen.flatten())
        .filter(is_plain)
        .map(str::to_owned)
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_know_their_values() {
        let command = with_values();
        let kind = |verb: &[&str], id: &str| {
            let mut at = &command;
            for word in verb {
                at = at.find_subcommand(word).unwrap();
            }
            let arg = at.get_arguments().find(|arg| arg.get_id() == id);
            Values::of(arg.unwrap())
        };
        for (verb, id, values) in [
            (&["show"][..], "run", Values::Runs),
            (&["compare"], "a", Values::Runs),
            (&["compare"], "b", Values::Runs),
            (&["report"], "runs", Values::Runs),
            (&["runs", "remove"], "runs", Values::Runs),
            (&["bench"], "phase", Values::Phases),
            (&["sweep"], "phase", Values::Phases),
            (&["watch"], "devices", Values::Disks),
            (&["warm"], "devices", Values::Disks),
            (&["zero"], "devices", Values::Disks),
            (&["sweep"], "devices", Values::Disks),
            (&["trace", "record"], "devices", Values::Disks),
            (&["array", "create"], "members", Values::Disks),
            (&["bench"], "destroy", Values::Disks),
            (&["zero"], "destroy", Values::Disks),
            (&["array", "stop"], "destroy", Values::Disks),
            (&["array", "stop"], "array", Values::Arrays),
            (&["scrub"], "arrays", Values::Arrays),
            (&["fleet", "run"], "hosts", Values::Hosts),
            (&["fleet", "show"], "run", Values::FleetRuns),
            (&["sweep"], "show", Values::Sweeps),
            (&["sweep"], "abandon", Values::UnfinishedSweeps),
            (&["bench"], "target", Values::Targets),
            (&["replay"], "targets", Values::Targets),
        ] {
            assert_eq!(kind(verb, id), Some(values), "{verb:?} {id}");
        }
    }

    #[test]
    fn hosts_are_those_that_ssh_knows_by_name() {
        let folder = tempfile::tempdir().unwrap();
        assert!(hosts_of_ssh(folder.path()).is_empty());
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "config",
            "Host db1 db2\n  User root\nHost *\n\thost=web !old db?\nHostName other\nMatch host x\n",
        );
        write(
            "known_hosts",
            "db2,10.0.0.2 ssh-ed25519 AAAA\n|1|abc|def ssh-rsa AAAA\n@revoked bad ssh-rsa AAAA\n\
             [gate]:2222 ssh-rsa AAAA\n# none\n",
        );
        assert_eq!(
            hosts_of_ssh(folder.path()),
            ["10.0.0.2", "db1", "db2", "web"]
        );
    }
}
