//! The loop of the screen: what is new and which keys were pressed, a picture, and waiting for more.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::model::{Effect, Model};
use super::terminal::Terminal;
use crate::views::screen::draw;

/// How often it is looked whether the shell has given the terminal back.
const AWAY: Duration = Duration::from_millis(500);

/// Where frames come from.
pub(super) trait IntervalSource {
    /// Gives the model what is due. Whether there was something, and how long until there is more; `None`
    /// where that is not known.
    fn feed(&mut self, model: &mut Model) -> (bool, Option<Duration>);

    /// What can be read when there is something new.
    fn bell(&self) -> Option<BorrowedFd<'_>>;

    /// Does what a key asks of a recording.
    fn obey(&mut self, effect: Effect, model: &mut Model);
}

/// Shows what the feed gives, until the flag is raised, the person quits or the terminal is gone. The
/// terminal is put back in each case.
///
/// # Errors
/// When the terminal cannot be waited for.
pub(super) fn run(
    mut terminal: Terminal,
    model: &mut Model,
    feed: &mut dyn IntervalSource,
    interrupt: &AtomicBool,
) -> io::Result<()> {
    let mut is_stale = true;
    while !interrupt.load(Relaxed) {
        let (is_new, mut wait) = feed.feed(model);
        is_stale |= is_new;
        if !terminal.is_taken() {
            if terminal.is_foreground() {
                terminal.take_over()?;
                is_stale = true;
            } else {
                wait = Some(wait.map_or(AWAY, |wait| wait.min(AWAY)));
            }
        }
        if terminal.has_new_size() {
            is_stale = true;
        }
        // A picture that a slow terminal has not taken yet is not followed by another: the next one shows
        // how it is then.
        if is_stale && terminal.is_ready() {
            let mut picture = draw(model, terminal.size(), terminal.style());
            model.set_page_rows(picture.page_rows);
            model.scroll = model.scroll.min(picture.furthest);
            terminal.show(std::mem::take(&mut picture.lines));
            is_stale = false;
        }
        let heard = terminal.wait(feed.bell(), wait)?;
        for key in heard.keys {
            is_stale = true;
            match model.press(key) {
                Effect::None => {}
                Effect::Quit => return Ok(()),
                Effect::Suspend => terminal.suspend()?,
                effect => feed.obey(effect, model),
            }
        }
        if heard.is_gone {
            return Ok(());
        }
    }
    Ok(())
}
