//! The arguments of `import`, and the formats of other tools.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What `import` takes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith import fio.json bonnie.csv
  sysbench fileio --file-test-mode=rndrd run | disksmith import -

Reads fio's JSON and JSON+ (2.21 to today), what sysbench fileio prints (0.4.8 to 1.1), and
Bonnie++'s CSV (1.96 to 2.00). What a file is, is told by what it holds.")]
pub struct ImportArgs {
    /// Files that hold another tool's output, each one or more documents; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only say what would be kept
    #[arg(long)]
    pub dry_run: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The formats in which a run can be written for other tools' readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// fio's JSON+, with percentiles and buckets
    FioJson,
    /// What sysbench fileio 1.0 prints, for each phase
    Sysbench,
    /// A line of Bonnie++'s CSV, format 1.98
    Bonnie,
}

impl From<OutputFormat> for formats::Format {
    fn from(format: OutputFormat) -> formats::Format {
        match format {
            OutputFormat::FioJson => formats::Format::FioJson,
            OutputFormat::Sysbench => formats::Format::Sysbench,
            OutputFormat::Bonnie => formats::Format::Bonnie,
        }
    }
}
