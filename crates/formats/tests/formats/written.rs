//! Tests that summaries are written without unknown values.

use crate::support::{fixture, only};
use formats::{Format, WriteError, read, sum_up, write};
use record::{Activity, Bytes, Flow, Histogram, JobOptions, Run, SizeShare, Summary, TargetKind};
use serde_json::Value;

/// A run of this program with one phase, which reads.
fn run() -> Run {
    let text = include_str!("../../../ledger/src/fixtures/run-form-1.json");
    let mut run: Run = serde_json::from_str(text).unwrap();
    let phase = &mut run.phases[0];
    let mut latency = Histogram::new();
    latency.record_many(3_000_000_000, 100);
    phase.read = Some(Flow {
        ops: 100,
        bytes: 100 * 16384,
        latency,
        service: None,
    });
    (phase.write, phase.sync, phase.commit) = (None, None, None);
    phase.windows.clear();
    phase.workload.read_fraction = 1.0;
    run
}

/// The first job in fio's JSON for a run.
fn job(run: &Run) -> Value {
    let text = write(Format::FioJson, &sum_up(run)).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    document["jobs"][0].clone()
}

#[test]
fn a_rate_is_written_for_each_clone() {
    let mut run = run();
    let workload = &mut run.phases[0].workload;
    (workload.threads, workload.rate_per_s) = (4, Some(1000.0));
    let written = job(&run);
    let options = &written["job options"];
    assert_eq!(
        (&options["numjobs"], &options["rate_iops"]),
        (&"4".into(), &"250".into())
    );
    assert_eq!(options["rate_process"], "poisson");
    let back = only(&write(Format::FioJson, &sum_up(&run)).unwrap());
    assert_eq!(back.phases[0].work.rate_per_s, Some(1000.0));
    assert!(!back.phases[0].work.details.as_ref().unwrap().even_rate);

    run.phases[0].workload.read_fraction = 0.75;
    assert_eq!(job(&run)["job options"]["rate_iops"], "188,63");
}

#[test]
fn in_an_open_loop_the_completion_latency_is_from_submission() {
    let mut run = run();
    let mut service = Histogram::new();
    service.record_many(2_500_000, 100);
    run.phases[0].read.as_mut().unwrap().service = Some(service);
    run.phases[0].workload.rate_per_s = Some(100.0);
    let written = job(&run);
    let read = &written["read"];
    let near = |value: &Value, due: f64| (value.as_f64().unwrap() / due - 1.0).abs() < 0.02;
    let p99 = |key: &str| &read[key]["percentile"]["99.000000"];
    assert!(near(p99("clat_ns"), 2.5e6), "{read:#}");
    assert!(near(p99("lat_ns"), 3e9), "{read:#}");
    assert_eq!(read["clat_ns"]["max"], 2_500_000);
    assert_eq!(read["lat_ns"]["max"], 3_000_000_000_u64);
    let fast: f64 = written["latency_ms"]["4"].as_f64().unwrap();
    assert_eq!(fast, 100.0, "2 to 4 ms");
    // In a closed loop there is one latency.
    run.phases[0].read.as_mut().unwrap().service = None;
    let read = &job(&run)["read"];
    assert_eq!(read["clat_ns"]["max"], read["lat_ns"]["max"]);
    // The reads and writes of an open loop together are from their submission on too.
    let phase = &mut run.phases[0];
    phase.read.as_mut().unwrap().service = Some(Histogram::new());
    phase.write = phase.read.clone();
    let both = sum_up(&run).phases.remove(0).flows.remove(2);
    assert_eq!(
        (both.activity, both.service.is_some()),
        (Activity::All, true)
    );
}

