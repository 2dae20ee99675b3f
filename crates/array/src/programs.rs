//! The programs that build and take down arrays, behind a trait, so that tests need no md.

use std::os::unix::fs::PermissionsExt as _;

use linux::exec::{self, Exec, ProgramOutput};

/// Runs programs.
pub trait Programs {
    /// Runs a program to its end, which must be a success.
    fn run(&mut self, program: &Exec) -> Result<ProgramOutput, exec::Error>;
    /// True if a program is on the PATH.
    fn has(&self, program: &str) -> bool;
}

/// The programs of this host.
pub struct InstalledPrograms;

impl Programs for InstalledPrograms {
    fn run(&mut self, program: &Exec) -> Result<ProgramOutput, exec::Error> {
        // Killed together with this process: a repair after a kill must find no running program. Programs that undo a
        // step are bound too, so that Ctrl-C in a terminal does not end them.
        program.clone().die_with_parent().run()
    }

    fn has(&self, program: &str) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| {
            std::fs::metadata(folder.join(program))
                .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
    }
}
