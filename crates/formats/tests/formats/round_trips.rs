//! Tests that a summary has the same figures after it was written and read again.

use formats::{Format, WriteError, read, write};
use proptest::prelude::*;
use record::{
    Activity, Bytes, CpuShares, Fairness, FlowSummary, Histogram, JobOptions, LatencySummary,
    Pattern, Percentile, PhaseSummary, Summary, WorkSummary,
};

fn latency(values: &[u64]) -> LatencySummary {
    let mut all = Histogram::new();
    values.iter().for_each(|value| all.record(*value));
    let percentiles = [50.0, 95.0, 99.0, 99.9].map(|percent| Percentile {
        percent,
        ns: all.quantile(percent / 100.0) as f64,
    });
    LatencySummary {
        min_ns: Some(all.min() as f64),
        mean_ns: Some(all.mean()),
        stddev_ns: Some(all.stddev()),
        max_ns: Some(all.max() as f64),
        percentiles: percentiles.to_vec(),
        histogram: Some(all),
    }
}

fn flow(activity: Activity, values: &[u64], seconds: f64) -> FlowSummary {
    let ops = values.len() as u64;
    let bytes = (activity != Activity::Sync).then_some(ops * 16384);
    FlowSummary {
        ops: Some(ops),
        bytes,
        ops_per_s: Some(ops as f64 / seconds),
        bytes_per_s: bytes.map(|bytes| bytes as f64 / seconds),
        latency: latency(values),
        ..FlowSummary::of(activity)
    }
}

fn summary(name: &str, flows: Vec<FlowSummary>, seconds: f64) -> Summary {
    let has = |activity| flows.iter().any(|flow| flow.activity == activity);
    Summary {
        tool: "disksmith 0.1.0".to_owned(),
        ran: Some("2026-11-22T02:30:41Z".parse().unwrap()),
        host: Some("db-1".to_owned()),
        target: Some("/dev/nvme1n1".to_owned()),
        target_kind: None,
        options: Vec::new(),
        phases: vec![PhaseSummary {
            name: name.to_owned(),
            work: WorkSummary {
                pattern: Some(Pattern::Random),
                read_fraction: Some(match (has(Activity::Read), has(Activity::Write)) {
                    (true, true) => 0.7,
                    (reads, _) => f64::from(u8::from(reads)),
                }),
                block: Some(Bytes::kib(16)),
                threads: Some(2),
                depth: Some(10),
                rate_per_s: Some(0.0),
                span: Some(Bytes::gib(4)),
                files: Some(1),
                sync_every: Some(0),
                direct: Some(true),
                engine: Some("io_uring".to_owned()),
                sync_at_end: Some(false),
                details: Some(Box::new(JobOptions {
                    files: 1,
                    even_rate: true,
                    full_sync: true,
                    ..JobOptions::default()
                })),
                options: Vec::new(),
            },
            seconds: Some(seconds),
            cpu: CpuShares {
                user: Some(0.25),
                system: Some(0.5),
                total: None,
            },
            flows,
            fairness: Some(Fairness {
                ops_mean: 50.0,
                ops_stddev: 1.5,
                seconds_mean: None,
                seconds_stddev: None,
            }),
            failure: None,
        }],
    }
}

fn again(format: Format, summary: &Summary) -> Summary {
    let written = write(format, summary).unwrap();
    let mut back = read(&written).unwrap();
    assert_eq!(back.len(), 1, "{written}");
    back.remove(0)
}

/// True if two figures differ by at most `within`.
fn close(a: Option<f64>, b: Option<f64>, within: f64) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= within,
        (a, b) => a == b,
    }
}

