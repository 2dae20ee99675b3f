//! File systems whose files cannot be judged as targets, by the magic number that statfs(2) gives.

use std::fs::File;

use rustix::io::Errno;

/// Ability of a file system to tell the storage of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileSystem {
    /// Inodes name storage, or other hosts' storage that is no concern of this one.
    Plain,
    /// Files are the kernel's: sysfs, procfs and their like.
    Kernel,
    /// Files of other file systems are passed on under other inodes.
    PassThrough(&'static str),
}

/// Magic numbers of include/uapi/linux/magic.h; eCryptfs has its own in fs/ecryptfs.
const KERNEL: [u32; 15] = [
    0x6265_6572, // SYSFS_MAGIC
    0x9FA0,      // PROC_SUPER_MAGIC
    0x0027_E0EB, // CGROUP_SUPER_MAGIC
    0x6367_7270, // CGROUP2_SUPER_MAGIC
    0x6462_6720, // DEBUGFS_MAGIC
    0x7472_6163, // TRACEFS_MAGIC
    0x7363_6673, // SECURITYFS_MAGIC
    0xF97C_FF8C, // SELINUX_MAGIC
    0xCAFE_4A11, // BPF_FS_MAGIC
    0x6265_6570, // CONFIGFS_MAGIC
    0xDE5E_81E4, // EFIVARFS_MAGIC
    0x6165_676C, // PSTOREFS_MAGIC
    0x4249_4E4D, // BINFMTFS_MAGIC
    0x6E73_6673, // NSFS_MAGIC
    0x1980_0202, // MQUEUE_MAGIC (ipc/mqueue.c)
];

const PASS_THROUGH: [(u32, &str); 4] = [
    (0x794C_7630, "an overlay"), // OVERLAYFS_SUPER_MAGIC
    (0x6573_5546, "FUSE"),       // FUSE_SUPER_MAGIC; virtiofs has it too
    (0xF15F, "eCryptfs"),        // ECRYPTFS_SUPER_MAGIC
    (0x6175_6673, "aufs"),       // AUFS_SUPER_MAGIC, of a kernel with its patches
];

/// The kind of file system that an open file is on.
pub(super) fn file_system_of(file: &File) -> Result<FileSystem, Errno> {
    // The numbers have 32 bits, and some architectures sign-extend them in a wider field.
    let magic = (i128::from(rustix::fs::fstatfs(file)?.f_type) & 0xFFFF_FFFF) as u32;
    let by_name = PASS_THROUGH.iter().find(|(known, _)| *known == magic);
    Ok(match by_name {
        Some((_, name)) => FileSystem::PassThrough(name),
        None if KERNEL.contains(&magic) => FileSystem::Kernel,
        None => FileSystem::Plain,
    })
}
