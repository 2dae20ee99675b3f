use std::fs;
use std::process::Command;

use super::*;

/// A file system of this id as the real program makes it in a file of 512 MiB, most of it a hole;
/// `None` when the program does not exist.
fn made(fs: Fs, uuid: &str) -> Option<tempfile::NamedTempFile> {
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(512 << 20).unwrap();
    let mut mkfs = Command::new(fs.tool());
    match fs {
        Fs::Xfs => mkfs.args(["-q", "-m", &format!("uuid={uuid}")]),
        Fs::Ext4 => mkfs.args(["-q", "-U", uuid]),
    };
    mkfs.arg(image.path())
        .status()
        .ok()?
        .success()
        .then_some(image)
}

const UUID: &str = "01234567-89ab-cdef-0123-456789abcdef";

fn kept(fs: Fs) -> SavedFs {
    SavedFs {
        fs,
        uuid: UUID.to_owned(),
        mount: None,
    }
}

fn seen(image: &tempfile::NamedTempFile, fs: Option<&SavedFs>) -> Content {
    content(&File::open(image.path()).unwrap(), fs).unwrap()
}

#[test]
fn a_file_system_that_was_just_made_is_fresh_and_another_is_not_ours() {
    for fs in [Fs::Xfs, Fs::Ext4] {
        let (Some(image), ours) = (made(fs, UUID), kept(fs)) else {
            skip::skipped(&format!("{} is not installed", fs.tool()));
            continue;
        };
        assert_eq!(seen(&image, Some(&ours)), Content::Fresh, "{fs:?}");
        assert_eq!(seen(&image, None), Content::Other(fs.name().to_owned()));
        let other = made(fs, "11111111-89ab-cdef-0123-456789abcdef").unwrap();
        let another = Content::Other(format!("another {}", fs.name()));
        assert_eq!(seen(&other, Some(&ours)), another);
    }
}

#[test]
fn an_xfs_with_files_and_an_ext4_that_was_mounted_are_used() {
    if let Some(image) = made(Fs::Xfs, UUID) {
        let free = |free: u64| {
            let file = fs::OpenOptions::new()
                .write(true)
                .open(image.path())
                .unwrap();
            file.write_all_at(&free.to_be_bytes(), 136).unwrap();
        };
        free(64 - 4);
        let used = seen(&image, Some(&kept(Fs::Xfs)));
        assert!(matches!(used, Content::Used(_)), "{used:?}");
        free(64 - 3);
        assert_eq!(seen(&image, Some(&kept(Fs::Xfs))), Content::Fresh);
    }
    if let Some(image) = made(Fs::Ext4, UUID) {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(image.path())
            .unwrap();
        file.write_all_at(&1_u16.to_le_bytes(), 1024 + 0x34)
            .unwrap();
        let used = seen(&image, Some(&kept(Fs::Ext4)));
        assert!(matches!(used, Content::Used(_)), "{used:?}");
    }
}

#[test]
fn zeros_are_nothing() {
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(1 << 20).unwrap();
    assert_eq!(seen(&image, Some(&kept(Fs::Xfs))), Content::Nothing);
}
