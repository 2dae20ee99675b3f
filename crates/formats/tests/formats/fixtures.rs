//! Tests that read outputs of the tools.

use crate::support::fixture;
use formats::{ReadError, read};
use record::{Activity, Bytes, FlowSummary, Pattern, PhaseSummary, Summary};

fn only(name: &str) -> Summary {
    crate::support::only(&fixture(name))
}

fn flow(phase: &PhaseSummary, activity: Activity) -> &FlowSummary {
    let mut flows = phase.flows.iter();
    flows.find(|flow| flow.activity == activity).unwrap()
}

fn names(summary: &Summary) -> Vec<&str> {
    summary.phases.iter().map(|p| p.name.as_str()).collect()
}

#[test]
fn fio_3_is_read_as_it_was_printed() {
    let summary = only("fio-3.33.json");
    assert_eq!(summary.tool, "fio 3.33");
    assert_eq!(summary.target.as_deref(), Some("fio.dat"));
    assert_eq!(summary.ran.unwrap().as_second(), 1_795_314_641);
    assert_eq!(names(&summary), ["page-read", "log"]);

    let page = &summary.phases[0];
    assert_eq!(page.work.pattern, Some(Pattern::Random));
    assert_eq!(page.work.read_fraction, Some(1.0));
    assert_eq!(page.work.block, Some(Bytes::kib(16)));
    assert_eq!((page.work.threads, page.work.depth), (Some(1), Some(1)));
    assert_eq!(page.work.direct, Some(true));
    assert_eq!(page.seconds, Some(1.001));
    assert_eq!(page.cpu.system, Some(0.17));
    assert_eq!(page.failure, None);
    assert_eq!(page.flows.len(), 1, "what did nothing is no flow");
    let read = flow(page, Activity::Read);
    assert_eq!((read.ops, read.bytes), (Some(10153), Some(166_346_752)));
    assert_eq!(read.ops_per_s, Some(10142.857143));
    assert_eq!(read.bytes_per_s, Some(166_180_571.0));
    assert_eq!(read.latency.min_ns, Some(40379.0));
    assert_eq!(read.latency.quantile(0.99), Some(1_662_976.0));
    assert_eq!(read.latency.quantile(0.999), Some(5_865_472.0));
    assert_eq!(read.latency.quantile(0.9), Some(65280.0));
    assert_eq!(read.latency.quantile(0.42), None, "json has no buckets");
    assert_eq!(read.ops_spread.unwrap().samples, 1);

    let log = &summary.phases[1];
    assert_eq!(log.work.threads, Some(2), "group_reporting joins them");
    assert_eq!(log.work.read_fraction, Some(0.7));
    assert_eq!(log.work.sync_every, Some(4));
    assert_eq!(
        flow(log, Activity::Sync).ops,
        Some(1148),
        "the total is zero, N is not"
    );
    assert!(flow(log, Activity::Sync).latency.quantile(0.99).is_some());
    assert!(flow(log, Activity::Write).latency.mean_ns.is_some());
}

#[test]
fn json_plus_has_all_latencies() {
    let summary = only("fio-3.33-plus.json");
    for phase in &summary.phases {
        for flow in &phase.flows {
            let all = flow.latency.histogram.as_ref().unwrap();
            assert_eq!(Some(all.count()), flow.ops, "{}", phase.name);
            for given in &flow.latency.percentiles {
                let ours = all.quantile(given.percent / 100.0) as f64;
                let apart = (ours - given.ns).abs() / given.ns;
                assert!(apart < 0.02, "{}: {given:?} {ours}", phase.name);
            }
        }
    }
}

#[test]
fn messages_before_and_results_for_people_behind_are_passed_over() {
    let summary = only("fio-3.33-normal-json.txt");
    assert_eq!(names(&summary), ["page-read", "log"]);
    let failed = only("fio-3.33-failed.txt");
    let failure = failed.phases[0].failure.as_deref().unwrap();
    assert!(failure.contains("error 28 (No space left"), "{failure}");
}

