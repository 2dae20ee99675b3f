use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use proptest::prelude::*;

use super::SignatureKind::*;
use super::*;

mod contents;
mod corpus;
mod tools;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// A sparse file of this size with these bytes at these offsets.
fn image(size: u64, parts: &[(u64, &[u8])]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(size).unwrap();
    for (offset, bytes) in parts {
        file.write_all_at(bytes, *offset).unwrap();
    }
    file
}

fn found(size: u64, parts: &[(u64, &[u8])]) -> Vec<(u64, SignatureKind)> {
    let signatures = probe(&image(size, parts)).unwrap();
    signatures.iter().map(|s| (s.offset, s.kind)).collect()
}

/// Restates each format that its bytes alone identify, independently of the table in `magic`.
#[test]
fn fixed_magics_are_found_where_they_belong() {
    let size = 80 * MIB;
    let cases: &[(SignatureKind, u64, &[u8])] = &[
        (Xfs, 0, b"XFSB"),
        (Btrfs, 65600, b"_BHRfS_M"),
        (Btrfs, 64 * MIB + 64, b"_BHRfS_M"),
        (F2fs, 1024, b"\x10\x20\xf5\xf2"),
        (F2fs, 5120, b"\x10\x20\xf5\xf2"),
        (Reiserfs, 65588, b"ReIsEr2Fs"),
        (Jfs, 32768, b"JFS1"),
        (Ocfs2, 8192, b"OCFSV2"),
        (Gfs2, 65536, b"\x01\x16\x19\x70\0\0\0\x01"),
        (Exfat, 3, b"EXFAT   "),
        (Ntfs, 3, b"NTFS    "),
        (Bitlocker, 3, b"-FVE-FS-"),
        (Iso9660, 32769, b"CD001"),
        (Udf, 34817, b"NSR03"),
        (Squashfs, 0, b"hsqs"),
        (Erofs, 1024, b"\xe2\xe1\xf5\xe0"),
        (Swap, 4086, b"SWAPSPACE2"),
        (Swap, 65526, b"SWAPSPACE2"),
        (Swsuspend, 4086, b"S1SUSPEND"),
        (Swsuspend, 0, b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c"),
        (Gpt, 512, b"EFI PART"),
        (Gpt, 4096, b"EFI PART"),
        (Gpt, size - 512, b"EFI PART"),
        (Gpt, size - 4096, b"EFI PART"),
        (IswRaidMember, size - 1024, b"Intel Raid ISM Cfg Sig. "),
        (DdfRaidMember, size - 512, b"\xde\x11\xde\x11"),
        (CryptoLuks, 0, b"LUKS\xba\xbe\0\x02"),
        (CryptoLuks, 16384, b"SKUL\xba\xbe\0\x02"),
        (CryptoLuks, 4 * MIB, b"SKUL\xba\xbe\0\x02"),
        (Stratis, 516, b"!Stra0tis\x86\xff\x02^Arh"),
        (Vdo, 0, b"dmvdo001"),
        (DmVerity, 0, b"verity\0\0"),
        (DmIntegrity, 0, b"integrt\0"),
        (CephBluestore, 0, b"bluestore block device\n"),
        (OracleAsm, 32, b"ORCLDISK"),
        (VmfsVolumeMember, MIB, b"\x0d\xd0\x01\xc0"),
        (Vmfs, 2 * MIB, b"\x5e\xf1\xab\x2f"),
        (
            Bcache,
            4120,
            b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        ),
        (
            Bcachefs,
            4120,
            b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        ),
        (Nilfs2, 1024, b"\x02\0\0\0\0\0\x34\x34\x18\x01"),
        (Nilfs2, size - 4096, b"\x02\0\0\0\0\0\x34\x34\x18\x01"),
    ];
    for (kind, offset, bytes) in cases {
        assert_eq!(
            found(size, &[(*offset, bytes)]),
            [(*offset, *kind)],
            "{kind} at {offset}"
        );
        let elsewhere = offset + 3 * KIB + 8;
        if elsewhere + 64 < size {
            assert_eq!(found(size, &[(elsewhere, bytes)]), [], "{kind} astray");
        }
    }
}

fn ext(compat: u32, incompat: u32, ro_compat: u32) -> Vec<(u64, SignatureKind)> {
    let mut block = vec![0; 1024];
    block[0x18..0x1C].copy_from_slice(&2_u32.to_le_bytes());
    block[0x38..0x3A].copy_from_slice(&0xEF53_u16.to_le_bytes());
    block[0x5C..0x60].copy_from_slice(&compat.to_le_bytes());
    block[0x60..0x64].copy_from_slice(&incompat.to_le_bytes());
    block[0x64..0x68].copy_from_slice(&ro_compat.to_le_bytes());
    found(MIB, &[(1024, &block)])
}

#[test]
fn the_ext_family_is_distinguished_by_features() {
    assert_eq!(ext(0, 0x2, 0x3), [(1080, Ext2)]);
    assert_eq!(ext(0x4, 0x6, 0x3), [(1080, Ext3)]);
    assert_eq!(ext(0x4, 0x42, 0x3), [(1080, Ext4)]);
    assert_eq!(ext(0x4, 0x2, 0x400), [(1080, Ext4)]);
    assert_eq!(ext(0, 0xA, 0), [(1080, Jbd)]);
}

#[test]
fn the_ext_magic_alone_is_not_enough() {
    let parts: &[(u64, &[u8])] = &[(1048, &[0xFF; 4]), (1080, &[0x53, 0xEF])];
    assert_eq!(found(MIB, parts), []);
}

#[test]
fn md_metadata_is_found_in_all_four_places() {
    let one = b"\xfc\x4e\x2b\xa9\x01\0\0\0".as_slice();
    let old = b"\xfc\x4e\x2b\xa9\0\0\0\0".as_slice();
    let old_big_endian = b"\xa9\x2b\x4e\xfc\0\0\0\0".as_slice();
    // A size that is only a multiple of the sector, so that the rounding matters.
    let size = 3 * MIB + 37 * 512;
    for (bytes, offset) in [
        (one, 0),
        (one, 4096),
        (one, (size - 8192) / 4096 * 4096),
        (old, 3 * MIB - 65536),
        (old_big_endian, 3 * MIB - 65536),
    ] {
        assert_eq!(
            found(size, &[(offset, bytes)]),
            [(offset, LinuxRaidMember)],
            "at {offset}"
        );
    }
    assert_eq!(found(size, &[(0, old)]), [], "0.90 is never at the start");
}

#[test]
fn an_lvm_label_may_be_in_any_of_four_sectors() {
    let mut label = [0; 32];
    label[..8].copy_from_slice(b"LABELONE");
    label[24..].copy_from_slice(b"LVM2 001");
    for sector in 0..4 {
        let at = sector * 512;
        assert_eq!(found(MIB, &[(at, &label)]), [(at, Lvm2Member)]);
    }
    assert_eq!(found(MIB, &[(4 * 512, &label)]), []);
    assert_eq!(found(MIB, &[(512, b"LABELONE")]), [], "no type");
}

#[test]
fn each_zfs_label_is_found_by_one_uberblock() {
    let size = 10 * MIB + 100 * KIB;
    let end = 10 * MIB;
    let uberblock = 0x00BA_B10C_u64.to_le_bytes();
    for (label, slot) in [
        (0, 0),
        (256, 7),
        (end / KIB - 512, 127),
        (end / KIB - 256, 64),
    ] {
        let at = (label + 128 + slot) * KIB;
        assert_eq!(
            found(size, &[(at, &uberblock)]),
            [(label * KIB, ZfsMember)],
            "label at {label} KiB"
        );
    }
    let big_endian = 0x00BA_B10C_u64.to_be_bytes();
    assert_eq!(found(size, &[(128 * KIB, &big_endian)]), [(0, ZfsMember)]);
}

#[test]
fn drbd_keeps_its_metadata_in_the_last_block() {
    let size = MIB + 5 * 512;
    for magic in [
        b"\x83\x74\x02\x6b",
        b"\x83\x74\x02\x6c",
        b"\x83\x74\x02\x6d",
    ] {
        for at in [MIB - 4096, size - 4096] {
            assert_eq!(found(size, &[(at + 60, magic)]), [(at, Drbd)]);
        }
    }
}

/// A partition entry: boot flag, type, first sector and length.
fn entry(flag: u8, kind: u8, start: u32, sectors: u32) -> Vec<u8> {
    let mut entry = vec![flag, 0, 0, 0, kind, 0, 0, 0];
    entry.extend(start.to_le_bytes());
    entry.extend(sectors.to_le_bytes());
    entry
}

const BOOT: (u64, &[u8]) = (510, &[0x55, 0xAA]);

#[test]
fn an_mbr_needs_entries_that_make_sense() {
    let linux = entry(0x80, 0x83, 2048, 2048);
    assert_eq!(found(MIB, &[BOOT, (446, &linux)]), [(510, Dos)]);
    assert_eq!(found(MIB, &[BOOT]), [(510, Dos)], "an empty table");
    let code = entry(0x37, 0x83, 2048, 2048);
    assert_eq!(found(MIB, &[BOOT, (462, &code)]), [], "boot code");
    assert_eq!(found(MIB, &[(446, &linux)]), [], "no magic");
}

#[test]
fn a_protective_mbr_counts_as_its_gpt() {
    let protective = entry(0, 0xEE, 1, u32::MAX);
    let parts: &[(u64, &[u8])] = &[BOOT, (446, &protective), (512, b"EFI PART")];
    assert_eq!(found(MIB, parts), [(510, Gpt), (512, Gpt)]);
}

#[test]
fn a_volume_boot_sector_is_not_a_partition_table() {
    let mut fat = vec![0; 510];
    fat[..3].copy_from_slice(&[0xEB, 0x3C, 0x90]);
    fat[11..13].copy_from_slice(&512_u16.to_le_bytes());
    fat[13] = 4;
    fat[14] = 1;
    fat[16] = 2;
    fat[21] = 0xF8;
    assert_eq!(found(MIB, &[BOOT, (0, &fat)]), [(0, Vfat)]);
    assert_eq!(found(MIB, &[BOOT, (3, b"NTFS    ")]), [(3, Ntfs)]);
    let linux = entry(0, 0x83, 2048, 2048);
    assert_eq!(
        found(MIB, &[BOOT, (0, &fat), (446, &linux)]),
        [(0, Vfat), (510, Dos)],
        "both at once"
    );
}

#[test]
fn small_and_empty_files_carry_nothing() {
    for size in [
        0,
        1,
        511,
        512,
        4096,
        8191,
        MIB - 1,
        MIB,
        MIB + 1,
        2 * MIB + 512,
    ] {
        assert_eq!(found(size, &[]), [], "{size} bytes");
    }
}

#[test]
fn a_directory_is_an_error_and_not_a_panic() {
    assert!(probe(&File::open("/").unwrap()).is_err());
}

#[test]
fn the_offset_of_the_file_is_kept() {
    let mut file = image(MIB, &[]);
    file.seek(SeekFrom::Start(77)).unwrap();
    probe(&file).unwrap();
    assert_eq!(file.stream_position().unwrap(), 77);
}

#[test]
fn direct_io_finds_the_same() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = dir.path().join("disk");
    let mut file = File::create(&path).unwrap();
    // Not a multiple of 4 KiB: the last read is short.
    file.set_len(3 * MIB + 512).unwrap();
    file.write_all_at(b"EFI PART", 3 * MIB).unwrap();
    file.write_all(b"XFSB").unwrap();
    file.sync_all().unwrap();
    let direct = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&path);
    match direct {
        Ok(direct) => assert_eq!(
            probe(&direct).unwrap(),
            [
                Signature {
                    offset: 0,
                    kind: Xfs
                },
                Signature {
                    offset: 3 * MIB,
                    kind: Gpt
                }
            ]
        ),
        Err(error) => skip::skipped(&format!(
            "no direct I/O in {}: {error}",
            dir.path().display()
        )),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Random bytes carry a signature with a probability well under one in a million.
    #[test]
    fn random_bytes_never_panic_and_carry_nothing(seed in any::<u64>(), size in 0_u64..3 * MIB) {
        let mut random = record::random::SplitMix64::new(seed);
        let words = (0..size.div_ceil(8)).flat_map(|_| random.bits().to_le_bytes());
        let bytes: Vec<u8> = words.take(size as usize).collect();
        prop_assert_eq!(found(size, &[(0, &bytes)]), []);
    }

    /// Relevant bytes at the relevant positions, cut off anywhere.
    #[test]
    fn truncated_formats_never_panic(size in 0_u64..70_000, head in proptest::collection::vec(any::<u8>(), 0..2048)) {
        let len = head.len().min(size as usize);
        found(size, &[(0, &head[..len])]);
    }
}
