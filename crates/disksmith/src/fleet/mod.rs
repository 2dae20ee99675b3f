//! `fleet`: many hosts at once. Which they are, how many to start, and which to keep.

pub(crate) mod floor;
pub(crate) mod hosts;
mod past;
mod plan;
mod say;
mod setup;

use std::path::PathBuf;

use crate::cli::{FleetArgs, FleetVerb, HostsArgs, PlanArgs, RaceArgs, SourceArgs};
use crate::context::Context;
use crate::failure::{Answer, Failure, Outcome};
use hosts::{Found, Host, Selection, Source};
use past::Past;
use plan::{Asked, Plan};
use setup::Setup;

/// Does what a verb of `fleet` asks for.
pub(crate) fn fleet(args: &FleetArgs, context: &mut Context) -> Outcome {
    match &args.verb {
        FleetVerb::Hosts(args) => list(args, context),
        FleetVerb::Plan(args) => plan(args, context),
        FleetVerb::Race(args) => race(args, context),
    }
}

/// Shows what would be raced.
fn race(args: &RaceArgs, context: &mut Context) -> Outcome {
    if !args.dry_run {
        return Err(Failure::refused(
            "this version cannot race hosts yet; --dry-run shows which would be raced, and how",
        ));
    }
    let found = find(&args.source)?;
    for one in &found.left_out {
        context.tell(one);
    }
    let setup = Setup::of(&found.hosts, args);
    let answer = if args.json {
        say::setup_json(&setup, &found.hosts)
    } else {
        say::setup(&setup, &found.hosts, context.columns)
    };
    context.print(&answer)?;
    Ok(Answer::Done)
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
