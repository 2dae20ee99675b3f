#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::model::{Event, Load, Model, Noise};
use super::*;

const SECOND: u64 = 1_000_000_000;
/// 100 MB a second.
const DEVICE_SECTORS_PER_S: f64 = 200_000.0;

fn task() -> Task {
    model::task(1)
}

fn p99(seconds: f64) -> Option<Targets> {
    Some(Targets {
        mean_s: None,
        p99_s: Some(seconds),
    })
}

fn busy(alone: f64, cost: f64) -> Load {
    Load {
        rate: 700.0,
        alone,
        cost,
        gentle: 1.0,
        noise: Noise::None,
        barrier: None,
    }
}

#[test]
fn on_an_idle_array_it_is_as_fast_as_md() {
    let of = 60 * DEVICE_SECTORS_PER_S as u64;
    let mut model = Model::new(of, DEVICE_SECTORS_PER_S);
    let ended = drive(&mut model, &task());
    assert!(matches!(ended.ending, ScrubEnd::Done), "{ended:?}");
    assert_eq!(ended.at.done, Sectors(of));
    // The first two seconds show that there is no foreground.
    let seconds = model.now as f64 / SECOND as f64;
    assert!(seconds < 2.5 + 60.0 / 0.97, "{seconds}");
    assert_eq!(model.refused, [""; 0]);
    assert_eq!((model.min, model.until), (0, SyncMax::End));
}

#[test]
fn beside_a_foreground_it_takes_what_leaves_the_target_kept() {
    // At full speed the latency is 21 ms; a quarter of it keeps 6 ms.
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    model.load = busy(0.001, 0.020);
    model
        .events
        .push((120 * SECOND, Event::Stop(StopCause::Deadline)));
    let ended = drive(
        &mut model,
        &Task {
            targets: Some(Targets {
                mean_s: Some(0.006),
                p99_s: None,
            }),
            ..task()
        },
    );
    assert!(matches!(
        ended.ending,
        ScrubEnd::Ordered(StopCause::Deadline)
    ));
    let late = &model.history[60..115];
    let mean = |of: fn(&(f64, f64)) -> f64| late.iter().map(of).sum::<f64>() / late.len() as f64;
    let (rate, latency) = (mean(|one| one.0), mean(|one| one.1));
    assert!(latency < 0.0065, "{latency}");
    assert!(rate > 0.15 * DEVICE_SECTORS_PER_S, "{rate}");
}

#[test]
fn the_disks_are_free_a_second_after_the_foreground_suffers() {
    // The check's share of the device in the second before, and in the first three seconds from that moment on.
    let shares_around = |at_s: u64| {
        let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
        model.load = busy(0.001, 0.002);
        let harm = Event::Load(busy(0.004, 0.200));
        model.events.push((at_s * SECOND, harm));
        model
            .events
            .push(((at_s + 4) * SECOND, Event::Stop(StopCause::Signal)));
        drive(
            &mut model,
            &Task {
                targets: p99(0.005),
                ..task()
            },
        );
        let from = at_s as usize - 1;
        [0, 1, 2, 3].map(|second| model.history[from + second].0 / DEVICE_SECTORS_PER_S)
    };
    // A pause, in which the foreground is measured alone, comes every four seconds and takes a part of one second. Where it
    // comes before the rate was lowered, that waits until the pause is over.
    let all: Vec<[f64; 4]> = (57..62).map(shares_around).collect();
    for [before, _, second, third] in &all {
        assert!(*before > 0.5, "{all:?}");
        assert!(*second < 0.55 && *third < 0.3, "{all:?}");
    }
    let at_once = all.iter().filter(|[.., second, _]| *second <= 0.1);
    assert!(at_once.count() >= 3, "{all:?}");
}

#[test]
fn somebody_who_comes_to_an_idle_array_is_not_run_over() {
    let mut model = Model::new(u64::MAX / 4096, DEVICE_SECTORS_PER_S);
    model
        .events
        .push((20 * SECOND, Event::Load(busy(0.001, 0.050))));
    model
        .events
        .push((30 * SECOND, Event::Stop(StopCause::Signal)));
    drive(&mut model, &task());
    assert!(model.history[18].0 > 0.95 * DEVICE_SECTORS_PER_S);
    let after = model.history[21].0;
    assert!(after < 0.05 * DEVICE_SECTORS_PER_S, "{after}");
    let measuring = model
        .reported
        .iter()
        .any(|at| at.measuring && at.live.0 > 0);
    assert!(measuring, "it is measured with the check held");
}

#[test]
fn all_is_found_once_over_any_number_of_interruptions() {
    let of = 30 * DEVICE_SECTORS_PER_S as u64 + 77;
    model::assert_found_once(of, task, |start| {
        let mut model = Model::new(of, DEVICE_SECTORS_PER_S);
        if start % 3 == 1 {
            model.load = busy(0.001, 0.001);
        }
        (model, (1 + start % 7) * SECOND + start * 61_000_000)
    });
}

/// Runs a check with an event after eleven seconds.
fn with(event: Event) -> (DriveResult, Model) {
    let mut model = Model::new(600 * DEVICE_SECTORS_PER_S as u64, DEVICE_SECTORS_PER_S);
    model.events.push((11 * SECOND, event));
    let ended = drive(&mut model, &task());
    assert!(model.now < 14 * SECOND, "{:?}", ended.ending);
    (ended, model)
}

