//! The machine's own disk, which survives a power cut: a file of this host.
//!
//! A file system is only made if the file was empty before. Any other file must have been created by a lab, as the
//! label of its file system shows; otherwise it is refused and not changed.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::io::Errno;

use super::{Error, Result};
use crate::spec::STATE_SERIAL;

/// Size in bytes. The file is sparse.
pub(super) const BYTES: u64 = 1 << 30;

/// Position of ext4's magic number and label, in bytes from the start of the disk: see the kernel's
/// Documentation/filesystems/ext4/super.rst.
const MAGIC_AT: u64 = 1024 + 0x38;
const MAGIC: [u8; 2] = [0x53, 0xef];
const LABEL_AT: u64 = 1024 + 0x78;
const LABEL_BYTES: usize = 16;

/// The open file. It is locked while it is open: two machines would corrupt it.
#[derive(Debug)]
pub(super) struct State {
    pub file: File,
    /// True if it is empty.
    pub is_new: bool,
}

impl State {
    /// Opens the file, and creates it if it does not exist.
    ///
    /// # Errors
    /// When it is in use, is not a regular file, or has contents that are not of a lab's machine.
    pub(super) fn open(path: &Path) -> Result<State> {
        let open = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        let file = open.map_err(|source| Error::file("opened", path, source))?;
        let unreadable = |source| Error::file("read", path, source);
        let known = file.metadata().map_err(unreadable)?;
        if !known.is_file() {
            return Err(foreign(path, "is no regular file"));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Unavailable(format!(
                    "{} is in use by another machine: wait for its end, or name another file with \
                     --state",
                    path.display()
                )));
            }
            Err(TryLockError::Error(source)) => return Err(Error::file("locked", path, source)),
        }
        let is_new = !holds_data(&file, known.len()).map_err(unreadable)?;
        if !is_new && !is_labelled(&file).map_err(unreadable)? {
            return Err(foreign(path, "is not the disk of a lab's machine"));
        }
        if is_new && known.len() < BYTES {
            file.set_len(BYTES)
                .map_err(|source| Error::file("made larger", path, source))?;
        }
        Ok(State { file, is_new })
    }
}

fn foreign(path: &Path, why: &str) -> Error {
    Error::Unavailable(format!(
        "{} {why}, so it was left as it is: name a file with --state that does not exist yet, or \
         one that was made by --state",
        path.display()
    ))
}

/// True if anything was ever written to the file: it is not just a hole.
fn holds_data(file: &File, bytes: u64) -> io::Result<bool> {
    if bytes == 0 {
        return Ok(false);
    }
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(0)) {
        Ok(_) => Ok(true),
        Err(Errno::NXIO) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// True if it has the file system that the machine makes.
fn is_labelled(file: &File) -> io::Result<bool> {
    let mut magic = MAGIC;
    let mut label = [0; LABEL_BYTES];
    for (field, at) in [(&mut magic[..], MAGIC_AT), (&mut label[..], LABEL_AT)] {
        match file.read_exact_at(field, at) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
    }
    let name = label.split(|byte| *byte == 0).next();
    Ok(magic == MAGIC && name == Some(STATE_SERIAL.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[track_caller]
    fn is_refused(path: &Path, words: &str) {
        let error = State::open(path).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }

    #[test]
    fn a_file_that_is_absent_or_holds_nothing_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        for _ in 0..2 {
            let state = State::open(&path).unwrap();
            assert!(state.is_new);
            assert_eq!(fs::metadata(&path).unwrap().len(), BYTES);
        }
        let empty = folder.path().join("empty");
        File::create(&empty).unwrap();
        assert!(State::open(&empty).unwrap().is_new);
    }

    #[test]
    fn data_of_the_user_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("photos.tar");
        let large = vec![7; 300_000];
        let zeros = vec![0; 5000];
        for content in [&b"a line\n"[..], &large, &zeros] {
            fs::write(&path, content).unwrap();
            is_refused(&path, "is not the disk of a lab's machine");
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        is_refused(Path::new("/dev/null"), "is no regular file");
    }

    #[test]
    fn another_file_system_is_refused_and_that_of_a_machine_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let file = File::create(&path).unwrap();
        file.set_len(BYTES).unwrap();
        file.write_all_at(&MAGIC, MAGIC_AT).unwrap();
        for label in ["", "home", "lab-states"] {
            let mut bytes = [0; LABEL_BYTES];
            bytes[..label.len()].copy_from_slice(label.as_bytes());
            file.write_all_at(&bytes, LABEL_AT).unwrap();
            is_refused(&path, "is not the disk of a lab's machine");
        }
        file.write_all_at(b"lab-state\0", LABEL_AT).unwrap();
        assert!(!State::open(&path).unwrap().is_new);
    }

    #[test]
    fn one_machine_at_a_time_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let first = State::open(&path).unwrap();
        is_refused(&path, "in use by another machine");
        drop(first);
        State::open(&path).unwrap();
    }
}
