//! Files of this host in the machine. Programs are copied with their loader and libraries, since the machine's may be
//! of another distribution.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use linux::exec::Exec;

use super::super::elf::Elf;
use super::super::{Error, Result};
use super::{Image, read};

/// Folder of programs that need libraries, each in its own folder.
const FOLDER: &str = "lab/copied";

/// Folders of commands in the machine.
const COMMANDS: [&str; 3] = ["usr/local/bin", "usr/sbin", "usr/bin"];

impl<W: Write> Image<'_, W> {
    /// Adds these files: programs become commands, other files lie in the folder in which the command starts.
    pub(super) fn copies(&mut self, files: &[PathBuf]) -> Result<()> {
        files.iter().try_for_each(|path| self.copy(path))
    }

    fn copy(&mut self, path: &Path) -> Result<()> {
        let bytes = read(path)?;
        let mode = fs::metadata(path)
            .map_err(|source| Error::file("read", path, source))?
            .permissions()
            .mode();
        let refused = |why: &str| {
            Error::Unavailable(format!(
                "--copy {}: {why}; copy it under another name",
                path.display()
            ))
        };
        let name = plain_name(path).ok_or_else(|| {
            refused("a name of other than letters, digits and ._+- has no place there")
        })?;
        let is_program = mode & 0o111 != 0;
        let folders: &[&str] = if is_program { &COMMANDS } else { &["root"] };
        let is_there = |folder: &&str| self.archive.holds(&format!("{folder}/{name}"));
        if folders.iter().any(is_there) {
            return Err(refused("the machine has one of this name already"));
        }
        let place = format!("{}/{name}", folders[0]);
        let loader = Elf::new(&bytes)
            .filter(|_| is_program)
            .and_then(Elf::interpreter);
        let Some(loader) = loader.as_deref().map(Path::new) else {
            return self.put(&place, mode & 0o777, &bytes);
        };
        let own = format!("{FOLDER}/{name}");
        let needed = needed(path)?;
        for file in needed.iter().map(PathBuf::as_path).chain([loader]) {
            self.put(
                &format!("{own}/lib/{}", file_name(file)),
                0o755,
                &read(file)?,
            )?;
        }
        self.put(&format!("{own}/program"), 0o755, &bytes)?;
        let start = format!(
            "#!/bin/sh\nexec /{own}/lib/{} --library-path /{own}/lib /{own}/program \"$@\"\n",
            file_name(loader)
        );
        self.put(&place, 0o755, start.as_bytes())
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// True if a file's name is a word of the shell without quotes.
fn plain_name(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._+-".contains(letter);
    name.chars().all(is_plain).then_some(name)
}

/// Libraries that the loader uses for a program of this host, by ldd(1).
fn needed(program: &Path) -> Result<Vec<PathBuf>> {
    let refused = |why: &str| {
        Error::Unavailable(format!(
            "--copy {}: {why}; or copy a static program",
            program.display()
        ))
    };
    let ldd_output = Exec::new("ldd").arg(program).bound().run();
    let ldd_output =
        ldd_output.map_err(|error| refused(&format!("its libraries are not known: {error}")))?;
    libraries(&ldd_output.text()).map_err(|missing| {
        refused(&format!(
            "its library {missing} is not on this host: install it"
        ))
    })
}

/// Paths in the output of ldd(1): `NAME => PATH (ADDRESS)`.
///
/// # Errors
/// The name of a library that was not found.
fn libraries(ldd_output: &str) -> std::result::Result<Vec<PathBuf>, String> {
    let named = ldd_output
        .lines()
        .filter_map(|line| line.trim().split_once(" => "));
    named
        .map(|(name, path)| match path.rsplit_once(" (") {
            Some((path, _)) => Ok(path.into()),
            None => Err(name.to_owned()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_ldd_names() {
        let ldd_output = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibaio.so.1 => /lib/x86_64-linux-gnu/libaio.so.1 (0x00007f)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found = libraries(ldd_output).unwrap();
        let folder = Path::new("/lib/x86_64-linux-gnu");
        assert_eq!(
            found,
            ["libaio.so.1", "libc.so.6"].map(|name| folder.join(name))
        );
        let ldd_output = "\tlibx.so.1 => not found\n";
        assert_eq!(libraries(ldd_output), Err("libx.so.1".to_owned()));
        assert_eq!(libraries("\tstatically linked\n"), Ok(Vec::new()));
    }
}
