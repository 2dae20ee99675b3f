//! Settings of a run: its arguments and files are validated before a network or a store is used.

use std::path::PathBuf;

use crate::args::TallyArgs;
use crate::places::{self, Stores};
use crate::source;
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// Settings of a run: stores, rejected lines and sources.
pub(crate) struct RunSettings {
    /// Stores, and the rules by which tags go to them.
    pub(crate) stores: Stores,
    /// File of rejected lines.
    pub(crate) rejected: PathBuf,
    /// Options of sources.
    pub(crate) sources: source::Options,
}

impl RunSettings {
    /// The settings in the arguments and in the files that they name.
    ///
    /// # Errors
    /// Refused if a file cannot be read or is wrong, or if options exclude each other.
    pub(crate) fn of(args: &TallyArgs, context: &Context) -> Result<RunSettings, Failure> {
        let stores = places::stores(&args.store, args.config.as_deref(), context)?;
        let (classes, zone) = (args.classes.as_ref(), args.timezone.as_ref());
        for store in stores.addresses() {
            store.check(classes, zone).map_err(places::refused)?;
        }
        let sources = source::Options {
            follow: args.follow,
            token: token(args)?,
        };
        for address in args.from.iter().filter(|address| !stores.is_off(address)) {
            address.check(&sources).refused()?;
        }
        let rejected = match &args.rejected {
            Some(path) => path.clone(),
            None => places::beside_ledger(context, "tally.rejected")?,
        };
        Ok(RunSettings {
            stores,
            rejected,
            sources,
        })
    }
}

/// The token that clients of HTTP must send.
fn token(args: &TallyArgs) -> Result<Option<String>, Failure> {
    let Some(path) = &args.token_file else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::refused(linux::remedy::unread(path, &error)))?;
    match text.trim() {
        "" => Err(Failure::refused(format!("{} has no token", path.display()))),
        token => Ok(Some(token.to_owned())),
    }
}
