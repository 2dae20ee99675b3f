//! The initramfs: busybox, the tools with their libraries, the kernel's modules, this program's binary and the
//! command, in an archive that the kernel unpacks into memory.

mod copies;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::arch::Arch;
use super::cpio::Archive;
use super::elf::Elf;
use super::library::{Libraries, ProgramNeeds, Tree, neighbour};
use super::modules::{EARLY_MODULES, Modules, ON_DEMAND};
use super::packages::Packages;
use super::{Error, Result};

/// Path of the first process.
const INIT: &str = include_str!("init.sh");

/// Program that the kernel starts to load a module.
const MODPROBE: &str = include_str!("modprobe.sh");

/// Tools that busybox does not have, or has in an incompatible version. For example, its shell prefers its own
/// commands to all others.
const TOOLS: [&str; 39] = [
    "bash",
    "dash",
    "mdadm",
    "mdmon",
    "mke2fs",
    "mkfs.ext4",
    "e2fsck",
    "fsck.ext4",
    "tune2fs",
    "dumpe2fs",
    "resize2fs",
    "mkfs.xfs",
    "xfs_repair",
    "xfs_db",
    "xfs_io",
    "xfs_info",
    "xfs_spaceman",
    "xfs_growfs",
    "xfs_admin",
    "mkfs.btrfs",
    "btrfs",
    "lsblk",
    "blkid",
    "wipefs",
    "blockdev",
    "findmnt",
    "losetup",
    "mount",
    "umount",
    "fallocate",
    "flock",
    "partx",
    "swapon",
    "swapoff",
    "mkswap",
    "udevadm",
    "lvm",
    "dmsetup",
    "integritysetup",
];

/// Files of the packages: their paths in the package, which may be those of a system without a merged /usr, and in the
/// machine. The rules tell udev about arrays; udev runs only if a command starts it.
const FILES: [(&str, &str); 2] = [
    ("etc/mke2fs.conf", "etc/mke2fs.conf"),
    (
        "lib/udev/rules.d/63-md-raid-arrays.rules",
        "usr/lib/udev/rules.d/63-md-raid-arrays.rules",
    ),
];

/// Links that are added first: the folders that newer systems have merged.
const MERGED: [(&str, &str); 4] = [
    ("bin", "usr/bin"),
    ("sbin", "usr/sbin"),
    ("lib", "usr/lib"),
    ("lib64", "usr/lib64"),
];

/// The disks of the machine.
#[derive(Debug)]
pub(super) struct Disks {
    /// Number of disks, including the machine's own.
    pub count: usize,
    /// State of its own disk: `none` without one, `new` if a file system must be made, otherwise `kept`.
    pub own: &'static str,
}

/// The command of the machine.
#[derive(Debug)]
pub(super) struct GuestCommand<'a> {
    /// A program and its arguments.
    pub command: &'a [OsString],
    /// A shell script that runs before the command, and must succeed.
    pub prepare: Option<&'a OsStr>,
    /// Files of this host that are copied into the machine.
    pub copies: &'a [PathBuf],
    /// Number of this boot, which is passed to the command.
    pub boot: u32,
}

/// Writes the archive.
///
/// # Errors
/// When a file cannot be read, the binary does not run in the machine, or `to` cannot be written.
pub(super) fn write<W: Write>(
    to: W,
    arch: &Arch,
    packages: &Packages,
    binary: &Path,
    disks: &Disks,
    task: &GuestCommand<'_>,
) -> Result<W> {
    let mut image = Image {
        archive: Archive::new(BufWriter::with_capacity(1 << 18, to)),
        tree: Tree::new(&packages.tree, arch),
        libraries: Libraries::new(),
    };
    image.base(disks, task).map_err(unwritten)?;
    image.binary(binary)?;
    image.tools()?;
    image.modules(packages)?;
    image.copies(task.copies)?;
    image.finish()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|source| Error::file("read", path, source))
}

fn unwritten(source: io::Error) -> Error {
    let what = "the machine's first files could not be written";
    Error::Host { what, source }
}

struct Image<'a, W: Write> {
    archive: Archive<BufWriter<W>>,
    tree: Tree<'a>,
    libraries: Libraries,
}

