//! Very many simulated hosts.

use super::*;
use crate::connection::{SimulatedTransport, simulated_hosts};
use crate::test_process::{is_alone, resident, run_alone, used};

fn watching(lasts: Duration, interrupt: &AtomicBool) -> HostMonitor<'_> {
    HostMonitor {
        every: Duration::from_secs(1),
        lasts: Some(lasts),
        batch: 64,
        interrupt,
    }
}

#[test]
fn a_thousand_hosts_take_little_memory_and_less_than_a_core() {
    let test_output = run_alone("top::tests::alone_a_thousand_hosts_are_watched");
    assert!(test_output.contains("1000 hosts"), "{test_output}");
}

#[test]
#[ignore = "the test above runs it, in a process of its own"]
fn alone_a_thousand_hosts_are_watched() {
    if is_alone() {
        watch_a_thousand_hosts();
    }
}

#[allow(clippy::print_stdout, reason = "the figures are worth seeing")]
fn watch_a_thousand_hosts() {
    let hosts = simulated_hosts(1000);
    let interrupt = AtomicBool::new(false);
    let before = resident();
    let mut seen = (0, 0);
    let mut since: Option<(Instant, f64)> = None;
    let mut poll = |rows: &[HostRow]| {
        let live = rows.iter().filter(|row| row.sample().is_some()).count();
        let text = view::json(rows, &rows.iter().collect::<Vec<_>>());
        assert!(text.len() > 1000);
        seen = (
            seen.0.max(live),
            seen.1.max(resident().saturating_sub(before)),
        );
        if live == 1000 && since.is_none() {
            since = Some((Instant::now(), used()));
        }
        // On a busy machine it may take long until all are connected.
        if since.is_some_and(|(since, _)| since.elapsed() > Duration::from_secs(4)) {
            interrupt.store(true, Relaxed);
        }
        Ok(())
    };
    let transport = SimulatedTransport::default();
    watching(Duration::from_secs(120), &interrupt)
        .watch(&transport, &hosts, &mut poll)
        .unwrap();
    let (live, memory) = seen;
    assert_eq!(live, 1000);
    let (began, cpu) = since.unwrap();
    let cores = (used() - cpu) / began.elapsed().as_secs_f64();
    println!("1000 hosts, simulated in this process: {memory} MiB, {cores:.2} cores");
    assert!(memory < 500, "{memory} MiB");
    assert!(cores < 1.0, "{cores} cores");
}

#[test]
fn a_host_that_is_dead_is_tried_again_and_the_others_are_seen() {
    let mut hosts = simulated_hosts(3);
    hosts[1].name = "dead1".to_owned();
    hosts[2].name = "mute2".to_owned();
    let interrupt = AtomicBool::new(false);
    let transport = SimulatedTransport::default();
    let is_dead =
        |row: &HostRow| matches!(&row.state, State::Dead(why) if why.contains(row.host.as_str()));
    let is_seen = |rows: &[HostRow]| rows[0].sample().is_some() && rows[1..].iter().all(is_dead);
    // Until each of the two was retried, which is after 2 s, or later on a busy machine.
    let mut poll = |rows: &[HostRow]| {
        let are_tried = rows[1..].iter().all(|row| transport.tried(&row.host) > 1);
        interrupt.store(are_tried && is_seen(rows), Relaxed);
        Ok(())
    };
    let rows = watching(Duration::from_secs(600), &interrupt)
        .watch(&transport, &hosts, &mut poll)
        .unwrap();
    assert!(interrupt.load(Relaxed), "{rows:?}");
}
