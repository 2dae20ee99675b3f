//! Very many hosts, simulated at the transport.

use super::*;
use crate::fleet::link::{Simulated, simulated_hosts};

/// Memory that this process has now, in MiB (proc_pid_status(5)).
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim()
        .strip_suffix(" kB")
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

/// Seconds of a processor that this process has used (proc_pid_stat(5), fields 14 and 15).
fn used() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = text.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at - 3].parse::<f64>().unwrap();
    (ticks(14) + ticks(15)) / rustix::param::clock_ticks_per_second() as f64
}

fn watching(lasts: Duration, interrupt: &AtomicBool) -> Watching<'_> {
    Watching {
        every: Duration::from_secs(1),
        lasts: Some(lasts),
        batch: 64,
        interrupt,
    }
}

/// Says to the process that it runs nothing but one test.
const ALONE: &str = "DISKSMITH_TEST_ALONE";

/// Memory and processor time are those of a whole process, so that what is measured has one of its own.
#[test]
#[allow(clippy::print_stdout, reason = "the figures are worth seeing")]
fn a_thousand_hosts_take_little_memory_and_less_than_a_core() {
    let name = "fleet::top::tests::alone_a_thousand_hosts_are_watched";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        said.contains("1 passed") && said.contains("1000 hosts"),
        "{said}"
    );
}

#[test]
#[ignore = "the test above runs it, in a process of its own"]
#[allow(clippy::print_stdout, reason = "the figures are worth seeing")]
fn alone_a_thousand_hosts_are_watched() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    watch_a_thousand_hosts();
}

#[allow(clippy::print_stdout, reason = "the figures are worth seeing")]
fn watch_a_thousand_hosts() {
    let hosts = simulated_hosts(1000);
    let interrupt = AtomicBool::new(false);
    let before = resident();
    let mut seen = (0, 0);
    let mut since: Option<(Instant, f64)> = None;
    let mut look = |rows: &[Row]| {
        let live = rows.iter().filter(|row| row.sample().is_some()).count();
        let text = say::json(rows, &rows.iter().collect::<Vec<_>>());
        assert!(text.len() > 1000);
        seen = (
            seen.0.max(live),
            seen.1.max(resident().saturating_sub(before)),
        );
        if live == 1000 && since.is_none() {
            since = Some((Instant::now(), used()));
        }
        // A machine that is busy may take long until all are there.
        if since.is_some_and(|(since, _)| since.elapsed() > Duration::from_secs(4)) {
            interrupt.store(true, Relaxed);
        }
        Ok(())
    };
    let transport = Simulated::default();
    watching(Duration::from_secs(120), &interrupt)
        .watch(&transport, &hosts, &mut look)
        .unwrap();
    let (live, memory) = seen;
    assert_eq!(live, 1000);
    let (began, cpu) = since.unwrap();
    let cores = (used() - cpu) / began.elapsed().as_secs_f64();
    println!("1000 hosts, their agents included: {memory} MiB, {cores:.2} cores");
    assert!(memory < 500, "{memory} MiB");
    assert!(cores < 1.0, "{cores} cores");
}

#[test]
fn a_host_that_is_dead_is_tried_again_and_the_others_are_seen() {
    let mut hosts = simulated_hosts(3);
    hosts[1].name = "dead1".to_owned();
    hosts[2].name = "mute2".to_owned();
    let interrupt = AtomicBool::new(false);
    let transport = Simulated::default();
    let rows = watching(Duration::from_millis(5500), &interrupt)
        .watch(&transport, &hosts, &mut |_| Ok(()))
        .unwrap();
    assert!(rows[0].sample().is_some(), "{rows:?}");
    let dead =
        |at: usize| matches!(&rows[at].state, State::Dead(why) if why.contains(&hosts[at].name));
    assert!(dead(1) && dead(2), "{rows:?}");
    // Each of the two was tried again after 2 s.
    assert!(transport.opened.load(Relaxed) >= 5);
}
