//! `fleet run` and `fleet top` on real hosts: namespaces of this machine, each with its own sshd,
//! reached over the system's own ssh.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/net.rs"]
mod net;

mod support;

#[path = "support/loops.rs"]
mod loops;

#[path = "support/pty.rs"]
mod pty;

#[path = "fleet_hosts/many.rs"]
mod many;

#[path = "fleet_hosts/race.rs"]
mod race;

#[path = "fleet_hosts/replayed.rs"]
mod replayed;

#[path = "fleet_hosts/terminate.rs"]
mod terminate;

#[path = "fleet_hosts/undo.rs"]
mod undo;

#[path = "fleet_hosts/login.rs"]
mod login;

use std::process::Command;
use std::time::{Duration, Instant};

use net::{Disk, HostFault, HostSetup, Net};
use pty::Pty;
use rustix::process::Signal;
use serde_json::Value;
use support::{ProgramOutput, Running, TIMEOUT, output_of};

const PLAIN: HostSetup = HostSetup {
    disk: Disk::None,
    iops: None,
    more: &[],
    wrong: HostFault::Nothing,
};

const DISK: HostSetup = HostSetup {
    disk: Disk::Mounted(48),
    iops: None,
    more: &[],
    wrong: HostFault::Nothing,
};

/// Programs of the hosts: what they print is there once for all that print the same.
#[test]
fn root_runs_programs_on_hosts_and_folds_what_they_print() {
    let Some(net) = Net::new(&[PLAIN, PLAIN, PLAIN]) else {
        return;
    };
    let exec = |words: &[&str], program: &[&str]| {
        output_of(&mut net.fleet("exec", words, &[&["--"], program].concat()))
    };
    let text = exec(&[], &["cat", "/etc/os-release"]).ends_with(0);
    text.prints(&["\nh[1-3] (3 hosts):\n"]);
    assert_eq!(text.out.matches("VERSION_ID=").count(), 1, "{text:#?}");
    if support::has_program("clush") {
        folds_as_clush(&net);
    }
    // What looks like a document is the program's text all the same, and its words go through no shell.
    let answer = exec(&["--json"], &["echo", "[1]", "$HOME;"])
        .ends_with(0)
        .json();
    assert_eq!(answer["command"], "fleet exec");
    for name in ["h1", "h2", "h3"] {
        assert_eq!(host(&answer, name)["answer"], "[1] $HOME;\n");
    }
    // The agent's parent is the host's own sshd, so that the hosts differ.
    let script = "test $(hostname) != h2 || { echo broken >&2; exit 4; }";
    let said = exec(&[], &["sh", "-c", script]).ends_with(3);
    said.prints(&[
        "h2: failed: it ended with status 4: broken",
        "2 of 3 hosts are done",
    ]);
    let again = exec(&["--json", "--retry-failed"], &["sh", "-c", script])
        .ends_with(3)
        .json();
    assert_eq!(again["hosts"].as_array().unwrap().len(), 1, "{again:#}");
    assert_eq!(host(&again, "h2")["status"], 4);
    let late = exec(&["--limit", "1s", "--json"], &["sleep", "100"])
        .ends_with(3)
        .json();
    assert_eq!(host(&late, "h1")["came"], "interrupted", "{late:#}");
    let none = exec(&["--json"], &["no-such-program"]).ends_with(2).json();
    assert!(
        why(&none, "h1").contains("no-such-program could not be started"),
        "{none:#}"
    );
    net.assert_nothing_left();
}

