//! All contents of a device or file: its own signatures, those of its partitions, and data of unknown kinds.

use std::fmt;
use std::fs::File;
use std::io;

use super::SignatureKind::{self, Dos, Gpt, Lvm2Member, Unknown};
use super::image::Image;
use super::lvm::{self, Volumes};
use super::partitions::{self, Partition, Tables};
use super::read::direct;
use super::region::Region;
use super::{blank, detect};

/// Content and its position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocatedContent {
    /// The partition with the content; `None` if it is on the device itself.
    pub partition: Option<Partition>,
    /// Name of the LVM logical volume with the content.
    pub volume: Option<String>,
    /// Position, in bytes from the start of the device.
    pub offset: u64,
    /// Kind of the content.
    pub kind: SignatureKind,
}

/// Contents that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The contents, ordered by position; each kind once in each partition.
    pub found: Vec<LocatedContent>,
    /// Stamp of an unfinished zeroing, if it alone fills the first 4 KiB. For a command that continues that zeroing,
    /// the remaining contents are no reason to stop.
    pub zeroing: Option<String>,
}

/// Start of the line at the beginning of a disk that `disksmith zero` has not finished; the rest of the line is the
/// stamp of that zeroing, and the line is repeated to fill 4 KiB.
pub const ZEROING: &str = "disksmith zero is not done with this disk: ";

/// Maximum nesting depth of partition tables in partitions.
const MAX_TABLE_DEPTH: u32 = 3;
/// Minimum size of a gap between partitions that is examined; smaller ones hold boot loaders and padding.
const GAP: u64 = 1 << 20;
/// The sector of an MBR.
const MBR: u64 = 512;
/// Size of either copy of a GPT: header and 128 entries of 128 bytes, with a protective MBR, in sectors of up to 4 KiB
/// (UEFI Specification 2.10, section 5.3.1).
const GPT: u64 = 6 * 4096;

impl Content {
    /// Examines a whole device or file. `listed` are partitions known to the kernel, in addition to those of the
    /// device's table. Reads at most 33 MiB of each partition; reads of a device bypass the page cache.
    ///
    /// # Errors
    /// The kernel's error of a read: `EIO` from a failing disk, `EISDIR` for a directory.
    pub fn of(file: &File, listed: &[Partition]) -> io::Result<Content> {
        let direct = direct(file)?;
        let region = Region::whole(direct.as_ref().unwrap_or(file))?;
        let mut content = Content {
            found: Vec::new(),
            zeroing: zeroing(&region)?,
        };
        search(&region, &Carrier::default(), listed, 0, &mut content)?;
        content.found.sort_unstable();
        let mut seen = Vec::new();
        content.found.retain(|found| {
            let which = (found.partition, found.volume.clone(), found.kind);
            let is_first = !seen.contains(&which);
            seen.push(which);
            is_first
        });
        Ok(content)
    }

    /// True if the device itself has the signature of a format.
    pub fn has_signature(&self) -> bool {
        let is_mark = |found: &LocatedContent| {
            found.partition.is_none() && found.volume.is_none() && found.kind != Unknown
        };
        self.found.iter().any(is_mark)
    }

    /// The kinds, each once, in the order in which `--destroy` is advised to name them.
    pub fn kinds(&self) -> Vec<SignatureKind> {
        let mut kinds: Vec<SignatureKind> = Vec::new();
        for found in &self.found {
            if !kinds.contains(&found.kind) {
                kinds.push(found.kind);
            }
        }
        kinds
    }
}

/// The outermost partition and the innermost logical volume that contain something.
#[derive(Clone, Default)]
struct Carrier {
    partition: Option<Partition>,
    volume: Option<String>,
}

impl Carrier {
    fn content(&self, offset: u64, kind: SignatureKind) -> LocatedContent {
        LocatedContent {
            partition: self.partition,
            volume: self.volume.clone(),
            offset,
            kind,
        }
    }
}

