//! Tests of evidence from a watch, and from a run of writes.

use record::sample::SampleTime;
use study::watch::{EventCode, WatchEvent};

use super::*;

#[test]
fn findings_of_a_watch_are_evidence() {
    let tree = Tree::with(&[]);
    let mut facts = tree.facts();
    let at = SampleTime {
        wall: Some("2026-11-20T00:00:00Z".parse().unwrap()),
        elapsed: Nanos(0),
    };
    let event = |code: EventCode| WatchEvent {
        id: 1,
        code,
        severity: Severity::Warn,
        subject: Subject::Host,
        name: "nvme1n1".into(),
        began: at,
        ended: None,
        text: "It was seen.".into(),
        advice: String::new(),
        figures: Vec::new(),
    };
    for (code, name) in [
        (EventCode::Cold, "cold-volume"),
        (EventCode::Errors, "degraded-volume"),
        (EventCode::Stalled, "degraded-volume"),
        (EventCode::SlowMember, "degraded-volume"),
        (EventCode::BurstSpent, "burst-credit"),
        (EventCode::VolumeCap, "volume-cap"),
        (EventCode::InstanceCap, "instance-cap"),
    ] {
        facts.evidence = Evidence::of(Vec::new(), vec![event(code)]);
        let rows = judged(&facts);
        assert_eq!(
            found(&rows)
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>(),
            [name]
        );
        let row = rows.iter().find(|row| row.is_finding()).unwrap();
        assert_eq!(
            row.judgement.evidence.as_deref(),
            Some("It was seen. (watch, 2026-11-20)")
        );
    }
    // 100,000 pages of 4 KiB take 2.6 s at 150 MiB/s, and 390 s at 1 MiB/s.
    for (rate, expected) in [(150, None), (1, Some("dirty-memory"))] {
        let load = vec![phase("load", Pattern::Sequential, 0.0, 1024, 8, rate)];
        facts.evidence = Evidence::of(vec![run("nvme1n1", load)], Vec::new());
        let names: Vec<&str> = found(&judged(&facts))
            .iter()
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(names.first().copied(), expected);
    }
}
