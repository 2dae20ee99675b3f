use std::sync::Arc;

use jiff::Timestamp;
use ledger::Mark;
use proptest::prelude::*;

use super::*;
use crate::screen::Update;
use crate::screen::fixture::{model, sample};
use crate::screen::frame::Frame;
use crate::screen::keys::Key;
use crate::screen::model::Model;

const FULL: Style = Style {
    unicode: true,
    colour: true,
};
const ASCII: Style = Style {
    unicode: false,
    colour: false,
};

fn picture(model: &Model, columns: usize, lines: usize, style: Style) -> Vec<String> {
    let picture = draw(model, Size { columns, lines }, style);
    let text = picture
        .lines
        .iter()
        .map(|line| line.text().trim_end().to_owned());
    text.collect()
}

fn pressed(mut model: Model, keys: &str) -> Model {
    keys.chars().for_each(|key| {
        model.press(match key {
            '\n' => Key::Enter,
            '<' => Key::Left,
            key => Key::Char(key),
        });
    });
    model
}

/// Compares with what was looked at and found good. Where it shall be different, the test prints how it
/// is now.
#[track_caller]
fn looks_like(picture: &[String], good: &str) {
    let now = picture.join("\n");
    assert_eq!(now.trim_end(), good.trim_end(), "\n{now}");
}

#[test]
fn the_table_at_60_80_120_and_200_columns() {
    let model = model(130);
    looks_like(
        &picture(&model, 60, 24, FULL),
        include_str!("pictures/60.txt"),
    );
    looks_like(
        &picture(&model, 80, 24, ASCII),
        include_str!("pictures/80-ascii.txt"),
    );
    looks_like(
        &picture(&model, 120, 24, FULL),
        include_str!("pictures/120.txt"),
    );
    looks_like(
        &picture(&model, 200, 24, FULL),
        include_str!("pictures/200.txt"),
    );
}

#[test]
fn a_tiny_screen_has_a_row_and_a_way_out() {
    let lines = picture(&model(130), 20, 5, ASCII);
    assert!(lines[2].starts_with("> -vg-data"), "{lines:?}");
    assert!(lines[4].contains("q quit"), "{lines:?}");
    let lines = picture(&model(130), 20, 3, ASCII);
    assert!(lines[1].starts_with("> -vg-data"), "{lines:?}");
}

#[test]
fn whether_it_is_recorded_and_the_last_mark_are_in_the_first_line() {
    let mut model = model(1);
    let title = |model: &Model| picture(model, 120, 24, FULL).remove(0);
    assert!(!title(&model).contains("record"));
    model.take(Update::Recording(true));
    assert!(title(&model).contains("recording"));
    model.take(Update::Recording(false));
    assert!(title(&model).contains("NOT RECORDED"));
    let at = |second: i64| Timestamp::from_second(1_763_600_000 + second).unwrap();
    let mut sample = sample(2);
    sample.at.wall = Some(at(0));
    let frame = Arc::new(Frame::of(&sample, None));
    model.take(Update::Frame(frame, Vec::new()));
    let mark = |second: i64, text: &str| Mark {
        number: 1,
        at: at(second),
        host: "db-1".to_owned(),
        text: text.to_owned(),
    };
    model.take(Update::Marks(vec![mark(-300, "old")]));
    assert!(!title(&model).contains("old"));
    let marks = vec![
        mark(-300, "old"),
        mark(-7, "deploy 1.4.2"),
        mark(5, "later"),
    ];
    let heads = |model: &Model, style| {
        let lines = picture(model, 120, 24, style).into_iter();
        lines
            .filter(|line| line.contains("2 min"))
            .collect::<Vec<_>>()
            .join("")
    };
    assert!(!heads(&model, FULL).contains('↓'));
    model.take(Update::Marks(marks));
    assert!(
        title(&model).contains("= deploy 1.4.2, 7.0s ago"),
        "{}",
        title(&model)
    );
    // Above the sparklines it stands where they have its time: near their end.
    let heads = [FULL, ASCII].map(|style| heads(&model, style));
    assert!(heads[0].trim_end().ends_with('↓'), "{heads:?}");
    assert!(heads[1].trim_end().ends_with('|'), "{heads:?}");
    assert_eq!(heads[0].matches('↓').count(), 1, "{heads:?}");
}

#[test]
fn a_device_in_detail() {
    let model = pressed(model(130), "jjjj\n");
    looks_like(
        &picture(&model, 80, 40, ASCII),
        include_str!("pictures/detail.txt"),
    );
}

#[test]
fn the_past_is_marked() {
    let model = pressed(model(130), "<<");
    let title = &picture(&model, 60, 24, FULL)[0];
    assert!(title.starts_with(" PAUSED 128s, 2.0s ago "), "{title}");
    let picture = draw(
        &model,
        Size {
            columns: 60,
            lines: 24,
        },
        FULL,
    );
    assert!(
        picture.lines[0].codes(FULL).starts_with("\u{1b}[7m"),
        "not by its words alone"
    );
}

#[test]
fn a_list_that_is_longer_than_the_screen_is_scrolled_to_what_is_selected() {
    let model = pressed(model(130), "G");
    let lines = picture(&model, 60, 10, FULL);
    assert!(lines[2].contains("-7 of 7"), "{lines:?}");
    assert!(lines[7].starts_with("> \u{25b8}vda"), "{lines:?}");
}

#[test]
fn the_end_of_a_long_filter_is_seen_while_it_is_typed() {
    let model = pressed(model(3), &format!("/{}end", "x".repeat(50)));
    let lines = picture(&model, 30, 24, FULL);
    assert!(lines[23].ends_with("xend"), "{lines:?}");
}

#[test]
fn thousands_of_devices_cost_what_is_seen_of_them() {
    let mut sample = crate::screen::fixture::sample(1);
    sample.devices = (0..5000)
        .map(|id| crate::screen::fixture::device(id, &format!("nvme{id}n1"), &[], 1.0, 1))
        .collect();
    let frame = crate::screen::frame::Frame::of(&sample, None);
    let mut model = Model::default();
    model.take(crate::screen::Update::Frame(frame.into(), Vec::new()));
    model.press(Key::Char('G'));
    let lines = picture(&model, 60, 24, FULL);
    assert!(
        lines.iter().any(|line| line.contains("5000/5000")),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("nvme4999n1")),
        "{lines:?}"
    );
}

proptest! {
    #[test]
    fn nothing_is_wider_or_higher_than_the_screen(
        columns in 0_usize..250,
        lines in 0_usize..60,
        keys in "[jkgGzZsSravf?<\n ]{0,12}",
        unicode: bool,
    ) {
        let model = pressed(model(35), &keys);
        let style = Style { unicode, colour: true };
        let picture = draw(&model, Size { columns, lines }, style);
        prop_assert!(picture.lines.len() <= lines);
        for line in &picture.lines {
            prop_assert!(line.width() <= columns, "{}", line.text());
            prop_assert!(unicode || line.text().is_ascii(), "{}", line.text());
        }
    }
}
