//! A terminal for the tests of what is drawn: a real pseudo terminal with the program as its session's
//! leader, and what a person would see on it.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

pub(crate) use crate::support::TIMEOUT;

/// Written behind all else, to see that all else has come.
const MARK: &[u8] = b"\x00that is all\x00";

/// A program on a terminal of its own.
pub(crate) struct Pty {
    host: File,
    /// Held, so that the terminal is there after the program's end.
    end: File,
    child: Child,
    written: Arc<Mutex<Vec<u8>>>,
    /// Where the screen begins that is seen now, since the size was changed.
    since: usize,
    size: (usize, usize),
    /// The terminal's settings before the program changed them.
    pub(crate) before: Termios,
}

impl Pty {
    /// Starts a program on a terminal of so many columns and lines. Where `reads` is false, nobody takes
    /// what it writes.
    pub(crate) fn start(program: &Command, size: (usize, usize), reads: bool) -> Pty {
        let host = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&host).unwrap();
        unlockpt(&host).unwrap();
        let name = ptsname(&host, Vec::new()).unwrap().into_string().unwrap();
        let end = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&end, window(size)).unwrap();
        let before = tcgetattr(&end).unwrap();
        // A terminal of a session tells its foreground of a new size, and takes Ctrl-Z.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(program.get_program())
            .args(program.get_args());
        for (key, value) in program.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        if let Some(folder) = program.get_current_dir() {
            command.current_dir(folder);
        }
        let stdio = || Stdio::from(end.try_clone().unwrap());
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        let child = command.spawn().unwrap();
        let host = File::from(host);
        let written = Arc::new(Mutex::new(Vec::new()));
        if reads {
            let (mut host, written) = (host.try_clone().unwrap(), Arc::clone(&written));
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = host.read(&mut bytes) {
                    let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
                    written.extend_from_slice(&bytes[..count]);
                }
            });
        }
        Pty {
            host,
            end,
            child,
            written,
            since: 0,
            size,
            before,
        }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.host.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends a signal for real time, which has a number and no name.
    pub(crate) fn signal_number(&self, number: i32) {
        let words = format!("kill -{number} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &words]).status().unwrap();
        assert!(sent.success(), "{words}");
    }

    /// Changes the size, as one does with a mouse.
    pub(crate) fn resize(&mut self, size: (usize, usize)) {
        self.since = self.written().len();
        self.size = size;
        tcsetwinsize(&self.host, window(size)).unwrap();
    }

    /// All that was written.
    pub(crate) fn written(&self) -> Vec<u8> {
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The visible text.
    pub(crate) fn seen(&self) -> Screen {
        Screen::of(&self.written()[self.since..], self.size)
    }

    /// Waits until a person sees it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, what: impl Fn(&Screen) -> bool) -> Screen {
        let began = Instant::now();
        loop {
            let seen = self.seen();
            if what(&seen) {
                return seen;
            }
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() {
                self.wait_for_all();
                let seen = self.seen();
                if what(&seen) {
                    return seen;
                }
            }
            std::thread::sleep(Duration::from_millis(10));
            assert!(
                ended.is_none(),
                "it ended too early: {ended:?}\n{}",
                seen.text()
            );
            assert!(
                began.elapsed() < TIMEOUT,
                "it does not come:\n{}",
                seen.text()
            );
        }
    }

    /// Waits until a word is seen.
    #[track_caller]
    pub(crate) fn wait_for_word(&mut self, word: &str) -> Screen {
        self.wait_for(|seen| seen.text().contains(word))
    }

    /// Waits until a word is seen no longer, which may be after its end: what it wrote last may still be on
    /// its way.
    #[track_caller]
    pub(crate) fn wait_until_gone(&self, word: &str) -> Screen {
        let began = Instant::now();
        loop {
            let seen = self.seen();
            if !seen.text().contains(word) {
                return seen;
            }
            assert!(
                began.elapsed() < TIMEOUT,
                "it does not go:\n{}",
                seen.text()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < TIMEOUT, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until all that the program wrote has come, after its end.
    fn wait_for_all(&mut self) {
        self.end.write_all(MARK).unwrap();
        let began = Instant::now();
        let find = |written: &[u8]| written.windows(MARK.len()).position(|part| part == MARK);
        loop {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = find(&written) {
                written.truncate(at);
                return;
            }
            drop(written);
            assert!(began.elapsed() < TIMEOUT, "the terminal takes nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Panics unless the terminal is as it was: its modes, the cursor, and the screen on which the shell
    /// was.
    #[track_caller]
    pub(crate) fn assert_put_back(&mut self) {
        self.wait_for_all();
        assert_eq!(modes(&tcgetattr(&self.end).unwrap()), modes(&self.before));
        let written = String::from_utf8_lossy(&self.written()).into_owned();
        for (on, off) in [("?1049h", "?1049l"), ("?25l", "?25h"), ("?7l", "?7h")] {
            let (on, off) = (written.rfind(on).unwrap(), written.rfind(off));
            assert!(off.is_some_and(|off| off > on), "{off:?} {written:?}");
        }
    }

    /// True if the terminal is in raw mode, as a full-screen program needs it.
    pub(crate) fn is_raw(&self) -> bool {
        modes(&tcgetattr(&self.end).unwrap()) != modes(&self.before)
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn window((columns, lines): (usize, usize)) -> Winsize {
    Winsize {
        ws_row: lines as u16,
        ws_col: columns as u16,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn modes(terminal: &Termios) -> String {
    format!(
        "{:?} {:?} {:?} {:?}",
        terminal.input_modes, terminal.output_modes, terminal.control_modes, terminal.local_modes
    )
}

/// Screen of a terminal that interprets the sequences that the program writes.
#[derive(Debug)]
pub(crate) struct Screen {
    lines: Vec<Vec<char>>,
    /// Behind the last column, the next letter wraps.
    at: (usize, usize),
    wraps: bool,
    /// True if anything was written beyond the edge.
    pub(crate) is_too_wide: bool,
}

impl Screen {
    fn of(written: &[u8], (columns, lines): (usize, usize)) -> Screen {
        let mut seen = Screen {
            lines: vec![vec![' '; columns]; lines],
            at: (0, 0),
            wraps: true,
            is_too_wide: false,
        };
        let text = String::from_utf8_lossy(written);
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\u{1b}' if letters.peek() == Some(&'[') => {
                    letters.next();
                    let mut parameters = String::new();
                    let last = loop {
                        match letters.next() {
                            Some(last @ '@'..='~') => break last,
                            Some(other) => parameters.push(other),
                            None => return seen,
                        }
                    };
                    seen.obey(&parameters, last);
                }
                '\r' => seen.at.1 = 0,
                '\n' => seen.break_line(),
                '\u{8}' => seen.at.1 = seen.at.1.saturating_sub(1),
                ' '.. => seen.put(letter),
                _ => {}
            }
        }
        seen
    }

    fn obey(&mut self, parameters: &str, last: char) {
        let numbers = parameters
            .split(';')
            .map(|number| number.parse().unwrap_or(1));
        let numbers: Vec<usize> = numbers.collect();
        match last {
            'H' => {
                self.at = (
                    numbers[0] - 1,
                    numbers.get(1).map_or(0, |column| column - 1),
                )
            }
            // The other screen is left; the cursor is where it was before, which is not kept here.
            'l' if parameters == "?1049" => self.at = (0, 0),
            'l' | 'h' if parameters == "?7" => self.wraps = last == 'h',
            'A' => self.at.0 = self.at.0.saturating_sub(numbers[0]),
            // From the cursor on, unless it is told otherwise.
            'J' if parameters.is_empty() || parameters == "0" => {
                let (line, column) = self.at;
                self.is_too_wide &= line > 0;
                for (at, below) in self.lines.iter_mut().enumerate().skip(line) {
                    let from = if at == line { column } else { 0 };
                    below.iter_mut().skip(from).for_each(|letter| *letter = ' ');
                }
            }
            'J' => {
                // What was drawn for another size is gone.
                self.is_too_wide = false;
                self.lines.iter_mut().for_each(|line| line.fill(' '));
            }
            'K' => {
                let from = self.at.1;
                if let Some(line) = self.lines.get_mut(self.at.0) {
                    line.iter_mut().skip(from).for_each(|letter| *letter = ' ');
                }
            }
            _ => {}
        }
    }

    fn break_line(&mut self) {
        if self.at.0 + 1 < self.lines.len() {
            self.at.0 += 1;
        } else if !self.lines.is_empty() {
            let columns = self.lines.remove(0).len();
            self.lines.push(vec![' '; columns]);
        }
    }

    fn put(&mut self, letter: char) {
        let columns = self.lines.first().map_or(0, Vec::len);
        if self.at.1 >= columns {
            self.is_too_wide = true;
            if self.wraps {
                self.break_line();
                self.at.1 = 0;
            }
        }
        let line = self.lines.get_mut(self.at.0);
        if let Some(place) = line.and_then(|line| line.get_mut(self.at.1)) {
            *place = letter;
        }
        self.at.1 += 1;
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        self.lines().join("\n")
    }

    /// Its lines, without the spaces at their ends.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = |line: &Vec<char>| line.iter().collect::<String>().trim_end().to_owned();
        self.lines.iter().map(text).collect()
    }

    /// The line that holds a word.
    pub(crate) fn line_with(&self, word: &str) -> Option<String> {
        self.lines().into_iter().find(|line| line.contains(word))
    }
}
