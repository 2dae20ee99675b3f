//! The options of fio that `bench` takes: those of its jobs, as job files have them, and those of its command line.
//! They make jobs that are run like those of a job file, or add to a job file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, value_parser};
use fiojob::{COMMAND_OPTIONS, OPTIONS, OptionRow};

use crate::shared_options::{self, FIO, JOBS, RW};

/// The workload in fio's options, with fio's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FioOptions {
    /// Options by their main names, in the order in which they were given; empty without `rw` or a job file.
    given: Vec<(&'static str, String)>,
}

/// This program's own options that choose the work and are replaced by fio's options.
const CONFLICTING_OPTIONS: [&str; 17] = [
    "suite",
    "phase",
    "workload",
    "replay",
    "threads",
    "depth",
    "block",
    "read_fraction",
    "span",
    "seconds",
    "precision",
    "engine",
    "quick",
    "p99",
    "files",
    "file_size",
    "directories",
];

const HEADING: &str = "fio's options";

/// Options that the help lists: name, placeholder of the value, and help.
const LISTED_OPTIONS: &[(&str, &str, &str)] = &[
    (
        RW,
        "PATTERN",
        "One job by fio's options instead of a suite: read, write, rw, randread, randwrite, randrw, trim or randtrim; \
         as in fio --size is of each clone. Unlike fio: direct=1 and ioengine=io_uring, unless others are given, and \
         clones are one phase. All options of fio's jobs are taken, also those that are not listed here: docs/fio.md",
    ),
    (
        "name",
        "NAME",
        "The phase's name; another one begins another job, as in fio [default: the pattern]",
    ),
    ("bs", "SIZE", "Size of a request [default: 4k]"),
    (
        "bssplit",
        "SIZE/PERCENT:…",
        "Several sizes and their shares: 4k/30:16k/70",
    ),
    ("iodepth", "N", "Requests in flight a clone [default: 1]"),
    (
        "numjobs",
        "N",
        "Clones, each with a thread of its own [default: 1]",
    ),
    (
        "runtime",
        "TIME",
        "The longest that it runs: seconds, or 5m",
    ),
    (
        "time_based",
        "0|1",
        "Run for all of --runtime, also when --size is done",
    ),
    (
        "ramp_time",
        "TIME",
        "Run so long before anything is counted",
    ),
    (
        "rwmixread",
        "PERCENT",
        "Percentage of requests that read, of rw and randrw [default: 50]",
    ),
    (
        "rwmixwrite",
        "PERCENT",
        "Percentage of requests that write, of rw and randrw [default: 50]",
    ),
    (
        "ioengine",
        "ENGINE",
        "The I/O interface, by fio's name; a note says where another one is used",
    ),
    (
        "direct",
        "0|1",
        "1 bypasses the page cache, 0 goes through it [default: 1]",
    ),
    ("fsync", "N", "fsync(2) after so many writes"),
    ("fdatasync", "N", "fdatasync(2) after so many writes"),
    ("end_fsync", "0|1", "fsync(2) after the last write"),
    ("rate_iops", "N", "Requests a second of each clone at most"),
    ("offset", "SIZE", "Where it begins in the file or device"),
    ("io_size", "SIZE", "Bytes to transfer, if not --size"),
    (
        "random_distribution",
        "LAW",
        "Distribution of the offsets: random, zipf:THETA or pareto:H",
    ),
    (
        "filename",
        "PATH",
        "A file or device: the target, if none is given; otherwise it must be the same",
    ),
    (
        "directory",
        "PATH",
        "A directory: the target, if none is given; otherwise it must be the same",
    ),
    (
        "verify",
        "SUM",
        "Check what was written: crc32c, or pattern with --verify_pattern",
    ),
    (
        "group_reporting",
        "0|1",
        "1 reports the clones as one phase, 0 each on its own [default: 1]",
    ),
];

