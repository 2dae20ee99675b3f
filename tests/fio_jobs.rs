//! `bench --fio`: job files of fio, through the real program, alongside the real fio.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/beside.rs"]
mod beside;
#[path = "support/loops.rs"]
mod loops;
mod support;

#[path = "fio_jobs/beside_fio.rs"]
mod beside_fio;
#[path = "fio_jobs/errors.rs"]
mod errors;
#[path = "fio_jobs/examples.rs"]
mod examples;
#[path = "fio_jobs/flags.rs"]
mod flags;
#[path = "fio_jobs/parsed.rs"]
mod parsed;
#[path = "fio_jobs/rules.rs"]
mod rules;
#[path = "fio_jobs/trims.rs"]
mod trims;
#[path = "fio_jobs/written.rs"]
mod written;

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use support::{Place, ProgramOutput, Running, skipped, under};

/// Runs a job file on a target.
fn run(place: &Place, target: &str, job: &str, arguments: &[&str]) -> ProgramOutput {
    fs::write(place.path("job.fio"), job).unwrap();
    place.run(&[&["bench", target, "--fio", "job.fio"], arguments].concat())
}

fn document(place: &Place, target: &str, job: &str) -> Value {
    run(place, target, job, &["--json"]).ends_with(0).json()
}

const WRITES: &str = "[log]\nrw=write\nbs=4k\ndirect=1\n";

#[test]
fn a_file_that_is_there_is_not_written_without_consent() {
    let place = Place::new();
    let content = vec![7; 8 << 20];
    fs::write(place.path("table.ibd"), &content).unwrap();
    let named = format!(
        "[log]\nrw=write\nfilename={}\n",
        place.path("table.ibd").display()
    );
    for job in [
        WRITES,
        &named,
        "[mixed]\nrw=randrw\n",
        "[r]\nrw=read\n[w]\nstonewall\nrw=write\n",
    ] {
        let said = run(&place, "table.ibd", job, &[]).ends_with(2);
        assert!(
            said.err.contains("only read unless --destroy names it"),
            "{said:#?}"
        );
        assert_eq!(fs::read(place.path("table.ibd")).unwrap(), content);
    }
    // Not through a directory either, whatever the job names.
    fs::write(place.data().join("mine"), "the user's").unwrap();
    let job = "[log]\nrw=write\nsize=1m\nfilename=mine\n";
    let said = run(&place, "data", job, &[]).ends_with(2);
    assert!(
        said.err.contains("job.fio, line 4: filename: "),
        "{said:#?}"
    );
    let job = format!(
        "[log]\nrw=write\nsize=1m\ndirectory={}\n",
        place.data().display()
    );
    let said = run(&place, "table.ibd", &job, &[]).ends_with(2);
    assert!(
        said.err.contains("name the directory as the target"),
        "{said:#?}"
    );
    let said = run(&place, "data", &named, &[]).ends_with(2);
    assert!(said.err.contains("is not in the target"), "{said:#?}");
    assert_eq!(
        fs::read_to_string(place.data().join("mine")).unwrap(),
        "the user's"
    );
    assert_eq!(fs::read(place.path("table.ibd")).unwrap(), content);
    assert!(!place.ledger().exists(), "a refusal keeps nothing");
}

#[test]
fn a_file_is_written_when_it_is_named_again() {
    let place = Place::new();
    fs::write(place.path("table.ibd"), vec![7; 4 << 20]).unwrap();
    let job = "[log]\nrw=write\nbs=64k\noffset=1m\nsize=1m\nend_fsync=1\n";
    run(
        &place,
        "table.ibd",
        job,
        &["--destroy", "table.ibd=unknown"],
    )
    .ends_with(0);
    let content = fs::read(place.path("table.ibd")).unwrap();
    assert_eq!(content.len(), 4 << 20);
    let kept = |range: std::ops::Range<usize>| content[range].iter().all(|byte| *byte == 7);
    assert!(kept(0..1 << 20) && kept(2 << 20..4 << 20));
    for block in content[1 << 20..2 << 20].chunks(4096) {
        assert!(block.iter().any(|byte| *byte != 7));
    }
}

/// fio aligns writes to the smallest write, whatever the reads are: no write lies across two blocks.
#[test]
fn writes_lie_on_blocks_of_their_own_size_alongside_smaller_reads() {
    let place = Place::new();
    fs::write(place.path("table.ibd"), vec![7; 8 << 20]).unwrap();
    let job = "[mixed]\nrw=randrw\nbs=4k,16k\nnumber_ios=200\nnorandommap\nend_fsync=1\n";
    run(
        &place,
        "table.ibd",
        job,
        &["--destroy", "table.ibd=unknown"],
    )
    .ends_with(0);
    let content = fs::read(place.path("table.ibd")).unwrap();
    let mut written = 0;
    for block in content.chunks(16 << 10) {
        let changed = |page: &&[u8]| page.iter().any(|byte| *byte != 7);
        let pages = block.chunks(4096).filter(changed).count();
        assert!(pages == 0 || pages == 4, "{pages} pages of a block");
        written += pages / 4;
    }
    assert!(written > 30, "{written}");
}

