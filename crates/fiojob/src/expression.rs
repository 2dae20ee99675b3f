//! Arithmetic as in fio: `+ - * / % ^` and parentheses over whole numbers with suffixes.

/// Maximum nesting depth of a value, so that no text exhausts the stack.
const MAX_DEPTH: usize = 64;

/// Value of a suffix; `None` for an unknown one.
pub(crate) type Unit<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// The value of an expression.
///
/// # Errors
/// A sentence for a part that cannot be read, a division by zero, or a number that is too large.
pub(crate) fn evaluate(text: &str, unit: Unit<'_>) -> Result<i128, String> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        unit,
    };
    let value = parser.sum()?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(format!(
            "'{}' in '{text}' is not understood",
            &text[parser.at..]
        ));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    unit: Unit<'a>,
}

impl<'a> Parser<'a> {
    fn blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The next character, if it is one of `signs`.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        self.blanks();
        let next = self.text[self.at..].chars().next()?;
        if !signs.contains(&next) {
            return None;
        }
        self.at += next.len_utf8();
        Some(next)
    }

    fn word(&mut self, belongs: fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let other = self.product()?;
            value = apply(sign, value, other)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        while let Some(sign) = self.sign(&['*', '/', '%']) {
            let other = self.power()?;
            value = apply(sign, value, other)?;
        }
        Ok(value)
    }

    fn power(&mut self) -> Result<i128, String> {
        let value = self.one()?;
        if self.sign(&['^']).is_none() {
            return Ok(value);
        }
        // Every exponent increases the depth, so that 1^1^1^… ends too.
        let exponent = self.deeper(Parser::power)?;
        apply('^', value, exponent)
    }

    fn deeper(
        &mut self,
        inner: fn(&mut Parser<'a>) -> Result<i128, String>,
    ) -> Result<i128, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("'{}' is nested too deep", self.text));
        }
        let value = inner(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn one(&mut self) -> Result<i128, String> {
        if self.sign(&['-']).is_some() {
            let value = self.deeper(Parser::one)?;
            return apply('-', 0, value);
        }
        let value = if self.sign(&['(']).is_some() {
            let value = self.deeper(Parser::sum)?;
            if self.sign(&[')']).is_none() {
                return Err(format!("a ) is missing in '{}'", self.text));
            }
            value
        } else {
            self.digits()?
        };
        let suffix = self.word(|c| c.is_ascii_alphabetic());
        match (self.unit)(suffix) {
            Some(unit) => apply('*', value, i128::from(unit)),
            None => Err(format!("'{suffix}' in '{}' is not a unit", self.text)),
        }
    }

    fn digits(&mut self) -> Result<i128, String> {
        let rest = &self.text[self.at..];
        let hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
        let (digits, base) = if hexadecimal {
            self.at += 2;
            (self.word(|c| c.is_ascii_hexdigit()), 16)
        } else {
            (self.word(|c| c.is_ascii_digit()), 10)
        };
        if digits.is_empty() {
            return Err(format!("a number is missing in '{}'", self.text));
        }
        u64::from_str_radix(digits, base)
            .map(i128::from)
            .map_err(|_| format!("{digits} is too large a number"))
    }
}

fn apply(sign: char, left: i128, right: i128) -> Result<i128, String> {
    let result = match sign {
        '+' => left.checked_add(right),
        '-' => left.checked_sub(right),
        '*' => left.checked_mul(right),
        '/' | '%' if right == 0 => return Err("it divides by zero".to_owned()),
        '/' => left.checked_div(right),
        '%' => left.checked_rem(right),
        _ => u32::try_from(right)
            .ok()
            .and_then(|power| left.checked_pow(power)),
    };
    result.ok_or_else(|| "the result is too large a number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_calculates_as_people_do() {
        let unit = |suffix: &str| crate::number::size_unit(suffix, 1024);
        for (text, value) in [
            ("(4+4*2)", 12),
            ("( 4 * 2k )", 8192),
            ("(4+4)k", 8192),
            ("(2^3^2)", 512),
            ("(-4+8)", 4),
            ("(10%3)", 1),
            ("(7/2)", 3),
            ("(8-2-1)", 5),
            ("(0x10)", 16),
            ("8*(1+1)", 16),
        ] {
            assert_eq!(evaluate(text, &unit), Ok(value), "{text}");
        }
        for (text, expected) in [
            ("(1/0)", "divides by zero"),
            ("(1", "a ) is missing"),
            ("()", "a number is missing"),
            ("(1)q", "'q'"),
            ("(2^999)", "too large"),
            ("(1) 2", "not understood"),
            ("99999999999999999999", "too large"),
        ] {
            let error = evaluate(text, &unit).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let deep = "(".repeat(100_000);
        assert!(evaluate(&deep, &unit).unwrap_err().contains("too deep"));
        let high = "1^".repeat(100_000);
        assert!(evaluate(&high, &unit).unwrap_err().contains("too deep"));
        let low = "-".repeat(100_000);
        assert!(evaluate(&low, &unit).unwrap_err().contains("too deep"));
    }
}
