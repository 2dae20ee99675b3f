//! Properties of every record and every sweep.

use proptest::prelude::*;
use record::{Bytes, RunId};

use super::testing::{Truth, failed, priced, probed, sweep};
use super::tests::{by_members, growing, run};
use super::{decide, next_layouts};
use crate::decision::LayoutOutcome;
use crate::layout::Layout;
use crate::record::{Cell, CellOutcome, RaceBlock, SweepRecord, Value};
use domain::filesystem::Fs;
use domain::raid::Level;

/// An arbitrary record, which may be inconsistent.
fn any_record() -> impl Strategy<Value = SweepRecord> {
    let level = prop::sample::select(vec![
        None,
        Some(Level::Zero),
        Some(Level::One),
        Some(Level::Five),
        Some(Level::Ten),
    ]);
    let chunk = prop::option::of(prop::sample::select(vec![Bytes::kib(64), Bytes::kib(256)]));
    let fs = prop::sample::select(vec![Fs::Xfs, Fs::Ext4]);
    let layout = (level, 0_usize..10, chunk, fs).prop_map(|(level, members, chunk, fs)| Layout {
        level,
        members,
        copies: None,
        chunk,
        fs,
        scheduler: None,
    });
    let value = prop_oneof![
        8 => 50.0..200.0_f64,
        1 => prop::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300]),
    ];
    let cell = (0_usize..6, 0_usize..7, any::<bool>(), 0_u8..6, value);
    let objective = prop::sample::select(vec![
        "page-mixed.iops",
        "page-mixed.p99",
        "page-mixed.iops/$",
        "cost",
    ]);
    (
        prop::collection::vec(layout, 0..6),
        prop::collection::vec(cell, 0..40),
        objective,
        (
            0_usize..6,
            any::<bool>(),
            any::<bool>(),
            any::<bool>(),
            0_usize..9,
        ),
    )
        .prop_map(
            |(layouts, cells, objective, (blocks, full, checks, prices, devices))| {
                let mut record = sweep(objective, layouts);
                if prices {
                    record = probed(priced(record), &[100.0, 50.0, 100.0], 0.5);
                }
                if checks {
                    record.settings.requires = vec!["page-mixed.p99<120ns".parse().unwrap()];
                }
                record.settings.blocks = blocks;
                record.settings.full = full;
                record.settings.devices.truncate(devices);
                record.cells = cells.into_iter().map(any_cell).collect();
                record
            },
        )
}

fn any_cell((block, layout, baseline, kind, mean): (usize, usize, bool, u8, f64)) -> Cell {
    let cell = failed(block, layout);
    let bounded = Value {
        mean,
        low: Some(mean * 0.9),
        high: Some(mean * 1.1),
    };
    let figures = [
        ("page-mixed.iops", bounded),
        ("page-mixed.p99", Value::plain(mean)),
    ];
    let names = figures.map(|(name, value)| (name.parse().unwrap(), value));
    let outcome = CellOutcome::Measured {
        run: RunId::new(jiff::Timestamp::UNIX_EPOCH, 1),
        figures: names.into_iter().take(usize::from(kind % 3)).collect(),
        doubts: Vec::new(),
    };
    Cell {
        baseline,
        began_s: mean,
        outcome: if kind == 0 { cell.outcome } else { outcome },
        ..cell
    }
}

proptest! {
    #[test]
    fn every_record_is_decided_and_each_layout_has_one_row(record in any_record()) {
        let decision = decide(&record);
        let mut layouts: Vec<usize> = decision.rows.iter().map(|row| row.layout).collect();
        layouts.sort_unstable();
        prop_assert_eq!(layouts, (0..record.layouts.len()).collect::<Vec<_>>());
        let winners = decision.rows.iter().filter(|row| row.outcome == LayoutOutcome::Winner);
        let winners: Vec<usize> = winners.map(|row| row.layout).collect();
        if decision.over {
            prop_assert_eq!(winners, decision.winner.into_iter().collect::<Vec<_>>());
            prop_assert!(decision.rows.iter().all(|row| row.outcome != LayoutOutcome::Open));
        } else {
            prop_assert_eq!(winners, Vec::<usize>::new());
            prop_assert!(!next_layouts(&record, &decision).is_empty());
        }
        prop_assert!(decision.rows.iter().all(|row| !row.why.is_empty()));
        prop_assert!(decision.winner.is_none_or(|winner| !decision.ties.contains(&winner)));
    }

    #[test]
    fn every_sweep_ends(seed in 0_u64..50, noise in 0.0..0.3_f64) {
        let truth = Truth { of: &by_members, noise, drift: 0.01, seed };
        let mut record = sweep("page-mixed.iops", growing());
        let decision = run(&mut record, &truth);
        prop_assert!(decision.over, "{decision:?}");
    }

    #[test]
    fn every_sweep_with_a_requirement_ends(
        seed in 0_u64..1000,
        noise in 0.0..0.3_f64,
        threshold in 70.0..90.0_f64,
    ) {
        // The fastest layout may miss the requirement after the others were dropped for being slower.
        let of = |layout: &Layout| {
            let members = layout.members as f64;
            vec![("page-mixed.iops", 3000.0 * members), ("page-mixed.p99", 10e6 * members)]
        };
        let truth = Truth { of: &of, noise, drift: 0.0, seed };
        let mut record = sweep("page-mixed.iops", growing());
        let threshold = format!("page-mixed.p99<{threshold:.1}ms");
        record.settings.requires = vec![threshold.parse().unwrap()];
        for block in 0..record.settings.blocks {
            let wanted = next_layouts(&record, &decide(&record));
            if wanted.is_empty() {
                break;
            }
            record.blocks.push(RaceBlock { wanted: wanted.clone(), order: wanted.clone() });
            truth.measure(&mut record, block, &wanted);
        }
        prop_assert!(decide(&record).over);
    }
}