/// Rows of the options that are given as in a job file. `threads` is no option of fio, only a spelling of `thread` in
/// job files, and here it is this program's own.
fn rows() -> impl Iterator<Item = &'static OptionRow> {
    let of_jobs = OPTIONS.iter().filter(|row| row.name != "threads");
    of_jobs.chain(COMMAND_OPTIONS)
}

/// The words of a command line in which each option of fio after the verb `bench` has two dashes. fio also accepts one
/// dash, as getopt_long_only(3) does, and command lines like `fio -filename=/dev/sdb -direct=1 -iodepth 32` are in
/// wide use.
pub fn with_two_dashes(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let options = words.len() - words.get(1..).and_then(behind_bench).map_or(0, <[_]>::len);
    for word in &mut words[options..] {
        if let Some(text) = word.to_str().filter(|text| has_one_dash(text)) {
            *word = format!("-{text}").into();
        }
    }
    words
}

/// The words after the verb `bench` in a command line without its program name: `bench`, `fleet run bench`, and
/// `bench` in a machine of `lab`.
fn behind_bench(words: &[OsString]) -> Option<&[OsString]> {
    let (verb, words) = next_word(words)?;
    if verb == "bench" {
        return Some(words);
    }
    let at = words.iter().position(|word| word == "--")?;
    let behind = &words[at + 1..];
    match verb.to_str()? {
        "fleet" if next_word(words)?.0 == "run" => behind_bench(behind),
        "lab" => match Path::new(behind.first()?).file_name()? {
            program if program == "disksmith" => behind_bench(&behind[1..]),
            _ => None,
        },
        _ => None,
    }
}

/// The first word that is neither an option nor the value of `--ledger`, which every verb accepts, and the words after
/// it.
fn next_word(words: &[OsString]) -> Option<(&OsString, &[OsString])> {
    let (first, rest) = words.split_first()?;
    match first.to_str() {
        Some("--ledger") => next_word(rest.get(1..)?),
        Some(option) if option.starts_with('-') => next_word(rest),
        _ => Some((first, rest)),
    }
}

/// True for a word such as `-rw=read` or `-thread`.
fn has_one_dash(word: &str) -> bool {
    let name = word
        .strip_prefix('-')
        .and_then(|text| text.split('=').next());
    name.is_some_and(|name| {
        name.len() > 1 && rows().any(|row| row.name == name || row.aliases.contains(&name))
    })
}

/// The argument for a row.
fn argument(row: &'static OptionRow) -> Arg {
    let arg = Arg::new(row.name)
        .long(row.name)
        .action(ArgAction::Append)
        .value_parser(value_parser!(String))
        .help_heading(HEADING);
    let arg = match row.is_switch() {
        true => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("1"),
        false => arg,
    };
    let arg = match LISTED_OPTIONS.iter().find(|(name, ..)| *name == row.name) {
        Some((_, value, help)) => arg
            .value_name(value)
            .help(help)
            .visible_aliases(row.aliases.iter().copied()),
        None => arg.hide(true).aliases(row.aliases.iter().copied()),
    };
    match row.name {
        RW => arg.conflicts_with_all(CONFLICTING_OPTIONS),
        "output-format" => arg
            .requires(JOBS)
            .conflicts_with_all(["json", "format"])
            .value_parser(PossibleValuesParser::new(["normal", "json", "json+"])),
        _ => arg.requires(JOBS),
    }
}

