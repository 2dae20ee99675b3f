//! Rules of jobs: data that is verified, shares, ends and settings.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::run;
use crate::support::{Place, ProgramOutput, Running};

const CONSENT: [&str; 3] = ["--json", "--destroy", "table.ibd=unknown"];

fn with_file(mib: usize) -> Place {
    let place = Place::new();
    fs::write(place.path("table.ibd"), vec![7; mib << 20]).unwrap();
    place
}

/// Runs a job file on the file, which it may write.
fn on_file(place: &Place, job: &str) -> ProgramOutput {
    run(place, "table.ibd", job, &CONSENT)
}

fn verified(document: &Value, key: &str) -> u64 {
    let place = format!("/phases/0/outcome/verified/{key}");
    document.pointer(&place).unwrap().as_u64().unwrap()
}

fn ops(document: &Value, phase: usize) -> f64 {
    let ways = ["read", "write"].map(|way| {
        let place = format!("/phases/{phase}/{way}/ops");
        document.pointer(&place).and_then(Value::as_f64)
    });
    ways.into_iter().flatten().sum()
}

#[test]
fn what_was_written_is_read_back_and_damage_is_found_by_its_place() {
    let place = with_file(2);
    for job in [
        "[w]\nrw=randwrite\nbs=4k\nverify=crc32c\nioengine=libaio\niodepth=8\ndirect=1\n",
        "[w]\nrw=write\nbs=16k\nverify=md5\nverify_interval=4k\nioengine=psync\n",
        "[w]\nrw=randwrite\nbs=4k\nnorandommap\nverify=crc32c\nioengine=io_uring\niodepth=16\nloops=2\n",
        "[w]\nrw=write\nbs=4k\nverify=crc32c\nverify_backlog=7\nioengine=libaio\niodepth=4\n",
        "[w]\nrw=write\nbs=64k\nverify=pattern\nverify_pattern=0xdeadbeef\n",
    ] {
        let document = on_file(&place, job).ends_with(0).json();
        assert_eq!(verified(&document, "failed"), 0, "{job}");
        assert!(verified(&document, "requests") >= 32, "{job}: {document:#}");
    }
    // Written by one run, damaged, and read by another.
    let write = "[w]\nrw=write\nbs=4k\nverify=crc32c\ndo_verify=0\nend_fsync=1\n";
    let document = on_file(&place, write).ends_with(0).json();
    assert_eq!(verified(&document, "requests"), 0);
    let read = "[r]\nrw=read\nbs=4k\nverify=crc32c\n";
    let document = on_file(&place, read).ends_with(0).json();
    assert_eq!(verified(&document, "requests"), 512);
    // Only while nothing has it open for writing it is overwritten.
    let mut content = fs::read(place.path("table.ibd")).unwrap();
    content[(40 << 12) + 1234] ^= 1;
    // A block that was written to the wrong place is sound by itself.
    content.copy_within(80 << 12..81 << 12, 90 << 12);
    fs::write(place.path("table.ibd"), content).unwrap();
    let said = on_file(&place, read).ends_with(1);
    let document = said.json();
    assert_eq!(
        (document["verdict"].as_str(), verified(&document, "failed")),
        (Some("invalid"), 2)
    );
    let finding = &document["findings"][0];
    assert_eq!(
        (finding["code"].as_str(), finding["severity"].as_str()),
        (Some("corrupt"), Some("invalid"))
    );
    let text = finding["text"].as_str().unwrap();
    assert!(
        text.contains("2 of 512 blocks")
            && text.contains("at byte 163840: its checksum does not match"),
        "{text}"
    );
    // The first failure may end it.
    let fatal = format!("{read}verify_fatal=1\n");
    let document = on_file(&place, &fatal).ends_with(1).json();
    assert_eq!(document["phases"][0]["stopped"], "rule");
    assert!(ops(&document, 0) < 512.0);
}

#[test]
fn data_compresses_and_repeats_as_it_is_asked_to() {
    let place = with_file(2);
    let blocks = |job: &str| -> Vec<Vec<u8>> {
        on_file(&place, &format!("[w]\nrw=write\nbs=4k\nend_fsync=1\n{job}")).ends_with(0);
        let content = fs::read(place.path("table.ibd")).unwrap();
        content.chunks(4096).map(<[u8]>::to_vec).collect()
    };
    let zeros = |block: &[u8]| block.iter().filter(|byte| **byte == 0).count() as f64 / 4096.0;
    for block in blocks("buffer_compress_percentage=75\nbuffer_compress_chunk=4k\n") {
        assert!((zeros(&block) - 0.75).abs() < 0.01);
    }
    assert!(
        blocks("zero_buffers\n")
            .iter()
            .all(|block| zeros(block) == 1.0)
    );
    let different = |job: &str| blocks(job).into_iter().collect::<BTreeSet<_>>().len();
    assert_eq!(different("refill_buffers\n"), 512);
    let half = different("dedupe_percentage=50\n");
    assert!(half.abs_diff(256) < 60, "{half}");
}

