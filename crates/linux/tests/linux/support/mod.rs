//! Code that the tests of this crate share.

#![allow(unreachable_pub)]

pub mod loops;
pub mod mapper;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;

use linux::Root;
use linux::block::{DeviceNumber, Devices};
use tempfile::TempDir;

/// A tree from `fixtures`, unpacked for one test.
pub struct Tree {
    pub root: Root,
    folder: TempDir,
}

impl Tree {
    pub fn unpack(name: &str) -> Tree {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures")
            .join(format!("{name}.tree"));
        let text = fs::read_to_string(&manifest).unwrap();
        let folder = TempDir::new().unwrap();
        for line in text.lines() {
            unpack_line(&folder.path().canonicalize().unwrap(), line);
        }
        Tree {
            root: Root::under(&folder.path().canonicalize().unwrap()),
            folder,
        }
    }

    pub fn devices(&self) -> Devices {
        Devices::read(&self.root).unwrap()
    }

    /// The number of the device with that name.
    pub fn number(&self, name: &str) -> DeviceNumber {
        self.devices().named(name).unwrap().number
    }

    /// Replaces a file, given by its path in the tree.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::write(made(self.folder.path(), path), content).unwrap();
    }
}

fn unpack_line(folder: &Path, line: &str) {
    if line.is_empty() || line.starts_with('#') {
        return;
    }
    if let Some((path, target)) = line.split_once(" -> ") {
        symlink(target, made(folder, path)).unwrap();
    } else if let Some(path) = line.strip_suffix('/') {
        fs::create_dir_all(folder.join(path)).unwrap();
    } else {
        let (path, text) = line
            .split_once(": ")
            .or_else(|| Some((line.strip_suffix(':')?, "")))
            .unwrap_or_else(|| panic!("not a line of a tree: {line}"));
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(made(folder, path))
            .unwrap();
        if !text.is_empty() {
            writeln!(file, "{text}").unwrap();
        }
    }
}

/// The path of a file whose folder exists.
fn made(folder: &Path, path: &str) -> std::path::PathBuf {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

/// The identifying part of an ext4 file system: the magic number in the superblock, and the features that ext2 and
/// ext3 lack (linux, fs/ext4/ext4.h).
pub fn ext4_image() -> Vec<u8> {
    let mut image = vec![0; 1 << 20];
    image[0x438..0x43a].copy_from_slice(&[0x53, 0xef]);
    image[0x43a] = 1;
    image[0x44c] = 1; // Revision with features.
    image[0x45c] = 0x04; // Has a journal.
    image[0x460] = 0x42; // Extents.
    image
}