#[test]
fn a_client_names_the_hosts_of_its_servers() {
    let summary = only("fio-3.33-client.json");
    assert_eq!(names(&summary), ["srv@db-1", "srv@db-1", "All clients"]);
    assert_eq!(summary.host.as_deref(), Some("db-1"));
    assert_eq!(summary.phases[0].work.pattern, Some(Pattern::Random));
}

#[test]
fn other_reports_of_fio_3_are_read() {
    let unified = only("fio-3.33-unified.json");
    let flows = &unified.phases[0].flows;
    assert_eq!(flows.len(), 1);
    assert_eq!(flow(&unified.phases[0], Activity::All).ops, Some(1024));

    let total = only("fio-3.33-lat-percentiles.json");
    assert_eq!(names(&total), ["a", "a"]);
    let read = flow(&total.phases[0], Activity::Read);
    assert!(read.latency.quantile(0.99).is_some());
    assert_eq!(total.phases[0].work.threads, Some(1), "each has an entry");
    assert_eq!(total.phases[0].work.depth, Some(4));
}

#[test]
fn fio_2_counts_in_microseconds_and_kib() {
    let summary = only("fio-2.21.json");
    assert_eq!(summary.tool, "fio 2.21");
    let page = &summary.phases[0];
    assert_eq!(page.work.depth, Some(20));
    assert_eq!(page.work.engine.as_deref(), Some("libaio"));
    let read = flow(page, Activity::Read);
    assert_eq!(read.bytes, Some(4000 * (16 << 10)));
    assert_eq!(read.ops_per_s, Some(400.0));
    assert_eq!(read.bytes_per_s, Some(400.0 * 16384.0));
    assert_eq!(read.latency.max_ns, Some(99e6));
    assert_eq!(read.latency.quantile(0.5), Some(50_432e3));
    let percents = read.latency.percentiles.iter().map(|p| p.percent);
    assert_eq!(percents.collect::<Vec<_>>(), [1.0, 50.0, 99.0, 99.99]);
    // Bucket 650 is that of 38,144 µs to 38,655 µs.
    let all = read.latency.histogram.as_ref().unwrap();
    assert_eq!(all.count(), 4000);
    assert!(all.quantile(0.1).abs_diff(38_144_000 + 256_000) < 400_000);
    // Were it bytes without the KiB next to them, the bandwidth would tell.
    let text = fixture("fio-2.21.json").replace(": 64000,", ": 65536000,");
    let bytes = formats::read(&text).unwrap()[0].phases[0].flows[0].bytes;
    assert_eq!(bytes, read.bytes);
    assert_eq!(read.ops_spread, None, "fio 2 did not sample the IOPS");
}

#[test]
fn a_published_document_of_fio_2_is_read() {
    let summary = only("fio-2.1.11.json");
    assert_eq!(names(&summary), ["random-read", "random-read"]);
    let phase = &summary.phases[0];
    assert_eq!(
        phase.work,
        record::WorkSummary::default(),
        "it gives no options"
    );
    assert_eq!(phase.cpu.system, Some(0.2382));
    let read = flow(phase, Activity::Read);
    assert_eq!((read.ops, read.bytes), (None, Some(44920 << 10)));
    assert_eq!(
        (read.ops_per_s, read.bytes_per_s),
        (Some(5.0), Some(21.0 * 1024.0))
    );
    assert_eq!(read.latency.max_ns, Some(6329e3));
    assert_eq!(read.latency.quantile(0.99), Some(506e3));
    assert_eq!(read.latency.percentiles.len(), 17, "none for 0.00 %");
    assert_eq!(phase.flows.len(), 1);
}

