//! The verb `fleet` through the real binary: where hosts come from, and how many to start. The
//! programs `aws` and `ansible-inventory` are stood in for by scripts that answer as they do.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use support::{Place, ProgramOutput, Words, behind, has_program, output_of, write_script};

const LIST: &str = "# burn-in\n\
    db1 az=us-east-1a type=i4i.large id=i-01   # was slow\n\
    db2 az=us-east-1b type=i4i.large id=i-02\n";

/// Puts a program of this name that runs this script where it is found first, and gives that PATH.
fn path_with(place: &Place, name: &str, script: &str) -> String {
    let folder = place.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join(name);
    write_script(&program, &format!("#!/bin/sh\n{script}\n"));
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

/// Runs with a program of this name on the PATH that runs this script.
fn with_program(
    place: &Place,
    name: &str,
    script: &str,
    arguments: &(impl Words + ?Sized),
) -> ProgramOutput {
    let path = path_with(place, name, script);
    output_of(place.command(arguments).env("PATH", path))
}

#[test]
fn a_list_of_dsh_is_shown_with_its_comments() {
    let place = Place::new();
    fs::create_dir(place.path(".dsh")).unwrap();
    fs::write(place.path(".dsh/machines.burnin"), LIST).unwrap();
    let mut command = place.command("fleet hosts --list burnin");
    let shown = output_of(command.env("HOME", place.path(""))).ends_with(0);
    shown.prints(&["db1", "us-east-1b", "i4i.large", "i-02", "was slow"]);
    fs::write(place.path("hosts"), LIST).unwrap();
    let arguments = "fleet hosts --list ./hosts --exclude 1$ --json";
    let answer = place.run(arguments).ends_with(0).json();
    assert_eq!(answer["command"], "fleet hosts");
    assert_eq!(answer["hosts"].as_array().unwrap().len(), 1);
    assert_eq!(answer["hosts"][0]["type"], "i4i.large");
}

#[test]
fn hosts_are_named_by_node_sets() {
    let place = Place::new();
    let names = |arguments: &[&str]| -> Vec<String> {
        let words = [&["fleet", "hosts", "--json"], arguments].concat();
        let answer = place.run(&words).ends_with(0).json();
        let hosts = answer["hosts"].as_array().unwrap().iter();
        hosts
            .map(|host| host["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(&["--hosts", "db[08-11]!db09,web1"]),
        ["db08", "db10", "db11", "web1"]
    );
    if has_program("nodeset") {
        for set in [
            "db[1-12,14]",
            "db[001-100]",
            "db[1-9/2]",
            "r[1-2]n[1-16]",
            "a[1-9]!a[2-3]&a[1-5]^a9,b",
        ] {
            let expanded = output_of(Command::new("nodeset").args(["--expand", set])).ends_with(0);
            let own: BTreeSet<String> = names(&["--hosts", set]).into_iter().collect();
            let expected = expanded.out.split_whitespace().map(str::to_owned);
            assert_eq!(own, expected.collect(), "{set}");
        }
    }
    fs::write(place.path("hosts"), "r[1-2]n[1-2] az=z1\n").unwrap();
    assert_eq!(
        names(&["--list", "./hosts"]),
        ["r1n1", "r1n2", "r2n1", "r2n2"]
    );
    let twice = "fleet hosts --hosts db[1-2],db2 --list ./hosts";
    place.run(twice).refuses(&["--hosts"]);
    place
        .run("fleet hosts --hosts db[2-1]")
        .refuses(&["'2-1' is no range of numbers"]);
}

#[test]
fn groups_of_clustershell_are_expanded_by_its_nodeset() {
    let place = Place::new();
    let mut words = vec!["fleet", "hosts", "--json", "--hosts", "@web!web2,db9"];
    let without = output_of(place.command(&words).env("PATH", place.path("")));
    without
        .refuses(&["'@web' is a group of ClusterShell, whose nodeset is not installed (install"]);
    if !has_program("nodeset") {
        return;
    }
    fs::write(place.path("groups"), "web: web[1-3]\n").unwrap();
    let groups = place.path("groups").display().to_string();
    let config = format!(
        "[Main]\ndefault: local\n[local]\nmap: sed -n 's/^$GROUP: //p' {groups}\n\
         list: sed -n 's/:.*//p' {groups}\n[away]\nmap: echo no directory >&2\n"
    );
    fs::write(place.path("groups.conf"), config).unwrap();
    let run = |words: &[&str]| {
        output_of(
            place
                .command(words)
                .env("CLUSTERSHELL_CFGDIR", place.path("")),
        )
    };
    let answer = run(&words).ends_with(0).json();
    let hosts = answer["hosts"].as_array().unwrap().iter();
    let names: Vec<&str> = hosts.map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web1", "web3", "db9"]);
    words[4] = "@wep";
    run(&words).refuses(&["ClusterShell knows no host of '@wep' (its groups: nodeset --list-all)"]);
    words[4] = "@away:web";
    run(&words).refuses(&["'@away:web'", "--list-all): no directory"]);
    fs::write(place.path("listed"), "@web!web2 az=z1\n").unwrap();
    let listed = ["fleet", "hosts", "--json", "--list", "./listed"];
    let answer = run(&listed).ends_with(0).json();
    let hosts = answer["hosts"].as_array().unwrap().iter();
    let names: Vec<&str> = hosts.map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web1", "web3"]);
}

#[test]
fn hosts_that_failed_are_tried_again_alone() {
    if !has_program("ssh") {
        return skip::skipped("ssh is not installed");
    }
    let place = Place::new();
    // Nothing listens there.
    let run = |hosts: &str, options: &[&str]| {
        fs::write(place.path("hosts"), hosts).unwrap();
        let words = [
            &["fleet", "run", "--list", "./hosts", "--json"],
            options,
            &["--", "devices"],
        ];
        place.run(&words.concat())
    };
    let none = run("127.0.0.1 port=1\n", &["--retry-failed"]);
    none.refuses(&[
        "no 'fleet run' of these words",
        "fleet run --list ./hosts --json -- devices",
    ]);
    let words = ["fleet", "exec", "--list", "./hosts", "--retry-failed"];
    let program = ["--", "sh", "-c", "test 'a b'"];
    place
        .run(&[&words[..], &program].concat())
        .refuses(&[r"fleet exec --list ./hosts -- sh -c 'test '\''a b'\'''"]);
    let first = run("127.0.0.[1-2] port=1\n", &[]).json();
    assert_eq!(first["hosts"].as_array().unwrap().len(), 2, "{first:#}");
    let id = first["fleet"].as_str().unwrap();
    // Behind them are the options.
    assert_eq!(place.completions(&["fleet", "show", ""])[..2], ["last", id]);
    assert_eq!(place.completions(&["fleet", "show", &id[..9]]), [id]);
    let again = run("127.0.0.[2-4] port=1\n", &["--retry-failed"]).json();
    let hosts = again["hosts"].as_array().unwrap();
    assert_eq!(
        (hosts.len(), &hosts[0]["host"]),
        (1, &"127.0.0.2".into()),
        "{again:#}"
    );
    let none = run("127.0.0.5 port=1\n", &["--retry-failed"]);
    none.refuses(&["only 127.0.0.2 did not complete"]);
}

#[test]
fn lists_that_make_no_sense_are_refused_with_their_lines() {
    let place = Place::new();
    for (text, expected) in [
        ("", "lists no host"),
        ("a\nb\na\n", "line 3: a is the same host as a of"),
        ("a\n-oProxyCommand=x\n", "line 2: '-oProxyCommand"),
        ("a b\n", "line 1: 'b' is not KEY=VALUE"),
    ] {
        fs::write(place.path("hosts"), text).unwrap();
        place
            .run("fleet hosts --list ./hosts")
            .refuses(&["there are no hosts: ./hosts", expected]);
    }
    fs::write(place.path("hosts"), LIST).unwrap();
    let none = "fleet hosts --list ./hosts --include ^web";
    place.run(none).refuses(&["None of the 2 hosts is left"]);
    place.run("fleet hosts").ends_with(2);
    let both = "fleet hosts --list a --inventory b";
    place.run(both).ends_with(2);
    let bad = "fleet hosts --list ./hosts --include db(";
    let refused = place.run(bad).ends_with(2);
    refused.warns(&["not a regular expression"]);
}

/// Answers as `aws` does: a page, and behind its token another.
const AWS: &str = r#"case "$*" in
*--starting-token*)
  echo '{"Reservations": [{"Instances": [
    {"InstanceId": "i-2", "State": {"Name": "terminated"}}]}]}';;
