//! Imported runs for tests.

use record::{
    Activity, Bytes, CpuShares, FlowSummary, ImportedRun, LatencySummary, Pattern, Percentile,
    PhaseSummary, RunId, Summary, WorkSummary,
};

fn imported(source: &str, summary: Summary) -> ImportedRun {
    let imported = "2026-11-22T03:00:00Z".parse().unwrap();
    ImportedRun {
        id: RunId::new(imported, 11),
        imported,
        disksmith: "0.1.0".to_owned(),
        source: source.to_owned(),
        summary,
    }
}

/// 400 random reads a second by fio, with percentiles.
pub(crate) fn fio() -> ImportedRun {
    let mut read = FlowSummary::of(Activity::Read);
    read.ops = Some(4000);
    read.bytes = Some(4000 * 16384);
    read.ops_per_s = Some(400.0);
    read.bytes_per_s = Some(400.0 * 16384.0);
    read.latency = LatencySummary {
        mean_ns: Some(2.5e6),
        max_ns: Some(99e6),
        percentiles: [(50.0, 2.4e6), (99.0, 6.1e6)]
            .map(|(percent, ns)| Percentile { percent, ns })
            .to_vec(),
        ..LatencySummary::default()
    };
    let phase = PhaseSummary {
        name: "page-read".to_owned(),
        work: WorkSummary {
            pattern: Some(Pattern::Random),
            read_fraction: Some(1.0),
            block: Some(Bytes::kib(16)),
            threads: Some(1),
            depth: Some(20),
            direct: Some(true),
            ..WorkSummary::default()
        },
        seconds: Some(10.0),
        flows: vec![read],
        ..PhaseSummary::default()
    };
    imported(
        "fio.json",
        Summary {
            tool: "fio 3.33".to_owned(),
            target: Some("/dev/nvme1n1".to_owned()),
            phases: vec![phase],
            ..Summary::default()
        },
    )
}

/// A block test and a file test of Bonnie++, with few figures.
pub(crate) fn bonnie() -> ImportedRun {
    let mut write = FlowSummary::of(Activity::Write);
    write.bytes_per_s = Some(61022.0 * 1024.0);
    write.latency.max_ns = Some(9120e6);
    let mut stat = FlowSummary::of(Activity::Stat);
    stat.too_fast = true;
    let phase = |name: &str, flow: FlowSummary, total| PhaseSummary {
        name: name.to_owned(),
        cpu: CpuShares {
            total,
            ..CpuShares::default()
        },
        flows: vec![flow],
        ..PhaseSummary::default()
    };
    imported(
        "bonnie.csv",
        Summary {
            tool: "bonnie++ 1.97".to_owned(),
            host: Some("db-1".to_owned()),
            phases: vec![
                phase("block-write", write, Some(0.09)),
                phase("seq-stat", stat, None),
            ],
            ..Summary::default()
        },
    )
}
