//! Tests of whole job files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::*;

fn variable(name: &str) -> Option<String> {
    match name {
        "DEV" => Some("/dev/xvdf".to_owned()),
        "LOOP" => Some("${LOOP}".to_owned()),
        _ => None,
    }
}

fn include(from: &str, name: &str) -> Result<String, String> {
    match name {
        "common.inc" => Ok(format!("bs=16k\n; included by {from}\ndirect=1\n")),
        "broken.inc" => Ok("\nbs=sixteen\n".to_owned()),
        "long.inc" => Ok(format!(";{}\n", "x".repeat(1000)).repeat(150)),
        "self.inc" => Ok("include self.inc\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    }
}

const SURROUNDINGS: MachineFacts<'static> = MachineFacts {
    variable: &variable,
    include: &include,
    page_size: 4096,
    memory_mb: 2000,
    processors: 3,
};

fn parsed(text: &str) -> Result<Vec<Job>, JobFileErrors> {
    read("job.fio", text, &SURROUNDINGS)
}

#[test]
fn all_problems_of_a_file_are_one_answer() {
    assert_eq!(
        error_of("[global]\nwarp=9\n[a]\nbs=x\nverify_only=1\n[b]\nfsync=1\nfdatasync=1\n")
            .lines()
            .map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": "))
            .collect::<Vec<_>>(),
        [
            "job.fio, line 2: warp",
            "job.fio, line 4: bs",
            "job.fio, line 5: verify_only",
            "job.fio, line 8: fdatasync",
        ]
    );
    // An error in a global section that two jobs have is reported once.
    let both = "[global]\nfsync=1\nfdatasync=1\n[a]\n[b]\n";
    assert_eq!(error_of(both).lines().count(), 1);
}

#[test]
fn options_of_a_command_line_make_a_job() {
    let of = |options: &[(&str, String)]| of_options(options, &SURROUNDINGS);
    let jobs = of(&[
        ("name", "j".to_owned()),
        ("bs", "8k".to_owned()),
        ("bs", "16k".to_owned()),
    ])
    .unwrap();
    assert_eq!(jobs[0].name, "j");
    assert_eq!(jobs[0].sizes.read[0].bytes, 16384);
    let error = of(&[("bs", "4kq".to_owned())]).unwrap_err().to_string();
    assert!(error.starts_with("the command line: bs: "), "{error}");
}

#[test]
fn each_name_on_a_command_line_begins_a_job_and_what_is_before_is_for_all() {
    let of = |words: &[&str]| {
        let option = |word: &&str| -> (&'static str, String) {
            let (name, value) = word.split_once('=').unwrap();
            let rows = OPTIONS.iter().chain(COMMAND_OPTIONS);
            let row = rows.into_iter().find(|row| row.name == name).unwrap();
            (row.name, value.to_owned())
        };
        let options: Vec<_> = words.iter().map(option).collect();
        of_options(&options, &SURROUNDINGS)
    };
    let jobs = of(&[
        "bs=8k",
        "eta=never",
        "name=a",
        "rw=write",
        "name=b",
        "bs=4k",
    ])
    .unwrap();
    let seen: Vec<_> = jobs
        .iter()
        .map(|job| {
            (
                job.name.as_str(),
                job.sizes.read[0].bytes,
                job.pattern.writes,
            )
        })
        .collect();
    assert_eq!(seen, [("a", 8192, true), ("b", 4096, false)]);
    // Errors in options of fio's command line and in options of a job are reported together.
    let error = of(&["minimal=1", "name=a", "bs=x"]).unwrap_err();
    let options: Vec<_> = error
        .all()
        .iter()
        .map(|error| error.option.clone())
        .collect();
    assert_eq!(options, [Some("minimal".to_owned()), Some("bs".to_owned())]);
}

