//! The arguments of `devices`.

use clap::Args;

/// Arguments of `devices`.
#[derive(Args, Debug)]
#[command(after_help = "Example: disksmith devices")]
pub struct DevicesArgs {
    /// Answer with one JSON document
    #[arg(long)]
    pub json: bool,
    /// Also list loop and RAM devices that are not in use
    #[arg(long)]
    pub all: bool,
}
