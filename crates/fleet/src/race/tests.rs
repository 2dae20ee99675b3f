//! Races of simulated hosts.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::*;
use crate::args::FleetVerb;
use crate::connection::{LATE_HOST_TIMEOUT, SimulatedTransport};
use crate::store::HostOutcome;
use crate::test_process::{is_alone, resident, run_alone, used};

fn args(words: &[&str]) -> RaceArgs {
    let line = ["disksmith", "fleet", "race", "--list", "x"];
    let keep = ["--keep", "3"];
    let keep = if words.contains(&"--keep") {
        &[]
    } else {
        &keep[..]
    };
    match parse([&line[1..], keep, words, &["--", "/mnt"]].concat()).unwrap() {
        LineVerb::Fleet(args) => match args.verb {
            FleetVerb::Race(args) => *args,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Hosts with these names, alternating between the zones a and b.
fn hosts(names: &[&str]) -> Vec<Host> {
    let host = |(at, name): (usize, &&str)| Host {
        name: (*name).to_owned(),
        address: (*name).to_owned(),
        zone: Some(["a", "b"][at % 2].to_owned()),
        ..Host::default()
    };
    names.iter().enumerate().map(host).collect()
}

/// Races them; returns the run and the conclusion.
fn raced(names: &[&str], words: &[&str]) -> (FleetRun, RaceConclusion) {
    let interrupt = AtomicBool::new(false);
    let run = race_of(&hosts(names), words, &interrupt, &mut |_| {}).unwrap();
    let concluded = conclude(&run, run.race.as_ref().unwrap());
    (run, concluded)
}

fn race_of(
    hosts: &[Host],
    words: &[&str],
    interrupt: &AtomicBool,
    keep: &mut dyn FnMut(&FleetRun),
) -> Result<FleetRun, Failure> {
    race_with(LATE_HOST_TIMEOUT, hosts, words, interrupt, keep)
}

/// Races these hosts, and waits for late ones for this time after a round's end.
fn race_with(
    late: Duration,
    hosts: &[Host],
    words: &[&str],
    interrupt: &AtomicBool,
    keep: &mut dyn FnMut(&FleetRun),
) -> Result<FleetRun, Failure> {
    let args = args(words);
    let conditions = RaceConditions {
        transport: &SimulatedTransport::default(),
        interrupt,
        batch: 64,
        ready: Duration::from_secs(120),
        late,
        after_loss: Duration::from_millis(20),
        agree: &|_| Ok(()),
        watched: false,
    };
    let asked = RoundsCommand::of(&args).unwrap();
    let mut begun = begun(&args, &asked, hosts);
    // A lost host would otherwise be waited for as long as a real one needs to reconnect.
    begun.race.as_mut().unwrap().silent_s = 0.0;
    conditions.race(hosts, &args, begun, keep)
}

#[test]
fn nothing_is_measured_before_the_overwrite_plan_is_confirmed() {
    let hosts = hosts(&["wipe0", "wipe1", "h2", "dead3"]);
    let (interrupt, args) = (AtomicBool::new(false), args(&ROUND));
    let shown = std::cell::RefCell::new(Vec::new());
    let refuse = |plan: &overwrite_plan::OverwritePlan| {
        shown.borrow_mut().push((plan.text(100), plan.question()));
        Err(Failure::refused("nobody agrees"))
    };
    let conditions = RaceConditions {
        transport: &SimulatedTransport::default(),
        interrupt: &interrupt,
        batch: 64,
        ready: Duration::from_secs(120),
        late: LATE_HOST_TIMEOUT,
        after_loss: Duration::from_millis(20),
        agree: &refuse,
        watched: false,
    };
    let asked = RoundsCommand::of(&args).unwrap();
    let mut rounds = 0;
    let mut keep = |run: &FleetRun| rounds += run.race.as_ref().unwrap().rounds.len();
    let begun = begun(&args, &asked, &hosts);
    let raced = conditions.race(&hosts, &args, begun, &mut keep);
    assert!(raced.unwrap_err().error().to_string().contains("nobody"));
    assert_eq!(rounds, 0);
    let shown = shown.into_inner();
    let [(text, question)] = shown.as_slice() else {
        panic!("{shown:?}");
    };
    for wanted_text in ["wipe0", "wipe1", "/mnt/d1", "ext4", "2 disks of 2 hosts"] {
        assert!(text.contains(wanted_text), "{wanted_text}: {text}");
    }
    // A disk that is only read is not in the plan, and a dead host is reported.
    assert!(!text.contains("h2"), "{text}");
    assert!(text.contains("dead3: "), "{text}");
    assert!(
        question.contains("without the 1 host that did"),
        "{question}"
    );
}

fn of<'a>(run: &FleetRun, concluded: &'a RaceConclusion, name: &str) -> &'a RankedHost {
    let place = run.hosts.iter().position(|host| host.host == name).unwrap();
    let mut ranked = concluded.ranked.iter();
    ranked.find(|one| one.place == place).unwrap()
}

/// Options for short rounds: a simulated round takes no time, and the race requires half a second at least.
const ROUND: [&str; 2] = ["--round", "500ms"];

#[test]
fn the_best_are_kept_and_each_other_has_its_reason() {
    let names = [
        "h0", "h1", "h2", "h3", "h4", "slow0", "bad0", "drop0", "dips0", "lazy0", "fail0",
        "cache0", "gone0", "dead0", "mute0", "busy0",
    ];
    let words = [&ROUND[..], &["--floor", "disk.latency<1000ms"]].concat();
    let (run, concluded) = raced(&names, &words);
    let decided = |name: &str| of(&run, &concluded, name).decided;
    let reason = |name: &str| of(&run, &concluded, name).reason.as_str();
    for name in ["h0", "h1", "h2"] {
        assert_eq!(decided(name), Decision::Keep, "{name}: {}", reason(name));
    }
    for (name, word, is_bad, wanted_text) in [
        (
            "h3",
            Decision::Cull,
            true,
            "3 others are better, known after round",
        ),
        ("slow0", Decision::Cull, true, "3 others are better"),
        ("bad0", Decision::Cull, true, "3 others are better"),
        ("drop0", Decision::Cull, true, "/mnt/d"),
        // It is slow so rarely that it is left out at the end, without significance.
        ("dips0", Decision::Cull, false, "was slow in"),
        (
            "lazy0",
            Decision::HostFloor,
            true,
            "/mnt/d3 missed disk.latency<1s: it had 2",
        ),
        (
            "fail0",
            Decision::Failed,
            true,
            "/mnt/d1: a read at byte 0 failed",
        ),
        (
            "cache0",
            Decision::Failed,
            false,
            "because it was answered from memory",
        ),
        ("gone0", Decision::Failed, false, "missing in 4 rounds"),
        (
            "dead0",
            Decision::Unreachable,
            false,
            "dead0 was not reached",
        ),
        ("mute0", Decision::Failed, false, "was lost"),
        (
            "busy0",
            Decision::Busy,
            false,
            "another run or race is measuring",
        ),
    ] {
        let one = of(&run, &concluded, name);
        assert_eq!(
            (one.decided, one.is_bad),
            (word, is_bad),
            "{name}: {}",
            one.reason
        );
        assert!(one.reason.contains(wanted_text), "{name}: {}", one.reason);
    }
    // The worst of four disks counts, and is named.
    let bad = of(&run, &concluded, "bad0").known.unwrap();
    assert_eq!(bad.disk, 2);
    assert!((0.25..0.35).contains(&(bad.figure / 12_000.0)), "{bad:?}");
    let record = run.race.as_ref().unwrap();
    // Hosts that are behind are not measured any more.
    let measurements = |name: &str| of(&run, &concluded, name).known.unwrap().rounds;
    assert!(
        measurements("slow0") < record.rounds.len() / 2,
        "{}",
        measurements("slow0")
    );
    assert_eq!(measurements("h0"), record.rounds.len());
}

#[test]
fn a_host_that_comes_back_continues_unless_it_was_started_again() {
    // The last one answers slowly, so that the others have time too.
    let names = ["h0", "h1", "h2", "back3", "boot0", "wait9"];
    let words = [&ROUND[..], &["--rounds", "9"]].concat();
    let (run, concluded) = raced(&names, &words);
    let back = of(&run, &concluded, "back3");
    // On a busy machine it misses so many of nine rounds that it is too close to another.
    let is_measured = matches!(back.decided, Decision::Cull | Decision::Tie);
    assert!(is_measured, "{}", back.reason);
    assert!((1..=3).contains(&back.missed), "{}", back.missed);
    let boot = of(&run, &concluded, "boot0");
    assert_eq!((boot.decided, boot.is_bad), (Decision::Failed, false));
    let wanted_text = "was rebooted during the race";
    assert!(boot.reason.contains(wanted_text), "{}", boot.reason);
    let others = run.race.as_ref().unwrap().hosts.iter();
    let others: Vec<bool> = others.map(|raced| raced.may_be_other).collect();
    assert_eq!(others, names.map(|name| name == "boot0"));
}

#[test]
fn each_zone_keeps_its_own_and_sizes_do_not_compete() {
    let names = ["h0", "h1", "h2", "h3", "h4", "h5", "large6", "large7"];
    let words = [&ROUND[..], &["--per", "zone", "--keep", "1"]].concat();
    let (run, concluded) = raced(&names, &words);
    let groups: Vec<(&str, usize)> = concluded
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.kept))
        .collect();
    assert_eq!(
        groups,
        [
            ("a, 4 disks of 1 TiB", 1),
            ("a, 4 disks of 2 TiB", 1),
            ("b, 4 disks of 1 TiB", 1),
            ("b, 4 disks of 2 TiB", 1)
        ]
    );
    for name in ["h0", "h1", "large6", "large7"] {
        assert_eq!(of(&run, &concluded, name).decided, Decision::Keep, "{name}");
    }
}