#[test]
fn a_job_that_trims_has_the_third_of_three_values() {
    let job = |lines: &str| parsed(&format!("[j]\nrw=trim\n{lines}\n")).map(|jobs| jobs[0].clone());
    let third = job("bs=4k,8k,16k\nrate_iops=100,50,10").unwrap();
    assert_eq!(third.sizes.write[0].bytes, 16384);
    assert_eq!(third.rate_iops.write, 10);
    assert_eq!(job("bs=4k,8k").unwrap().sizes.write[0].bytes, 8192);
    // fio would use its own default.
    assert!(job("bs=4k,8k,").is_err() && job("bs=4k,8k,x").is_err());
    assert!(job("rw=trimwrite\nbs=4k,8k,16k").is_err());
    // With sizes by order of requests there is no third size.
    for (rw, bytes) in [("trim", 4096), ("randtrim", 8192)] {
        let by_order = job(&format!("rw={rw}\nbs=4k,8k,16k\nbs_is_seq_rand=1")).unwrap();
        assert_eq!(by_order.sizes.write[0].bytes, bytes, "{rw}");
    }
    let same = job("rw=trimwrite\nbs=4k,8k,8k").unwrap();
    assert_eq!(same.sizes.write[0].bytes, 8192);
    let write = job("rw=write\nbs=4k,8k,16k").unwrap();
    assert_eq!(write.sizes.write[0].bytes, 8192);
}

/// Follows fio 3.33: `fio --bs=8k --name=x --rw=write job.fio`.
#[test]
fn options_of_a_command_line_beside_a_file_hold_where_the_file_does_not_give_them() {
    let file = "[global]\nsize=1m\n[a]\nrw=write\n[b]\nbs=16k\n";
    let beside = |options: &[(&str, &str)]| {
        let options: Vec<_> = options
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        read_with("job.fio", file, &options, &SURROUNDINGS)
    };
    let jobs = beside(&[
        ("bs", "8k"),
        ("size", "1m"),
        ("name", "x"),
        ("rw", "randread"),
    ])
    .unwrap();
    let seen: Vec<_> = jobs
        .iter()
        .map(|job| {
            let overridden: Vec<_> = job.overridden.iter().copied().collect();
            (
                job.name.as_str(),
                job.sizes.read[0].bytes,
                job.pattern.random,
                overridden,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("x", 8192, true, vec![]),
            ("a", 8192, false, vec![]),
            ("b", 16384, false, vec!["bs"]),
        ]
    );
    let one = beside(&[("section", "b"), ("section", "c")]).unwrap();
    assert_eq!((one.len(), one[0].name.as_str()), (1, "b"));
    let error = beside(&[("section", "c")]).unwrap_err().to_string();
    let expected =
        "the command line: section: the job file has no such section; it has these: a, b";
    assert_eq!(error, expected);
    // As in fio 3.33: a section named before a job's name selects that job too.
    let x = [("name", "x"), ("rw", "read"), ("size", "1m")];
    let section = [("section", "b")];
    let both = beside(&[&x[..], &section].concat()).unwrap();
    let names: Vec<_> = both.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["x", "b"]);
    let error = beside(&[&section[..], &x].concat())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("name: fio would not run this job"),
        "{error}"
    );
    assert!(beside(&[&[("section", "x")], &x[..]].concat()).is_ok());
    let error = beside(&[("warp", "1")]).unwrap_err().to_string();
    assert!(error.starts_with("the command line: warp: "), "{error}");
    // A job file that cannot be read does not hide other errors.
    let options = [("client", "db1"), ("name", "x"), ("warp", "1")];
    let options = options.map(|(name, value)| (name, value.to_owned()));
    let errors = read_with("job.fio", "[\n", &options, &SURROUNDINGS).unwrap_err();
    let text = errors.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("the command line: client: "),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("job.fio, line 1: "), "{lines:?}");
    assert!(
        lines[2].starts_with("the command line: warp: "),
        "{lines:?}"
    );
}

#[test]
fn what_is_run_as_the_nearest_thing_is_noted_until_a_line_takes_it_back() {
    let notes = |lines: &str| -> Vec<&str> {
        let jobs = parsed(&format!("[global]\nhipri\n[job]\n{lines}\n")).unwrap();
        jobs[0].notes.keys().copied().collect()
    };
    assert_eq!(notes("iodepth_batch=8"), ["hipri", "iodepth_batch"]);
    assert_eq!(notes("hipri=0\niodepth_batch=1"), [""; 0]);
}

