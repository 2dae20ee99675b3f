//! The option that names the ledger, which every verb takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Arguments that name the ledger.
#[derive(Args, Debug)]
pub struct LedgerArgs {
    /// The ledger: the file that stores runs [default: in the user's state folder,
    /// root's in /var/lib/disksmith] [env: DISKSMITH_LEDGER]
    #[arg(
        long = "ledger",
        value_name = "FILE",
        value_parser = clap::builder::OsStringValueParser::new(),
        display_order = 900,
        global = true
    )]
    path: Option<OsString>,
}

impl LedgerArgs {
    /// The file that was named, here or in the environment. An empty value counts as none, as usual for environment
    /// variables.
    pub fn named(&self) -> Option<PathBuf> {
        // clap would take a value of the environment for an argument, and show it in the usage of an error.
        let in_environment = || std::env::var_os("DISKSMITH_LEDGER");
        let named = self.path.clone().or_else(in_environment);
        named.filter(|path| !path.is_empty()).map(PathBuf::from)
    }
}
