//! Writes JSON as fio prints it: keys in order, with a space before the colon, fractions with six digits.

use std::fmt;

use serde_json::Value;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    /// A count.
    Count(u64),
    /// A number with a fraction.
    Fraction(f64),
    /// A text.
    Text(String),
    /// An object, whose keys keep their order.
    Object(Vec<(String, Json)>),
    /// A list.
    List(Vec<Json>),
}

impl From<u64> for Json {
    fn from(count: u64) -> Json {
        Json::Count(count)
    }
}

impl From<f64> for Json {
    fn from(fraction: f64) -> Json {
        Json::Fraction(fraction)
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_owned())
    }
}

/// An object of keys and values.
pub(super) fn object<const N: usize>(entries: [(&str, Json); N]) -> Vec<(String, Json)> {
    entries.map(|(key, value)| (key.to_owned(), value)).into()
}

impl Json {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Json::Count(count) => write!(f, "{count}"),
            // JSON has no infinity; nothing here divides by zero, so this is never written.
            Json::Fraction(value) if !value.is_finite() => f.write_str("0.000000"),
            Json::Fraction(value) => write!(f, "{value:.6}"),
            Json::Text(text) => write!(f, "{}", Value::from(text.as_str())),
            Json::Object(entries) => {
                let line = |f: &mut fmt::Formatter<'_>, entry: &(String, Json)| {
                    write!(f, "{} : ", Value::from(entry.0.as_str()))?;
                    entry.1.write(f, depth + 1)
                };
                enclosed(f, ['{', '}'], entries, depth, line)
            }
            Json::List(items) => {
                let line = |f: &mut fmt::Formatter<'_>, item: &Json| item.write(f, depth + 1);
                enclosed(f, ['[', ']'], items, depth, line)
            }
        }
    }
}

/// Writes `items`, each on a line of its own.
fn enclosed<T>(
    f: &mut fmt::Formatter<'_>,
    [open, close]: [char; 2],
    items: &[T],
    depth: usize,
    line: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    write!(f, "{open}")?;
    for (index, item) in items.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(f, "{comma}\n{:1$}", "", 2 * depth + 2)?;
        line(f, item)?;
    }
    write!(f, "\n{:1$}{close}", "", 2 * depth)
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}
