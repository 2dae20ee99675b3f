//! Arguments of `rounds`, converted to those of a `bench` for each target.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::args::RoundsArgs;
use crate::host_line::{HostVerb, LineVerb, parse};
use bench::args::BenchArgs;
use bench::suite;
use domain::plan_binding::PlannedDisk;
use sweep::{Figure, reason_never_measured};
use ui::deferred::Deferred;

/// Default size of the test file in a directory: it must be the same on all hosts, so that it cannot depend on their
/// speed.
const FILE: &str = "1GiB";

/// The phases of the figures, each once, in the order of the figures.
fn phases(figures: &[Figure]) -> Vec<&str> {
    let mut phases: Vec<&str> = Vec::new();
    for figure in figures {
        if !phases.contains(&figure.phase.as_str()) {
            phases.push(&figure.phase);
        }
    }
    phases
}

/// Arguments of `bench` for a target. Only the host knows whether it is a folder.
///
/// # Errors
/// The reason, as a sentence, if the arguments are invalid.
pub(super) fn of_target(
    args: &RoundsArgs,
    target: &Path,
    is_folder: bool,
) -> Result<Box<BenchArgs>, String> {
    let mut words: Vec<OsString> = ["bench", "--no-ledger"].map(Into::into).into();
    match &args.replay {
        Some(trace) => words.extend(["--replay".into(), trace.clone().into()]),
        None => {
            let phases = phases(&args.figure).into_iter();
            words.extend(phases.map(|phase| OsString::from(format!("--phase={phase}"))));
        }
    }
    for consent in args.destroy.iter().filter(|text| names(text, target)) {
        words.extend(["--destroy".into(), consent.clone()]);
    }
    let planned = args.planned.iter().flat_map(PlannedDisk::arguments);
    words.extend(planned.map(Into::into));
    let number = |option: &str, value: Option<u32>| {
        let value = value.map(|value| format!("--{option}={value}").into());
        value.into_iter().collect::<Vec<OsString>>()
    };
    let size = |option: &str, value: Option<u64>| {
        let value = value.map(|value| format!("--{option}={value}").into());
        value.into_iter().collect::<Vec<OsString>>()
    };
    words.extend(number("threads", args.threads));
    words.extend(number("depth", args.depth));
    words.extend(size("block", args.block.map(|size| size.0.0)));
    words.extend(size("span", args.span.map(|size| size.0.0)));
    match args.size {
        Some(bytes) if is_folder => words.extend(size("size", Some(bytes.0.0))),
        None if is_folder && args.replay.is_none() => words.extend(["--size".into(), FILE.into()]),
        _ => {}
    }
    words.extend(["--".into(), target.as_os_str().to_owned()]);
    match parse(words)? {
        LineVerb::Host(HostVerb::Bench(Deferred(mut bench))) => {
            bench.replay_options = args.replay_options.clone();
            Ok(bench)
        }
        other => Err(format!("{other:?} is not a measurement")),
    }
}

