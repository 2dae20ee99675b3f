//! The width of the window, and sentences that fit into it.

use std::io::{self, IsTerminal as _};

use terminal_size::{Height, Width, terminal_size_of};

use crate::table::wrap;

/// Number of columns of outputs other than terminals: pipes and files.
const UNBOUNDED_COLUMNS: usize = usize::MAX;
/// The narrowest window that an answer is laid out for.
const MIN_COLUMNS: usize = 20;
/// First words of the commands that sentences end in, beside this program's.
const COMMAND_WORDS: [&str; 15] = [
    "apk", "apt-get", "dnf", "echo", "export", "iostat", "kill", "ls", "mdadm", "mkdir", "pacman",
    "ss", "ssh", "sudo", "zypper",
];

/// Number of columns: as many as the user gives (`COLUMNS`), else as the window has, else endlessly many, so
/// that nothing is left out or shortened for another program.
fn columns(given: Option<&str>, window: Option<usize>) -> usize {
    given
        .and_then(|given| given.trim().parse().ok())
        .filter(|columns| *columns > 0)
        .or(window)
        .unwrap_or(UNBOUNDED_COLUMNS)
        .max(MIN_COLUMNS)
}

/// Number of columns of a stream, of which this is the window.
pub(crate) fn width(window: Option<(Width, Height)>) -> usize {
    let window = window.map(|(width, _)| usize::from(width.0));
    columns(std::env::var("COLUMNS").ok().as_deref(), window)
}

/// Number of columns of standard error for sentences, which only a terminal breaks: another program searches them.
pub(crate) fn width_of_errors() -> usize {
    match io::stderr().is_terminal() {
        true => width(terminal_size_of(io::stderr())),
        false => UNBOUNDED_COLUMNS,
    }
}

/// The text with its lines broken between words where they have more than `width` columns. A command to type at the end
/// of a line stays in one piece, below the sentence: pasted in pieces, each would run by itself.
pub fn fitted(text: &str, width: usize) -> String {
    let lines = text.split('\n').map(|line| fitted_line(line, width));
    lines.collect::<Vec<_>>().join("\n")
}

fn fitted_line(line: &str, width: usize) -> String {
    let words = line.trim_start_matches(' ');
    // A row of a table would lose its columns.
    if line.chars().count() <= width || words.contains("  ") {
        return line.to_owned();
    }
    let bullet = if words.starts_with("- ") { 2 } else { 0 };
    let indent = " ".repeat(line.len() - words.len() + bullet);
    let (sentence, command) = line.split_at(command_at(line).unwrap_or(line.len()));
    let mut lines = wrap(sentence, width, &indent);
    if !command.is_empty() {
        let last = lines.rsplit('\n').next().unwrap_or_default();
        let has_room = last.chars().count() + 1 + command.chars().count() <= width;
        match has_room {
            true => lines.push(' '),
            false => lines.extend(["\n", &indent]),
        }
        lines.push_str(command);
    }
    lines
}

/// Position of the command that a line ends in, after a colon.
fn command_at(line: &str) -> Option<usize> {
    let mut ends = line.match_indices(": ").map(|(at, colon)| at + colon.len());
    ends.find(|at| is_command(&line[*at..]))
}

fn is_command(text: &str) -> bool {
    let mut words = text.split(' ');
    match (words.next().unwrap_or_default(), words.next()) {
        // A sentence about the program.
        (_, None | Some("does")) => false,
        (first, _) => first.ends_with("disksmith") || COMMAND_WORDS.contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_and_then_the_window_say_how_many_columns_there_are() {
        for (given, window, expected) in [
            (Some("40"), Some(120), 40),
            (Some("40"), None, 40),
            (None, Some(40), 40),
            (Some("0"), Some(80), 80),
            (Some("wide"), None, UNBOUNDED_COLUMNS),
            (None, None, UNBOUNDED_COLUMNS),
            (Some("1"), None, MIN_COLUMNS),
        ] {
            assert_eq!(columns(given, window), expected, "{given:?} {window:?}");
        }
    }

    #[test]
    fn a_sentence_is_broken_between_words_and_the_command_at_its_end_is_not() {
        let error = "disksmith: /data may not be written by this user; run it as root: sudo disksmith bench /data --size 64M";
        assert_eq!(fitted(error, 200), error);
        assert_eq!(
            fitted(error, 40),
            "disksmith: /data may not be written by\nthis user; run it as root:\n\
             sudo disksmith bench /data --size 64M"
        );
        let path = error.replace("sudo disksmith", "./disksmith");
        assert!(fitted(&path, 40).ends_with("root:\n./disksmith bench /data --size 64M"));
        let short = "they are listed by this program: disksmith devices";
        assert_eq!(
            fitted(short, 40),
            "they are listed by this program:\ndisksmith devices"
        );
        assert_eq!(
            fitted(&format!("all of them, and more: {short}"), 60),
            "all of them, and more: they are listed by this program:\ndisksmith devices"
        );
    }

    #[test]
    fn lines_of_a_list_are_broken_below_their_text_and_rows_of_a_table_stay() {
        let list = "no array is built:\n  - /dev/sdb is mounted at /mnt/data";
        assert_eq!(
            fitted(list, 24),
            "no array is built:\n  - /dev/sdb is mounted\n    at /mnt/data"
        );
        assert_eq!(
            fitted(
                "  - mdadm is not on the PATH; install it: apt-get install mdadm",
                24
            ),
            "  - mdadm is not on the\n    PATH; install it:\n    apt-get install mdadm"
        );
        let row = "db1   /dev/sdb   100 GiB   ext4";
        assert_eq!(fitted(row, 24), row);
        let prose = "job.fio, line 2: opendir: disksmith does not do this";
        assert_eq!(
            fitted(prose, 30),
            "job.fio, line 2: opendir:\ndisksmith does not do this"
        );
    }
}