#[test]
fn what_may_stand_without_a_value_is_a_switch_of_the_command_line() {
    for row in OPTIONS.iter().filter(|row| row.kind == OptionSupport::Done) {
        let error = parsed(&format!("[job]\n{}\n", row.name)).err();
        let needs = error.is_some_and(|error| error.to_string().contains("it needs a value"));
        assert_eq!(row.is_switch(), !needs, "{}", row.name);
    }
}

fn error_of(text: &str) -> String {
    parsed(text).unwrap_err().to_string()
}

const DATABASE: &str = "\
; a database's day
[global]
ioengine=libaio   # asynchronous
direct=1
filename=${DEV}
runtime=2m
time_based
include common.inc

[pages]
rw=randrw
rwmixread=70
iodepth=2*$ncpus
numjobs=4
random_distribution=zipf:1.2
group_reporting

[log]
stonewall
rw=write
bs=4k
fdatasync=1
ioengine=psync
offset=50%
size=(1g+512m)

[global]
bs=1m

[scan]
stonewall
rw=read
ramp_time=500ms
rate_iops=200
rate_process=poisson
";

#[test]
fn a_file_is_read_with_its_globals_variables_and_includes() {
    let jobs = parsed(DATABASE).unwrap();
    let [pages, log, scan] = &jobs[..] else {
        panic!("{jobs:#?}")
    };
    assert_eq!(
        (pages.name.as_str(), pages.numjobs, pages.iodepth),
        ("pages", 4, 6)
    );
    assert_eq!(pages.filename, ["/dev/xvdf"]);
    assert_eq!(pages.sizes.read[0].bytes, 16384);
    assert_eq!(
        (pages.engine, pages.direct, pages.read_percent),
        (IoEngine::Queued, true, 70)
    );
    assert_eq!(pages.distribution, Distribution::Zipf(1.2));
    assert_eq!((pages.runtime_us, pages.time_based), (120_000_000, true));
    assert!(pages.group_reporting && !pages.stonewall && !log.group_reporting);
    assert_eq!(
        (log.engine, log.sync()),
        (IoEngine::Blocking, Some((SyncCall::Data, 1)))
    );
    assert_eq!(
        (log.offset, log.size),
        (Amount::Percent(50), Some(Amount::Bytes(3 << 29)))
    );
    assert_eq!(log.sizes.write[0].bytes, 4096);
    // The second global section applies to the sections after it.
    assert_eq!(scan.sizes.read[0].bytes, 1 << 20);
    assert_eq!(
        (scan.ramp_us, scan.cadence),
        (500_000, RateProcess::Poisson)
    );
    assert_eq!(
        scan.rate_iops,
        PerDirection {
            read: 200,
            write: 200
        }
    );
    assert_eq!(scan.place.line, 30);
}

