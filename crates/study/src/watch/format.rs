//! Formats of figures in the sentences of events.

use record::Nanos;

/// Seconds as a time with its unit.
pub(super) fn time(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9).round().max(0.0) as u64)
}

/// Bytes a second, in MiB.
pub(super) fn rate(bytes: f64) -> String {
    format!("{} MiB/s", digits(bytes / 1_048_576.0))
}

/// A number with three significant digits.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(time(0.001_234).to_string(), "1.23 ms");
        assert_eq!(rate(131_072_000.0), "125 MiB/s");
        assert_eq!(digits(12.345), "12.3");
        assert_eq!(percent(0.987), "99 %");
    }
}