*"--filters Name=tag:role,Values=burnin"*)
  echo '{"Reservations": [{"Instances": [{"InstanceId": "i-1", "State": {"Name": "running"},
    "PublicIpAddress": "192.0.2.1", "Placement": {"AvailabilityZone": "us-east-1a"},
    "Tags": [{"Key": "keep", "Value": ""}]}]}], "NextToken": "t"}';;
*) exit 1;;
esac"#;

#[test]
fn ec2_is_queried_through_aws_page_by_page() {
    let place = Place::new();
    let private = ["fleet", "hosts", "--ec2", "Name=tag:role,Values=burnin"];
    let public = [&private[..], &["--address", "public", "--json"]].concat();
    let answer = with_program(&place, "aws", AWS, &public).ends_with(0);
    answer.warns(&["i-2 is terminated"]);
    let answer = answer.json();
    assert_eq!(answer["hosts"][0]["address"], "192.0.2.1");
    assert_eq!(answer["hosts"][0]["tags"]["keep"], "");
    with_program(&place, "aws", AWS, &private).refuses(&["i-1 has no private address"]);
    let denied = "echo 'An error occurred (UnauthorizedOperation)' >&2; exit 254";
    with_program(&place, "aws", denied, &private).refuses(&[
        "aws ec2 describe-instances",
        "status 254",
        "UnauthorizedOperation",
    ]);
}