#[test]
fn facts_of_a_host_that_cannot_take_part_are_recorded_too() {
    let mut hosts = hosts(&["h0", "h1", "other2"]);
    hosts[2].id = Some("i-2".to_owned());
    let words = [&ROUND[..], &["--keep", "1", "--rounds", "4"]].concat();
    let interrupt = AtomicBool::new(false);
    let run = race_of(&hosts, &words, &interrupt, &mut |_| {}).unwrap();
    assert_eq!(run.hosts[2].outcome, HostOutcome::Unfit);
    let raced = &run.race.as_ref().unwrap().hosts[2];
    assert_eq!(raced.group, None);
    assert_eq!(raced.own_id.as_deref(), Some("i-other"));
    assert_eq!(raced.boot, "other2-1");
}

/// Reasons why a host was missing, by round.
fn missed<'a>(run: &'a FleetRun, name: &str) -> Vec<&'a str> {
    let place = run.hosts.iter().position(|host| host.host == name);
    let rounds = run.race.as_ref().unwrap().rounds.iter();
    let absent = rounds.flat_map(|round| &round.missed);
    let own = absent.filter(|one| Some(one.host) == place);
    own.map(|one| one.why.as_str()).collect()
}

#[test]
fn a_host_that_hangs_holds_the_others_up_once() {
    // Without that it would be the best.
    let (run, concluded) = raced(&["h1", "h2", "h3", "h4", "hang0"], &ROUND);
    let hung = of(&run, &concluded, "hang0");
    assert_eq!(hung.decided, Decision::Failed, "{}", hung.reason);
    assert_eq!(of(&run, &concluded, "h1").decided, Decision::Keep);
    let missed = missed(&run, "hang0");
    assert_eq!(missed.len(), 4, "{missed:?}");
    assert!(missed[0].contains("did not answer"), "{missed:?}");
    for why in &missed[1..] {
        assert_eq!(*why, "it was still at an earlier round");
    }
}

