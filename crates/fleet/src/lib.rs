//! `fleet`: any verb on many hosts, the race that finds the best of them, and the number of hosts to start.
//!
//! | module | contents |
//! | --- | --- |
//! | `args` | the arguments of all verbs |
//! | `disk_arguments` | arguments that name disks, and the volumes in them |
//! | `host_verb` | the verbs of one host, and what `fleet` must know of them |
//! | `host_line` | command lines that a host runs, and the checks on them |
//! | `hosts`, `reach` | sources of hosts and their selection (also the verb `hosts`); the hosts and connections that arguments ask for |
//! | `connection` | connections to hosts: OpenSSH, sessions with agents, threads |
//! | `protocol` | messages between `fleet` and its agents |
//! | `host_rates` | rates of a host and of its disks |
//! | `buffered_pipe` | output of a process, read by a thread and kept until it is taken |
//! | `agent`, `rounds`, `destroy::inspect` | the parts that run on a host |
//! | `store` | documents and answers in the ledger |
//! | `run`, `show`, `top` | the verbs `run` and `exec`, `show`, `top` |
//! | `destroy` | the verb `zero`, and the plan that is confirmed before disks of hosts are overwritten |
//! | `sort_key` | sort keys of the table of `top`, and conditions on its rows |
//! | `race`, `floor` | the race, and the floors that its hosts must reach throughout |
//! | `plan` | the verb `plan`: number of hosts to start, from past results |

mod agent;
pub mod args;
pub(crate) mod buffered_pipe;
pub(crate) mod connection;
mod destroy;
mod disk_arguments;
pub(crate) mod floor;
mod host_line;
pub(crate) mod host_rates;
mod host_verb;
pub(crate) mod hosts;
mod plan;
pub(crate) mod protocol;
pub(crate) mod race;
mod reach;
mod rounds;
pub(crate) mod run;
mod show;
pub(crate) mod sort_key;
pub(crate) mod store;
#[cfg(test)]
mod test_process;
pub(crate) mod top;

use args::{FleetArgs, FleetVerb, HostsArgs, PlanArgs};
use destroy::DestructiveVerb;
use plan::past::PastHosts;
use plan::{PlanGoals, RacePlan};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::signals;

pub use host_line::AgentVerb;
pub use host_verb::HostVerb;
pub use show::{FleetPage, document, report_page};

/// Runs a verb that `fleet` started on this host.
pub fn agent(verb: &mut AgentVerb, context: &mut Context) -> Outcome {
    match verb {
        AgentVerb::Agent => agent::agent(context),
        AgentVerb::Rounds(args) => {
            let disks = disk_arguments::with_consents(&mut args.target, &mut args.destroy);
            disk_arguments::name_disks(disks, &context.root)?;
            let interrupt = signals::interrupt_flag().refused()?;
            rounds::rounds(args, context, &engine::DiskEngine, &interrupt)
        }
        AgentVerb::Inspect(args) => destroy::inspect::inspect_disks(args, context),
    }
}

/// Runs a verb of `fleet`.
pub fn fleet(args: &FleetArgs, context: &mut Context) -> Outcome {
    let interrupt = || signals::interrupt_flag().refused();
    match &args.verb {
        FleetVerb::Hosts(args) => list(args, context),
        FleetVerb::Top(args) => top::top(args, context, &*interrupt()?),
        FleetVerb::Zero(args) => DestructiveVerb::of_zero(args)?.carry_out(context, &*interrupt()?),
        FleetVerb::Run(args) => match DestructiveVerb::of_run(args)? {
            Some(destroying) => destroying.carry_out(context, &*interrupt()?),
            None => run::run(args, context, &*interrupt()?),
        },
        FleetVerb::Exec(args) => run::exec(args, context, &*interrupt()?),
        FleetVerb::Show(args) => show::show(args, context),
        FleetVerb::Plan(args) => plan(args, context),
        FleetVerb::Race(args) => race::race(args, context, &*interrupt()?),
    }
}

/// Lists the hosts.
fn list(args: &HostsArgs, context: &mut Context) -> Outcome {
    let found = reach::find(&args.source)?;
    for one in &found.left_out {
        context.notice(one);
    }
    let answer = if args.json {
        hosts::view::json(&found)
    } else {
        hosts::view::table(&found.hosts, context.columns)
    };
    context.print(&answer)?;
    Ok(CommandEnd::Done)
}

/// Plans the number of hosts to start.
fn plan(args: &PlanArgs, context: &mut Context) -> Outcome {
    let past = PastHosts::read(&args.from, args.good.as_ref())?;
    let goals = PlanGoals {
        want: args.want as usize,
        per: args.per,
        chance: args.chance.0,
        round_s: args.round.0.0 as f64 / 1e9,
        price: args.price,
        volumes: &args.volume,
    };
    let plan = RacePlan::of(&past, &goals).map_err(Failure::refused)?;
    let answer = if args.json {
        plan::view::json(&plan, &goals, &past)
    } else {
        plan::view::text(&plan, &goals, &past, context.columns)
    };
    context.print(&answer)?;
    let enough = plan.total().is_some();
    Ok(if enough {
        CommandEnd::Done
    } else {
        CommandEnd::No
    })
}

/// The types of the documents that are printed.
#[cfg(feature = "schema")]
pub fn document_types() -> Vec<ui::schema::DocumentType> {
    use ui::schema::DocumentType;
    let mut types = host_verb::document_types();
    types.extend([
        DocumentType::of::<run::view::RunReport>("fleet exec"),
        DocumentType::of::<run::view::RunReport>("fleet run"),
        DocumentType::of::<destroy::PlanBody>("fleet run"),
        DocumentType::of::<destroy::PlanBody>("fleet zero"),
        DocumentType::of::<run::view::RunReport>("fleet zero"),
        DocumentType::of::<destroy::inspect::Disks>("look"),
        DocumentType::of::<hosts::view::HostListBody>("fleet hosts"),
        DocumentType::of::<plan::view::PlanBody>("fleet plan"),
        DocumentType::of::<race::report::RaceReport>("fleet race"),
        DocumentType::of::<race::dry_run::DryRun>("fleet race"),
        DocumentType::of::<top::view::TopReport>("fleet top"),
    ]);
    types
}
