//! Time for which tasks waited for I/O (linux, Documentation/accounting/psi.rst), and the load.

use std::time::Duration;

use super::polled_file::{PolledFile, lines};
use crate::root::{Error, Result, Root};

/// A line of a pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StallTimes {
    /// Percent of the last 10 seconds.
    pub avg10: f64,
    /// Percent of the last 60 seconds.
    pub avg60: f64,
    /// Percent of the last 300 seconds.
    pub avg300: f64,
    /// Total time since the host started.
    pub total: Duration,
}

/// `/proc/pressure/io`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PressureCounts {
    /// Time in which at least one task waited.
    pub some: StallTimes,
    /// Time in which all tasks that were not idle waited at once.
    pub full: Option<StallTimes>,
}

impl PressureCounts {
    /// Parses the text of a pressure file. `None` if it has no line `some`.
    pub fn parse(text: &[u8]) -> Option<PressureCounts> {
        let of = |word: &str| {
            let mut lines = lines(text).filter_map(|line| line.strip_prefix(word));
            lines.next().and_then(stalled)
        };
        Some(PressureCounts {
            some: of("some ")?,
            full: of("full "),
        })
    }
}

fn stalled(line: &str) -> Option<StallTimes> {
    let mut found = StallTimes::default();
    for word in line.split_ascii_whitespace() {
        let (key, value) = word.split_once('=')?;
        match key {
            "avg10" => found.avg10 = value.parse().ok()?,
            "avg60" => found.avg60 = value.parse().ok()?,
            "avg300" => found.avg300 = value.parse().ok()?,
            "total" => found.total = Duration::from_micros(value.parse().ok()?),
            _ => {}
        }
    }
    Some(found)
}

/// Reads `/proc/pressure/io`.
#[derive(Debug)]
pub struct PressureReader {
    file: PolledFile,
}

impl PressureReader {
    /// Opens the file.
    ///
    /// # Errors
    /// When it does not exist, as before Linux 4.20, or when pressure is not counted: then the kernel refuses the
    /// read.
    pub fn open(root: &Root) -> Result<PressureReader> {
        let mut reader = PressureReader {
            file: PolledFile::open(&root.proc.join("pressure/io"))?,
        };
        reader.read()?;
        Ok(reader)
    }

    /// The present counts.
    ///
    /// # Errors
    /// When the file cannot be read, or has another form.
    pub fn read(&mut self) -> Result<PressureCounts> {
        let counts = PressureCounts::parse(self.file.read()?);
        counts.ok_or_else(|| Error::Parse {
            path: self.file.path().to_path_buf(),
            line: 1,
            what: "the line 'some' is missing or no line of a pressure file".to_owned(),
        })
    }
}

/// The three means of `/proc/loadavg` (proc_loadavg(5)), over 1, 5 and 15 minutes.
pub fn load(text: &[u8]) -> Option<[f64; 3]> {
    let mut words = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let mut next = || words.next()?.parse().ok();
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_lines_are_read() {
        let text = b"some avg10=1.10 avg60=2.79 avg300=7.38 total=4508483701\n\
                     full avg10=0.00 avg60=0.60 avg300=3.11 total=1606880517\n";
        let counts = PressureCounts::parse(text).unwrap();
        assert_eq!(counts.some.avg60, 2.79);
        assert_eq!(counts.some.total, Duration::from_micros(4_508_483_701));
        assert_eq!(counts.full.unwrap().avg300, 3.11);
        let some = PressureCounts::parse(&text[..54]).unwrap();
        assert_eq!(some.full, None);
    }

    #[test]
    fn the_load_is_three_numbers() {
        assert_eq!(
            load(b"6.43 4.86 3.63 12/167 2000\n"),
            Some([6.43, 4.86, 3.63])
        );
        assert_eq!(load(b"6.43 x"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text: Vec<u8>, line: String) {
            let _ = PressureCounts::parse(&text);
            let _ = PressureCounts::parse(format!("some {line}").as_bytes());
            let _ = load(&text);
        }
    }
}