#[test]
fn a_late_answer_is_judged_as_any_other() {
    let (run, concluded) = raced(&["h1", "h2", "h3", "h4", "stall0"], &ROUND);
    let record = run.race.as_ref().unwrap();
    // On a busy machine others may be late, too.
    let mut late = record.rounds.iter().flat_map(|round| &round.late);
    assert!(late.any(|one| (one.host, one.round) == (4, Some(5))));
    let stalled = of(&run, &concluded, "stall0");
    // Once is enough.
    assert_eq!(stalled.missed, 0);
    assert_eq!(stalled.known.unwrap().slow, 1, "{}", stalled.reason);
    assert_ne!(stalled.decided, Decision::Keep, "{}", stalled.reason);
    assert!(
        stalled.reason.contains("was slow in 1 of"),
        "{}",
        stalled.reason
    );
}

#[test]
fn a_silence_of_all_hosts_costs_none_of_them_anything() {
    let (run, concluded) = raced(&["stall0", "stall1", "stall2", "stall9"], &ROUND);
    let record = run.race.as_ref().unwrap();
    let excused: usize = record.rounds.iter().map(|one| one.excused.len()).sum();
    // The last of them may be out by then.
    assert!(excused >= 3, "{excused}");
    assert!(concluded.ranked.iter().all(|one| one.missed == 0));
    // Late answers to that round, which may arrive in different rounds, do not count either.
    let best = of(&run, &concluded, "stall0");
    assert_eq!(best.decided, Decision::Keep, "{concluded:?}");
}

