//! Formats with a short magic number or a variable position, for which further fields are verified.

use super::image::Image;
use super::kind::Signature;
use super::kind::SignatureKind::{self, *};

pub(super) fn detect(image: &Image, found: &mut Vec<Signature>) {
    let mut push = |offset: u64, kind: SignatureKind| found.push(Signature { offset, kind });

    if let Some(kind) = ext(image) {
        push(EXT_MAGIC, kind);
    }
    for offset in md(image) {
        push(offset, LinuxRaidMember);
    }
    for offset in lvm(image) {
        push(offset, Lvm2Member);
    }
    for offset in zfs(image) {
        push(offset, ZfsMember);
    }
    for offset in nilfs(image) {
        push(offset, Nilfs2);
    }
    if gfs2(image) {
        push(GFS2, Gfs2);
    }
    if let Some(offset) = drbd(image) {
        push(offset, Drbd);
    }
    let volume = fat(image);
    if volume {
        push(0, Vfat);
    }
    if let Some(kind) = mbr(image, volume || other_boot_sector(image)) {
        push(BOOT_MAGIC, kind);
    }
}

/// `s_magic`, 0x38 into the superblock at 1024 (Documentation/filesystems/ext4/super.rst).
const EXT_MAGIC: u64 = 1024 + 0x38;

/// ext2, ext3 and ext4 share the magic 0xEF53 and are distinguished by their features, as in their drivers
/// (fs/ext4/ext4.h: EXT2_FEATURE_INCOMPAT_SUPP, EXT3_FEATURE_INCOMPAT_SUPP and the like).
fn ext(image: &Image) -> Option<SignatureKind> {
    const SUPER: u64 = 1024;
    const COMPAT_HAS_JOURNAL: u32 = 0x4;
    const INCOMPAT_JOURNAL_DEV: u32 = 0x8;
    // filetype, recover and meta_bg; sparse_super, large_file and btree_dir.
    const EXT3_INCOMPAT: u32 = 0x2 | 0x4 | 0x10;
    const EXT3_RO_COMPAT: u32 = 0x1 | 0x2 | 0x4;
    // EXT4_MAX_BLOCK_LOG_SIZE (16) less EXT4_MIN_BLOCK_LOG_SIZE (10).
    const MAX_LOG_BLOCK_SIZE: u32 = 6;

    if image.le16(EXT_MAGIC)? != 0xEF53 || image.le32(SUPER + 0x18)? > MAX_LOG_BLOCK_SIZE {
        return None;
    }
    let compat = image.le32(SUPER + 0x5C)?;
    let incompat = image.le32(SUPER + 0x60)?;
    let ro_compat = image.le32(SUPER + 0x64)?;
    Some(if incompat & INCOMPAT_JOURNAL_DEV != 0 {
        Jbd
    } else if incompat & !EXT3_INCOMPAT != 0 || ro_compat & !EXT3_RO_COMPAT != 0 {
        Ext4
    } else if compat & COMPAT_HAS_JOURNAL != 0 {
        Ext3
    } else {
        Ext2
    })
}

/// Linux software RAID (include/uapi/linux/raid/md_p.h, MD_SB_MAGIC): version 0.90 in the last
/// 64 KiB that are aligned to 64 KiB (MD_NEW_SIZE_SECTORS), in the byte order of the host that made
/// it; 1.0 at 8 KiB before the end, aligned down to 4 KiB; 1.1 at the start; 1.2 at 4 KiB
/// (drivers/md/md.c, super_1_load; md(4)).
fn md(image: &Image) -> impl Iterator<Item = u64> {
    const MAGIC: u32 = 0xA92B_4EFC;
    const RESERVED: u64 = 64 * 1024;

    let size = image.size();
    let old = (size - size % RESERVED)
        .checked_sub(RESERVED)
        .filter(|&at| {
            let fields = [image.le32(at), image.le32(at + 4)];
            let swapped = [image.be32(at), image.be32(at + 4)];
            [fields, swapped].contains(&[Some(MAGIC), Some(0)])
        });
    let end = size.checked_sub(8 * 1024).map(|at| at - at % 4096);
    let new = [end, Some(0), Some(4096)]
        .into_iter()
        .flatten()
        .filter(|&at| image.le32(at) == Some(MAGIC) && image.le32(at + 4) == Some(1))
        .collect::<Vec<_>>();
    old.into_iter().chain(new)
}

/// An LVM2 label in one of the first four sectors, its type 24 bytes in (lvm2, lib/label/label.h:
/// LABEL_ID, LABEL_SCAN_SECTORS, struct label_header; LVM2_LABEL in lib/format_text/layout.h).
fn lvm(image: &Image) -> impl Iterator<Item = u64> {
    (0..4)
        .map(|sector| sector * 512)
        .filter(|&at| image.has(at, b"LABELONE") && image.has(at + 24, b"LVM2 001"))
}

/// The four labels of a ZFS device: two at the start, two at the end rounded down to their size,
/// told by any uberblock in the second half of a label (OpenZFS, include/sys/vdev_impl.h:
/// vdev_label_t; include/sys/uberblock_impl.h: UBERBLOCK_MAGIC; either byte order).
fn zfs(image: &Image) -> impl Iterator<Item = u64> {
    const LABEL: u64 = 256 * 1024;
    const RING: u64 = 128 * 1024;
    // UBERBLOCK_SHIFT: a slot is 1 KiB, or the larger sector of the device, which is a multiple.
    const SLOT: usize = 1024;
    const MAGIC: u64 = 0x00BA_B10C;

    let end = image.size() - image.size() % LABEL;
    [
        Some(0),
        Some(LABEL),
        end.checked_sub(2 * LABEL),
        end.checked_sub(LABEL),
    ]
    .into_iter()
    .flatten()
    .filter(|&label| {
        (0..RING)
            .step_by(SLOT)
            .filter_map(|slot| image.array(label + RING + slot))
            .any(|magic| magic == MAGIC.to_le_bytes() || magic == MAGIC.to_be_bytes())
    })
}

