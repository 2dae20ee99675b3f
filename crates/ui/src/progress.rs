//! The bars that a person watches while something takes long. They go to standard error, and only to a
//! terminal.

use std::env;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use terminal_size::terminal_size_of;

/// Number of times a second that a bar is drawn at most.
const DRAWS_PER_S: u8 = 20;
/// Clears the line on which the cursor is, and goes to its beginning (ECMA-48: CR, EL).
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Bars below each other, or nothing where standard error is no terminal.
pub struct Bars {
    all: Option<MultiProgress>,
}

impl Bars {
    /// Bars, if standard error is a terminal.
    pub fn new(watched: bool) -> Bars {
        let target = ProgressDrawTarget::stderr;
        Bars {
            all: watched.then(|| MultiProgress::with_draw_target(target())),
        }
    }

    /// Adds a bar with a name before it, of so many steps; `None` where bars are not shown.
    pub fn add(&self, name: &str, steps: u64) -> Option<ProgressBar> {
        let all = self.all.as_ref()?;
        let bar = all.add(ProgressBar::new(steps));
        dress(&bar, "{prefix} [{bar:20}] {wide_msg}");
        bar.set_prefix(name.to_owned());
        Some(bar)
    }
}

/// A single bar, with no others below it. `length` is `None` if the amount of work is unknown.
pub fn alone(length: Option<u64>, template: &str) -> ProgressBar {
    let target = match is_drawn() {
        true => ProgressDrawTarget::term_like_with_hz(Box::new(Line::default()), DRAWS_PER_S),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(length, target);
    dress(&bar, template);
    bar
}

/// Sequence that takes a bar away for writers to standard error while there may be one; nothing where there
/// is none.
pub fn cleared() -> &'static str {
    match is_drawn() {
        true => CLEAR_LINE,
        false => "",
    }
}

/// True if standard error is a terminal that obeys.
pub fn is_drawn() -> bool {
    let obeys = env::var_os("TERM").is_some_and(|term| term != "dumb");
    obeys && io::stderr().is_terminal()
}

/// Standard error for one bar, which leaves the cursor at the beginning of its line. indicatif leaves it behind
/// the last column, where the `^C` that the terminal shows of Ctrl-C begins a new line; the bar, which is
/// cleared on the line of the cursor, would then stay.
#[derive(Debug, Default)]
struct Line {
    /// Text to write at once.
    waiting: Mutex<String>,
}

impl Line {
    fn add(&self, text: &str) -> io::Result<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_str(text);
        Ok(())
    }

    fn move_by(&self, count: usize, direction: char) -> io::Result<()> {
        match count {
            0 => Ok(()),
            _ => self.add(&format!("\x1b[{count}{direction}")),
        }
    }
}

impl TermLike for Line {
    fn width(&self) -> u16 {
        columns()
    }

    fn height(&self) -> u16 {
        terminal_size_of(io::stderr()).map_or(24, |(_, height)| height.0)
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        self.move_by(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.move_by(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.move_by(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        self.move_by(count, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.add(text)?;
        self.add("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.add(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add(CLEAR_LINE)
    }

    fn flush(&self) -> io::Result<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push('\r');
        let written = io::stderr().write_all(waiting.as_bytes());
        waiting.clear();
        written
    }
}

/// True where a bar leaves no room for the figures beside it.
pub fn is_narrow() -> bool {
    columns() < 60
}

/// Columns of standard error.
fn columns() -> u16 {
    terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0)
}

/// Gives a bar its style, by a template of indicatif.
pub fn dress(bar: &ProgressBar, template: &str) {
    // A template that is wrong would be found by every run on a terminal; the default does.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
}
