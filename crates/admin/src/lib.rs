//! Upkeep of what is installed: the ledger, and the configuration of services.

pub mod args;
pub mod config;
mod export;
mod ledger_file;

pub use ledger_file::ledger;
