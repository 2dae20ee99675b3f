//! Parses the figures in sysbench's text, in the formats of its versions.

use record::Bytes;

/// A figure, or an error as a clause.
pub(super) type Checked<T> = Result<T, String>;

/// True if the flags include O_DIRECT, by name, or in the number that 0.4 prints: 16384 on x86 (`fcntl.h`), which is
/// another flag on other architectures.
pub(super) fn is_direct(flags: &str) -> Option<bool> {
    const O_DIRECT_X86: u64 = 0o40000;
    match flags.parse::<u64>() {
        Ok(0) => Some(false),
        Ok(number) => (number & O_DIRECT_X86 != 0).then_some(true),
        Err(_) if flags.contains("direct") => Some(true),
        Err(_) => Some(false),
    }
}

/// Parses a percentile: `approx.  95 percentile` or `95th percentile`; `None` for another key.
pub(super) fn percentile(key: &str) -> Option<Checked<f64>> {
    let text = key.strip_suffix("percentile")?;
    let text = text.trim_start_matches("approx.").trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let percent = number(digits).and_then(|percent| match percent {
        p if p > 0.0 && p <= 100.0 => Ok(p),
        p => Err(format!("{p} is no percentile")),
    });
    Some(percent)
}

/// Parses a number that is not negative.
pub(super) fn number(text: &str) -> Checked<f64> {
    let text = text.trim();
    let number = text.parse::<f64>().ok();
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("'{text}' is not a number"))
}

/// Parses a whole number.
pub(super) fn whole<T: std::str::FromStr>(text: &str) -> Checked<T> {
    let text = text.trim();
    text.parse()
        .map_err(|_| format!("'{text}' is not a whole number"))
}

/// Parses a mean and a standard deviation: `7663.5000/68.50`.
pub(super) fn pair(text: &str) -> Checked<(f64, f64)> {
    match text.split_once('/') {
        Some((mean, stddev)) => Ok((number(mean)?, number(stddev)?)),
        None => Err(format!("'{text}' is not a mean and a deviation")),
    }
}

/// Parses a latency to nanoseconds: `0.0026s`, `2.58ms`, or milliseconds without a unit.
pub(super) fn nanos(text: &str) -> Checked<f64> {
    match text.strip_suffix("ms") {
        Some(text) => Ok(number(text)? * 1e6),
        None => match text.strip_suffix('s') {
            Some(text) => Ok(number(text)? * 1e9),
            None => Ok(number(text)? * 1e6),
        },
    }
}

/// Parses a size to bytes: `16Kb`, `1.5Gb`, `0b`, `16KiB`. Units are binary in every version.
pub(super) fn fine_size(text: &str) -> Checked<f64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "kb" | "kib" => 10,
        "mb" | "mib" => 20,
        "gb" | "gib" => 30,
        "tb" | "tib" => 40,
        _ => return Err(format!("'{text}' is not a size")),
    };
    Ok(number(digits)? * (1_u64 << shift) as f64)
}

/// Parses such a size, and truncates it to whole bytes.
pub(super) fn size(text: &str) -> Checked<Bytes> {
    fine_size(text).map(|bytes| Bytes(bytes as u64))
}
