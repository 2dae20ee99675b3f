//! The parts of an ELF file that the machine needs: the libraries of a program, the description of a kernel
//! module, and the part that is loaded.

use std::collections::BTreeMap;

/// Only files of 64-bit little-endian machines, on which the lab runs, are supported.
const IDENT: &[u8] = b"\x7fELF\x02\x01";
const EXECUTABLE: u16 = 2;
const SHARED: u16 = 3;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;

/// An ELF file. Fields that point outside of it read as absent: a damaged file has no libraries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elf<'a> {
    bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    kind: u32,
    offset: usize,
    address: u64,
    size: usize,
}

impl<'a> Elf<'a> {
    /// `None` if it is not a 64-bit little-endian ELF file, such as a script.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Elf<'a>> {
        bytes.starts_with(IDENT).then_some(Elf { bytes })
    }

    /// The loader that the kernel starts for this program; `None` for a static program.
    pub(super) fn interpreter(self) -> Option<String> {
        let segment = self.segments().find(|segment| segment.kind == PT_INTERP)?;
        let bytes = self.slice(segment.offset, segment.size)?;
        text(bytes)
    }

    /// The libraries that it names as needed.
    pub(super) fn needed(self) -> Vec<String> {
        let names = self.dynamic_names().unwrap_or_default();
        let wanted = self.dynamic().filter(|(tag, _)| *tag == DT_NEEDED);
        wanted
            .filter_map(|(_, at)| text(names.get(usize::try_from(at).ok()?..)?))
            .collect()
    }

    /// The versions of the C library's symbols that a program needs, or that the library has: names such as
    /// `GLIBC_2.34`.
    pub(super) fn glibc_versions(self) -> Vec<String> {
        let names = self.dynamic_names().unwrap_or_default();
        let words = names.split(|byte| *byte == 0);
        words
            .filter(|word| word.starts_with(b"GLIBC_2."))
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    /// The `key=value` pairs of a kernel module: its name, its dependencies.
    pub(super) fn module_facts(self) -> Vec<(String, String)> {
        let bytes = self.section(b".modinfo").unwrap_or_default();
        let pairs = bytes.split(|byte| *byte == 0);
        pairs
            .filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    /// The program without the parts that are never loaded (symbols and debug information, after the last segment);
    /// `None` if that cannot be determined.
    pub(super) fn loaded(self) -> Option<Vec<u8>> {
        if ![EXECUTABLE, SHARED].contains(&self.u16(16)?) {
            return None;
        }
        let loads = self.segments().filter(|segment| segment.kind == PT_LOAD);
        let end = loads
            .map(|segment| segment.offset.saturating_add(segment.size))
            .max()?;
        let headers = usize::try_from(self.u64(32)?).ok()?
            + usize::from(self.u16(54)?) * usize::from(self.u16(56)?);
        let mut bytes = self.slice(0, end.max(headers))?.to_vec();
        // The section table was cut off: its offset, the number of its entries and the index of its names are set to
        // 0.
        bytes.get_mut(40..48)?.fill(0);
        bytes.get_mut(60..64)?.fill(0);
        Some(bytes)
    }

    fn dynamic(self) -> impl Iterator<Item = (u64, u64)> {
        let segment = self.segments().find(|segment| segment.kind == PT_DYNAMIC);
        let entries = segment.map_or(0..0, |s| s.offset..s.offset.saturating_add(s.size));
        entries
            .step_by(16)
            .map_while(move |at| Some((self.u64(at)?, self.u64(at + 8)?)))
    }

    /// The string table of the dynamic section.
    fn dynamic_names(self) -> Option<&'a [u8]> {
        let entries: BTreeMap<u64, u64> = self.dynamic().collect();
        let address = *entries.get(&DT_STRTAB)?;
        let size = usize::try_from(*entries.get(&DT_STRSZ)?).ok()?;
        let segment = self.segments().find(|s| {
            s.kind == PT_LOAD && s.address <= address && address - s.address < s.size as u64
        })?;
        let within = usize::try_from(address - segment.address).ok()?;
        self.slice(segment.offset + within, size)
    }

    fn segments(self) -> impl Iterator<Item = Segment> {
        let table = self.u64(32).and_then(|at| usize::try_from(at).ok());
        let size = usize::from(self.u16(54).unwrap_or(0));
        let count = usize::from(self.u16(56).unwrap_or(0));
        (0..count).filter_map(move |index| {
            let at = table?.checked_add(index * size)?;
            Some(Segment {
                kind: self.u32(at)?,
                offset: usize::try_from(self.u64(at + 8)?).ok()?,
                address: self.u64(at + 16)?,
                size: usize::try_from(self.u64(at + 32)?).ok()?,
            })
        })
    }

    fn section(self, wanted: &[u8]) -> Option<&'a [u8]> {
        let table = usize::try_from(self.u64(40)?).ok()?;
        let size = usize::from(self.u16(58)?);
        let header = |index: usize| table.checked_add(index * size);
        let place = |index: usize| {
            let at = header(index)?;
            let offset = usize::try_from(self.u64(at + 24)?).ok()?;
            self.slice(offset, usize::try_from(self.u64(at + 32)?).ok()?)
        };
        let names = place(usize::from(self.u16(62)?))?;
        (0..usize::from(self.u16(60)?)).find_map(|index| {
            let name = names.get(usize::try_from(self.u32(header(index)?)?).ok()?..)?;
            let ends = name.get(wanted.len()) == Some(&0);
            (name.starts_with(wanted) && ends).then(|| place(index))?
        })
    }

    fn slice(self, offset: usize, size: usize) -> Option<&'a [u8]> {
        self.bytes.get(offset..offset.checked_add(size)?)
    }

    fn u16(self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.slice(at, 2)?.try_into().ok()?))
    }

    fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.slice(at, 4)?.try_into().ok()?))
    }

    fn u64(self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.slice(at, 8)?.try_into().ok()?))
    }
}

