//! Man pages, from the same definitions as the command line itself.

use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::Cli;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};
use ui::output::{MAN_PAGE_MARK, OutputFile, OutputFormat};

/// Writes `disksmith.1` and a page for each verb into `folder`; all of them, or none where one may not be
/// replaced.
pub(crate) fn man_pages(folder: &Path, force: bool) -> Outcome {
    let mut pages = Vec::new();
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    render(&program, &mut pages).refused()?;
    let outputs: Vec<OutputFile> = pages
        .iter()
        .map(|(name, _)| OutputFile::check(&folder.join(name), OutputFormat::ManPage, force))
        .collect::<Result<_, _>>()?;
    let prepared: Vec<_> = outputs
        .iter()
        .zip(&pages)
        .map(|(output, (_, page))| output.prepare(page))
        .collect::<Result<_, _>>()
        .midway()?;
    for page in prepared {
        page.put().midway()?;
    }
    Ok(CommandEnd::Done)
}

/// Renders the page of a command, and those of its verbs: the name of the file, and its content.
fn render(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> anyhow::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        render(verb, pages)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = format!("{MAN_PAGE_MARK}\n").into_bytes();
    page.render(&mut text)?;
    pages.push((page.get_filename(), text));
    Ok(())
}