#[test]
fn an_option_that_is_not_done_stops_with_file_line_and_name() {
    for (line, expected) in [
        (
            "opendir=/data",
            "job.fio, line 2: opendir: disksmith does not support this (",
        ),
        ("thinktime_blocks_type=both", "it is complete or issue"),
        (
            "rw=randrw\nrate=1m\nthinktime=5ms\nrate_ignore_thinktime=1",
            "line 5: rate_ignore_thinktime: it is not supported for a job that reads and writes",
        ),
        ("verify=crc9", "line 2: verify: 'crc9' is not supported"),
        (
            "verify_only=1",
            "line 2: verify_only: disksmith does not support this",
        ),
        (
            "verify=pattern",
            "line 2: verify: there is no verify_pattern",
        ),
        (
            "ss=iops:5%",
            "line 2: steadystate: there is no steadystate_duration",
        ),
        (
            "latency_target=5",
            "latency_target: there is no latency_window",
        ),
        ("cmdprio_percentage=5", "only with io_uring and libaio"),
        (
            "startdelay=5-1",
            "line 2: startdelay: '5-1' ends before it begins",
        ),
        (
            "filesize=8k-4k",
            "line 2: filesize: '8k-4k' ends before it begins",
        ),
        (
            "pre_read=1",
            "line 2: pre_read: disksmith does not support this",
        ),
        (
            "frobnicate=1",
            "line 2: frobnicate: disksmith does not know",
        ),
        ("rw=trimread", "line 2: rw: 'trimread' is not supported"),
        (
            "rw=trimwrite\nbs=4k,4k,8k",
            "bs: each trim is of the block that is written then",
        ),
        (
            "ignore_error=EWARP",
            "line 2: ignore_error: 'EWARP' is no error that is known",
        ),
        ("continue_on_error=some", "'some' is not done; none, read"),
        ("zonesize=1m", "zonesize: it needs zonemode=strided or"),
        ("zonemode=zbd\nrw=write", "zonesize: it is missing"),
        (
            "zonemode=strided\nzonesize=1m\nrw=randread\nrandom_distribution=zipf:1.2",
            "zonesize: in strided zones all places are as likely",
        ),
        ("zonemode=zbd\nzonesize=1m", "give read_beyond_wp=1"),
        (
            "zonemode=zbd\nzonesize=1m\nrw=randrw",
            "rw: with zonemode=zbd it is not supported",
        ),
        (
            "zonemode=zbd\nzonesize=1m\nrw=randwrite\nnumjobs=2\noffset_increment=1z\nmax_open_zones=2",
            "max_open_zones: clones would share the open zones",
        ),
        (
            "zonemode=zbd\nzonesize=1m\nrw=randwrite\njob_max_open_zones=2",
            "job_max_open_zones: as in fio it needs max_open_zones",
        ),
        (
            "size=2z",
            "line 2: size: it is in zones, and there is no zonesize",
        ),
        (
            "size=0z\nzonemode=zbd\nzonesize=1m\nrw=write",
            "line 2: size: it is nothing",
        ),
        ("zonemode=zbd\nzonesize=2z", "line 3: zonesize: "),
        ("zonemode=zbd\nzonesize=1m\nsize=2Z", "line 4: size: "),
        (
            "rw=randread:4\nnrfiles=2",
            "line 2: rw: sequential requests of a random job over several files",
        ),
        (
            "rw=randread\nfilename=a:b\npercentage_random=50",
            "line 4: percentage_random: sequential requests",
        ),
        ("rw_sequencer=random", "it is sequential or identical"),
        (
            "bs_is_seq_rand=1\nrw=randread:4",
            "line 2: bs_is_seq_rand: it is not supported for a job with partly random requests",
        ),
        (
            "zonemode=zbd\nzonesize=1m\nrw=write\noffset=1k",
            "offset: a job that writes zones begins at",
        ),
        (
            "zonemode=zbd\nzonesize=1m\nrw=write\nnumjobs=2",
            "numjobs: clones would write the same blocks",
        ),
        (
            "zonemode=zbd\nzonesize=10k\nrw=write",
            "zonesize: zones are no multiple of the blocks",
        ),
        (
            "rw=randtrim\nbs=4k,8k,",
            "bs: the value for trims, behind the second comma, is missing",
        ),
        (
            "rw=trim\nverify=crc32c",
            "verify: what is trimmed has no content",
        ),
        ("rw=randread:8k", "'8k' is no number of requests"),
        (
            "percentage_random=101",
            "101 is too large; the largest is 100",
        ),
        ("max_latency=soon", "line 2: max_latency: "),
        ("ioengine=rbd", "line 2: ioengine: 'rbd'"),
        (
            "random_distribution=gauss:10",
            "'gauss:10' is not supported",
        ),
        ("random_distribution=normal:100", "between 0 and 100 %"),
        ("random_distribution=zipf:1", "above 0 and not 1"),
        ("random_distribution=zipf:1.2/0.5", "no number"),
        ("random_distribution=zipf:nan", "'nan' is no number"),
        ("random_distribution=zipf:inf", "'inf' is no number"),
        ("random_distribution=pareto:-inf", "'-inf' is no number"),
        (
            "sprandom=1",
            "line 2: sprandom: only a job of rw=randwrite ages an SSD",
        ),
        (
            "sprandom=1\nrw=randwrite\nbssplit=4k/50:8k/50",
            "sprandom: it needs blocks of one size",
        ),
        (
            "trim_percentage=5",
            "line 2: trim_percentage: disksmith does not support this",
        ),
        ("direct", "direct: it needs a value"),
        ("direct=yes", "it is 0 or 1"),
        ("bs= 8k", "there is a blank before '8k'"),
        ("bssplit=4k/60:8k/70:16k", "add up to 130 %"),
        ("iodepth=0", "at least 1"),
        ("filename=${NOPE}", "is a variable in it not set?"),
        (
            "include gone.inc",
            "gone.inc cannot be read: there is no such file",
        ),
        ("include broken.inc", "broken.inc, line 2: bs: "),
        ("include self.inc", "more than 16 deep"),
        ("time_based", "line 2: time_based: there is no runtime"),
        (
            "fsync=1\nfdatasync=1",
            "line 3: fdatasync: the job has fsync too",
        ),
        (
            "bssplit=4k/50:8k/50\nbsrange=8k-16k",
            "line 3: bsrange: bssplit stands before it",
        ),
        ("runtime=400d", "more than a year"),
        ("iodepth=$ncpus/0", "divides by zero"),
        ("[", "is not a section"),
        (
            &"include long.inc\n".repeat(12),
            "long.inc, line 1: a job file has at most 1024 KiB",
        ),
    ] {
        let error = error_of(&format!("[job]\n{line}\n"));
        assert!(error.contains(expected), "{line}: {error}");
    }
    assert!(error_of("bs=4k\n[job]\n").contains("line 1: 'bs=4k' is before"));
    assert!(error_of("; nothing\n").contains("no job"));
    assert!(error_of("[global]\nbs=4k\n").contains("no job"));
}

