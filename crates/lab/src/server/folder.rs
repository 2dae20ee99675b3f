//! The server's own folder: its name shows its owner, and it is removed at the end.
//!
//! It contains a file on which the server has a lock (flock(2)) while it runs. A folder whose lock is free was left by
//! a server that was killed, and the next server removes it.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;

use super::ServerError;

/// Prefix of the folders' names.
const PREFIX: &str = "disksmith-lab-";

/// The file whose lock shows that the folder's server is running.
const LOCK: &str = "lock";

/// A folder that is removed when this is dropped.
pub(super) struct Folder {
    path: PathBuf,
    /// Held until the folder is removed.
    _lock: File,
}

impl Folder {
    /// Creates a new folder in `within`, by default the folder for temporary files. Folders of killed servers there
    /// are removed.
    ///
    /// # Errors
    /// When it cannot be created.
    pub(super) fn make(within: Option<&Path>) -> Result<Folder, ServerError> {
        let within = within.map_or_else(std::env::temp_dir, Path::to_owned);
        remove_left(&within);
        let failed = |source| ServerError::Folder {
            folder: within.clone(),
            source,
        };
        for number in 0..10_000 {
            let path = within.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(error)),
            }
            // Another server may treat the folder as left over before it is locked, and remove it; then the next name
            // is tried.
            if let Ok(Some(lock)) = lock(&path, true) {
                return Ok(Folder { path, _lock: lock });
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next server.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The lock of a folder; `None` if another process has it, or has removed the folder.
fn lock(folder: &Path, create: bool) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(create)
        .mode(0o600)
        // The entry may belong to another user: links are not followed, and opening a pipe does not block.
        .custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32)
        .open(folder.join(LOCK))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        // Another process may have locked and removed it between opening and locking.
        Ok(()) => Ok((file.metadata()?.nlink() > 0).then_some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes the folders of servers that have ended.
fn remove_left(within: &Path) {
    let Ok(entries) = std::fs::read_dir(within) else {
        return;
    };
    for entry in entries.flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // The entry itself, not the target of a link.
        let is_own = |facts: Metadata| facts.is_dir() && facts.uid() == geteuid().as_raw();
        if named
            && entry.metadata().is_ok_and(is_own)
            && let Ok(Some(_held)) = lock(&entry.path(), false)
        {
            // What cannot be removed now is left to the next server.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_servers_are_removed_and_those_of_live_ones_kept() {
        let within = tempfile::tempdir().unwrap();
        let living = Folder::make(Some(within.path())).unwrap();
        let left = within.path().join("disksmith-lab-1-0");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        std::fs::write(left.join("lab1.sock"), "").unwrap();
        let other = within.path().join("disksmith-lab-of-a-user");
        std::fs::create_dir(&other).unwrap();

        let next = Folder::make(Some(within.path())).unwrap();
        assert!(living.path().exists() && next.path().exists() && other.exists());
        assert!(!left.exists());
        assert_ne!(living.path(), next.path());
        drop((living, next));
        assert_eq!(std::fs::read_dir(within.path()).unwrap().count(), 1);
    }

    #[test]
    fn servers_that_start_at_once_all_have_a_folder() {
        let within = tempfile::tempdir().unwrap();
        for _ in 0..50 {
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        start.wait();
                        let folder = Folder::make(Some(within.path())).unwrap();
                        std::fs::write(folder.path().join("data"), "").unwrap();
                    });
                }
            });
        }
        assert_eq!(std::fs::read_dir(within.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_of_another_program_is_neither_waited_for_nor_removed() {
        let within = tempfile::tempdir().unwrap();
        let pipe = within.path().join("disksmith-lab-1-0");
        std::fs::create_dir(&pipe).unwrap();
        let mut command = std::process::Command::new("mkfifo");
        assert!(command.arg(pipe.join(LOCK)).status().unwrap().success());
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join(LOCK), "").unwrap();
        let link = within.path().join("disksmith-lab-2-0");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();

        drop(Folder::make(Some(within.path())).unwrap());
        assert!(pipe.join(LOCK).exists() && link.join(LOCK).exists());
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named() {
        let error = Folder::make(Some(Path::new("/no/such/folder")))
            .err()
            .unwrap();
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    }
}
