//! Options that fio has under the same name. With `--rw` or `--fio` they have fio's meaning, otherwise this program's
//! own.

use std::ops::Deref;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use domain::values::Size;

/// Values of the options [`NAMES`] with this program's own meaning, for runs without jobs of fio.
#[derive(Args, Clone, Debug, Default)]
pub struct OwnMeanings {
    /// Open loop: so many requests a second at Poisson times, whether or not earlier ones have
    /// completed; latency then counts from when a request was due. With --rw fio's: bytes a second
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// Of the suite bonnie: flush after each write, and after each file that is created or removed. With --rw
    /// fio's: 1 is O_SYNC, dsync is O_DSYNC
    #[arg(long)]
    pub sync: bool,
    /// Size of the test file in a directory [default: what can be laid out in about 15 s, from
    /// 256 MiB to 4 GiB and at most a tenth of the free space; for the suite bonnie twice the
    /// memory]. With --rw fio's
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Size>,
    /// Go through the page cache, to see what it gives. The verdict is `invalid`: no disk was
    /// measured
    #[arg(long)]
    pub buffered: bool,
}

/// The option that gives all the others fio's meaning.
pub(crate) const RW: &str = "rw";
/// The option for a job file of fio, which also gives them fio's meaning.
pub(crate) const FIO: &str = "fio";
/// The argument group of both.
pub(crate) const JOBS: &str = "jobs";
/// Names of the shared options.
pub(crate) const NAMES: [&str; 4] = ["rate", "sync", "size", "buffered"];
/// Names of the shared options that are flags here. In fio they have values.
pub(crate) const FLAGS: [&str; 2] = ["sync", "buffered"];

/// Values of the shared options; all unset for runs with jobs of fio.
#[derive(Clone, Debug, Default)]
pub struct SharedOptions {
    own: OwnMeanings,
}

impl SharedOptions {
    /// Only `--size`, if given.
    pub fn of_size(size: Option<Size>) -> SharedOptions {
        SharedOptions {
            own: OwnMeanings {
                size,
                ..OwnMeanings::default()
            },
        }
    }
}

impl Deref for SharedOptions {
    type Target = OwnMeanings;

    fn deref(&self) -> &OwnMeanings {
        &self.own
    }
}

/// The argument, changed to accept any text.
fn as_text(arg: Arg) -> Arg {
    let is_flag = FLAGS.contains(&arg.get_id().as_str());
    let arg = arg
        .action(ArgAction::Append)
        .value_parser(value_parser!(String));
    match is_flag {
        true => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("1")
            .value_name("VALUE"),
        false => arg,
    }
}

impl Args for SharedOptions {
    fn augment_args(command: Command) -> Command {
        let command = OwnMeanings::augment_args(command);
        NAMES
            .into_iter()
            .fold(command, |command, name| command.mut_arg(name, as_text))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SharedOptions {
    /// Parses the texts as this program's own options, unless they have fio's meaning.
    fn from_arg_matches(matches: &ArgMatches) -> Result<SharedOptions, clap::Error> {
        if matches.contains_id(JOBS) {
            return Ok(SharedOptions::default());
        }
        let words = NAMES.into_iter().flat_map(|name| {
            let texts = matches.get_many::<String>(name).into_iter().flatten();
            texts.map(move |text| match FLAGS.contains(&name) && text == "1" {
                true => format!("--{name}"),
                false => format!("--{name}={text}"),
            })
        });
        let command = Command::new("disksmith bench").no_binary_name(true);
        let matches = OwnMeanings::augment_args(command).try_get_matches_from(words)?;
        Ok(SharedOptions {
            own: OwnMeanings::from_arg_matches(&matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = SharedOptions::from_arg_matches(matches)?;
        Ok(())
    }
}