/// Follows fio 3.33: bssplit takes precedence over bsrange, and bsrange over bs, even over a bs of the job itself.
#[test]
fn sizes_are_those_of_the_option_that_says_most_of_them() {
    let job = |global: &str, own: &str| {
        let text = format!("[global]\n{global}\n[job]\n{own}\n");
        parsed(&text).unwrap().remove(0)
    };
    let sizes = |global: &str, own: &str| {
        let job = job(global, own);
        let bytes = |shares: &[SizeSplit]| shares.iter().map(|share| share.bytes >> 10).collect();
        let all: [Vec<u64>; 2] = [bytes(&job.sizes.read), bytes(&job.sizes.write)];
        all
    };
    let both = |sizes: &[u64]| [sizes.to_vec(), sizes.to_vec()];
    assert_eq!(sizes("bs=64k", "bssplit=4k/50:8k/50"), both(&[4, 8]));
    assert_eq!(sizes("bs=64k", "bsrange=4k-12k"), both(&[4, 8, 12]));
    assert_eq!(sizes("bssplit=4k/50:8k/50", "bs=64k"), both(&[4, 8]));
    assert_eq!(sizes("bsrange=4k-8k", "bs=64k"), both(&[4, 8]));
    assert_eq!(
        sizes("bssplit=4k/50:16k/50", "bsrange=4k-16k"),
        both(&[4, 16])
    );
    assert_eq!(
        sizes("bsrange=4k-8k", "bssplit=16k/50:32k/"),
        both(&[16, 32])
    );
    assert_eq!(
        sizes("bs=64k", "bssplit=,4k/50:8k/50"),
        [vec![64], vec![4, 8]]
    );
    let noted = |global: &str, own: &str| job(global, own).notes.contains_key("bs");
    assert!(noted("bsrange=4k-8k", "bs=64k") && !noted("bs=64k", "bsrange=4k-8k"));
    let behind = job("bssplit=4k/50:16k/50", "bsrange=4k-16k");
    assert!(behind.notes.contains_key("bsrange"));
}

