//! Times of events.

use jiff::Timestamp;

use crate::level::{MAX_TIME, Seconds};

/// Seconds since 1970 of a number in seconds, milli-, micro- or nanoseconds; its size decides the unit. Negative if it
/// is out of range.
pub(super) fn of_number(value: f64) -> Seconds {
    let (mut seconds, latest) = (value, MAX_TIME as f64);
    for _ in 0..3 {
        if seconds < latest {
            break;
        }
        seconds /= 1000.0;
    }
    // NaN is out of range too.
    if (0.0..latest).contains(&seconds) {
        seconds as Seconds
    } else {
        -1
    }
}

/// Seconds since 1970 of a time in RFC 3339.
pub(super) fn of_text(text: &str) -> Option<Seconds> {
    let at: Timestamp = text.parse().ok()?;
    Some(at.as_second())
}
