//! disksmith: database-grade I/O from cloud disks, with a verdict on every figure.

mod array;
mod bars;
mod bench;
mod charset;
mod cli;
mod context;
mod devices;
mod failure;
mod fleet;
mod imported;
mod keeper;
mod lab;
mod longwork;
mod mark;
mod planned;
mod reading;
mod render;
mod runs;
mod scrub;
mod shell;
mod signals;
mod sweep;
mod warm;
mod watch;
mod zero;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{Cli, Verb};
use context::Context;
use failure::{Outcome, Standing as _};

fn main() -> ExitCode {
    // clap takes DISKSMITH_LEDGER for an argument, and would complain instead of helping.
    if std::env::args_os().len() <= 1 {
        let help = Cli::command().render_help();
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{help}"));
        return ExitCode::from(2);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && cli::asks_for_check(std::env::args_os()) => {
            return ExitCode::from(watch::misused_check(&error));
        }
        // Misuse ends here with status 2, --help and --version with 0.
        Err(error) => error.exit(),
    };
    let mut context = Context::of_process(cli.ledger.named());
    failure::exit_code(run(&cli.verb, &mut context))
}

fn run(verb: &Verb, context: &mut Context) -> Outcome {
    match verb {
        Verb::Bench(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            bench::bench(args, context, &engine::Disks, &interrupt)
        }
        Verb::Devices(args) => devices::devices(args, context),
        Verb::Runs(args) => runs::runs(args, context),
        Verb::Show(args) => runs::show(args, context),
        Verb::Compare(args) => runs::compare(args, context),
        Verb::Report(args) => runs::report(args, context),
        Verb::Import(args) => imported::import(args, context),
        Verb::Array(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            array::array(args, context, &interrupt)
        }
        Verb::Sweep(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            sweep::sweep(args, context, &engine::Disks, &interrupt)
        }
        Verb::Warm(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            warm::warm(args, context, &engine::Disks, &interrupt)
        }
        Verb::Scrub(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            scrub::scrub(args, context, &interrupt)
        }
        Verb::Zero(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            zero::zero(args, context, &interrupt)
        }
        Verb::Fleet(args) => fleet::fleet(args, context),
        Verb::Agent => fleet::agent::agent(context),
        Verb::Rounds(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            fleet::rounds::rounds(args, context, &engine::Disks, &interrupt)
        }
        Verb::Look(args) => fleet::look::look(args, context),
        Verb::Watch(args) => {
            let interrupt = match watch::takes_the_terminal(args) {
                true => signals::gentle_flag(),
                false => signals::interrupt_flag(),
            };
            let interrupt = interrupt.refused()?;
            watch::watch(args, context, &interrupt)
        }
        Verb::Mark(args) => mark::mark(args, context),
        Verb::Lab(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            lab::lab(args, context, &interrupt)
        }
        Verb::Completions { shell } => shell::completions(*shell, context),
        Verb::Man { folder } => shell::man_pages(folder),
    }
}
