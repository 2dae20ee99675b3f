//! Connection of the screen's state with the source of its frames.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ui::screen::{App, Capabilities, Key, KeyResult};

use super::draw::draw;
use super::model::{KeyEffect, Model};

/// A source of frames.
pub(super) trait IntervalSource {
    /// Passes due updates to the model. Returns true if there were any, and the time until the next one; `None` where
    /// it is not known.
    fn update(&mut self, model: &mut Model) -> (bool, Option<Duration>);

    /// A descriptor that becomes readable when there are updates.
    fn wake_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Applies a key's effect to a recording.
    fn apply(&mut self, effect: KeyEffect, model: &mut Model);
}

/// A model on the screen, with its source of frames.
pub(super) struct ShownModel<'a> {
    pub(super) model: &'a mut Model,
    pub(super) source: &'a mut dyn IntervalSource,
}

impl App for ShownModel<'_> {
    fn update(&mut self) -> io::Result<(bool, Option<Duration>)> {
        Ok(self.source.update(self.model))
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.source.wake_fd()
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer, capabilities: Capabilities) {
        let view = draw(self.model, area, buffer, capabilities);
        self.model.set_page_rows(view.page_rows);
        self.model.scroll = self.model.scroll.min(view.furthest);
    }

    fn press(&mut self, key: Key) -> KeyResult {
        match self.model.press(key) {
            KeyEffect::None => KeyResult::Continue,
            KeyEffect::Quit => KeyResult::Quit,
            KeyEffect::Suspend => KeyResult::Suspend,
            effect => {
                self.source.apply(effect, self.model);
                KeyResult::Continue
            }
        }
    }
}