fn search(
    region: &Region,
    carrier: &Carrier,
    listed: &[Partition],
    depth: u32,
    content: &mut Content,
) -> io::Result<()> {
    let signatures = detect(&Image::read(region)?);
    let mut push = |offset: u64, kind: SignatureKind| {
        let found = carrier.content(region.start + offset, kind);
        content.found.push(found);
    };
    for signature in &signatures {
        push(signature.offset, signature.kind);
    }
    let is_table = |kind: SignatureKind| matches!(kind, Dos | Gpt);
    let kinds = signatures.iter().map(|found| found.kind);
    let tables: Vec<SignatureKind> = kinds.filter(|kind| is_table(*kind)).collect();
    let is_known = signatures.iter().any(|found| !is_table(found.kind));
    let Tables {
        partitions: mut parts,
        extended_records,
    } = match tables.is_empty() {
        true => Tables::default(),
        false => partitions::of(region)?,
    };
    parts.extend_from_slice(listed);
    parts.sort_unstable();
    parts.dedup_by_key(|part| (part.start, part.size));
    // A partition that begins at the start of the device, as on hybrid images of CDs, was examined with the device.
    parts.retain(|part| part.start > 0);
    if depth == MAX_TABLE_DEPTH && !parts.is_empty() {
        push(0, Unknown);
        return Ok(());
    }
    if !is_known {
        let data = first_beside(region, &tables, &parts, &extended_records)?;
        if let Some(at) = data {
            content
                .found
                .push(carrier.content(region.start + at, Unknown));
        }
    }
    for part in parts {
        if let Some(inside) = region.part(part.start, part.size) {
            let carrier = Carrier {
                partition: Some(carrier.partition.unwrap_or(part)),
                ..carrier.clone()
            };
            search(&inside, &carrier, &[], depth + 1, content)?;
        }
    }
    let labels = signatures.iter().filter(|found| found.kind == Lvm2Member);
    for label in labels {
        search_group(region, label.offset, carrier, depth, content)?;
    }
    Ok(())
}

/// Searches the logical volumes that begin on a physical one, or all of its data if they are unknown.
fn search_group(
    region: &Region,
    label: u64,
    carrier: &Carrier,
    depth: u32,
    content: &mut Content,
) -> io::Result<()> {
    match lvm::volumes(region, label)? {
        Volumes::Known(volumes) if depth < MAX_TABLE_DEPTH => {
            for volume in volumes {
                if let Some(inside) = region.part(volume.start, volume.size) {
                    let carrier = Carrier {
                        volume: Some(volume.name),
                        ..carrier.clone()
                    };
                    search(&inside, &carrier, &[], depth + 1, content)?;
                }
            }
        }
        Volumes::Known(_) => content.found.push(carrier.content(region.start, Unknown)),
        Volumes::Unknown(areas) => {
            for (start, size) in areas {
                let data = match region.part(start, size) {
                    Some(area) => blank::first_data(&area)?,
                    None => None,
                };
                let data = data.map(|at| carrier.content(region.start + start + at, Unknown));
                content.found.extend(data);
            }
        }
    }
    Ok(())
}

/// Position of the first data outside of all partitions and table records.
fn first_beside(
    region: &Region,
    tables: &[SignatureKind],
    parts: &[Partition],
    extended_records: &[u64],
) -> io::Result<Option<u64>> {
    let first = |from: u64, to: u64| -> io::Result<Option<u64>> {
        let Some(gap) = region.part(from, to.saturating_sub(from)) else {
            return Ok(None);
        };
        Ok(blank::first_data(&gap)?.map(|at| from + at))
    };
    let (from_start, from_end) = match tables {
        _ if tables.contains(&Gpt) => (GPT, GPT),
        [] => (0, 0),
        _ => (MBR, 0),
    };
    // Partitions of an unknown table, such as a Sun label, are beside that table.
    let smallest = if parts.is_empty() || tables.is_empty() {
        0
    } else {
        GAP
    };
    let end = region.size.saturating_sub(from_end);
    let records = extended_records.iter().map(|&start| (start, MBR));
    let mut taken: Vec<(u64, u64)> = parts.iter().map(|part| (part.start, part.size)).collect();
    taken.extend(records);
    taken.sort_unstable();
    let mut from = from_start;
    for (start, size) in taken.into_iter().chain([(end, 0)]) {
        if start.saturating_sub(from) > smallest
            && let Some(at) = first(from, start)?
        {
            return Ok(Some(at));
        }
        from = from.max(start.saturating_add(size));
    }
    Ok(None)
}

/// The stamp of a zeroing, if it fills the first block, so that nothing was written there since.
fn zeroing(region: &Region) -> io::Result<Option<String>> {
    let block = region.read(0, 4096)?;
    let length = block.iter().position(|&byte| byte == b'\n');
    let Some(line) = length.and_then(|at| block.get(..=at)) else {
        return Ok(None);
    };
    let fills = line.iter().cycle().zip(&block).all(|(a, b)| a == b);
    let stamp = line
        .strip_prefix(ZEROING.as_bytes())
        .filter(|_| fills)
        .and_then(|stamp| std::str::from_utf8(stamp).ok());
    Ok(stamp.map(|stamp| stamp.trim_end().to_owned()))
}

impl fmt::Display for LocatedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Unknown => "data of an unknown kind".to_owned(),
            kind => format!("the signature '{kind}'"),
        };
        f.write_str(&kind)?;
        if let Some(volume) = &self.volume {
            write!(f, " in the logical volume {volume}")?;
        }
        let at = match self.partition {
            Some(part) => {
                write!(f, " in partition {}", part.number)?;
                part.start
            }
            None => self.offset,
        };
        write!(f, " (at {})", record::Bytes(at))
    }
}
