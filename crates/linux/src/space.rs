//! Free space of a file system, and the medium that it is on.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use record::Bytes;
use rustix::fs::{StatVfsMountFlags, fstatfs, fstatvfs, statfs, statvfs};

/// An error of reading the free space of a file system.
#[derive(Debug, thiserror::Error)]
#[error("the free space of {path} could not be read: {source}", path = path.display())]
pub struct SpaceError {
    path: PathBuf,
    source: io::Error,
}

/// Medium of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesystemMedium {
    /// Memory: tmpfs, ramfs, hugetlbfs. Its speed does not depend on a disk.
    Memory,
    /// Storage of another host: NFS, SMB, Ceph and the like.
    Network,
    /// A program on this host; the location of its data is unknown.
    Fuse,
    /// Storage of another file system of this host (overlayfs).
    Overlay,
    /// A disk of this machine, according to its type.
    Disk,
}

/// A file system's size, free space and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Size of the file system. 0 for a tmpfs without a limit.
    pub total: Bytes,
    /// Free bytes, including those reserved for root.
    pub free: Bytes,
    /// Bytes that a user other than root may still write.
    pub available: Bytes,
    /// True if it is mounted read-only here.
    pub read_only: bool,
    /// The type's number, `f_type` of statfs(2).
    pub magic: u32,
}

/// The space of the file system at `path`.
///
/// # Errors
/// When the path does not exist or may not be examined.
pub fn of(path: &Path) -> Result<Space, SpaceError> {
    let failed = |error: rustix::io::Errno| SpaceError {
        path: path.to_path_buf(),
        source: error.into(),
    };
    let room = statvfs(path).map_err(failed)?;
    let kind = statfs(path).map_err(failed)?;
    Ok(space(&room, magic_of(&kind)))
}

/// The space of the file system of an open file.
///
/// # Errors
/// When the kernel fails to answer.
pub fn of_file(file: &File) -> io::Result<Space> {
    Ok(space(&fstatvfs(file)?, magic_of(&fstatfs(file)?)))
}

fn space(room: &rustix::fs::StatVfs, magic: u32) -> Space {
    let bytes = |blocks: u64| Bytes(blocks.saturating_mul(room.f_frsize));
    Space {
        total: bytes(room.f_blocks),
        free: bytes(room.f_bfree),
        available: bytes(room.f_bavail),
        read_only: room.f_flag.contains(StatVfsMountFlags::RDONLY),
        magic,
    }
}

/// The type's number. `f_type` is signed or unsigned and has 32 or 64 bits, depending on the architecture; the numbers
/// themselves have 32 bits.
fn magic_of(kind: &rustix::fs::StatFs) -> u32 {
    kind.f_type as u32
}

impl Space {
    const FUSE: u32 = 0x6573_5546;
    const OVERLAY: u32 = 0x794C_7630;
    const ZFS: u32 = 0x2FC1_2FC1;
    /// tmpfs and devtmpfs, ramfs, hugetlbfs.
    const MEMORY: [u32; 3] = [0x0102_1994, 0x8584_58F6, 0x9584_58F6];
    /// NFS, SMB, CIFS, SMB2, Ceph, AFS, kAFS, 9p, Coda; Lustre and GPFS by their own sources.
    const NETWORK: [u32; 11] = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x00C3_6400,
        0x5346_414F,
        0x6B41_4653,
        0x0102_1997,
        0x7375_7245,
        0x0BD0_0BD0,
        0x4750_4653,
    ];

    /// Medium of the file system, by its type (include/uapi/linux/magic.h; statfs(2)).
    pub fn medium(&self) -> FilesystemMedium {
        match self.magic {
            Self::FUSE => FilesystemMedium::Fuse,
            Self::OVERLAY => FilesystemMedium::Overlay,
            magic if Self::MEMORY.contains(&magic) => FilesystemMedium::Memory,
            magic if Self::NETWORK.contains(&magic) => FilesystemMedium::Network,
            _ => FilesystemMedium::Disk,
        }
    }

    /// True if it usually stores less than was written to it and has no FIEMAP to show it: ZFS (OpenZFS,
    /// include/sys/zfs_vfsops_os.h, ZFS_SUPER_MAGIC).
    pub fn compresses(&self) -> bool {
        self.magic == Self::ZFS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_room() {
        let here = of(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(here.total >= here.free);
        assert!(here.free >= here.available);
        assert!(here.total > Bytes(0));
        assert!(!here.read_only);
    }

    #[test]
    fn shared_memory_is_memory() {
        if let Ok(space) = of(Path::new("/dev/shm")) {
            assert_eq!(space.medium(), FilesystemMedium::Memory);
        }
    }

    #[test]
    fn a_file_and_its_path_agree_on_the_type() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"));
        let by_file = of_file(&File::open(path).unwrap()).unwrap();
        let by_path = of(path).unwrap();
        assert_eq!(by_file.magic, by_path.magic);
        assert_eq!(by_file.total, by_path.total);
    }

    #[test]
    fn types_are_recognized_by_their_magic() {
        let space = |magic| Space {
            total: Bytes(0),
            free: Bytes(0),
            available: Bytes(0),
            read_only: false,
            magic,
        };
        for (magic, medium) in [
            (0xEF53, FilesystemMedium::Disk),
            (0x5846_5342, FilesystemMedium::Disk),
            (0x9123_683E, FilesystemMedium::Disk),
            (0x2FC1_2FC1, FilesystemMedium::Disk),
            (0x0102_1994, FilesystemMedium::Memory),
            (0x6969, FilesystemMedium::Network),
            (0xFF53_4D42, FilesystemMedium::Network),
            (0x6573_5546, FilesystemMedium::Fuse),
            (0x794C_7630, FilesystemMedium::Overlay),
        ] {
            assert_eq!(space(magic).medium(), medium, "{magic:#x}");
        }
        assert!(space(0x2FC1_2FC1).compresses());
    }

    #[test]
    fn a_missing_path_is_named_in_the_error() {
        let error = of(Path::new("/no/such/path")).unwrap_err();
        assert!(error.to_string().contains("/no/such/path"));
    }
}
