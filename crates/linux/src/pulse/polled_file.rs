//! A file of the kernel that is read repeatedly.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::root::{Error, Result};

/// Size of the first buffer; it doubles until the file fits.
const FIRST_BUFFER_BYTES: usize = 8192;

/// An open file of the kernel and its buffer.
#[derive(Debug)]
pub struct PolledFile {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

impl PolledFile {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<PolledFile> {
        let file = File::open(path).map_err(|source| Error::Read {
            path: path.to_path_buf(),
            source,
        })?;
        Ok(PolledFile {
            file,
            path: path.to_path_buf(),
            buffer: vec![0; FIRST_BUFFER_BYTES],
        })
    }

    /// Present contents of the file. Memory is only allocated if the file has grown.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self) -> Result<&[u8]> {
        let mut end = 0;
        loop {
            // The kernel returns such files a page at a time, so that a short read is not the end.
            let got = self
                .file
                .read_at(&mut self.buffer[end..], end as u64)
                .map_err(|source| Error::Read {
                    path: self.path.clone(),
                    source,
                })?;
            end += got;
            if got == 0 {
                return Ok(&self.buffer[..end]);
            }
            if end == self.buffer.len() {
                self.buffer.resize(2 * end, 0);
            }
        }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The lines of a text, without line ends and empty lines.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .filter_map(|line| std::str::from_utf8(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_whatever_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "one").unwrap();
        let mut file = PolledFile::open(&path).unwrap();
        assert_eq!(file.read().unwrap(), b"one");
        let long = "x".repeat(5 * FIRST_BUFFER_BYTES + 1);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(file.read().unwrap(), long.as_bytes());
        std::fs::write(&path, "2").unwrap();
        assert_eq!(file.read().unwrap(), b"2");
    }

    #[test]
    fn the_kernels_own_file_is_read_twice_alike() {
        let mut file = PolledFile::open(Path::new("/proc/filesystems")).unwrap();
        let first = file.read().unwrap().to_vec();
        assert!(!first.is_empty());
        assert_eq!(file.read().unwrap(), first);
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = PolledFile::open(Path::new("/no/such/file")).unwrap_err();
        assert!(error.to_string().contains("/no/such/file"));
    }
}
