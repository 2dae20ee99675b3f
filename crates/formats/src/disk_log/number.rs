//! Numbers as iostat prints them.

/// A printed number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number {
    /// Value of the number. Not finite for `nan` and `inf`, which old versions print if a counter decreased.
    pub(crate) value: f64,
    /// Value in bytes of a unit after the number, as in `15.2M`; it overrides the unit of the header.
    pub(crate) unit: Option<f64>,
    /// Digits after the decimal point.
    pub(crate) decimals: usize,
}

impl Number {
    /// Maximum rounding error: half of the last digit.
    pub(crate) fn rounding(&self) -> f64 {
        0.5 * 10_f64.powi(-(self.decimals as i32))
    }
}

/// Parses a number with a decimal point or comma, and perhaps a percent sign or a unit after it. The units are powers
/// of 1024, as `iostat --human` prints them.
pub(crate) fn number(text: &str) -> Option<Number> {
    let bare = text.trim_start_matches(['-', '+']);
    if ["nan", "inf"]
        .iter()
        .any(|word| bare.eq_ignore_ascii_case(word))
    {
        return Some(Number {
            value: f64::NAN,
            unit: None,
            decimals: 0,
        });
    }
    let (digits, unit) = match text.chars().next_back()? {
        '0'..='9' => (text, None),
        '%' => (text.strip_suffix('%')?, None),
        's' => (text.strip_suffix('s')?, Some(512.0)),
        'B' => (text.strip_suffix('B')?, Some(1.0)),
        letter => match "kMGTP".find(letter) {
            Some(power) => (
                text.strip_suffix(letter)?,
                Some(1024_f64.powi(power as i32 + 1)),
            ),
            None => (text, None),
        },
    };
    let sign = if digits.starts_with('-') { -1.0 } else { 1.0 };
    let digits = digits.strip_prefix('-').unwrap_or(digits);
    let (whole, fraction) = digits.split_once(['.', ',']).unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || digits.len() > 40 {
        return None;
    }
    let value = decimal(whole, fraction)?;
    Some(Number {
        value: sign * value,
        unit,
        decimals: fraction.len(),
    })
}

/// The value of digits before and after a decimal point. With up to fifteen digits, it is the quotient of two integers
/// that a double holds exactly, which is the nearest double.
fn decimal(whole: &str, fraction: &str) -> Option<f64> {
    if whole.len() + fraction.len() > 15 {
        return format!("{whole}.{fraction}0").parse().ok();
    }
    let digits = whole.bytes().chain(fraction.bytes());
    let number = digits.fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(number as f64 / 10_f64.powi(fraction.len() as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_with_points_commas_units_and_percent_signs() {
        for (text, value, unit, decimals) in [
            ("0.00", 0.0, None, 2),
            ("17512,23", 17512.23, None, 2),
            ("829", 829.0, None, 0),
            ("10.2%", 10.2, None, 1),
            ("15.2M", 15.2, Some(1024.0 * 1024.0), 1),
            ("0,0k", 0.0, Some(1024.0), 1),
            ("3.0G", 3.0, Some(1024_f64.powi(3)), 1),
            ("4.0B", 4.0, Some(1.0), 1),
            ("-0.00", -0.0, None, 2),
        ] {
            let expected = Number {
                value,
                unit,
                decimals,
            };
            assert_eq!(number(text), Some(expected), "{text}");
        }
        assert!(number("-nan").unwrap().value.is_nan());
        for text in [
            "", "-", ".", "sda", "1e9", "1.2.3", "0x10", "k", "%", "1.2kk", "é", "+1",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
