//! The id in the superblock of an array's member (linux, include/uapi/linux/raid/md_p.h, and
//! drivers/md/md.c: super_1_load and calc_dev_sboffset).

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;

/// Magic number at the start of every superblock, in the byte order of its host in version 0.90, and little-endian in
/// later versions.
const MAGIC: u32 = 0xa92b_4efc;
/// Number of bytes that are read: up to and including the id.
const LENGTH: usize = 64;

/// The id in the superblock of a member, in the byte order of the kernel. `metadata` is its version, as in sysfs:
/// `0.90`, `1.0`, `1.1` or `1.2`. `None` if there is no superblock of that version.
///
/// # Errors
/// The kernel's error of a read.
pub fn uuid(mut member: &File, metadata: &str) -> io::Result<Option<[u8; 16]>> {
    let size = member.seek(SeekFrom::End(0))?;
    let at = match metadata {
        "0.90" => (size / 65536 * 65536).checked_sub(65536),
        "1.0" => size.checked_sub(8192).map(|at| at / 4096 * 4096),
        "1.1" => Some(0),
        "1.2" => Some(4096),
        _ => None,
    };
    let Some(at) = at.filter(|at| at.saturating_add(LENGTH as u64) <= size) else {
        return Ok(None);
    };
    let mut block = [0; LENGTH];
    member.read_exact_at(&mut block, at)?;
    Ok(match metadata {
        "0.90" => id(&block, MAGIC.to_ne_bytes(), &[20, 52, 56, 60], 4),
        _ => id(&block, MAGIC.to_le_bytes(), &[16], 16),
    })
}

/// The id from its parts at `places`, each `length` bytes long.
fn id(block: &[u8; LENGTH], magic: [u8; 4], places: &[usize], length: usize) -> Option<[u8; 16]> {
    if !block.starts_with(&magic) {
        return None;
    }
    let parts: Option<Vec<&[u8]>> = places
        .iter()
        .map(|at| block.get(*at..at + length))
        .collect();
    parts?.concat().try_into().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    const ID: [u8; 16] = *b"0123456789abcdef";

    /// A member of 200,000 bytes with a superblock at `at`.
    fn member(at: u64, parts: &[(usize, &[u8])]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(200_000).unwrap();
        file.write_all_at(&MAGIC.to_le_bytes(), at).unwrap();
        for (offset, bytes) in parts {
            file.write_all_at(bytes, at + *offset as u64).unwrap();
        }
        file
    }

    #[test]
    fn the_id_is_read_from_where_each_form_has_it() {
        let one = [(16, &ID[..])];
        for (form, at) in [("1.0", 188_416), ("1.1", 0), ("1.2", 4096)] {
            let file = member(at, &one);
            for asked in ["0.90", "1.0", "1.1", "1.2"] {
                let found = uuid(&file, asked).unwrap();
                assert_eq!(found, (asked == form).then_some(ID), "{asked} of {form}");
            }
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_oldest_form_has_its_id_in_four_parts() {
        let parts = [
            (20, &ID[..4]),
            (52, &ID[4..8]),
            (56, &ID[8..12]),
            (60, &ID[12..]),
        ];
        let file = member(131_072, &parts);
        assert_eq!(uuid(&file, "0.90").unwrap(), Some(ID));
        assert_eq!(uuid(&file, "external:imsm").unwrap(), None);
        file.set_len(10).unwrap();
        assert_eq!(uuid(&file, "0.90").unwrap(), None);
    }
}
