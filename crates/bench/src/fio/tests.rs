//! Plans of job files on a target, and refusals.

use std::fs;
use std::path::Path;

use engine::IoInterface;
use fiojob::{Job, MachineFacts};
use record::{Bytes, Nanos, Pattern, RandomDistribution, SizeShare};

use super::plan::FioPlan;
use super::stream::Stream;
use super::{names, sum};

pub(super) fn jobs(text: &str) -> Vec<Job> {
    let surroundings = MachineFacts {
        variable: &|_| None,
        include: &|_, _| Err("none".to_owned()),
        page_size: 4096,
        memory_mb: 1000,
        processors: 2,
    };
    fiojob::read("job.fio", text, &surroundings).unwrap()
}

/// The plan on a directory, or on a file of so many MiB.
fn plan_on(text: &str, mib: Option<u64>) -> Result<FioPlan, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = match mib {
        None => folder.path().to_owned(),
        Some(_) => folder.path().join("file"),
    };
    if mib.is_some() {
        fs::write(&path, "data").unwrap();
    }
    plan_at(text, &path, mib)
}

fn plan_at(text: &str, path: &Path, mib: Option<u64>) -> Result<FioPlan, String> {
    let jobs = jobs(text);
    let names = names::of(&jobs, path).map_err(|error| error.to_string())?;
    FioPlan::of(&jobs, &names, mib.map(Bytes::mib)).map_err(|error| error.to_string())
}

fn one(plan: &FioPlan) -> &Stream {
    let [wall] = &plan.walls[..] else {
        panic!("{plan:#?}")
    };
    &wall[0]
}

#[test]
fn a_name_that_is_not_the_target_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("table.ibd"), "rows").unwrap();
    fs::write(at("other.ibd"), "rows").unwrap();
    fs::create_dir(at("sub")).unwrap();
    let (target, other) = (at("table.ibd"), at("other.ibd"));
    for (lines, path, expected) in [
        (
            format!("filename={}", other.display()),
            &target,
            "line 2: filename: the job is about",
        ),
        (
            "filename=/dev/nothing".to_owned(),
            &target,
            "filename: the job is about /dev/nothing",
        ),
        (
            format!("filename={}:/dev/null", target.display()),
            &target,
            "several files",
        ),
        (
            format!("directory={}", folder.path().display()),
            &target,
            "directory: the job lays out",
        ),
        (
            "nrfiles=2".to_owned(),
            &target,
            "nrfiles: several files need a directory",
        ),
        (
            "size=8m".to_owned(),
            &target,
            "size: 8 MiB from 0 B on are more",
        ),
        (
            "offset=4m".to_owned(),
            &target,
            "offset: 4 MiB is behind the end",
        ),
        (
            "size=1k".to_owned(),
            &target,
            "size: 1 KiB for each of 1 file(s) have no room",
        ),
    ] {
        let error = plan_at(&format!("[job]\n{lines}\n"), path, Some(4)).unwrap_err();
        assert!(error.contains(expected), "{lines}: {error}");
    }
    let directory = folder.path().to_owned();
    for (lines, expected) in [
        (
            "size=1m\nfilename=table.ibd",
            "table.ibd exists, and in a directory only files of",
        ),
        ("size=1m\nfilename=../x", "is not in the target"),
        ("size=1m\nfilename=sub/x", "is not in the target"),
        ("size=1m\nfilename=..", "is not in the target"),
        (
            "size=1m\nfilename=/etc/passwd",
            "/etc/passwd is not in the target",
        ),
        (
            "size=1m\ndirectory=/etc",
            "directory: the job is about /etc",
        ),
        ("filename=own", "size: it is missing"),
        ("size=50%", "there is no file yet"),
        ("size=1m\noffset=10%", "a percentage is of a file or device"),
    ] {
        let error = plan_at(&format!("[job]\n{lines}\n"), &directory, None).unwrap_err();
        assert!(error.contains(expected), "{lines}: {error}");
    }
    assert_eq!(fs::read_to_string(target).unwrap(), "rows");
}

#[test]
fn a_name_that_is_the_target_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("table.ibd");
    fs::write(&target, "rows").unwrap();
    let text = format!("[job]\nfilename={}\nsize=50%\n", target.display());
    let plan = plan_at(&text, &target, Some(64)).unwrap();
    assert_eq!(one(&plan).span, Bytes::mib(32));
    let text = format!(
        "[job]\ndirectory={}\nfilename=new\nsize=3m\n",
        folder.path().display()
    );
    let plan = plan_at(&text, folder.path(), None).unwrap();
    assert_eq!(plan.files, [Bytes::mib(3)]);
}

