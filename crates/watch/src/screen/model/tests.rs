use record::Severity;
use record::sample::DeviceId;
use study::watch::ChangeKind;

use super::super::fixture::{change, model, sample};
use super::*;

fn shown(model: &Model) -> u64 {
    model.frame().unwrap().at.elapsed.0 / 1_000_000_000
}

fn add(model: &mut Model, at: u64) {
    let frame = Frame::of(&sample(at), None);
    model.take(Update::Frame(Arc::new(frame), Vec::new()));
}

#[test]
fn a_pause_holds_the_picture_while_more_comes() {
    let mut model = model(5);
    model.press(Key::Char(' '));
    add(&mut model, 6);
    assert_eq!(shown(&model), 5);
    assert_eq!(model.behind(), Some(Nanos::from_secs(1)));
    model.press(Key::Char(' '));
    assert_eq!((shown(&model), model.behind()), (6, None));
}

#[test]
fn time_is_gone_through_back_and_forth() {
    let mut model = model(100);
    model.press(Key::Left);
    model.press(Key::Left);
    assert_eq!(shown(&model), 98);
    model.press(Key::Right);
    assert_eq!(shown(&model), 99);
    model.press(Key::Char('['));
    assert_eq!(shown(&model), 39);
    model.press(Key::Char('['));
    assert_eq!(shown(&model), 1);
    assert_eq!(model.press(Key::Left), KeyEffect::None);
    assert_eq!(shown(&model), 1);
    model.press(Key::Char(']'));
    assert_eq!(shown(&model), 61);
    model.press(Key::Home);
    assert_eq!(shown(&model), 1);
    model.press(Key::End);
    assert_eq!((shown(&model), model.behind()), (100, None));
    assert_eq!(
        model.press(Key::Right),
        KeyEffect::None,
        "nothing comes after now"
    );
}

#[test]
fn a_paused_view_moves_with_the_memory() {
    let mut model = model(1);
    model.press(Key::Char(' '));
    for at in 2..60 {
        let mut frame = Frame::of(&sample(at), None);
        frame.weight = 16 << 20;
        model.take(Update::Frame(Arc::new(frame), Vec::new()));
    }
    assert!(model.frame().is_some());
    assert_eq!(model.number(), model.history.oldest());
}

#[test]
fn findings_are_as_they_were_then() {
    let mut model = model(40);
    let frame = Frame::of(&sample(41), None);
    let closed = change(ChangeKind::Closed, 1, 41);
    model.take(Update::Frame(Arc::new(frame), vec![closed]));
    let mark = |model: &Model| {
        model
            .found
            .mark(DeviceId(3), model.frame().unwrap().at.elapsed)
    };
    assert_eq!(mark(&model), None);
    model.press(Key::Left);
    assert_eq!(mark(&model), Some(Severity::Warn));
    model.press(Key::Home);
    assert_eq!(mark(&model), None);
}

#[test]
fn the_selection_stays_on_its_device_when_the_order_changes() {
    let mut model = model(3);
    (0..4).for_each(|_| {
        model.press(Key::Down);
    });
    let selected = |model: &Model| {
        let lines = model.branches();
        lines[model.selected(&lines)].id
    };
    assert_eq!(selected(&model), DeviceId(3));
    (0..5).for_each(|_| {
        model.press(Key::Char('s'));
    });
    assert_eq!(selected(&model), DeviceId(3));
    model.press(Key::Char('G'));
    assert_eq!(selected(&model), DeviceId(6));
    model.press(Key::PageUp);
    assert_eq!(selected(&model), DeviceId(5));
}

#[test]
fn letters_that_are_typed_are_no_keys() {
    let mut model = model(1);
    model.press(Key::Char('/'));
    assert_eq!(model.press(Key::Char('q')), KeyEffect::None);
    assert_eq!(model.choice.wanted.text(), "q");
    model.press(Key::Escape);
    assert_eq!(model.choice.wanted.text(), "");
    assert_eq!(model.press(Key::Char('q')), KeyEffect::Quit);
    model.press(Key::Char('/'));
    assert_eq!(model.press(Key::Ctrl('c')), KeyEffect::Quit);
}

#[test]
fn pages_open_and_close() {
    let mut model = model(1);
    for (key, page) in [
        (Key::Char('?'), Page::Help),
        (Key::Char('f'), Page::Findings),
        (Key::Enter, Page::Detail),
    ] {
        model.press(key);
        assert_eq!(model.page, page);
        model.press(key);
        assert_eq!(model.page, Page::Devices);
        model.press(key);
        assert_eq!(model.press(Key::Escape), KeyEffect::None);
        assert_eq!(model.page, Page::Devices);
    }
}

#[test]
fn nothing_to_show_is_no_trouble() {
    let mut model = Model::default();
    for key in "jkgGzZsSravf? []".chars().map(Key::Char) {
        model.press(key);
    }
    for key in [
        Key::Left,
        Key::Right,
        Key::Home,
        Key::End,
        Key::PageDown,
        Key::Enter,
    ] {
        model.press(key);
    }
    assert!(model.branches().is_empty() && model.behind().is_none());
}
