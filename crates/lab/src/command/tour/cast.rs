//! A recording of a terminal, as asciinema writes it (asciicast v2): a header, then a line for each piece of output.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use ui::charset;
use ui::window::fitted;

/// Sequence that begins bold text.
pub(super) const BOLD: &str = "\u{1b}[1m";
/// Sequence that ends styles.
pub(super) const PLAIN: &str = "\u{1b}[0m";

/// Interval at which the flag for an interrupt by the user is polled.
const POLL: Duration = Duration::from_millis(100);

/// A recording.
#[derive(Debug)]
pub(super) struct Cast {
    pieces: Vec<OutputPiece>,
}

/// Output, with the time since the previous output.
#[derive(Debug, PartialEq)]
struct OutputPiece {
    after: Duration,
    text: String,
}

#[derive(Deserialize)]
struct Header {
    version: u32,
    /// Longer pauses are shortened to this, in seconds.
    idle_time_limit: Option<f64>,
}

/// Reason why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the recording has no header")]
    Empty,
    #[error("the recording is of version {0}, and version 2 is read")]
    Version(u32),
    #[error("line {line} of the recording: {source}")]
    Line {
        line: usize,
        source: serde_json::Error,
    },
}

impl Cast {
    /// Reads a recording. Events other than output, such as keys and marks, are ignored.
    pub(super) fn parse(text: &str) -> Result<Cast, Error> {
        let mut lines = (1..).zip(text.lines());
        let wrong = |line, source| Error::Line { line, source };
        let (line, header) = lines.next().ok_or(Error::Empty)?;
        let header: Header = serde_json::from_str(header).map_err(|e| wrong(line, e))?;
        if header.version != 2 {
            return Err(Error::Version(header.version));
        }
        let longest = header.idle_time_limit.unwrap_or(f64::MAX);
        let (mut pieces, mut before) = (Vec::new(), 0.0);
        for (line, piece) in lines.filter(|(_, piece)| !piece.is_empty()) {
            let (at, kind, text): (f64, String, String) =
                serde_json::from_str(piece).map_err(|e| wrong(line, e))?;
            if kind != "o" {
                continue;
            }
            let pause = (at - before).clamp(0.0, longest);
            let after = Duration::try_from_secs_f64(pause).unwrap_or_default();
            pieces.push(OutputPiece { after, text });
            before = at;
        }
        Ok(Cast { pieces })
    }

    /// Writes the recording, at a multiple of its speed or without delays, to its end or until the user interrupts.
    pub(super) fn play(
        &self,
        out: &mut dyn Write,
        columns: usize,
        has_styles: bool,
        speed: Option<f64>,
        interrupt: &AtomicBool,
    ) -> io::Result<()> {
        let mut is_bold = false;
        for piece in &self.pieces {
            if let Some(speed) = speed {
                wait(piece.after.div_f64(speed), interrupt);
            }
            if interrupt.load(Ordering::Relaxed) {
                break;
            }
            let text = piece.text.replace("\r\n", "\n");
            let lines = text.split('\n').map(|line| {
                let was_bold = is_bold;
                is_bold = is_bold_after(line, was_bold);
                fitted_line(line, columns, was_bold)
            });
            let mut text = lines.collect::<Vec<_>>().join("\n");
            if !has_styles {
                text = text.replace(BOLD, "").replace(PLAIN, "");
            }
            out.write_all(charset::shown(&text).as_bytes())?;
            if speed.is_some() {
                out.flush()?;
            }
        }
        out.flush()
    }
}

/// True if the text after a line is bold; `is_bold` is the state before the line.
fn is_bold_after(line: &str, is_bold: bool) -> bool {
    match (line.rfind(BOLD), line.rfind(PLAIN)) {
        (None, None) => is_bold,
        (bold, plain) => bold > plain,
    }
}

