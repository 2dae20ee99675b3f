//! disksmith: database-grade I/O from cloud disks, with a verdict on every figure.

mod cli;
mod devices;
mod fleet;
mod lab;
mod mark;
mod shell;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{Cli, Verb};
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Outcome};

fn main() -> ExitCode {
    // Without the handler such a write ends the process, as it would without this.
    let _ = ui::signals::survive_the_limit_of_files();
    // clap takes DISKSMITH_LEDGER for an argument, and would complain instead of helping.
    if std::env::args_os().len() <= 1 {
        let help = Cli::command().render_help();
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{help}"));
        return ExitCode::from(2);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && watch::args::asks_for_check(std::env::args_os()) => {
            return ExitCode::from(watch::misused_check(&error));
        }
        // Misuse ends here with status 2.
        Err(error) if error.use_stderr() => error.exit(),
        Err(help) => {
            return ui::exit::exit_code(ui::context::print_help(&help).map(|()| Answer::Done));
        }
    };
    let mut context = Context::of_process(cli.ledger.named());
    ui::exit::exit_code(run(&cli.verb, &mut context))
}

fn run(verb: &Verb, context: &mut Context) -> Outcome {
    match verb {
        Verb::Bench(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            bench::bench(args, context, &engine::Disks, &interrupt)
        }
        Verb::Devices(args) => devices::devices(args, context),
        Verb::Runs(args) => bench::runs::runs(args, context),
        Verb::Show(args) => bench::runs::show(args, context),
        Verb::Compare(args) => bench::runs::compare(args, context),
        Verb::Report(args) => bench::runs::report(args, context),
        Verb::Import(args) => bench::imported::import(args, context),
        Verb::Array(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            array::array(args, context, &interrupt)
        }
        Verb::Sweep(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            sweep::sweep(args, context, &engine::Disks, &interrupt)
        }
        Verb::Warm(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            warm::warm(args, context, &engine::Disks, &interrupt)
        }
        Verb::Scrub(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            scrub::scrub(args, context, &interrupt)
        }
        Verb::Zero(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            zero::zero(args, context, &interrupt)
        }
        Verb::Fleet(args) => fleet::fleet(args, context),
        Verb::Agent => fleet::agent::agent(context),
        Verb::Rounds(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            fleet::rounds::rounds(args, context, &engine::Disks, &interrupt)
        }
        Verb::Look(args) => fleet::look::look(args, context),
        Verb::Watch(args) => {
            let interrupt = match watch::takes_the_terminal(args) {
                true => ui::signals::gentle_flag(),
                false => ui::signals::interrupt_flag(),
            };
            let interrupt = interrupt.refused()?;
            watch::watch(args, context, &interrupt)
        }
        Verb::Mark(args) => mark::mark(args, context),
        Verb::Lab(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            lab::lab(args, context, &interrupt)
        }
        Verb::Completions { shell } => shell::completions(*shell, context),
        Verb::Man { folder, force } => shell::man_pages(folder, *force),
    }
}
