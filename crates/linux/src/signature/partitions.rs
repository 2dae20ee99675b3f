//! Partitions of a device according to its own table: MBR with logical partitions, and GPT.
//!
//! The kernel need not have created nodes for them: it does not for a file, nor for a loop device without `-P`.

use std::io;

use super::region::Region;

/// A partition of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// First byte of the partition, from the start of the device.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Number of the partition.
    pub number: u32,
}

/// Maximum length of a chain of logical partitions; a longer one counts as damaged.
const MAX_LOGICAL_PARTITIONS: u32 = 256;
/// Maximum number of entries of a GPT; a larger number counts as damaged. 128 is usual.
const MAX_ENTRIES: u32 = 1024;

/// Partitions of a device and the records of its tables.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The partitions of all tables, ordered by position, each position once.
    pub(super) partitions: Vec<Partition>,
    /// Positions of the extended boot records, which are between the partitions and belong to the table.
    pub(super) extended_records: Vec<u64>,
}

/// The partition tables of a device.
pub(super) fn of(region: &Region) -> io::Result<Tables> {
    let mut tables = Tables::default();
    let found = &mut tables.partitions;
    gpt(region, found)?;
    mbr(region, found, &mut tables.extended_records)?;
    found.retain(|part| part.size > 0 && part.start < region.size);
    found.sort_unstable();
    found.dedup_by_key(|part| (part.start, part.size));
    Ok(tables)
}

fn le32(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(u32::from_le_bytes(
        bytes.get(at..at + 4)?.try_into().ok()?,
    )))
}

fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// An entry of an MBR (include/linux/msdos_partition.h, struct msdos_partition): its type, first
/// sector and number of sectors.
fn entries(sector: &[u8]) -> Vec<(u8, u64, u64)> {
    (0..4)
        .map(|entry| 446 + 16 * entry)
        .filter_map(|at| {
            Some((
                *sector.get(at + 4)?,
                le32(sector, at + 8)?,
                le32(sector, at + 12)?,
            ))
        })
        .collect()
}

fn has_boot_magic(sector: &[u8]) -> bool {
    sector.get(510..512) == Some(&[0x55, 0xAA])
}

/// Types of extended partitions (block/partitions/msdos.c, is_extended_partition).
const EXTENDED: [u8; 3] = [0x05, 0x0F, 0x85];
/// The entry that protects a GPT (block/partitions/efi.h, EFI_PMBR_OSTYPE_EFI_GPT).
const PROTECTIVE: u8 = 0xEE;

fn mbr(region: &Region, found: &mut Vec<Partition>, records: &mut Vec<u64>) -> io::Result<()> {
    let head = region.read(0, 512)?;
    if !has_boot_magic(&head) {
        return Ok(());
    }
    let sector = region.sector();
    let mut logical = 5;
    for ((kind, first, count), number) in entries(&head).into_iter().zip(1..) {
        if kind == 0 || kind == PROTECTIVE || count == 0 {
            continue;
        }
        if EXTENDED.contains(&kind) {
            let links = extended(region, first, &mut logical, found)?;
            records.extend(links.into_iter().map(|link| link * sector));
        } else {
            found.push(Partition {
                start: first * sector,
                size: count * sector,
                number,
            });
        }
    }
    Ok(())
}

/// Follows the chain of logical partitions: each link has its partition, relative to the link, and the next link,
/// relative to the extended partition (block/partitions/msdos.c, parse_extended). Returns the links, in sectors.
fn extended(
    region: &Region,
    base: u64,
    number: &mut u32,
    found: &mut Vec<Partition>,
) -> io::Result<Vec<u64>> {
    let sector = region.sector();
    let mut links = Vec::new();
    let mut link = base;
    for _ in 0..MAX_LOGICAL_PARTITIONS {
        let bytes = region.read(link.saturating_mul(sector), 512)?;
        if !has_boot_magic(&bytes) {
            break;
        }
        links.push(link);
        let mut next = None;
        for (kind, first, count) in entries(&bytes) {
            if kind == 0 || count == 0 {
                continue;
            }
            if EXTENDED.contains(&kind) {
                next = next.or(Some(base + first));
            } else {
                found.push(Partition {
                    start: (link + first) * sector,
                    size: count * sector,
                    number: *number,
                });
                *number += 1;
            }
        }
        match next {
            Some(next) if next != link => link = next,
            _ => break,
        }
    }
    Ok(links)
}

/// Parses a GPT by its header or the backup of it, in sectors of 512 or 4096 bytes (UEFI Specification 2.10, section
/// 5.3.2). Checksums are not verified: a damaged table is better than none.
fn gpt(region: &Region, found: &mut Vec<Partition>) -> io::Result<()> {
    for sector in [512, 4096] {
        for at in [Some(sector), region.size.checked_sub(sector)]
            .into_iter()
            .flatten()
        {
            let header = region.read(at, 92)?;
            if !header.starts_with(b"EFI PART") {
                continue;
            }
            let fields = (le64(&header, 72), le32(&header, 80), le32(&header, 84));
            let (Some(table), Some(count), Some(size)) = fields else {
                continue;
            };
            let count = count.min(u64::from(MAX_ENTRIES));
            if !(128..=4096).contains(&size) {
                continue;
            }
            let entries = region.read(table.saturating_mul(sector), count * size)?;
            for (entry, number) in entries.chunks_exact(size as usize).zip(1..) {
                let is_used = entry.get(..16).is_some_and(|kind| kind != [0; 16]);
                let (Some(first), Some(last)) = (le64(entry, 32), le64(entry, 40)) else {
                    continue;
                };
                if is_used && last >= first {
                    found.push(Partition {
                        start: first.saturating_mul(sector),
                        size: (last - first).saturating_add(1).saturating_mul(sector),
                        number,
                    });
                }
            }
        }
    }
    Ok(())
}