#[test]
fn a_signal_ends_the_race_and_what_was_measured_stays() {
    let interrupt = AtomicBool::new(false);
    let mut kept = 0;
    let run = race_of(
        &hosts(&["h0", "h1", "h2", "h3"]),
        &ROUND,
        &interrupt,
        &mut |run| {
            kept = run.race.as_ref().unwrap().rounds.len();
            interrupt.store(kept >= 5, Relaxed);
        },
    );
    let run = run.unwrap();
    let record = run.race.as_ref().unwrap();
    assert!(record.interrupted);
    assert_eq!((record.rounds.len(), kept), (5, 5));
    assert!(
        run.hosts
            .iter()
            .all(|host| host.outcome == HostOutcome::Interrupted)
    );
    let concluded = conclude(&run, record);
    assert!(
        concluded
            .ranked
            .iter()
            .all(|one| one.decided == Decision::Open && !one.is_bad)
    );
    assert!(concluded.ranked.iter().all(|one| one.known.is_some()));
}

#[test]
#[should_panic(expected = "the ledger is on fire")]
fn a_race_whose_driver_panics_ends_at_once() {
    let interrupt = AtomicBool::new(false);
    let _ = race_of(&hosts(&["h0", "h1"]), &ROUND, &interrupt, &mut |_| {
        panic!("the ledger is on fire")
    });
}

#[test]
fn a_zone_without_any_host_is_reported() {
    let (run, concluded) = raced(
        &["h0", "dead1", "h2", "dead3"],
        &[
            &ROUND[..],
            &["--per", "zone", "--keep", "1", "--rounds", "4"],
        ]
        .concat(),
    );
    assert_eq!(concluded.empty, ["b"]);
    let record = run.race.as_ref().unwrap();
    let shown = view::sentences(record, &concluded).join(" ");
    assert!(shown.contains("b: none of its hosts came"), "{shown}");
    let kept = of(&run, &concluded, "h0");
    assert_eq!(kept.decided, Decision::Keep, "{}", kept.reason);
    // Such a short race cannot detect an intermittently slow host, and says so.
    assert!(
        kept.doubts[0].contains("it takes 42 to see"),
        "{:?}",
        kept.doubts
    );
}

#[test]
fn a_race_of_the_ledger_comes_to_the_same() {
    let (run, concluded) = raced(&["h0", "h1", "h2", "h3", "bad4", "back5", "fail6"], &ROUND);
    let text = serde_json::to_vec(&run).unwrap();
    let again: FleetRun = serde_json::from_slice(&text).unwrap();
    assert_eq!(again, run);
    assert_eq!(conclude(&again, again.race.as_ref().unwrap()), concluded);
    let document = show(&again, true, 100).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["command"], "fleet race");
    assert_eq!(document["figure"], "page-read.iops");
    assert_eq!(document["hosts"][0]["decision"], "keep");
    assert_eq!(document["hosts"][0]["host"], "h0");
    let table = show(&again, false, 100).unwrap();
    assert!(
        table.lines().all(|line| line.chars().count() <= 100),
        "{table}"
    );
    assert!(
        table.contains("all: decided: 3 hosts are kept of 7"),
        "{table}"
    );
}