impl<W: Write> Image<'_, W> {
    fn base(&mut self, disks: &Disks, task: &GuestCommand<'_>) -> io::Result<()> {
        let archive = &mut self.archive;
        for folder in [
            "usr/bin",
            "usr/sbin",
            "usr/lib",
            "usr/lib64",
            "dev",
            "root",
            "var/tmp",
        ] {
            archive.folder(folder)?;
        }
        for (path, target) in MERGED {
            archive.link(path, target)?;
        }
        archive.link("var/run", "/run")?;
        archive.link("usr/bin/sh", "../sbin/dash")?;
        archive.link("usr/bin/bash", "../sbin/bash")?;
        archive.file("init", 0o755, INIT.as_bytes())?;
        archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\n")?;
        archive.file("etc/group", 0o644, b"root:x:0:\ndisk:x:6:\n")?;
        let Disks { count, own } = disks;
        archive.file("lab/disks", 0o644, format!("{count} {own}\n").as_bytes())?;
        if let Some(prepare) = task.prepare {
            archive.file("lab/prepare", 0o755, prepare.as_bytes())?;
        }
        archive.file("lab/command", 0o755, &script(task))
    }

    fn binary(&mut self, path: &Path) -> Result<()> {
        let bytes = read(path)?;
        if let Err(missing) = self.program("usr/local/bin/disksmith", &bytes)? {
            return Err(Error::Unavailable(format!(
                "{} does not run in the lab's machine, which has no {}: name a static binary with \
                 --binary; `make static` builds one",
                path.display(),
                missing.join(", ")
            )));
        }
        Ok(())
    }

    fn tools(&mut self) -> Result<()> {
        let busybox = self.tool("busybox")?;
        self.put("usr/bin/busybox", 0o755, &busybox)?;
        for name in TOOLS {
            let link = self.tree.entry(name).map(|path| neighbour(&path));
            if let Some(Ok(Some(target))) = link
                && TOOLS.contains(&target.as_str())
            {
                let path = format!("usr/sbin/{name}");
                self.archive.link(&path, &target).map_err(unwritten)?;
                continue;
            }
            let bytes = self.tool(name)?;
            if let Err(missing) = self.program(&format!("usr/sbin/{name}"), &bytes)? {
                return Err(Error::Unavailable(format!(
                    "the packages of the lab's machine have {name} and not its {}: remove the \
                     cache folder {} and start again",
                    missing.join(", "),
                    self.tree.root().display()
                )));
            }
        }
        for (from, to) in FILES {
            let Some(path) = self.tree.file(from).or_else(|| self.tree.file(to)) else {
                continue;
            };
            let bytes = read(&path)?;
            self.put(to, 0o644, &bytes)?;
        }
        Ok(())
    }

    fn tool(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.tree.program(name).ok_or_else(|| {
            Error::Unavailable(format!(
                "the packages of the lab's machine have no {name}: remove the cache folder {} and \
                 start again",
                self.tree.root().display()
            ))
        })?;
        read(&path)
    }

    /// Adds a program, and adds its libraries to those that are written at the end.
    ///
    /// # Errors
    /// The names of needed libraries that the tree does not have.
    fn program(
        &mut self,
        path: &str,
        bytes: &[u8],
    ) -> Result<std::result::Result<(), Vec<String>>> {
        let needs = self.tree.add_libraries(bytes, &mut self.libraries)?;
        if let ProgramNeeds::Missing(missing) = needs {
            return Ok(Err(missing));
        }
        if let ProgramNeeds::Loader(path, file) = needs {
            let path = merged(&path);
            if !self.archive.holds(&path) {
                let bytes = read(&file)?;
                self.put(&path, 0o755, &bytes)?;
            }
        }
        // Parts that are never loaded would only occupy the machine's memory.
        let loaded = Elf::new(bytes).and_then(Elf::loaded);
        let bytes = loaded.as_deref().unwrap_or(bytes);
        self.put(path, 0o755, bytes)?;
        Ok(Ok(()))
    }

    fn modules(&mut self, packages: &Packages) -> Result<()> {
        let modules = Modules::below(&packages.modules)?;
        let at_once = self.add_modules(&modules.in_order(EARLY_MODULES)?)?;
        let (mut needs, mut aliases) = (String::new(), String::new());
        for name in EARLY_MODULES.iter().chain(ON_DEMAND) {
            let files = self.add_modules(&modules.in_order(&[name])?)?;
            needs.push_str(&format!("{name} {}\n", files.join(" ")));
            for alias in modules.aliases(name)? {
                aliases.push_str(&format!("{alias} {name}\n"));
            }
        }
        let at_once = format!("{}\n", at_once.join("\n"));
        for (path, mode, text) in [
            ("lab/modules.now", 0o644, at_once.as_str()),
            ("lab/modules.dep", 0o644, &needs),
            ("lab/modules.alias", 0o644, &aliases),
            ("usr/sbin/modprobe", 0o755, MODPROBE),
        ] {
            self.put(path, mode, text.as_bytes())?;
        }
        Ok(())
    }

    /// Adds the files that do not exist yet, and returns the names of all.
    fn add_modules(&mut self, paths: &[PathBuf]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let place = format!("lab/modules/{name}");
            if !self.archive.holds(&place) {
                let bytes = read(path)?;
                self.put(&place, 0o644, &bytes)?;
            }
            names.push(name.into_owned());
        }
        Ok(names)
    }

    fn put(&mut self, place: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        self.archive.file(place, mode, bytes).map_err(unwritten)
    }

    fn finish(mut self) -> Result<W> {
        for (name, path) in std::mem::take(&mut self.libraries) {
            let bytes = read(&path)?;
            self.put(&format!("usr/lib/{name}"), 0o755, &bytes)?;
        }
        let buffered = self.archive.finish().map_err(unwritten)?;
        buffered
            .into_inner()
            .map_err(|error| unwritten(error.into_error()))
    }
}