proptest! {
    #[test]
    fn fio_json_keeps_every_figure_that_fio_has(
        reads in prop::collection::vec(1_u64..10_000_000_000, 1..200),
        writes in prop::collection::vec(1_u64..10_000_000_000, 0..200),
        syncs in prop::collection::vec(1_u64..10_000_000_000, 0..50),
        millis in 100_u64..60_000,
    ) {
        let seconds = millis as f64 / 1e3;
        let flows: Vec<FlowSummary> = [
            (Activity::Read, &reads),
            (Activity::Write, &writes),
            (Activity::Sync, &syncs),
        ]
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(activity, values)| flow(activity, values, seconds))
        .collect();
        let sent = summary("page \"mixed\"\n", flows, seconds);
        let back = again(Format::FioJson, &sent);
        prop_assert_eq!(&back.tool, &sent.tool);
        prop_assert_eq!(back.ran, sent.ran);
        prop_assert_eq!(&back.target, &sent.target);
        let (sent, back) = (&sent.phases[0], &back.phases[0]);
        prop_assert_eq!(&back.name, &sent.name);
        let work = WorkSummary { options: Vec::new(), ..back.work.clone() };
        prop_assert_eq!(&work, &sent.work);
        prop_assert_eq!(back.seconds, sent.seconds);
        prop_assert_eq!(back.cpu, sent.cpu);
        prop_assert_eq!(back.flows.len(), sent.flows.len());
        for (sent, back) in sent.flows.iter().zip(&back.flows) {
            prop_assert_eq!(back.activity, sent.activity);
            prop_assert_eq!((back.ops, back.bytes), (sent.ops, sent.bytes));
            prop_assert!(close(back.ops_per_s, sent.ops_per_s, 1e-6));
            prop_assert!(close(back.bytes_per_s, sent.bytes_per_s, 0.5));
            let (sent, back) = (&sent.latency, &back.latency);
            prop_assert_eq!((back.min_ns, back.max_ns), (sent.min_ns, sent.max_ns));
            prop_assert!(close(back.mean_ns, sent.mean_ns, 1e-5));
            prop_assert!(close(back.stddev_ns, sent.stddev_ns, 1e-5));
            prop_assert_eq!(&back.percentiles, &sent.percentiles);
            let (sent, back) = (sent.histogram.as_ref().unwrap(), back.histogram.as_ref().unwrap());
            prop_assert_eq!(back.count(), sent.count());
            for q in [0.1, 0.5, 0.99] {
                let (sent, back) = (sent.quantile(q) as f64, back.quantile(q) as f64);
                prop_assert!((sent - back).abs() <= sent * 0.017 + 1.0, "{} {}", sent, back);
            }
        }
    }

    #[test]
    fn sysbench_keeps_what_it_prints(
        values in prop::collection::vec(1_000_u64..10_000_000_000, 1..200),
        reads in any::<bool>(),
    ) {
        let activity = if reads { Activity::Read } else { Activity::Write };
        let sent = summary("page", vec![flow(activity, &values, 2.0)], 2.0);
        let back = again(Format::Sysbench, &sent);
        prop_assert_eq!(&back.tool, &sent.tool);
        let (sent, back) = (&sent.phases[0], &back.phases[0]);
        prop_assert_eq!(&back.name, &sent.name);
        prop_assert_eq!(back.seconds, sent.seconds);
        prop_assert_eq!(back.work.pattern, sent.work.pattern);
        prop_assert_eq!(back.work.read_fraction, sent.work.read_fraction);
        prop_assert_eq!((back.work.block, back.work.span), (sent.work.block, sent.work.span));
        prop_assert_eq!(back.work.direct, Some(true));
        prop_assert_eq!((back.work.threads, back.work.depth), (Some(20), Some(1)));
        prop_assert_eq!(back.fairness, sent.fairness);
        prop_assert_eq!(back.flows.len(), 1);
        let (sent, back) = (&sent.flows[0], &back.flows[0]);
        prop_assert_eq!((back.activity, back.ops), (sent.activity, sent.ops));
        prop_assert!(close(back.ops_per_s, sent.ops_per_s, 0.006));
        prop_assert!(close(back.bytes_per_s, sent.bytes_per_s, 0.006 * f64::from(1 << 20)));
        let (sent, back) = (&sent.latency, &back.latency);
        for (sent, back) in [
            (sent.min_ns, back.min_ns),
            (sent.mean_ns, back.mean_ns),
            (sent.max_ns, back.max_ns),
            (sent.quantile(0.95), back.quantile(0.95)),
        ] {
            prop_assert!(close(back, sent, 0.006e6), "{:?} {:?}", sent, back);
        }
    }
}

