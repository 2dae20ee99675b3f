//! disksmith: database-grade I/O from cloud disks, with a verdict on every figure.

mod cli;
mod shell;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{Cli, Verb};
use fleet::host_line::HostVerb;
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
        Verb::Host(verb) => run_here(verb, context),
        Verb::Fleet(args) => fleet::fleet(args, context),
        Verb::Serve(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            serve::serve(args, context, &interrupt)
        }
        Verb::Completions { shell } => shell::completions(*shell, context),
        Verb::Man { folder, force } => shell::man_pages(folder, *force),
    }
}

/// Runs a verb that works on this host.
fn run_here(verb: &HostVerb, context: &mut Context) -> Outcome {
    match verb {
        HostVerb::Bench(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            bench::bench(args, context, &engine::Disks, &interrupt)
        }
        HostVerb::Devices(args) => devices::devices(args, context),
        HostVerb::Runs(args) => bench::runs::runs(args, context),
        HostVerb::Show(args) => bench::runs::show(args, context),
        HostVerb::Compare(args) => bench::runs::compare(args, context),
        HostVerb::Report(args) => bench::runs::report(args, context),
        HostVerb::Import(args) => bench::imported::import(args, context),
        HostVerb::Array(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            array::array(args, context, &interrupt)
        }
        HostVerb::Sweep(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            sweep::sweep(args, context, &engine::Disks, &interrupt)
        }
        HostVerb::Warm(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            warm::warm(args, context, &engine::Disks, &interrupt)
        }
        HostVerb::Scrub(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            scrub::scrub(args, context, &interrupt)
        }
        HostVerb::Zero(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            zero::zero(args, context, &interrupt)
        }
        HostVerb::Agent => fleet::agent::agent(context),
        HostVerb::Rounds(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            fleet::rounds::rounds(args, context, &engine::Disks, &interrupt)
        }
        HostVerb::Look(args) => fleet::look(args, context),
        HostVerb::Watch(args) => {
            let interrupt = match watch::takes_the_terminal(args) {
                true => ui::signals::gentle_flag(),
                false => ui::signals::interrupt_flag(),
            };
            let interrupt = interrupt.refused()?;
            watch::watch(args, context, &interrupt)
        }
        HostVerb::Replay(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            bench::replay(args, context, &engine::Disks, &interrupt)
        }
        HostVerb::Mark(args) => watch::mark::mark(args, context),
        HostVerb::Trace(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            trace::trace(args, context, &interrupt)
        }
        HostVerb::Cost(args) => cost::cost(args, context),
        HostVerb::Tally(args) => {
            let (interrupt, reload) = ui::signals::interrupt_and_reload_flags().refused()?;
            tally::tally(args, context, &interrupt, &reload)
        }
        HostVerb::Doctor(args) => doctor::doctor(args, context),
        HostVerb::Playbook(args) => doctor::playbook(args, context),
        HostVerb::Lab(args) => {
            let interrupt = ui::signals::interrupt_flag().refused()?;
            lab::command::lab(args, context, &interrupt)
        }
    }
}
