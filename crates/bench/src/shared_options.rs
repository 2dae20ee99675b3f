//! Options that fio has under the same name. With `--rw` or `--fio` they are fio's, and otherwise this program's own.

use std::ops::Deref;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use domain::values::Size;

/// This program's own options of [`NAMES`], which are given without jobs of fio.
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

/// The option by which all others are fio's.
pub(crate) const RW: &str = "rw";
/// The option for a job file of fio, beside which they are fio's too.
pub(crate) const FIO: &str = "fio";
/// The group of both.
pub(crate) const JOBS: &str = "jobs";
/// The options.
pub(crate) const NAMES: [&str; 4] = ["rate", "sync", "size", "buffered"];
/// Names of the options that are flags of this program's own. In fio they have values.
pub(crate) const FLAGS: [&str; 2] = ["sync", "buffered"];

/// The options, of which none is given beside jobs of fio.
#[derive(Clone, Debug, Default)]
pub struct SharedOptions {
    own: OwnMeanings,
}

impl SharedOptions {
    /// None but `--size`, where there is one.
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

/// The argument as one that takes any text.
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
    /// Reads the texts as this program's own options, unless they are fio's.
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
