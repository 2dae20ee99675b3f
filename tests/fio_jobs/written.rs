//! Checks that the options in disksmith's JSON make real fio do the same work, and that fio's own JSON
//! says so.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::loops::skipped;
use crate::{Place, document, run};

const JOBS: &str = "[global]\nsize=2m\nruntime=1\ntime_based\ngroup_reporting\n\
                    [split]\nrw=randread\nnumjobs=2\nbssplit=4k/40:16k/60\n\
                    random_distribution=zipf:1.2\nioengine=libaio\niodepth=4\nnrfiles=2\n\
                    [paced]\nstonewall\nrw=randread\nnumjobs=2\nrate_iops=50\niodepth=16\n\
                    rate_process=poisson\noffset=64k\nbs=8k\n\
                    [log]\nstonewall\nrw=write\nbs=4k\nfsync=4\n";

/// Runs fio with the options of one of our jobs, and gives what it printed.
fn by_fio(place: &Place, options: &Value) -> String {
    let mut fio = Command::new("fio");
    // Without a name there is no job to give the options to.
    fio.arg(format!("--name={}", options["name"].as_str().unwrap()));
    let options = options.as_object().unwrap().iter();
    fio.args(
        options
            .filter(|(name, _)| *name != "name")
            .map(|(name, value)| format!("--{name}={}", value.as_str().unwrap())),
    );
    fio.arg("--output-format=json").current_dir(place.path(""));
    let output = fio.output().unwrap();
    assert!(output.status.success(), "{fio:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn imported(place: &Place, name: &str, text: &str) -> Value {
    std::fs::write(place.path(name), text).unwrap();
    let said = place.run(&["import", name, "--json"]).ends_with(0);
    said.json()["runs"][0].clone()
}

#[test]
fn fio_does_the_same_work_with_the_options_that_we_write() {
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return;
    }
    let place = Place::new();
    let ours = run(&place, "data", JOBS, &["--format", "fio-json"]).ends_with(0);
    let document: Value = serde_json::from_str(&ours.out).unwrap();
    let measured = place.runs().remove(0);
    let back = imported(&place, "ours.json", &ours.out);
    let id = |run: &Value| run["run"].as_str().unwrap().to_owned();
    for (index, name) in ["split", "paced", "log"].into_iter().enumerate() {
        let options = &document["jobs"][index]["job options"];
        assert_eq!(options["name"], name);
        let theirs = imported(&place, "fio.json", &by_fio(&place, options));
        let (ours, theirs_phase) = (&back["phases"][index], &theirs["phases"][0]);
        assert_eq!(ours["workload"], theirs_phase["workload"], "{name}");
        assert!(!ours["workload"]["threads"].is_null(), "{name}");
        for ours in [&id(&back), &measured] {
            let said = place.run(&["compare", ours, &id(&theirs)]).ends_with(0);
            assert!(!said.out.contains("not do the same"), "{name}: {said:#?}");
        }
    }
    let phase = |index: usize, key: &str| back["phases"][index]["workload"][key].as_f64();
    assert_eq!(
        (phase(0, "threads"), phase(0, "depth")),
        (Some(2.0), Some(4.0))
    );
    assert_eq!(
        (phase(1, "rate_per_s"), phase(1, "depth")),
        (Some(100.0), Some(1.0))
    );
    assert_eq!(phase(2, "sync_every"), Some(4.0));
}

#[test]
fn engines_run_by_another_are_noted_and_do_as_many_requests_as_in_fio() {
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return;
    }
    let place = Place::new();
    for (engine, replacement) in [
        ("posixaio", "run by io_uring"),
        ("vsync", "run by single calls"),
        ("mmap", "run by pread and pwrite"),
    ] {
        let job = format!("[j]\nioengine={engine}\nrw=randread\nsize=1m\n");
        let ours = document(&place, "data", &job);
        let note = format!("ioengine={engine} is {replacement}");
        assert!(ours["notes"].to_string().contains(&note), "{ours:#}");
        let options = json!({ "name": "j", "ioengine": engine, "rw": "randread", "size": "1m" });
        let theirs: Value = serde_json::from_str(&by_fio(&place, &options)).unwrap();
        let ops = &ours["phases"][0]["read"]["ops"];
        assert_eq!(ops, &theirs["jobs"][0]["read"]["total_ios"], "{engine}");
    }
}

/// Number of the blocks of 4 KiB that a job has written, of a file that was all sevens.
fn blocks_written(path: &std::path::Path) -> Vec<usize> {
    let content = fs::read(path).unwrap();
    let changed = |block: &&[u8]| block.iter().any(|byte| *byte != 7);
    let blocks = content.chunks(4096).enumerate();
    blocks
        .filter_map(|(number, block)| changed(&block).then_some(number))
        .collect()
}

/// Random writes lie at multiples of their alignment, and as in fio some come twice.
#[test]
fn random_writes_lie_at_multiples_of_blockalign() {
    let place = Place::new();
    fs::write(place.path("table"), vec![7; 1 << 20]).unwrap();
    let job = "[j]\nrw=randwrite\nbs=4k\nblockalign=16k\nio_size=256k\nend_fsync=1\n";
    run(&place, "table", job, &["--destroy", "table=unknown"]).ends_with(0);
    let blocks = blocks_written(&place.path("table"));
    assert!(blocks.iter().all(|block| block % 4 == 0), "{blocks:?}");
    // Of 64 draws with replacement out of 64 places, 41 differ on average and fewer than 54 always.
    assert!((28..54).contains(&blocks.len()), "{blocks:?}");
}

