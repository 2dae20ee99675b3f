//! Messages of the threads to the gathering thread.

use crate::job::EngineError;
use crate::tally::Flows;

/// Work of a thread within a window.
pub(super) struct ThreadWindow {
    pub(super) index: usize,
    pub(super) ticks: u64,
    pub(super) flows: Flows,
    pub(super) busy_share: f64,
}

/// Last message of a thread.
pub(super) struct ThreadEnd {
    pub(super) part: ThreadWindow,
    pub(super) ops: u64,
    pub(super) ticks: u64,
}

pub(super) enum Message {
    Begin,
    Window {
        thread: usize,
        part: Box<ThreadWindow>,
    },
    End {
        thread: usize,
        end: Result<Box<ThreadEnd>, EngineError>,
    },
}