#[test]
fn an_inventory_is_read_by_ansible_itself() {
    let place = Place::new();
    fs::write(place.path("hosts.ini"), "[db]\ndb1\n").unwrap();
    let script = r#"[ "$*" = "--inventory hosts.ini --list" ] || exit 3
# Ansible refuses to run in another locale.
[ "$LC_ALL" = C.UTF-8 ] || exit 4
echo '{"_meta": {"hostvars": {"db1": {"ansible_host": "10.0.0.1"}}}, "db": {"hosts": ["db1"]}}'"#;
    let arguments = ["fleet", "hosts", "--inventory", "hosts.ini", "--json"];
    let answer = with_program(&place, "ansible-inventory", script, &arguments);
    assert_eq!(
        answer.ends_with(0).json()["hosts"][0]["address"],
        "10.0.0.1"
    );
}

/// The same inventory in both of Ansible's forms.
const INVENTORIES: [(&str, &str); 2] = [
    (
        "hosts.ini",
        "[db]\n\
         db1 ansible_host=10.0.0.1 ansible_user=admin ansible_port=2222\n\
         db[2:3] type=i4i.large\n\
         [db:vars]\n\
         az=us-east-1a\n\
         [near]\n\
         here ansible_connection=local\n",
    ),
    (
        "hosts.yaml",
        "all:\n  children:\n    db:\n      vars: {az: us-east-1a}\n      hosts:\n        \
         db1: {ansible_host: 10.0.0.1, ansible_user: admin, ansible_port: 2222}\n        \
         db[2:3]: {type: i4i.large}\n    near:\n      hosts:\n        \
         here: {ansible_connection: local}\n",
    ),
];

