//! Access to files of the examined host.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A path of the host, below the folder `root` that represents its `/`.
pub(crate) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// A file's text; `None` where it does not exist, is a folder, or cannot be read, which is reported in `unread`.
pub(super) fn read(root: &Path, file: &Path, unread: &mut Vec<String>) -> Option<String> {
    match fs::read(below(root, file)) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => {
            let is_none = [io::ErrorKind::NotFound, io::ErrorKind::IsADirectory];
            if !is_none.contains(&error.kind()) {
                unread.push(format!("{} could not be read: {error}.", file.display()));
            }
            None
        }
    }
}
