//! Contents of a newly built array, by its first blocks: nothing, the file system that was made on it, or later
//! writes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use linux::signature::{self, SignatureKind};

use super::building::SavedFs;
use domain::filesystem::Fs;
use ui::format::hex;

/// Content of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Nothing that is recognized.
    Nothing,
    /// The file system that was made on it, unused since.
    Fresh,
    /// The file system that was made on it, used since; the evidence of its use, as a clause.
    Used(&'static str),
    /// Other content, described.
    Other(String),
}

/// The inodes that a new XFS uses: its root folder, and the bitmap and the summary of its real-time
/// section (xfs_dsb: `sb_rootino`, `sb_rbmino`, `sb_rsumino`).
const NEW_XFS_INODES: u64 = 3;

/// Number of bytes that contain all used fields of either superblock.
const HEAD: usize = 2048;

/// Examines the contents of an open array. `fs` is the file system that was to be made on it.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn content(file: &File, fs: Option<&SavedFs>) -> io::Result<Content> {
    let ours = fs.map(|fs| match fs.fs {
        Fs::Xfs => SignatureKind::Xfs,
        Fs::Ext4 => SignatureKind::Ext4,
    });
    let mut kinds: Vec<SignatureKind> = signature::probe(file)?
        .iter()
        .map(|found| found.kind)
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        return Ok(Content::Nothing);
    }
    let others: Vec<&str> = kinds
        .iter()
        .filter(|kind| Some(**kind) != ours)
        .map(|kind| kind.name())
        .collect();
    let Some(fs) = fs.filter(|_| others.is_empty()) else {
        return Ok(Content::Other(others.join(", ")));
    };
    let mut head = [0; HEAD];
    file.read_exact_at(&mut head, 0)?;
    let seen = match fs.fs {
        Fs::Xfs => xfs(&head),
        Fs::Ext4 => ext4(&head),
    };
    Ok(match seen {
        Some((uuid, used)) if uuid == digits(&fs.uuid) => {
            used.map_or(Content::Fresh, Content::Used)
        }
        _ => Content::Other(format!("another {}", fs.fs.name())),
    })
}

/// UUID of an XFS, and evidence of its use (xfs_dsb in fs/xfs/libxfs/xfs_format.h; big-endian). Its counters are
/// brought up to date when it is unmounted.
fn xfs(head: &[u8]) -> Option<(String, Option<&'static str>)> {
    let number = |at: usize| Some(u64::from_be_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let (allocated, free) = (number(128)?, number(136)?);
    let used = allocated.saturating_sub(free) > NEW_XFS_INODES;
    let uuid = hex(head.get(32..48)?);
    Some((uuid, used.then_some("there are files in its file system")))
}

/// UUID of an ext4, and evidence of its use (ext4(5) and fs/ext4/ext4.h, ext4_super_block, at 1024; little-endian):
/// `s_mtime` is when it was last mounted and `s_mnt_count` how often.
fn ext4(head: &[u8]) -> Option<(String, Option<&'static str>)> {
    let block = head.get(1024..)?;
    let mounted = u32::from_le_bytes(block.get(0x2c..0x30)?.try_into().ok()?);
    let times = u16::from_le_bytes(block.get(0x34..0x36)?.try_into().ok()?);
    let used = mounted != 0 || times != 0;
    let uuid = hex(block.get(0x68..0x78)?);
    Some((uuid, used.then_some("its file system has been mounted")))
}

/// A UUID without its hyphens.
fn digits(uuid: &str) -> String {
    uuid.chars()
        .filter(char::is_ascii_hexdigit)
        .map(|digit| digit.to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests;