#[test]
fn what_is_not_done_stops_with_file_line_and_option_and_touches_nothing() {
    let place = Place::new();
    for (job, expected) in [
        (
            "[j]\nsize=1m\nverify_only=1\n",
            "job.fio, line 3: verify_only: disksmith does not support this",
        ),
        (
            "[j]\nsize=1m\nwarp=9\n",
            "job.fio, line 3: warp: disksmith does not know",
        ),
        (
            "[j]\ninclude gone\n",
            "job.fio, line 2: include: gone cannot be read",
        ),
        ("[j]\nrw=read\n", "job.fio, line 1: size: it is missing"),
        (
            "[j]\nsize=1m\ndirect=1\nbs=1000\n",
            "needs blocks and offsets that are multiples of 512 B",
        ),
    ] {
        let said = run(&place, "data", job, &[]).ends_with(2);
        assert!(said.err.contains(expected), "{job}: {said:#?}");
    }
    let said = place
        .run(&["bench", "data", "--fio", "gone.fio"])
        .ends_with(2);
    assert!(
        said.err.contains("the job file gone.fio cannot be read"),
        "{said:#?}"
    );
    // This one has no end: to read it as far as memory goes would be no answer.
    let said = place
        .run(&["bench", "data", "--fio", "/dev/zero"])
        .ends_with(2);
    assert!(
        said.err
            .contains("/dev/zero cannot be read: it has more than 1024 KiB"),
        "{said:#?}"
    );
    let said = run(&place, "data", "[j]\ninclude /dev/zero\n", &[]).ends_with(2);
    assert!(
        said.err
            .contains("line 2: include: /dev/zero cannot be read: it has more than"),
        "{said:#?}"
    );
    let said = run(&place, "data", WRITES, &["--depth", "3"]).ends_with(2);
    assert!(said.err.contains("--fio"), "{said:#?}");
    place.assert_nothing_left();
    assert!(!place.ledger().exists());
}

