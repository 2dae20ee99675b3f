//! The id of the file system on a device.

use std::fs::File;
use std::io;

use super::read::read_at;

/// Number of bytes that are read: both superblocks up to and including the id.
const LENGTH: u64 = 4096;

/// The id of the XFS or ext2, 3 or 4 on a device or file, in the form of `mkfs`:
/// `01234567-89ab-cdef-0123-456789abcdef`. `None` for other contents.
///
/// XFS begins with "XFSB" and has its id at byte 32 (linux, fs/xfs/libxfs/xfs_format.h, `struct
/// xfs_dsb`). The superblock of ext4 lies at byte 1,024, with 0xEF53 at 0x38 and the id at 0x68 of
/// it (Documentation/filesystems/ext4/super.rst).
///
/// # Errors
/// The kernel's error of a read.
pub fn file_system_id(file: &File) -> io::Result<Option<String>> {
    let start = read_at(file, 0, LENGTH)?;
    let at = |offset: usize, length: usize| start.get(offset..offset + length);
    let id = if at(0, 4) == Some(b"XFSB") {
        at(32, 16)
    } else if at(1024 + 0x38, 2) == Some(&0xEF53u16.to_le_bytes()) {
        at(1024 + 0x68, 16)
    } else {
        None
    };
    Ok(id.map(written))
}

/// Sixteen bytes with hyphens after the fourth, sixth, eighth and tenth (RFC 9562).
fn written(id: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in id.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const ID: &str = "01234567-89ab-cdef-0123-456789abcdef";

    fn made(program: &str, arguments: &[&str]) -> Option<Option<String>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(400 << 20).unwrap();
        let made = Command::new(program)
            .args(arguments)
            .arg(file.path())
            .output()
            .ok()?;
        assert!(made.status.success(), "{made:?}");
        Some(file_system_id(file.as_file()).unwrap())
    }

    #[test]
    fn with_mkfs_the_id_is_the_one_that_was_given() {
        let id = format!("uuid={ID}");
        for (program, arguments) in [
            ("mkfs.xfs", &["-q", "-f", "-m", &id][..]),
            ("mkfs.ext4", &["-q", "-F", "-U", ID]),
            ("mkfs.ext2", &["-q", "-F", "-U", ID]),
        ] {
            match made(program, arguments) {
                Some(found) => assert_eq!(found.as_deref(), Some(ID), "{program}"),
                None => skip::skipped(&format!("there is no {program}")),
            }
        }
    }

    #[test]
    fn nothing_and_little_have_none() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(file_system_id(&file).unwrap(), None);
        file.set_len(10).unwrap();
        assert_eq!(file_system_id(&file).unwrap(), None);
        file.set_len(1 << 20).unwrap();
        assert_eq!(file_system_id(&file).unwrap(), None);
    }
}
