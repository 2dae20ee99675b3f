//! Tests of the checks of backups.

use super::*;
use crate::facts::backup::{Backup, Safety};

#[test]
fn backups_are_judged_by_age_place_and_end() {
    use CheckResult::{Consider, Fix, Ok, Unknown};
    let now: Timestamp = "2026-11-24T12:00:00Z".parse().unwrap();
    let backup = |hours: i64, with_data: bool| Backup {
        kind: "dump",
        ended: now - jiff::SignedDuration::from_hours(hours),
        place: "/b/x.sql".into(),
        is_whole: true,
        is_with_data: Some(with_data),
    };
    let day = Some(std::time::Duration::from_secs(86_400));
    let known = |backups: Vec<Backup>| Safety {
        rpo: day,
        restored_on: Some("2026-11-01".parse().unwrap()),
        now,
        backups,
        searched: vec!["/b".into()],
        failed: Vec::new(),
    };
    let cut_off = Backup {
        is_whole: false,
        ..backup(1, false)
    };
    for (safety, expected) in [
        (
            known(vec![backup(2, false)]),
            vec![
                ("backup-age", Ok),
                ("backup-device", Ok),
                ("restore-tried", Ok),
            ],
        ),
        (
            known(vec![backup(48, false)]),
            vec![
                ("backup-age", Fix),
                ("backup-device", Ok),
                ("restore-tried", Ok),
            ],
        ),
        (
            known(vec![backup(2, true)]),
            vec![
                ("backup-age", Ok),
                ("backup-device", Fix),
                ("restore-tried", Ok),
            ],
        ),
        (
            known(vec![cut_off]),
            vec![
                ("backup-age", Fix),
                ("backup-incomplete", Fix),
                ("restore-tried", Ok),
            ],
        ),
        (
            Safety {
                rpo: None,
                restored_on: None,
                ..known(vec![backup(2, false)])
            },
            vec![
                ("backup-age", Unknown),
                ("backup-device", Ok),
                ("restore-tried", Unknown),
            ],
        ),
        (
            Safety {
                restored_on: Some("2026-01-01".parse().unwrap()),
                ..known(vec![backup(2, false)])
            },
            vec![
                ("backup-age", Ok),
                ("backup-device", Ok),
                ("restore-tried", Consider),
            ],
        ),
        (
            Safety {
                searched: Vec::new(),
                ..known(Vec::new())
            },
            vec![("backup-age", Unknown), ("restore-tried", Ok)],
        ),
    ] {
        let mut facts = Tree::with(&[]).facts();
        facts.safety = Some(safety);
        let mut rows: Vec<(&str, CheckResult)> = judged(&facts)
            .iter()
            .filter(|row| row.check.area == Area::Safety)
            .map(|row| (row.check.name, row.result()))
            .collect();
        rows.sort();
        assert_eq!(rows, expected);
    }
}