#[test]
fn jobs_run_together_and_behind_walls_and_are_kept() {
    let place = Place::new();
    fs::write(place.path("common.inc"), "direct=1\nsize=4m\nruntime=1\n").unwrap();
    let job = "[global]\ninclude common.inc\ntime_based\nioengine=libaio\n\
        [pages]\nrw=randrw\nbssplit=4k/50:16k/50\niodepth=4\nnumjobs=2\ngroup_reporting\n\
        [scan]\nrw=read\nbs=${BLOCK}\nnew_group\n\
        [files]\nstonewall\nrw=randread\ntime_based=0\nnrfiles=4\nruntime=0\n";
    fs::write(place.path("job.fio"), job).unwrap();
    let mut command = place.command(&["bench", "data", "--fio", "job.fio", "--json"]);
    let document = support::output_of(command.env("BLOCK", "64k"))
        .ends_with(0)
        .json();
    let phases = document["phases"].as_array().unwrap();
    let names: Vec<&str> = phases
        .iter()
        .map(|phase| phase["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["pages", "scan", "files"]);
    let number = |place: &str| document.pointer(place).unwrap().as_f64().unwrap();
    assert!(number("/phases/1/began_s") < 0.5 && number("/phases/2/began_s") > 0.9);
    assert_eq!(number("/phases/0/workload/threads"), 2.0);
    assert_eq!(
        phases[0]["workload"]["details"]["read_sizes"][1]["size"],
        16384
    );
    assert!(number("/phases/0/read/ops") > 0.0 && number("/phases/0/write/ops") > 0.0);
    // Every block of the four files once, and not one more.
    assert_eq!(phases[2]["stopped"], "ops");
    assert!(
        (number("/phases/2/read/ops") - 1024.0).abs() < 4.0,
        "{document:#}"
    );
    assert_eq!(document["suite"], "fio");
    place.assert_nothing_left();
    let id = document["run"].as_str().unwrap();
    place.run(&["show", id]).ends_with(0);
}

/// Eight jobs at the same time used at most what the processors had to give in that time.
#[test]
fn the_processor_time_of_jobs_adds_up_to_what_there_is() {
    let place = Place::new();
    let job = "[j]\nrw=randread\nsize=4m\nfilename=shared\nnumjobs=8\nruntime=1\ntime_based\n";
    let document = document(&place, "data", job);
    let phases = document["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 8);
    let used = |phase: &Value| {
        phase["cpu"]["user_s"].as_f64().unwrap() + phase["cpu"]["system_s"].as_f64().unwrap()
    };
    let all: f64 = phases.iter().map(used).sum();
    let processors = std::thread::available_parallelism().unwrap().get() as f64;
    // A little more than a second, since the last request of each comes back after that.
    assert!(all > 0.1 && all < 1.3 * processors, "{all} s");
}

#[test]
fn a_signal_ends_all_jobs_and_keeps_what_they_did() {
    let place = Place::new();
    let job = "[global]\nsize=4m\ndirect=1\nruntime=600\ntime_based\nioengine=libaio\n\
        [a]\nrw=randread\n[b]\nrw=randwrite\nrate_iops=20\n[c]\nstonewall\n";
    fs::write(place.path("job.fio"), job).unwrap();
    let mut run = Running::start(&mut place.command(&["bench", "data", "--fio", "job.fio"]));
    run.wait_for_reads();
    run.signal(Signal::INT);
    let said = run.end().ends_with(3);
    assert!(
        said.prose().contains("Not run, because of a signal: c."),
        "{said:#?}"
    );
    assert_eq!(place.runs().len(), 1);
    place.assert_nothing_left();
}

#[test]
fn through_the_page_cache_it_is_invalid_as_no_disk_is_measured() {
    let place = Place::new();
    let document = document(
        &place,
        "data",
        "[j]\nrw=randread\nsize=4m\nruntime=1\ntime_based\n",
    );
    assert_eq!(document["verdict"], "invalid");
    assert_eq!(document["target"]["direct"], false);
}

/// Through the page cache each job has it forget what the jobs before its wall wrote or read, and
/// reads ahead in its own way: seen at the disk below, which counts what comes to it. The kernel
/// keeps pages that somebody holds at that moment (as compaction does), so an eighth may be missing;
/// a cache that was not dropped would miss a half or all.
#[test]
fn with_root_behind_a_wall_the_page_cache_is_as_cold_as_fio_makes_it() {
    let place = Place::new();
    let Some(disk) = loops::FileSystem::new("ext4", 128) else {
        return;
    };
    let directory = disk.path().to_str().unwrap().to_owned();
    let counts = || -> [u64; 2] {
        let name = disk.device.name();
        let text = fs::read_to_string(format!("/sys/class/block/{name}/stat")).unwrap();
        let numbers: Vec<u64> = text
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        // Reads, and how many sectors of 512 bytes they read (Documentation/block/stat.rst).
        [numbers[0], numbers[2]]
    };
    let read_by = |job: &str| {
        let before = counts();
        run(&place, &directory, job, &[]).ends_with(0);
        let after = counts();
        [after[0] - before[0], (after[1] - before[1]) << 9 >> 20]
    };
    let [_, mib] = read_by(
        "[global]\nsize=16m\nfilename=shared\nbs=64k\n[w]\nrw=write\nend_fsync=1\n\
         [r]\nstonewall\nrw=read\n",
    );
    assert!((14..20).contains(&mib), "{mib} MiB were read of the disk");
    // The first in 4,096 requests, since it is told that it reads at random; the second ahead.
    let [reads, mib] = read_by(
        "[global]\nsize=16m\nfilename=shared\nbs=4k\n[r]\nrw=randread\n\
         [s]\nstonewall\nrw=read\n",
    );
    assert!((28..36).contains(&mib), "{mib} MiB were read of the disk");
    assert!((3584..6000).contains(&reads), "{reads} reads");
}

/// Each job would fill 128 MiB for what it may have in flight. Together they may have 256 MiB, as
/// one job may, or sixteen clones on a small instance would be killed.
#[test]
fn clones_share_the_memory_that_one_job_may_have() {
    let place = Place::new();
    let job = "[j]\nrw=randread\nbs=4m\nsize=16m\nfilename=shared\niodepth=32\nnumjobs=16\n\
        ioengine=libaio\ndirect=1\nnumber_ios=2\ngroup_reporting\n";
    fs::write(place.path("job.fio"), job).unwrap();
    let mut command = place.command(&["bench", "data", "--fio", "job.fio", "--json"]);
    // Without it each thread reserves addresses that it does not use.
    command.env("MALLOC_ARENA_MAX", "1");
    let document = under("ulimit -v 1200000", &command).ends_with(0).json();
    assert_eq!(document["phases"][0]["workload"]["threads"], 16);
}

/// Found out in the middle, it would be found out when all files are written.
#[test]
fn as_many_files_are_opened_as_the_hard_limit_allows() {
    let place = Place::new();
    let job = "[j]\nrw=randread\nsize=40m\nnrfiles=40\ndirect=1\nnumber_ios=80\n";
    fs::write(place.path("job.fio"), job).unwrap();
    let command = place.command(&["bench", "data", "--fio", "job.fio", "--json"]);
    let document = under("ulimit -Sn 70", &command).ends_with(0).json();
    assert_eq!(document["phases"][0]["workload"]["details"]["files"], 40);
    let said = under("ulimit -n 70", &command).ends_with(2);
    assert!(
        said.err
            .contains("and this process may have 70 (ulimit -Hn)"),
        "{said:#?}"
    );
    place.assert_nothing_left();
}
