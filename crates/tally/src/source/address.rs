//! Addresses of sources.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Source, file, stdin};

/// Address of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

/// Options of sources.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Files are read as they grow.
    pub follow: bool,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        match text.split_once("://") {
            _ if text == "-" => Ok(Address::Stdin),
            None if !text.is_empty() => Ok(Address::File(text.into())),
            Some(("file", path)) if !path.is_empty() => Ok(Address::File(path.into())),
            _ => Err(format!(
                "'{text}' is no source; write a file, or - for standard input"
            )),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Stdin => f.write_str("-"),
            Address::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Address {
    /// Opens the source.
    ///
    /// # Errors
    /// Where it cannot be had.
    pub fn open(&self, options: &Options) -> anyhow::Result<Box<dyn Source>> {
        Ok(match self {
            Address::Stdin => Box::new(stdin::Stdin::new()),
            Address::File(path) => Box::new(file::FileSource::open(path, options.follow)?),
        })
    }
}
