//! Lines that are drawn in place again and again, below what was there. They ask nothing of the terminal that
//! would have to be put back later: no other screen, no hidden cursor, no other mode than while they are written.

use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::{Rect, Size};
use ratatui_core::style::{Color, Style};
use ratatui_core::text::{Line, Text};
use ratatui_core::widgets::Widget as _;
use ratatui_crossterm::IntoCrossterm as _;
use ratatui_crossterm::crossterm::cursor::MoveUp;
use ratatui_crossterm::crossterm::queue;
use ratatui_crossterm::crossterm::style::{ContentStyle, Print, PrintStyledContent};
use ratatui_crossterm::crossterm::terminal::{Clear, ClearType, DisableLineWrap, EnableLineWrap};

use super::output::TerminalOutput;
use super::text::Capabilities;

/// The time that a terminal may take until the lines are gone.
const HIDE_TIMEOUT: Duration = Duration::from_millis(200);

/// The part of a terminal on which lines are drawn in place. They go with it.
pub struct Inline {
    out: TerminalOutput,
    capabilities: Capabilities,
    /// The number of lines that are drawn.
    drawn: u16,
}

impl Inline {
    /// Lines on standard error; nothing is drawn yet.
    ///
    /// # Errors
    /// When the terminal cannot be opened.
    pub fn on_stderr() -> io::Result<Inline> {
        Ok(Inline::on(TerminalOutput::open(2, io::stderr().as_fd())?))
    }

    /// Lines on standard output; nothing is drawn yet.
    ///
    /// # Errors
    /// When the terminal cannot be opened.
    pub fn on_stdout() -> io::Result<Inline> {
        Ok(Inline::on(TerminalOutput::open(1, io::stdout().as_fd())?))
    }

    fn on(out: TerminalOutput) -> Inline {
        Inline {
            out,
            capabilities: Capabilities::of_process(),
            drawn: 0,
        }
    }

    /// The columns and lines that there is room for: the cursor is on the line below, and a line that fills
    /// the last column may wrap.
    pub fn room(&self) -> Size {
        let size = self.out.size();
        Size {
            width: size.width.saturating_sub(1),
            height: size.height.saturating_sub(1),
        }
    }

    /// Draws these lines instead of those that are there, unless the terminal has not taken those yet.
    pub fn draw(&mut self, lines: Vec<Line<'static>>) {
        self.out.flush();
        if self.out.is_behind() {
            return;
        }
        let room = self.room();
        let lines = lines.into_iter().map(|line| self.capabilities.line(line));
        let text = Text::from_iter(lines.take(room.height.into()));
        let mut buffer = Buffer::empty(Rect::new(0, 0, room.width, text.height() as u16));
        text.render(buffer.area, &mut buffer);
        // A write to memory does not fail.
        let _ = self.erase().and_then(|()| write(&mut self.out, &buffer));
        self.drawn = buffer.area.height;
        self.out.flush();
    }

    /// Takes the lines away, so that something else can be written.
    pub fn hide(&mut self) {
        let _ = self.erase();
        self.drawn = 0;
        self.out.drain(HIDE_TIMEOUT);
    }

    /// Leaves the lines where they are, and draws those to come below them.
    pub fn keep(&mut self) {
        self.drawn = 0;
        self.out.drain(HIDE_TIMEOUT);
    }

    /// Goes to where the first line began, and clears all from there on.
    fn erase(&mut self) -> io::Result<()> {
        match self.drawn {
            0 => Ok(()),
            lines => queue!(
                self.out,
                MoveUp(lines),
                Print('\r'),
                Clear(ClearType::FromCursorDown)
            ),
        }
    }
}

impl Drop for Inline {
    fn drop(&mut self) {
        self.hide();
    }
}

/// Writes the rows of a buffer as lines. A letter beyond the last column starts no line meanwhile: a line that became
/// two would not be counted.
fn write(out: &mut TerminalOutput, buffer: &Buffer) -> io::Result<()> {
    queue!(out, DisableLineWrap)?;
    let blank = Cell::default();
    for row in buffer.content.chunks(usize::from(buffer.area.width).max(1)) {
        let end = row.iter().rposition(|cell| *cell != blank);
        let cells = &row[..end.map_or(0, |last| last + 1)];
        for piece in cells.chunk_by(|a, b| a.style() == b.style()) {
            let text: String = piece.iter().map(Cell::symbol).collect();
            let (modifier, colour) = (piece[0].modifier, piece[0].fg);
            let style = Style {
                fg: (colour != Color::Reset).then_some(colour),
                ..Style::new().add_modifier(modifier)
            };
            let style: ContentStyle = style.into_crossterm();
            queue!(out, PrintStyledContent(style.apply(text)))?;
        }
        queue!(out, Print('\n'))?;
    }
    queue!(out, EnableLineWrap)?;
    out.flush();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::screen::{Pieces as _, TextStyle};

    /// Everything that a screen writes to a file.
    fn written(draw: impl FnOnce(&mut Inline)) -> String {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("terminal");
        let mut inline = Inline::on(TerminalOutput::of(File::create(&path).unwrap()));
        inline.capabilities = Capabilities {
            unicode: true,
            colour: true,
        };
        draw(&mut inline);
        drop(inline);
        fs::read_to_string(path).unwrap()
    }

    fn lines(texts: &[&str]) -> Vec<Line<'static>> {
        texts
            .iter()
            .map(|text| Line::raw(text.to_string()))
            .collect()
    }

    #[test]
    fn nothing_of_it_is_left_when_it_goes() {
        let text = written(|inline| {
            inline.draw(lines(&["a", "b"]));
            inline.draw(lines(&["c"]));
        });
        let drawn = |lines: &str| format!("\u{1b}[?7l{lines}\u{1b}[?7h");
        let (first, second) = (drawn("a\nb\n"), drawn("c\n"));
        let expected = format!("{first}\u{1b}[2A\r\u{1b}[J{second}\u{1b}[1A\r\u{1b}[J");
        assert_eq!(text, expected);
    }

    #[test]
    fn kept_lines_stay() {
        let text = written(|inline| {
            inline.draw(lines(&["a"]));
            inline.keep();
        });
        assert_eq!(text, "\u{1b}[?7la\n\u{1b}[?7h");
    }

    #[test]
    fn styles_end_with_their_pieces_and_lines_with_their_columns() {
        let mut line = Line::of("grey", TextStyle::Faint);
        line.push(" plain", TextStyle::Plain);
        let text = written(|inline| {
            inline.draw(vec![line, Line::raw("x".repeat(200))]);
            inline.keep();
        });
        let first = text.lines().next().unwrap();
        assert!(first.contains("\u{1b}[2mgrey\u{1b}[0m plain"), "{first:?}");
        let second = text.lines().nth(1).unwrap();
        assert_eq!(second, "x".repeat(79));
    }
}