#[test]
fn every_sysbench_is_read() {
    let old = only("sysbench-0.4.8.txt");
    assert_eq!(
        (old.tool.as_str(), names(&old)),
        ("sysbench 0.4.8", vec!["rndrd"])
    );
    let phase = &old.phases[0];
    assert_eq!(phase.work.direct, Some(true));
    assert_eq!(phase.work.span, Some(Bytes::mib(128)));
    assert_eq!(phase.work.sync_every, None);
    let read = flow(phase, Activity::Read);
    assert_eq!((read.ops, read.ops_per_s), (Some(10_000), Some(400.0)));
    assert_eq!(read.bytes_per_s, Some(6.25 * f64::from(1 << 20)));
    assert!((read.latency.mean_ns.unwrap() - 2.5e6).abs() < 1.0);
    assert!((read.latency.quantile(0.95).unwrap() - 6.4e6).abs() < 1.0);
    assert_eq!(read.latency.quantile(0.99), None);
    assert_eq!(phase.flows.len(), 1);

    let twelve = only("sysbench-0.4.12.txt");
    let phase = &twelve.phases[0];
    let ops = |activity| flow(phase, activity).ops;
    let counts = [Activity::Read, Activity::Write, Activity::Sync].map(ops);
    assert_eq!(counts, [Some(34204), Some(22802), Some(72960)]);
    assert_eq!(phase.work.direct, Some(true));
    assert_eq!(
        (phase.work.span, phase.seconds),
        (Some(Bytes::gib(4)), Some(300.0058))
    );
    let all = flow(phase, Activity::All);
    assert_eq!((all.ops, all.ops_per_s), (Some(57006), Some(190.02)));
    assert!((all.latency.quantile(0.95).unwrap() - 8.15e6).abs() < 1.0);

    let half = only("sysbench-0.5.txt");
    let all = flow(&half.phases[0], Activity::All);
    assert_eq!(all.ops_per_s, Some(1916.43));
    assert!((all.latency.max_ns.unwrap() - 140.8e6).abs() < 1.0);
    assert_eq!(flow(&half.phases[0], Activity::Write).ops, Some(2004));
    assert_eq!(half.phases[0].fairness.unwrap().ops_stddev, 26.3);

    // A development version of 1.0 had the rates of one format and the latencies of the other.
    let early = only("sysbench-1.0-2016.txt");
    assert_eq!(early.tool, "sysbench 1.0");
    assert_eq!(
        flow(&early.phases[0], Activity::Read).ops_per_s,
        Some(8259.22)
    );
    let all = flow(&early.phases[0], Activity::All);
    assert!((all.latency.max_ns.unwrap() - 1.98e6).abs() < 1.0);
    assert_eq!(early.phases[0].seconds, Some(0.7268));

    let new = only("sysbench-1.1.txt");
    let phase = &new.phases[0];
    assert_eq!(new.tool, "sysbench 1.1.0-df89d34");
    let written = flow(phase, Activity::Write);
    assert_eq!(written.ops_per_s, Some(31961.19));
    assert_eq!(written.bytes_per_s, Some(499.39 * f64::from(1 << 20)));
    assert_eq!(flow(phase, Activity::Sync).ops_per_s, Some(327_500.24));
    let all = flow(phase, Activity::All);
    assert!((all.latency.max_ns.unwrap() - 920.89e6).abs() < 1.0);
    assert_eq!(phase.seconds, None, "it says neither a time nor a number");
    assert_eq!((written.ops, phase.work.threads), (None, Some(128)));
    assert_eq!(
        (phase.name.as_str(), phase.work.direct),
        ("seqwr", Some(false))
    );
    let text = fixture("sysbench-1.1.txt");
    let cut = &text[..text.find("Latency").unwrap()];
    let error = formats::read(cut).unwrap_err().to_string();
    assert!(error.contains("before its latencies"), "{error}");
}