#[test]
fn a_job_becomes_the_workload_that_fio_would_run() {
    let text = "[job]\nrw=randrw\nrwmixread=70\nbssplit=4k/25:16k/75,8k\nioengine=io_uring\n\
                iodepth=8\ndirect=1\nruntime=90s\nramp_time=5\noffset=1m\nsize=10m\nfdatasync=4\n";
    let plan = plan_on(text, Some(64)).unwrap();
    let stream = one(&plan);
    let workload = &stream.workload;
    assert_eq!(
        (workload.pattern, workload.depth, workload.sync_every),
        (Pattern::Random, 8, 4)
    );
    assert_eq!(workload.longest, Nanos::from_secs(90));
    // 0.7 of 13 KiB and 0.3 of 8 KiB.
    assert_eq!(workload.block, Bytes(11_776));
    assert_eq!(
        (stream.interface, stream.direct, stream.span),
        (IoInterface::Auto, true, Bytes::mib(10))
    );
    let details = workload.details.as_ref().unwrap();
    let share = |kib, share| SizeShare {
        size: Bytes::kib(kib),
        share,
    };
    assert_eq!(details.read_sizes, [share(4, 0.25), share(16, 0.75)]);
    assert_eq!(details.write_sizes, [share(8, 1.0)]);
    assert_eq!(
        (details.offset, details.bytes),
        (Bytes::mib(1), Some(Bytes::mib(10)))
    );
    assert_eq!(
        (details.ramp, details.full_sync),
        (Nanos::from_secs(5), false)
    );
    // A map of drawn blocks does not distinguish blocks of several sizes.
    assert_eq!(details.spread, RandomDistribution::Uniform);
}

#[test]
fn blocking_calls_have_one_in_flight_and_a_job_without_runtime_ends_by_its_size() {
    let plan = plan_on(
        "[job]\nrw=randread\niodepth=32\nloops=3\nsize=10000k\n",
        Some(64),
    )
    .unwrap();
    let stream = one(&plan);
    assert_eq!(
        (stream.workload.depth, stream.interface, stream.direct),
        (1, IoInterface::Sync, false)
    );
    assert!(stream.workload.longest > Nanos::from_secs(1_000_000));
    let details = stream.workload.details.as_ref().unwrap();
    assert_eq!(details.bytes, Some(Bytes::kib(30_000)));
    assert_eq!(details.spread, RandomDistribution::Once);
    for (lines, bytes, ops) in [
        ("time_based\nruntime=5", None, None),
        ("io_size=1g", Some(Bytes::gib(1)), None),
        ("io_size=50%", Some(Bytes::mib(32)), None),
        ("size=1m\nio_size=4m\nloops=2", Some(Bytes::mib(4)), None),
        (
            "size=1m\nio_size=4m\nloops=2\nnorandommap",
            Some(Bytes::mib(8)),
            None,
        ),
        (
            "rw=write\nsize=1m\nio_size=4m\nverify=crc32c",
            Some(Bytes::mib(2)),
            None,
        ),
        ("number_ios=77", Some(Bytes::mib(64)), Some(77)),
        (
            "norandommap\nbs=48k",
            Some(Bytes(65536 / 48 * (48 << 10))),
            None,
        ),
    ] {
        let plan = plan_on(&format!("[job]\nrw=randread\n{lines}\n"), Some(64)).unwrap();
        let workload = &one(&plan).workload;
        let limit = workload.details.as_ref().unwrap().bytes;
        assert_eq!((limit, workload.ops), (bytes, ops), "{lines}");
    }
    let error = plan_on("[job]\nnumber_ios=7\nloops=2\n", Some(64)).unwrap_err();
    assert!(
        error.contains("line 2: number_ios: together with loops"),
        "{error}"
    );
}

#[test]
fn clones_have_files_of_their_own_unless_one_is_named() {
    let plan = plan_on("[job]\nsize=6m\nnrfiles=2\nnumjobs=3\n", None).unwrap();
    assert_eq!(plan.files, [Bytes::mib(3); 6]);
    let files: Vec<_> = plan.walls[0]
        .iter()
        .map(|stream| &stream.files[..])
        .collect();
    assert_eq!(files, [[0, 1], [2, 3], [4, 5]]);
    let names: Vec<_> = plan.walls[0]
        .iter()
        .map(|stream| stream.name.as_str())
        .collect();
    assert_eq!(names, ["job.1", "job.2", "job.3"]);
    let text = "[global]\nfilename=shared\nsize=6m\n[a]\n[b]\nnumjobs=2\noffset_increment=2m\n";
    let plan = plan_on(text, None).unwrap();
    assert_eq!(plan.files, [Bytes::mib(8)]);
    assert!(plan.walls[0].iter().all(|stream| stream.files == [0]));
}

