//! Verdicts on an array and its members, which a check reads at the same time as the service.

use super::*;
use crate::simulate::Rng;
use crate::watch::EventCode;

const COUNT: usize = 100;
const MOMENT: usize = 50;

/// A value per slot around one level before the moment and another after.
fn step(rng: &mut Rng, before: f64, after: f64) -> Vec<f64> {
    let level = |slot| if slot < MOMENT { before } else { after };
    (0..COUNT)
        .map(|slot| level(slot) * (0.03 * rng.normal()).exp())
        .collect()
}

/// A service on a mirror of two disks, of which a check begins at the moment.
fn checked(found: &[EventCode]) -> Observations {
    let mut rng = Rng::new(1);
    let response = step(&mut rng, 20.0, 40.0);
    let above = |bound: f64| (bound, vec![0.0; COUNT]);
    let finding = |code: &EventCode| DiskFinding {
        code: *code,
        slots: MOMENT + 1..COUNT,
    };
    let mut disk = |name: &str, iops: (f64, f64), await_ms: (f64, f64), layer| ObservedDisk {
        name: name.to_owned(),
        iops: step(&mut rng, iops.0, iops.1),
        await_ms: step(&mut rng, await_ms.0, await_ms.1),
        busy: vec![0.5; COUNT],
        findings: Vec::new(),
        layer,
    };
    let above_them = DiskLayer {
        lies_on_others: true,
        carries_others: false,
    };
    let below = DiskLayer {
        lies_on_others: false,
        carries_others: true,
    };
    // The check's own reads are many more than those of the service.
    let mut disks = vec![
        disk("md0", (400.0, 400.0), (1.0, 4.0), above_them),
        disk("vda", (200.0, 900.0), (1.0, 4.0), below),
        disk("vdb", (200.0, 900.0), (1.0, 4.0), below),
    ];
    disks[0].findings = found.iter().map(finding).collect();
    Observations {
        slot_s: 60.0,
        service: ServiceTimes {
            requests: step(&mut rng, 6000.0, 6000.0),
            mean_ms: response.clone(),
            p50_ms: response.clone(),
            p95_ms: response.iter().map(|ms| 3.0 * ms).collect(),
            p99_ms: response.iter().map(|ms| 5.0 * ms).collect(),
            above: vec![above(500.0)],
        },
        disks,
        series: Vec::new(),
    }
}

fn judged(observed: &Observations, marked: bool) -> CauseVerdict {
    let windows = Windows::around(MOMENT, 40, COUNT, 0, 0..COUNT);
    let moment = Moment {
        slot: MOMENT,
        marked,
    };
    judge(observed, moment, &windows)
}

#[test]
fn a_check_is_named_by_its_array_also_at_a_release() {
    let observed = checked(&[EventCode::ScrubHurts]);
    for marked in [false, true] {
        let verdict = judged(&observed, marked);
        assert_eq!(verdict.conclusion, Conclusion::System, "{verdict:#?}");
        assert_eq!(verdict.causes, [Cause::Disk("md0".to_owned())]);
    }
}

#[test]
fn the_latency_of_an_array_is_that_of_the_member_that_is_slower() {
    let mut observed = checked(&[]);
    let mut rng = Rng::new(2);
    observed.disks[1].iops = step(&mut rng, 200.0, 200.0);
    observed.disks[2].iops = step(&mut rng, 200.0, 200.0);
    observed.disks[2].await_ms = step(&mut rng, 1.0, 1.0);
    let verdict = judged(&observed, false);
    assert_eq!(verdict.causes, [Cause::Disk("vda".to_owned())]);
}