/// NILFS2: the superblock at 1 KiB and its copy in the last whole 4 KiB (include/uapi/linux/
/// nilfs2_ondisk.h: NILFS_SB_OFFSET_BYTES, NILFS_SB2_OFFSET_BYTES, struct nilfs_super_block;
/// NILFS_SUPER_MAGIC in magic.h).
fn nilfs(image: &Image) -> impl Iterator<Item = u64> {
    const CURRENT_REVISION: u32 = 2;
    const MAX_BLOCK: u16 = 1024;

    let second = (image.size() / 4096)
        .checked_sub(1)
        .map(|block| block * 4096);
    [Some(1024), second].into_iter().flatten().filter(|&at| {
        image.le32(at) == Some(CURRENT_REVISION)
            && image.le16(at + 6) == Some(0x3434)
            && image
                .le16(at + 8)
                .is_some_and(|bytes| (1..=MAX_BLOCK).contains(&bytes))
    })
}

/// GFS2_SB_ADDR of 512-byte sectors (include/uapi/linux/gfs2_ondisk.h).
const GFS2: u64 = 64 * 1024;

/// GFS2: GFS2_MAGIC, then the type of a superblock (GFS2_METATYPE_SB), big-endian.
fn gfs2(image: &Image) -> bool {
    image.be32(GFS2) == Some(0x0116_1970) && image.be32(GFS2 + 4) == Some(1)
}

/// DRBD's internal metadata: in the last aligned 4 KiB, the magic after the sizes, generation
/// identifiers and flags (drivers/block/drbd/drbd_int.h: DRBD_MD_MAGIC_07, _08, _84_UNCLEAN;
/// struct meta_data_on_disk in drbd_main.c; DRBD 9 counts one further). blkid looks at the last 4 KiB, aligned or not.
fn drbd(image: &Image) -> Option<u64> {
    const DRBD_MAGIC: u32 = 0x8374_0267;
    let ends = [image.size() - image.size() % 4096, image.size()];
    let mut places = ends.into_iter().filter_map(|end| end.checked_sub(4096));
    places.find(|at| {
        let magic = image.be32(at + 60);
        magic.is_some_and(|magic| (DRBD_MAGIC + 3..=DRBD_MAGIC + 6).contains(&magic))
    })
}

/// Position of a boot sector's magic 55 AA (include/linux/msdos_fs.h and block/partitions/msdos.c,
/// MSDOS_LABEL_MAGIC1 and 2).
const BOOT_MAGIC: u64 = 510;

fn has_boot_magic(image: &Image) -> bool {
    image.has(BOOT_MAGIC, &[0x55, 0xAA])
}

/// FAT, recognized by the fields that the kernel itself requires (fs/fat/inode.c, fat_read_bpb) and the jump at the
/// start of a boot sector; the words "FAT16" and "FAT32" in it are only informational, by Microsoft's specification.
fn fat(image: &Image) -> bool {
    let checked = || {
        let sector = image.le16(11)?;
        let cluster = image.byte(13)?;
        let reserved = image.le16(14)?;
        let fats = image.byte(16)?;
        let media = image.byte(21)?;
        let jump = matches!(image.byte(0)?, 0xEB | 0xE9);
        Some(
            jump && sector.is_power_of_two()
                && (512..=4096).contains(&sector)
                && cluster.is_power_of_two()
                && reserved > 0
                && (1..=2).contains(&fats)
                && (media >= 0xF8 || media == 0xF0),
        )
    };
    has_boot_magic(image) && checked() == Some(true)
}

/// True if a volume other than FAT begins with this boot sector.
fn other_boot_sector(image: &Image) -> bool {
    [b"NTFS    ", b"EXFAT   ", b"-FVE-FS-"]
        .iter()
        .any(|name| image.has(3, *name))
}

/// An MBR partition table, possibly empty.
///
/// The two bytes 55 AA also end the boot sectors of FAT and NTFS, so the boot flag of all four entries must be 0 or
/// 0x80, as the kernel requires (block/partitions/msdos.c, msdos_partition), and on the boot sector of a volume at
/// least one entry must be in use. A table that protects a GPT (type 0xEE, block/partitions/efi.c, pmbr_part_valid) is
/// reported as part of that GPT.
fn mbr(image: &Image, is_volume: bool) -> Option<SignatureKind> {
    const ENTRIES: u64 = 446;
    const EFI_GPT_PROTECTIVE: u8 = 0xEE;

    if !has_boot_magic(image) {
        return None;
    }
    let mut used = false;
    let mut protective = false;
    for at in (0..4).map(|entry| ENTRIES + 16 * entry) {
        if !matches!(image.byte(at)?, 0 | 0x80) {
            return None;
        }
        let kind = image.byte(at + 4)?;
        let sectors = image.le32(at + 12)?;
        used |= kind != 0 && sectors != 0;
        protective |= kind == EFI_GPT_PROTECTIVE;
    }
    (used || !is_volume).then_some(if protective { Gpt } else { Dos })
}