#[test]
fn what_others_do_ends_it_at_once() {
    let (ended, _) = with(Event::Act(SyncAction::Idle));
    assert!(matches!(ended.ending, ScrubEnd::Stopped), "{ended:?}");
    let (ended, _) = with(Event::Fails);
    assert!(matches!(ended.ending, ScrubEnd::Degraded), "{ended:?}");
    let (ended, _) = with(Event::Gone);
    assert!(matches!(ended.ending, ScrubEnd::Gone), "{ended:?}");
    for action in [
        SyncAction::Recover,
        SyncAction::Resync,
        SyncAction::Reshape,
        SyncAction::Frozen,
    ] {
        let (ended, model) = with(Event::Begins(action));
        assert!(
            matches!(ended.ending, ScrubEnd::Recovery(begun) if begun == action),
            "{ended:?}"
        );
        assert_eq!(model.action, action, "it is let be");
    }
    for tunable in [Tunable::SpeedMin, Tunable::SpeedMax] {
        let (ended, model) = with(Event::Turns(tunable, 5000));
        assert!(
            matches!(ended.ending, ScrubEnd::Turned(turned) if turned == tunable),
            "{ended:?}"
        );
        assert_eq!(model.action, SyncAction::Idle, "the check is ended");
    }
    let (ended, model) = with(Event::Turns(Tunable::Max, 1 << 40));
    assert!(
        matches!(ended.ending, ScrubEnd::Turned(Tunable::Max)),
        "{ended:?}"
    );
    assert_eq!(model.action, SyncAction::Idle);
}

#[test]
fn a_limit_that_somebody_sets_while_the_throttle_turns_is_not_overwritten() {
    let mut lost = Vec::new();
    for moment in 0..40 {
        let mut model = Model::new(600 * DEVICE_SECTORS_PER_S as u64, DEVICE_SECTORS_PER_S);
        // A `sync_max` that was set without a foreground lies far ahead, so that the throttle limits the rate.
        let when = 11 * SECOND;
        model.events.push((when, Event::Load(busy(0.001, 0.020))));
        model.events.push((
            when + SECOND / 2 + moment * 97_000_000,
            Event::Turns(Tunable::SpeedMax, 5000),
        ));
        model
            .events
            .push((when + 8 * SECOND, Event::Stop(StopCause::Signal)));
        let task = Task {
            targets: p99(0.006),
            ..task()
        };
        let ended = drive(&mut model, &task);
        let kept = model.speed_max.kib == 5000;
        if !matches!(ended.ending, ScrubEnd::Turned(Tunable::SpeedMax)) || !kept {
            lost.push((moment, format!("{:?}", ended.ending)));
        }
    }
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn a_recovery_of_an_array_on_the_same_disks_ends_it_at_once() {
    let (ended, model) = with(Event::Waits);
    assert!(matches!(ended.ending, ScrubEnd::Waits(_)), "{ended:?}");
    assert_eq!(model.action, SyncAction::Idle, "the check is ended");
}

#[test]
fn a_check_that_md_does_not_let_begin_does_not_stand_there_for_ever() {
    let mut model = Model::new(600 * DEVICE_SECTORS_PER_S as u64, DEVICE_SECTORS_PER_S);
    model.events.push((0, Event::Delayed));
    model
        .events
        .push((60 * SECOND, Event::Stop(StopCause::Signal)));
    let ended = drive(&mut model, &task());
    assert!(matches!(ended.ending, ScrubEnd::Delayed), "{ended:?}");
    assert!(model.now < 10 * SECOND, "{}", model.now);
    assert_eq!(model.action, SyncAction::Idle, "the check is ended");
}

#[test]
fn an_order_ends_it_and_what_is_done_is_known() {
    for order in [StopCause::Signal, StopCause::Deadline] {
        let (ended, model) = with(Event::Stop(order));
        assert!(matches!(ended.ending, ScrubEnd::Ordered(given) if given == order));
        assert_eq!(model.action, SyncAction::Idle);
        assert!(ended.at.done.0 > 0, "{:?}", ended.at);
        assert_eq!(ended.at.done.0, model.position as u64, "md stands there");
    }
}

#[test]
fn mismatches_of_an_earlier_check_are_none_of_its_own() {
    let mut model = Model::new(600 * DEVICE_SECTORS_PER_S as u64, DEVICE_SECTORS_PER_S);
    model.found = 4096;
    model.load = busy(0.001, 0.020);
    // Nothing moves before the foreground was measured.
    model
        .events
        .push((SECOND / 2, Event::Stop(StopCause::Signal)));
    let ended = drive(&mut model, &task());
    assert!(matches!(ended.ending, ScrubEnd::Ordered(_)), "{ended:?}");
    assert_eq!((ended.at.mismatches, ended.at.mismatches_seen), (0, 0));
    assert_eq!(
        model.found, 4096,
        "md still shows the count of the check before"
    );
}

#[test]
fn a_deadline_is_kept_against_the_latency() {
    let of = 30 * DEVICE_SECTORS_PER_S as u64;
    let mut model = Model::new(of, DEVICE_SECTORS_PER_S);
    model.load = busy(0.001, 0.100);
    let ended = drive(
        &mut model,
        &Task {
            targets: p99(0.002),
            deadline: Some(Nanos(120 * SECOND)),
            ..task()
        },
    );
    assert!(matches!(ended.ending, ScrubEnd::Done), "{ended:?}");
    let seconds = model.now / SECOND;
    assert!((60..=122).contains(&seconds), "{seconds}");
}

#[test]
fn a_check_that_is_refused_is_no_check() {
    let mut model = Model::new(1000, DEVICE_SECTORS_PER_S);
    model.action = SyncAction::Recover;
    let ended = drive(&mut model, &task());
    assert!(matches!(ended.ending, ScrubEnd::Failed(_)), "{ended:?}");
    assert_eq!(model.action, SyncAction::Recover, "it is let be");
}
