//! Suites: their phases, and the changes that a user may make to them.

use record::{Bytes, Pattern, Workload};

use super::phase_plan::{OPEN_LOOP_DEPTH, PhasePlan, base};
use super::suites::{bonnie, curve, seek, zones};
use crate::args::BenchArgs;
use crate::contents;
use crate::suite_kind::Suite;
use domain::values::{Fraction, WorkloadText, check_rate};

/// The suite `database`.
fn database() -> Vec<PhasePlan> {
    let page = Workload {
        depth: 20,
        ..base()
    };
    let stream = Workload {
        pattern: Pattern::Sequential,
        block: Bytes::MIB,
        depth: 8,
        ..base()
    };
    [
        (
            "seek",
            Workload {
                block: Bytes::kib(4),
                ..base()
            },
        ),
        ("page-read", page.clone()),
        (
            "page-write",
            Workload {
                read_fraction: 0.0,
                ..page.clone()
            },
        ),
        (
            "page-mixed",
            Workload {
                read_fraction: 0.7,
                ..page
            },
        ),
        (
            "log-append",
            Workload {
                pattern: Pattern::Sequential,
                read_fraction: 0.0,
                block: Bytes::kib(4),
                sync_every: 1,
                ..base()
            },
        ),
        ("scan", stream.clone()),
        (
            "load",
            Workload {
                read_fraction: 0.0,
                sync_at_end: true,
                ..stream
            },
        ),
    ]
    .into_iter()
    .map(|(name, workload)| PhasePlan::new(name, workload))
    .collect()
}

/// Names of the phases of suites that know their phases before they run.
pub fn phase_names() -> Vec<String> {
    let all = database().into_iter().chain(seek::phases(false));
    all.map(|phase| phase.name).collect()
}

/// The phases that `args` request, in the suite's order, with their changes.
///
/// # Errors
/// When a phase is named that the suite does not have, or a value makes no sense.
pub fn plan(args: &BenchArgs, names: &[String]) -> Result<Vec<PhasePlan>, String> {
    check_options(args, names)?;
    let mut phases = match &args.workload {
        Some(text) => vec![own(text)],
        None => select(phases_of(args), names)?,
    };
    for phase in &mut phases {
        change(&mut phase.workload, args)?;
    }
    if let Some(data) = args.contents() {
        let writing = phases.iter_mut().filter(|phase| phase.workload.writes());
        writing.for_each(|phase| contents::set(&mut phase.workload, &data));
        phases.extend(contents::comparison(&data));
    }
    Ok(phases)
}

/// The phases of the requested suite. A suite that decides during the run what to measure gives one phase as a
/// pattern; [`suites::schedule`](super::suites::schedule) makes the others from it.
fn phases_of(args: &BenchArgs) -> Vec<PhasePlan> {
    match args.suite {
        Suite::Database => database(),
        // They lay out files of their own: `bench::suites`.
        Suite::Sysbench | Suite::Bonnie => Vec::new(),
        Suite::Seek => seek::phases(args.quick),
        Suite::Zones => vec![zones::pattern()],
        Suite::Curve => vec![curve::pattern()],
    }
}

/// Refuses options that make no sense for the suite.
pub(super) fn check_options(args: &BenchArgs, names: &[String]) -> Result<(), String> {
    let suite = args.suite;
    let refuse = |given: bool, option: &str, why: &str| match given {
        true => Err(format!(
            "{option} does not go with --suite {}: {why}",
            suite.name()
        )),
        false => Ok(()),
    };
    if args.workload.is_some() || suite != Suite::Curve {
        refuse(
            args.p99.is_some(),
            "--p99",
            "only the suite curve searches for a rate",
        )?;
    }
    if args.workload.is_some() || !matches!(suite, Suite::Sysbench | Suite::Bonnie) {
        let why = "only the suites sysbench and bonnie have sets of files";
        refuse(args.files.is_some(), "--files", why)?;
    }
    if args.workload.is_some() || suite != Suite::Bonnie {
        let why = "only the suite bonnie";
        let creates = format!("{why} creates small files");
        refuse(args.file_size.is_some(), "--file-size", &creates)?;
        refuse(args.directories.is_some(), "--directories", &creates)?;
        refuse(
            args.shared.sync,
            "--sync",
            &format!("{why} has it; a --workload takes sync=1"),
        )?;
    }
    if args.workload.is_some() {
        return Ok(());
    }
    if suite != Suite::Database {
        let why = "its data is not chosen; --workload and the suite database take it";
        let data = args.contents().is_some();
        refuse(data, "--compressible or --dedupe", why)?;
    }
    match suite {
        Suite::Database => Ok(()),
        Suite::Bonnie => bonnie::check_options(args),
        Suite::Sysbench => {
            let why = "its cells are sysbench's";
            refuse(args.shared.rate.is_some(), "--rate", why)?;
            refuse(args.depth.is_some(), "--depth", why)?;
            refuse(args.span.is_some(), "--span", why)?;
            refuse(args.read_fraction.is_some(), "--read-fraction", why)
        }
        Suite::Seek => {
            let why = "its phases differ in how many are in flight";
            refuse(
                args.depth.is_some() || args.threads.is_some(),
                "--depth or --threads",
                why,
            )?;
            refuse(args.shared.rate.is_some(), "--rate", why)
        }
        Suite::Zones => {
            let why = "each zone is read in its turn";
            refuse(!names.is_empty(), "--phase", why)?;
            refuse(args.shared.rate.is_some(), "--rate", why)?;
            refuse(args.threads.is_some(), "--threads", why)
        }
        Suite::Curve => {
            let why = "it searches for the rate itself";
            refuse(!names.is_empty(), "--phase", why)?;
            refuse(args.shared.rate.is_some(), "--rate", why)
        }
    }
}

