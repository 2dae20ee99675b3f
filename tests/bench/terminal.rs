//! Output for people: plain text in a pipe, progress and narrow tables on a terminal, and a quiet
//! end when nobody reads on.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{Place, ProgramOutput, Running, SHORT};

#[test]
fn into_a_pipe_goes_plain_text_of_100_columns_and_no_progress() {
    let place = Place::new();
    let said = place.bench("--size 16M --seconds 200ms").ends_with(0);
    assert_eq!(said.err, "");
    said.fits(100);
    said.prints(&[
        "page-mixed",
        "commit",
        "IOPS",
        "p99",
        "warning: short, seek",
        "Verdict: doubtful",
    ]);
    let kept = place.runs().remove(0);
    said.prints(&[&kept]);
}

#[test]
fn a_narrow_terminal_gets_progress_that_fits_and_a_narrow_table() {
    for columns in [60, 40] {
        fits_a_terminal_of(columns);
    }
}

fn fits_a_terminal_of(width: u16) {
    let columns = usize::from(width);
    let place = Place::new();
    let arguments = "bench data --size 8M --phase page-read --seconds 80 --precision 0";
    let mut command = place.command(&arguments.split(' ').collect::<Vec<_>>());
    let (out, err) = (Terminal::attach(width), Terminal::attach(width));
    command.stdout(out.end()).stderr(err.end());
    command.env_remove("COLUMNS");
    let mut run = Running::start(&mut command);
    // The time that is left may be cut off.
    let has_figure = |frame: &str| {
        let rest = frame.split_once(" IOPS, p99 ").map(|(_, rest)| rest);
        frame.contains("page-read") && rest.is_some_and(|rest| rest.contains("s,"))
    };
    run.wait_until("shows no progress", || {
        let progress = without_codes(&err.so_far());
        progress.split(['\r', '\n']).any(has_figure)
    });
    let progress = without_codes(&err.so_far());
    run.signal(Signal::INT);
    let ended = run.end().ends_with(3);
    drop(command);

    let answer = ProgramOutput {
        out: out.shown(),
        ..ended
    };
    answer.fits(columns);
    answer.prints(&["page-read", "IOPS", "p99", "Verdict"]);

    for frame in progress.split(['\r', '\n']) {
        assert!(frame.chars().count() <= columns, "too wide: {frame}");
    }
}

#[test]
fn progress_is_shown_to_who_watches_also_when_the_answer_goes_into_a_pipe() {
    let place = Place::new();
    let arguments = [&["bench", "data", "--json"], &SHORT[..]].concat();
    let mut command = place.command(&arguments);
    let err = Terminal::attach(100);
    command.stderr(err.end());
    let said = Running::start(&mut command).end().ends_with(0);
    drop(command);
    said.json();
    assert!(without_codes(&err.shown()).contains("page-read"));
}

#[test]
fn a_closed_pipe_ends_quietly_and_the_run_and_its_report_are_kept() {
    let place = Place::new();
    let bench = [&["bench", "data", "--report", "page.html"], &SHORT[..]].concat();
    closed(&mut place.command(&bench));
    assert_eq!(place.runs().len(), 1);
    assert!(place.path("page.html").exists());
    closed(&mut place.command(&[&bench[..], &["--json"]].concat()));
    for words in ["runs", "show last", "devices", "completions bash", "--help"] {
        let words: Vec<&str> = words.split(' ').collect();
        closed(&mut place.command(&words));
    }
    place.assert_nothing_left();
}

/// Runs a command whose answer nobody reads. It must end with status 0 and say nothing.
#[track_caller]
fn closed(command: &mut Command) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer);
    let said = Running::start(command).end().ends_with(0);
    command.stdout(Stdio::null());
    assert_eq!(said.err, "");
}

/// A pseudo terminal, and a thread that keeps what is written on it.
struct Terminal {
    end: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    fn attach(columns: u16) -> Terminal {
        let host = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&host).unwrap();
        unlockpt(&host).unwrap();
        let size = Winsize {
            ws_row: 40,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let name = ptsname(&host, Vec::new()).unwrap();
        let name = std::path::PathBuf::from(name.into_string().unwrap());
        let end = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&end, size).unwrap();
        let mut host = File::from(host);
        let shown = Arc::<Mutex<Vec<u8>>>::default();
        let into = Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // Once the last program has let go of the other end, reading is an error.
            while let Ok(count @ 1..) = host.read(&mut piece) {
                into.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Terminal { end, shown, reader }
    }

    /// The end that a program writes to.
    fn end(&self) -> File {
        self.end.try_clone().unwrap()
    }

    /// All that was written until now. A letter may be there by half.
    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    /// All that was written, once nobody can write any more.
    fn shown(self) -> String {
        drop(self.end);
        self.reader.join().unwrap();
        String::from_utf8(std::mem::take(&mut self.shown.lock().unwrap())).unwrap()
    }
}

/// The text without the codes that move the cursor and clear lines.
fn without_codes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.find(|letter: char| letter.is_ascii_alphabetic());
        plain.push_str(&part[code.map_or(part.len(), |at| at + 1)..]);
    }
    plain
}
