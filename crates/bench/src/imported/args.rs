//! The arguments of `import`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `import`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  disksmith import fio.json bonnie.csv
  sysbench fileio --file-test-mode=rndrd run | disksmith import -

Reads fio's JSON and JSON+ (2.21 to today), what sysbench fileio prints (0.4.8 to 1.1), and
Bonnie++'s CSV (1.96 to 2.00). The format of a file is recognized by its content.")]
pub struct ImportArgs {
    /// Files that hold another tool's output, each one or more documents; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only show what would be kept
    #[arg(long)]
    pub dry_run: bool,
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
}
