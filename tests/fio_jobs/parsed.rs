//! That real fio reads a job file as disksmith does. `--parse-only --debug=parse` makes fio print
//! each number as it has read it; what it takes for a job's result shows in `--showcmd`.

use std::process::Command;

use crate::loops::skipped;
use crate::{Place, run};

/// What fio made of the last value of an option in a job, or `None` where it refused it.
fn read_by_fio(place: &Place, option: &str, text: &str) -> Option<i128> {
    let path = place.path("read.fio");
    std::fs::write(&path, format!("[j]\n{text}\n")).unwrap();
    let mut fio = Command::new("fio");
    fio.args(["--parse-only", "--debug=parse"]).arg(&path);
    let output = fio.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let mut found = None;
    let mut about = false;
    for line in said.lines() {
        if line.contains("__handle_option=") {
            about = line.contains(&format!("__handle_option={option},"));
        } else if let Some((_, number)) = line.split_once("out=")
            && about
        {
            found = number.trim().parse().ok();
        }
    }
    let refused = String::from_utf8_lossy(&output.stderr).contains("failed parsing");
    found.filter(|_| !refused)
}

fn has_fio() -> bool {
    let there = Command::new("fio").arg("--version").output().is_ok();
    if !there {
        skipped("fio is not installed");
    }
    there
}

/// Numbers with all their suffixes: each was given to fio too.
#[test]
fn numbers_are_what_fio_takes_them_for() {
    if !has_fio() {
        return;
    }
    let place = Place::new();
    for (option, lines, wanted) in [
        ("bs", "bs=2k", 2048),
        ("bs", "bs=2Ki", 2048),
        ("bs", "bs=2kib", 2000),
        ("bs", "bs=1KiB", 1000),
        ("bs", "bs=2mib", 2_000_000),
        ("bs", "kb_base=1000\nbs=2k", 2000),
        ("bs", "kb_base=1000\nbs=2ki", 2000),
        ("bs", "kb_base=1000\nbs=2kib", 2048),
        ("bs", "bs=0x10", 16),
        ("bs", "bs=512B", 512),
        ("bs", "bs=4k,8k", 8192),
        ("runtime", "runtime=10", 10_000_000),
        ("runtime", "runtime=2m", 120_000_000),
        ("runtime", "runtime=500ms", 500_000),
        ("runtime", "runtime=1msec", 1000),
        ("runtime", "runtime=1us", 1),
        ("runtime", "runtime=2H", 7_200_000_000),
        ("iodepth", "iodepth=1k", 1024),
        ("time_based", "time_based=0", 0),
        ("stonewall", "stonewall", 1),
    ] {
        assert_eq!(read_by_fio(&place, option, lines), Some(wanted), "{lines}");
    }
}

/// Job files that fio refuses are refused, and those that it takes are taken, except where it takes
/// by half what nobody can have meant.
#[test]
fn what_fio_refuses_is_refused() {
    if !has_fio() {
        return;
    }
    let place = Place::new();
    for line in [
        "bs=abc",
        "direct",
        "direct=yes",
        "direct=2",
        "iodepth=0",
        "rwmixread=120",
        "rw=mixed",
        "random_distribution=zipf:1",
        "random_distribution=pareto:1.5",
        "nonsense=1",
    ] {
        let job = format!("[j]\nsize=1m\n{line}\n");
        std::fs::write(place.path("fio.fio"), &job).unwrap();
        let path = place.path("fio.fio");
        let fio = Command::new("fio")
            .arg("--parse-only")
            .arg(&path)
            .output()
            .unwrap();
        assert!(!fio.status.success(), "fio takes {line}");
        run(&place, "data", &job, &[]).ends_with(2);
    }
    for line in ["bs=4kq", "bs=8*2", "bs=1.5k", "bs= 8k", "runtime=3min"] {
        let job = format!("[j]\nsize=1m\n{line}\n");
        let said = run(&place, "data", &job, &[]).ends_with(2);
        assert!(said.err.contains("line 3: "), "{said:#?}");
    }
}

/// Sections, comments, includes and variables: fio names the options that each job has.
#[test]
fn a_file_has_the_jobs_and_options_that_fio_sees() {
    if !has_fio() {
        return;
    }
    let place = Place::new();
    let job = "; all of it\n[global]\nrw=randread # as pages are\ninclude common.inc\n\n\
        [one]\nbs=${BLOCK}\niodepth=2*$ncpus\n[two]\nstonewall\nnumjobs=2\n";
    std::fs::write(place.path("job.fio"), job).unwrap();
    std::fs::write(
        place.path("common.inc"),
        "size=1m\nioengine=libaio\ndirect=1\n",
    )
    .unwrap();
    let path = place.path("job.fio");
    let mut fio = Command::new("fio");
    let output = fio
        .arg("--showcmd")
        .arg(&path)
        .env("BLOCK", "16k")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "--name=one",
        "--bs=16k",
        "--name=two",
        "--stonewall",
        "--numjobs=2",
        "--rw=randread",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let mut command = place.command(&["bench", "data", "--fio", "job.fio", "--json"]);
    let document = crate::support::said(command.env("BLOCK", "16k"))
        .ends_with(0)
        .json();
    let names: Vec<&str> = document["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["one", "two.1", "two.2"]);
    let cpus = std::thread::available_parallelism().unwrap().get();
    let workload = |index: usize| &document["phases"][index]["workload"];
    assert_eq!(workload(0)["block_bytes"], 16384);
    assert_eq!(workload(0)["depth"], 2 * cpus);
    assert_eq!(workload(1)["block_bytes"], 4096);
}
