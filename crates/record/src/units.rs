//! Units as types, so that bytes are not added to nanoseconds, and how they are parsed and printed.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A number of bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A span of time in nanoseconds. 64 bits hold 584 years.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// Error: a text is not a size or a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseUnitError {
    /// The text is not a number followed by a known unit.
    #[error("'{0}' is not a size; write a number with k, M, G or T behind it, such as 16k or 2GiB")]
    Size(String),
    /// The text is not a number followed by a known unit of time.
    #[error(
        "'{0}' is not a duration; write a number with ns, us, ms, s, m, h or d behind it, such as \
         30s or 5m"
    )]
    Duration(String),
    /// The value does not fit 64 bits.
    #[error("'{0}' is too large")]
    TooLarge(String),
}

impl Bytes {
    /// 1 KiB.
    pub const KIB: Bytes = Bytes(1 << 10);
    /// 1 MiB.
    pub const MIB: Bytes = Bytes(1 << 20);
    /// 1 GiB.
    pub const GIB: Bytes = Bytes(1 << 30);

    /// `n` kibibytes.
    pub const fn kib(n: u64) -> Bytes {
        Bytes(n << 10)
    }

    /// `n` mebibytes.
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }

    /// `n` gibibytes.
    pub const fn gib(n: u64) -> Bytes {
        Bytes(n << 30)
    }

    /// The size without rounding, for messages in which each byte matters: `4 KiB`, `1.5 GiB`, `4097 bytes`.
    pub fn exact(self) -> String {
        let shown = self.to_string();
        match shown.parse() {
            Ok(back) if self == back => shown,
            _ => format!("{} bytes", self.0),
        }
    }

    /// The largest multiple of `unit` that is not larger.
    #[must_use]
    pub const fn round_down(self, unit: Bytes) -> Bytes {
        Bytes(self.0 - self.0 % unit.0)
    }
}

impl Nanos {
    /// Whole seconds.
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs * 1_000_000_000)
    }

    /// Seconds, with a fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}

macro_rules! arithmetic {
    ($unit:ty) => {
        impl Add for $unit {
            type Output = Self;
            /// Saturates: a damaged log may hold any value.
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }
        impl Sub for $unit {
            type Output = Self;
            /// Saturates: a counter that decreased yields zero, not an overflow.
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }
    };
}
arithmetic!(Bytes);
arithmetic!(Nanos);

/// True if a size or a duration has a unit, or is 0, which needs none. Where values are usually larger than bytes or
/// seconds, a bare number is easily meant in another unit.
pub fn has_unit(text: &str) -> bool {
    match split(text) {
        Some((number, unit)) => !unit.is_empty() || number == 0.0,
        // Invalid text is left to the parser, which reports it.
        None => true,
    }
}

/// Splits a text such as "16k" into its number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

fn to_u64(value: f64, text: &str) -> Result<u64, ParseUnitError> {
    if value.is_finite() && value < u64::MAX as f64 {
        Ok(value.round() as u64)
    } else {
        Err(ParseUnitError::TooLarge(text.to_owned()))
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    /// Parses `4096`, `16k`, `1M`, `2GiB`, `1.5T`: units are powers of two, in upper or lower case.
    fn from_str(text: &str) -> Result<Bytes, ParseUnitError> {
        let bad = || ParseUnitError::Size(text.to_owned());
        let (number, unit) = split(text).ok_or_else(bad)?;
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            "t" | "tb" | "tib" => 40,
            "p" | "pb" | "pib" => 50,
            _ => return Err(bad()),
        };
        to_u64(number * (1_u64 << shift) as f64, text).map(Bytes)
    }
}

impl FromStr for Nanos {
    type Err = ParseUnitError;

    /// Parses `250us`, `5ms`, `30s`, `5m`, `2h`, `1d`; a bare number is seconds.
    fn from_str(text: &str) -> Result<Nanos, ParseUnitError> {
        let bad = || ParseUnitError::Duration(text.to_owned());
        let (number, unit) = split(text).ok_or_else(bad)?;
        let nanos_each = match unit.to_ascii_lowercase().as_str() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "" | "s" | "sec" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            _ => return Err(bad()),
        };
        to_u64(number * nanos_each, text).map(Nanos)
    }
}

