//! Contents of a whole device: partitions, and data of unknown formats.

use super::*;
use std::process::Command;

fn kinds(file: &File) -> Vec<(Option<u32>, SignatureKind)> {
    let content = Content::of(file, &[]).unwrap();
    let found = content.found.iter();
    found
        .map(|found| (found.partition.map(|part| part.number), found.kind))
        .collect()
}

#[test]
fn zeros_at_the_ends_and_in_all_samples_are_blank() {
    for size in [0, 1, 4095, 8 * MIB, 33 * MIB + 512, 3 << 40] {
        assert_eq!(kinds(&image(size, &[])), [], "{size}");
    }
}

#[test]
fn content_that_is_neither_blank_nor_known_is_unknown() {
    for size in [1, 700, 5 * MIB + 512, 40 * MIB, 1 << 40] {
        for at in [
            0,
            size / 3,
            15 * MIB,
            size.saturating_sub(16 * MIB),
            size - 1,
        ] {
            let is_read = at < 16 * MIB || at >= size - 16 * MIB;
            if at < size && is_read {
                let expected = [(None, Unknown)];
                assert_eq!(
                    kinds(&image(size, &[(at, b"x")])),
                    expected,
                    "{at} of {size}"
                );
            }
        }
    }
    // 256 samples of 4 KiB detect data that fills 1/128 of the device between the ends.
    let size = 16_u64 << 30;
    let run = vec![7; (size / 128) as usize];
    assert_eq!(kinds(&image(size, &[(size / 2, &run)])), [(None, Unknown)]);
}

/// A disk of 300 MiB with a table made by this script of sfdisk; `None` if that is not installed.
fn partitioned(script: &str) -> Option<tempfile::NamedTempFile> {
    use std::io::Write as _;
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(300 * MIB).unwrap();
    let mut child = Command::new("/usr/sbin/sfdisk")
        .arg("--quiet")
        .arg(file.path())
        .stdin(std::process::Stdio::piped())
        .spawn()
        .map_err(|error| skip::skipped(&format!("sfdisk: {error}")))
        .ok()?;
    child
        .stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    Some(file)
}

#[test]
fn each_partition_is_examined() {
    let dos = "label: dos\n1M,32M\n33M,32M\n65M,32M\n97M,+,E\n98M,32M\n131M,32M\n";
    let gpt = "label: gpt\n1M,32M\n33M,32M\n65M,32M\n98M,32M\n131M,32M\n";
    for (script, table, numbers) in [(dos, Dos, [1, 3, 6]), (gpt, Gpt, [1, 3, 5])] {
        let Some(file) = partitioned(script) else {
            return;
        };
        let file = file.as_file();
        let own = kinds(file);
        assert!(own.iter().all(|found| *found == (None, table)), "{own:?}");
        file.write_all_at(b"XFSB", MIB).unwrap();
        file.write_all_at(b"some database's", 70 * MIB).unwrap();
        file.write_all_at(b"SWAPSPACE2", 131 * MIB + 4086).unwrap();
        let mut expected = own.clone();
        expected.extend([
            (Some(numbers[0]), Xfs),
            (Some(numbers[1]), Unknown),
            (Some(numbers[2]), Swap),
        ]);
        assert_eq!(kinds(file), expected);
        // Data that is no longer in a partition still counts as data.
        file.write_all_at(b"left", 298 * MIB).unwrap();
        expected.insert(own.len(), (None, Unknown));
        assert_eq!(kinds(file), expected);
    }
}

#[test]
fn a_table_without_partitions_explains_nothing_else() {
    for script in ["label: dos\n", "label: gpt\n"] {
        let Some(file) = partitioned(script) else {
            return;
        };
        let file = file.as_file();
        let own = kinds(file);
        assert_eq!(own.len(), 1, "{own:?}");
        file.write_all_at(b"data", 90 * MIB).unwrap();
        file.write_all_at(b"data", 299 * MIB).unwrap();
        assert!(kinds(file).contains(&(None, Unknown)));
    }
}

#[test]
fn a_table_in_a_partition_is_followed() {
    let Some(inner) = partitioned("label: dos\n1M,32M\n") else {
        return;
    };
    inner.as_file().write_all_at(b"XFSB", MIB).unwrap();
    let Some(outer) = partitioned("label: gpt\n10M,200M\n") else {
        return;
    };
    let mut head = vec![0; 2 << 20];
    inner.as_file().read_exact_at(&mut head, 0).unwrap();
    outer.as_file().write_all_at(&head, 10 * MIB).unwrap();
    let found = kinds(outer.as_file());
    assert_eq!(found, [(None, Gpt), (Some(1), Dos), (Some(1), Xfs)]);
}

#[test]
fn partitions_that_only_the_kernel_knows_are_examined() {
    let file = image(64 * MIB, &[(MIB, b"XFSB")]);
    let listed = [Partition {
        start: MIB,
        size: 4 * MIB,
        number: 1,
    }];
    let content = Content::of(&file, &listed).unwrap();
    assert_eq!(content.kinds(), [Xfs]);
}