/// True if a consent names this target.
fn names(consent: &OsString, target: &Path) -> bool {
    let (consent, target) = (consent.to_string_lossy(), target.to_string_lossy());
    let rest = consent.strip_prefix(target.as_ref());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// Checks everything that can be checked before any host is touched: that the phases exist and have the figures, and
/// that each consent names a target.
///
/// # Errors
/// A sentence, if something is invalid.
pub(crate) fn check(args: &RoundsArgs) -> Result<(), String> {
    let targets: &[PathBuf] = &args.target;
    for (at, target) in targets.iter().enumerate() {
        if targets[..at].contains(target) {
            return Err(format!("{} is named twice", target.display()));
        }
    }
    let is_stray = |text: &&OsString| !targets.iter().any(|target| names(text, target));
    if let Some(stray) = args.destroy.iter().find(is_stray) {
        return Err(format!(
            "--destroy names {}, which is not measured",
            stray.display()
        ));
    }
    for target in targets {
        let bench = of_target(args, target, false)?;
        if args.replay.is_some() {
            let other = args
                .figure
                .iter()
                .find(|figure| figure.phase != bench::REPLAY);
            return match other {
                Some(other) => Err(format!(
                    "with --replay there is one phase, {}, and no {}",
                    bench::REPLAY,
                    other.phase
                )),
                None => Ok(()),
            };
        }
        let (_, names) = bench.target_and_phases()?;
        let plans = suite::plan(&bench, &names)?;
        for figure in &args.figure {
            let plan = plans.iter().find(|plan| plan.name == figure.phase);
            let never = plan.and_then(|plan| reason_never_measured(figure, &plan.workload));
            never.map_or(Ok(()), Err)?;
        }
    }
    Ok(())
}

/// True if existing data is overwritten: a phase writes, and a --destroy names a target.
pub(crate) fn overwrites(args: &RoundsArgs) -> bool {
    // The trace is on the hosts: it may contain writes.
    let replay_writes = args.replay.is_some() && !args.replay_options.reads_only;
    let writes = |target: &PathBuf| {
        let plans = of_target(args, target, false).and_then(|bench| {
            let (_, names) = bench.target_and_phases()?;
            suite::plan(&bench, &names)
        });
        // Invalid arguments are refused elsewhere.
        plans.is_ok_and(|plans| plans.iter().any(|plan| plan.workload.writes()))
    };
    !args.destroy.is_empty() && (replay_writes || args.target.iter().any(writes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_line::AgentVerb;

    fn rounds_args(line: &str) -> RoundsArgs {
        let words = std::iter::once("rounds").chain(line.split(' '));
        match parse(words).unwrap() {
            LineVerb::Agent(AgentVerb::Rounds(args)) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_target_is_a_bench_of_the_phases_of_the_figures() {
        let args = rounds_args(
            "/dev/a /dev/b --figure page-write.iops --figure page-read.p99 --figure page-write.p99 \
             --destroy /dev/a=ext4 --destroy /dev/b --depth 3 --span 1m --size 8m",
        );
        let first = of_target(&args, Path::new("/dev/a"), false).unwrap();
        assert_eq!(first.phase, ["page-write", "page-read"]);
        assert_eq!(first.destroy, ["/dev/a=ext4"]);
        assert_eq!((first.depth, first.threads), (Some(3), None));
        assert!(first.shared.size.is_none() && first.span.is_some());
        let folder = of_target(&args, Path::new("/dev/b"), true).unwrap();
        assert_eq!(folder.shared.size.map(|size| size.0.0), Some(8 << 20));
        assert!(check(&args).is_ok());
    }

    #[test]
    fn only_what_is_named_and_written_is_overwritten() {
        for (line, is_lost) in [
            ("/dev/a --figure page-write.iops --destroy /dev/a", true),
            ("/dev/a --figure page-read.iops --destroy /dev/a", false),
            ("/dev/a --figure page-write.iops", false),
        ] {
            assert_eq!(overwrites(&rounds_args(line)), is_lost, "{line}");
        }
    }

    #[test]
    fn a_trace_takes_the_place_of_phases() {
        let args = rounds_args(
            "/mnt --replay /srv/db.trace --map compact --figure replay.p99 --figure replay.commit.p99",
        );
        assert!(check(&args).is_ok());
        let bench = of_target(&args, Path::new("/mnt"), true).unwrap();
        assert_eq!(bench.replay.as_deref(), Some(Path::new("/srv/db.trace")));
        assert!(bench.phase.is_empty() && bench.shared.size.is_none());
        assert!(bench.replay_options.map.is_some());
        let other = rounds_args("/mnt --replay /srv/db.trace --figure page-read.iops");
        assert!(check(&other).unwrap_err().contains("and no page-read"));
        for (line, is_lost) in [
            (
                "/dev/a --replay /t --figure replay.p99 --destroy /dev/a",
                true,
            ),
            ("/dev/a --replay /t --figure replay.p99 --reads-only", false),
            ("/dev/a --replay /t --figure replay.p99", false),
        ] {
            assert_eq!(overwrites(&rounds_args(line)), is_lost, "{line}");
        }
    }

    #[test]
    fn a_test_file_has_the_same_size_on_all_hosts() {
        let args = rounds_args("/mnt --figure page-read.iops");
        let folder = of_target(&args, Path::new("/mnt"), true).unwrap();
        assert_eq!(folder.shared.size.map(|size| size.0.0), Some(1 << 30));
    }

    #[test]
    fn options_without_sense_are_refused_before_any_host_is_touched() {
        for (line, problem) in [
            ("/a --figure dance.iops", "no phase 'dance'"),
            ("/a --figure page-read.write.p99", "writes nothing"),
            ("/a /b /a --figure page-read.iops", "/a is named twice"),
            (
                "/a --figure page-read.iops --destroy /ab",
                "--destroy names /ab",
            ),
        ] {
            let why = check(&rounds_args(line)).unwrap_err();
            assert!(why.contains(problem), "{line}: {why}");
        }
    }
}