impl fmt::Display for Bytes {
    /// Shown in the largest binary unit of which there is at least one, such as `1.5 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let power = (self.0.max(1).ilog2() / 10) as usize;
        let value = self.0 as f64 / (1_u64 << (10 * power)) as f64;
        if value.fract() == 0.0 || power == 0 {
            f.pad(&format!("{value:.0} {}", UNITS[power]))
        } else {
            f.pad(&format!("{value:.1} {}", UNITS[power]))
        }
    }
}

impl fmt::Display for Nanos {
    /// Shown with three significant digits in a suitable unit, such as `412 us`, `3.07 ms`, `12.5 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return f.pad(&format!("{} ns", self.0)),
            1_000..1_000_000 => (nanos / 1e3, "us"),
            1_000_000..1_000_000_000 => (nanos / 1e6, "ms"),
            1_000_000_000..120_000_000_000 => (nanos / 1e9, "s"),
            120_000_000_000..7_200_000_000_000 => (nanos / 60e9, "min"),
            _ => (nanos / 3600e9, "h"),
        };
        let digits = match value {
            v if v < 9.995 => 2,
            v if v < 99.95 => 1,
            _ => 0,
        };
        f.pad(&format!("{value:.digits$} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_in_either_case() {
        for (text, bytes) in [
            ("4096", 4096),
            ("16k", 16 << 10),
            ("16K", 16 << 10),
            ("1M", 1 << 20),
            ("2GiB", 2 << 30),
            ("1.5g", 3 << 29),
            ("1 TiB", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "k", "16x", "-1", "1e3", "16 k k"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert!(matches!(
            "99999999999P".parse::<Bytes>(),
            Err(ParseUnitError::TooLarge(_))
        ));
    }

    #[test]
    fn durations_take_the_usual_units_and_a_bare_number_is_seconds() {
        for (text, nanos) in [
            ("8", 8_000_000_000),
            ("250us", 250_000),
            ("5ms", 5_000_000),
            ("0.5s", 500_000_000),
            ("5m", 300_000_000_000),
            ("2h", 7_200_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
        }
        assert!("5 parsecs".parse::<Nanos>().is_err());
    }

    #[test]
    fn a_bare_number_has_no_unit_unless_it_is_nothing() {
        for (text, has) in [
            ("125", false),
            (" 1.5 ", false),
            ("0", true),
            ("0.0", true),
            ("125B", true),
            ("125 MiB", true),
            ("5ms", true),
            ("fast", true),
        ] {
            assert_eq!(has_unit(text), has, "{text}");
        }
    }

    #[test]
    fn exact_sizes_are_parsed_as_they_were() {
        for (bytes, text) in [
            (0, "0 B"),
            (4096, "4 KiB"),
            (4097, "4097 bytes"),
            (1023, "1023 B"),
            (3 << 29, "1.5 GiB"),
            ((1 << 30) - 1, "1073741823 bytes"),
            ((1 << 30) + 4096, "1073745920 bytes"),
            (u64::MAX, "18446744073709551615 bytes"),
        ] {
            assert_eq!(Bytes(bytes).exact(), text);
        }
        for bytes in (0..1 << 22).step_by(517) {
            let shown = Bytes(bytes).exact();
            let parsed = shown.trim_end_matches("ytes").parse();
            assert_eq!(parsed, Ok(Bytes(bytes)), "{shown}");
        }
    }

    #[test]
    fn display_chooses_the_unit() {
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes::kib(16).to_string(), "16 KiB");
        assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
        assert_eq!(Nanos(412_345).to_string(), "412 us");
        assert_eq!(Nanos(3_071_000).to_string(), "3.07 ms");
        assert_eq!(Nanos(999).to_string(), "999 ns");
        assert_eq!(Nanos::from_secs(90).to_string(), "90.0 s");
    }
}
