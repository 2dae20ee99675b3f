//! Dirty memory, and the limits at which the kernel throttles programs.

use record::Bytes;

use super::polled_file::{PolledFile, lines};
use crate::root::{Error, Result, Root};

/// Counts of `/proc/vmstat` (linux, mm/vmstat.c), in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    /// Dirty memory that is not yet being written.
    pub dirty: Option<u64>,
    /// Memory that is being written to a disk.
    pub writeback: Option<u64>,
    /// Limit of the sum of both at which programs that write are throttled, which follows from `vm.dirty_ratio` or
    /// `vm.dirty_bytes`.
    pub limit: Option<u64>,
    /// Limit of the sum of both at which the kernel begins to write.
    pub background_limit: Option<u64>,
    /// Free pages and file pages that could be freed, including dirty ones.
    pub available: Option<u64>,
}

impl MemoryCounts {
    /// Parses the text of `/proc/vmstat`.
    pub fn parse(text: &[u8]) -> MemoryCounts {
        let mut counts = MemoryCounts::default();
        let mut free = None;
        let mut cached = [None; 2];
        for line in lines(text) {
            let Some((key, value)) = line.split_once(' ') else {
                continue;
            };
            let slot = match key {
                "nr_dirty" => &mut counts.dirty,
                "nr_writeback" => &mut counts.writeback,
                "nr_dirty_threshold" => &mut counts.limit,
                "nr_dirty_background_threshold" => &mut counts.background_limit,
                "nr_free_pages" => &mut free,
                "nr_zone_active_file" => &mut cached[0],
                "nr_zone_inactive_file" => &mut cached[1],
                _ => continue,
            };
            *slot = value.trim().parse().ok();
        }
        counts.available = free.map(|free: u64| {
            let cached = cached.into_iter().flatten();
            cached.fold(free, u64::saturating_add)
        });
        counts
    }
}

/// Reads `/proc/vmstat`.
#[derive(Debug)]
pub struct MemoryReader {
    file: PolledFile,
    page: u64,
}

impl MemoryReader {
    /// Opens the file.
    ///
    /// # Errors
    /// When it does not exist, or has no count of dirty memory.
    pub fn open(root: &Root) -> Result<MemoryReader> {
        let mut reader = MemoryReader {
            file: PolledFile::open(&root.proc.join("vmstat"))?,
            page: rustix::param::page_size() as u64,
        };
        let counts = reader.read()?;
        if counts.dirty.is_none() {
            return Err(Error::Parse {
                path: reader.file.path().to_path_buf(),
                line: 1,
                what: "there is no line 'nr_dirty'".to_owned(),
            });
        }
        Ok(reader)
    }

    /// The present counts.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self) -> Result<MemoryCounts> {
        Ok(MemoryCounts::parse(self.file.read()?))
    }

    /// Size of this number of pages.
    pub fn bytes(&self, pages: u64) -> Bytes {
        Bytes(pages.saturating_mul(self.page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limits_are_the_kernels_own() {
        let text = b"nr_free_pages 100\nnr_zone_inactive_file 30\nnr_zone_active_file 20\n\
                     nr_dirty 81254\nnr_writeback 7\nnr_writeback_temp 0\n\
                     nr_dirty_threshold 1058712\nnr_dirty_background_threshold 528709\n";
        let counts = MemoryCounts::parse(text);
        assert_eq!(counts.dirty, Some(81_254));
        assert_eq!(counts.writeback, Some(7));
        assert_eq!(counts.limit, Some(1_058_712));
        assert_eq!(counts.background_limit, Some(528_709));
        assert_eq!(counts.available, Some(150));
    }

    #[test]
    fn a_file_without_dirty_memory_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::under(folder.path());
        std::fs::create_dir_all(&root.proc).unwrap();
        std::fs::write(root.proc.join("vmstat"), "nr_free_pages 7\n").unwrap();
        assert!(MemoryReader::open(&root).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: Vec<u8>, value: String) {
            let _ = MemoryCounts::parse(&text);
            let _ = MemoryCounts::parse(format!("nr_dirty {value}").as_bytes());
        }
    }
}
