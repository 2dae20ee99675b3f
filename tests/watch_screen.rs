//! The screen of `watch`, through the real program on a real terminal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/loops.rs"]
mod loops;
#[path = "support/pty.rs"]
mod pty;
mod support;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use loops::Loop;
use pty::Pty;
use rustix::process::Signal;
use support::{Place, Words};

/// The program on a terminal, as people start it.
fn screen(place: &Place, arguments: &(impl Words + ?Sized)) -> Command {
    let mut command =
        place.command(&[vec!["watch", "--interval", "100ms"], arguments.words()].concat());
    command.env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    command
}

fn started(place: &Place, arguments: &(impl Words + ?Sized), size: (usize, usize)) -> Option<Pty> {
    if !support::has_program("setsid") {
        return None;
    }
    let mut pty = Pty::start(&screen(place, arguments), size, true);
    pty.wait_for(|seen| seen.text().contains("r/s") && seen.text().contains("Findings"));
    Some(pty)
}

/// Somebody who writes small blocks and waits for each, until it is dropped.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn on(device: &Loop) -> Writer {
        let stop = Arc::new(AtomicBool::new(false));
        let file = File::options().write(true).open(&device.node).unwrap();
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut block = 0;
            while !flag.load(Relaxed) {
                file.write_all_at(&[7; 16 << 10], (block % 64) << 14)
                    .unwrap();
                file.sync_data().unwrap();
                block += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Writer {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn a_device_has_a_row_with_what_it_does_and_the_past_is_marked() {
    let Some(device) = Loop::new(16) else { return };
    let place = Place::new();
    let _writer = Writer::on(&device);
    let name = device.name();
    let Some(mut pty) = started(&place, &name, (100, 30)) else {
        return;
    };
    // The second figure of its row is the writes a second.
    let writes = |row: &str| -> Option<f64> { row.split_whitespace().nth(2)?.parse().ok() };
    let row = |seen: &pty::Screen| -> Option<String> {
        let row = seen.line_with(&name)?.replace('>', " ");
        writes(&row)
            .is_some_and(|writes| writes > 0.0)
            .then_some(row)
    };
    let seen = pty.wait_for(|seen| row(seen).is_some_and(|row| row.contains(['▁', '█', '▅'])));
    assert!(!seen.is_too_wide);
    // So that there is a past that is not like now.
    let first = row(&seen);
    pty.wait_for(|seen| row(seen).is_some() && row(seen) != first);
    pty.press(" ");
    let held = pty.wait_for_word("PAUSED");
    let kept = row(&held);
    pty.press("\u{1b}[H");
    pty.wait_for(|seen| seen.text().contains("PAUSED") && row(seen) != kept);
    pty.press(" ");
    pty.wait_for(|seen| !seen.text().contains("PAUSED"));
    pty.press("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_put_back();
}

#[test]
fn keys_open_pages_and_filter() {
    let place = Place::new();
    let Some(mut pty) = started(&place, "", (100, 30)) else {
        return;
    };
    assert!(pty.is_raw());
    pty.press("?");
    pty.wait_for_word("Ctrl-Z");
    pty.press("\u{1b}");
    pty.wait_for(|seen| !seen.text().contains("Ctrl-Z"));
    pty.press("/no-such-disk\r");
    pty.wait_for_word("filter: no-such-disk");
    pty.wait_for_word("no device is shown");
    pty.press("\u{1b}");
    pty.wait_for(|seen| !seen.text().contains("filter: "));
    pty.press("s");
    pty.wait_for_word("sort: r/s");
    pty.press("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_put_back();
}

#[test]
fn what_was_recorded_is_played_faster_held_and_ended() {
    let place = Place::new();
    let record = "watch --record --json --interval 100ms";
    place.run(&format!("{record} --count 30")).ends_with(0);
    if !support::has_program("setsid") {
        return;
    }
    let mut command = place.command("watch --at -1h --for 2h --all");
    command.env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    let mut pty = Pty::start(&command, (100, 30), true);
    pty.wait_for_word("REPLAY");
    assert!(pty.is_raw());
    pty.press(" ");
    pty.wait_for_word("PAUSED");
    pty.press(" ");
    pty.press("++");
    pty.wait_for_word("END");
    pty.press("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_put_back();
}

#[test]
fn a_user_of_the_screen_sees_whether_it_is_recorded() {
    let place = Place::new();
    let Some(mut pty) = started(&place, "--record", (120, 30)) else {
        return;
    };
    pty.wait_for(|seen| seen.text().contains("recording"));
    pty.press("q");
    assert_eq!(pty.end().code(), Some(0));
    let mut command = screen(&place, "--record");
    // Nobody may make a file there, root included.
    command.env("DISKSMITH_LEDGER", "/proc/ledger.db");
    let mut pty = Pty::start(&command, (120, 30), true);
    pty.wait_for_word("NOT RECORDED");
    pty.press("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_put_back();
}

#[test]
fn a_mark_is_shown_where_nothing_is_recorded_and_no_ledger_is_made_for_it() {
    let place = Place::new();
    let Some(mut pty) = started(&place, "", (120, 30)) else {
        return;
    };
    // It has looked for one by the time at which it shows the next second.
    let first = pty.wait_for_word("PSI io").text();
    pty.wait_for(|seen| seen.text() != first);
    assert!(!place.ledger().exists());
    place.run(&["mark", "deploy 1.4.2"]).ends_with(0);
    pty.wait_for_word("= deploy 1.4.2, ");
    pty.press("q");
    assert_eq!(pty.end().code(), Some(0));
}

#[test]
fn nothing_is_broken_on_60_columns_nor_on_any_other_size() {
    let place = Place::new();
    let Some(mut pty) = started(&place, "--all", (60, 24)) else {
        return;
    };
    let seen = pty.wait_for_word("PSI io");
    assert!(!seen.is_too_wide, "{}", seen.text());
    for size in [(200, 50), (20, 5), (1, 1), (80, 24), (40, 24), (60, 16)] {
        pty.resize(size);
        // What was on its way when the size changed may be as wide as before: the screen is cleared after it.
        pty.wait_for(|seen| {
            let is_drawn = match size.1 {
                1 => !seen.text().is_empty(),
                5 => seen.text().contains("quit"),
                _ => seen.text().contains("r/s") && seen.text().contains("quit"),
            };
            is_drawn && !seen.is_too_wide
        });
    }
    pty.press("\u{3}");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_put_back();
}

#[test]
fn on_40_columns_without_unicode_or_colours_all_is_ascii_and_nothing_is_coloured() {
    if !support::has_program("setsid") {
        return;
    }
    let place = Place::new();
    let mut command = screen(&place, "--all");
    command.env("LC_ALL", "C").env("NO_COLOR", "1");
    let mut pty = Pty::start(&command, (40, 24), true);
    let seen = pty.wait_for(|seen| seen.text().contains("r/s") && seen.text().contains("quit"));
    assert!(!seen.is_too_wide, "{}", seen.text());
    pty.press("?");
    pty.wait_for_word("more lines");
    pty.press("\u{3}");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_put_back();
    let written = String::from_utf8(pty.written()).unwrap();
    assert!(written.is_ascii(), "{written:?}");
    // SGR with 30 to 37 or 38: a colour of the foreground.
    let codes = written
        .split("\u{1b}[")
        .filter_map(|code| code.split_once('m'));
    for (code, _) in codes {
        let is_colour = |part: &str| part.len() == 2 && part.starts_with('3') && part != "39";
        assert!(!code.split(';').any(is_colour), "{code:?}");
    }
}

#[test]
fn signals_end_it_with_the_terminal_put_back() {
    let place = Place::new();
    // All whose default is to end the process, but KILL and those that tell of a fault in it.
    let named = [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::VTALARM,
        Signal::PROF,
        Signal::IO,
        Signal::POWER,
        Signal::XCPU,
        Signal::STKFLT,
    ];
    for signal in named {
        let Some(mut pty) = started(&place, "", (80, 24)) else {
            return;
        };
        pty.signal(signal);
        // A second one does not come in between.
        pty.signal(signal);
        let code = pty.end().code();
        assert!(code == Some(0) || code == Some(3), "{signal:?}: {code:?}");
        pty.assert_put_back();
    }
    // The first and the last that programs may use for real time.
    for number in [34, 64] {
        let Some(mut pty) = started(&place, "", (80, 24)) else {
            return;
        };
        pty.signal_number(number);
        assert_eq!(pty.end().code(), Some(0), "{number}");
        pty.assert_put_back();
    }
}

#[test]
fn signals_that_end_nothing_change_nothing() {
    let place = Place::new();
    let Some(mut pty) = started(&place, "", (80, 24)) else {
        return;
    };
    for signal in [Signal::PIPE, Signal::XFSZ, Signal::CHILD, Signal::URG] {
        pty.signal(signal);
    }
    pty.press("?");
    pty.wait_for_word("q");
    assert!(pty.is_raw());
    pty.press("q");
    pty.press("q");
    assert_eq!(pty.end().code(), Some(0));
    pty.assert_put_back();
}

#[test]
fn a_terminal_that_takes_nothing_holds_nothing_up() {
    if !support::has_program("setsid") {
        return;
    }
    let place = Place::new();
    // Nobody reads: after a few screens, the terminal is full.
    let mut pty = Pty::start(&screen(&place, "--all --count 20"), (200, 60), false);
    pty.press(&"vvvs".repeat(20));
    assert_eq!(pty.end().code(), Some(0));
    assert!(!pty.is_raw());
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_again() {
    if !support::has_program("bash") || !support::has_program("setsid") {
        return;
    }
    let place = Place::new();
    let program = screen(&place, "");
    let mut shell = Command::new("bash");
    shell
        .args(["--norc", "--noprofile", "-i"])
        .env("PS1", "ready> ")
        .env("TERM", "xterm");
    shell
        .env("LC_ALL", "C.UTF-8")
        .env("PROGRAM", program.get_program());
    let mut pty = Pty::start(&shell, (100, 30), true);
    pty.wait_for_word("ready>");
    pty.press("\"$PROGRAM\" watch --interval 100ms\r");
    pty.wait_for_word("PSI io");
    pty.press("\u{1a}");
    pty.wait_for_word("Stopped");
    pty.press("stty -a | grep -o ' icanon' | tr -d '\\n'; echo .\r");
    pty.wait_for_word(" icanon.");
    pty.press("fg\r");
    pty.wait_for(|seen| seen.text().contains("PSI io") && !seen.text().contains("Stopped"));
    pty.press("q");
    pty.wait_for_word("ready>");
    pty.press("echo \"status=$?\"; exit\r");
    pty.wait_for(|seen| seen.text().contains("status=0"));
    pty.end();
    pty.assert_put_back();
}

#[test]
fn without_a_terminal_or_on_a_dumb_one_there_are_plain_lines() {
    let place = Place::new();
    let piped = place.run("watch --count 1 --interval 100ms").ends_with(0);
    assert!(!piped.out.contains('\u{1b}'), "{piped:#?}");
    // Where no disk does anything, that is said.
    piped.prints(&["device"]);
    if !support::has_program("setsid") {
        return;
    }
    let mut dumb = screen(&place, "--all --count 2");
    dumb.env("TERM", "dumb");
    let plain = screen(&place, "--all --count 2 --plain");
    for command in [dumb, plain] {
        let mut pty = Pty::start(&command, (100, 30), true);
        assert_eq!(pty.end().code(), Some(0));
        assert!(!pty.written().contains(&0x1b));
    }
}
