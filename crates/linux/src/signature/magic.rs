//! Formats that are recognized by fixed bytes at fixed positions.

use super::image::Image;
use super::kind::Signature;
use super::kind::SignatureKind::{self, *};

/// The magic bytes of a format and their possible positions.
struct Magic {
    kind: SignatureKind,
    bytes: &'static [u8],
    /// Offsets from the start.
    start: &'static [u64],
    /// Distances from the end.
    end: &'static [u64],
}

const fn at(kind: SignatureKind, bytes: &'static [u8], start: &'static [u64]) -> Magic {
    Magic {
        kind,
        bytes,
        start,
        end: &[],
    }
}

const fn before_end(kind: SignatureKind, bytes: &'static [u8], end: &'static [u64]) -> Magic {
    Magic {
        kind,
        bytes,
        start: &[],
        end,
    }
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The last ten bytes of the first page, for pages of 4, 8, 16, 32 and 64 KiB
/// (include/linux/swap.h, union swap_header; mkswap(8)).
const SWAP: &[u64] = &[
    4 * KIB - 10,
    8 * KIB - 10,
    16 * KIB - 10,
    32 * KIB - 10,
    64 * KIB - 10,
];

/// Possible positions of a second LUKS2 header: after a first one of 16 KiB to 4 MiB (LUKS2 On-Disk Format
/// Specification, section 2.2).
const LUKS2_SECOND: &[u64] = &[
    16 * KIB,
    32 * KIB,
    64 * KIB,
    128 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    4 * MIB,
];

/// Magic bytes of the formats. Each line names the source of its bytes and position; paths without another name are
/// the kernel's.
const MAGICS: &[Magic] = &[
    // fs/xfs/libxfs/xfs_format.h, XFS_SB_MAGIC.
    at(Xfs, b"XFSB", &[0]),
    // include/uapi/linux/btrfs_tree.h, BTRFS_MAGIC: 64 bytes into the superblock at 64 KiB and
    // its first mirror at 64 MiB (fs/btrfs/fs.h, BTRFS_SUPER_INFO_OFFSET; btrfs_sb_offset).
    at(Btrfs, b"_BHRfS_M", &[64 * KIB + 64, 64 * MIB + 64]),
    // drivers/md/bcache/bcache_ondisk.h: bcache_magic, 24 bytes into sector 8 (SB_SECTOR).
    at(
        Bcache,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        &[4 * KIB + 24],
    ),
    // fs/bcachefs/bcachefs_format.h, BCHFS_MAGIC, in the same place.
    at(
        Bcachefs,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        &[4 * KIB + 24],
    ),
    // include/linux/f2fs_fs.h: F2FS_SUPER_OFFSET, and the copy in the second block;
    // include/uapi/linux/magic.h, F2FS_SUPER_MAGIC.
    at(F2fs, &0xF2F5_2010_u32.to_le_bytes(), &[KIB, 5 * KIB]),
    // fs/reiserfs/reiserfs.h: s_magic, 52 bytes into the superblock at 64 KiB, or 8 KiB for the
    // old format.
    at(Reiserfs, b"ReIsErFs", &[8 * KIB + 52, 64 * KIB + 52]),
    at(Reiserfs, b"ReIsEr2Fs", &[8 * KIB + 52, 64 * KIB + 52]),
    at(Reiserfs, b"ReIsEr3Fs", &[8 * KIB + 52, 64 * KIB + 52]),
    // fs/jfs/jfs_superblock.h, JFS_MAGIC; fs/jfs/jfs_filsys.h, SUPER1_OFF.
    at(Jfs, b"JFS1", &[32 * KIB]),
    // fs/ocfs2/ocfs2_fs.h: OCFS2_SUPER_BLOCK_SIGNATURE in block 2, for blocks of 512 to 4096 bytes.
    at(Ocfs2, b"OCFSV2", &[KIB, 2 * KIB, 4 * KIB, 8 * KIB]),
    // fs/exfat/exfat_raw.h: fs_name, after the three bytes of the jump.
    at(Exfat, b"EXFAT   ", &[3]),
    // fs/ntfs3/ntfs.h, struct NTFS_BOOT: system_id.
    at(Ntfs, b"NTFS    ", &[3]),
    // libbde, BitLocker Drive Encryption (BDE) format: the volume header's signature.
    at(Bitlocker, b"-FVE-FS-", &[3]),
    // ECMA-119, section 8.1: descriptors begin at sector 16, their name one byte in.
    at(Iso9660, b"CD001", &[32 * KIB + 1]),
    // fs/udf/ecma_167.h, VSD_STD_ID_NSR02 and NSR03, one or two descriptors after the first.
    at(
        Udf,
        b"NSR02",
        &[34 * KIB + 1, 36 * KIB + 1, 38 * KIB + 1, 40 * KIB + 1],
    ),
    at(
        Udf,
        b"NSR03",
        &[34 * KIB + 1, 36 * KIB + 1, 38 * KIB + 1, 40 * KIB + 1],
    ),
    // fs/squashfs/squashfs_fs.h and include/uapi/linux/magic.h, SQUASHFS_MAGIC; either byte order.
    at(Squashfs, b"hsqs", &[0]),
    at(Squashfs, b"sqsh", &[0]),
    // fs/erofs/erofs_fs.h: EROFS_SUPER_OFFSET; include/uapi/linux/magic.h, EROFS_SUPER_MAGIC_V1.
    at(Erofs, &0xE0F5_E1E2_u32.to_le_bytes(), &[KIB]),
    at(Swap, b"SWAPSPACE2", SWAP),
    at(Swap, b"SWAP-SPACE", SWAP),
    // kernel/power/swap.c, HIBERNATE_SIG; uswsusp writes its own in the same place, and TuxOnIce at the beginning
    // (util-linux, libblkid/src/superblocks/swap.c).
    at(Swsuspend, b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c", &[0]),
    at(Swsuspend, b"S1SUSPEND", SWAP),
    at(Swsuspend, b"S2SUSPEND", SWAP),
    at(Swsuspend, b"ULSUSPEND", SWAP),
    at(Swsuspend, b"LINHIB0001", SWAP),
    // block/partitions/efi.h: GPT_HEADER_SIGNATURE at GPT_PRIMARY_PARTITION_TABLE_LBA (1), its
    // backup in the last sector; sectors of 512 and 4096 bytes.
    at(Gpt, b"EFI PART", &[512, 4 * KIB]),
    before_end(Gpt, b"EFI PART", &[512, 4 * KIB]),
    // mdadm, super-intel.c: MPB_SIGNATURE, in the second sector from the end.
    before_end(IswRaidMember, b"Intel Raid ISM Cfg Sig. ", &[KIB, 8 * KIB]),
    // SNIA Common RAID Disk Data Format Specification 2.0, section 5.6: the anchor header in the
    // last sector; mdadm, super-ddf.c, DDF_HEADER_MAGIC. Some firmware writes it little-endian.
    before_end(
        DdfRaidMember,
        &0xDE11_DE11_u32.to_be_bytes(),
        &[512, 4 * KIB],
    ),
    before_end(
        DdfRaidMember,
        &0xDE11_DE11_u32.to_le_bytes(),
        &[512, 4 * KIB],
    ),
    // cryptsetup, lib/luks1/luks.h and LUKS2 On-Disk Format Specification, section 2.1.
    at(CryptoLuks, b"LUKS\xba\xbe", &[0]),
    at(CryptoLuks, b"SKUL\xba\xbe", LUKS2_SECOND),
    // stratis, Stratis Software Design, "Static Header": 4 bytes into sectors 1 and 9.
    at(
        Stratis,
        b"!Stra0tis\x86\xff\x02^\x41rh",
        &[512 + 4, 9 * 512 + 4],
    ),
    // drivers/md/dm-vdo/encodings.c, VDO_GEOMETRY_MAGIC_NUMBER.
    at(Vdo, b"dmvdo001", &[0]),
    // drivers/md/dm-verity is told the format by veritysetup: cryptsetup, lib/verity/verity.c,
    // VERITY_SIGNATURE.
    at(DmVerity, b"verity\0\0", &[0]),
    // drivers/md/dm-integrity.c, SB_MAGIC.
    at(DmIntegrity, b"integrt\0", &[0]),
    // ceph, src/os/bluestore/BlueStore.cc: the label of a block device.
    at(CephBluestore, b"bluestore block device\n", &[0]),
    // oracleasm, include/linux/oracleasm/disk.h: ASM_DISK_LABEL_MARKED at ASM_DISK_LABEL_OFFSET.
    at(OracleAsm, b"ORCLDISK", &[32]),
    // util-linux, libblkid/src/superblocks/vmfs.c names the two places.
    at(VmfsVolumeMember, &0xC001_D00D_u32.to_le_bytes(), &[MIB]),
    at(Vmfs, &0x2FAB_F15E_u32.to_le_bytes(), &[2 * MIB]),
];

pub(super) fn detect(image: &Image, found: &mut Vec<Signature>) {
    for magic in MAGICS {
        let from_start = magic.start.iter().copied();
        let from_end = magic.end.iter().filter_map(|&back| image.before_end(back));
        for offset in from_start.chain(from_end) {
            if image.has(offset, magic.bytes) {
                found.push(Signature {
                    offset,
                    kind: magic.kind,
                });
            }
        }
    }
}
