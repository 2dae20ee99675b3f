//! The live table of a race on a terminal: its progress, the leaders of each group, and the latest changes. The other
//! hosts are only counted.
//!
//! It is redrawn in place on standard error ([`ui::screen::Inline`]).

mod view;

use std::time::{Duration, Instant};

use ui::progress;
use ui::screen::Inline;
use view::RoundProgress;

pub(super) use view::BoardView;

/// Interval at which the table is redrawn during a round.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);

/// The table on standard error.
pub(super) struct Board {
    view: BoardView,
    screen: Inline,
    began: Instant,
    /// Time of the next drawing.
    next: Instant,
}

impl Board {
    /// A table, if standard error is a terminal that supports it.
    pub(super) fn new(watched: bool, view: impl FnOnce() -> BoardView) -> Option<Board> {
        let now = Instant::now();
        let screen = (watched && progress::is_drawn()).then(Inline::on_stderr);
        Some(Board {
            screen: screen?.ok()?,
            view: view(),
            began: now,
            next: now,
        })
    }

    /// Content of the table.
    pub(super) fn view(&mut self) -> &mut BoardView {
        self.next = Instant::now();
        &mut self.view
    }

    /// Draws the table if that is due: `measured` of `hosts` have been measured in round `round`.
    pub(super) fn tick(&mut self, round: usize, hosts: usize, measured: usize) {
        if Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + DRAW_INTERVAL;
        let now = RoundProgress {
            round,
            elapsed: self.began.elapsed(),
            hosts,
            measured,
        };
        let lines = self.view.lines(now, self.screen.room());
        self.screen.draw(lines);
    }

    /// Removes the table until the next drawing, so that other messages can be shown.
    pub(super) fn hide(&mut self) {
        self.next = Instant::now();
        self.screen.hide();
    }
}
