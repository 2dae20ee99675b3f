//! Lines about what happens: on standard error, or above the screen while there is one.

use std::sync::{Mutex, PoisonError};

/// Lines that the screen has not shown; `None` without a screen.
static PENDING_LINES: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Reports something that happened.
pub(crate) fn report(text: &str) {
    match &mut *PENDING_LINES.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(waiting) => waiting.push(text.to_owned()),
        None => ui::context::notice(text),
    }
}

/// Lines since the last call. From the first call on they wait for the next.
pub(crate) fn take() -> Vec<String> {
    let mut waiting = PENDING_LINES.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.replace(Vec::new()).unwrap_or_default()
}

/// Prints lines as they come from now on; returns those that waited.
pub(crate) fn end() -> Vec<String> {
    let mut waiting = PENDING_LINES.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.take().unwrap_or_default()
}