#[test]
fn sizes_may_be_of_sequential_and_of_random_requests() {
    let of = |rw: &str| {
        let text = format!("[job]\nbs_is_seq_rand=1\nbs=64k,8k\nrw={rw}\n");
        let job = parsed(&text).unwrap().remove(0);
        (
            job.sizes.read[0].bytes >> 10,
            job.sizes.write[0].bytes >> 10,
        )
    };
    assert_eq!((of("randrw"), of("rw")), ((8, 8), (64, 64)));
}

/// The last value of the zone size applies, whatever the order.
#[test]
fn sizes_may_be_in_zones() {
    let text = "[global]\nsize=4z\noffset=1z\nzoneskip=1z\nzonesize=1m\nzonemode=zbd\nrw=write\n\
                [a]\n[b]\nzonesize=2m\nio_size=3z\noffset=0\noffset_increment=2z\n";
    let jobs = parsed(text).unwrap();
    let of = |job: &Job| {
        let Zones { size, skip, .. } = job.zones;
        (job.size, job.offset, size >> 20, skip >> 20)
    };
    let mib = |count: u64| Amount::Bytes(count << 20);
    assert_eq!(of(&jobs[0]), (Some(mib(4)), mib(1), 1, 1));
    assert_eq!(of(&jobs[1]), (Some(mib(8)), mib(0), 2, 2));
    assert_eq!(jobs[1].io_size, Some(mib(6)));
    assert_eq!(jobs[1].offset_increment, 4 << 20);
    assert_eq!(jobs[1].given["io_size"], "3z");
}

#[test]
fn a_random_job_may_have_sequential_requests_and_a_latest_answer() {
    let job = |lines: &str| parsed(&format!("[job]\n{lines}\n")).unwrap().remove(0);
    let runs = job("rw=randread:8\nrw_sequencer=identical\npercentage_random=50,");
    assert_eq!((runs.every, runs.repeats_places, runs.step), (8, true, 0));
    assert_eq!(
        runs.random_percent,
        PerDirection {
            read: 50,
            write: 100
        }
    );
    assert!(!runs.draws_all() && job("rw=randread").draws_all());
    // It has no effect for a direction that the job does not have.
    assert!(job("rw=randread\npercentage_random=,50").draws_all());
    assert!(!job("rw=randwrite\npercentage_random=,50").draws_all());
    assert_eq!(job("rw=write:8k").every, 1);
    let late = job("max_latency=250,10ms").rules.max_latency_us;
    assert_eq!((late.read, late.write), (250, 10_000));
}

#[test]
fn every_option_that_is_done_is_set() {
    for row in OPTIONS.iter().filter(|row| row.kind == OptionSupport::Done) {
        for value in ["1", "none", "1000"] {
            let answer = parsed(&format!("[job]\n{}={value}\n", row.name));
            let error = answer
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert_ne!(error, crate::assign::UNPLACED, "{}", row.name);
        }
    }
}

#[test]
fn what_asks_for_nothing_does_not_stop() {
    let text = "[job]\nthinktime=0\nverify=0\nzonemode=none\nthread\nstats=1\nscramble_buffers=1\nwrite_bw_log=x\nmem=mmaphuge\n\
                max_open_zones=4\nspr_op=0.1\nmax_latency=0\npercentage_random=100\n";
    let jobs = parsed(text).unwrap();
    assert!(jobs.len() == 1 && jobs[0].notes.is_empty());
}

/// Options that partly request the same: the one that requests nothing must not undo the other, in either order.
#[test]
fn an_option_does_not_undo_another() {
    let job = |lines: &str| parsed(&format!("[job]\n{lines}\n")).unwrap().remove(0);
    for (lines, syncs) in [
        ("fsync_on_close=1\nend_fsync=0", true),
        ("end_fsync=1\nfsync_on_close=0", true),
        ("end_fsync=1\nend_fsync=0", false),
        ("rw=write", false),
    ] {
        assert_eq!(job(lines).syncs_at_end(), syncs, "{lines}");
    }
    for (lines, repeats) in [
        ("allrandrepeat=0", true),
        ("randrepeat=1\nallrandrepeat=0", true),
        ("randrepeat=0\nallrandrepeat=1", true),
        ("randrepeat=0", false),
        ("rw=read", true),
    ] {
        assert_eq!(job(lines).repeats(), repeats, "{lines}");
    }
}

