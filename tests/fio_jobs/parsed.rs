//! Comparison of real fio's reading of a job file with disksmith's. `--parse-only --debug=parse` makes fio print
//! each number as it has read it; what it takes for a job's result shows in `--showcmd`.

use std::process::Command;

use fiojob::{Amount, MachineFacts};

use crate::loops::skipped;
use crate::{Place, run};

/// fio's value of the last occurrence of an option in a job, or `None` if it refused it.
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

/// disksmith's value, in fio's unit; of two values the second, as fio prints it last.
fn read_here(option: &str, text: &str) -> Option<i128> {
    let surroundings = MachineFacts {
        variable: &|name| std::env::var(name).ok(),
        include: &|_, _| Err("nothing is included".to_owned()),
        page_size: rustix::param::page_size() as u64,
        memory_mb: 1000,
        processors: std::thread::available_parallelism().unwrap().get() as u64,
    };
    let jobs = fiojob::read("read.fio", &format!("[j]\n{text}\n"), &surroundings).ok()?;
    let job = &jobs[0];
    let bytes = |amount: Option<Amount>| match amount? {
        Amount::Bytes(bytes) => Some(i128::from(bytes)),
        // fio keeps a percentage as so much below the largest number.
        Amount::Percent(percent) => Some(i128::from(u64::MAX) - i128::from(percent)),
    };
    match option {
        "bs" => Some(job.sizes.write[0].bytes.into()),
        "size" => bytes(job.size),
        "io_size" => bytes(job.io_size),
        "offset" => bytes(Some(job.offset)),
        "runtime" => Some(job.runtime_us.into()),
        "ramp_time" => Some(job.ramp_us.into()),
        "iodepth" => Some(job.iodepth.into()),
        "numjobs" => Some(job.numjobs.into()),
        "nrfiles" => Some(job.nrfiles.into()),
        "rate_iops" => Some(job.rate_iops.write.into()),
        "fsync" => Some(job.fsync.into()),
        "rwmixread" => Some(job.read_percent.into()),
        "number_ios" => job.number_ios.map(i128::from),
        "time_based" => Some(job.time_based.into()),
        "stonewall" => Some(job.stonewall.into()),
        "norandommap" => Some(job.with_replacement.into()),
        "direct" => Some(job.direct.into()),
        other => panic!("what is {other}?"),
    }
}

/// Numbers with all their suffixes, keywords and arithmetic.
#[test]
fn numbers_are_what_fio_takes_them_for() {
    if !has_fio() {
        return;
    }
    let place = Place::new();
    for lines in [
        "bs=2k",
        "bs=2Ki",
        "bs=2kb",
        "bs=2kib",
        "bs=1KiB",
        "bs=2mib",
        "kb_base=1000\nbs=2k",
        "kb_base=1000\nbs=2ki",
        "bs=2kib\nkb_base=1000",
        "bs=0x10",
        "bs=512B",
        "bs=4k,8k",
        "bs=4k ; as pages are",
        "blocksize=8k",
        "bs =4k",
        "bs=$pagesize",
        "size=3g",
        "size=2tb",
        "size=50%",
        "offset=10%",
        "offset=1m",
        "io_limit=5M",
        "runtime=10",
        "runtime=2m",
        "timeout=3",
        "runtime=500ms",
        "runtime=1msec",
        "runtime=1us",
        "runtime=2H",
        "runtime=1d",
        "ramp_time=7",
        "iodepth=1k",
        "iodepth=$ncpus",
        "iodepth=2*$ncpus",
        "iodepth=(2*$ncpus+1)",
        "numjobs=4",
        "nr_files=4",
        "rate_iops=100,200",
        "fsync=32",
        "rwmixread=70",
        "number_ios=1k",
        "time_based=1\nruntime=1",
        "stonewall",
        "stonewall=0",
        "wait_for_previous",
        "norandommap",
        "direct=1",
    ] {
        let option = option_of(lines);
        let fio = read_by_fio(&place, option, lines);
        assert!(fio.is_some(), "fio does not read {lines}");
        assert_eq!(read_here(option, lines), fio, "{lines}");
    }
}

/// The chief name of the option that some lines are about.
fn option_of(lines: &str) -> &str {
    let mut names = lines
        .lines()
        .map(|line| line.split('=').next().unwrap().trim());
    let name = names.find(|name| *name != "kb_base").unwrap();
    match name {
        "blocksize" => "bs",
        "io_limit" => "io_size",
        "timeout" => "runtime",
        "nr_files" => "nrfiles",
        "wait_for_previous" => "stonewall",
        other => other,
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
    let document = crate::support::output_of(command.env("BLOCK", "16k"))
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
