//! Default paths of stores and other files, and refusals of stores.

use std::path::{Path, PathBuf};

use crate::config::{self, Config, ConfigFile};
use crate::source;
use crate::store::{StoreAddress, StoreError};
use ui::context::Context;
use ui::exit::{ExitClass as _, Failure};

/// A file beside the ledger.
pub(crate) fn beside_ledger(context: &Context, name: &str) -> Result<PathBuf, Failure> {
    Ok(context.ledger_path()?.with_file_name(name))
}

/// Stores from arguments, or from a configuration.
pub(crate) enum Stores {
    Named(Vec<StoreAddress>),
    Configured(ConfigFile, Config),
}

impl Stores {
    /// Addresses of all stores.
    pub(crate) fn addresses(&self) -> Vec<StoreAddress> {
        match self {
            Stores::Named(stores) => stores.clone(),
            Stores::Configured(_, config) => config
                .stores
                .iter()
                .map(|(_, store)| store.clone())
                .collect(),
        }
    }

    /// True of a source that the configuration switches off.
    pub(crate) fn is_off(&self, source: &source::SourceAddress) -> bool {
        match self {
            Stores::Named(_) => false,
            Stores::Configured(_, config) => config.off.has_source(&source.to_string()),
        }
    }
}

/// The stores that are named or configured, or the default one.
pub(crate) fn stores(
    named: &[StoreAddress],
    config: Option<&Path>,
    context: &Context,
) -> Result<Stores, Failure> {
    let path = match config {
        Some(path) => Some(path.to_owned()),
        None if named.is_empty() => {
            Some(beside_ledger(context, config::FILE)?).filter(|path| path.exists())
        }
        None => None,
    };
    match path {
        Some(path) => {
            let file = ConfigFile::new(&path, &beside_ledger(context, "tally.routes")?);
            let config = file.read().refused()?;
            Ok(Stores::Configured(file, config))
        }
        None => named_stores(named, context).map(Stores::Named),
    }
}

fn named_stores(named: &[StoreAddress], context: &Context) -> Result<Vec<StoreAddress>, Failure> {
    match named {
        [] => Ok(vec![StoreAddress::Sqlite(beside_ledger(
            context, "tally.db",
        )?)]),
        named => match (1..named.len()).find(|place| named[..*place].contains(&named[*place])) {
            Some(twice) => Err(Failure::refused(format!(
                "{} is named twice; its events would count twice",
                named[twice]
            ))),
            None => Ok(named.to_vec()),
        },
    }
}

/// The failure for a store that is refused before any events were taken.
pub(crate) fn refused(error: StoreError) -> Failure {
    match error {
        StoreError::Unavailable(error) | StoreError::Refused(error) => Failure::Refused(error),
        StoreError::Conflict => Failure::Refused(error.into()),
    }
}