#[test]
fn the_figure_that_ranks_hosts_is_requested_first() {
    let figures = |words: &[&str]| -> Vec<String> {
        let asked = RoundsCommand::of(&args(words)).unwrap();
        asked.figures.iter().map(ToString::to_string).collect()
    };
    assert_eq!(figures(&[]), ["page-read.iops"]);
    let floors = [
        "--floor",
        "page-read.p99<5ms",
        "--floor",
        "page-write.iops>=10 for 2s",
    ];
    assert_eq!(figures(&floors), ["page-write.iops", "page-read.p99"]);
    let own = [
        &floors[..],
        &["--by", "scan.bytes", "--floor", "disk.latency<1s"],
    ]
    .concat();
    assert_eq!(
        figures(&own),
        ["scan.bytes", "page-read.p99", "page-write.iops"]
    );
    for (words, wanted_text) in [
        (&["--floor", "dance.iops>=1"][..], "no phase 'dance'"),
        (&["--by", "page-read.write.iops"], "writes nothing"),
    ] {
        let why = RoundsCommand::of(&args(words))
            .err()
            .unwrap()
            .error()
            .to_string();
        assert!(why.contains(wanted_text), "{why}");
    }
}

#[test]
fn prices_are_needed_where_they_break_ties() {
    let mut hosts = hosts(&["h0", "h1"]);
    let by_price = args(&["--ties", "price"]);
    let why = check_prices(&by_price, &hosts)
        .unwrap_err()
        .error()
        .to_string();
    assert!(why.contains("h0 has none"), "{why}");
    for host in &mut hosts {
        host.tags.insert("price".to_owned(), "0.172".to_owned());
    }
    assert!(check_prices(&by_price, &hosts).is_ok());
    // 730 GiB of gp3 for an hour.
    let tags = &mut hosts[0].tags;
    tags.insert("volumes".to_owned(), "gp3:365GiB+gp3:365GiB".to_owned());
    assert!((price(&hosts[0]).unwrap() - 0.172 - 0.08).abs() < 1e-9);
    hosts[0].tags.remove("price");
    assert!((price(&hosts[0]).unwrap() - 0.08).abs() < 1e-9);
    hosts[0]
        .tags
        .insert("volumes".to_owned(), "gp9:1GiB".to_owned());
    assert!(check_prices(&by_price, &hosts).is_err());
}

#[test]
fn a_thousand_hosts_are_raced_in_little_memory_and_by_less_than_a_core() {
    let shown = run_alone("race::tests::alone_a_thousand_hosts_are_raced");
    assert!(shown.contains("1000 hosts"), "{shown}");
}

#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn alone_a_thousand_hosts_are_raced() {
    if is_alone() {
        race_a_thousand_hosts();
    }
}

#[allow(clippy::print_stdout, reason = "the figures are worth seeing")]
fn race_a_thousand_hosts() {
    // Eight levels; the number after them only makes the names unique.
    let name = |at: usize| {
        let letters = [at / 676, at / 26, at].map(|part| char::from(b'a' + (part % 26) as u8));
        format!("wait{}{}", at % 8, String::from_iter(letters))
    };
    let names: Vec<String> = (0..1000).map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let words = [&ROUND[..], &["--rounds", "12"]].concat();
    let (before, began) = (resident(), Instant::now());
    let mut most = 0;
    let interrupt = AtomicBool::new(false);
    let mut keep = |run: &FleetRun| {
        most = most.max(resident().saturating_sub(before));
        assert_eq!(run.hosts.len(), 1000);
    };
    let (late, hosts) = (Duration::from_secs(60), hosts(&names));
    let run = race_with(late, &hosts, &words, &interrupt, &mut keep).unwrap();
    let record = run.race.as_ref().unwrap();
    assert_eq!(record.rounds[0].measured.len(), 1000);
    assert_eq!(record.rounds.len(), 12);
    let concluded = conclude(&run, record);
    // Many are equally good; those that are far behind are out.
    let is_far = |one: &RankedHost| run.hosts[one.place].host.starts_with("wait7");
    let mut left = concluded
        .ranked
        .iter()
        .filter(|one| one.decided <= Decision::Tie);
    assert!(left.clone().count() >= 3 && !left.any(is_far));
    let cores = used() / began.elapsed().as_secs_f64();
    println!("1000 hosts, their agents included: {most} MiB, {cores:.2} cores");
    assert!(most < 500, "{most} MiB");
    // Without optimization everything takes several times as long.
    let most = if cfg!(debug_assertions) { 2.0 } else { 1.0 };
    assert!(cores < most, "{cores} cores");
}
