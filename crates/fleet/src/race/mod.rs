//! `fleet race`: measures hosts at the same time, round by round, until the best are known.
//!
//! | module | contents |
//! | --- | --- |
//! | `setup`, `groups` | groups that compete, and the number of rounds |
//! | `runner` | one host: connected, prepared, sent its rounds |
//! | `entrants` | all hosts: made ready, and led through each round |
//! | `running_race` | the decisions: hosts to measure next, and hosts that are out |
//! | `overwrite_plan` | data that is overwritten, confirmed first |
//! | `outage` | rounds in which no host answers |
//! | `run` | the race from start to end |
//! | `board` | live table |
//! | `collect` | a race whose rounds are in files |
//! | `conclude` | conclusion of the record, host by host |
//! | `view`, `dry_run`, `html`, `files` | the answer, its page, and the lists |
//! | `terminate` | termination of bad instances |

mod board;
mod checkpoint;
mod collect;
mod conclude;
pub(crate) mod dry_run;
mod entrants;
mod files;
mod groups;
mod html;
mod outage;
mod overwrite_plan;
mod ranked_by;
pub(crate) mod report;
mod run;
mod runner;
mod running_race;
pub(crate) mod setup;
mod terminate;
#[cfg(test)]
pub(crate) mod test_races;
#[cfg(test)]
mod tests;
pub(crate) mod view;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::store::race::RacedHost;
use ::record::Nanos;
use anyhow::anyhow;
use domain::bought::BoughtVolumes;
use ledger::OwnerLiveness;
use linux::remedy;
use study::burnin::End;

use crate::args::RaceArgs;
use crate::floor::HostFloor;
use crate::host_line::{AgentVerb, LineVerb, parse};
use crate::hosts::TieBreak;
use crate::hosts::{Host, fold, is_keep};
use crate::reach::{allow_connections, find, reach};
use crate::rounds;
use crate::run as fleet_run;
use crate::store::{FleetRun, RunKind};
use files::ListFiles;
use job::{EndState, JobStore};
use run::RaceConditions;
use runner::RunnerContext;
use setup::Setup;
use sweep::{Figure, Metric};
use terminate::DryRunError;
use ui::confirm::require_terminal;
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::output::{OutputFile, OutputFormat};

pub(crate) use crate::store::race::RaceRecord;
pub(crate) use ranked_by::RankedBy;

pub(crate) use conclude::{Decision, RaceConclusion, RankedHost, conclude};

