//! Sixteen hosts, of which some are slow, and some are not as they should be; and thirty that are watched.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::net::{Disk, HostFault, HostSetup, Net};
use crate::race::{ONE, disk, listed, wrong};
use crate::support::{Running, output_of};
use crate::{host, why};

const FAST: HostSetup = HostSetup {
    disk: Disk::Mounted(32),
    iops: Some(400),
    more: &[],
    wrong: HostFault::Nothing,
};

const SLOW: HostSetup = HostSetup {
    iops: Some(60),
    ..FAST
};

#[test]
#[ignore = "long proof: make prove"]
fn root_measures_sixteen_hosts_of_which_eight_are_as_they_should_be() {
    let mut wishes = vec![FAST; 10];
    // The last one drops on the way.
    wishes.extend([
        SLOW,
        wrong(HostFault::Dead),
        wrong(HostFault::Key),
        wrong(HostFault::Full),
        wrong(HostFault::ReadOnly),
        HostSetup {
            wrong: HostFault::NoExec,
            ..FAST
        },
    ]);
    let Some(net) = Net::new(&wishes) else {
        return;
    };
    let bench = "-- bench /mnt/data --phase page-read --size 8M --seconds 4s --precision=0";
    let mut command = net.fleet("run", "--json", bench);
    let began = Instant::now();
    let running = Running::start(&mut command);
    let benches = "ps -eo args | grep '^disksmith bench' || true";
    net.wait_on("h10", benches);
    net.cut("h10");
    let ended = running.end().ends_with(3);
    let summary =
        "disksmith: 5 of 16 hosts did not complete; the answer has the reason for each host\n";
    // Before it, a busy machine may have told who is under way.
    assert!(ended.err.ends_with(summary), "{ended:#?}");
    let answer = ended.json();
    let took = began.elapsed();

    for number in (1..=9).chain([11, 16]) {
        let host = host(&answer, &format!("h{number}"));
        assert_eq!(host["came"], "done", "{host:#}");
        assert!(host["figure"].as_f64().unwrap() > 0.0, "{host:#}");
        assert_eq!(
            host["runs"].as_array().unwrap().len(),
            1,
            "{}",
            host["stderr"]
        );
    }
    assert_eq!(answer["figure"], "page-read.iops");
    // The slow one stands out, and none that is like the others does. One that had no processor for a while may.
    assert_eq!(host(&answer, "h11")["outlier"], true, "{answer:#}");
    let median = answer["median"].as_f64().unwrap();
    for host in answer["hosts"].as_array().unwrap() {
        let is_like = host["figure"]
            .as_f64()
            .is_none_or(|figure| (figure / median - 1.0).abs() < 0.03);
        assert!(!is_like || host["outlier"] == false, "{host:#}");
    }
    assert_eq!(host(&answer, "h11")["zone"], "zone-2");

    for (name, came, expected) in [
        ("h10", "lost", "h10"),
        ("h12", "unreached", "h12 was not reached"),
        (
            "h13",
            "unreached",
            "another host key than the one that is known",
        ),
        ("h14", "unfit", "is full"),
        ("h15", "unfit", "may not be written"),
    ] {
        assert_eq!(
            host(&answer, name)["came"],
            came,
            "{:#}",
            host(&answer, name)
        );
        assert!(
            why(&answer, name).contains(expected),
            "{}",
            why(&answer, name)
        );
    }
    // One that is dead or lost held none of the others up.
    assert!(took < crate::support::TIMEOUT, "{took:?}");
    net.mend("h10");
    let text = output_of(&mut net.fleet("run", "--include h10$", "-- devices")).ends_with(0);
    text.prints(&["1 of 1 hosts are done"]);
    // Eleven were done, and the one that was lost had measured too.
    assert_eq!(net.place.runs().len(), 12);
    net.assert_nothing_left();
}

/// All of them, with their sshds and shells, share this machine's processors with the one that watches.
#[test]
#[ignore = "long proof: make prove"]
fn root_top_shows_thirty_hosts_within_five_seconds() {
    let Some(net) = Net::undisturbed(&[wrong(HostFault::Nothing); 30]) else {
        return;
    };
    let mut took = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        let mut running = Running::start(&mut net.fleet("top", "--json --every 250ms", ""));
        running.wait_for_output(|text| {
            let lines = text.lines().rev();
            let documents = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
            documents.into_iter().any(|document| {
                let has_load =
                    |number: usize| host(&document, &format!("h{number}"))["load"][0].is_number();
                document["live"] == 30 && (1..=30).all(has_load)
            })
        });
        took.push(began.elapsed());
        running.signal(Signal::INT);
        running.end().ends_with(0);
    }
    println!("all thirty were shown after {took:?}");
    took.sort();
    assert!(took[1] < Duration::from_secs(5), "{took:?}");
}

/// Every third has a disk of 100 requests a second, and the others of 31 to 59. The README shows what it prints.
#[test]
#[ignore = "long proof: make prove"]
fn root_races_thirty_hosts_and_keeps_the_ten_of_the_fast_disks() {
    let is_fast = |number: u64| number % 3 == 1;
    let limit = |number| if is_fast(number) { 100 } else { 29 + number };
    let hosts: Vec<HostSetup> = (1..=30).map(|number| disk(limit(number))).collect();
    let Some(net) = Net::undisturbed(&hosts) else {
        return;
    };
    let options = ["--keep", "10", "--round", "2s", "--rounds", "60"];
    let answer = output_of(&mut net.fleet("race", &options, &ONE)).ends_with(0);
    eprintln!("{}", answer.out);
    let mut fast: Vec<String> = (1..=30)
        .filter(|number| is_fast(*number))
        .map(|number| format!("h{number}"))
        .collect();
    fast.sort();
    assert_eq!(listed(&net, "keep.txt"), fast);
}
