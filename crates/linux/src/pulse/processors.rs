//! Processor time since the host started, by use (linux, Documentation/filesystems/proc.rst).

use super::polled_file::lines;
use crate::root::{Result, Root, read_bytes};

/// The time of all processors together, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorTime {
    /// Sum of all uses, idle time included.
    pub total: u64,
    /// Time that the hypervisor gave to other guests while this host had work (steal).
    pub stolen: u64,
}

impl ProcessorTime {
    /// Reads `/proc/stat`; `None` if it has no line `cpu`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(root: &Root) -> Result<Option<ProcessorTime>> {
        Ok(Self::parse(&read_bytes(&root.proc.join("stat"))?))
    }

    /// Parses the text of `/proc/stat`. Guest time is included in user time, and not added again.
    fn parse(text: &[u8]) -> Option<ProcessorTime> {
        let line = lines(text).find_map(|line| line.strip_prefix("cpu "))?;
        let times: Option<Vec<u64>> = line
            .split_ascii_whitespace()
            .take(8)
            .map(|word| word.parse().ok())
            .collect();
        let times = times?;
        Some(ProcessorTime {
            total: times
                .iter()
                .fold(0, |sum: u64, time| sum.saturating_add(*time)),
            stolen: times.get(7).copied().unwrap_or(0),
        })
    }

    /// Share of the time since an earlier reading that was stolen, 0 to 1.
    pub fn stolen_since(&self, before: &ProcessorTime) -> f64 {
        let total = self.total.saturating_sub(before.total);
        let stolen = self.stolen.saturating_sub(before.stolen);
        stolen.min(total) as f64 / total.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_figure() {
        let text = b"cpu  100 0 50 800 10 0 5 35 20 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        let time = ProcessorTime::parse(text).unwrap();
        assert_eq!((time.total, time.stolen), (1000, 35));
        let later = ProcessorTime {
            total: 1200,
            stolen: 85,
        };
        assert_eq!(later.stolen_since(&time), 0.25);
        assert_eq!(time.stolen_since(&later), 0.0);
        // Linux before 2.6.11 does not count it.
        let old = ProcessorTime::parse(b"cpu 1 2 3 4 5 6 7\n").unwrap();
        assert_eq!((old.total, old.stolen), (28, 0));
        assert_eq!(ProcessorTime::parse(b"intr 5\n"), None);
        assert_eq!(ProcessorTime::parse(b"cpu one\n"), None);
    }
}
