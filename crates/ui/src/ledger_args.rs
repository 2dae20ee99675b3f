//! The option that names the ledger, which every verb takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Arguments that name the ledger.
#[derive(Args, Debug)]
pub struct LedgerArgs {
    /// The ledger: the file that stores runs [default: in the user's state folder,
    /// root's in /var/lib/disksmith]
    #[arg(
        long = "ledger",
        value_name = "FILE",
        env = "DISKSMITH_LEDGER",
        hide_env_values = true,
        value_parser = clap::builder::OsStringValueParser::new(),
        display_order = 900,
        global = true
    )]
    path: Option<OsString>,
}

impl LedgerArgs {
    /// The file that was named. An empty value counts as none, as usual for environment variables.
    pub fn named(&self) -> Option<PathBuf> {
        let named = self.path.clone().filter(|path| !path.is_empty());
        named.map(PathBuf::from)
    }
}
