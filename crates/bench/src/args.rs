//! The arguments of `bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{ArgGroup, Args, ValueEnum};
use engine::IoInterface;
use record::{Contents, Nanos};

pub use crate::fio_options::FioOptions;
pub use crate::shared_options::SharedOptions;
use crate::suite_kind::Suite;
use crate::views::formatted::AnswerFormat;
use domain::plan_binding::PlannedDisk;
use domain::values::{FileSizes, Fraction, Latency, Percent, Size, Span, WorkloadText};
use replay::ReplayOptions;

/// The latency of which the suite `curve` looks for the rate, unless another is given.
pub(crate) const P99_TARGET: Nanos = Nanos(10_000_000);

/// Arguments of `bench`.
#[derive(Args, Debug, Default)]
#[command(group = ArgGroup::new("outputs").multiple(true))]
#[command(after_help = "Examples:
  disksmith bench .
  disksmith bench /data --phase page-read --phase log-append --json
  disksmith bench /dev/nvme1n1 --workload pattern=random,read=1,block=16k,depth=64
  disksmith bench /data --phase page-read --rate 5000
  disksmith bench /dev/nvme1n1 --suite zones --report zones.html
  disksmith bench /data --suite curve --p99 10ms
  disksmith bench /data --suite bonnie --size 64g --sync
  disksmith bench /data --fio nightly.fio
  disksmith bench /data --rw randread --bs 16k --iodepth 32 --numjobs 4 --size 4g --runtime 30
  disksmith bench /data --format csv --logs /tmp/run1
  disksmith bench /data --replay mysql.trace --pace dependencies
  disksmith bench /dev/nvme1n1 --destroy /dev/nvme1n1=ext4")]
pub struct BenchArgs {
    /// A directory, a file or a block device. In a directory, files are laid out and removed
    /// again; a file or a device is only read, unless --destroy names it
    #[arg(required_unless_present_any = ["phase", "filename", "directory"])]
    pub target: Option<PathBuf>,