#[test]
fn shares_of_sizes_are_divided_among_those_that_name_none() {
    let sizes = |text: &str| {
        let jobs = parsed(&format!("[job]\nbssplit={text}\n")).unwrap();
        let of = |shares: &[SizeSplit]| -> Vec<(u64, f64)> {
            shares
                .iter()
                .map(|share| (share.bytes, share.percent))
                .collect()
        };
        (of(&jobs[0].sizes.read), of(&jobs[0].sizes.write))
    };
    let both = vec![(4096, 10.0), (65536, 50.0), (32768, 40.0)];
    assert_eq!(sizes("4k/10:64k/50:32k/40"), (both.clone(), both));
    assert_eq!(
        sizes("2k/50:4k:8k,1m"),
        (
            vec![(2048, 50.0), (4096, 25.0), (8192, 25.0)],
            vec![(1 << 20, 100.0)]
        )
    );
    assert_eq!(sizes("4k/100:8k/0").0, [(4096, 100.0)]);
}

#[test]
fn names_of_files_are_distinguished_at_colons() {
    let jobs = parsed("[job]\nfilename=a:b\\:c:/d\n").unwrap();
    assert_eq!(jobs[0].filename, ["a", "b:c", "/d"]);
}

#[test]
fn a_variable_is_not_looked_into_again() {
    let jobs = parsed("[job]\nfilename=${LOOP}\n").unwrap();
    assert_eq!(jobs[0].filename, ["${LOOP}"]);
}

/// A job file that was cut, repeated, and interspersed with special characters.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (
        any::<prop::sample::Index>(),
        0..4_u8,
        "[\\[\\]=;#:,/$(){}%0-9kib+*^.\\\\\n -]{0,4}",
    );
    prop::collection::vec(edit, 0..12).prop_map(|edits| {
        let mut text: Vec<char> = DATABASE.chars().collect();
        for (index, kind, inserted) in edits {
            let at = index.index(text.len() + 1);
            let end = (at + inserted.len() * 3).min(text.len());
            match kind {
                0 => drop(text.drain(at..end)),
                1 => text.truncate(at.max(1)),
                2 => {
                    let twice: Vec<char> = text[at..end].to_vec();
                    text.splice(at..at, twice);
                }
                _ => drop(text.splice(at..at, inserted.chars())),
            }
        }
        text.into_iter().collect()
    })
}

proptest! {
    #[test]
    fn no_mutated_file_makes_it_panic(text in mutated()) {
        if let Err(error) = parsed(&text) {
            for error in error.all() {
                prop_assert!(error.place.line >= 1 && !error.text.is_empty());
            }
        }
    }

    #[test]
    fn no_value_of_any_option_makes_it_panic(
        row in prop::sample::select(OPTIONS),
        value in "(.{0,20}|[0-9kmg:,/%()+*-]{0,20})",
    ) {
        let _ = parsed(&format!("[job]\n{}={value}\n", row.name));
    }

    #[test]
    fn what_is_read_is_within_its_bounds(text in mutated()) {
        for job in parsed(&text).unwrap_or_default() {
            prop_assert!(job.numjobs >= 1 && job.iodepth >= 1 && job.nrfiles >= 1);
            prop_assert!(job.read_percent <= 100 && job.loops >= 1);
            for shares in [&job.sizes.read, &job.sizes.write] {
                let percent: f64 = shares.iter().map(|share| share.percent).sum();
                prop_assert!((percent - 100.0).abs() < 1e-9, "{shares:?}");
                prop_assert!(shares.iter().all(|share| share.bytes > 0));
            }
        }
    }
}
