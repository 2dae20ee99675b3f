//! Default path of the ledger, and properties of its file system.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use crate::{Error, Result};

/// Path of the ledger if none is given: in the folder for state (`$XDG_STATE_HOME/disksmith/ledger.db`), else for
/// root in `/var/lib/disksmith/ledger.db`, and for others in `$HOME/.local/state/disksmith/ledger.db`.
///
/// Root's home is not used: a service, sudo and a login shell have different homes or none, and each must find what
/// another has left in the ledger, to undo it.
///
/// `lookup` returns the value of an environment variable.
///
/// # Errors
/// When the environment gives no path.
pub fn default_path(lookup: impl Fn(&str) -> Option<OsString>, is_root: bool) -> Result<PathBuf> {
    // The XDG base directory specification: a path that is not absolute is to be ignored.
    let folder = |name| {
        lookup(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = folder("XDG_STATE_HOME")
        .or_else(|| is_root.then(|| PathBuf::from("/var/lib")))
        .or_else(|| Some(folder("HOME")?.join(".local/state")))
        .ok_or(Error::NoPlace)?;
    Ok(state.join("disksmith/ledger.db"))
}

/// Creates the file, empty, and the folders above it, for this user alone.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    // `create_new`, because a file that another thread of this process has just created and locked
    // must not be opened here: closing any descriptor of a file drops all of the process's locks.
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(file) => {
            give_to_owner_of_folder(&file, path);
            Ok(())
        }
    }
}

/// Gives a new file to the owner of its folder: a file that root creates in the folder of a service, or of a user, is
/// of use to them too. SQLite does so with its side files.
fn give_to_owner_of_folder(file: &File, path: &Path) {
    let owner = path.parent().map(fs::metadata);
    if let (Some(Ok(folder)), Ok(own)) = (owner, file.metadata())
        && folder.uid() != own.uid()
    {
        // Only root may do this; other users keep the file that they created.
        let _ = fchown(file, Some(folder.uid()), Some(folder.gid()));
    }
}

/// Returns an error unless the file may be read.
pub(crate) fn may_read(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::accessat(
        CWD,
        path,
        Access::READ_OK,
        AtFlags::EACCESS,
    )?)
}

/// True if the file, and the folder in which SQLite puts its side files, may be written.
pub(crate) fn may_write(path: &Path) -> bool {
    let allowed =
        |path: &Path| rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    allowed(path) && path.parent().is_none_or(allowed)
}

/// Path of an SQLite side file of the ledger, which holds changes that are not yet in the ledger itself.
pub(crate) fn side_file(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// True if a side file exists: another process has the ledger open, or was killed.
pub(crate) fn has_side_file(path: &Path) -> bool {
    ["-wal", "-journal"]
        .iter()
        .any(|suffix| side_file(path, suffix).exists())
}

/// True if all processes that can reach the file can share memory, as WAL needs.
pub(crate) fn shares_memory(path: &Path) -> bool {
    rustix::fs::statfs(path).map_or(true, |stat| !is_remote(stat.f_type as u32))
}

/// True if `magic` (statfs `f_type`, of which 32 bits count) is a file system that other hosts may have
/// mounted too, or that may not be able to map shared memory.
fn is_remote(magic: u32) -> bool {
    const REMOTE: [u32; 12] = [
        0x6969,      // NFS
        0x517b,      // SMB
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x0102_1997, // 9P
        0x6573_5546, // FUSE: sshfs, s3fs, gluster, virtiofs
        0x00c3_6400, // Ceph
        0x0bd0_0bd0, // Lustre
        0x4750_4653, // GPFS (Spectrum Scale)
        0x0116_1970, // GFS2
        0x7461_636f, // OCFS2
        0x5346_414f, // AFS
    ];
    REMOTE.contains(&magic)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn path_in(environment: &[(&str, &str)], is_root: bool) -> Result<PathBuf> {
        let map: HashMap<_, _> = environment.iter().copied().collect();
        default_path(|name| map.get(name).map(OsString::from), is_root)
    }

    #[test]
    fn the_state_folder_comes_first_then_home_but_for_root_whose_homes_differ() {
        let both = [("XDG_STATE_HOME", "/state"), ("HOME", "/home/ann")];
        for (environment, is_root, expected) in [
            (&both[..], false, "/state/disksmith/ledger.db"),
            (
                &both[1..],
                false,
                "/home/ann/.local/state/disksmith/ledger.db",
            ),
            (&both[..], true, "/state/disksmith/ledger.db"),
            (&both[1..], true, "/var/lib/disksmith/ledger.db"),
            (&[], true, "/var/lib/disksmith/ledger.db"),
        ] {
            assert_eq!(path_in(environment, is_root).unwrap(), Path::new(expected));
        }
    }

    #[test]
    fn empty_and_relative_folders_are_ignored() {
        let odd = [("XDG_STATE_HOME", "state"), ("HOME", "")];
        assert!(matches!(path_in(&odd, false), Err(Error::NoPlace)));
        let odd = [("XDG_STATE_HOME", ""), ("HOME", "/h")];
        assert_eq!(
            path_in(&odd, false).unwrap(),
            Path::new("/h/.local/state/disksmith/ledger.db")
        );
    }

    #[test]
    fn created_files_are_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/ledger.db");
        create(&path).unwrap();
        create(&path).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(&folder.path().join("a")), 0o700);
        assert_eq!(mode(&folder.path().join("a/b")), 0o700);
    }

    #[test]
    fn root_what_root_creates_belongs_to_the_owner_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        if std::os::unix::fs::chown(folder.path(), Some(1234), Some(1235)).is_err() {
            return skip::skipped("root");
        }
        let path = folder.path().join("ledger.db");
        create(&path).unwrap();
        let facts = path.metadata().unwrap();
        assert_eq!((facts.uid(), facts.gid()), (1234, 1235));
    }

    #[test]
    fn network_file_systems_do_not_share_memory() {
        assert!(is_remote(0x6969));
        assert!(!is_remote(0xef53), "ext4");
        assert!(shares_memory(Path::new("/proc")));
    }
}