fn select(suite: Vec<PhasePlan>, names: &[String]) -> Result<Vec<PhasePlan>, String> {
    if names.is_empty() {
        return Ok(suite);
    }
    for name in names {
        if !suite.iter().any(|phase| phase.name == *name) {
            let known: Vec<&str> = suite.iter().map(|phase| phase.name.as_str()).collect();
            return Err(format!(
                "there is no phase '{name}'; the suite has {}",
                known.join(", ")
            ));
        }
    }
    Ok(suite
        .into_iter()
        .filter(|phase| names.contains(&phase.name))
        .collect())
}

fn own(text: &WorkloadText) -> PhasePlan {
    let default = base();
    PhasePlan::new(
        "workload",
        Workload {
            pattern: text.pattern.unwrap_or(default.pattern),
            read_fraction: text.read.unwrap_or(default.read_fraction),
            block: text.block.unwrap_or(default.block),
            threads: text.threads.unwrap_or(default.threads),
            depth: text.depth.unwrap_or(match text.rate {
                Some(_) => OPEN_LOOP_DEPTH,
                None => default.depth,
            }),
            rate_per_s: text.rate,
            span: text.span,
            sync_every: text.sync.unwrap_or(0),
            ..default
        },
    )
}

fn change(workload: &mut Workload, args: &BenchArgs) -> Result<(), String> {
    if let Some(seconds) = args.seconds {
        workload.longest = seconds.0;
        workload.shortest = workload.shortest.min(seconds.0);
    }
    if let Some(precision) = args.precision {
        workload.precision = precision.0;
    }
    if let Some(threads) = args.threads {
        workload.threads = threads;
    }
    if let Some(rate) = args.shared.rate {
        check_rate(rate).map_err(|why| format!("--rate {rate}: {why}"))?;
        workload.rate_per_s = Some(rate);
        workload.depth = OPEN_LOOP_DEPTH;
    }
    if let Some(depth) = args.depth {
        workload.depth = depth;
    }
    if let Some(block) = args.block {
        workload.block = block.0;
    }
    if let Some(Fraction(fraction)) = args.read_fraction {
        // A log only appends and a scan only reads: with another share of reads they would be something else.
        if workload.pattern == Pattern::Random || args.workload.is_some() {
            workload.read_fraction = fraction;
        }
    }
    if let Some(span) = args.span {
        workload.span = Some(span.0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use record::Nanos;

    use super::*;
    use crate::args::tests::parsed;

    fn planned(arguments: &str) -> Result<Vec<PhasePlan>, String> {
        let words = ["disksmith", "bench"]
            .into_iter()
            .chain(arguments.split(' '));
        let args = parsed(words).map_err(|error| error.to_string())?;
        let (_, names) = args.target_and_phases()?;
        plan(&args, &names)
    }

    fn names(phases: &[PhasePlan]) -> Vec<&str> {
        phases.iter().map(|phase| phase.name.as_str()).collect()
    }

    #[test]
    fn data_that_compresses_is_set_where_phases_write_and_compared_at_the_end() {
        let phases = planned(". --compressible 50% --dedupe 0.25").unwrap();
        let contents = |phase: &PhasePlan| {
            let details = phase.workload.details.as_ref()?;
            details
                .contents
                .as_ref()
                .map(|data| (data.compressible, data.repeated))
        };
        let (suite, compared) = phases.split_at(phases.len() - 12);
        for phase in suite {
            let expected = phase.workload.writes().then_some((0.5, 0.25));
            assert_eq!(contents(phase), expected, "{}", phase.name);
        }
        assert_eq!(contents(&compared[0]), Some((0.5, 0.25)));
        assert_eq!(
            planned(". --compressible 0").unwrap(),
            planned(".").unwrap()
        );
        for suite in ["seek", "zones", "curve", "sysbench", "bonnie"] {
            let refused = planned(&format!(". --suite {suite} --dedupe 0.5")).unwrap_err();
            assert!(refused.contains("--dedupe"), "{refused}");
        }
        for wrong in [
            "--fio a.fio --dedupe 0.5",
            "--replay a --dedupe 1",
            "--dedupe 2",
        ] {
            assert!(planned(&format!(". {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_database_suite_is_what_the_readme_says() {
        let phases = planned(".").unwrap();
        let seen: Vec<_> = phases
            .iter()
            .map(|phase| {
                let w = &phase.workload;
                (
                    phase.name.as_str(),
                    w.read_fraction,
                    w.block,
                    w.depth,
                    w.sync_every,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("seek", 1.0, Bytes::kib(4), 1, 0),
                ("page-read", 1.0, Bytes::kib(16), 20, 0),
                ("page-write", 0.0, Bytes::kib(16), 20, 0),
                ("page-mixed", 0.7, Bytes::kib(16), 20, 0),
                ("log-append", 0.0, Bytes::kib(4), 1, 1),
                ("scan", 1.0, Bytes::MIB, 8, 0),
                ("load", 0.0, Bytes::MIB, 8, 0),
            ]
        );
        assert!(phases.last().unwrap().workload.sync_at_end);
        assert!(
            phases
                .iter()
                .all(|p| p.workload.longest == Nanos::from_secs(8))
        );
    }

    #[test]
    fn phases_are_chosen_by_name_before_and_behind_the_target() {
        for arguments in [
            ". --phase scan seek",
            ". --phase scan --phase seek",
            ". --phase seek,scan",
            "--phase scan seek .",
            "--phase=seek --phase=scan .",
        ] {
            assert_eq!(
                names(&planned(arguments).unwrap()),
                ["seek", "scan"],
                "{arguments}"
            );
        }
        let error = planned(". --phase serch").unwrap_err();
        assert!(
            error.contains("no phase 'serch'; the suite has seek,"),
            "{error}"
        );
        assert!(
            planned("--phase seek")
                .unwrap_err()
                .contains("name a target")
        );
    }

    #[test]
    fn what_the_user_gives_holds_for_every_phase() {
        let phases = planned(". --depth 3 --threads 2 --block 8k --span 1g --seconds 2s").unwrap();
        for phase in phases {
            let w = phase.workload;
            assert_eq!((w.depth, w.threads, w.block), (3, 2, Bytes::kib(8)));
            assert_eq!((w.span, w.longest), (Some(Bytes::GIB), Nanos::from_secs(2)));
            assert_eq!(w.shortest, Nanos::from_secs(2));
        }
    }

    #[test]
    fn a_read_fraction_leaves_the_log_and_the_scan_alone() {
        let phases = planned(". --read-fraction 0.5").unwrap();
        let fractions: Vec<f64> = phases.iter().map(|p| p.workload.read_fraction).collect();
        assert_eq!(fractions, [0.5, 0.5, 0.5, 0.5, 0.0, 1.0, 0.0]);
        assert!(planned(". --read-fraction 2").is_err());
    }

    #[test]
    fn a_rate_opens_the_loop_with_room_for_a_stall() {
        let phases = planned(". --phase seek --rate 5000").unwrap();
        assert_eq!(phases[0].workload.rate_per_s, Some(5000.0));
        assert_eq!(phases[0].workload.depth, 4096);
        let phases = planned(". --phase seek --rate 5000 --depth 8").unwrap();
        assert_eq!(phases[0].workload.depth, 8);
        assert!(planned(". --rate 0").is_err());
    }

    #[test]
    fn a_workload_stands_alone() {
        let phases = planned(". --workload pattern=sequential,read=0,block=4k,sync=2").unwrap();
        let w = &phases[0].workload;
        assert_eq!(
            (w.pattern, w.read_fraction, w.sync_every),
            (Pattern::Sequential, 0.0, 2)
        );
        assert!(planned(". --workload depth=1 --phase seek").is_err());
    }
}
