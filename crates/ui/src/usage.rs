//! Lines of clap's that it does not break to the window: those of the usage and of errors.

use crate::charset;

/// The text of help or an error in the locale's charset. No line of the usage is wider than `of_usage` columns, and
/// none of the others wider than `of_messages`, where there is a blank to break it at.
pub(crate) fn broken(text: &clap::Error, of_usage: usize, of_messages: usize) -> String {
    let text = text.render().ansi().to_string();
    let text = charset::shown(&text);
    let mut is_usage = false;
    let lines = text.split('\n').map(|line| {
        is_usage = shown_width(line) > 0 && (is_usage || line.contains("Usage:"));
        broken_line(line, if is_usage { of_usage } else { of_messages })
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// A line in lines. Those that follow the first are indented below its first word.
fn broken_line(line: &str, columns: usize) -> String {
    if shown_width(line) <= columns {
        return line.to_owned();
    }
    let words = line.trim_start_matches(' ');
    let indent = line.len() - words.len();
    let (mut lines, mut column) = (" ".repeat(indent), indent);
    // "Usage:" alone would be a line of its own.
    let mut next_indent = None;
    for word in words.split(' ') {
        let width = shown_width(word);
        match next_indent {
            None => next_indent = Some(indent + width + 1),
            Some(next) if column + 1 + width > columns => {
                lines.push('\n');
                lines.push_str(&" ".repeat(next));
                column = next;
            }
            Some(_) => {
                lines.push(' ');
                column += 1;
            }
        }
        lines.push_str(word);
        column += width;
    }
    lines
}

/// Columns that a text takes, without its colours (ECMA-48: `ESC [ … m`).
fn shown_width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, |part| part.chars().count());
    let coloured = parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest));
    first + coloured.map(|part| part.chars().count()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_broken_below_its_first_word_and_colours_take_no_columns() {
        let usage = "Usage: disksmith array create [OPTIONS] --level <LEVEL>";
        let lines = "Usage: disksmith array create [OPTIONS]\n       --level <LEVEL>";
        assert_eq!(broken_line(usage, 40), lines);
        assert_eq!(broken_line(usage, 80), usage);
        let coloured = |text: &str| text.replace("Usage:", "\u{1b}[1mUsage:\u{1b}[0m");
        assert_eq!(broken_line(&coloured(usage), 40), coloured(lines));
        assert_eq!(broken_line(&coloured(usage), 55), coloured(usage));
    }
}