/// Blocks that a job writes to a file, with consent to all of it.
fn written_by(place: &Place, job: &str) -> Vec<usize> {
    fs::write(place.path("table"), vec![7; 1 << 20]).unwrap();
    run(place, "table", job, &["--destroy", "table=unknown"]).ends_with(0);
    blocks_written(&place.path("table"))
}

#[test]
fn random_writes_come_in_runs() {
    let place = Place::new();
    let job = "[j]\nrw=randwrite:16\nbs=4k\nnumber_ios=64\nend_fsync=1\n";
    let blocks = written_by(&place, job);
    let begins = |block: &&usize| **block == 0 || blocks.binary_search(&(*block - 1)).is_err();
    let runs = blocks.iter().filter(begins).count();
    // One that reaches the end of the file goes on at another place, and two may overlap.
    assert!(runs <= 8 && blocks.len() > 16, "{blocks:?}");
    // In four places, each of which is written 16 times.
    let blocks = written_by(&place, &format!("{job}rw_sequencer=identical\n"));
    assert_eq!(blocks.len(), 4, "{blocks:?}");
}

/// Holes, backwards and zones, in order or at random: the blocks that are written are those that fio writes.
#[test]
fn the_blocks_of_a_job_with_strides_are_those_that_fio_writes() {
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return;
    }
    let place = Place::new();
    for lines in [
        "rw=write:12k\nio_size=64k",
        "rw=write:-8k\nio_size=32k",
        "rw=write:12k\nsize=256k\nloops=3",
        "rw=write:12k\nsize=256k\nio_size=100k",
        "rw=write:12k\noffset=64k\nsize=256k\nio_size=256k\nverify=crc32c\nverify_backlog=1",
        "rw=write:12k\nverify=crc32c\nsize=512k",
        "rw=write:28k\nverify=crc32c\nsize=512k",
        "rw=write:12k\nverify=crc32c\nsize=512k\ndo_verify=0",
        "rw=write:12k\nfilesize=512k\nsize=200k",
        "rw=write:12k\nfilesize=512k\nsize=64k",
        "rw=write:60k\nbs=64k",
        "rw=write:12k\nbs=16k\nsize=192k",
        "rw=write:60k\nbs=64k\nsize=480k\nloops=2",
        "rw=write\nsize=256k\nio_size=512k\nloops=2",
        "rw=write\nzonemode=strided\nzonesize=16k\nzoneskip=48k",
        "rw=write\nzonemode=strided\nzonesize=8k\nzonerange=16k\nzoneskip=16k",
        "rw=write\nzonemode=zbd\nzonesize=64k\nsize=500k",
        "rw=write\nzonemode=zbd\nzonesize=64k\nzonecapacity=48k",
        "rw=write\nzonemode=zbd\nzonesize=64k\noffset=128k\nsize=512k",
        "rw=write\nzonemode=zbd\nzonesize=64k\noffset=2z\nsize=6z",
        "rw=write\nzonemode=strided\nzonesize=16k\nzoneskip=3z",
        "rw=randwrite\nzonemode=strided\nzonesize=16k\nzoneskip=48k",
        "rw=randwrite\nzonemode=strided\nzonesize=8k\nzonerange=8k\nzoneskip=24k",
        "rw=randwrite\nzonemode=zbd\nzonesize=64k",
        "rw=randwrite\nzonemode=zbd\nzonesize=64k\nzonecapacity=48k\nmax_open_zones=100",
        "rw=randwrite\npercentage_random=0\nio_size=256k",
    ] {
        let [theirs, ours] = ["theirs", "ours"].map(|name| place.path(name));
        for path in [&theirs, &ours] {
            fs::write(path, vec![7; 1 << 20]).unwrap();
        }
        let job = format!("[j]\nbs=4k\n{lines}\nend_fsync=1\n");
        fs::write(
            place.path("theirs.fio"),
            format!("{job}filename={}\n", theirs.display()),
        )
        .unwrap();
        let fio = Command::new("fio")
            .args(["--output-format=json"])
            .arg(place.path("theirs.fio"))
            // Of jobs that verify it leaves a file where it runs.
            .current_dir(place.path(""))
            .output()
            .unwrap();
        assert!(fio.status.success(), "{fio:?}");
        // Notices may stand in front of it.
        let said = String::from_utf8(fio.stdout).unwrap();
        let fio: Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
        let consent = ["--destroy", "ours=unknown", "--json"];
        let document = run(&place, "ours", &job, &consent).ends_with(0).json();
        assert_eq!(blocks_written(&ours), blocks_written(&theirs), "{lines}");
        assert_eq!(
            document["phases"][0]["write"]["ops"], fio["jobs"][0]["write"]["total_ios"],
            "{lines}"
        );
    }
}

/// The amounts are those of fio 3.33.
#[test]
fn a_size_is_moved_whole_over_skipped_zones_and_not_beyond_that_of_all_files() {
    for (lines, expected) in [
        ("size=8m\nfilesize=4m", 1024),
        ("size=8m\nfilesize=2m\nnrfiles=2", 1024),
        ("size=2m\nfilesize=4m", 512),
        ("size=8m\nfilesize=4m\nio_size=12m", 3072),
        (
            "size=8m\nzonemode=strided\nzonesize=64k\nzoneskip=64k",
            2048,
        ),
        (
            "size=8m\nzonemode=strided\nzonesize=64k\nzonerange=256k",
            2048,
        ),
    ] {
        let place = Place::new();
        let job = format!("[j]\nrw=read\nbs=4k\n{lines}\n");
        let document = run(&place, "data", &job, &["--json"]).ends_with(0).json();
        assert_eq!(document["phases"][0]["read"]["ops"], expected, "{lines}");
    }
}