/// Default phase by which hosts are ranked; it only reads.
const DEFAULT_PHASE: &str = "page-read";
/// Bounds of the time to wait for a late host after a round; within them it is the length of the round.
const LATE_HOST_TIMEOUTS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// Races hosts, or shows the race without measuring.
pub(super) fn race(args: &RaceArgs, context: &mut Context, interrupt: &AtomicBool) -> Outcome {
    let found = find(&args.source)?;
    for one in &found.left_out {
        context.notice(one);
    }
    let hosts = found.hosts;
    let asked = RoundsCommand::of(args)?;
    check_prices(args, &hosts)?;
    let setup = Setup::of(&hosts, args).map_err(Failure::refused)?;
    if args.dry_run {
        let answer = if args.json {
            dry_run::json(&setup, &hosts)
        } else {
            dry_run::text(&setup, &hosts, context.columns)
        };
        context.print(&answer)?;
        return Ok(CommandEnd::Done);
    }
    let lists = ListFiles::at(&args.out, args.force)?;
    let page = OutputFile::check_if_any(args.report.as_ref(), OutputFormat::Page, args.force)?;
    if let Some(folder) = &args.collect {
        return collected(
            folder,
            args,
            &asked,
            &hosts,
            (&lists, page.as_ref()),
            context,
        );
    }
    if asked.overwrites && !args.yes {
        // A refusal after all hosts have prepared would be too late.
        require_terminal(overwrite_plan::PARTICIPLE)?;
    }
    if args.terminate {
        if !args.yes {
            require_terminal("terminated")?;
        }
        // A refusal after an hour of racing would be too late.
        let ids = terminate::ids_of(&hosts)
            .map_err(|wrong| Failure::refused_for("no race is begun", &wrong))?;
        if hosts.iter().all(|host| host.id.is_none()) {
            context.notice(
                "disksmith: the ids of the instances come from the hosts, so that the permission to \
                 terminate them is only checked when the race is over.",
            );
        }
        terminate::check_permission(&ids, &mut linux::aws::run)
            .map_err(DryRunError::before_race)?;
        if let Some([floor, longer]) = args.yes.then(|| floor_of_one_round(args)).flatten() {
            context.notice(&format!(
                "disksmith: a host that misses {floor} is out, but with --yes its instance is not terminated for that: one \
                 round may be bad because the machine paused. Surer is --floor '{longer}'."
            ));
        }
    }
    let ssh = reach(&args.reach)?;
    let starting = hosts.len().min(args.reach.batch as usize);
    allow_connections(starting, hosts.len(), "hosts")?;
    let store = JobStore::open(context)?;
    check_none_under_way(&store, &hosts)?;
    let run = begun(args, &asked, &hosts);
    let mut writer = checkpoint::begin(store, &run)?;
    let columns = context.columns;
    let conditions = RaceConditions {
        transport: &ssh,
        interrupt,
        batch: args.reach.batch as usize,
        ready: Duration::from_nanos(args.ready.0.0),
        late: Duration::from_nanos(args.round.0.0)
            .clamp(LATE_HOST_TIMEOUTS[0], LATE_HOST_TIMEOUTS[1]),
        after_loss: RunnerContext::RETRY_DELAY,
        watched: context.watched,
        agree: &|plan| plan.agree(args.yes, columns, interrupt),
    };
    let began = Instant::now();
    let mut keep = |run: &FleetRun| {
        checkpoint::write(&mut writer, began.elapsed(), run, &mut ui::context::notice);
    };
    let begun = run.clone();
    let mut run = match conditions.race(&hosts, args, run, &mut keep) {
        Ok(run) => run,
        Err(failure) => {
            // If that cannot be written, it stays as an unfinished one.
            let _ = writer.end(&begun, EndState::Discarded);
            return Err(failure);
        }
    };
    // Saved before anything else can fail; the end tries again.
    let _ = writer.save(&run);
    let concluded = conclude_of(&run)?;
    let listed = lists.write_of(&run, &hosts, &concluded);
    let mut terminated = match (args.terminate, &listed) {
        (false, _) => Ok(()),
        (true, Ok(_)) => {
            terminate::carry_out(&mut run, &concluded, args, context, interrupt, &writer)
        }
        (true, Err(_)) => {
            context
                .notice("disksmith: no instance is terminated, since the lists cannot be written.");
            Ok(())
        }
    };
    if let Err(why) = checkpoint::finish(writer, &run) {
        context.notice(&format!("disksmith: {why}"));
        if args.terminate && terminated.is_ok() {
            terminated = Err(Failure::Midway(anyhow!(
                "the states of the instances are in the answer, and may not be in the ledger"
            )));
        }
    }
    let written = listed.as_ref().ok().is_some_and(|is_written| *is_written);
    let written = written.then(|| lists.paths());
    let answered = answer(&run, &concluded, args, page.as_ref(), written, context);
    // The first error is the cause of the others.
    listed.map(drop).and(terminated).and(answered)
}

/// Decides a race by rounds from files, and keeps it like any other.
fn collected(
    folder: &Path,
    args: &RaceArgs,
    asked: &RoundsCommand,
    hosts: &[Host],
    (lists, page): (&ListFiles, Option<&OutputFile>),
    context: &mut Context,
) -> Outcome {
    let (run, next) = collect::collect(folder, args, hosts, begun(args, asked, hosts))?;
    let concluded = conclude_of(&run)?;
    let writer = checkpoint::begin(JobStore::open(context)?, &run)?;
    if let Err(why) = checkpoint::finish(writer, &run) {
        context.notice(&format!("disksmith: {why}"));
    }
    if next.is_empty() {
        let written = lists.write_of(&run, hosts, &concluded)?;
        return answer(
            &run,
            &concluded,
            args,
            page,
            written.then(|| lists.paths()),
            context,
        );
    }
    if let Some(record) = &run.race {
        context.print(&shown(&run, record, &concluded, args.json, context.columns))?;
    }
    context.notice(&format!(
        "disksmith: this is not decided by {} rounds; measure another on {}, and collect again.",
        run.race.as_ref().map_or(0, |record| record.rounds.len()),
        fold(next.into_iter().map(|place| run.name(place)))
    ));
    Ok(CommandEnd::No)
}

/// Conclusion of a race.
fn conclude_of(run: &FleetRun) -> Result<RaceConclusion, Failure> {
    let record = run.race.as_ref();
    let record = record.ok_or_else(|| Failure::refused("the run is no race"))?;
    Ok(conclude(run, record))
}