/// The hosts of each text, as clush gathers them.
fn folds_as_clush(net: &Net) {
    let script = "test $(hostname) = h2 && printf 'two\\t2\\n' || echo others";
    let text = output_of(&mut net.fleet("exec", "", &["--", "sh", "-c", script])).ends_with(0);
    let ssh = format!("-F {}", net.config());
    let clush = ["clush", "-b", "-w", "h[1-3]", "-o", &ssh, script];
    let gathered = output_of(&mut net.near(&clush)).ends_with(0);
    for (set, count, line) in [("h[1,3]", 2, "others"), ("h2", 1, "two\t2")] {
        let number = if count > 1 {
            format!(" ({count} hosts)")
        } else {
            String::new()
        };
        let own = format!("\n{set}{number}:\n");
        text.prints(&[&own, line]);
        let number = if count > 1 {
            format!(" ({count})")
        } else {
            String::new()
        };
        let rule = "-".repeat(15);
        let theirs = format!("{rule}\n{set}{number}\n{rule}\n{line}\n");
        gathered.prints(&[&theirs]);
    }
}

/// Icinga's way to a host: check_by_ssh runs the plugin there, and hands on its line and status.
#[test]
fn root_checks_a_host_by_check_by_ssh_of_monitoring_plugins() {
    let plugin = "/usr/lib/nagios/plugins/check_by_ssh";
    if !std::path::Path::new(plugin).exists() {
        support::skipped("monitoring-plugins-basic is not installed");
        return;
    }
    let Some(net) = Net::new(&[PLAIN]) else {
        return;
    };
    // A disk of its own: what happens to disks that are not named is no matter of the answer.
    let Some(disk) = loops::Loop::new(8) else {
        return;
    };
    let disk = disk.name();
    let check = |more: &str| {
        let remote = format!(
            "{} watch --check --count 1 --interval 100ms {more}",
            Net::PROGRAM
        );
        let words = [
            plugin,
            "-H",
            "h1",
            "-F",
            &net.config(),
            "-t",
            "60",
            "-C",
            &remote,
        ];
        output_of(&mut net.near(&words))
    };
    for (more, status, begins) in [
        ("-c iops=@0:1000000000", 2, "DISKSMITH CRITICAL - "),
        ("-w iops=@0:1000000000", 1, "DISKSMITH WARNING - "),
        ("no-such-disk", 3, "DISKSMITH UNKNOWN - "),
    ] {
        let said = check(&format!("{more} {disk}"));
        assert_eq!(said.status, Some(status), "{more}: {said:#?}");
        assert!(said.out.starts_with(begins), "{more}: {said:#?}");
    }
    net.assert_nothing_left();
}

/// A verb that reads for longer than anything is waited for.
const LONG: &str = "-- bench /mnt/data --phase page-read --size 8M --seconds 30m --precision=0";

/// Result of a host, by its name.
fn host<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let hosts = answer["hosts"].as_array().unwrap();
    hosts.iter().find(|host| host["host"] == name).unwrap()
}

