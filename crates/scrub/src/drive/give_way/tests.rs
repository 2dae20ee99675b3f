//! Tests of direct comparison on a modelled RAID 10.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::super::model::{Event, Load, Model, Noise, assert_found_once};
use super::super::{DriveResult, PendingWork, Task, drive};
use super::*;
use job::StopCause;

const SECOND: u64 = 1_000_000_000;
/// 100 MB a second.
const DEVICE_SECTORS_PER_S: f64 = 200_000.0;

fn task() -> Task {
    Task {
        holds_all: true,
        ..super::super::model::task(4)
    }
}

fn busy() -> Load {
    Load {
        rate: 700.0,
        alone: 0.001,
        cost: 0.001,
        gentle: 1.0,
        noise: Noise::None,
        barrier: None,
    }
}

fn idle_load() -> Load {
    Load {
        rate: 0.0,
        ..busy()
    }
}

fn model(of: u64) -> Model {
    let mut model = Model::new(of, DEVICE_SECTORS_PER_S);
    model.direct.can = true;
    model.reaps = 30_000_000;
    model
}

#[test]
fn all_is_found_once_over_any_number_of_interruptions_and_turns() {
    let of = 30 * DEVICE_SECTORS_PER_S as u64 + 77;
    for chunk in [Sectors(128), Sectors(1024), Sectors(8192)] {
        let task = || Task { chunk, ..task() };
        let has_compared = assert_found_once(of, task, |start| {
            let mut model = model(of);
            model.direct.moving = (0..50).map(|number| number * 104_729 % of).collect();
            // A foreground appears and disappears.
            for turn in 0..20 {
                let load = match turn % 2 == start % 2 {
                    true => busy(),
                    false => idle_load(),
                };
                model.events.push((turn * 9 * SECOND, Event::Load(load)));
            }
            (model, (4 + 5 * (start % 7)) * SECOND + start * 61_000_000)
        });
        assert!(has_compared);
    }
}

/// Runs a scrub beside a foreground, with an event after eleven seconds.
fn with(event: Event) -> (DriveResult, Model) {
    let mut model = model(600 * DEVICE_SECTORS_PER_S as u64);
    model.load = busy();
    let before = Event::Load(busy());
    model.events = vec![(0, before), (11 * SECOND, event)];
    let ended = drive(&mut model, &task());
    assert!(
        model.compared > 0 && model.now < 14 * SECOND,
        "{:?}",
        ended.ending
    );
    (ended, model)
}

#[test]
fn beside_a_foreground_md_does_nothing_and_nothing_stands_in_its_way() {
    let (ended, model) = with(Event::Stop(StopCause::Signal));
    assert!(matches!(ended.ending, ScrubEnd::Ordered(_)), "{ended:?}");
    assert!(!ended.is_own && ended.at.done.0 > 0);
    assert_eq!(
        (model.action, model.until),
        (SyncAction::Idle, SyncMax::End)
    );
    assert_eq!(ended.at.done, ended.at.live);
}

#[test]
fn what_others_do_ends_it_at_once() {
    assert!(matches!(with(Event::Fails).0.ending, ScrubEnd::Degraded));
    assert!(matches!(with(Event::Gone).0.ending, ScrubEnd::Gone));
    for action in [SyncAction::Recover, SyncAction::Frozen, SyncAction::Check] {
        let (ended, model) = with(Event::Begins(action));
        let is_so = match ended.ending {
            ScrubEnd::Begun => action == SyncAction::Check,
            ScrubEnd::Recovery(begun) => begun == action,
            _ => false,
        };
        assert!(is_so && !ended.is_own && !ended.window_set, "{ended:?}");
        assert_eq!(model.action, action, "it is let be");
    }
    let (ended, _) = with(Event::Turns(Tunable::Max, 12800));
    assert!(
        matches!(ended.ending, ScrubEnd::Turned(Tunable::Max)),
        "{ended:?}"
    );
    let (ended, _) = with(Event::Turns(Tunable::SpeedMax, 5000));
    assert!(
        matches!(ended.ending, ScrubEnd::Turned(Tunable::SpeedMax)),
        "{ended:?}"
    );
    let (ended, _) = with(Event::Waits);
    let is_so = matches!(ended.ending, ScrubEnd::Waits(PendingWork::Competing(_)));
    assert!(is_so, "{ended:?}");
}

