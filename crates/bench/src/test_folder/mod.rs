//! The directory of the tests of small files. Unlike the test file it must have a name, so a killed process leaves it
//! behind: a lock on it shows whether its owner is alive, and the next start removes it.
//!
//! Files of a killed run are removed only if all of them are disksmith's: the directory has exactly a name that this
//! program gives, it is owned by this user and no other may enter it, and the same holds for everything in it. If it
//! contains anything else, it is left unchanged, and the run reports it.

pub(crate) mod names;

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use jiff::Timestamp;
use linux::space::{self, FilesystemMedium};
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;

/// Maximum number of names that are tried: another process may take the directory for abandoned before it is locked.
const ATTEMPTS: u32 = 10;

/// The directory, which is removed on drop together with the directories in it. The code that creates files in it must
/// remove them before.
pub(crate) struct Folder {
    parent: OwnedFd,
    name: CString,
    directory: OwnedFd,
}

impl Folder {
    /// Creates the directory in `parent`, as [`open_parent`] gives it, and locks it.
    ///
    /// # Errors
    /// When `parent` may not be written.
    pub(crate) fn create(parent: &OwnedFd) -> io::Result<Folder> {
        let parent = parent.try_clone()?;
        for _ in 0..ATTEMPTS {
            // In a container all runs may have one process id, and a host that shares the file system
            // may have it too.
            let number = Timestamp::now().as_nanosecond() as u64;
            let name = CString::new(names::folder(std::process::id(), number))?;
            match mkdirat(&parent, &name, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                other => other?,
            }
            // Where directories cannot be locked, no process can find it abandoned.
            let free = |locked| locked != Err(Errno::WOULDBLOCK);
            if let Some(directory) = locked(parent.as_fd(), &name, free) {
                return Ok(Folder {
                    parent,
                    name,
                    directory,
                });
            }
        }
        Err(io::Error::other(
            "each directory for the small files existed before, or was removed as soon as it was \
             created; measure where no other run does",
        ))
    }

    /// Descriptor of the folder.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Only empty directories are removed: foreign files stay, and the next start reports them.
        let below = listed(self.as_fd()).unwrap_or_default();
        for name in below {
            if names::is_subdirectory(name.to_bytes()) {
                let _ = unlinkat(&self.directory, &*name, AtFlags::REMOVEDIR);
            }
        }
        let _ = unlinkat(&self.parent, &*self.name, AtFlags::REMOVEDIR);
    }
}

/// Result for a directory whose owner has ended.
#[derive(Debug, PartialEq)]
pub(crate) enum LeftoverFolder {
    /// The directory was removed, with its contents.
    Removed(PathBuf),
    /// The directory was kept, since a part of it is not this program's: the directory, and that part.
    Kept(PathBuf, PathBuf),
    /// The directory was kept, since another host may be using it.
    Shared(PathBuf),
}

impl LeftoverFolder {
    /// Note for the user, as a sentence.
    pub(crate) fn note(&self) -> String {
        match self {
            LeftoverFolder::Removed(path) => {
                format!("Removed {}, which a killed run had left.", path.display())
            }
            LeftoverFolder::Kept(path, foreign) => format!(
                "Left {} as it is: it has a name of disksmith's and no run uses it, but {} is not \
                 this user's alone, or not created by a run. Remove it if it is not needed.",
                path.display(),
                foreign.display()
            ),
            LeftoverFolder::Shared(path) => format!(
                "Left {} as it is: it has a name of ours, and a run on another host may be using it. \
                 Remove it if none does.",
                path.display()
            ),
        }
    }
}

/// Removes directories in `parent` that have this program's name, whose owner has ended and which contain nothing
/// foreign. Returns the result for each that no run on this host uses.
pub(crate) fn remove_left_over(parent: &Path) -> Vec<LeftoverFolder> {
    match space::of(parent) {
        Ok(space) => remove_on(space.medium(), parent),
        Err(_) => Vec::new(),
    }
}

