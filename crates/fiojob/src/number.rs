//! Sizes, times and plain numbers, with fio's suffixes.

use crate::expression;
use crate::pair::{Amount, PerDirection};

/// Value of a suffix of a size. `k` and `kb` are `kb_base` bytes, and `kib` is the other base: fio intentionally has
/// them the wrong way round, since old job files mean 1024 by `k`.
pub(crate) fn size_unit(suffix: &str, kb_base: u64) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    let mut letters = suffix.chars();
    let power = match letters.next() {
        None => return Some(1),
        Some('b') if suffix == "b" => return Some(1),
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return None,
    };
    let base: u64 = match letters.as_str() {
        // fio compares all three letters, and treats `ki` as `k`.
        "" | "b" | "i" => kb_base,
        "ib" if kb_base == 1000 => 1024,
        "ib" => 1000,
        _ => return None,
    };
    base.checked_pow(power)
}

/// Value of a suffix of a time, in microseconds; a time without a suffix is in units of `plain` microseconds.
fn time_unit(suffix: &str, plain: u64) -> Option<u64> {
    const SECOND: u64 = 1_000_000;
    Some(match suffix.to_ascii_lowercase().as_str() {
        "" => plain,
        "us" | "usec" => 1,
        "ms" | "msec" => 1000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        "d" => 86_400 * SECOND,
        _ => return None,
    })
}

/// A whole number, optionally with a suffix, or an expression in parentheses.
///
/// # Errors
/// A sentence with the problem. fio uses the part of a number that it understands, and ignores the rest; disksmith
/// does not guess the intended number.
pub(crate) fn whole(text: &str, kb_base: u64) -> Result<u64, String> {
    let text = trimmed(text)?;
    positive(text, &|suffix| size_unit(suffix, kb_base))
}

/// A size, which may be a percentage.
///
/// # Errors
/// As for [`whole`].
pub(crate) fn amount(text: &str, kb_base: u64) -> Result<Amount, String> {
    match text.strip_suffix('%') {
        None => whole(text, kb_base).map(Amount::Bytes),
        Some(number) => match whole(number, kb_base)? {
            percent @ 0..=100 => Ok(Amount::Percent(percent)),
            percent => Err(format!("{percent} % is more than all")),
        },
    }
}

/// A time in microseconds. Without a suffix it is in seconds, and within parentheses in
/// microseconds.
///
/// # Errors
/// As for [`whole`].
pub(crate) fn time_us(text: &str) -> Result<u64, String> {
    let text = trimmed(text)?;
    let plain = if text.starts_with('(') { 1 } else { 1_000_000 };
    positive(text, &|suffix| time_unit(suffix, plain))
}

/// A value for reads and a value for writes: `8`, `8,4`, `,4` (reads unchanged) or `8,` (writes unchanged). A third
/// value, for trims, is validated and ignored here: [`crate::trims`] later uses it in place of the value for writes.
///
/// # Errors
/// As for [`whole`], or when there are more than three.
pub(crate) fn pair<T: Clone>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<PerDirection<Option<T>>, String> {
    let parts: Vec<&str> = text.split(',').collect();
    let one = |part: &&str| match part.is_empty() {
        true => Ok(None),
        false => read(part).map(Some),
    };
    let values: Vec<Option<T>> = parts.iter().map(one).collect::<Result<_, _>>()?;
    match &values[..] {
        [all @ Some(_)] => Ok(PerDirection {
            read: all.clone(),
            write: all.clone(),
        }),
        [read, write] | [read, write, _] => Ok(PerDirection {
            read: read.clone(),
            write: write.clone(),
        }),
        _ => Err(format!(
            "'{text}' is neither one value nor one each for reads, writes and trims"
        )),
    }
}

fn trimmed(text: &str) -> Result<&str, String> {
    if text.starts_with(|c: char| c.is_whitespace()) {
        return Err(format!(
            "there is a blank before '{}', behind which fio does not see its suffix; leave the \
             blank out",
            text.trim_start()
        ));
    }
    Ok(text)
}

fn positive(text: &str, unit: expression::Unit<'_>) -> Result<u64, String> {
    // Without parentheses only a number and its suffix are allowed.
    if !text.starts_with('(')
        && let Some(strange) = text.chars().find(|c| !c.is_ascii_alphanumeric())
    {
        return Err(format!(
            "'{text}' is not a number: '{strange}' does not belong in one; arithmetic must be in \
             parentheses"
        ));
    }
    let value = expression::evaluate(text, unit)?;
    u64::try_from(value).map_err(|_| match value < 0 {
        true => format!("'{text}' is below zero"),
        false => format!("'{text}' is too large a number"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes as fio 3.33 reads them with `--parse-only --debug=parse`.
    #[test]
    fn sizes_are_read_as_fio_reads_them() {
        for (text, kb_base, bytes) in [
            ("512", 1024, 512),
            ("512B", 1024, 512),
            ("2K", 1024, 2048),
            ("2kb", 1024, 2048),
            ("2Ki", 1024, 2048),
            ("2kib", 1024, 2000),
            ("1KiB", 1024, 1000),
            ("2mib", 1024, 2_000_000),
            ("2kib", 1000, 2048),
            ("2k", 1000, 2000),
            ("2ki", 1000, 2000),
            ("0x10", 1024, 16),
            ("(4k+1)", 1024, 4097),
        ] {
            assert_eq!(whole(text, kb_base), Ok(bytes), "{text} at {kb_base}");
        }
        assert_eq!(amount("50%", 1024), Ok(Amount::Percent(50)));
    }

    #[test]
    fn times_are_read_as_fio_reads_them() {
        for (text, us) in [
            ("10", 10_000_000),
            ("2m", 120_000_000),
            ("500ms", 500_000),
            ("1msec", 1000),
            ("1us", 1),
            ("2H", 7_200_000_000),
            ("1d", 86_400_000_000),
            ("(1s+500ms)", 1_500_000),
            ("(1500)", 1500),
        ] {
            assert_eq!(time_us(text), Ok(us), "{text}");
        }
    }

    #[test]
    fn what_fio_would_read_by_half_is_refused() {
        for text in [
            "", "4kq", "8*2", "1.5k", "1e3", "-4", "4 5", " 8k", "abc", "4k-8k", "(-1)", "0x",
        ] {
            assert!(whole(text, 1024).is_err(), "{text}");
        }
        for text in ["3min", "1.5", "-1", "10 s"] {
            assert!(time_us(text).is_err(), "{text}");
        }
        assert!(amount("101%", 1024).is_err());
    }

    #[test]
    fn a_pair_may_leave_a_part_as_it_was() {
        let read = |text: &str| whole(text, 1024);
        let of = |text: &str| pair(text, read).map(|pair| (pair.read, pair.write));
        assert_eq!(of("4k"), Ok((Some(4096), Some(4096))));
        assert_eq!(of("4k,8k"), Ok((Some(4096), Some(8192))));
        assert_eq!(of(",8k"), Ok((None, Some(8192))));
        assert_eq!(of("4k,"), Ok((Some(4096), None)));
        assert_eq!(of("4k,8k,16k"), Ok((Some(4096), Some(8192))));
        assert!(of("").is_err() && of("1,2,3,4").is_err());
    }
}