#[test]
fn where_nobody_reads_any_more_md_checks() {
    let mut model = model(60 * DEVICE_SECTORS_PER_S as u64);
    model.load = busy();
    model.direct.fails = true;
    model.bad = vec![77];
    let end = Event::Stop(StopCause::Signal);
    model.events.push((60 * SECOND, end));
    let ended = drive(&mut model, &task());
    assert!(ended.at.done.0 > 1000, "{ended:?}");
    assert_eq!(ended.at.mismatches, 1);
}

#[test]
fn a_beginning_that_somebody_set_stays_while_md_does_nothing() {
    let mut model = model(600 * DEVICE_SECTORS_PER_S as u64);
    model.load = busy();
    let end = Event::Stop(StopCause::Signal);
    model.events.push((20 * SECOND, end));
    let task = Task {
        min: Sectors(4096),
        ..task()
    };
    drive(&mut model, &task);
    assert_eq!((model.min, model.until), (4096, SyncMax::End));
}

#[test]
fn where_a_deadline_wants_more_than_reading_gives_md_checks() {
    let of = 60 * DEVICE_SECTORS_PER_S as u64;
    for holds_all in [false, true] {
        let mut model = model(of);
        model.load = busy();
        model.direct.share = Some(0.01);
        model
            .events
            .push((300 * SECOND, Event::Stop(StopCause::Deadline)));
        let task = Task {
            holds_all,
            deadline: Some(Nanos(200 * SECOND)),
            ..task()
        };
        let ended = drive(&mut model, &task);
        assert!(model.compared > 0);
        // Where md's check delays all foreground requests, md does not take over.
        assert_eq!(
            matches!(ended.ending, ScrubEnd::Done),
            !holds_all,
            "{ended:?}"
        );
    }
}

/// Task with a chunk that is larger than a step, as with two members and mdadm's default of 512 KiB.
fn two() -> Task {
    Task {
        chunk: Sectors(1024),
        wide: 1,
        ..task()
    }
}

#[test]
fn suspects_in_the_first_half_of_a_chunk_hold_nothing_up() {
    let of = 200_000;
    let mut model = model(of);
    model.load = busy();
    model.bad = vec![1024, 1030, 5000, of - 1];
    model.direct.moving = vec![3000, 9000];
    model
        .events
        .push((600 * SECOND, Event::Stop(StopCause::Deadline)));
    let ended = drive(&mut model, &two());
    assert!(matches!(ended.ending, ScrubEnd::Done), "{ended:?}");
    assert_eq!(ended.at.mismatches, 4);
    assert!(model.compared > 0);
}

#[test]
fn an_array_that_is_left_in_the_middle_of_a_chunk_is_checked_to_its_end() {
    for moment in 0..20 {
        let of = 20 * DEVICE_SECTORS_PER_S as u64;
        let mut model = model(of);
        model.load = busy();
        model.bad = (0..of).step_by(99_991).collect();
        let leaves = 15 * SECOND + moment * 137_000_000;
        model.events = vec![
            (leaves, Event::Load(idle_load())),
            (600 * SECOND, Event::Stop(StopCause::Deadline)),
        ];
        let ended = drive(&mut model, &two());
        assert!(matches!(ended.ending, ScrubEnd::Done), "{ended:?}");
        assert_eq!(ended.at.mismatches, model.bad.len() as u64);
        assert!(model.compared > 0);
    }
}

#[test]
fn where_everything_differs_md_checks_by_itself() {
    let of = 4 * DEVICE_SECTORS_PER_S as u64;
    let mut model = model(of);
    model.load = busy();
    model.bad = (0..of).step_by(8).collect();
    model
        .events
        .push((600 * SECOND, Event::Stop(StopCause::Deadline)));
    let ended = drive(&mut model, &task());
    assert!(matches!(ended.ending, ScrubEnd::Done), "{ended:?}");
    assert_eq!(ended.at.mismatches, model.bad.len() as u64);
    assert!(model.compared < 20, "{}", model.compared);
}

#[test]
fn repaired_sectors_are_counted_though_they_agree_by_then() {
    let of = 60 * DEVICE_SECTORS_PER_S as u64;
    let mut model = model(of);
    model.bad = (0..of).step_by(50_021).collect();
    let all = model.bad.len();
    // A foreground appears while md checks at full speed, beyond its last stop.
    model.events = vec![
        (13 * SECOND, Event::Load(busy())),
        (40 * SECOND, Event::Stop(StopCause::Deadline)),
    ];
    let repair = Task {
        action: SyncAction::Repair,
        ..task()
    };
    let ended = drive(&mut model, &repair);
    let repaired = (all - model.bad.len()) as u64;
    assert!(repaired > 0 && model.compared > 0);
    assert_eq!(ended.at.mismatches, repaired, "{ended:?}");
}