    /// The phases to run, as a suite
    #[arg(long, value_enum, default_value_t = Suite::Database, conflicts_with = "workload")]
    pub suite: Suite,
    /// Only these phases of the suite
    #[arg(
        long,
        value_name = "NAME",
        num_args = 1..,
        value_delimiter = ',',
        conflicts_with = "workload"
    )]
    pub phase: Vec<OsString>,
    /// One workload of your own, such as pattern=random,read=0.7,block=16k,threads=1,depth=20
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub workload: Option<WorkloadText>,

    /// A job file of fio to run instead of a suite; docs/fio.md lists what is supported. As in fio, fio's options
    /// beside it apply where the file does not set them
    #[arg(
        long,
        value_name = "JOB.fio",
        conflicts_with_all = [
            "suite", "phase", "workload", "threads", "depth", "block", "read_fraction", "span",
            "seconds", "precision", "engine", "quick", "p99", "files", "file_size", "directories",
            "compressible", "dedupe",
        ]
    )]
    pub fio: Option<PathBuf>,
    /// One job by fio's own options
    #[command(flatten)]
    pub fio_options: FioOptions,

    /// A trace of 'trace record', or of another tool, to replay instead of a suite; docs/replay.md says how
    #[arg(
        long,
        value_name = "TRACE",
        conflicts_with_all = [
            "suite", "phase", "workload", "fio", "threads", "block", "read_fraction", "span", "rate",
            "seconds", "precision", "buffered", "quick", "p99", "files", "file_size", "directories",
            "sync", "dedupe",
        ]
    )]
    pub replay: Option<PathBuf>,
    /// Pace, speed and map of a replay
    #[command(flatten)]
    pub replay_options: ReplayOptions,
    /// Targets of the trace's other devices, beside the first
    #[arg(skip)]
    pub more_targets: Vec<PathBuf>,

    /// Threads that issue I/O, in every phase
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Requests in flight a thread, in every phase; with --rate the most that may be
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub depth: Option<u32>,
    /// Size of a request, in every phase
    #[arg(long, value_name = "SIZE")]
    pub block: Option<Size>,
    /// Share of requests that read (0.7 or 70%), in every phase that is not a log or a scan
    #[arg(long, value_name = "FRACTION")]
    pub read_fraction: Option<Fraction>,
    /// Use only this much of the target, from its start
    #[arg(long, value_name = "SIZE")]
    pub span: Option<Size>,
    /// Share of writes whose data is that of the write before, such as 0.5; as with --compressible, such data and
    /// random data are written in turn at the end, to see whether the target is faster with such data
    #[arg(long, value_name = "FRACTION")]
    pub dedupe: Option<Fraction>,
    /// Options whose names fio has too
    #[command(flatten)]
    pub shared: SharedOptions,

    /// A phase ends at the latest after this long [default: 8s, or what the suite says]
    #[arg(long, value_name = "DURATION")]
    pub seconds: Option<Span>,
    /// A phase ends when the 95 % interval of its IOPS is within this; 0 never ends it early
    /// [default: 3%, or what the suite says]
    #[arg(long, value_name = "PERCENT")]
    pub precision: Option<Percent>,
    /// Phases that a suite measures for a given time end when they are precise, too
    #[arg(long)]
    pub quick: bool,
    /// Of the suite sysbench: one set of so many files, with --size in all [default: the grid of
    /// 1 of 128 MiB, 128 of 1 MiB and 128 of 16 MiB]. Of the suite bonnie: so many small files are
    /// created [default: 16384]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub files: Option<u32>,
    /// Of the suite bonnie: small files of this size, or of sizes between two such as 1k-64k
    /// [default: 0]
    #[arg(long, value_name = "SIZE[-SIZE]")]
    pub file_size: Option<FileSizes>,
    /// Of the suite bonnie: the small files are spread over so many directories [default: none of
    /// their own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub directories: Option<u32>,
    /// Of the suite curve: the target of the p99 latency [default: 10ms]
    #[arg(long, value_name = "LATENCY")]
    pub p99: Option<Latency>,

    /// Allow this file or device to be overwritten. What it carries must be named too: PATH=ext4
    #[arg(long, value_name = "PATH[=SIGNATURE]")]
    pub destroy: Vec<OsString>,
    /// A disk of a plan: another one under its name is refused. 'fleet' says it
    #[arg(long, value_name = "JSON", hide = true)]
    pub planned: Vec<PlannedDisk>,
    /// I/O engine [default: io_uring, or threads where it is refused]
    #[arg(long, value_enum)]
    pub engine: Option<EngineChoice>,
    /// Seed of the random numbers, by which a run can be repeated
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Answer in CSV, or in another tool's format for its readers
    #[arg(long, value_parser = AnswerFormat::parser(), conflicts_with = "json")]
    pub format: Option<AnswerFormat>,
    /// Also write the windows as logs of fio, for fio-plot and spreadsheets: of each phase N
    /// PREFIX_iops.N.log, PREFIX_bw.N.log (KiB/s) and PREFIX_lat.N.log (ns)
    #[arg(long, value_name = "PREFIX", group = "outputs")]
    pub logs: Option<PathBuf>,
    /// Also write a page with plots, which opens offline
    #[arg(long, value_name = "FILE.html", group = "outputs")]
    pub report: Option<PathBuf>,
    /// With --report: replace a file that is not a report of disksmith. With --logs: replace logs
    #[arg(long, requires = "outputs")]
    pub force: bool,
    /// Do not keep the run in the ledger
    #[arg(long)]
    pub no_ledger: bool,
}

