//! `tally.toml`: several stores, the rules by which tags go to them, and what is switched off.
//!
//! A file is accepted whole or not at all; an error names the line.

mod document;
mod file;
mod history;
mod routes;

use crate::level::RollUpLevel;
use crate::store::StoreAddress;

pub use file::ConfigFile;
pub use routes::{RouteRule, Routes, TagPattern};

/// Name of the file beside the ledger.
pub(crate) const FILE: &str = "tally.toml";

/// A configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Names and addresses of stores.
    pub stores: Vec<(String, StoreAddress)>,
    /// Rules in order: the first that matches a tag decides; the last matches every tag.
    pub rules: Vec<RouteRule>,
    /// Parts that are switched off.
    pub off: DisabledParts,
}

/// Parts that are switched off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DisabledParts {
    /// Schemes or addresses of sources from which no events are taken.
    pub sources: Vec<String>,
    /// Levels that are not rolled up.
    pub levels: Vec<RollUpLevel>,
    /// Tags whose events are not counted: names, or prefixes followed by `*`.
    pub tags: Vec<String>,
}

impl DisabledParts {
    /// True if no events are taken from this source.
    pub fn has_source(&self, address: &str) -> bool {
        let scheme = match address.split_once("://") {
            Some((scheme, _)) => scheme,
            None if address == "-" => "stdin",
            None => "file",
        };
        self.sources
            .iter()
            .any(|off| off == scheme || off == address)
    }

    /// True if the events of this tag are not counted.
    pub fn has_tag(&self, tag: &[u8]) -> bool {
        self.tags.iter().any(|off| match off.strip_suffix('*') {
            Some(begin) => tag.starts_with(begin.as_bytes()),
            None => tag == off.as_bytes(),
        })
    }
}