#[test]
fn walls_part_what_runs_together_and_groups_what_is_summed() {
    let text = "[global]\nsize=2m\ngroup_reporting\n[a]\nnumjobs=2\n[b]\n[c]\nnew_group\n\
                [d]\nstonewall\ngroup_reporting=0\nnumjobs=2\n[e]\n[f]\nstonewall\n";
    let plan = plan_on(text, None).unwrap();
    let reported: Vec<Vec<(String, usize)>> = plan
        .walls
        .iter()
        .map(|wall| {
            let phases = sum::reported(wall).into_iter();
            phases
                .map(|(name, members)| (name, members.len()))
                .collect()
        })
        .collect();
    let notes: Vec<String> = plan
        .walls
        .iter()
        .flat_map(|wall| sum::notes(wall))
        .collect();
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].starts_with("a+b is the sum of 3 jobs or clones"),
        "{notes:?}"
    );
    let of = |pairs: &[(&str, usize)]| -> Vec<(String, usize)> {
        pairs
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    };
    assert_eq!(
        reported,
        [
            of(&[("a+b", 3), ("c", 1)]),
            of(&[("d.1", 1), ("d.2", 1), ("e", 1)]),
            of(&[("f", 1)]),
        ]
    );
}

#[test]
fn jobs_that_count_from_different_times_on_are_not_summed() {
    let text = |line: &str| {
        format!("[global]\nsize=2m\ngroup_reporting\nramp_time=2\n[a]\n[b]\nramp_time=4\n{line}\n")
    };
    let error = plan_on(&text(""), None).unwrap_err();
    assert!(
        error.contains("line 7: ramp_time: a and b are reported as one"),
        "{error}"
    );
    for line in ["new_group", "group_reporting=0", "ramp_time=2", "stonewall"] {
        assert!(plan_on(&text(line), None).is_ok(), "{line}");
    }
}

#[test]
fn a_sum_is_the_sum() {
    let text =
        "[job]\nrw=randread\nsize=2m\nnumjobs=3\ngroup_reporting\niodepth=4\nioengine=libaio\n";
    let plan = plan_on(text, None).unwrap();
    let phases: Vec<record::Phase> = crate::views::sample::database_run(1).0.phases;
    let read = phases.iter().find(|phase| phase.read.is_some()).unwrap();
    let three = vec![read.clone(), read.clone(), read.clone()];
    let sum = sum::phase("job".to_owned(), &[0, 1, 2], &plan.walls[0], &three, 1.5);
    let (one, all) = (read.read.as_ref().unwrap(), sum.read.as_ref().unwrap());
    assert_eq!((all.ops, all.bytes), (3 * one.ops, 3 * one.bytes));
    assert_eq!(all.latency.count(), 3 * one.latency.count());
    assert_eq!(sum.windows.len(), read.windows.len());
    assert_eq!(sum.windows[0].ops(), 3 * read.windows[0].ops());
    assert!((sum.windows[0].idle_fraction - read.windows[0].idle_fraction).abs() < 1e-9);
    assert!((sum.seconds - read.windows.iter().map(|w| w.seconds).sum::<f64>()).abs() < 1e-9);
    assert_eq!((sum.workload.threads, sum.workload.depth), (3, 4));
    assert_eq!(sum.workload.span, Some(Bytes::mib(6)));
    assert_eq!((sum.name.as_str(), sum.began_s), ("job", 1.5));
}