/// Wraps a line of the recording to a number of columns. Commands, which are bold like titles, and the commands that a
/// step ran are not wrapped. `is_bold` is true within a command of several lines.
fn fitted_line(line: &str, columns: usize, is_bold: bool) -> String {
    let bold = line.strip_prefix(BOLD);
    if let Some(title) = bold.and_then(|bold| bold.strip_suffix(PLAIN)?.strip_prefix("== ")) {
        return format!("{BOLD}{}{PLAIN}", fitted(&format!("== {title}"), columns));
    }
    match is_bold || bold.is_some() || line.starts_with("+ ") {
        true => line.to_owned(),
        false => fitted(line, columns),
    }
}

fn wait(mut left: Duration, interrupt: &AtomicBool) {
    while !left.is_zero() && !interrupt.load(Ordering::Relaxed) {
        let part = left.min(POLL);
        std::thread::sleep(part);
        left -= part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = concat!(
        "{\"version\":2,\"width\":80,\"height\":24,\"idle_time_limit\":1.5}\n",
        "[0.5,\"o\",\"\\u001b[1m$ ls\\u001b[0m\\r\\n\"]\n",
        "[0.6,\"i\",\"q\"]\n",
        "[9.5,\"o\",\"50 µs\\r\\n\"]\n",
    );

    fn played(cast: &Cast, has_styles: bool, interrupt: bool) -> String {
        let mut out = Vec::new();
        let interrupt = AtomicBool::new(interrupt);
        cast.play(&mut out, 40, has_styles, None, &interrupt)
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn output_is_played_in_order_with_short_pauses_and_nothing_else() {
        let cast = Cast::parse(SMALL).unwrap();
        let pauses: Vec<Duration> = cast.pieces.iter().map(|piece| piece.after).collect();
        assert_eq!(pauses, [0.5, 1.5].map(Duration::from_secs_f64));
        assert!(played(&cast, false, false).starts_with("$ ls\n50 "));
        assert!(played(&cast, true, false).starts_with("\u{1b}[1m$ ls\u{1b}[0m\n"));
        assert_eq!(played(&cast, false, true), "");
    }

    #[test]
    fn sentences_are_broken_to_the_window_and_commands_are_not() {
        let sentence = "A cap, a bad volume, or only cold? Random places are read.";
        assert_eq!(
            fitted_line(sentence, 40, false),
            "A cap, a bad volume, or only cold?\nRandom places are read."
        );
        let command = format!("{BOLD}$ disksmith bench /dev/vda --phase seek --seconds 5s{PLAIN}");
        let of_step = "+ mdadm --manage /dev/md127 --replace /dev/vdd --with /dev/vdf";
        for line in [&command, of_step] {
            assert_eq!(fitted_line(line, 40, false), line);
        }
        assert_eq!(fitted_line(sentence, usize::MAX, false), sentence);
        let title = format!("{BOLD}== 2 of 4: an array, and a file system aligned to it =={PLAIN}");
        assert_eq!(
            fitted_line(&title, 40, false),
            format!("{BOLD}== 2 of 4: an array, and a file system\naligned to it =={PLAIN}")
        );
    }

    #[test]
    fn commands_of_several_lines_stay_as_they_are() {
        let sentence = "A cap, a bad volume, or only cold? Random places are read.";
        let command = "$ disksmith array create --name data \\\n    --members /dev/vdb,/dev/vdc,/dev/vdd \\\n    \
                       --destroy /dev/vdb --destroy /dev/vdc";
        let text = format!("{BOLD}{command}{PLAIN}\n{sentence}");
        let pieces = text.split_inclusive("vdd").map(|text| OutputPiece {
            after: Duration::ZERO,
            text: text.to_owned(),
        });
        let cast = Cast {
            pieces: pieces.collect(),
        };
        let fitted = fitted(sentence, 40);
        assert_eq!(played(&cast, false, false), format!("{command}\n{fitted}"));
    }

    #[test]
    fn another_form_is_refused_with_its_line() {
        let error = |text: &str| Cast::parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "the recording has no header");
        assert!(error("{\"version\":1}").contains("version 1"));
        assert!(error("{\"version\":2}\n[1.0,\"o\"]").starts_with("line 2 of the recording: "));
    }
}