#[test]
fn jobs_share_by_weight_begin_later_and_end_each_other() {
    let place = with_file(8);
    let job = "[global]\nbs=4k\nioengine=libaio\niodepth=4\nruntime=2\ntime_based\n\
        [one]\nrw=randread\nflow=1\n[three]\nrw=randread\nflow=3\n";
    let document = on_file(&place, job).ends_with(0).json();
    let ratio = ops(&document, 1) / ops(&document, 0);
    assert!((ratio - 3.0).abs() < 0.1, "{ratio}");

    let job = "[global]\nrw=randread\nexitall\nruntime=600\ntime_based\nrate_iops=100\n\
        [short]\ntime_based=0\nruntime=0\nnumber_ios=150\n[long]\n\
        [late]\nstartdelay=1\n[other]\nnew_group\nnumber_ios=400\ntime_based=0\nruntime=0\n";
    let document = on_file(&place, job).ends_with(0).json();
    let stopped: Vec<&str> = (0..4)
        .map(|at| document["phases"][at]["stopped"].as_str().unwrap())
        .collect();
    assert_eq!(stopped, ["ops", "rule", "rule", "ops"]);
    let began = |at: usize| document["phases"][at]["began_s"].as_f64().unwrap();
    assert!(began(2) - began(1) > 0.99, "{document:#}");

    let job = "[global]\nrw=read\nbs=64k\n[first]\nexitall\nexit_what=all\n[never]\nstonewall\n";
    let document = on_file(&place, job).ends_with(0).json();
    assert_eq!(document["phases"].as_array().unwrap().len(), 1);
    let notes = document["notes"].to_string();
    assert!(
        notes.contains("Not run, because a job with exit_what=all ended: never."),
        "{notes}"
    );
}

#[test]
fn a_steady_state_a_depth_and_a_missed_rate_end_a_job() {
    let place = with_file(8);
    let end = |lines: &str, status: i32| {
        let job = format!("[j]\nrw=randread\nioengine=libaio\nruntime=600\ntime_based\n{lines}\n");
        let document = on_file(&place, &job).ends_with(status).json();
        assert_eq!(document["phases"][0]["stopped"], "rule", "{lines}");
        document
    };
    let document = end(
        "rate_iops=200\nnumjobs=2\ngroup_reporting\nss=iops:60%\nss_dur=3\nss_ramp=1",
        0,
    );
    let after = document["phases"][0]["outcome"]["steady"]["after_s"]
        .as_f64()
        .unwrap();
    assert!(after > 3.9, "{after}");
    assert!(
        document["notes"]
            .to_string()
            .contains("the IOPS was steady after")
    );
    let document = end("iodepth=8\nlatency_target=60s\nlatency_window=100ms", 0);
    assert_eq!(document["phases"][0]["outcome"]["depth"], 8);
    let document = end(
        "iodepth=8\nlatency_target=1us\nlatency_window=100ms\nlatency_percentile=99.9",
        0,
    );
    assert_eq!(document["phases"][0]["outcome"]["depth"], 0);
    // A single number is of reads and of writes, of which this job has none.
    let lines = "rate_iops=200\nrate_iops_min=1,1\nruntime=3\n";
    for lines in [
        lines,
        "rate_iops=200\nrate_iops_min=1\nrate_min=1\nruntime=3\n",
    ] {
        let job = format!("[j]\nrw=randread\ntime_based\n{lines}");
        on_file(&place, &job).ends_with(0);
    }
    let document = end("rate_iops=20\nrate_iops_min=50000", 1);
    let findings = document["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding["code"] == "floor-missed"),
        "{document:#}"
    );
}

/// To copy a MiB takes longer than a microsecond everywhere.
#[test]
fn a_request_that_takes_longer_than_max_latency_ends_the_job_or_is_counted() {
    let place = with_file(8);
    let job = "[j]\nrw=read\nbs=1m\nmax_latency=1us\n";
    let said = run(&place, "table.ibd", job, &[]).ends_with(3);
    assert!(
        said.err
            .contains("a read at byte 0 took longer than 1.00 us, the max_latency of its job"),
        "{said:#?}"
    );
    let ignored = format!("{job}ignore_error=110\n");
    let document = run(&place, "table.ibd", &ignored, &["--json"])
        .ends_with(1)
        .json();
    let phase = &document["phases"][0];
    assert_eq!(phase["read"]["ops"], 8);
    assert_eq!(phase["outcome"]["failed"]["reads"], 8);
    let late = format!("{job}max_latency=,1us\n");
    run(&place, "table.ibd", &late, &[]).ends_with(0);
}

/// A job's threads have its processors and priority, and its file is open as it says.
#[test]
fn threads_and_files_are_set_as_the_job_says() {
    let place = with_file(8);
    let allowed = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = allowed
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"))
        .unwrap();
    let first = allowed
        .split_whitespace()
        .nth(1)
        .unwrap()
        .split([',', '-'])
        .next()
        .unwrap();
    let job = format!(
        "[j]\nrw=write\nsync=1\nruntime=600\ntime_based\nnice=5\nprio=6\ncpus_allowed={first}\n"
    );
    fs::write(place.path("job.fio"), job).unwrap();
    let arguments = [
        "bench",
        "table.ibd",
        "--fio",
        "job.fio",
        "--destroy",
        "table.ibd=unknown",
    ];
    let mut run = Running::start(&mut place.command(&arguments));
    let proc = format!("/proc/{}", run.id());
    let is_set = || {
        let threads = fs::read_dir(format!("{proc}/task")).unwrap().flatten();
        let bound = threads.into_iter().any(|thread| {
            let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            let nice = stat
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.split(' ').nth(16));
            nice == Some("5") && status.contains(&format!("Cpus_allowed_list:\t{first}\n"))
        });
        let files = fs::read_dir(format!("{proc}/fdinfo")).unwrap().flatten();
        let synced = files.into_iter().any(|file| {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
            // O_SYNC.
            flags.is_some_and(|flags| flags & 0o4_010_000 == 0o4_010_000)
        });
        bound && synced
    };
    run.wait_until("the job's threads and file are not as it says", is_set);
    run.signal(rustix::process::Signal::INT);
    run.end().ends_with(3);
}