/// Like [`remove_left_over`], on a file system of the kind `medium`. On a file system that other hosts may mount too,
/// locks only hold for one host (NFS has none for directories, FUSE mostly none), so that abandoned directories cannot
/// be recognized.
fn remove_on(medium: FilesystemMedium, parent: &Path) -> Vec<LeftoverFolder> {
    let shared = matches!(medium, FilesystemMedium::Network | FilesystemMedium::Fuse);
    let Ok(above) = open_parent(parent) else {
        return Vec::new();
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .filter(|entry| names::is_folder(entry.file_name().as_bytes()))
        .filter_map(|entry| {
            let name = CString::new(entry.file_name().as_bytes()).ok()?;
            let path = entry.path();
            if shared {
                return Some(LeftoverFolder::Shared(path));
            }
            let directory = locked(above.as_fd(), &name, |locked| locked.is_ok())?;
            let removed = remove(above.as_fd(), &name, directory.as_fd());
            Some(match removed {
                Ok(()) => LeftoverFolder::Removed(path),
                Err(foreign) => {
                    let foreign = path.join(foreign);
                    LeftoverFolder::Kept(path, foreign)
                }
            })
        })
        .collect()
}

/// The directory of that name, if the result of locking it satisfies `enough`, and it still has that name.
fn locked(
    parent: BorrowedFd<'_>,
    name: &CStr,
    enough: impl Fn(Result<(), Errno>) -> bool,
) -> Option<OwnedFd> {
    let directory = open_directory(parent, name).ok()?;
    if !enough(flock(&directory, FlockOperation::NonBlockingLockExclusive)) {
        return None;
    }
    let (own, named) = (
        fstat(&directory).ok()?,
        statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok()?,
    );
    (own.st_dev == named.st_dev && own.st_ino == named.st_ino).then_some(directory)
}

/// Opens the directory that a user has named, possibly by a symbolic link. Read permission is not needed.
///
/// # Errors
/// When it does not exist, or is not a directory.
pub(crate) fn open_parent(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Opens a directory by its name in another. A symbolic link is not followed, since no user has named it.
fn open_directory(at: BorrowedFd<'_>, path: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, path, flags, Mode::empty())
}

/// Path, relative to the directory, that is foreign or could not be examined or removed; empty for the directory
/// itself.
type ForeignPath = PathBuf;

/// Contents of a directory of this program.
struct Contents {
    files: Vec<CString>,
    /// Directories, with the files in each.
    directories: Vec<(CString, Vec<CString>)>,
}

/// Removes the directory if it and everything in it are this program's; otherwise nothing is removed.
fn remove(
    parent: BorrowedFd<'_>,
    name: &CStr,
    directory: BorrowedFd<'_>,
) -> Result<(), ForeignPath> {
    let contents = contents(directory)?;
    for (below, files) in &contents.directories {
        let foreign = |_: Errno| path_of(below);
        let inner = open_directory(directory, &**below).map_err(foreign)?;
        remove_files(inner.as_fd(), files).map_err(|file| path_of(below).join(file))?;
        unlinkat(directory, &**below, AtFlags::REMOVEDIR).map_err(foreign)?;
    }
    remove_files(directory, &contents.files)?;
    unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(|_| ForeignPath::new())
}

fn remove_files(directory: BorrowedFd<'_>, files: &[CString]) -> Result<(), ForeignPath> {
    files.iter().try_for_each(|file| {
        unlinkat(directory, &**file, AtFlags::empty()).map_err(|_| path_of(file))
    })
}

/// Contents of the directory and one level below.
///
/// # Errors
/// The first path that is not this program's.
fn contents(directory: BorrowedFd<'_>) -> Result<Contents, ForeignPath> {
    let own = fstat(directory).map_err(|_| ForeignPath::new())?;
    let private = Mode::from_raw_mode(own.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
    if !is_this_users(&own) || private != Mode::RWXU {
        return Err(ForeignPath::new());
    }
    let mut contents = Contents {
        files: Vec::new(),
        directories: Vec::new(),
    };
    for name in listed(directory).map_err(|_| ForeignPath::new())? {
        if names::is_subdirectory(name.to_bytes()) {
            let files =
                files_below(directory, &name).map_err(|foreign| path_of(&name).join(foreign))?;
            contents.directories.push((name, files));
        } else {
            contents.files.push(our_file(directory, name)?);
        }
    }
    Ok(contents)
}

/// The files in a subdirectory, which may contain nothing else.
fn files_below(directory: BorrowedFd<'_>, name: &CStr) -> Result<Vec<CString>, ForeignPath> {
    let unseen = |_: Errno| ForeignPath::new();
    let inner = open_directory(directory, name).map_err(unseen)?;
    if !is_this_users(&fstat(&inner).map_err(unseen)?) {
        return Err(ForeignPath::new());
    }
    let files = listed(inner.as_fd()).map_err(unseen)?;
    files
        .into_iter()
        .map(|file| our_file(inner.as_fd(), file))
        .collect()
}

/// The name, if it is one that a test gives and the file is a regular file of this user.
fn our_file(directory: BorrowedFd<'_>, name: CString) -> Result<CString, ForeignPath> {
    let seen = statat(directory, &*name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| path_of(&name))?;
    let file = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile;
    match file && is_this_users(&seen) && names::is_file(name.to_bytes()) {
        true => Ok(name),
        false => Err(path_of(&name)),
    }
}

fn is_this_users(seen: &Stat) -> bool {
    seen.st_uid == rustix::process::geteuid().as_raw()
}

fn path_of(name: &CStr) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()))
}

