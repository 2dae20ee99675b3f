//! disksmith: database-grade I/O from cloud disks, with a verdict on every figure.

mod cli;
mod complete;
mod man;
mod service;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Verb};
use service::Service;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};

fn main() -> ExitCode {
    complete::answer_a_shell();
    // Without the handler such a write ends the process, as it would without this.
    let _ = ui::signals::survive_the_limit_of_files();
    let mut cli = match Cli::try_parse_from(bench::with_two_dashes(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && watch::args::asks_for_check(std::env::args_os()) => {
            return ExitCode::from(watch::misused_check(&error));
        }
        Err(error) if error.use_stderr() => {
            ui::context::print_misuse(&error);
            return ExitCode::from(2);
        }
        Err(help) => {
            return ui::exit::exit_code(ui::context::print_help(&help).map(|()| CommandEnd::Done));
        }
    };
    let mut context = Context::of_process(cli.ledger.named());
    // An agent is started by no person.
    if !matches!(cli.verb, Verb::Agent(_))
        && let Some(sentence) = linux::kernel::reservation(&context.root)
    {
        context.notice(&format!("disksmith: {sentence}"));
    }
    ui::exit::exit_code(run(&mut cli.verb, &mut context))
}

/// Runs a verb.
fn run(verb: &mut Verb, context: &mut Context) -> Outcome {
    match verb {
        Verb::Host(verb) => verb.run(context),
        Verb::Agent(verb) => fleet::agent(verb, context),
        Verb::Fleet(args) => fleet::fleet(args, context),
        Verb::Serve(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            serve::serve(args, context, &interrupt)
        }
        Verb::Config(args) => admin::config::config(args, &service::program(), context),
        Verb::Service(args) => {
            let mut service = Service::begin(args)?;
            let mut context = Context::of_process(service.cli.ledger.named());
            let outcome = run(&mut service.cli.verb, &mut context)?;
            service.end(outcome)
        }
        Verb::Completions { shell } => complete::script(*shell, context),
        Verb::Man { folder, force } => man::man_pages(folder, *force),
    }
}
