//! The files that a path, a pattern or a folder names. Folders are listed without a change of their access times: a
//! command that only reads should change nothing, and each such change is a write to the volume that is being warmed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Dir, FileType, OFlags};

use super::glob::{self, Pattern};

/// The regular files that a path names: the file itself, all files in a folder at any depth, or all that match a
/// pattern. Below a folder, symbolic links are not followed. Other entries that a pattern matches or a folder contains,
/// such as sockets, are skipped. An entry that disappears meanwhile or cannot be examined is returned, so that opening
/// it reports the error. When `interrupt` is set, the files found so far are returned.
///
/// # Errors
/// A sentence, when the path names no file or cannot be examined.
pub(super) fn files(path: &Path, interrupt: &AtomicBool) -> Result<Vec<PathBuf>, String> {
    let shown = path.display();
    let mut files = Vec::new();
    if path.symlink_metadata().is_ok() {
        let named = fs::metadata(path).map_err(|error| format!("--first {shown}: {error}"))?;
        if named.is_dir() {
            list(path, interrupt).map_err(|error| format!("--first {shown}: {error}"))?;
            below(path, &mut files, interrupt);
        } else if named.is_file() {
            files.push(path.to_path_buf());
        } else {
            return Err(format!("--first {shown} is neither a file nor a folder"));
        }
    } else {
        let found = expand(path, interrupt).map_err(|why| format!("--first {shown}: {why}"))?;
        for path in found {
            add_match(path, &mut files, interrupt);
        }
    }
    if files.is_empty() && !interrupt.load(Ordering::Relaxed) {
        return Err(format!(
            "--first {shown}: there is no such file, nor one in such a folder; put a pattern in quotes, \
             and name folders and files as this host has them mounted"
        ));
    }
    Ok(files)
}

/// Adds a path that a pattern matches, if it is a file, and the files below it, if it is a folder.
fn add_match(path: PathBuf, files: &mut Vec<PathBuf>, interrupt: &AtomicBool) {
    match fs::metadata(&path) {
        Ok(named) if named.is_dir() => below(&path, files, interrupt),
        Ok(named) if named.is_file() => files.push(path),
        Ok(_) => {}
        // A dangling symbolic link is not a file.
        Err(_) if path.is_symlink() => {}
        Err(_) => files.push(path),
    }
}

/// The paths that a pattern matches, in order.
///
/// # Errors
/// A sentence, when a component of the path is an invalid pattern.
fn expand(pattern: &Path, interrupt: &AtomicBool) -> Result<Vec<PathBuf>, String> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        if !glob::is_pattern(name.as_bytes()) {
            found.iter_mut().for_each(|path| path.push(name));
            continue;
        }
        let text = name
            .to_str()
            .ok_or("a pattern must be UTF-8; name the files themselves")?;
        let pattern = Pattern::new(text).map_err(|error| error.to_string())?;
        found = found
            .iter()
            .flat_map(|folder| matching(folder, &pattern, interrupt))
            .collect();
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    Ok(found)
}

fn matching(folder: &Path, pattern: &Pattern, interrupt: &AtomicBool) -> Vec<PathBuf> {
    let place = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = list(place, interrupt).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|(name, _)| name)
        .filter(|name| pattern.matches(name))
        .map(|name| folder.join(name))
        .collect();
    found.sort();
    found
}

/// Adds all regular files below a folder, and the folders that cannot be listed.
fn below(folder: &Path, files: &mut Vec<PathBuf>, interrupt: &AtomicBool) {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        if interrupt.load(Ordering::Relaxed) {
            return;
        }
        let Ok(entries) = list(&folder, interrupt) else {
            files.push(folder);
            continue;
        };
        for (name, kind) in entries {
            let path = folder.join(name);
            match kind {
                FileType::Directory => folders.push(path),
                FileType::RegularFile => files.push(path),
                // Some file systems do not return the type of an entry (readdir(3), d_type).
                FileType::Unknown => match path.symlink_metadata() {
                    Ok(own) if own.is_dir() => folders.push(path),
                    Ok(own) if !own.is_file() => {}
                    _ => files.push(path),
                },
                _ => {}
            }
        }
    }
}

