//! Lines of a log that have a device's name and its figures.

use super::columns::NamePlace;
use super::number::{Number, number};
use super::report::Row;
use super::row::Figures;
use super::{Columns, stamp};

/// Minimum number of figures in a line of a device where no header names them: the shortest report has five.
pub(crate) const MIN_FIGURES: usize = 5;
/// Longest text that is taken for the name of a device, in bytes.
const MAX_NAME_BYTES: usize = 200;
/// Largest number of words in a line of a device where no header names the figures.
const MAX_HEADLESS_WORDS: usize = 64;

/// Figures of a device from a line of a log.
pub(crate) struct DeviceLine {
    /// Name and figures.
    pub(crate) row: Row,
    /// True if the end of the line is missing.
    pub(crate) cut: bool,
}

/// The figures of a line; `None` if it is not the line of a device. `terminated` tells whether the line ends with a line
/// break.
pub(crate) fn device_line(columns: &Columns, text: &str, terminated: bool) -> Option<DeviceLine> {
    let indent = text.len() - text.trim_start().len();
    let words: Vec<&str> = text.split_whitespace().collect();
    let (name, group, mut numbers) = match columns.names {
        NamePlace::First => {
            let numbers = figures_after_name(&words)?;
            let name = words[..words.len() - numbers.len()].join(" ");
            (name, indent == columns.indent + 1, numbers)
        }
        NamePlace::Last => {
            // Figures come first: a line that lacks any has no name, and nothing can be concluded from it.
            let figures = words.get(..columns.count())?;
            let numbers: Option<Vec<Number>> = figures.iter().map(|word| number(word)).collect();
            let name = words[columns.count()..].join(" ");
            let before = text.trim_end().strip_suffix(name.as_str())?;
            (name, before.ends_with("  "), numbers?)
        }
    };
    let has_more = numbers.len() > columns.count();
    if !is_name(&name) || (has_more && !columns.may_lack()) {
        return None;
    }
    let is_short = numbers.len() < columns.count();
    if is_short && (name.contains(' ') || !has_uniform_decimals(&numbers)) {
        return None;
    }
    let may_be_cut = columns.names == NamePlace::First && (!terminated || columns.may_lack());
    let cut = is_short || (may_be_cut && last_may_be_truncated(&numbers));
    if cut && last_may_be_truncated(&numbers) {
        numbers.pop();
    }
    let mut figures = Figures::default();
    for (column, number) in columns.list.iter().zip(&numbers) {
        figures.set(*column, *number);
    }
    let row = Row {
        name,
        group,
        figures,
    };
    (!numbers.is_empty()).then_some(DeviceLine { row, cut })
}

/// True if a device may have this name. A time of day, with which other tools begin their lines, is no device.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && stamp::stamp(name).is_none()
}

/// The figures of a line that begins with a name; `None` if it has no name, no figure, or a number within the name.
/// Names of groups may have spaces.
fn figures_after_name(words: &[&str]) -> Option<Vec<Number>> {
    let figures = words.iter().rev().map_while(|word| number(word));
    let mut figures: Vec<Number> = figures.collect();
    figures.reverse();
    let name = &words[..words.len() - figures.len()];
    let is_mixed = name.iter().any(|word| number(word).is_some());
    (!name.is_empty() && !figures.is_empty() && !is_mixed).then_some(figures)
}

/// True if the figures of a line that lacks some look like iostat's: two or more, with the same number of decimals, of
/// which the last may have fewer.
fn has_uniform_decimals(numbers: &[Number]) -> bool {
    let decimals = |number: &Number| number.decimals;
    match numbers {
        [first, rest @ .., last] => {
            decimals(first) > 0
                && rest
                    .iter()
                    .all(|number| decimals(number) == decimals(first))
                && decimals(last) <= decimals(first)
        }
        _ => false,
    }
}

/// True if the last figure has fewer decimals than each before it, or is the only one: it may be truncated.
fn last_may_be_truncated(numbers: &[Number]) -> bool {
    match numbers {
        [rest @ .., last] => rest.iter().all(|number| number.decimals > last.decimals),
        [] => false,
    }
}

/// The figures of a line that has one word as a name and then [`MIN_FIGURES`] figures or more, and nothing else; `None`
/// of any other line.
pub(crate) fn headless_figures(text: &str) -> Option<Vec<Number>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let figures = words
        .get(1..)
        .filter(|figures| figures.len() >= MIN_FIGURES)?;
    let first = words.first()?;
    if words.len() > MAX_HEADLESS_WORDS || number(first).is_some() || !is_name(first) {
        return None;
    }
    figures.iter().map(|word| number(word)).collect()
}

/// True if a line has figures with decimal commas.
pub(crate) fn has_decimal_comma(text: &str) -> bool {
    let mut words = text.split_whitespace();
    text.contains(',') && words.any(|word| word.contains(',') && number(word).is_some())
}