#[test]
fn the_cells_of_a_grid_are_the_phases_of_one_run() {
    let grid = only("sysbench-0.4.12-grid.txt");
    assert_eq!(names(&grid), ["rndrw-1t", "rndrw-64t"]);
    let [one, many] = &grid.phases[..] else {
        panic!()
    };
    assert_eq!(
        (one.work.direct, many.work.direct),
        (Some(true), Some(false))
    );
    assert_eq!(flow(one, Activity::All).ops_per_s, Some(200.0));
    assert_eq!(flow(one, Activity::Read).ops_per_s, Some(120.0));
    assert_eq!(flow(many, Activity::All).ops_per_s, Some(500.1));
    assert_eq!(flow(many, Activity::All).ops, Some(10002));
    assert_eq!(many.fairness.unwrap().ops_stddev, 12.1);
    assert_eq!(many.fairness.unwrap().seconds_mean, Some(19.8469));

    let grid = only("sysbench-1.0.20-grid.txt");
    assert_eq!(grid.tool, "sysbench 1.0.20");
    assert_eq!(names(&grid), ["rndrd", "rndwr", "rndrw"]);
    let read = flow(&grid.phases[0], Activity::Read);
    assert_eq!((read.ops, read.ops_per_s), (Some(15327), Some(15258.01)));
    assert!((read.latency.max_ns.unwrap() - 53.01e6).abs() < 1.0);
    let writes = &grid.phases[1];
    assert_eq!(flow(writes, Activity::Write).ops_per_s, Some(8985.87));
    assert_eq!(flow(writes, Activity::Sync).ops_per_s, Some(181.86));
    assert!(flow(writes, Activity::Write).latency.is_unknown());
    let all = flow(writes, Activity::All);
    assert_eq!(all.ops, None, "syncs are among the events of 1.0");
    assert!((all.latency.quantile(0.95).unwrap() - 0.15e6).abs() < 1.0);
}

#[test]
fn a_line_of_bonnie_is_a_run() {
    let runs = read(&fixture("bonnie-1.97.csv")).unwrap();
    let [full, half] = &runs[..] else {
        panic!("{runs:?}")
    };
    assert_eq!(
        (full.tool.as_str(), full.host.as_deref()),
        ("bonnie++ 1.97", Some("db-1"))
    );
    assert_eq!(full.ran, None, "a seed is no date");
    assert_eq!(full.phases.len(), 12);
    let rate = |name: &str| {
        let phase = full.phases.iter().find(|phase| phase.name == name).unwrap();
        (&phase.flows[0], phase.cpu.total)
    };
    let (block, cpu) = rate("block-write");
    assert_eq!(
        (block.bytes_per_s, cpu),
        (Some(61022.0 * 1024.0), Some(0.09))
    );
    assert_eq!(block.latency.max_ns, Some(9120e6));
    assert_eq!(rate("rewrite").0.latency.max_ns, Some(101e9));
    assert_eq!(rate("char-write").0.latency.max_ns, Some(16_012e3));
    let (seeks, _) = rate("seeks");
    assert_eq!((seeks.ops_per_s, seeks.bytes_per_s), (Some(312.4), None));
    let (stats, cpu) = rate("seq-stat");
    assert_eq!((stats.ops_per_s, stats.too_fast, cpu), (None, true, None));
    assert_eq!(rate("random-delete").0.ops_per_s, Some(19804.0));

    assert_eq!(
        names(half),
        ["block-write", "block-read"],
        "the rest was skipped"
    );
    assert_eq!(half.phases[0].work.block, Some(Bytes::kib(64)));
    assert_eq!(half.phases[0].work.threads, Some(2));
    assert_eq!(half.phases[0].work.span, Some(Bytes::gib(16)));
}

