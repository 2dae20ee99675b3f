//! The libraries that programs need, found in an unpacked tree without running anything in it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use super::arch::Arch;
use super::elf::Elf;
use super::{Error, Result};

/// Maximum number of symbolic links in a path, as in the kernel.
const LINKS: u32 = 40;

/// The loader that a program needs besides its libraries.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProgramNeeds {
    /// No loader is needed: the program is static, or a script.
    NoLoader,
    /// A loader: its path in the machine, and its file here.
    Loader(String, PathBuf),
    /// Libraries that are not in the tree, or are too old for the program.
    Missing(Vec<String>),
}

/// Folders of programs.
const PROGRAMS: [&str; 4] = ["sbin", "bin", "usr/sbin", "usr/bin"];

/// A tree of unpacked packages. Links are resolved within it, since they name paths in the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree<'a> {
    root: &'a Path,
    arch: &'a Arch,
}

/// The libraries needed: their names in the machine, and their files here.
pub(super) type Libraries = BTreeMap<String, PathBuf>;

impl<'a> Tree<'a> {
    pub(super) fn new(root: &'a Path, arch: &'a Arch) -> Tree<'a> {
        Tree { root, arch }
    }

    /// The file that a path leads to; `None` if it does not exist.
    pub(super) fn file(self, path: &str) -> Option<PathBuf> {
        self.lead(Path::new(path), LINKS)
            .filter(|found| found.is_file())
    }

    /// The folder that is used as the root.
    pub(super) fn root(self) -> &'a Path {
        self.root
    }

    /// A program by its name.
    pub(super) fn program(self, name: &str) -> Option<PathBuf> {
        PROGRAMS
            .iter()
            .find_map(|folder| self.file(&format!("{folder}/{name}")))
    }

    /// A program by its name; a link is not followed.
    pub(super) fn entry(self, name: &str) -> Option<PathBuf> {
        let folder = PROGRAMS
            .iter()
            .find(|folder| self.file(&format!("{folder}/{name}")).is_some());
        folder.map(|folder| self.root.join(folder).join(name))
    }

    fn lead(self, path: &Path, links: u32) -> Option<PathBuf> {
        let links = links.checked_sub(1)?;
        let mut here = PathBuf::new();
        let mut parts = path.components();
        while let Some(part) = parts.next() {
            match part {
                Component::Normal(name) => here.push(name),
                Component::ParentDir => {
                    here.pop();
                }
                _ => continue,
            }
            match fs::read_link(self.root.join(&here)) {
                Ok(target) => {
                    here.pop();
                    return self.lead(&here.join(target).join(parts.as_path()), links);
                }
                // Not a link, or missing, which the caller detects.
                Err(_) => continue,
            }
        }
        Some(self.root.join(here))
    }

    fn library(self, name: &str) -> Option<PathBuf> {
        let triplet = self.arch.triplet;
        let folders = [
            format!("lib/{triplet}"),
            format!("usr/lib/{triplet}"),
            "lib".to_owned(),
            "usr/lib".to_owned(),
        ];
        folders
            .iter()
            .find_map(|folder| self.file(&format!("{folder}/{name}")))
    }

    /// Adds the libraries that a program needs, and those that they need.
    ///
    /// # Errors
    /// When a library cannot be read.
    pub(super) fn add_libraries(
        self,
        program: &[u8],
        libraries: &mut Libraries,
    ) -> Result<ProgramNeeds> {
        let Some(elf) = Elf::new(program) else {
            return Ok(ProgramNeeds::NoLoader);
        };
        let Some(interpreter) = elf.interpreter() else {
            return Ok(ProgramNeeds::NoLoader);
        };
        let mut missing = Vec::new();
        let mut wanted = elf.needed();
        while let Some(name) = wanted.pop() {
            if libraries.contains_key(&name) {
                continue;
            }
            let Some(path) = self.library(&name) else {
                missing.push(name);
                continue;
            };
            let bytes = fs::read(&path).map_err(|source| Error::file("read", &path, source))?;
            wanted.extend(Elf::new(&bytes).map(Elf::needed).unwrap_or_default());
            libraries.insert(name, path);
        }
        if let Some(path) = libraries.get("libc.so.6") {
            let bytes = fs::read(path).map_err(|source| Error::file("read", path, source))?;
            let has = Elf::new(&bytes)
                .map(Elf::glibc_versions)
                .unwrap_or_default();
            let needs = elf.glibc_versions();
            missing.extend(needs.into_iter().filter(|version| !has.contains(version)));
        }
        let loader = self
            .file(&interpreter)
            .or_else(|| self.file(&format!("usr{interpreter}")));
        Ok(match loader {
            Some(loader) if missing.is_empty() => ProgramNeeds::Loader(interpreter, loader),
            Some(_) => ProgramNeeds::Missing(missing),
            None => {
                missing.push(interpreter);
                ProgramNeeds::Missing(missing)
            }
        })
    }
}

