//! The options of fio's command line that `bench` takes. They are put together to one job, which is run as
//! those of a job file are.

use clap::Args;

/// The workload by fio's options; their values are fio's too.
#[derive(Args, Clone, Debug, Default)]
#[group(
    id = "fio_options",
    multiple = true,
    requires = "rw",
    conflicts_with_all = [
        "suite", "phase", "workload", "fio", "replay", "threads", "depth", "block", "read_fraction",
        "span", "rate", "seconds", "precision", "engine", "buffered", "quick", "p99", "files",
        "file_size", "directories", "sync", "compressible", "dedupe",
    ]
)]
pub struct FioOptions {
    /// One job by fio's options instead of a suite: read, write, rw, randread, randwrite, randrw, trim or
    /// randtrim; as in fio --size is of each clone. Unlike fio: direct=1 and ioengine=io_uring, unless
    /// others are given, and clones are one phase
    #[arg(long, visible_alias = "readwrite", value_name = "PATTERN", help_heading = HEADING)]
    pub rw: Option<String>,
    /// The phase's name [default: the pattern]
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub name: Option<String>,
    /// Size of a request [default: 4k]
    #[arg(long, visible_alias = "blocksize", value_name = "SIZE", help_heading = HEADING)]
    pub bs: Option<String>,
    /// Several sizes and their shares: 4k/30:16k/70
    #[arg(long, value_name = "SIZE/PERCENT:…", help_heading = HEADING)]
    pub bssplit: Option<String>,
    /// Requests in flight a clone [default: 1]
    #[arg(long, value_name = "N", help_heading = HEADING)]
    pub iodepth: Option<String>,
    /// Clones, each with a thread of its own [default: 1]
    #[arg(long, value_name = "N", help_heading = HEADING)]
    pub numjobs: Option<String>,
    /// The longest that it runs: seconds, or 5m
    #[arg(long, value_name = "TIME", help_heading = HEADING)]
    pub runtime: Option<String>,
    /// Run for all of --runtime, also when --size is done
    #[arg(
        long = "time_based",
        value_name = "0|1",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        help_heading = HEADING
    )]
    pub time_based: Option<String>,
    /// Run so long before anything is counted
    #[arg(long = "ramp_time", value_name = "TIME", help_heading = HEADING)]
    pub ramp_time: Option<String>,
    /// Percentage of requests that read, of rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT", help_heading = HEADING)]
    pub rwmixread: Option<String>,
    /// Percentage of requests that write, of rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT", conflicts_with = "rwmixread", help_heading = HEADING)]
    pub rwmixwrite: Option<String>,
    /// The kernel interface, by fio's name; what is not done as it is named is told in a note
    #[arg(long, value_name = "ENGINE", help_heading = HEADING)]
    pub ioengine: Option<String>,
    /// 1 bypasses the page cache, 0 goes through it [default: 1]
    #[arg(long, value_name = "0|1", help_heading = HEADING)]
    pub direct: Option<String>,
    /// fsync(2) after so many writes
    #[arg(long, value_name = "N", help_heading = HEADING)]
    pub fsync: Option<String>,
    /// fdatasync(2) after so many writes
    #[arg(long, value_name = "N", conflicts_with = "fsync", help_heading = HEADING)]
    pub fdatasync: Option<String>,
    /// fsync(2) after the last write
    #[arg(long = "end_fsync", value_name = "0|1", help_heading = HEADING)]
    pub end_fsync: Option<String>,
    /// Requests a second of each clone at most
    #[arg(long = "rate_iops", value_name = "N", help_heading = HEADING)]
    pub rate_iops: Option<String>,
    /// Where it begins in the file or device
    #[arg(long, value_name = "SIZE", help_heading = HEADING)]
    pub offset: Option<String>,
    /// Bytes to move, where that is not --size
    #[arg(long = "io_size", value_name = "SIZE", help_heading = HEADING)]
    pub io_size: Option<String>,
    /// Odds of the places: random, zipf:THETA or pareto:H
    #[arg(long = "random_distribution", value_name = "LAW", help_heading = HEADING)]
    pub random_distribution: Option<String>,
    /// A file or device, where it shall be checked that it is the target
    #[arg(long, value_name = "PATH", help_heading = HEADING)]
    pub filename: Option<String>,
    /// 1 reports the clones as one phase, 0 each on its own [default: 1]
    #[arg(
        long = "group_reporting",
        value_name = "0|1",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        help_heading = HEADING
    )]
    pub group_reporting: Option<String>,
}

const HEADING: &str = "fio's options";

impl FioOptions {
    /// The options of the job, in fio's words, with `size` bytes where a size was given; `None` where none of
    /// these options was given.
    pub(crate) fn job(&self, size: Option<u64>) -> Option<Vec<(&'static str, String)>> {
        let rw = self.rw.as_ref()?;
        let fixed = [
            ("name", rw),
            ("direct", &"1".to_owned()),
            ("ioengine", &"io_uring".to_owned()),
            ("group_reporting", &"1".to_owned()),
        ]
        .map(|(name, value)| (name, value.clone()));
        let size = size.map(|size| size.to_string());
        let given = [
            ("rw", &self.rw),
            ("name", &self.name),
            ("bs", &self.bs),
            ("bssplit", &self.bssplit),
            ("iodepth", &self.iodepth),
            ("numjobs", &self.numjobs),
            ("runtime", &self.runtime),
            ("time_based", &self.time_based),
            ("ramp_time", &self.ramp_time),
            ("rwmixread", &self.rwmixread),
            ("rwmixwrite", &self.rwmixwrite),
            ("ioengine", &self.ioengine),
            ("direct", &self.direct),
            ("fsync", &self.fsync),
            ("fdatasync", &self.fdatasync),
            ("end_fsync", &self.end_fsync),
            ("rate_iops", &self.rate_iops),
            ("offset", &self.offset),
            ("size", &size),
            ("io_size", &self.io_size),
            ("random_distribution", &self.random_distribution),
            ("filename", &self.filename),
            ("group_reporting", &self.group_reporting),
        ];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        Some(fixed.into_iter().chain(given).collect())
    }
}