/// A floor that can be missed in one round, and the same floor over several rounds.
fn floor_of_one_round(args: &RaceArgs) -> Option<[HostFloor; 2]> {
    let round = args.round.0;
    let is_short = |floor: &&HostFloor| floor.over.is_none_or(|over| over <= round);
    let short = args.floor.iter().find(is_short)?;
    let longer = HostFloor {
        over: Some(Nanos(round.0.saturating_mul(6))),
        ..short.clone()
    };
    Some([short.clone(), longer])
}

/// True if the end of a group shows which of its hosts are good. If the rounds were used up, all remaining hosts tie,
/// whatever they are; and if no more hosts were left than are kept, they were only compared with the floors.
pub(crate) fn is_good(end: Option<End>, record: &RaceRecord) -> bool {
    match end {
        Some(End::Decided | End::Equal) => true,
        Some(End::Few) => !record.floors.is_empty(),
        Some(End::Rounds) | None => false,
    }
}

/// Command for each host.
struct RoundsCommand {
    /// Measuring verb and its arguments.
    words: Vec<String>,
    /// The figures of each round; hosts are ranked by the first.
    figures: Vec<Figure>,
    /// True if existing data is overwritten.
    overwrites: bool,
}

impl RoundsCommand {
    /// # Errors
    /// Refused, if the workload is invalid.
    fn of(args: &RaceArgs) -> Result<RoundsCommand, Failure> {
        let floors = || args.floor.iter().filter(|floor| !floor.is_of_disks());
        let of_floors = || floors().map(|floor| &floor.requirement.figure);
        let ranked = args.by.clone().or_else(|| match args.replay {
            Some(_) => Some(Figure::of(bench::REPLAY, Metric::P99)),
            None => of_floors().find(|one| !one.metric.is_latency()).cloned(),
        });
        let mut figures = vec![ranked.unwrap_or_else(|| Figure::of(DEFAULT_PHASE, Metric::Iops))];
        for figure in of_floors() {
            if !figures.contains(figure) {
                figures.push(figure.clone());
            }
        }
        let mut words = vec![rounds::VERB.to_owned()];
        words.extend(figures.iter().map(|figure| format!("--figure={figure}")));
        let trace = args.replay.as_ref();
        words.extend(trace.map(|trace| format!("--replay={}", trace.display())));
        words.extend_from_slice(&args.targets);
        let overwrites = !args.targets.is_empty() && check_command(&words)?;
        Ok(RoundsCommand {
            words,
            figures,
            overwrites,
        })
    }
}

/// True where this command line overwrites existing data.
///
/// # Errors
/// Refused, if no host could measure it.
fn check_command(words: &[String]) -> Result<bool, Failure> {
    let verb =
        parse(words).map_err(|why| Failure::refused(format!("the workload is invalid: {why}")))?;
    match &verb {
        LineVerb::Agent(AgentVerb::Rounds(args)) => {
            rounds::check(args).map_err(Failure::refused)?;
            Ok(rounds::overwrites(args))
        }
        other => Err(Failure::refused(format!("{other:?} cannot be raced"))),
    }
}

/// # Errors
/// Refused, if ties are to be broken by prices that are not given.
fn check_prices(args: &RaceArgs, hosts: &[Host]) -> Result<(), Failure> {
    let without = hosts.iter().find(|host| price(host).is_none());
    match without {
        Some(host) if args.ties == Some(TieBreak::Price) => Err(Failure::refused(format!(
            "ties cannot be broken by price, since {} has none; write it behind each host of the \
             list, as in 'price=0.172', or its volumes, as in 'volumes=2xgp3:500GiB'",
            host.name
        ))),
        _ => Ok(()),
    }
}

/// Price of a host for an hour: `price` of the list, and the volumes of the list
/// (`volumes=gp3:20GiB+io2,iops=6000:1TiB`) at the prices of the table.
fn price(host: &Host) -> Option<f64> {
    let own = match host.tags.get("price") {
        Some(text) => Some(text.parse::<f64>().ok()?),
        None => None,
    };
    let volumes = match host.tags.get("volumes") {
        Some(text) => {
            let each = text.split('+').map(str::parse::<BoughtVolumes>);
            let each: Vec<BoughtVolumes> = each.collect::<Result<_, _>>().ok()?;
            Some(each.iter().map(BoughtVolumes::per_hour).sum::<f64>())
        }
        None => None,
    };
    let price = own.into_iter().chain(volumes).reduce(|a, b| a + b)?;
    Some(price).filter(|price| price.is_finite() && *price >= 0.0)
}

