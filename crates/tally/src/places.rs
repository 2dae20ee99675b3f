//! Where stores and other files are when no argument says so, and refusals of stores.

use std::path::PathBuf;

use crate::store::{Address, StoreError};
use ui::context::Context;
use ui::exit::Failure;

/// A file beside the ledger.
pub(crate) fn beside_ledger(context: &Context, name: &str) -> Result<PathBuf, Failure> {
    Ok(context.ledger_path()?.with_file_name(name))
}

/// The stores that are named, or the default one.
pub(crate) fn stores(named: &[Address], context: &Context) -> Result<Vec<Address>, Failure> {
    match named {
        [] => Ok(vec![Address::Sqlite(beside_ledger(context, "tally.db")?)]),
        named => match (1..named.len()).find(|place| named[..*place].contains(&named[*place])) {
            Some(twice) => Err(Failure::refused(format!(
                "{} is named twice; its events would count twice",
                named[twice]
            ))),
            None => Ok(named.to_vec()),
        },
    }
}

/// A refusal of a store before anything was taken.
pub(crate) fn refused(error: StoreError) -> Failure {
    match error {
        StoreError::Unavailable(error) | StoreError::Refused(error) => Failure::Refused(error),
        StoreError::Conflict => Failure::Refused(error.into()),
    }
}
