//! The arguments of `ledger`, `config` and `service`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `ledger`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  disksmith ledger check\n  disksmith ledger backup /backup/ledger.db"
)]
pub struct LedgerArgs {
    /// Action
    #[command(subcommand)]
    pub verb: LedgerVerb,
}

/// Actions of `ledger`.
#[derive(Debug, Subcommand)]
pub enum LedgerVerb {
    /// Read everything that the ledger holds, and name what is damaged; changes nothing
    #[command(after_help = "Example: disksmith ledger check\n\n\
                            Status 1 where something is damaged.")]
    Check {
        /// Answer with one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Give back the room of what was removed; needs as much room again meanwhile
    #[command(after_help = "Example: disksmith ledger compact")]
    Compact {
        /// Answer with one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Print runs, marks, recordings and their findings, and long work, as lines of JSON
    #[command(after_help = "Example: disksmith ledger export > ledger.jsonl\n\n\
                      Samples of recordings are printed by 'disksmith watch --at TIME --json'.")]
    Export,
    /// Copy the ledger to a new file, also while it is in use
    #[command(after_help = "Example: disksmith ledger backup /backup/ledger.db")]
    Backup {
        /// The new file
        file: PathBuf,
        /// Answer with one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Verbs that run as services.
pub(crate) const SERVICES: [&str; 4] = ["watch", "scrub", "tally", "serve"];

/// Arguments of `config`.
#[derive(Args, Debug)]
#[command(after_help = "Example: disksmith config check /etc/disksmith/watch.toml")]
pub struct ConfigArgs {
    /// Action
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// Actions of `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Check files of services, and name file, line and reason of what is wrong
    #[command(after_help = "Example: disksmith config check\n\n\
                            Status 1 where something is wrong.")]
    Check {
        /// The files: watch.toml, scrub.toml, tally.toml, serve.toml [default: those in /etc/disksmith]
        files: Vec<PathBuf>,
        /// Answer with one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `service`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example: disksmith service watch --config /etc/disksmith/watch.toml\n\n\
                  The file has the verb's options by their long names: interval = \"1s\", record = true,\n\
                  devices = [\"md0\"]. SIGHUP has it read again; 'tally' reads its routes again."
)]
pub struct ServiceArgs {
    /// The verb
    #[arg(value_parser = SERVICES)]
    pub verb: String,
    /// Its options [default: /etc/disksmith/VERB.toml, or none where that is missing]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
