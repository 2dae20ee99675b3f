//! Rates and spans of time as words.
//!
//! Of a time there are three forms: [`span`] where it is not known to the second, such as how long is left;
//! [`duration`] for what was measured, in three digits; and [`compact`] or, of a latency, [`compact_latency`] where
//! columns are few. Other latencies are in [`crate::format`].

use std::time::Duration;

use record::Nanos;

use crate::format::number;

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

/// A time that was measured, in three digits: `412 us`, `12.5 s`, `5.00 min`.
pub fn duration(seconds: f64) -> String {
    Nanos((seconds.max(0.0) * 1e9) as u64).to_string()
}

/// A latency in at most five columns: `830µs`, `1.2ms`, `12ms`, `3.4s`.
pub fn compact_latency(seconds: f64) -> String {
    match seconds {
        s if s < 0.999_5e-3 => format!("{:.0}µs", s * 1e6),
        s if s < 9.95e-3 => format!("{:.1}ms", s * 1e3),
        s if s < 0.999_5 => format!("{:.0}ms", s * 1e3),
        s if s < 99.95 => format!("{s:.1}s"),
        s if s < 9_999.5 => format!("{s:.0}s"),
        s => format!("{:.0}h", s / 3600.0),
    }
}

/// A time in at most five columns, as on a clock: `2.3s`, `42s`, `3m07s`, `2h05m`, `3d04h`.
pub fn compact(time: Duration) -> String {
    match time.as_secs_f64() {
        tenths if tenths < 9.95 => format!("{tenths:.1}s"),
        seconds => {
            let s = seconds.ceil() as u64;
            match s {
                ..60 => format!("{s}s"),
                60..3600 => format!("{}m{:02}s", s / 60, s % 60),
                3600..86_400 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
                _ => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
            }
        }
    }
}

/// A time as it may be given again as an argument: in the largest unit in which it is a whole number.
pub fn as_argument(span: Nanos) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let fits = UNITS.iter().find(|(unit, _)| span.0.is_multiple_of(*unit));
    let (unit, word) = fits.copied().unwrap_or((1, "ns"));
    format!("{}{word}", span.0 / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_times_are_as_on_a_clock() {
        for (seconds, text) in [
            (42, "42s"),
            (187, "3m07s"),
            (3725, "1h02m"),
            (7500, "2h05m"),
            (273_600, "3d04h"),
        ] {
            assert_eq!(compact(Duration::from_secs(seconds)), text);
        }
        assert_eq!(compact(Duration::from_millis(2340)), "2.3s");
    }

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