#[test]
fn bonnie_keeps_what_it_prints() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/bonnie-1.97.csv");
    for sent in read(&std::fs::read_to_string(file).unwrap()).unwrap() {
        let back = again(Format::Bonnie, &sent);
        assert_eq!(back.tool, sent.tool);
        assert_eq!((back.host, back.ran), (sent.host, sent.ran));
        for (sent, back) in sent.phases.iter().zip(&back.phases) {
            assert_eq!(back, sent);
        }
        assert_eq!(back.phases.len(), sent.phases.len());
    }
}

/// The fields of a line in the order of format 1.98.
fn bonnie_fields(line: &str) -> Vec<&str> {
    let mut fields: Vec<&str> = line.trim_end().split(',').collect();
    if fields[0] != "1.98" {
        if fields.len() == 47 {
            // 1.96 leaves out a comma where the tests of data were skipped.
            fields.insert(6, "");
        }
        fields.splice(7..7, ["", ""]);
    }
    fields[0] = "1.98";
    fields
}

#[test]
fn every_field_of_a_line_of_bonnie_is_written_again() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    for name in [
        "bonnie-1.97.csv",
        "bonnie-2.00a.csv",
        "bonnie-published.csv",
    ] {
        let text = std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("1.9"))
            .collect();
        assert!(lines.len() > 1, "{name}");
        for line in lines {
            let summary = read(line).unwrap().remove(0);
            let written = write(Format::Bonnie, &summary).unwrap();
            assert_eq!(bonnie_fields(&written), bonnie_fields(line), "{name}");
            assert_eq!(again(Format::Bonnie, &summary), summary, "{name}");
        }
    }
}

#[test]
fn a_phase_that_bonnie_has_the_like_of_stands_in_its_field() {
    let values = [100_000; 4000];
    let mut sent = summary("scan", vec![flow(Activity::Read, &values, 2.0)], 2.0);
    sent.phases[0].work.pattern = Some(Pattern::Sequential);
    sent.phases
        .extend(summary("seek", vec![flow(Activity::Read, &values, 4.0)], 4.0).phases);
    let line = write(Format::Bonnie, &sent).unwrap();
    let fields: Vec<&str> = line.trim_end().split(',').collect();
    assert_eq!(fields.len(), 50, "{line}");
    assert_eq!(&fields[..3], ["1.98", "disksmith-0.1.0", "db-1"]);
    let back = again(Format::Bonnie, &sent);
    let names: Vec<_> = back.phases.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["block-read", "seeks"]);
    assert_eq!(back.phases[0].flows[0].bytes_per_s, Some(2000.0 * 16384.0));
    assert_eq!(back.phases[1].flows[0].ops_per_s, Some(1000.0));
    // The seeks, their threads and the start have fields, and the blocks have theirs.
    assert_eq!(
        (back.phases[1].flows[0].ops, back.phases[1].work.threads),
        (Some(4000), Some(2))
    );
    assert_eq!(
        (back.ran, back.phases[0].work.block),
        (sent.ran, Some(Bytes::kib(16)))
    );
    assert_eq!(back.phases[1].cpu.total, Some(0.75));
}

#[test]
fn runs_that_a_format_cannot_hold_are_refused_by_name() {
    let mut log = summary(
        "log-append",
        vec![flow(Activity::Write, &[5000; 9], 1.0)],
        1.0,
    );
    log.phases[0].work.pattern = Some(Pattern::Sequential);
    log.phases[0].work.sync_every = Some(1);
    let error = write(Format::Bonnie, &log).unwrap_err();
    let WriteError::NoPlace { tool, phases } = &error;
    assert_eq!((*tool, phases.as_str()), ("Bonnie++", "log-append"));
    log.phases[0].work.pattern = None;
    assert!(write(Format::Sysbench, &log).is_err());
    assert!(write(Format::FioJson, &log).is_ok());
}