#[test]
fn a_disk_that_is_being_zeroed_tells_by_which_zeroing() {
    let line = format!("{ZEROING}one/1\n");
    let block: Vec<u8> = line.bytes().cycle().take(4096).collect();
    let file = image(64 * MIB, &[(0, &block), (20 * MIB, &[9; 4 << 20])]);
    let content = Content::of(&file, &[]).unwrap();
    let stamp = Some("one/1".to_owned());
    assert_eq!(
        (content.zeroing.clone(), content.kinds()),
        (stamp, vec![Unknown])
    );
    file.write_all_at(b"x", 4000).unwrap();
    let content = Content::of(&file, &[]).unwrap();
    assert_eq!(
        (content.zeroing.clone(), content.kinds()),
        (None, vec![Unknown])
    );
}

/// The kernel lists partitions of a table that is not known here, such as a Sun label.
#[test]
fn data_before_the_first_partition_of_an_unknown_table_is_seen() {
    let listed = [Partition {
        start: MIB,
        size: 4 * MIB,
        number: 1,
    }];
    let file = image(64 * MIB, &[(508, &[0xDA, 0xBE])]);
    let content = Content::of(&file, &listed).unwrap();
    assert_eq!(content.kinds(), [Unknown]);
}

/// The entries of a table, with starts and sizes in MiB, and the magic number at the end of its sector.
fn table(entries: &[(u8, u64, u64)]) -> [u8; 66] {
    let mut bytes = [0; 66];
    for (entry, &(kind, start, size)) in entries.iter().enumerate() {
        let at = 16 * entry;
        let sectors = |mib: u64| u32::try_from(mib * (MIB / 512)).unwrap().to_le_bytes();
        bytes[at + 4] = kind;
        bytes[at + 8..at + 12].copy_from_slice(&sectors(start));
        bytes[at + 12..at + 16].copy_from_slice(&sectors(size));
    }
    bytes[64..].copy_from_slice(&[0x55, 0xAA]);
    bytes
}

/// At any distance before its partition.
#[test]
fn an_extended_boot_record_is_a_part_of_the_table_and_no_data() {
    for gap in [1, 2, 8] {
        let main = table(&[(0x83, 1, 3), (0x0F, 8, 40)]);
        // Starts are relative to the record, and the next record is relative to the first.
        let records = [
            table(&[(0x83, gap, 4), (0x05, 20, 20)]),
            table(&[(0x83, gap, 4)]),
        ];
        let at = |mib: u64| mib * MIB + 446;
        let parts = [
            (at(0), &main[..]),
            (at(8), &records[0][..]),
            (at(28), &records[1][..]),
        ];
        let file = image(64 * MIB, &parts);
        assert_eq!(Content::of(&file, &[]).unwrap().kinds(), [Dos], "{gap}");
        // Bytes beside the record are data.
        file.write_all_at(b"x", 8 * MIB + 700).unwrap();
        let expected: &[SignatureKind] = if gap > 1 { &[Unknown, Dos] } else { &[Dos] };
        let mut kinds = Content::of(&file, &[]).unwrap().kinds();
        kinds.sort_by_key(|kind| *kind == Dos);
        assert_eq!(kinds, expected, "{gap}");
    }
}

/// The entries are beyond the end of every device, and cannot be read.
#[test]
fn a_gpt_whose_entries_lie_nowhere_is_still_a_gpt() {
    for entries in [u64::MAX, 1 << 63, 1 << 55, 1 << 40] {
        let mut header = [0; 92];
        header[..8].copy_from_slice(b"EFI PART");
        header[72..80].copy_from_slice(&entries.to_le_bytes());
        header[80..84].copy_from_slice(&128_u32.to_le_bytes());
        header[84..88].copy_from_slice(&128_u32.to_le_bytes());
        let file = image(64 * MIB, &[(512, &header)]);
        let content = Content::of(&file, &[]).unwrap();
        assert!(content.kinds().contains(&Gpt), "{entries:#x}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Parsing ends for tables of random bytes: with cycles, and with sizes beyond the end.
    #[test]
    fn any_table_is_read_or_refused(
        tables in proptest::collection::vec((0_u64..64, proptest::collection::vec(any::<u8>(), 64)), 1..8),
    ) {
        let file = image(MIB, &[]);
        for (sector, bytes) in tables {
            let mut bytes = bytes;
            for entry in 0..4 {
                // Small numbers refer to other sectors of the table.
                bytes[16 * entry + 4] &= 0x0F;
                for at in [9, 10, 11] { bytes[16 * entry + at] = 0; }
                bytes[16 * entry] = 0;
            }
            file.write_all_at(&bytes, sector * 512 + 446).unwrap();
            file.write_all_at(&[0x55, 0xAA], sector * 512 + 510).unwrap();
        }
        Content::of(&file, &[]).unwrap();
    }
}
