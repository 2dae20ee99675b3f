//! The program whose verbs run as services.

use std::ffi::OsString;

use clap::Command;
use ui::exit::Failure;

/// A program, as far as its configuration concerns it.
pub struct Program {
    /// Its command line, with all verbs.
    pub command: Command,
    /// Checks a command line as the start of its verb does, before it asks a network.
    pub validate: fn(&[OsString]) -> Result<(), Failure>,
}