impl BenchArgs {
    /// The target and the names of the phases. `--phase` takes several names, so a target given after it is parsed as
    /// one more name; here it is separated from them.
    ///
    /// # Errors
    /// When there is no target, or a phase name is not UTF-8.
    pub fn target_and_phases(&self) -> Result<(PathBuf, Vec<String>), String> {
        let mut names = self.phase.clone();
        let target = match &self.target {
            Some(target) => target.clone(),
            None if names.len() > 1 => names.pop().map(PathBuf::from).unwrap_or_default(),
            None => self
                .fio_options
                .target()
                .ok_or("name a target: a directory, a file or a block device")?,
        };
        let names = names
            .into_iter()
            .map(|name| {
                name.into_string()
                    .map_err(|name| format!("there is no phase {}", name.display()))
            })
            .collect::<Result<_, _>>()?;
        Ok((target, names))
    }

    /// True if jobs of fio are run instead of a suite.
    pub(crate) fn has_jobs(&self) -> bool {
        self.fio.is_some() || !self.fio_options.is_empty()
    }

    /// The options of the jobs that fio's options make, in their order; `None` if no such option was given.
    pub(crate) fn fio_job(&self) -> Option<Vec<(&'static str, String)>> {
        let percent = |share: f64| format!("{:.0}", 100.0 * share);
        let shares = [
            (
                "buffer_compress_percentage",
                self.replay_options.compressible,
            ),
            ("dedupe_percentage", self.dedupe.map(|share| share.0)),
        ];
        let shares = shares
            .into_iter()
            .filter_map(|(name, share)| Some((name, percent(share?))));
        self.fio_options.job(shares)
    }

    /// The data that a suite's phases write; `None` for random data.
    pub(crate) fn contents(&self) -> Option<Contents> {
        let compressible = self.replay_options.compressible.unwrap_or(0.0);
        let repeated = self.dedupe.map_or(0.0, |share| share.0);
        let is_shaped = self.replay.is_none() && (compressible > 0.0 || repeated > 0.0);
        is_shaped.then(|| Contents {
            compressible,
            repeated,
            ..Contents::default()
        })
    }

    /// The output format for other programs that the arguments request; `None` for the default output.
    pub(crate) fn answer_format(&self) -> Option<AnswerFormat> {
        let of_fio = AnswerFormat::Tool(formats::Format::FioJson);
        let wants_json = self.fio_options.wants_json();
        self.format.or(wants_json.then_some(of_fio))
    }

    /// Name of the requested suite in the ledger.
    pub(crate) fn suite_name(&self) -> &'static str {
        if self.replay.is_some() {
            "replay"
        } else if self.has_jobs() {
            "fio"
        } else if self.workload.is_some() {
            "workload"
        } else {
            self.suite.name()
        }
    }

    /// p99 latency target of the suite `curve`; `None` for other suites.
    pub(crate) fn p99_target(&self) -> Option<Nanos> {
        let curve = self.suite == Suite::Curve
            && [
                self.workload.is_none(),
                !self.has_jobs(),
                self.replay.is_none(),
            ] == [true; 3];
        curve.then(|| self.p99.map_or(P99_TARGET, |p99| p99.0))
    }

    /// The I/O interface that is requested.
    pub(crate) fn interface(&self) -> IoInterface {
        match self.engine {
            None => IoInterface::Auto,
            Some(EngineChoice::Uring) => IoInterface::Uring,
            Some(EngineChoice::Sync) => IoInterface::Sync,
        }
    }
}

impl ValueEnum for Suite {
    fn value_variants<'a>() -> &'a [Suite] {
        &Suite::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.help()))
    }
}

/// I/O engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// io_uring
    Uring,
    /// A thread for each request in flight, with pread and pwrite
    Sync,
}

#[cfg(test)]
pub(crate) mod tests {
    use clap::{Parser, Subcommand};

    use super::BenchArgs;

    /// A parser with the arguments of this verb alone, for tests.
    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        verb: Verb,
    }

    #[derive(Subcommand)]
    enum Verb {
        Bench(Box<BenchArgs>),
    }

    /// The arguments of a command line, `disksmith bench ...`.
    pub(crate) fn parsed<'a>(
        words: impl IntoIterator<Item = &'a str>,
    ) -> Result<BenchArgs, clap::Error> {
        let Verb::Bench(args) = Program::try_parse_from(words)?.verb;
        Ok(*args)
    }
}
