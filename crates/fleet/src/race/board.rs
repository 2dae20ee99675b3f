//! The live table of a race, for who watches it on a terminal: where it stands, the leaders of each group, and
//! what has changed last. The others are counted.
//!
//! It is drawn in place on standard error, below what was there, and asks nothing of the terminal that would
//! have to be put back later: no other screen, no hidden cursor, no other mode than while it is written. When it
//! goes, the cursor is where the table began.

mod picture;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use terminal_size::terminal_size_of;

use picture::Now;
use ui::progress;

pub(super) use picture::Picture;

/// How often the table is drawn while a round lasts.
const EVERY: Duration = Duration::from_millis(500);
/// A letter beyond the last column starts no line (DECAWM): letters may be wider than one column, and a line
/// that became two would not be counted.
const NO_WRAP: &str = "\u{1b}[?7l";
/// Lines are wrapped as before.
const WRAP: &str = "\u{1b}[?7h";
/// The size of a terminal that does not say it.
const SIZE: (usize, usize) = (80, 24);

/// The part of a terminal on which something is drawn again and again.
pub(super) struct Screen<W: Write> {
    out: W,
    /// How many lines are drawn.
    drawn: usize,
}

impl<W: Write> Screen<W> {
    /// Nothing is drawn yet.
    pub(super) fn on(out: W) -> Screen<W> {
        Screen { out, drawn: 0 }
    }

    /// Draws these lines in place of those that are there.
    fn draw(&mut self, lines: &[String]) {
        let mut text = self.back();
        text.push_str(NO_WRAP);
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(WRAP);
        self.drawn = lines.len();
        self.put(&text);
    }

    /// Takes them away, so that something else can be said.
    fn hide(&mut self) {
        if self.drawn > 0 {
            let text = self.back();
            self.drawn = 0;
            self.put(&text);
        }
    }

    /// Goes to where the first line began, and clears all from there on (ECMA-48: CUU, CR, ED).
    fn back(&self) -> String {
        match self.drawn {
            0 => String::new(),
            lines => format!("\u{1b}[{lines}A\r\u{1b}[J"),
        }
    }

    fn put(&mut self, text: &str) {
        // With standard error closed there is nobody to show it to.
        let _ = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        self.hide();
    }
}

/// The table on standard error.
pub(super) struct Board {
    picture: Picture,
    screen: Screen<io::Stderr>,
    began: Instant,
    /// When it is drawn the next time.
    next: Instant,
}

impl Board {
    /// A table, if somebody watches on a terminal that obeys.
    pub(super) fn new(watched: bool, picture: impl FnOnce() -> Picture) -> Option<Board> {
        let now = Instant::now();
        (watched && progress::is_drawn()).then(|| Board {
            picture: picture(),
            screen: Screen::on(io::stderr()),
            began: now,
            next: now,
        })
    }

    /// What it shows.
    pub(super) fn picture(&mut self) -> &mut Picture {
        self.next = Instant::now();
        &mut self.picture
    }

    /// Draws it where that is due: in round `round` so many of `hosts` have been measured.
    pub(super) fn tick(&mut self, round: usize, hosts: usize, measured: usize) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        let size = terminal_size_of(io::stderr()).map_or(SIZE, |(width, height)| {
            (usize::from(width.0), usize::from(height.0))
        });
        let now = Now {
            round,
            elapsed: self.began.elapsed(),
            hosts,
            measured,
        };
        // The cursor stands on the line below, and a line that fills the last column may wrap.
        let room = (size.0.saturating_sub(1), size.1.saturating_sub(1));
        self.screen.draw(&self.picture.lines(now, room));
    }

    /// Takes it away until the next time, so that something else can be said.
    pub(super) fn hide(&mut self) {
        self.next = Instant::now();
        self.screen.hide();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_is_left_when_it_goes() {
        let mut written = Vec::new();
        {
            let mut screen = Screen::on(&mut written);
            screen.draw(&["a".to_owned(), "b".to_owned()]);
            screen.draw(&["c".to_owned()]);
        }
        let text = String::from_utf8(written).unwrap();
        let drawn = |lines: &str| format!("{NO_WRAP}{lines}{WRAP}");
        let (first, second) = (drawn("a\nb\n"), drawn("c\n"));
        let expected = format!("{first}\u{1b}[2A\r\u{1b}[J{second}\u{1b}[1A\r\u{1b}[J");
        assert_eq!(text, expected);
    }
}
