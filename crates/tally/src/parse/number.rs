//! Decimal numbers.

/// Powers of ten that a double holds exactly, as far as they are used.
const TENS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// A number as text, without spaces. It may be infinite; of no number there is `None`.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
    short(text).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
}

/// A number of at most 15 digits, without an exponent: digits and the power of ten are exact as doubles, so that
/// their quotient is the nearest double.
fn short(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let (mut whole, mut point) = (0_u64, None);
    for (place, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => whole = whole * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(place),
            _ => return None,
        }
    }
    let fraction = match point {
        // A point alone, or none that leaves 15 digits.
        None if digits.len() > 15 => return None,
        Some(_) if digits.len() == 1 => return None,
        None => 0,
        Some(place) => digits.len() - place - 1,
    };
    let value = whole as f64 / TENS[fraction];
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_number_is_none() {
        for wrong in ["", "-", ".", "1..2", "1,5", "x", "0x10", "--1", " 1"] {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(number(b"1e3"), Some(1000.0));
        assert_eq!(
            number(b"12345678901234567890"),
            Some(12_345_678_901_234_567_890.0)
        );
    }

    proptest! {
        #[test]
        fn numbers_are_the_nearest_doubles(text in "-?[0-9]{0,12}\\.?[0-9]{0,12}(e-?[0-9]{1,2})?") {
            prop_assert_eq!(number(text.as_bytes()), text.parse::<f64>().ok());
        }
    }
}
