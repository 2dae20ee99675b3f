//! Decimal numbers.

/// Powers of ten up to 10^15; a double holds each exactly.
const POWERS_OF_TEN: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// Parses a number without spaces. It may be infinite; `None` if the text is not a number.
pub(crate) fn number(text: &[u8]) -> Option<f64> {
    match short(text) {
        Some((value, [])) => Some(value),
        _ => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// The number at the beginning of a text, and the text after it.
pub(crate) fn leading(text: &[u8]) -> Option<(f64, &[u8])> {
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    match short(text) {
        Some((value, rest)) if !rest.first().is_some_and(is_of_number) => Some((value, rest)),
        _ => {
            let end = text.iter().position(|byte| !is_of_number(byte));
            let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
            Some((number(digits)?, rest))
        }
    }
}

/// The digits at the beginning of a text as a number, if there are at most 15: their integer and the power of ten are
/// exact as doubles, so that the quotient is the nearest double.
fn short(text: &[u8]) -> Option<(f64, &[u8])> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (mut whole, mut point, mut end) = (0_u64, None, 0);
    for byte in digits {
        match byte {
            // The result is not used if there are too many digits.
            b'0'..=b'9' => whole = whole.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
            b'.' if point.is_none() => point = Some(end),
            _ => break,
        }
        end += 1;
    }
    let count = end - usize::from(point.is_some());
    if !(1..=15).contains(&count) {
        return None;
    }
    let fraction = point.map_or(0, |point| end - point - 1);
    let value = whole as f64 / POWERS_OF_TEN[fraction];
    Some((if negative { -value } else { value }, &digits[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_that_is_no_number_is_none() {
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
            let line = format!("{text},1");
            let expected = text.parse::<f64>().ok().map(|value| (value, &b",1"[..]));
            prop_assert_eq!(leading(line.as_bytes()), expected);
        }
    }
}
