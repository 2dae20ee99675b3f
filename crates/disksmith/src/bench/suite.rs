//! Suites: which phases there are, and what a user may change in them.

use record::{Bytes, Nanos, Pattern, Workload};

use crate::cli::{BenchArgs, SuiteName, WorkloadText, check_rate};

/// One phase of a suite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PhasePlan {
    /// Its name.
    pub name: String,
    /// What it does.
    pub workload: Workload,
}

/// A phase ends at the earliest after this long: less shows neither burst nor wander.
const SHORTEST: Nanos = Nanos::from_secs(3);

/// What most phases have in common; each says where it differs.
fn base() -> Workload {
    Workload {
        pattern: Pattern::Random,
        read_fraction: 1.0,
        block: Bytes::kib(16),
        threads: 1,
        depth: 1,
        rate_per_s: None,
        span: None,
        sync_every: 0,
        sync_at_end: false,
        longest: Nanos::from_secs(8),
        shortest: SHORTEST,
        precision: 0.03,
        ops: None,
    }
}

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
    .map(|(name, workload)| PhasePlan {
        name: name.to_owned(),
        workload,
    })
    .collect()
}

/// The phases that `args` ask for, in the suite's order, with what `args` change in them.
///
/// # Errors
/// When a phase is named that the suite does not have, or a figure makes no sense.
pub(crate) fn plan(args: &BenchArgs, names: &[String]) -> Result<Vec<PhasePlan>, String> {
    let mut phases = match &args.workload {
        Some(text) => vec![own(text)],
        None => {
            let SuiteName::Database = args.suite;
            select(database(), names)?
        }
    };
    for phase in &mut phases {
        change(&mut phase.workload, args)?;
    }
    Ok(phases)
}

/// The name of the suite that `args` ask for, as the ledger keeps it.
pub(crate) fn name(args: &BenchArgs) -> &'static str {
    if args.workload.is_some() {
        "workload"
    } else {
        args.suite.word()
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
    PhasePlan {
        name: "workload".to_owned(),
        workload: Workload {
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
    }
}

/// An open loop must not run out of slots when the disk stalls: then its requests would wait in
/// line here, which is timed too, but the disk would see fewer of them than it would in life.
const OPEN_LOOP_DEPTH: u32 = 4096;

fn change(workload: &mut Workload, args: &BenchArgs) -> Result<(), String> {
    workload.longest = args.seconds.0;
    workload.shortest = SHORTEST.min(args.seconds.0);
    workload.precision = args.precision.0;
    if let Some(threads) = args.threads {
        workload.threads = threads;
    }
    if let Some(rate) = args.rate {
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
    if let Some(fraction) = args.read_fraction {
        if !(0.0..=1.0).contains(&fraction) {
            return Err(format!(
                "--read-fraction {fraction} is not a share from 0 to 1"
            ));
        }
        // A log only appends and a scan only reads: with another share they would be neither.
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
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser as _;

    fn planned(arguments: &str) -> Result<Vec<PhasePlan>, String> {
        let words = ["disksmith", "bench"]
            .into_iter()
            .chain(arguments.split(' '));
        let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        let Verb::Bench(args) = cli.verb else {
            panic!("not bench")
        };
        let (_, names) = args.target_and_phases()?;
        plan(&args, &names)
    }

    fn names(phases: &[PhasePlan]) -> Vec<&str> {
        phases.iter().map(|phase| phase.name.as_str()).collect()
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
