//! Times of events.

use jiff::Timestamp;

use crate::level::{MAX_TIME, Seconds};

/// Seconds of a number since 1970, in the unit that its size tells: seconds, milli-, micro- or nanoseconds.
pub(super) fn of_number(value: f64) -> Seconds {
    let (mut seconds, latest) = (value, MAX_TIME as f64);
    for _ in 0..3 {
        if seconds < latest {
            break;
        }
        seconds /= 1000.0;
    }
    // What is out of range, also NaN, is so afterwards too.
    if (0.0..latest).contains(&seconds) {
        seconds as Seconds
    } else {
        -1
    }
}

/// Seconds of a time in RFC 3339.
pub(super) fn of_text(text: &str) -> Option<Seconds> {
    let at: Timestamp = text.parse().ok()?;
    Some(at.as_second())
}
