//! Files of this host in the machine. Programs come with their own loader and libraries, since the machine's may be of
//! another distribution.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::elf::Elf;
use super::super::{Error, Result};
use super::{Image, unwritten};

/// Folder of programs that need libraries, and of these.
const FOLDER: &str = "lab/copied";

impl<W: Write> Image<'_, W> {
    /// Adds these files: programs become commands, other files lie in the folder in which the command starts.
    pub(super) fn copies(&mut self, files: &[PathBuf]) -> Result<()> {
        let mut libraries = BTreeMap::new();
        for path in files {
            self.copy(path, &mut libraries)?;
        }
        for (name, path) in libraries {
            self.put(&format!("{FOLDER}/lib/{name}"), 0o755, &read(&path)?)?;
        }
        Ok(())
    }

    fn copy(&mut self, path: &Path, libraries: &mut BTreeMap<String, PathBuf>) -> Result<()> {
        let bytes = read(path)?;
        let name = name(path);
        let mode = fs::metadata(path).map_err(|source| Error::file("read", path, source))?;
        let is_program = mode.permissions().mode() & 0o111 != 0;
        let place = match is_program {
            true => format!("usr/local/bin/{name}"),
            false => format!("root/{name}"),
        };
        if self.archive.holds(&place) {
            return Err(Error::Unavailable(format!(
                "--copy {}: the machine has a {name} already; copy the file under another name",
                path.display()
            )));
        }
        let loader = Elf::new(&bytes)
            .filter(|_| is_program)
            .and_then(Elf::interpreter);
        let Some(loader) = loader else {
            return self.put(&place, mode.permissions().mode() & 0o777, &bytes);
        };
        let loader = PathBuf::from(loader);
        let start = format!(
            "#!/bin/sh\nexec /{FOLDER}/lib/{} --library-path /{FOLDER}/lib /{FOLDER}/{name} \"$@\"\n",
            self::name(&loader)
        );
        for library in needed(path)?.into_iter().chain([loader]) {
            libraries.insert(self::name(&library), library);
        }
        self.put(&format!("{FOLDER}/{name}"), 0o755, &bytes)?;
        self.put(&place, 0o755, start.as_bytes())
    }

    fn put(&mut self, place: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        self.archive.file(place, mode, bytes).map_err(unwritten)
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|source| Error::file("read", path, source))
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Libraries that the loader takes for a program of this host, by ldd(1).
fn needed(program: &Path) -> Result<Vec<PathBuf>> {
    let said = Command::new("ldd").arg(program).output();
    let said =
        said.map_err(|source| Error::file("asked by ldd for its libraries", program, source))?;
    libraries(&String::from_utf8_lossy(&said.stdout)).map_err(|missing| {
        Error::Unavailable(format!(
            "--copy {}: its library {missing} is not on this host; install it, or copy a static program",
            program.display()
        ))
    })
}

/// Paths in the output of ldd(1): `NAME => PATH (ADDRESS)`.
///
/// # Errors
/// The name of a library that is not there.
fn libraries(said: &str) -> std::result::Result<Vec<PathBuf>, String> {
    let named = said
        .lines()
        .filter_map(|line| line.trim().split_once(" => "));
    named
        .map(|(name, path)| match path.split(' ').next() {
            Some(path) if path.starts_with('/') => Ok(path.into()),
            _ => Err(name.to_owned()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_ldd_names() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibaio.so.1 => /lib/x86_64-linux-gnu/libaio.so.1 (0x00007f)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let found = libraries(said).unwrap();
        let folder = Path::new("/lib/x86_64-linux-gnu");
        assert_eq!(
            found,
            ["libaio.so.1", "libc.so.6"].map(|name| folder.join(name))
        );
        let said = "\tlibx.so.1 => not found\n";
        assert_eq!(libraries(said), Err("libx.so.1".to_owned()));
        assert_eq!(libraries("\tstatically linked\n"), Ok(Vec::new()));
    }
}