/// The text up to the first zero byte.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes.get(..end)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;
    use std::sync::LazyLock;

    fn own_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn this_test_program_says_what_it_wants() {
        let bytes = own_program();
        let elf = Elf::new(&bytes).unwrap();
        if let Some(interpreter) = elf.interpreter() {
            assert!(interpreter.starts_with("/lib"), "{interpreter}");
            assert!(elf.needed().iter().any(|name| name == "libc.so.6"));
            assert!(!elf.glibc_versions().is_empty());
        } else {
            assert_eq!(elf.needed(), [""; 0], "a static program wants nothing");
        }
    }

    #[test]
    fn a_program_runs_without_what_is_never_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let [written, path] = ["written", "program"].map(|name| folder.path().join(name));
        let bytes = own_program();
        let loaded = Elf::new(&bytes).unwrap().loaded().unwrap();
        assert!(loaded.len() < bytes.len());
        std::fs::write(&written, &loaded).unwrap();
        // Written by another process: a file that this process has open for writing is also open in each process that
        // another test forks meanwhile, and cannot be executed until that process executes its own program (execve(2),
        // ETXTBSY).
        let mut install = Command::new("install");
        let installed = install.args(["-m", "755"]).args([&written, &path]).status();
        assert!(installed.unwrap().success());
        let listed = Command::new(&path).arg("--list").output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("never_loaded: test"), "{listed}");
    }

    #[test]
    fn a_script_is_no_program() {
        assert!(Elf::new(b"#!/bin/sh\n").is_none());
    }

    static OWN_PROGRAM: LazyLock<Vec<u8>> = LazyLock::new(own_program);

    proptest! {
        // Each case copies a large program.
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn no_damage_makes_it_panic(
            cut in 6_usize..4096,
            at in 16_usize..512,
            with in any::<[u8; 8]>(),
        ) {
            let mut bytes = OWN_PROGRAM.clone();
            bytes[at..at + 8].copy_from_slice(&with);
            for bytes in [&bytes[..], &bytes[..cut]] {
                let elf = Elf::new(bytes).unwrap();
                let _ = (elf.interpreter(), elf.needed(), elf.module_facts(), elf.loaded());
            }
        }
    }
}
