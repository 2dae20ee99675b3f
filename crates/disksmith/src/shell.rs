//! What a shell and a manual need, from the same definitions as the command line itself.

use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use ui::context::Context;
use ui::exit::{Answer, Failure, Outcome};

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: Shell, context: &mut Context) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "disksmith", &mut script);
    context.print(&String::from_utf8_lossy(&script))?;
    Ok(Answer::Done)
}

/// Writes `disksmith.1` and a page for each verb into `folder`.
pub(crate) fn man_pages(folder: &Path) -> Outcome {
    let written = clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("the man pages could not be written to {}", folder.display()));
    written.map(|()| Answer::Done).map_err(Failure::Refused)
}
