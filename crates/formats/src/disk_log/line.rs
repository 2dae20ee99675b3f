//! Lines of devices: names and figures.

use super::columns::NamePlace;
use super::number::{Number, number};
use super::report::Row;
use super::row::Figures;
use super::{Columns, stamp};

/// Minimum number of figures in a line of a device where no header names them: the shortest report has five.
pub(crate) const MIN_FIGURES: usize = 5;
/// The longest name of a device that is believed.
const MAX_NAME_BYTES: usize = 200;

/// Figures of a device from a line of a log.
pub(crate) struct DeviceLine {
    pub(crate) row: Row,
    /// True if the end of the line is missing.
    pub(crate) cut: bool,
}

/// Reads a line of a device. `None` when it is none.
pub(crate) fn device_line(columns: &Columns, text: &str, terminated: bool) -> Option<DeviceLine> {
    let indent = text.len() - text.trim_start().len();
    let words: Vec<&str> = text.split_whitespace().collect();
    let (name, group, mut numbers) = match columns.names {
        NamePlace::First => {
            let numbers = figures_behind(&words)?;
            let name = words[..words.len() - numbers.len()].join(" ");
            (name, indent == columns.indent + 1, numbers)
        }
        NamePlace::Last => {
            // A name is not all that is missing of a line that is cut off: nothing can be concluded.
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
    if is_short && (name.contains(' ') || !is_even(&numbers)) {
        return None;
    }
    let may_be_cut = columns.names == NamePlace::First && (!terminated || columns.may_lack());
    let cut = is_short || (may_be_cut && last_is_short(&numbers));
    if cut && last_is_short(&numbers) {
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

/// True if a device may have this name. A time of day, with which other tools begin their lines, is none.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && stamp::stamp(name).is_none()
}

/// The figures of a line that begins with the name. Names of groups may have spaces.
fn figures_behind(words: &[&str]) -> Option<Vec<Number>> {
    let figures = words.iter().rev().map_while(|word| number(word));
    let mut figures: Vec<Number> = figures.collect();
    figures.reverse();
    let name = &words[..words.len() - figures.len()];
    let is_mixed = name.iter().any(|word| number(word).is_some());
    (!name.is_empty() && !figures.is_empty() && !is_mixed).then_some(figures)
}

/// True if the figures of a line that lacks some look like iostat's: with the same number of decimals each.
fn is_even(numbers: &[Number]) -> bool {
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

/// True if the last figure has fewer decimals than those before it, so that it may be cut.
fn last_is_short(numbers: &[Number]) -> bool {
    match numbers {
        [rest @ .., last] => rest.iter().all(|number| number.decimals > last.decimals),
        [] => false,
    }
}

/// The figures of a line that has a name and figures only.
pub(crate) fn headless_figures(text: &str) -> Option<Vec<Number>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let figures = words
        .get(1..)
        .filter(|figures| figures.len() >= MIN_FIGURES)?;
    let first = words.first()?;
    if words.len() > 64 || number(first).is_some() || !is_name(first) {
        return None;
    }
    figures.iter().map(|word| number(word)).collect()
}

/// True if a line has figures with decimal commas.
pub(crate) fn has_decimal_comma(text: &str) -> bool {
    let mut words = text.split_whitespace();
    text.contains(',') && words.any(|word| word.contains(',') && number(word).is_some())
}
