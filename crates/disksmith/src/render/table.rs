//! A table in plain text: aligned columns, of which the least important go when it gets narrow.

/// How a column's cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column<'a> {
    /// What stands above it.
    pub title: &'a str,
    /// How its cells stand.
    pub align: Align,
    /// Columns with a higher number go first when there is no room; 0 never goes.
    pub rank: u8,
}

impl<'a> Column<'a> {
    /// A column of words that never goes.
    pub(crate) const fn words(title: &'a str) -> Column<'a> {
        Column {
            title,
            align: Align::Left,
            rank: 0,
        }
    }

    /// The same with another rank.
    pub(crate) const fn ranked(self, rank: u8) -> Column<'a> {
        Column { rank, ..self }
    }

    /// A column of numbers.
    pub(crate) const fn numbers(title: &'a str, rank: u8) -> Column<'a> {
        Column {
            title,
            align: Align::Right,
            rank,
        }
    }
}

/// Lays `rows` out in at most `width` columns of text, if dropping columns gets it there.
pub(crate) fn layout(columns: &[Column<'_>], rows: &[Vec<String>], width: usize) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let cells = rows.iter().filter_map(|row| row.get(index));
            cells
                .map(|cell| cell.chars().count())
                .chain([column.title.chars().count()])
                .max()
                .unwrap_or(0)
        })
        .collect();
    // A column that holds nothing is not shown.
    let filled = |index: &usize| {
        rows.iter()
            .any(|row| row.get(*index).is_some_and(|c| !c.is_empty()))
    };
    let mut shown: Vec<usize> = (0..columns.len()).filter(filled).collect();
    let taken = |shown: &[usize]| {
        shown.iter().map(|index| widths[*index]).sum::<usize>() + 2 * shown.len().saturating_sub(1)
    };
    while taken(&shown) > width {
        let Some(least) = (0..shown.len())
            .filter(|place| columns[shown[*place]].rank > 0)
            .max_by_key(|place| columns[shown[*place]].rank)
        else {
            break;
        };
        shown.remove(least);
    }
    let mut text = String::new();
    let titles: Vec<String> = columns
        .iter()
        .map(|column| column.title.to_owned())
        .collect();
    for row in std::iter::once(&titles).chain(rows) {
        let cells = shown.iter().map(|index| {
            let cell = row.get(*index).map_or("", String::as_str);
            pad(cell, widths[*index], columns[*index].align)
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn pad(cell: &str, width: usize, align: Align) -> String {
    let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
    match align {
        Align::Left => format!("{cell}{gap}"),
        Align::Right => format!("{gap}{cell}"),
    }
}

/// Breaks `text` into lines of at most `width` columns. The first keeps the spaces that it begins
/// with; the others begin with `indent`. A line break in the text stays one.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| wrap_line(line, width, indent))
        .collect();
    lines.join("\n")
}

fn wrap_line(text: &str, width: usize, indent: &str) -> String {
    let words = text.trim_start();
    let mut lines = text[..text.len() - words.len()].to_owned();
    let mut column = lines.chars().count();
    for (index, word) in words.split_whitespace().enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > width {
            lines.push('\n');
            lines.push_str(indent);
            column = indent.chars().count();
        } else if index > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column::words("phase"),
        Column::numbers("IOPS", 0),
        Column::numbers("p99", 1),
    ];

    fn rows() -> Vec<Vec<String>> {
        [["seek", "9,800", "210 us"], ["page-read", "12", "–"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec()
    }

    #[test]
    fn columns_are_aligned() {
        let text = layout(&COLUMNS, &rows(), 80);
        assert_eq!(
            text,
            "phase       IOPS     p99\nseek       9,800  210 us\npage-read     12       –\n"
        );
    }

    #[test]
    fn the_least_important_columns_go_when_it_is_narrow() {
        let text = layout(&COLUMNS, &rows(), 20);
        assert_eq!(
            text,
            "phase       IOPS\nseek       9,800\npage-read     12\n"
        );
        // What never goes stays, however narrow it is.
        assert_eq!(layout(&COLUMNS, &rows(), 5), text);
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(
            wrap("one two three four", 9, "  "),
            "one two\n  three\n  four"
        );
        assert_eq!(
            wrap("incomprehensibilities", 5, ""),
            "incomprehensibilities"
        );
        assert_eq!(
            wrap("  - one two\n  - three", 8, "    "),
            "  - one\n    two\n  -\n    three"
        );
        assert_eq!(wrap("one two a b c", 8, ""), "one two\na b c");
    }
}
