//! The program whose verbs run as services.

use std::ffi::OsString;

use clap::Command;
use ui::exit::Failure;

/// The parts of a program that its configuration needs.
pub struct Program {
    /// Command line of the program, with all verbs.
    pub command: Command,
    /// Checks a command line as the start of its verb does, before it asks a network.
    pub validate: fn(&[OsString]) -> Result<(), Failure>,
}
