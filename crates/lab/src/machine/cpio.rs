//! Writes the archive that the kernel unpacks as its first root: cpio in its "newc" form, as
//! described in the kernel's Documentation/driver-api/early-userspace/buffer-format.rst.

use std::collections::BTreeSet;
use std::io::{self, Write};

const FOLDER: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const FILE: u32 = 0o100_000;

/// An archive that is being written. Parent folders are added when they are first needed. All entries belong to root
/// and have no date, so that the same contents give the same bytes.
#[derive(Debug)]
pub(super) struct Archive<W> {
    to: W,
    written: u64,
    inode: u32,
    made: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(to: W) -> Archive<W> {
        Archive {
            to,
            written: 0,
            inode: 0,
            made: BTreeSet::new(),
        }
    }

    /// True if something is at a path.
    pub(super) fn holds(&self, path: &str) -> bool {
        self.made.contains(path)
    }

    /// Adds a folder and its parents.
    pub(super) fn folder(&mut self, path: &str) -> io::Result<()> {
        if path.is_empty() || !self.made.insert(path.to_owned()) {
            return Ok(());
        }
        self.above(path)?;
        self.entry(path, FOLDER, b"")
    }

    /// Adds a file with its permission bits.
    pub(super) fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.above(path)?;
        self.made.insert(path.to_owned());
        self.entry(path, FILE | mode, bytes)
    }

    /// Adds a symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.above(path)?;
        self.made.insert(path.to_owned());
        self.entry(path, LINK, target.as_bytes())
    }

    /// Ends the archive, and returns the writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, b"")?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn above(&mut self, path: &str) -> io::Result<()> {
        match path.rsplit_once('/') {
            Some((folder, _)) => self.folder(folder),
            None => Ok(()),
        }
    }

    fn entry(&mut self, path: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        self.inode += 1;
        let too_large = |_| io::Error::new(io::ErrorKind::FileTooLarge, path.to_owned());
        let size = u32::try_from(bytes.len()).map_err(too_large)?;
        let name = u32::try_from(path.len() + 1).map_err(too_large)?;
        // The fields: inode, mode, owner, group, links, date, size, number of the device that contains the file (2),
        // number of the device that it is (2), length of the name with its zero, checksum (unused in this format).
        let fields = [self.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08x}"));
        }
        self.put(header.as_bytes())?;
        self.put(path.as_bytes())?;
        self.put(b"\0")?;
        self.align()?;
        self.put(bytes)?;
        self.align()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.to.write_all(bytes)
    }

    /// Names and contents are aligned to four bytes.
    fn align(&mut self) -> io::Result<()> {
        while !self.written.is_multiple_of(4) {
            self.put(b"\0")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut archive = Archive::new(Vec::new());
        archive.file("lab/a/file", 0o644, b"hello").unwrap();
        archive.file("lab/program", 0o755, b"12345678").unwrap();
        archive.link("bin", "usr/bin").unwrap();
        archive.folder("lab/a").unwrap();
        archive.finish().unwrap()
    }

    /// Reads an archive by the description of the format: path, mode, contents.
    fn entries(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        let mut at = 0;
        loop {
            assert_eq!(&bytes[at..at + 6], b"070701", "at {at}");
            let field = |n: usize| {
                let from = at + 6 + n * 8;
                let text = std::str::from_utf8(&bytes[from..from + 8]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (mode, size, name) = (field(1), field(6) as usize, field(11) as usize);
            let from = at + 110;
            assert_eq!(bytes[from + name - 1], 0, "a name ends with a zero");
            let path = String::from_utf8(bytes[from..from + name - 1].to_vec()).unwrap();
            let content = (from + name).next_multiple_of(4);
            if path == "TRAILER!!!" {
                return entries;
            }
            entries.push((path, mode, bytes[content..content + size].to_vec()));
            at = (content + size).next_multiple_of(4);
        }
    }

    #[test]
    fn files_are_read_back_with_the_folders_above_them_once() {
        let wanted: [(&str, u32, &[u8]); 5] = [
            ("lab", 0o040_755, b""),
            ("lab/a", 0o040_755, b""),
            ("lab/a/file", 0o100_644, b"hello"),
            ("lab/program", 0o100_755, b"12345678"),
            ("bin", 0o120_777, b"usr/bin"),
        ];
        let wanted = wanted.map(|(path, mode, bytes)| (path.to_owned(), mode, bytes.to_vec()));
        assert_eq!(entries(&archive()), wanted);
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        assert_eq!(archive(), archive());
        assert_eq!(archive().len() % 4, 0);
    }
}