#[test]
fn a_phase_carries_the_options_that_it_was_given() {
    let text = "[global]\nsize=2m\nrw=randread\noffset=4k\noffset_increment=1m\nnumjobs=2\n\
                [a]\nbssplit=4k/10:16k/90\ngroup_reporting\n[b]\nstonewall\ngroup_reporting=0\n\
                [c]\nstonewall\ngroup_reporting\n[d]\ngroup_reporting\n";
    let plan = plan_on(text, None).unwrap();
    let reported = |wall: usize, phase: usize| {
        let (name, members) = sum::reported(&plan.walls[wall]).remove(phase);
        let read = crate::views::sample::database_run(1).0.phases[1].clone();
        let phases = vec![read; plan.walls[wall].len()];
        let sum = sum::phase(name, &members, &plan.walls[wall], &phases, 0.0);
        *sum.workload.details.unwrap()
    };
    let value = |details: &record::JobOptions, name: &str| {
        let mut options = details.options.iter();
        let found = options.find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone())
    };
    let summed = reported(0, 0);
    assert!(!summed.mixed);
    for (name, given) in [
        ("bssplit", "4k/10:16k/90"),
        ("numjobs", "2"),
        ("offset", "4k"),
        ("offset_increment", "1m"),
        ("group_reporting", "1"),
    ] {
        assert_eq!(value(&summed, name).as_deref(), Some(given), "{name}");
    }
    // A clone that is reported by itself is a job without clones, which begins at the clone's offset.
    let second = reported(1, 1);
    assert_eq!(
        value(&second, "offset"),
        Some(((1 << 20) + 4096).to_string())
    );
    assert_eq!(value(&second, "numjobs"), None);
    assert_eq!(value(&second, "offset_increment"), None);
    // The options of a sum of several jobs are those of none of them.
    let mixed = reported(2, 0);
    assert!(mixed.mixed && mixed.options.is_empty());
}

/// 31 of 32 jobs end at once; they must not dilute the windows of the last one.
#[test]
fn a_stream_that_has_ended_has_no_say_in_how_idle_the_others_are() {
    let text = "[job]\nrw=randread\nsize=2m\nnumjobs=32\ngroup_reporting\n";
    let plan = plan_on(text, None).unwrap();
    let phases: Vec<record::Phase> = crate::views::sample::database_run(1).0.phases;
    let long = phases.iter().find(|phase| phase.read.is_some()).unwrap();
    assert!(long.windows.len() > 2);
    let mut short = long.clone();
    short.windows.truncate(1);
    short.windows[0].seconds = 0.5;
    short.windows[0].idle_fraction = 0.2;
    let mut all = vec![short; 31];
    all.push(long.clone());
    let members: Vec<usize> = (0..32).collect();
    let sum = sum::phase("job".to_owned(), &members, &plan.walls[0], &all, 0.0);
    let (first, alone) = (&long.windows[0], &long.windows[1]);
    let time = 31.0 * 0.5 + first.seconds;
    let idle = (31.0 * 0.5 * 0.2 + first.seconds * first.idle_fraction) / time;
    assert!((sum.windows[0].idle_fraction - idle).abs() < 1e-9);
    assert!((sum.windows[1].idle_fraction - alone.idle_fraction).abs() < 1e-9);
}

#[test]
fn files_of_one_name_are_shared_and_what_is_not_counted_stands_alone() {
    let text = "[global]\nsize=1m\nnumjobs=2\ngroup_reporting\n";
    let shared = format!("{text}filename_format=$jobname.$filenum\n[a]\n[b]\nstats=0\n");
    let plan = plan_on(&shared, None).unwrap();
    assert_eq!(plan.files.len(), 2);
    let groups: Vec<_> = plan.walls[0].iter().map(|stream| stream.group).collect();
    assert_eq!(groups, [Some(0), Some(0), None, None]);
    assert!(plan.notes.iter().any(|note| note.starts_with("b: stats=0")));
    assert_eq!(
        plan_on(&format!("{text}[a]\n[b]\n"), None)
            .unwrap()
            .files
            .len(),
        4
    );
    let outside = plan_on(&format!("{text}filename_format=../$jobname\n[a]\n"), None);
    let said = outside.unwrap_err();
    assert!(
        said.contains("line 5: filename_format: ../a is not in the target"),
        "{said}"
    );
}

#[test]
fn shaped_data_is_compared_where_it_is_written_and_nowhere_else() {
    let compared = |lines: &str| {
        let text = format!("[j]\nrw=write\ndirect=1\nzero_buffers\n{lines}\n");
        plan_on(&text, Some(256)).unwrap().walls.split_off(1)
    };
    let walls = compared("offset=64m\nsize=100m");
    assert_eq!(walls.len(), 12);
    for wall in &walls {
        let [stream] = &wall[..] else {
            panic!("{wall:#?}")
        };
        let details = stream.workload.details.as_deref().unwrap();
        assert_eq!(
            (details.offset, stream.span),
            (Bytes::mib(64), Bytes::mib(100))
        );
        assert_eq!(
            details.contents.is_some(),
            stream.name.starts_with("given-")
        );
    }
    for none in [
        "size=63m",
        "direct=0",
        "rw=randread",
        "zero_buffers=0",
        "verify=crc32c",
    ] {
        assert!(compared(none).is_empty(), "{none}");
    }
}