fn why(answer: &Value, name: &str) -> String {
    host(answer, name)["why"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn root_runs_a_verb_on_four_hosts_and_gathers_the_answers() {
    let Some(net) = Net::new(&[DISK, PLAIN, PLAIN, PLAIN]) else {
        return;
    };
    let mut devices = net.fleet("run", "--json", "-- devices");
    let answer = output_of(&mut devices).ends_with(0).json();
    assert_eq!(answer["command"], "fleet run");
    assert_eq!(answer["args"], serde_json::json!(["devices", "--json"]));
    for name in ["h1", "h2", "h3", "h4"] {
        let host = host(&answer, name);
        assert_eq!(host["came"], "done", "{host:#}");
        assert_eq!(host["answer"]["schema"], 1, "{host:#}");
        // One machine has one clock.
        assert!(
            host["clock_ahead_s"].as_f64().unwrap().abs() < 2.0,
            "{host:#}"
        );
    }
    // On the screen their text is there, once for all hosts that give the same.
    let text = output_of(&mut net.fleet("run", "", "-- playbook array-degraded")).ends_with(0);
    text.prints(&["\nh[1-4] (4 hosts):\n"]);
    // The host that is not like the others is named.
    net.on("h1", "mount -o remount,strictatime /mnt/data");
    let atime = "-- doctor --data /mnt/data --check mount-atime";
    let odd = output_of(&mut net.fleet("run", "", atime))
        .ends_with(0)
        .prose();
    let expected =
        "h1: differs from most in mount-atime: consider (/mnt/data: strictatime); 3 hosts have ok.";
    assert!(odd.contains(expected), "{odd}");
    net.assert_nothing_left();

    // One host has what is measured, and three have not: they refuse, and it is told why.
    let bench = "-- bench /mnt/data --phase page-read --size 8M --seconds 200ms";
    let mixed = output_of(&mut net.fleet("run", "--exclude h[34]", bench)).ends_with(0);
    mixed.prints(&["page-read.iops"]);
    let listed = net.place.run("runs --json").ends_with(0).json();
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{listed:#}");
    let mut names: Vec<&str> = runs
        .iter()
        .map(|run| run["hostname"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["h1", "h2"], "{listed:#}");

    let none = output_of(&mut net.fleet("run", "", "-- bench /mnt/none")).ends_with(2);
    none.warns(&["nothing was touched on any host"]);
    none.prints(&["/mnt/none"]);
    let options = ["--limit", "2s", "--include", "h1", "--json"];
    let limited = output_of(&mut net.fleet("run", &options, LONG)).ends_with(3);
    let limited = limited.json();
    assert_eq!(host(&limited, "h1")["came"], "interrupted", "{limited:#}");
    assert!(
        why(&limited, "h1").contains("ended after 2 s"),
        "{limited:#}"
    );
    let dance = output_of(&mut net.fleet("run", "", "-- dance"));
    dance.refuses(&["is invalid"]);
    net.assert_nothing_left();
}

#[test]
fn root_sees_what_an_agent_had_when_the_connection_was_lost() {
    let Some(net) = Net::new(&[DISK, DISK]) else {
        return;
    };
    let mut command = net.fleet("run", "--json", LONG);
    let running = Running::start(&mut command);
    let benches = "ps -eo args | grep '^disksmith bench' || true";
    net.wait_on("h1", benches);
    net.wait_on("h2", benches);
    // So that there is something to be kept.
    net.wait_on("h1", &moved("bench", "read_bytes"));
    net.wait_on("h2", &moved("bench", "read_bytes"));
    net.cut("h1");
    let cut = Instant::now();
    while !net.on("h1", benches).is_empty() {
        // By itself it would continue for longer. What is promised is 10 s; how soon a busy machine sees it is its own matter.
        assert!(cut.elapsed() < TIMEOUT, "it measures on");
        std::thread::sleep(Duration::from_millis(100));
    }
    let kept = net.wait_on("h1", "ls /var/lib/disksmith/fleet 2>/dev/null || true");
    assert!(kept.ends_with(".json"), "{kept}");

    // The other continues, until the user wants the end. The one that was lost stays lost.
    assert!(!net.on("h2", benches).is_empty());
    running.signal(Signal::INT);
    let ended = running.end().ends_with(3);
    let answer = ended.json();
    assert_eq!(host(&answer, "h2")["came"], "interrupted", "{answer:#}");
    assert_eq!(
        host(&answer, "h2")["answer"]["phases"][0]["stopped"],
        "signal"
    );
    assert_eq!(host(&answer, "h2")["runs"].as_array().unwrap().len(), 1);
    assert!(["lost", "interrupted"].contains(&host(&answer, "h1")["came"].as_str().unwrap()));
    assert_eq!(net.place.runs().len(), 1);

    net.mend("h1");
    let later = output_of(&mut net.fleet("run", "", "-- devices")).ends_with(0);
    let summary = format!(
        "h1: its stored answer to {}",
        answer["fleet"].as_str().unwrap()
    );
    later.prints(&[&summary]);
    let id = answer["fleet"].as_str().unwrap();
    let shown = net
        .place
        .run(&["fleet", "show", id, "--json"])
        .ends_with(0)
        .json();
    assert_eq!(host(&shown, "h1")["came"], "lost", "{shown:#}");
    assert_eq!(
        host(&shown, "h1")["runs"].as_array().unwrap().len(),
        1,
        "{shown:#}"
    );
    // What it had is a run as any other now.
    assert_eq!(net.place.runs().len(), 2);
    let seen = net.place.run("runs --json").ends_with(0).json();
    assert!(
        seen["runs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|run| run["hostname"] == "h1")
    );
    net.assert_nothing_left();
}

#[test]
fn root_kills_fleet_and_the_hosts_end_what_they_did() {
    let Some(net) = Net::new(&[DISK]) else {
        return;
    };
    let mut command = net.fleet("run", "", LONG);
    let running = Running::start(&mut command);
    let benches = "ps -eo args | grep '^disksmith bench' || true";
    net.wait_on("h1", benches);
    running.signal(Signal::KILL);
    let began = Instant::now();
    while !net.on("h1", benches).is_empty() {
        assert!(began.elapsed() < TIMEOUT, "it measures on");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(running);
    output_of(&mut net.fleet("run", "", "-- devices")).ends_with(0);
    net.assert_nothing_left();
}

#[test]
fn root_top_shows_two_hosts_and_one_that_is_dead() {
    let Some(net) = Net::new(&[
        PLAIN,
        PLAIN,
        HostSetup {
            wrong: HostFault::Dead,
            ..PLAIN
        },
    ]) else {
        return;
    };
    let json = net.fleet("top", "--json --every 500ms", "");
    // The questions and the counters go over the wire.
    let is_whole = |document: &Value| {
        document["live"] == 2
            && host(document, "h3")["state"] == "dead"
            && host(document, "h1")["received_bytes_per_s"].as_f64() > Some(0.0)
    };
    let answered = watched(&net, json, |text| {
        let mut lines = text.lines().rev();
        let last = lines.find_map(|line| serde_json::from_str(line).ok());
        last.is_some_and(|last: Value| is_whole(&last))
    });
    // A host may be silent for a while on a busy machine, so that a later document has fewer.
    let documents = support::documents::all(&answered.out);
    let whole = documents.iter().find(|one| is_whole(one)).unwrap();
    assert_eq!(whole["of"], 3, "{whole:#}");
    assert!(why(whole, "h3").contains("h3 was not reached"), "{whole:#}");
    assert!(host(whole, "h1")["load"][0].is_number(), "{whole:#}");
    net.assert_nothing_left();
    let options = ["--every", "1s", "--only", "load>=0", "--exclude", "h3"];
    let table = watched(&net, net.fleet("top", &options, ""), |text| {
        text.contains("2 of 2 hosts")
    });
    table.prints(&["2 of 2 hosts"]);
    table.fits(100);
    net.assert_nothing_left();
}

#[test]
fn root_zeroes_the_disks_of_all_hosts_or_of_none() {
    let bare = HostSetup {
        disk: Disk::Bare(24),
        ..PLAIN
    };
    let signed = HostSetup {
        disk: Disk::Signed(24),
        ..PLAIN
    };
    let Some(net) = Net::new(&[bare, signed, bare]) else {
        return;
    };
    let first = "od -An -tx1 -N 2 -j 1080 /run/disk";
    // The magic number of ext4, and data of no kind.
    assert_eq!(net.on("h2", first), "53 ef");
    net.on("h1", "head -c 1M /dev/zero | tr '\\0' 'x' > /run/disk");
    let disk = ["--", "/run/disk", "--destroy", "/run/disk=unknown"];
    let refused = output_of(&mut net.fleet("zero", "--yes", &disk)).ends_with(2);
    refused.warns(&["nothing is written on any host", "h2: ", "ext4"]);
    assert_eq!(net.on("h1", first), "78 78");
    let unasked = output_of(&mut net.fleet("zero", "--exclude h2", &disk)).ends_with(2);
    unasked.warns(&["give --yes", "2 disks of 2 hosts"]);
    assert_eq!(net.on("h1", first), "78 78");
    // The same holds for what else overwrites: one host refuses, or the plan is not confirmed.
    let bench = "-- bench /run/disk --destroy /run/disk=unknown --phase page-write --seconds 300ms";
    let refused = output_of(&mut net.fleet("run", "--yes", bench)).ends_with(2);
    refused.warns(&["nothing is written on any host", "ext4"]);
    let unasked = output_of(&mut net.fleet("run", "--exclude h2", bench)).ends_with(2);
    unasked.warns(&["give --yes", "2 disks of 2 hosts"]);
    assert_eq!(net.on("h1", first), "78 78");
    race_overwrites_what_was_agreed_to(&net, &disk, first);
    let options = ["--exclude", "h2", "--yes", "--json"];
    let zero = [&["--", "zero"][..], &disk[1..]].concat();
    let done = output_of(&mut net.fleet("run", &options, &zero))
        .ends_with(0)
        .json();
    assert_eq!(done["command"], "fleet run", "{done:#}");
    assert_eq!(host(&done, "h1")["answer"]["well"], true, "{done:#}");
    assert_eq!(net.on("h1", first), "00 00");
    assert_eq!(net.on("h2", first), "53 ef");
    let done = output_of(&mut net.fleet("zero", &options, &disk)).ends_with(0);
    assert_eq!(
        host(&done.json(), "h1")["answer"]["well"],
        true,
        "{done:#?}"
    );
}

/// A race continues without a host that refuses where that was agreed to, and that one is not ranked.
fn race_overwrites_what_was_agreed_to(net: &Net, disk: &[&str], first: &str) {
    let race = "--keep 1 --by page-write.iops --round 500ms --rounds 2";
    output_of(&mut net.fleet("race", race, disk)).refuses(&["give --yes"]);
    assert_eq!(net.on("h1", first), "78 78");
    let mut command = net.fleet("race", race, disk);
    let mut screen = Pty::start(command.env("TERM", "xterm"), (160, 40), true);
    let asked = screen.wait_for_word("Write yes to continue").text();
    for expected in [
        "2 disks of 2 hosts",
        "nothing known",
        "h2: ",
        "ext4",
        "without the 1 host",
    ] {
        assert!(asked.contains(expected), "{expected}: {asked}");
    }
    assert_eq!(net.on("h1", first), "78 78");
    screen.press("yes\n");
    let status = screen.end();
    assert!(
        matches!(status.code(), Some(0 | 1)),
        "{status}: {}",
        screen.seen().text()
    );
    // The table was there, and is gone.
    let written = String::from_utf8_lossy(&screen.written()).into_owned();
    assert!(written.contains("round 1 of at most 2, after"), "{written}");
    let seen = screen.wait_until_gone("of at most 2, after");
    assert!(!seen.is_too_wide && !screen.is_raw(), "{}", seen.text());
    let answer = net.place.run("fleet show --json").ends_with(0).json();
    assert_eq!(host(&answer, "h2")["decision"], "failed", "{answer:#}");
    assert!(host(&answer, "h2")["figure"].is_null(), "{answer:#}");
    for name in ["h1", "h3"] {
        assert_eq!(host(&answer, name)["rounds"], 2, "{answer:#}");
        assert!(
            host(&answer, name)["targets"][0]["doomed"].is_object(),
            "{answer:#}"
        );
    }
    assert_eq!(net.on("h2", first), "53 ef");
}

/// A script that says something once a verb on a host has moved more than a few bytes (proc_pid_io(5)).
pub(crate) fn moved(verb: &str, counter: &str) -> String {
    format!(
        "for pid in $(pgrep -f '^disksmith {verb}'); do \
         awk '/^{counter}/ && $2 > 4000000' /proc/$pid/io; done || true"
    )
}

/// Its output until that is as wanted and it is interrupted.
fn watched(net: &Net, mut command: Command, is_wanted: impl Fn(&str) -> bool) -> ProgramOutput {
    let mut running = Running::start(&mut command);
    let shells = "ps -eo args | grep '[s]ay counted' || true";
    for name in ["h1", "h2"] {
        net.wait_on(name, shells);
    }
    running.wait_for_output(is_wanted);
    running.signal(Signal::INT);
    running.end().ends_with(0)
}
