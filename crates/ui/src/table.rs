//! A table in plain text with aligned columns. If it is too wide, long words are shortened first, in the middle; then
//! the least important columns are dropped; and if it is still too wide, each row becomes a block of lines.

use std::borrow::Cow;

use crate::charset;

/// Maximum width of prose, however wide the window is.
const MAX_PROSE_COLUMNS: usize = 100;
/// Words up to this length are never shortened: the length of a run's id. It is also the minimum width of a sentence.
const UNSHORTENED_CHARS: usize = 24;
/// Minimum length of shortened words, such as paths; below it columns are dropped.
const MIN_SHORTENED_CHARS: usize = 12;

/// Alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Title, alignment and rank of a column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Title above it.
    pub title: &'a str,
    /// Alignment of its cells.
    pub align: Align,
    /// Columns with a higher number are dropped first if there is no room; 0 is never dropped.
    pub rank: u8,
}

impl<'a> Column<'a> {
    /// A column of text that is never dropped.
    pub const fn text(title: &'a str) -> Column<'a> {
        Column {
            title,
            align: Align::Left,
            rank: 0,
        }
    }

    /// The column with this rank.
    pub const fn ranked(self, rank: u8) -> Column<'a> {
        Column { rank, ..self }
    }

    /// A column of numbers.
    pub const fn numbers(title: &'a str, rank: u8) -> Column<'a> {
        Column {
            title,
            align: Align::Right,
            rank,
        }
    }
}

/// Lays `rows` out in at most `width` columns of text.
pub fn layout(columns: &[Column<'_>], rows: &[Vec<String>], width: usize) -> String {
    // In the charset that is printed, since other signs take other widths.
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|cell| charset::shown(cell).into_owned())
                .collect()
        })
        .collect();
    let rows = &rows[..];
    let mut widths: Vec<usize> = columns
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
    // So that one long word takes no column from all rows, and an id stays whole.
    let has_sentence = |index: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(index));
        cells.any(|cell| cell.chars().count() > UNSHORTENED_CHARS && cell.contains(' '))
    };
    let least: Vec<usize> = widths
        .iter()
        .enumerate()
        .map(|(index, width)| match *width > UNSHORTENED_CHARS {
            true if has_sentence(index) => UNSHORTENED_CHARS,
            true => MIN_SHORTENED_CHARS,
            false => *width,
        })
        .collect();
    // A column that holds nothing is not shown.
    let filled = |index: &usize| {
        rows.iter()
            .any(|row| row.get(*index).is_some_and(|c| !c.is_empty()))
    };
    let mut shown: Vec<usize> = (0..columns.len()).filter(filled).collect();
    let taken = |shown: &[usize], widths: &[usize]| {
        shown.iter().map(|index| widths[*index]).sum::<usize>() + 2 * shown.len().saturating_sub(1)
    };
    loop {
        let over = taken(&shown, &widths).saturating_sub(width);
        if over == 0 {
            break;
        }
        let words = shown.iter().filter(|index| {
            columns[**index].align == Align::Left && widths[**index] > least[**index]
        });
        if let Some(longest) = words.copied().max_by_key(|index| widths[*index]) {
            // A little each time, so that several long columns share what is cut.
            widths[longest] -= over.min(widths[longest] - least[longest]).min(4);
            continue;
        }
        let Some(least) = (0..shown.len())
            .filter(|place| columns[shown[*place]].rank > 0)
            .max_by_key(|place| columns[shown[*place]].rank)
        else {
            return blocks(columns, rows, &shown, width);
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
            let cell = shortened(cell, widths[*index]);
            pad(&cell, widths[*index], columns[*index].align)
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The rows as lines of `title: value`, the first line of each at the margin.
fn blocks(columns: &[Column<'_>], rows: &[Vec<String>], shown: &[usize], width: usize) -> String {
    let mut text = String::new();
    for row in rows {
        let cells = shown.iter().filter_map(|index| {
            let cell = row.get(*index).filter(|cell| !cell.is_empty())?;
            Some((columns[*index].title, cell))
        });
        for (place, (title, cell)) in cells.enumerate() {
            let line = match (place, title) {
                (0, _) => cell.clone(),
                (_, "") => format!("  {cell}"),
                (_, title) => format!("  {title}: {cell}"),
            };
            text.push_str(&shortened(&line, width));
            text.push('\n');
        }
    }
    text
}

/// A text in at most `width` columns, with an ellipsis in its middle where it is longer.
fn shortened(text: &str, width: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= width {
        return Cow::Borrowed(text);
    }
    let sign = charset::shown("…");
    let kept = width.saturating_sub(sign.chars().count());
    // Of paths and names the end tells more.
    let (first, last) = (kept / 2, kept - kept / 2);
    let begin: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(length - last).collect();
    Cow::Owned(format!("{begin}{sign}{end}"))
}

fn pad(cell: &str, width: usize, align: Align) -> String {
    let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
    match align {
        Align::Left => format!("{cell}{gap}"),
        Align::Right => format!("{gap}{cell}"),
    }
}

/// Breaks `text` into lines of at most `width` columns, and of no more than reads well. The first keeps the spaces that
/// it begins with; the others begin with `indent`. A line break in the text stays one.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let width = width.min(MAX_PROSE_COLUMNS);
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
        Column::text("phase"),
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
        // Where that is not enough, each row is a block.
        assert_eq!(
            layout(&COLUMNS, &rows(), 14),
            "seek\n  IOPS: 9,800\npage-read\n  IOPS: 12\n"
        );
    }

    #[test]
    fn long_words_are_shortened_before_a_column_goes_and_nothing_where_there_is_room() {
        let path = "/very/long/path/to/a/folder/that/somebody/has/named/in/full";
        let rows = [["seek", "9,800", "210 us"], [path, "12", "–"]]
            .map(|row| row.map(str::to_owned).to_vec());
        let endless = layout(&COLUMNS, &rows, usize::MAX);
        assert!(
            endless.contains(path) && endless.contains("210 us"),
            "{endless}"
        );
        for width in [40, 50, 60] {
            let text = layout(&COLUMNS, &rows, width);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{text}"
            );
            assert!(
                text.contains("210 us") && text.contains("in/full"),
                "{text}"
            );
            assert!(text.contains('…') && text.contains("/very/lo"), "{text}");
        }
    }

    #[test]
    fn one_long_word_takes_no_column_from_all_rows() {
        let columns = [
            Column::text("run"),
            Column::text("started").ranked(3),
            Column::text("target"),
            Column::text("device").ranked(4),
            Column::text("verdict"),
        ];
        let id = "20261122T100000Z-0123456";
        let row = |target: &str| {
            [id, "2026-11-22 10:00", target, "nvme1n1", "trusted"]
                .map(str::to_owned)
                .to_vec()
        };
        let long = format!("/mnt/{}/data", "x".repeat(200));
        let rows = [row("/mnt/db"), row(&long), row("/mnt/other")];
        for width in 75..100 {
            let text = layout(&columns, &rows, width);
            for line in text.lines().skip(1) {
                let is_whole = line.starts_with(id)
                    && line.contains("2026-11-22 10:00")
                    && line.contains("nvme1n1");
                assert!(is_whole && line.chars().count() <= width, "{width}: {text}");
            }
            assert!(text.contains("/mnt/other"), "{width}: {text}");
        }
    }

    #[test]
    fn every_width_is_kept() {
        let rows: Vec<Vec<String>> = (0..30_usize)
            .map(|row| {
                (0..3)
                    .map(|column| "x".repeat(row * (column + 1) % 37))
                    .collect()
            })
            .collect();
        for width in 20..120 {
            let text = layout(&COLUMNS, &rows, width);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{width}: {text}"
            );
        }
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