#[test]
fn the_options_of_a_job_file_are_written_as_they_are() {
    let mut run = run();
    let given = [
        ("bssplit", "4k/10:16k/90"),
        ("random_distribution", "zipf:1.2"),
        ("fsync", "8"),
        ("ramp_time", "2s"),
    ];
    run.phases[0].workload.block = Bytes(15155);
    run.phases[0].workload.details = Some(Box::new(JobOptions {
        read_sizes: [(4, 0.1), (16, 0.9)]
            .map(|(kib, share)| SizeShare {
                size: Bytes::kib(kib),
                share,
            })
            .to_vec(),
        options: given
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..JobOptions::default()
    }));
    let written = job(&run);
    let options = written["job options"].as_object().unwrap();
    for (name, value) in given {
        assert_eq!(options[name], value);
    }
    assert_eq!(options["directory"], "/data", "which is no file");
    assert_eq!(sum_up(&run).target_kind, Some(TargetKind::Directory));
    assert_eq!(options["name"], "log-append");
    assert_eq!(options.len(), given.len() + 2, "{options:?}");

    // Where there is no file the options say the same.
    run.phases[0]
        .workload
        .details
        .as_mut()
        .unwrap()
        .options
        .clear();
    run.phases[0].workload.sync_at_end = true;
    let written = job(&run);
    let options = &written["job options"];
    assert_eq!(options["bssplit"], "4096/10:16384/90");
    assert!(options["bs"].is_null(), "a mean is no size");
    assert_eq!(
        options["filename_format"], "disksmith.$filenum",
        "threads share it"
    );
    assert_eq!(
        (&options["end_fsync"], &options["norandommap"]),
        (&"1".into(), &"1".into())
    );

    // Of jobs that differ nothing is known of any of them.
    run.phases[0].workload.details.as_mut().unwrap().mixed = true;
    let written = job(&run);
    assert!(written["job options"].is_null(), "{written:#}");
    assert_eq!(written["read"]["total_ios"], 100);
    let back = only(&write(Format::FioJson, &sum_up(&run)).unwrap());
    assert_eq!(
        (back.phases[0].work.pattern, back.phases[0].work.direct),
        (None, None)
    );
    assert!(write(Format::Sysbench, &sum_up(&run)).is_err());
}

#[test]
fn options_of_fio_are_written_again() {
    let sent = only(&fixture("fio-3.33-sections.json"));
    let mut back = only(&write(Format::FioJson, &sent).unwrap());
    for phase in &mut back.phases {
        // The name is written next to them, and the file.
        phase.work.options.retain(|(name, _)| name != "name");
    }
    for (sent, back) in sent.phases.iter().zip(&mut back.phases) {
        back.work.options.sort();
        let mut options = sent.work.options.clone();
        options.sort();
        assert_eq!(back.work.options, options, "{}", sent.name);
        assert_eq!(back.work.threads, sent.work.threads, "{}", sent.name);
    }
}

#[test]
fn unknown_values_are_not_written_as_zero() {
    // Bonnie++ counts bytes, or requests, or files.
    let sent = read(&fixture("bonnie-1.97.csv")).unwrap().remove(0);
    let text = write(Format::FioJson, &sent).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let jobs = document["jobs"].as_array().unwrap();
    let names: Vec<_> = jobs
        .iter()
        .map(|job| job["jobname"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "char-write",
            "block-write",
            "rewrite",
            "char-read",
            "block-read",
            "seeks"
        ],
        "fio has no place for files"
    );
    for job in jobs {
        let way = ["read", "write", "mixed"]
            .into_iter()
            .find(|way| {
                job[way]["clat_ns"]["max"]
                    .as_u64()
                    .is_some_and(|max| max > 0)
            })
            .unwrap();
        for (key, value) in job[way].as_object().unwrap() {
            let zero = value.as_f64() == Some(0.0);
            assert!(
                !zero || ["short_ios", "drop_ios"].contains(&key.as_str()),
                "{key}"
            );
        }
        assert!(job[way]["total_ios"].is_null() && job[way]["clat_ns"]["mean"].is_null());
        assert!(job["job_runtime"].is_null() && job["sync"].is_null());
    }
    let mut files = sent.clone();
    files.phases.drain(..6);
    let error = write(Format::FioJson, &files).unwrap_err();
    let WriteError::NoPlace { tool, .. } = error;
    assert_eq!(tool, "fio");

    // With unified_rw_reporting it is unknown which were reads.
    let unified = only(&fixture("fio-3.33-unified.json"));
    assert!(write(Format::Sysbench, &unified).is_err());
    // Bytes without requests have no place in sysbench's text.
    let mut blocks = sent;
    for phase in &mut blocks.phases {
        phase.seconds = Some(1.0);
    }
    assert!(write(Format::Sysbench, &blocks).is_err());
    // Syncs that were requested, of a fio that does not count them.
    let mut log = only(&fixture("fio-3.33.json"));
    let fsyncs = |log: &Summary| {
        write(Format::Sysbench, log)
            .unwrap()
            .matches("fsyncs/s")
            .count()
    };
    let all = fsyncs(&log);
    log.phases[1]
        .flows
        .retain(|flow| flow.activity != Activity::Sync);
    assert_eq!(fsyncs(&log), all - 1);
}
