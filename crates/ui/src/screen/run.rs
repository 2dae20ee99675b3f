//! The loop of a screen: new data and keys, a frame, and waiting for more.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::keys::Key;
use super::terminal::Terminal;
use super::text::Capabilities;

/// The interval at which it is checked whether the shell has given the terminal back.
const FOREGROUND_POLL: Duration = Duration::from_millis(500);

/// Action of the screen after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyResult {
    /// The screen continues.
    Continue,
    /// The screen ends.
    Quit,
    /// The shell gets the terminal until it continues the process.
    Suspend,
}

/// A screen: its state, and its layout.
pub trait App {
    /// Takes in what is due. Returns whether the state has changed, and the time until more is due; `None` where
    /// that is not known.
    ///
    /// # Errors
    /// Where there is no more to show.
    fn update(&mut self) -> io::Result<(bool, Option<Duration>)>;

    /// A descriptor that can be read when more is due.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Lays out its widgets.
    fn draw(&mut self, area: Rect, buffer: &mut Buffer, capabilities: Capabilities);

    /// Does what a key asks for.
    fn press(&mut self, key: Key) -> KeyResult;
}

/// Shows a screen until the flag is set, the user quits or the terminal is gone. The terminal is restored in each
/// case.
///
/// # Errors
/// When the terminal cannot be waited for, or those of [`App::update`].
pub fn run(mut terminal: Terminal, app: &mut dyn App, interrupt: &AtomicBool) -> io::Result<()> {
    let mut is_stale = true;
    while !interrupt.load(Relaxed) {
        let (is_new, mut wait) = app.update()?;
        is_stale |= is_new;
        if !terminal.is_taken() {
            if terminal.is_foreground() {
                terminal.take_over()?;
                is_stale = true;
            } else {
                wait = Some(wait.map_or(FOREGROUND_POLL, |wait| wait.min(FOREGROUND_POLL)));
            }
        }
        if terminal.has_new_size() {
            is_stale = true;
        }
        // While a slow terminal has not accepted a frame, no other is drawn: the next one shows the state at that
        // time.
        if is_stale && terminal.is_ready() {
            let capabilities = terminal.capabilities();
            terminal.show(|area, buffer| app.draw(area, buffer, capabilities))?;
            is_stale = false;
        }
        let input = terminal.wait(app.wake_fd(), wait)?;
        for key in input.keys {
            is_stale = true;
            match app.press(key) {
                KeyResult::Continue => {}
                KeyResult::Quit => return Ok(()),
                KeyResult::Suspend => terminal.suspend()?,
            }
        }
        if input.is_gone {
            return Ok(());
        }
    }
    Ok(())
}