#[test]
fn published_lines_of_bonnie_are_read() {
    let runs = read(&fixture("bonnie-published.csv")).unwrap();
    let [all, files] = &runs[..] else {
        panic!("{runs:?}")
    };
    assert_eq!(all.tool, "bonnie++ 1.97");
    assert_eq!(all.phases.len(), 12);
    assert_eq!(all.phases[1].flows[0].bytes_per_s, Some(193_281.0 * 1024.0));
    assert_eq!(all.phases[1].flows[0].latency.max_ns, Some(441e6));
    assert!(all.phases[5].flows[0].too_fast && all.phases[6].flows[0].too_fast);
    assert_eq!(files.tool, "bonnie++ 1.96");
    let rates: Vec<_> = files.phases.iter().map(|p| p.flows[0].ops_per_s).collect();
    let due = [1702.0, 2025.0, 1332.0, 1873.0, 2047.0, 1266.0];
    assert_eq!(rates, due.map(Some));
    assert_eq!(files.phases[0].cpu.total, Some(0.14));
    assert_eq!(files.phases[5].flows[0].latency.max_ns, Some(9627e6));
}

#[test]
fn format_1_98_has_two_fields_more() {
    let runs = read(&fixture("bonnie-2.00a.csv")).unwrap();
    assert_eq!(runs.len(), 4);
    assert_eq!(runs[0].tool, "bonnie++ 2.00a");
    let char_write = &runs[0].phases[0];
    assert_eq!(char_write.flows[0].bytes_per_s, Some(368.0 * 1024.0));
    assert!(runs[0].phases[1].flows[0].too_fast);
    assert_eq!(runs[1].phases[6].flows[0].ops_per_s, Some(2878.0));
    assert_eq!(runs[2].phases.len(), 6, "no data, only files");
    assert_eq!(runs[3].phases.len(), 4, "neither characters nor files");
}

#[test]
fn several_documents_of_several_tools_stand_in_one_text() {
    let text = [
        "fio-3.33.json",
        "bonnie-1.97.csv",
        "sysbench-1.0.20-grid.txt",
        "fio-2.21.json",
    ]
    .map(fixture)
    .join("\n--\n");
    let tools: Vec<String> = read(&text).unwrap().into_iter().map(|s| s.tool).collect();
    assert_eq!(
        tools,
        [
            "fio 3.33",
            "bonnie++ 1.97",
            "bonnie++ 1.96",
            "sysbench 1.0.20",
            "fio 2.21"
        ]
    );
    // Even without a line end between them.
    let json = fixture("fio-3.33.json");
    assert_eq!(
        read(&format!("{}{}", json.trim(), json.trim()))
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn damage_is_named_by_its_line() {
    let fails = |text: &str, words: &[&str]| {
        let error = read(text).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{error}");
        }
    };
    let json = fixture("fio-3.33.json");
    fails(&json[..json.len() / 2], &["cut short", "begins at line 1"]);
    fails(&format!("\n\n{}", &json[..5000]), &["begins at line 3"]);
    fails(
        &json.replace("\"total_ios\" : 10153", "\"total_ios\" : -1"),
        &["jobs[0].read.total_ios is not a count"],
    );
    fails(
        &json.replace("\"iops\" : 10142", "\"iops\" : -10142"),
        &["jobs[0].read.iops is a negative number"],
    );
    fails(
        &json.replace("\"jobname\"", "\"name\""),
        &["jobs[0].jobname is missing"],
    );
    let csv = fixture("bonnie-1.97.csv");
    fails(
        &csv.replace("521,99,", ""),
        &["line 3", "has 48 fields, and this one 46"],
    );
    fails(&csv.replace("9120ms", "9120m"), &["line 3", "'9120m'"]);
    let text = fixture("sysbench-0.4.8.txt");
    fails(
        &text.replace("400.00 Req", "4oo.00 Req"),
        &["line 20", "'4oo.00'"],
    );
    fails(
        &text.replace("total time:", "time:"),
        &["line 1", "before its total time"],
    );
    for nothing in [
        "",
        "{}",
        "{\"jobs\": []}",
        "hello\n",
        "sysbench 1.0.20 (using x)\n",
        "1,2,3",
    ] {
        assert_eq!(read(nothing), Err(ReadError::Nothing), "{nothing}");
    }
}
