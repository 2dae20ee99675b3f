//! Updates for the screen.

use std::sync::Arc;

use ledger::Mark;
use study::watch::EventChange;

use super::frame::Frame;

/// Update of the screen.
#[derive(Clone, Debug)]
pub(crate) enum Update {
    /// An interval, with the changes of findings in it.
    Frame(Arc<Frame>, Vec<EventChange>),
    /// A sentence about data that is missing, with the reason.
    Note(String),
    /// True while the data shown is also kept in the ledger.
    Recording(bool),
    /// Recently set marks, in order of time.
    Marks(Vec<Mark>),
}
