//! Simulated races of hosts with known levels: how often the kept hosts are the true best, and the cost.
//! `bench/race-sim` builds and runs it.
#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use std::time::Instant;

use study::burnin::Rule;
use study::burnin::simulate::{Population, Rng, SimulatedRace, simulate};

/// Usage of the program.
const USAGE: &str = "race_sim [--hosts N] [--trials N] [--keep N] [--seed N] [--case NAME]";

/// Arguments.
struct Args {
    hosts: Option<usize>,
    trials: Option<usize>,
    keep: usize,
    seed: u64,
    /// Only the case of this name, such as `plain`.
    case: Option<String>,
}

fn main() {
    let parse_args = match parse_args(std::env::args().skip(1)) {
        Ok(parse_args) => parse_args,
        Err(why) => {
            eprintln!("race_sim: {why}\n{USAGE}");
            std::process::exit(2);
        }
    };
    println!("hosts from {:?}", Population::plain());
    println!(
        "and with the change that is named; {:?}",
        Rule::keeping(parse_args.keep)
    );
    println!(
        "right: no host left out is truly better by more than the tie than one that is kept; exact: nor\n\
         by anything. cost: host-rounds, of all hosts for as long as the slowest group needed\n"
    );
    println!(
        "{:20} {:>6} {:>6} {:>7} {:>7} {:>6} {:>7} {:>9} {:>8} {:>8} {:>8}",
        "",
        "hosts",
        "trials",
        "right",
        "exact",
        "cost",
        "rounds",
        "per host",
        "tied",
        "used up",
        "s/race"
    );
    for hosts in [46, 100, 300, 1_000, 3_000, 10_000] {
        if parse_args.hosts.is_some_and(|only| only != hosts) {
            continue;
        }
        for (name, population, rule) in cases(parse_args.keep) {
            if parse_args.case.as_ref().is_some_and(|only| only != name) {
                continue;
            }
            let trials = parse_args
                .trials
                .unwrap_or((100_000 / hosts).clamp(20, 400));
            table_row(parse_args.seed, (name, &population, rule), hosts, trials);
        }
    }
}

fn parse_args(mut args: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut parse_args = Args {
        hosts: None,
        trials: None,
        keep: 3,
        seed: 1,
        case: None,
    };
    while let Some(name) = args.next() {
        let value = args.next();
        if name == "--case" {
            parse_args.case = value;
            continue;
        }
        let number = value
            .as_deref()
            .and_then(|value| value.parse::<usize>().ok())
            .ok_or_else(|| format!("{name} takes a whole number"))?;
        match name.as_str() {
            "--hosts" => parse_args.hosts = Some(number),
            "--trials" => parse_args.trials = Some(number),
            "--keep" => parse_args.keep = number,
            "--seed" => parse_args.seed = number as u64,
            _ => return Err(format!("there is no option {name}")),
        }
    }
    Ok(parse_args)
}

/// The plain case, and variants of it in which one thing is worse.
fn cases(keep: usize) -> Vec<(&'static str, Population, Rule)> {
    let rule = Rule::keeping(keep);
    let plain = ("plain", Population::plain(), rule);
    let worse = |name: &'static str, change: &dyn Fn(&mut Population)| {
        let mut population = Population::plain();
        change(&mut population);
        (name, population, rule)
    };
    vec![
        plain,
        worse("four disks", &|of| of.disks = 4),
        worse("noise 8 %", &|of| of.conditions.noise = 0.08),
        worse("noise 2 %", &|of| of.conditions.noise = 0.02),
        worse("hour 20 %", &|of| of.conditions.hour = 0.2),
        worse("intermittent 15 %", &|of| of.intermittent = 0.15),
        worse("slow in 1 to 5 %", &|of| of.slow_share = (0.01, 0.05)),
        worse("slow by 10 to 30 %", &|of| of.slow_left = (0.7, 0.9)),
        worse("memory 0.5", &|of| of.conditions.memory = 0.5),
        worse("heavy tails", &|of| of.conditions.heavy = true),
        worse("spread 5 %", &|of| of.spread = 0.05),
        // Shows how much the rounds required before a host is kept ([`Rule::unseen`]) add to the slowest decision.
        (
            "kept without proof",
            Population::plain(),
            Rule {
                unseen: 0.0,
                ..rule
            },
        ),
    ]
}

fn table_row(seed: u64, case: (&str, &Population, Rule), hosts: usize, trials: usize) {
    let (name, population, rule) = case;
    let mut rng = Rng::new(seed);
    let began = Instant::now();
    let races: Vec<SimulatedRace> = (0..trials)
        .map(|_| {
            let drawn = population.draw(hosts, &mut rng);
            simulate(&population.conditions, &drawn, rule, &mut rng)
        })
        .collect();
    let mean =
        |of: &dyn Fn(&SimulatedRace) -> f64| races.iter().map(of).sum::<f64>() / trials as f64;
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    println!(
        "{name:20} {hosts:6} {trials:6} {:>7} {:>7} {:>6} {:7.1} {:9.2} {:>8} {:>8} {:8.3}",
        percent(mean(&|race| f64::from(u8::from(race.right)))),
        percent(mean(&|race| f64::from(u8::from(race.exact)))),
        percent(mean(&|race| race.share(hosts))),
        mean(&|race| race.rounds as f64),
        mean(&|race| race.host_rounds as f64 / hosts as f64),
        percent(mean(&|race| race.equal as f64 / race.groups as f64)),
        percent(mean(&|race| race.used_up as f64 / race.groups as f64)),
        began.elapsed().as_secs_f64() / trials as f64
    );
}
