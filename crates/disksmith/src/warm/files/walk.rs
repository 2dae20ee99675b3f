//! The files that a path, a pattern or a folder stands for.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::glob;

/// The regular files that a path names: itself, those in the folder that it is, at any depth, and of
/// a pattern all that match. Below a folder no symbolic link is followed.
///
/// # Errors
/// A sentence, when it names nothing or what it names cannot be looked at.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let shown = path.display();
    let named = if path.symlink_metadata().is_ok() {
        vec![path.to_path_buf()]
    } else {
        expand(path)
    };
    if named.is_empty() {
        return Err(format!(
            "--first {shown}: there is no such file; put a pattern in quotes, and name folders and \
             files as this host has them mounted"
        ));
    }
    let mut files = Vec::new();
    for path in named {
        let metadata =
            fs::metadata(&path).map_err(|error| format!("--first {}: {error}", path.display()))?;
        if metadata.is_dir() {
            below(&path, &mut files)
                .map_err(|error| format!("--first {}: {error}", path.display()))?;
        } else if metadata.is_file() {
            files.push(path);
        } else {
            return Err(format!(
                "--first {} is neither a file nor a folder",
                path.display()
            ));
        }
    }
    Ok(files)
}

/// What a pattern matches, in order.
fn expand(pattern: &Path) -> Vec<PathBuf> {
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
        found = found
            .iter()
            .flat_map(|folder| matching(folder, name.as_bytes()))
            .collect();
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    found
}

fn matching(folder: &Path, pattern: &[u8]) -> Vec<PathBuf> {
    let place = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.file_name())
        .filter(|name| glob::matches(pattern, name.as_bytes()))
        .map(|name| folder.join(name))
        .collect();
    found.sort();
    found
}

/// All regular files below a folder.
fn below(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let mut names: Vec<String> = files(&place.path().join(pattern))
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
        let error = files(&place.path().join("app/*.myd")).unwrap_err();
        assert!(error.contains("there is no such file"), "{error}");
        fs::write(place.path().join("a*b"), "x").unwrap();
        assert_eq!(found("a*b"), ["a*b"], "a name is a name first");
    }
}