#[test]
fn inventories_of_a_real_ansible_are_read_in_both_forms() {
    if !has_program("ansible-inventory") {
        return;
    }
    let place = Place::new();
    for (name, text) in INVENTORIES {
        fs::write(place.path(name), text).unwrap();
        let said = place.run(&format!("fleet hosts --inventory {name} --json"));
        let said = said.ends_with(0);
        said.warns(&["here is not reached by ssh"]);
        let answer = said.json();
        let hosts = answer["hosts"].as_array().unwrap();
        let names: Vec<&str> = hosts
            .iter()
            .map(|host| host["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["db1", "db2", "db3"], "{answer:#}");
        let first = (&hosts[0]["address"], &hosts[0]["user"], &hosts[0]["port"]);
        let wanted = (&"10.0.0.1".into(), &"admin".into(), &2222.into());
        assert_eq!(first, wanted, "{answer:#}");
        assert!(
            hosts.iter().all(|host| host["zone"] == "us-east-1a"),
            "{answer:#}"
        );
        assert_eq!(hosts[2]["type"], "i4i.large", "{answer:#}");
    }
}

/// Hosts of a zone in a list of past results.
fn zone(zone: &str, good: usize, bad: usize) -> String {
    let host = |at: usize| {
        let figure = if at < good { 12_000 + 100 * at } else { 4_000 };
        format!("{zone}{at} az={zone} figure={figure}\n")
    };
    (0..good + bad).map(host).collect()
}

#[test]
fn a_plan_says_how_many_to_start_and_what_it_costs() {
    let place = Place::new();
    fs::write(place.path("past"), zone("a", 18, 2) + &zone("b", 10, 10)).unwrap();
    let from = "fleet plan --want 3 --from past";
    let bar = format!("{from} --good page-write.iops>=10000");
    let priced = format!("{bar} --per zone --price 0.5");
    let shown = place.run(&priced).ends_with(0);
    shown.fits(100);
    shown.prints(&[
        "18 of 20",
        "10 of 20",
        "Good is: page-write.iops>=10000",
        "host-hours",
    ]);
    let answer = place.run(&format!("{priced} --json"));
    let answer = answer.ends_with(0).json();
    let start = |group: usize| answer["groups"][group]["start"].as_u64().unwrap();
    assert!(start(0) >= 4 && start(1) > start(0), "{answer:#}");
    assert_eq!(answer["start"], start(0) + start(1));
    let race = &answer["race"];
    let price = race["price"].as_f64().unwrap();
    assert!((price - 0.5 * race["host_hours"].as_f64().unwrap()).abs() < 1e-9);

    place
        .run(from)
        .refuses(&["no host that was kept", "--good"]);
    let by_type = format!("{bar} --per type");
    place.run(&by_type).refuses(&["no type is known"]);
    place
        .run("fleet plan --want 3 --from absent")
        .refuses(&["absent cannot be read"]);
    // Where no host was good there is no number, and the answer is no.
    let none = format!("{from} --good a.iops>=99999");
    let answered = place.run(&none).ends_with(1);
    answered.prints(&["No number can be computed"]);
}

#[test]
fn a_plan_reads_the_runs_of_a_ledger() {
    let place = Place::new();
    place.bench(&support::SHORT).ends_with(0);
    let ledger = place.ledger();
    let from = ["fleet", "plan", "--want", "1", "--from"];
    let from = [&from[..], &[ledger.to_str().unwrap()]].concat();
    place.run(&from).refuses(&["is a ledger", "--good"]);
    let bar = [&from[..], &["--good", "page-read.iops>=1", "--json"]].concat();
    let answer = place.run(&bar).ends_with(0).json();
    let past = &answer["groups"][0]["past"];
    assert_eq!((&past["all"], &past["good"]), (&1.into(), &1.into()));
}

#[test]
fn a_dry_run_of_a_race_shows_who_would_be_raced() {
    let place = Place::new();
    fs::write(place.path("hosts"), LIST).unwrap();
    let race = [
        "fleet", "race", "--list", "./hosts", "--keep", "1", "--per", "zone",
    ];
    let floor = ["--floor", "page-write.iops>=10000 for 60s"];
    let dry = [&race[..], &floor, &["--dry-run"]].concat();
    let shown = place.run(&dry).ends_with(0);
    shown.prints(&["in 6 rounds at least"]);
    let answer = place
        .run(&[&dry[..], &["--json"]].concat())
        .ends_with(0)
        .json();
    assert_eq!(answer["hosts"][1]["group"], "us-east-1b");
    place.run(&race).refuses(&["<TARGET>"]);
    let wrong = [&race[..], &["--floor", "page-write.iops<10000"]].concat();
    let refused = place.run(&wrong).ends_with(2);
    refused.warns(&["would remove the good hosts"]);
}

#[test]
fn a_race_that_makes_no_sense_is_refused_before_any_host_is_touched() {
    let place = Place::new();
    fs::write(place.path("hosts"), LIST).unwrap();
    let race = ["fleet", "race", "--list", "./hosts", "--keep", "1"];
    let target = ["--", "/mnt/data"];
    for (words, behind, expected) in [
        (&["--by", "dance.iops"][..], &target[..], "no phase 'dance'"),
        (&["--round", "100ms"], &target, "is too short"),
        (&["--ties", "price"], &target, "db1 has none"),
        (&["--out", "none"], &target, "none is not a folder"),
        (&[], &["--", "/a", "--destroy", "/b"], "--destroy names /b"),
        (&[], &["--", "/a", "/a"], "/a is named twice"),
        (
            &["--by", "page-write.iops"],
            &["--", "/a", "--destroy", "/a"],
            "nothing is overwritten before the plan is confirmed",
        ),
        (&[], &["--", "/a", "--frob"], "the workload is invalid"),
        (
            &["--floor", "page-write.iops>=1 for 1h"],
            &target,
            "a floor is watched for",
        ),
    ] {
        let said = place.run(&[&race[..], words, behind].concat());
        said.refuses(&[expected]);
    }
    fs::write(place.path("keep.txt"), "db7\n").unwrap();
    let own = place.run(&[&race[..], &target].concat());
    own.refuses(&[
        "keep.txt cannot be written",
        "is not a host list of disksmith",
    ]);
    assert_eq!(fs::read_to_string(place.path("keep.txt")).unwrap(), "db7\n");
}

#[test]
fn hosts_that_are_not_reached_are_reported_and_never_ranked() {
    let place = Place::new();
    fs::write(place.path("hosts"), LIST).unwrap();
    let ssh = "echo 'Connection refused' >&2; exit 255";
    let race = "fleet race --list ./hosts --keep 1 --per zone --json -- /mnt/data";
    let said = with_program(&place, "ssh", ssh, race).ends_with(2);
    said.warns(&["no host was measured"]);
    let answer = said.json();
    for host in answer["hosts"].as_array().unwrap() {
        assert_eq!(host["decision"], "unreachable", "{host:#}");
        assert!(host["figure"].is_null(), "{host:#}");
        let reason = host["reason"].as_str().unwrap();
        assert!(reason.contains("Connection refused"), "{reason}");
    }
    assert!(!place.path("keep.txt").exists());
    // It is a run of the fleet as any other.
    let shown = place.run("fleet show --json").ends_with(0).json();
    assert_eq!(shown["hosts"], answer["hosts"]);
}

/// Runs with so many open files allowed at first, and a program of this name on the PATH.
fn with_files(
    place: &Place,
    limit: &str,
    program: (&str, &str),
    arguments: &[&str],
) -> ProgramOutput {
    let path = path_with(place, program.0, program.1);
    let own = place.command(arguments);
    let mut command = Command::new("sh");
    let limited = format!("ulimit {limit} && exec \"$@\"");
    command.args(["-c", &limited, "sh"]);
    output_of(behind(command, &own).env("PATH", path))
}

#[test]
fn many_hosts_get_the_open_files_that_they_need_or_a_notice_names_the_limit() {
    let place = Place::new();
    let hosts: Vec<String> = (0..60).map(|at| format!("h{at}\n")).collect();
    fs::write(place.path("hosts"), hosts.concat()).unwrap();
    // It keeps its pipes for a moment, so that all are open at the same time.
    let ssh = ("ssh", "sleep 1; echo 'Connection refused' >&2; exit 255");
    let run = [
        "fleet", "run", "--list", "./hosts", "--batch", "60", "--json", "--", "devices",
    ];
    let answer = with_files(&place, "-Sn 100", ssh, &run).ends_with(2).json();
    for host in answer["hosts"].as_array().unwrap() {
        let why = host["why"].as_str().unwrap();
        assert!(why.contains("Connection refused"), "{why}");
    }
    let refused = with_files(&place, "-n 100", ssh, &run).ends_with(2);
    refused.warns(&["ulimit -Hn", "--batch"]);
}

#[test]
fn hosts_of_one_name_are_shown_apart_and_one_of_them_can_be_left_out() {
    let place = Place::new();
    let aws = r#"echo '{"Reservations": [{"Instances": [
    {"InstanceId": "i-1", "State": {"Name": "running"}, "PrivateIpAddress": "10.0.0.1",
     "Tags": [{"Key": "Name", "Value": "burnin"}]},
    {"InstanceId": "i-2", "State": {"Name": "running"}, "PrivateIpAddress": "10.0.0.2",
     "Tags": [{"Key": "Name", "Value": "burnin"}]}]}]}'"#;
    let all = ["fleet", "hosts", "--ec2", "Name=x,Values=y", "--json"];
    let answer = with_program(&place, "aws", aws, &all).ends_with(0).json();
    assert_eq!(answer["hosts"][0]["name"], "burnin (i-1)", "{answer:#}");
    assert_eq!(answer["hosts"][1]["name"], "burnin (i-2)", "{answer:#}");
    let one = [&all[..], &["--exclude", "i-1"]].concat();
    let answer = with_program(&place, "aws", aws, &one).ends_with(0).json();
    assert_eq!(answer["hosts"].as_array().unwrap().len(), 1, "{answer:#}");
    assert_eq!(answer["hosts"][0]["id"], "i-2", "{answer:#}");
}

