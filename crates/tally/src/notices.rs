//! Notices: printed on standard error, or above the screen while it is shown.

use std::sync::{Mutex, PoisonError};

/// Lines that the screen has not shown; `None` without a screen.
static PENDING_LINES: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Prints a notice, or keeps it for the screen.
pub(crate) fn report(text: &str) {
    match &mut *PENDING_LINES.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(waiting) => waiting.push(text.to_owned()),
        None => ui::context::notice(text),
    }
}

/// Returns the notices since the last call. From the first call on, notices are kept until the next call.
pub(crate) fn take() -> Vec<String> {
    let mut waiting = PENDING_LINES.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.replace(Vec::new()).unwrap_or_default()
}

/// Returns the kept notices; from now on, notices are printed at once.
pub(crate) fn end() -> Vec<String> {
    let mut waiting = PENDING_LINES.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.take().unwrap_or_default()
}
