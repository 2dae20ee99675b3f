//! The program that is sent to the hosts: this one, or one that was built for another processor.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use linux::exec::spawn_bound;

/// A program that can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Path of the file.
    pub path: PathBuf,
    /// Its processor, as in `uname -m`.
    pub arch: &'static str,
    /// True if it is static: it needs no loader and no libraries on the host.
    pub is_static: bool,
    /// SHA-256 of the program, in hexadecimal.
    pub hash: String,
    /// Bytes of the program, shared by all hosts.
    pub bytes: Arc<[u8]>,
}

impl Program {
    /// The program in a file.
    ///
    /// # Errors
    /// A sentence, if it cannot be read or is not a program for Linux.
    pub(crate) fn read(path: &Path) -> Result<Program, String> {
        let name = path.display();
        let bytes = fs::read(path).map_err(|error| linux::remedy::unread(path, &error))?;
        let (arch, is_static) = elf(&bytes).ok_or_else(|| {
            format!("{name} cannot be sent to hosts: it is not an ELF file of a known processor.")
        })?;
        Ok(Program {
            path: path.to_owned(),
            arch,
            is_static,
            hash: hash(&bytes)?,
            bytes: bytes.into(),
        })
    }

    /// The running program.
    ///
    /// # Errors
    /// As [`Program::read`].
    pub(crate) fn own() -> Result<Program, String> {
        // The kernel's link leads to the file even if it was deleted.
        Program::read(Path::new("/proc/self/exe"))
    }
}

/// SHA-256 of these bytes in hexadecimal, computed by the same program that the hosts use. It is computed from the
/// bytes that are sent and not from the file, which may have changed since, as after a build.
fn hash(bytes: &[u8]) -> Result<String, String> {
    let failed = |why: std::io::Error| format!("sha256sum could not be run: {why}.");
    let mut command = Command::new("sha256sum");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = spawn_bound(&mut command).map_err(failed)?;
    // It writes nothing before it has read everything, so that neither side blocks.
    let written = child.stdin.take().map(|mut input| input.write_all(bytes));
    let output = child.wait_with_output().map_err(failed)?;
    written.transpose().map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let hash = text.split_whitespace().next().unwrap_or_default();
    if hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(hash.to_owned())
    } else {
        Err(format!(
            "sha256sum said '{}', which is not a SHA-256",
            text.trim()
        ))
    }
}

/// Processor of a program, and true if it is static: no program header requests an interpreter (elf(5), `e_machine`
/// and `PT_INTERP`). `None` if it is not an ELF program, or its processor is unknown here.
fn elf(bytes: &[u8]) -> Option<(&'static str, bool)> {
    const INTERPRETER: u64 = 3;

    let is_elf = bytes.get(..4)? == b"\x7fELF";
    let wide = bytes.get(4)? == &2;
    let little = bytes.get(5)? == &1;
    let number = |at: usize, length: usize| -> Option<u64> {
        let field = bytes.get(at..at.checked_add(length)?)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if little {
            field.iter().rev().fold(0, add)
        } else {
            field.iter().fold(0, add)
        })
    };
    let arch = match (number(18, 2)?, wide, little) {
        (62, true, _) => "x86_64",
        (183, _, true) => "aarch64",
        (3, _, _) => "i686",
        (40, _, true) => "armv7l",
        (243, true, _) => "riscv64",
        (21, _, true) => "ppc64le",
        (22, true, _) => "s390x",
        (258, true, _) => "loongarch64",
        _ => return None,
    };
    let (first, size, count) = if wide {
        (number(32, 8)?, number(54, 2)?, number(56, 2)?)
    } else {
        (number(28, 4)?, number(42, 2)?, number(44, 2)?)
    };
    let mut is_static = is_elf;
    for at in 0..count {
        let header = usize::try_from(first.checked_add(at * size)?).ok()?;
        is_static &= number(header, 4)? != INTERPRETER;
    }
    is_elf.then_some((arch, is_static))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_known() {
        let program = Program::own().unwrap();
        assert_eq!(program.arch, std::env::consts::ARCH);
        assert_eq!(program.is_static, cfg!(target_feature = "crt-static"));
        assert_eq!(program.hash.len(), 64);
    }

    #[test]
    fn a_file_that_is_no_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01"] {
            fs::write(&file, bytes).unwrap();
            let why = Program::read(&file).unwrap_err();
            assert!(why.contains("cannot be sent to hosts"), "{why}");
        }
        let why = Program::read(&folder.path().join("y")).unwrap_err();
        assert!(why.contains("cannot be read"), "{why}");
    }

    #[test]
    fn the_hash_is_of_the_bytes_that_are_sent() {
        // The example of FIPS 180-4.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(b"abc").unwrap(), known);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sent");
        let program = Program::own().unwrap();
        fs::write(&file, &program.bytes).unwrap();
        let said = linux::exec::Exec::new("sha256sum")
            .arg(&file)
            .run()
            .unwrap();
        assert!(said.text().starts_with(&program.hash), "{said:?}");
    }
}
