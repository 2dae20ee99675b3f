//! `fleet`: many hosts at once. Which they are, what they do, any verb on all of them, how many to
//! start, and which to keep.
//!
//! | module | what |
//! | --- | --- |
//! | `hosts` | which hosts |
//! | `link` | the way to a host: OpenSSH, or what a test puts in its place |
//! | `talk` | what is said on that way |
//! | `known` | what a host says of itself |
//! | `session` | a conversation with the agent on a host |
//! | `agent` | what runs on a host |
//! | `rounds` | what measures there, round by round |
//! | `pool` | many hosts at the same time |
//! | `run`, `zero`, `top` | the verbs that are done on the hosts |
//! | `destroy`, `disks`, `agree` | what is overwritten: one plan of all hosts, and the question |
//! | `look` | what a host says for such a plan |
//! | `race` | which hosts to keep |
//! | `setup`, `floor` | how a race is set up |
//! | `past`, `plan` | how many hosts to start |

pub mod agent;
mod agree;
#[cfg(test)]
mod alone;
pub mod args;
mod destroy;
mod disks;
pub(crate) mod floor;
pub mod host_line;
pub(crate) mod hosts;
mod known;
mod link;
pub mod look;
mod past;
mod plan;
mod pool;
pub(crate) mod race;
pub mod rounds;
pub(crate) mod run;
mod say;
mod session;
mod setup;
mod talk;
pub(crate) mod top;
mod zero;

use std::path::PathBuf;

use crate::args::FleetArgs;
use crate::args::FleetVerb;
use crate::args::HostsArgs;
use crate::args::PlanArgs;
use crate::args::ReachArgs;
use crate::args::SourceArgs;
use bench::descriptors;
use hosts::{Found, Host, Selection, Source};
use link::{OpenSsh, Program};
use past::Past;
use plan::{Asked, Plan};
use ui::context::Context;
use ui::exit::{Answer, ExitClass as _, Failure, Outcome};
use ui::signals;

/// Does what a verb of `fleet` asks for.
pub fn fleet(args: &FleetArgs, context: &mut Context) -> Outcome {
    match &args.verb {
        FleetVerb::Hosts(args) => list(args, context),
        FleetVerb::Top(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            top::top(args, context, &interrupt)
        }
        FleetVerb::Zero(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            zero::zero(args, context, &interrupt)
        }
        FleetVerb::Run(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            run::run(args, context, &interrupt)
        }
        FleetVerb::Show(args) => run::show(args, context),
        FleetVerb::Plan(args) => plan(args, context),
        FleetVerb::Race(args) => {
            let interrupt = signals::interrupt_flag().refused()?;
            race::race(args, context, &interrupt)
        }
    }
}

/// Lists the hosts.
fn list(args: &HostsArgs, context: &mut Context) -> Outcome {
    let found = find(&args.source)?;
    for one in &found.left_out {
        context.tell(one);
    }
    let answer = if args.json {
        say::hosts_json(&found)
    } else {
        say::hosts(&found.hosts, context.columns)
    };
    context.print(&answer)?;
    Ok(Answer::Done)
}

/// The hosts that the arguments name.
///
/// # Errors
/// Refused, for all that is wrong with the source, or where no host is left.
fn find(args: &SourceArgs) -> Result<Found, Failure> {
    let source = match (&args.list, &args.inventory) {
        (Some(list), _) => Source::List(list.clone()),
        (None, Some(inventory)) => Source::Inventory(inventory.clone()),
        (None, None) => Source::Ec2(args.ec2.clone(), args.address),
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let found = source
        .ask(home.as_deref())
        .map_err(|problems| Failure::refused_for("there are no hosts", &problems))?;
    let selection = Selection {
        include: args.include.clone(),
        exclude: args.exclude.clone(),
    };
    let hosts: Vec<Host> = selection.of(found.hosts).map_err(Failure::refused)?;
    Ok(Found { hosts, ..found })
}

/// The way to the hosts that the arguments ask for.
///
/// # Errors
/// Refused, where a program that shall be sent cannot be.
fn reach(args: &ReachArgs) -> Result<OpenSsh, Failure> {
    let mut programs = args
        .binary
        .iter()
        .map(|path| Program::read(path))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Failure::refused)?;
    if programs.is_empty() {
        programs.push(Program::own().map_err(Failure::refused)?);
    }
    Ok(OpenSsh {
        config: args.ssh_config.clone(),
        user: args.user.clone(),
        patience: std::time::Duration::from_nanos(args.connect.0.0),
        sudo: args.sudo,
        programs,
    })
}

/// The descriptors of a connection to ssh: its three pipes.
const OF_CONNECTION: u64 = 3;
/// Those of one that is being made: the other ends of its pipes too, and the pipe by which a program that
/// cannot be executed is told.
const OF_START: u64 = 8;

/// Lets this process have so many connections: some that are being made at the same time, and some
/// that stay. `fewer` says what to give less of where it may not.
///
/// # Errors
/// Refused, where that is more than the hard limit of open files. To find that out later would be to
/// take hosts for dead that were never tried.
fn allow_connections(starting: usize, staying: usize, fewer: &str) -> Result<(), Failure> {
    let needed = OF_START * starting as u64 + OF_CONNECTION * staying as u64;
    descriptors::allow(needed, fewer).refused()
}

/// Says how many to start.
fn plan(args: &PlanArgs, context: &mut Context) -> Outcome {
    let past = Past::read(&args.from, args.good.as_ref())?;
    let asked = Asked {
        want: args.want as usize,
        per: args.per,
        chance: args.chance.0,
        round_s: args.round.0.0 as f64 / 1e9,
        price: args.price,
    };
    let plan = Plan::of(&past, &asked).map_err(Failure::refused)?;
    let answer = if args.json {
        say::plan_json(&plan, &asked, &past)
    } else {
        say::plan(&plan, &asked, &past, context.columns)
    };
    context.print(&answer)?;
    let enough = plan.total().is_some();
    Ok(if enough { Answer::Done } else { Answer::No })
}
