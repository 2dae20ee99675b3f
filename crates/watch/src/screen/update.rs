//! News for the screen.

use std::sync::Arc;

use ledger::Mark;
use study::watch::EventChange;

use super::frame::Frame;

/// Something new to show.
#[derive(Clone, Debug)]
pub(crate) enum Update {
    /// An interval, and what became of findings in it.
    Frame(Arc<Frame>, Vec<EventChange>),
    /// A sentence: what cannot be seen, and why.
    Note(String),
    /// True while the data shown is also kept in the ledger.
    Recording(bool),
    /// Recently set marks, in order of time.
    Marks(Vec<Mark>),
}