/// # Errors
/// Refused, if a race in this ledger is measuring one of these hosts: each would distort the other.
fn check_none_under_way(store: &JobStore, hosts: &[Host]) -> Result<(), Failure> {
    let races = store.unfinished::<FleetRun>(|owner| owner == OwnerLiveness::Alive);
    for work in races.refused()? {
        let work = work.refused()?;
        let (other, owner) = (work.document, work.summary.owner);
        let has = |host: &&Host| other.hosts.iter().any(|one| one.address == host.address);
        let shared = hosts
            .iter()
            .find(has)
            .filter(|_| other.kind == RunKind::Race);
        if let Some(host) = shared {
            return Err(Failure::refused(format!(
                "the race {} is under way on {} (process {}); two at once would measure each other, \
                 so wait for its end, or end it",
                other.id, host.name, owner.pid
            )));
        }
    }
    Ok(())
}

/// The new run.
fn begun(args: &RaceArgs, asked: &RoundsCommand, hosts: &[Host]) -> FleetRun {
    let raced = |host: &Host| RacedHost {
        price: price(host),
        given_id: host.id.clone(),
        is_tagged_keep: host.tags.keys().any(|name| is_keep(name)),
        ..RacedHost::default()
    };
    let record = RaceRecord {
        keep: args.keep as usize,
        per: args.per,
        figures: asked.figures.clone(),
        floors: args.floor.iter().map(ToString::to_string).collect(),
        round_s: args.round.0.0 as f64 / 1e9,
        least_rounds: 2,
        most_rounds: args.rounds as usize,
        silent_s: running_race::SILENT_S,
        ties: args.ties,
        hosts: hosts.iter().map(raced).collect(),
        rounds: Vec::new(),
        interrupted: false,
        termination: None,
    };
    FleetRun {
        race: Some(Box::new(record)),
        ..fleet_run::begun(RunKind::Race, asked.words.clone(), hosts)
    }
}

/// Prints the result of a race, and returns its exit status.
fn answer(
    run: &FleetRun,
    concluded: &RaceConclusion,
    args: &RaceArgs,
    page: Option<&OutputFile>,
    listed: Option<[&Path; 2]>,
    context: &mut Context,
) -> Outcome {
    let Some(record) = &run.race else {
        return Err(Failure::refused("the run is no race"));
    };
    let printed = context.print(&shown(run, record, concluded, args.json, context.columns));
    // Also if the answer's pipe is closed.
    if let Some(page) = page {
        let content = html::of(run, record, concluded).midway()?;
        page.write(&content).midway()?;
    }
    printed?;
    if concluded.groups.is_empty() {
        let message = "no host was measured; the answer has the reason for each host";
        return Err(if record.interrupted {
            Failure::Midway(anyhow!("interrupted: {message}"))
        } else {
            Failure::refused(message)
        });
    }
    if record.interrupted {
        return Err(Failure::Midway(anyhow!(
            "interrupted after {} rounds; they are in the ledger ('{}'), and neither list was written: those \
             of an earlier race stay as they are",
            record.rounds.len(),
            remedy::command(&format!("fleet show {}", run.id))
        )));
    }
    if let Some([keep, cull]) = listed {
        context.notice(&format!(
            "disksmith: {} and {} are written.",
            keep.display(),
            cull.display()
        ));
    }
    for sentence in concluded
        .groups
        .iter()
        .filter_map(view::missing_hosts_notice)
    {
        context.notice(&format!("disksmith: {sentence}"));
    }
    let is_full = |group: &conclude::GroupEnd| group.there >= record.keep;
    Ok(
        if concluded.groups.iter().all(is_full) && concluded.empty.is_empty() {
            CommandEnd::Done
        } else {
            CommandEnd::No
        },
    )
}

fn shown(
    run: &FleetRun,
    record: &RaceRecord,
    concluded: &RaceConclusion,
    as_json: bool,
    columns: usize,
) -> String {
    if as_json {
        view::json(run, record, concluded)
    } else {
        view::text(run, record, concluded, columns)
    }
}

/// Page of a race in the ledger; `None` if the run is not a race.
pub(super) fn page(run: &FleetRun) -> Option<anyhow::Result<Vec<u8>>> {
    let record = run.race.as_ref()?;
    Some(html::of(run, record, &conclude(run, record)))
}

/// Answer of a race in the ledger for `fleet show`; `None` if the run is not a race.
pub(super) fn show(run: &FleetRun, as_json: bool, columns: usize) -> Option<String> {
    let record = run.race.as_ref()?;
    let concluded = conclude(run, record);
    Some(shown(run, record, &concluded, as_json, columns))
}
