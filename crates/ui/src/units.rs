//! Rates and spans of time as words.

use crate::words::number;

/// A rate in bytes a second.
pub fn rate(bytes_per_s: f64) -> String {
    format!("{} MiB/s", number(bytes_per_s / (1 << 20) as f64))
}

/// A span of time that is not known to the second.
pub fn span(seconds: f64) -> String {
    let minutes = seconds / 60.0;
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else if minutes < 90.0 {
        format!("{minutes:.0} min")
    } else if minutes < 48.0 * 60.0 {
        format!("{:.1} h", minutes / 60.0)
    } else {
        format!("{:.1} days", minutes / 60.0 / 24.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_unit_that_suits() {
        for (seconds, words) in [
            (59.6, "60 s"),
            (120.0, "2 min"),
            (3600.0, "60 min"),
            (7200.0, "2.0 h"),
            (259_200.0, "3.0 days"),
        ] {
            assert_eq!(span(seconds), words);
        }
        assert_eq!(rate(131_072_000.0), "125 MiB/s");
    }
}