/// The playbook of the manual measures two rounds on two hosts for real, and they are collected.
#[test]
fn rounds_that_ansible_has_measured_are_collected() {
    if !has_program("ansible-playbook") {
        support::skipped("ansible-playbook is not installed");
        return;
    }
    let place = Place::new();
    let manual = include_str!("../docs/fleet.md");
    let (_, behind) = manual.split_once("```yaml\n# round.yml").unwrap();
    let (playbook, _) = behind.split_once("```").unwrap();
    fs::write(place.path("round.yml"), format!("# round.yml{playbook}")).unwrap();
    fs::write(
        place.path("hosts.ini"),
        "db1 ansible_connection=local\ndb2 ansible_connection=local\n",
    )
    .unwrap();
    fs::write(place.path("burnin"), "db1\ndb2\ndead\n").unwrap();
    let own = place.command("bench");
    let program = fs::canonicalize(own.get_program()).unwrap();
    let path = path_with(
        &place,
        "disksmith",
        &format!("exec {} \"$@\"", program.display()),
    );
    for round in ["1", "2"] {
        fs::create_dir_all(place.path("rounds").join(round)).unwrap();
        let mut ansible = Command::new("ansible-playbook");
        ansible
            .args(["-i", "hosts.ini", "-e", &format!("round={round}")])
            .args([
                "-e",
                &format!("target={}", place.data().display()),
                "-e",
                "seconds=1 size=4M",
            ])
            .arg("round.yml")
            .env("PATH", &path)
            .env("HOME", place.path("."))
            .env("ANSIBLE_LOCALHOST_WARNING", "false")
            .current_dir(place.path("."))
            .stdin(Stdio::null());
        let output = ansible.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    let collect = |words: &[&str]| {
        let line = [
            "fleet",
            "race",
            "--list",
            "./burnin",
            "--collect",
            "rounds",
            "--keep",
            "1",
        ];
        place.run(&[&line[..], words].concat())
    };
    let said = collect(&["--json"]);
    // Two rounds of one disk seldom show which of its names is the better one.
    assert!(matches!(said.status, Some(0 | 1)), "{said:#?}");
    let answer = said.json();
    assert_eq!(
        (&answer["command"], &answer["rounds"]),
        (&"fleet race".into(), &2.into())
    );
    let hosts = answer["hosts"].as_array().unwrap();
    let of = |name: &str| hosts.iter().find(|host| host["host"] == name).unwrap();
    assert!(of("db1")["figure"].is_object(), "{answer:#}");
    assert_eq!(of("dead")["decision"], "unreachable");
    assert_eq!(
        place.run("fleet show --json").ends_with(0).json()["hosts"],
        answer["hosts"]
    );
    let missed = collect(&["--floor", "page-read.iops>=100000000", "--json"]).json();
    let decided: Vec<_> = missed["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["decision"].clone())
        .collect();
    assert!(
        decided
            .iter()
            .filter(|decision| *decision == "floor")
            .count()
            == 2,
        "{missed:#}"
    );
    collect(&["--floor", "disk.latency<1s"]).refuses(&["disk.latency", "kernel's counts"]);
}