impl Args for FioOptions {
    fn augment_args(command: Command) -> Command {
        // The help has them in the order of their list.
        let place = |row: &&OptionRow| {
            LISTED_OPTIONS
                .iter()
                .position(|(name, ..)| *name == row.name)
        };
        let mut rows: Vec<&'static OptionRow> = rows()
            .filter(|row| !shared_options::NAMES.contains(&row.name))
            .collect();
        rows.sort_by_key(|row| place(row).unwrap_or(usize::MAX));
        let jobs = ArgGroup::new(JOBS).args([RW, FIO]).multiple(true);
        command.args(rows.into_iter().map(argument)).group(jobs)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for FioOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<FioOptions, clap::Error> {
        if !matches.contains_id(JOBS) {
            return Ok(FioOptions::default());
        }
        let mut found: Vec<(usize, &'static str, String)> = Vec::new();
        for row in rows() {
            let texts = matches.get_many::<String>(row.name).into_iter().flatten();
            let places = matches.indices_of(row.name).into_iter().flatten();
            found.extend(
                places
                    .zip(texts)
                    .map(|(at, text)| (at, row.name, text.clone())),
            );
        }
        found.sort_by_key(|(at, ..)| *at);
        let given = found.into_iter().map(|(_, name, text)| (name, text));
        Ok(FioOptions {
            given: given.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = FioOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl FioOptions {
    /// True if no option is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// All given options, in the order of the command line.
    pub(crate) fn given(&self) -> &[(&'static str, String)] {
        &self.given
    }

    /// The last value of an option.
    fn value(&self, name: &str) -> Option<&str> {
        let mut given = self.given.iter().rev();
        given
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Names of files or devices, for replacement in place. In a directory they are names of files only.
    pub fn filenames_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let in_directory = self.value("directory").is_some();
        let named =
            move |(name, _): &&mut (&'static str, String)| *name == "filename" && !in_directory;
        self.given.iter_mut().filter(named).map(|(_, text)| text)
    }

    /// The job options as fio's names and values, with `more` before the given ones; `None` if none is given.
    pub(crate) fn job(
        &self,
        more: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Option<Vec<(&'static str, String)>> {
        let rw = self.value(RW)?;
        let fixed = [
            ("direct", "1"),
            ("ioengine", "io_uring"),
            ("group_reporting", "1"),
        ]
        .map(|(name, value)| (name, value.to_owned()));
        // Without a `--name`, all options belong to the one job that begins here.
        let named = self.value("name").is_none();
        let name = named.then(|| ("name", rw.to_owned()));
        let all = fixed.into_iter().chain(more);
        Some(all.chain(self.given.iter().cloned()).chain(name).collect())
    }

    /// The file, device or directory that fio would use: the one that `filename` names, or the directory in which fio
    /// would create it.
    pub(crate) fn target(&self) -> Option<PathBuf> {
        let directory = self.value("directory").map(PathBuf::from);
        let names = self
            .value("filename")
            .and_then(|names| fiojob::filenames(names).ok());
        let Some(name) = names.and_then(|names| names.into_iter().next()) else {
            return directory;
        };
        let path = match &directory {
            Some(directory) => directory.join(name),
            None => PathBuf::from(name),
        };
        if path.exists() {
            return Some(path);
        }
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        Some(parent.unwrap_or(Path::new(".")).to_path_buf())
    }

    /// True if fio's JSON is requested.
    pub(crate) fn wants_json(&self) -> bool {
        self.value("output-format")
            .is_some_and(|format| format.starts_with("json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::parsed;

    fn of(line: &str) -> Result<FioOptions, String> {
        let words = ["disksmith", "bench"].into_iter().chain(line.split(' '));
        match parsed(words) {
            Ok(args) => Ok(args.fio_options),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_option_of_a_job_and_of_fio_is_a_flag_by_each_of_its_names() {
        for row in rows().filter(|row| row.name != RW && row.name != "output-format") {
            for name in row.aliases.iter().chain([&row.name]) {
                let words = if shared_options::FLAGS.contains(&row.name) || row.is_switch() {
                    vec![format!("--{name}"), format!("--{name}=1")]
                } else {
                    vec![format!("--{name} 1"), format!("--{name}=1")]
                };
                for word in words {
                    let options = of(&format!(". --rw read {word}")).unwrap();
                    assert_eq!(options.value(row.name), Some("1"), "{word}");
                }
            }
        }
        for (name, ..) in LISTED_OPTIONS {
            assert!(rows().any(|row| row.name == *name), "{name}");
        }
    }

    #[test]
    fn options_of_fio_may_have_one_dash() {
        let two = |line: &str| {
            let words = with_two_dashes(line.split(' ').map(OsString::from));
            let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
            words.join(" ")
        };
        assert_eq!(
            two(
                "disksmith bench -filename=/dev/sdb -direct 1 -thread -rw=randrw --bs=16k -name=mytest"
            ),
            "disksmith bench --filename=/dev/sdb --direct 1 --thread --rw=randrw --bs=16k --name=mytest"
        );
        for (line, expected) in [
            (
                "disksmith --ledger l bench . -rw=read",
                "disksmith --ledger l bench . --rw=read",
            ),
            (
                "disksmith fleet --ledger l run --hosts a -- bench . -rw=read",
                "disksmith fleet --ledger l run --hosts a -- bench . --rw=read",
            ),
            (
                "disksmith lab run -- /bin/disksmith bench . -rw=read",
                "disksmith lab run -- /bin/disksmith bench . --rw=read",
            ),
        ] {
            assert_eq!(two(line), expected);
        }
        for kept in [
            "disksmith",
            "disksmith --ledger",
            "disksmith fleet exec --hosts a -- find bench -name x",
            "disksmith fleet run --hosts bench -- watch -name x",
            "disksmith lab run -- find bench -name x",
            "disksmith --ledger bench warm . -rw=read",
            "disksmith bench -h . -",
            "disksmith bench --rw=read -x=1 -1",
            "disksmith warm -rw=read",
        ] {
            assert_eq!(two(kept), kept);
        }
    }

    #[test]
    fn options_keep_their_order_and_without_a_name_are_all_of_one_job() {
        let job = |line: &str| -> Vec<String> {
            let options = of(line)
                .unwrap()
                .job([("dedupe_percentage", "50".to_owned())]);
            let words = options.unwrap().into_iter();
            words
                .map(|(name, value)| format!("{name}={value}"))
                .collect()
        };
        assert_eq!(
            job(". --bs 8k --rw=randread --time_based --rate=1m --bs=4k")[3..],
            [
                "dedupe_percentage=50",
                "bs=8k",
                "rw=randread",
                "time_based=1",
                "rate=1m",
                "bs=4k",
                "name=randread"
            ]
        );
        assert_eq!(
            job(". --name a --rw read --name b --rw write")[4..],
            ["name=a", "rw=read", "name=b", "rw=write"]
        );
        assert_eq!(of(". --rate 5").unwrap().job([]), None);
        for (line, expected) in [
            (". --bs 4k", "--rw <PATTERN>"),
            (". --rw read --depth 3", "--depth"),
            (". --rw read --threads 3", "--threads"),
            (". --rw read --output-format terse", "json+"),
            (
                ". --rate 1m",
                "invalid value '1m' for '--rate <PER_SECOND>'",
            ),
            (". --sync=dsync", "--sync"),
        ] {
            let said = of(line).unwrap_err();
            assert!(said.contains(expected), "{line}: {said}");
        }
    }

    #[test]
    fn the_target_is_where_fio_would_read_and_write() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display();
        std::fs::write(folder.path().join("there"), "data").unwrap();
        let target = |options: &str| of(&format!("--rw read {options}")).unwrap().target();
        let at = |name: &str| Some(folder.path().join(name));
        assert_eq!(target(&format!("--directory {here}")), at(""));
        assert_eq!(target(&format!("--filename={here}/there")), at("there"));
        let both = format!("--directory {here} --filename there:other");
        assert_eq!(target(&both), at("there"));
        assert_eq!(target(&format!("--filename={here}/gone")), at(""));
        assert_eq!(target("--filename gone"), Some(PathBuf::from(".")));
        assert!(of("--rw read").is_err());
    }
}
