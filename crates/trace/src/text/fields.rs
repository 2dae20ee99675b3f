//! Fields of a line.

use std::str::FromStr;

/// Error: the position in a line at which something else was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Column, from 1.
    pub(crate) column: usize,
    /// What the format has at this position.
    pub(crate) expected: String,
}

impl Malformed {
    pub(crate) fn new(column: usize, expected: &str) -> Malformed {
        Malformed {
            column,
            expected: expected.to_owned(),
        }
    }
}

/// A field, without surrounding white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    /// Text of the field.
    pub(crate) text: &'a str,
    column: usize,
}

impl Field<'_> {
    /// The error if this field should have been `expected`.
    pub(crate) fn expected(&self, expected: &str) -> Malformed {
        Malformed::new(self.column, expected)
    }

    /// Parses the field as a number.
    pub(crate) fn number<T: FromStr>(&self, expected: &str) -> Result<T, Malformed> {
        self.text.parse().map_err(|_| self.expected(expected))
    }

    /// Parses the field as a number, multiplied by `10^decimals` and truncated.
    pub(crate) fn fixed(&self, decimals: u32, expected: &str) -> Result<u64, Malformed> {
        fixed(self.text, decimals).ok_or_else(|| self.expected(expected))
    }
}

/// Separators of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// This character, with or without white space around it.
    Char(char),
    /// White space.
    Space,
}

/// The fields of a line, from its start.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    line: &'a str,
    /// Start of the next field; `None` after the last.
    at: Option<usize>,
    separator: Separator,
}

impl<'a> Fields<'a> {
    /// Fields separated by `separator`.
    pub(crate) fn separated(line: &'a str, separator: char) -> Fields<'a> {
        Fields {
            line,
            at: Some(0),
            separator: Separator::Char(separator),
        }
    }

    /// Fields separated by white space.
    pub(crate) fn spaced(line: &'a str) -> Fields<'a> {
        Fields {
            line,
            at: Some(0),
            separator: Separator::Space,
        }
    }

    /// The next field; an error if there is none.
    pub(crate) fn next(&mut self, expected: &str) -> Result<Field<'a>, Malformed> {
        let column = self.column(self.line.len());
        self.next_if_any()
            .ok_or_else(|| Malformed::new(column, expected))
    }

    /// The next field, if there is one. With white space as the separator, fields are never empty.
    pub(crate) fn next_if_any(&mut self) -> Option<Field<'a>> {
        let rest = &self.line[self.at?..];
        let blank = rest.len() - rest.trim_start().len();
        let begin = self.at? + blank;
        let rest = &self.line[begin..];
        let end = match self.separator {
            Separator::Char(separator) => rest.find(separator),
            Separator::Space if rest.is_empty() => {
                self.at = None;
                return None;
            }
            Separator::Space => rest.find(|c: char| c.is_ascii_whitespace()),
        };
        self.at = end.map(|end| begin + end + 1);
        Some(Field {
            text: rest[..end.unwrap_or(rest.len())].trim_end(),
            column: self.column(begin),
        })
    }

    /// The rest of the line after the fields read so far.
    pub(crate) fn rest(&self) -> &'a str {
        self.at.map_or("", |at| self.line[at..].trim())
    }

    fn column(&self, byte: usize) -> usize {
        self.line[..byte].chars().count() + 1
    }
}

/// The value of a decimal number, multiplied by `10^decimals` and truncated; `None` if the text is not a number, or
/// the value exceeds 64 bits.
pub(crate) fn fixed(text: &str, decimals: u32) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let mut value = match whole {
        "" => 0,
        whole => whole.parse::<u64>().ok()?,
    };
    let mut fraction = fraction.bytes();
    for _ in 0..decimals {
        let digit = fraction.next().map_or(0, |byte| byte - b'0');
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(fixed("0.449518165", 9), Some(449_518_165));
        assert_eq!(fixed("3599.8", 9), Some(3_599_800_000_000));
        assert_eq!(fixed("7", 3), Some(7000));
        assert_eq!(fixed(".5", 1), Some(5));
        for wrong in ["", ".", "-1", "1e3", "1.2.3", "99999999999999999999"] {
            assert_eq!(fixed(wrong, 3), None, "{wrong}");
        }
    }

    #[test]
    fn a_field_that_is_missing_or_wrong_has_a_place() {
        let mut fields = Fields::separated("1 ; x;", ';');
        assert_eq!(fields.next("a number").unwrap().number("a number"), Ok(1));
        let wrong = fields.next("a sector").unwrap();
        assert_eq!(
            wrong.number::<u64>("a sector"),
            Err(Malformed::new(5, "a sector"))
        );
        assert_eq!(fields.next("a word").unwrap().text, "");
        assert_eq!(fields.next("more"), Err(Malformed::new(7, "more")));
        let mut spaced = Fields::spaced("  a  b ");
        assert_eq!(spaced.next("").unwrap().text, "a");
        assert_eq!(spaced.rest(), "b");
        assert_eq!(spaced.next("").unwrap().text, "b");
        assert_eq!(spaced.next_if_any(), None);
    }

    proptest! {
        #[test]
        fn any_line_is_cut_without_a_panic(line in "\\PC{0,40}") {
            for mut fields in [Fields::separated(&line, ';'), Fields::spaced(&line)] {
                while fields.next_if_any().is_some() {}
                prop_assert_eq!(fields.rest(), "");
            }
        }
    }
}