/// Names and types of the entries of a folder. When `interrupt` is set, those read so far: a folder may have millions.
fn list(folder: &Path, interrupt: &AtomicBool) -> io::Result<Vec<(OsString, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::new(open(folder)?)? {
        let entry = entry?;
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            found.push((OsStr::from_bytes(name).to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}

/// Opens a folder so that its access time does not change, which only its owner and root may do (open(2), `O_NOATIME`);
/// for other users it is opened without that flag.
fn open(folder: &Path) -> io::Result<File> {
    let with = |flags: OFlags| {
        let flags = (OFlags::DIRECTORY | flags).bits();
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags.cast_signed());
        options.open(folder)
    };
    match with(OFlags::NOATIME) {
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error()) => {
            with(OFlags::empty())
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::UnixListener;
    use std::time::{Duration, SystemTime};

    use super::*;

    static NOT_INTERRUPTED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn special_files_are_passed_over_unless_they_are_named() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("ibdata1"), "x").unwrap();
        let _socket = UnixListener::bind(at("mysql.sock")).unwrap();
        std::os::unix::fs::symlink("/no/such", at("dangling")).unwrap();
        fs::create_dir(at("empty")).unwrap();
        assert_eq!(files(&at("*"), &NOT_INTERRUPTED).unwrap(), [at("ibdata1")]);
        assert_eq!(
            files(place.path(), &NOT_INTERRUPTED).unwrap(),
            [at("ibdata1")]
        );
        for (name, words) in [
            ("mysql.sock", "neither a file nor a folder"),
            ("*.sock", "there is no such file"),
            ("empty", "nor one in such a folder"),
            ("dangling", "No such file"),
        ] {
            let error = files(&at(name), &NOT_INTERRUPTED).unwrap_err();
            assert!(error.contains(words), "{name}: {error}");
        }
    }

    #[test]
    fn an_interrupted_walk_is_no_error() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("t1.ibd"), "x").unwrap();
        let stop = AtomicBool::new(true);
        for named in ["*.ibd", "*/*.ibd", "."] {
            let found = files(&place.path().join(named), &stop).unwrap();
            assert!(found.is_empty(), "{named}: {found:?}");
        }
    }

    #[test]
    fn a_folder_that_is_listed_keeps_its_access_time() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a"), "x").unwrap();
        // With the mount option relatime, an access time that is older than a day would be updated.
        let old = SystemTime::now() - Duration::from_secs(3 * 86_400);
        let times = fs::FileTimes::new().set_accessed(old);
        File::open(place.path()).unwrap().set_times(times).unwrap();
        let before = fs::metadata(place.path()).unwrap().atime();
        files(place.path(), &NOT_INTERRUPTED).unwrap();
        files(&place.path().join("*"), &NOT_INTERRUPTED).unwrap();
        assert_eq!(fs::metadata(place.path()).unwrap().atime(), before);
    }

    #[test]
    fn patterns_and_folders_name_their_files() {
        let place = tempfile::tempdir().unwrap();
        for name in [
            "app/t1.ibd",
            "app/t2.ibd",
            "app/t2.frm",
            "sys/deep/t3.ibd",
            "ibdata1",
        ] {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("sys/link")).unwrap();
        let found = |pattern: &str| {
            let mut names: Vec<String> = files(&place.path().join(pattern), &NOT_INTERRUPTED)
                .unwrap()
                .iter()
                .map(|path| {
                    path.strip_prefix(place.path())
                        .unwrap()
                        .display()
                        .to_string()
                })
                .collect();
            names.sort();
            names
        };
        assert_eq!(found("app/*.ibd"), ["app/t1.ibd", "app/t2.ibd"]);
        assert_eq!(found("*/t2.*"), ["app/t2.frm", "app/t2.ibd"]);
        assert_eq!(found("ibdata1"), ["ibdata1"]);
        assert_eq!(found("sys"), ["sys/deep/t3.ibd"]);
        let error = files(&place.path().join("app/*.myd"), &NOT_INTERRUPTED).unwrap_err();
        assert!(error.contains("there is no such file"), "{error}");
        fs::write(place.path().join("a*b"), "x").unwrap();
        assert_eq!(found("a*b"), ["a*b"], "a name is a name first");
    }
}
