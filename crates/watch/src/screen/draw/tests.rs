use std::sync::Arc;

use insta::assert_snapshot;
use jiff::Timestamp;
use ledger::Mark;
use proptest::prelude::*;
use record::sample::{LatencySample, ProcessSample, TracingSample};
use record::{Bytes, Histogram, Nanos};

use super::*;
use crate::screen::Update;
use crate::screen::fixture::{model, sample};
use crate::screen::frame::Frame;
use crate::screen::model::Model;
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Cell;
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use ui::screen::Key;

const FULL: Capabilities = Capabilities {
    unicode: true,
    colour: true,
};
const ASCII: Capabilities = Capabilities {
    unicode: false,
    colour: false,
};

/// The cells of a terminal that shows the model.
fn shown(model: &Model, columns: u16, lines: u16, capabilities: Capabilities) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    let drawn = terminal
        .draw(|frame| {
            draw(model, frame.area(), frame.buffer_mut(), capabilities);
        })
        .unwrap();
    drawn.buffer.clone()
}

/// The lines of a terminal that shows the model, without trailing spaces.
fn picture(model: &Model, columns: u16, lines: u16, capabilities: Capabilities) -> Vec<String> {
    let buffer = shown(model, columns, lines, capabilities);
    let line = |cells: &[Cell]| -> String { cells.iter().map(Cell::symbol).collect() };
    let lines = buffer.content.chunks(usize::from(columns).max(1));
    lines
        .map(|cells| line(cells).trim_end().to_owned())
        .collect()
}

/// The parts of each line whose style is not plain, with their styles.
fn styles(buffer: &Buffer) -> String {
    let mut text = String::new();
    for (line, cells) in buffer
        .content
        .chunks(usize::from(buffer.area.width))
        .enumerate()
    {
        for piece in cells.chunk_by(|a, b| a.style() == b.style()) {
            let (modifier, colour) = (piece[0].modifier, piece[0].fg);
            if modifier.is_empty() && colour == Color::Reset {
                continue;
            }
            let symbols: String = piece.iter().map(Cell::symbol).collect();
            text.push_str(&format!("{line:>2} {modifier:?} {colour}: {symbols:?}\n"));
        }
    }
    text
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

#[test]
fn the_table_at_40_to_200_columns() {
    let model = model(130);
    for columns in [40, 60, 80, 120, 200] {
        assert_snapshot!(
            format!("table-{columns}"),
            picture(&model, columns, 24, FULL).join("\n")
        );
    }
    for columns in [40, 80, 120] {
        assert_snapshot!(
            format!("table-{columns}-ascii"),
            picture(&model, columns, 24, ASCII).join("\n")
        );
    }
}

#[test]
fn styles_are_colours_only_where_the_terminal_has_them() {
    let model = model(130);
    assert_snapshot!("looks-40", styles(&shown(&model, 40, 24, FULL)));
    assert_snapshot!("looks-40-no-color", styles(&shown(&model, 40, 24, ASCII)));
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
fn the_first_line_shows_recording_and_the_last_mark() {
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
    for columns in [40, 80, 120] {
        assert_snapshot!(
            format!("detail-{columns}-ascii"),
            picture(&model, columns, 40, ASCII).join("\n")
        );
    }
}

/// A host on which one read in a thousand is slow.
#[test]
fn times_of_requests_processes_and_the_cost_of_tracing() {
    let mut times: [Histogram; 4] = Default::default();
    times[0].record_many(100_000, 999);
    times[0].record(50_000_000);
    let mut sample = sample(1);
    for device in &mut sample.devices {
        device.latency = Some(LatencySample::of(&times).into());
    }
    sample.host.tracing = Some(TracingSample {
        cpu: Nanos(9_000_000),
        requests: 10_000,
        lost: 0,
        over: Nanos::from_secs(2),
    });
    sample.host.processes = vec![ProcessSample {
        pid: 4711,
        name: "mariadbd".to_owned(),
        group: Some("/system.slice/mariadb.service".to_owned()),
        read: Bytes::mib(32),
        written: Bytes::mib(3),
        requests: 2400,
    }];
    let frame = Arc::new(Frame::of(&sample, None));
    for (name, key) in [("tracing", ""), ("latency", "\n"), ("processes", "p")] {
        let mut model = Model::default();
        model.take(Update::Frame(Arc::clone(&frame), Vec::new()));
        let model = pressed(model, key);
        for columns in [40, 80] {
            assert_snapshot!(
                format!("{name}-{columns}-ascii"),
                picture(&model, columns, 40, ASCII).join("\n")
            );
        }
    }
}

#[test]
fn the_pages_of_findings_and_keys() {
    for (name, key) in [("findings", "f"), ("help", "?")] {
        let model = pressed(model(130), key);
        for columns in [40, 80, 120] {
            assert_snapshot!(
                format!("{name}-{columns}"),
                picture(&model, columns, 40, FULL).join("\n")
            );
        }
    }
}

#[test]
fn the_past_is_marked() {
    let model = pressed(model(130), "<<");
    let title = &picture(&model, 60, 24, FULL)[0];
    assert!(title.starts_with(" PAUSED 128s, 2.0s ago "), "{title}");
    let first = &shown(&model, 60, 24, FULL).content[0];
    assert!(
        first.modifier.contains(Modifier::REVERSED),
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
        columns in 0_u16..250,
        lines in 0_u16..60,
        keys in "[jkgGzZsSravfp?<\n ]{0,12}",
        unicode: bool,
    ) {
        let model = pressed(model(35), &keys);
        let capabilities = Capabilities { unicode, colour: true };
        // A cell that holds more than one sign of one column would be wider than the screen.
        for cell in &shown(&model, columns, lines, capabilities).content {
            prop_assert_eq!(cell.symbol().chars().count(), 1, "{}", cell.symbol());
            prop_assert!(unicode || cell.symbol().is_ascii(), "{}", cell.symbol());
        }
    }
}