/// The target of a link to a name in the same folder, such as `mkfs.ext4`.
pub(super) fn neighbour(path: &Path) -> io::Result<Option<String>> {
    if !fs::symlink_metadata(path)?.is_symlink() {
        return Ok(None);
    }
    let target = fs::read_link(path)?;
    let plain = target.components().count() == 1;
    Ok(target.to_str().filter(|_| plain).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn arch() -> &'static Arch {
        Arch::host().unwrap()
    }

    #[test]
    fn links_are_followed_within_the_tree() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("usr/lib/deep")).unwrap();
        fs::write(root.join("usr/lib/deep/libx.so.1.2"), "x").unwrap();
        symlink("usr/lib", root.join("lib")).unwrap();
        symlink("/lib/deep", root.join("usr/lib/there")).unwrap();
        symlink("../there/libx.so.1.2", root.join("usr/lib/deep/libx.so.1")).unwrap();
        symlink("round", root.join("round")).unwrap();
        symlink("/etc/hostname", root.join("outside")).unwrap();
        let tree = Tree::new(root, arch());
        let found = tree.file("/lib/there/libx.so.1").unwrap();
        assert_eq!(found, root.join("usr/lib/deep/libx.so.1.2"));
        for absent in ["round", "outside", "lib/none", "lib"] {
            assert_eq!(tree.file(absent), None, "{absent}");
        }
    }

    /// The file system of this host is used as a tree of packages: it has the test program's libraries.
    #[test]
    fn libraries_of_a_program_are_found_and_missing_ones_named() {
        let program = fs::read(std::env::current_exe().unwrap()).unwrap();
        if Elf::new(&program).unwrap().interpreter().is_none() {
            return;
        }
        let mut libraries = Libraries::new();
        let loader = Tree::new(Path::new("/"), arch()).add_libraries(&program, &mut libraries);
        let ProgramNeeds::Loader(interpreter, file) = loader.unwrap() else {
            panic!("no loader");
        };
        assert!(interpreter.contains("ld-linux"), "{interpreter}");
        assert!(file.is_file());
        assert!(libraries.contains_key("libc.so.6"), "{libraries:?}");

        let empty = tempfile::tempdir().unwrap();
        let none = Tree::new(empty.path(), arch()).add_libraries(&program, &mut Libraries::new());
        let ProgramNeeds::Missing(missing) = none.unwrap() else {
            panic!("nothing is missing");
        };
        assert!(missing.contains(&"libc.so.6".to_owned()), "{missing:?}");
        assert!(missing.contains(&interpreter), "{missing:?}");
    }

    #[test]
    fn a_link_to_a_neighbour_is_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("mke2fs"), "").unwrap();
        symlink("mke2fs", path("mkfs.ext4")).unwrap();
        symlink("/bin/mke2fs", path("far")).unwrap();
        assert_eq!(
            neighbour(&path("mkfs.ext4")).unwrap().as_deref(),
            Some("mke2fs")
        );
        assert_eq!(neighbour(&path("far")).unwrap(), None);
        assert_eq!(neighbour(&path("mke2fs")).unwrap(), None);
    }
}
