use record::sample::Sample;

use super::super::Update;
use super::super::fixture::{device, model, sample};
use super::super::frame::Frame;
use super::super::model::Model;
use super::*;
use ui::screen::Key;

/// The names of the lines, each behind two dots for each level.
fn shown(model: &Model) -> Vec<String> {
    let frame = model.frame().unwrap();
    let name = |branch: &Branch| {
        let dots = "..".repeat(branch.lasts.len());
        format!("{dots}{}", frame.rows[branch.place].device.name)
    };
    model.branches().iter().map(name).collect()
}

fn of(devices: Vec<record::sample::DeviceSample>) -> Model {
    let sample = Sample {
        devices,
        ..sample(1)
    };
    let mut model = Model::default();
    let frame = Frame::of(&sample, None);
    model.take(Update::Frame(std::sync::Arc::new(frame), Vec::new()));
    model
}

fn typed(model: &mut Model, keys: &str) {
    keys.chars().for_each(|key| {
        model.press(Key::Char(key));
    });
}

#[test]
fn devices_are_above_those_that_they_lie_on_and_partitions_are_folded() {
    assert_eq!(
        shown(&model(1)),
        [
            "dm-0",
            "..md0",
            "....nvme1n1",
            "....nvme2n1",
            "....nvme3n1",
            "....nvme4n1",
            "vda"
        ]
    );
}

#[test]
fn a_device_that_was_never_active_is_shown_when_requested() {
    let mut model = model(1);
    typed(&mut model, "a");
    assert!(shown(&model).contains(&"loop0".to_owned()));
}

#[test]
fn a_member_that_is_the_only_partition_that_matters_is_its_disk() {
    let mut small = device(4, "vdb15", &[3], 0.0, 0);
    let mut facts = Device::clone(&small.device);
    facts.size = Some(record::Bytes::mib(100));
    small.device = std::sync::Arc::new(facts);
    let model = of(vec![
        device(0, "md0", &[2, 6], 1.0, 1),
        device(3, "vdb", &[], 1.0, 1),
        device(2, "vdb1", &[3], 1.0, 1),
        small,
        device(5, "vdc", &[], 1.0, 1),
        device(6, "vdc1", &[5], 1.0, 1),
        device(7, "vdc2", &[5], 1.0, 1),
    ]);
    assert_eq!(shown(&model), ["md0", "..vdb", "..vdc1", "vdc"]);
}

#[test]
fn folds_open_and_close() {
    let mut model = model(1);
    model.press(Key::Down);
    typed(&mut model, "z");
    assert_eq!(shown(&model), ["dm-0", "..md0", "vda"]);
    assert_eq!(model.branches()[1].fold, Fold::Closed);
    typed(&mut model, "zZ");
    assert_eq!(shown(&model), ["dm-0", "vda"]);
    typed(&mut model, "Z");
    assert_eq!(shown(&model).last().unwrap(), "..vda15");
    typed(&mut model, "Z");
    assert_eq!(shown(&model).len(), 7);
}

#[test]
fn a_filter_leaves_what_it_finds_with_what_is_above_and_below() {
    let mut model = model(1);
    typed(&mut model, "/nvme[13]");
    assert_eq!(
        shown(&model),
        ["dm-0", "..md0", "....nvme1n1", "....nvme3n1"]
    );
    let is_match: Vec<bool> = model.branches().iter().map(|line| line.is_match).collect();
    assert_eq!(is_match, [false, false, true, true]);
    model.press(Key::Enter);
    typed(&mut model, "/");
    (0..9).for_each(|_| {
        model.press(Key::Backspace);
    });
    typed(&mut model, "md0");
    assert_eq!(shown(&model).len(), 6, "an array with its members");
}

#[test]
fn rows_are_sorted_where_they_stand() {
    let mut model = model(1);
    // Name, r/s, w/s, rMiB/s, wMiB/s, r-await.
    typed(&mut model, "sssss");
    assert_eq!(model.choice.sort.name(), "r-await");
    let members = |model: &Model| shown(model)[2..6].concat();
    assert_eq!(
        members(&model),
        "....nvme3n1....nvme2n1....nvme4n1....nvme1n1"
    );
    typed(&mut model, "r");
    assert_eq!(shown(&model)[0], "vda");
    assert!(
        members(&model).ends_with("nvme4n1....nvme2n1"),
        "{}",
        members(&model)
    );
}

#[test]
fn a_slow_member_stands_out_among_its_siblings() {
    let model = model(15);
    let out: Vec<bool> = model
        .branches()
        .iter()
        .filter_map(|line| line.siblings.as_ref())
        .map(|comparison| comparison.stands_out)
        .collect();
    assert_eq!(out, [false, false, true, false]);
}

#[test]
fn devices_that_lie_on_themselves_end() {
    let model = of(vec![
        device(0, "dm-0", &[1], 1.0, 1),
        device(1, "dm-1", &[0], 1.0, 1),
        device(2, "dm-2", &[0, 1], 1.0, 1),
    ]);
    assert!(!shown(&model).is_empty());
}