/// Names of the entries of a directory.
fn listed(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    Dir::read_from(directory)?
        .map(|entry| entry.map(|entry| entry.file_name().to_owned()))
        .filter(|name| !matches!(name, Ok(name) if matches!(name.to_bytes(), b"." | b"..")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    /// A directory as a killed run leaves it: everything in it is this program's.
    fn left(parent: &Path) -> PathBuf {
        let path = parent.join(".disksmith-7-0.dir");
        fs::create_dir_all(path.join("00001")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(path.join("0000000001aB3"), "x").unwrap();
        fs::write(path.join("00001/zZ000000000f"), "x").unwrap();
        path
    }

    fn only_entry(parent: &Path) -> PathBuf {
        fs::read_dir(parent)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    }

    #[test]
    fn it_goes_when_it_is_empty() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::create(&open_parent(parent.path()).unwrap()).unwrap();
        let path = only_entry(parent.path());
        fs::create_dir(path.join("00000")).unwrap();
        assert_eq!(remove_left_over(parent.path()), []);
        assert!(path.is_dir(), "its owner is alive");
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn the_next_start_removes_what_a_killed_one_left() {
        let parent = tempfile::tempdir().unwrap();
        let path = left(parent.path());
        assert_eq!(
            remove_left_over(parent.path()),
            [LeftoverFolder::Removed(path)]
        );
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_that_was_named_is_followed() {
        let parent = tempfile::tempdir().unwrap();
        let (real, link) = (parent.path().join("real"), parent.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let folder = Folder::create(&open_parent(&link).unwrap()).unwrap();
        assert_eq!(fs::read_dir(&real).unwrap().count(), 1);
        drop(folder);
        let path = link.join(left(&real).file_name().unwrap());
        assert_eq!(remove_left_over(&link), [LeftoverFolder::Removed(path)]);
        assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
    }

    #[test]
    fn what_another_host_may_use_stays() {
        for medium in [FilesystemMedium::Network, FilesystemMedium::Fuse] {
            let parent = tempfile::tempdir().unwrap();
            let path = left(parent.path());
            let shared = LeftoverFolder::Shared(path.clone());
            assert_eq!(remove_on(medium, parent.path()), [shared]);
            assert!(path.join("00001/zZ000000000f").exists());
        }
    }

    #[test]
    fn what_a_process_of_the_same_number_left_is_in_nobodys_way() {
        let parent = tempfile::tempdir().unwrap();
        for number in 0..200 {
            let name = names::folder(std::process::id(), number);
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        Folder::create(&open_parent(parent.path()).unwrap()).unwrap();
    }

    /// Makes `foreign` of the remains of a killed run, and verifies that nothing of them is changed.
    fn stays_whole(foreign: &str, make: impl FnOnce(&Path)) {
        let parent = tempfile::tempdir().unwrap();
        let path = left(parent.path());
        make(&path);
        let kept = LeftoverFolder::Kept(path.clone(), path.join(foreign));
        assert_eq!(remove_left_over(parent.path()), [kept]);
        for ours in ["0000000001aB3", "00001/zZ000000000f"] {
            assert!(path.join(ours).exists(), "{ours} beside {foreign}");
        }
    }

    #[test]
    fn what_holds_anything_else_stays_whole() {
        for foreign in ["notes.txt", "20231105120000", "00001/deadbeefcafe"] {
            stays_whole(foreign, |path| {
                fs::write(path.join(foreign), "mine").unwrap();
            });
        }
        stays_whole("Music", |path| {
            fs::create_dir(path.join("Music")).unwrap();
            fs::write(path.join("Music/0000000000"), "mine").unwrap();
        });
        stays_whole("0000000002", |path| {
            std::os::unix::fs::symlink("/etc/hostname", path.join("0000000002")).unwrap();
        });
        stays_whole("", |path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        });
    }

    #[test]
    fn with_root_what_is_another_users_stays() {
        if !rustix::process::geteuid().is_root() {
            skip::skipped("this needs root");
            return;
        }
        stays_whole("", |path| chown(path, Some(65_534), None).unwrap());
        stays_whole("0000000001aB3", |path| {
            chown(path.join("0000000001aB3"), Some(65_534), None).unwrap();
        });
    }

    #[test]
    fn files_of_other_names_are_not_read() {
        let parent = tempfile::tempdir().unwrap();
        for name in [".disksmith-notes.dir", "disksmith-1-0.dir", "elsewhere"] {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            fs::write(path.join("0000000000"), "mine").unwrap();
        }
        let link = parent.path().join(".disksmith-8-0.dir");
        std::os::unix::fs::symlink(parent.path().join("elsewhere"), link).unwrap();
        assert_eq!(remove_left_over(parent.path()), []);
        for name in [".disksmith-notes.dir", "disksmith-1-0.dir", "elsewhere"] {
            assert!(parent.path().join(name).join("0000000000").exists());
        }
    }
}