/// The real path of a path below one of the merged folders.
fn merged(path: &str) -> String {
    let path = path.trim_start_matches('/');
    match path.split_once('/') {
        Some((first, rest)) if MERGED.iter().any(|(name, _)| *name == first) => {
            format!("usr/{first}/{rest}")
        }
        _ => path.to_owned(),
    }
}

/// The command as a script: each word is quoted, so that all bytes are preserved.
fn script(task: &GuestCommand<'_>) -> Vec<u8> {
    let boot = task.boot;
    let mut script =
        format!("echo $$ >/run/command.pid\ncd /root\nexport DISKSMITH_LAB_BOOT={boot}\nexec")
            .into_bytes();
    for word in task.command {
        script.extend_from_slice(b" '");
        for byte in OsStr::as_bytes(word) {
            match byte {
                b'\'' => script.extend_from_slice(br"'\''"),
                byte => script.push(*byte),
            }
        }
        script.push(b'\'');
    }
    script.push(b'\n');
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;
    use std::process::Command;

    #[test]
    fn every_byte_of_the_command_arrives() {
        let words: Vec<OsString> = [
            &b"printf"[..],
            b"%s|",
            b"it's",
            b"",
            b"two\nlines",
            b"$HOME `id` \\ \"x\" *",
            b"\xff\x01",
            b"$DISKSMITH_LAB_BOOT",
        ]
        .map(|word| OsString::from_vec(word.to_vec()))
        .to_vec();
        let script = script(&GuestCommand {
            command: &words,
            prepare: None,
            copies: &[],
            boot: 3,
        });
        let text = script
            .strip_prefix(b"echo $$ >/run/command.pid\ncd /root\n")
            .unwrap();
        let unpacked = Command::new("sh")
            .arg("-c")
            .arg(OsStr::from_bytes(text))
            .output()
            .unwrap();
        let wanted = b"it's||two\nlines|$HOME `id` \\ \"x\" *|\xff\x01|$DISKSMITH_LAB_BOOT|";
        assert_eq!(unpacked.stdout, wanted);
    }

    #[test]
    fn a_merged_folder_is_where_it_really_is() {
        assert_eq!(
            merged("/lib64/ld-linux-x86-64.so.2"),
            "usr/lib64/ld-linux-x86-64.so.2"
        );
        assert_eq!(
            merged("/lib/ld-linux-aarch64.so.1"),
            "usr/lib/ld-linux-aarch64.so.1"
        );
        assert_eq!(merged("/opt/loader"), "opt/loader");
    }
}
