//! Logical volumes that begin on a physical volume of LVM2, by the metadata on it.
//!
//! The volumes of an active group are devices that hold this one; those of another group are only known by the
//! metadata. On disk there is a label in one of the first four sectors, with a header that lists the data areas and
//! the metadata areas; each of the latter has a header and a text in a ring buffer after it (lvm2, lib/label/label.h,
//! `struct label_header`; lib/format_text/layout.h, `struct pv_header`, `struct mda_header`, `struct raw_locn`).

mod text;

use std::io;

use super::region::Region;
use text::{Node, Section};

/// LVM counts in sectors of this many bytes.
const SECTOR: u64 = 512;
/// Size of the header of a metadata area; the ring buffer follows it.
const HEADER: u64 = 512;
/// Maximum size of metadata; larger ones count as damaged. LVM's own areas are 1 MiB by default.
const MAX_METADATA_BYTES: u64 = 64 << 20;
/// Suffixes of the names of volumes with LVM's own metadata, some followed by a number (lvm(8), "reserved names").
const INTERNAL_SUFFIXES: [&str; 5] = ["_rmeta_", "_mlog", "_tmeta", "_cmeta", "_pmspare"];

/// The first contiguous segment of a logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    /// Name of the volume.
    pub name: String,
    /// First byte of the volume, from the start of the physical volume.
    pub start: u64,
    /// Size of the segment in bytes.
    pub size: u64,
}

/// Contents of a physical volume according to its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Volumes {
    /// The volumes that begin on it.
    Known(Vec<Volume>),
    /// The physical volume has no valid metadata. The positions and sizes of its data areas.
    Unknown(Vec<(u64, u64)>),
}

/// Reads the volumes of a physical volume whose label was found at `label`.
pub(super) fn volumes(region: &Region, label: u64) -> io::Result<Volumes> {
    let sector = region.read(label, SECTOR)?;
    let Some(header) = Header::parse(&sector) else {
        return Ok(Volumes::Unknown(vec![(label + SECTOR, region.size)]));
    };
    for (start, size) in &header.metadata {
        if let Some(text) = metadata(region, *start, *size)?
            && let Some(found) = Section::parse(&text)
            && let Some(volumes) = in_group(&found, &header.uuid)
        {
            return Ok(Volumes::Known(volumes));
        }
    }
    // An area of size 0 extends to the end.
    let areas = header.data.iter().map(|(start, size)| match size {
        0 => (*start, region.size.saturating_sub(*start)),
        _ => (*start, *size),
    });
    Ok(Volumes::Unknown(areas.collect()))
}

/// The header of a physical volume.
struct Header {
    uuid: String,
    data: Vec<(u64, u64)>,
    metadata: Vec<(u64, u64)>,
}

impl Header {
    fn parse(sector: &[u8]) -> Option<Header> {
        let at = usize::try_from(le32(sector, 20)?).ok()?;
        let uuid = sector.get(at..at.checked_add(32)?)?;
        let mut lists = [Vec::new(), Vec::new()];
        let mut at = at + 40;
        for list in &mut lists {
            loop {
                let (start, size) = (le64(sector, at)?, le64(sector, at + 8)?);
                at += 16;
                if start == 0 {
                    break;
                }
                list.push((start, size));
            }
        }
        let [data, metadata] = lists;
        Some(Header {
            uuid: String::from_utf8_lossy(uuid).into_owned(),
            data,
            metadata,
        })
    }
}

/// The text of a metadata area; `None` if it has no valid one.
fn metadata(region: &Region, start: u64, size: u64) -> io::Result<Option<String>> {
    const MAGIC: &[u8] = b" LVM2 x[5A%r0N*>";
    const IGNORED: u64 = 1;
    if size <= HEADER || start.checked_add(size).is_none_or(|end| end > region.size) {
        return Ok(None);
    }
    let header = region.read(start, HEADER)?;
    let place = header
        .get(4..20)
        .filter(|magic| *magic == MAGIC)
        .and_then(|_| {
            let slot = 40;
            let (offset, length) = (le64(&header, slot)?, le64(&header, slot + 8)?);
            let is_used = offset >= HEADER && le32(&header, slot + 20)? & IGNORED == 0;
            let fits = offset < size && length <= MAX_METADATA_BYTES.min(size - HEADER);
            (is_used && fits).then_some((offset, length))
        });
    let Some((offset, length)) = place else {
        return Ok(None);
    };
    let first = length.min(size - offset);
    let mut text = region.read(start + offset, first)?;
    text.extend(region.read(start + HEADER, length - first)?);
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Some(text.trim_end_matches('\0').to_owned()))
}

/// The volumes that begin on the physical volume with this id, in the one group of the metadata.
fn in_group(all: &Section, uuid: &str) -> Option<Vec<Volume>> {
    let (_, group) = all.sections().next()?;
    let extent = group.number("extent_size")?.checked_mul(SECTOR)?;
    let plain = |id: &str| id.replace('-', "");
    let mut members = group.section("physical_volumes")?.sections();
    let (name, own) =
        members.find(|(_, member)| member.text("id").map(plain).as_deref() == Some(uuid))?;
    let begins = own.number("pe_start")?.checked_mul(SECTOR)?;
    let Some(volumes) = group.section("logical_volumes") else {
        return Some(Vec::new());
    };
    let mut found = Vec::new();
    for (volume, section) in volumes.sections().filter(|(volume, _)| !is_own(volume)) {
        let mut segments = section.sections().map(|(_, segment)| segment);
        let first = segments.find(|segment| segment.number("start_extent") == Some(0));
        // Volumes without stripes are built on others, which are listed too.
        let Some(stripes) = first.and_then(|segment| segment.list("stripes")) else {
            continue;
        };
        let (Some(Node::Text(member)), Some(Node::Number(at))) = (stripes.first(), stripes.get(1))
        else {
            return None;
        };
        if member != name {
            continue;
        }
        let segment = first?;
        let size = match segment.number("stripe_size") {
            Some(stripe) if stripes.len() > 2 => stripe.checked_mul(SECTOR)?,
            _ => segment.number("extent_count")?.checked_mul(extent)?,
        };
        found.push(Volume {
            name: volume.to_owned(),
            start: at.checked_mul(extent)?.checked_add(begins)?,
            size,
        });
    }
    Some(found)
}

fn is_own(name: &str) -> bool {
    let name = name.trim_end_matches(|sign: char| sign.is_ascii_digit());
    INTERNAL_SUFFIXES
        .iter()
        .any(|ending| name.ends_with(ending))
}

fn le32(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?)))
}

fn le64(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "dfYjZlabVDGDPlB80Fia0gCYi9YMEgt4";

    fn group(volumes: &str) -> Section {
        let text = format!(
            "vg {{ extent_size = 8192 physical_volumes {{ pv0 {{ id = \"other\" }} pv1 {{ id = \
             \"dfYjZl-abVD-GDPl-B80F-ia0g-CYi9-YMEgt4\" pe_start = 2048 }} }} logical_volumes {{ {volumes} }} }}"
        );
        Section::parse(&text).unwrap()
    }

    fn segment(start: u64, rest: &str) -> String {
        format!("segment1 {{ start_extent = {start} extent_count = 3 {rest} }}")
    }

    #[test]
    fn volumes_that_begin_here_are_found_by_their_first_extent() {
        let volumes = [
            format!("data {{ {} }}", segment(0, "stripes = [\"pv1\", 2]")),
            format!("there {{ {} }}", segment(0, "stripes = [\"pv0\", 2]")),
            format!("grown {{ {} }}", segment(5, "stripes = [\"pv1\", 2]")),
            format!(
                "wide {{ {} }}",
                segment(0, "stripe_size = 128 stripes = [\"pv1\", 9, \"pv0\", 4]")
            ),
            format!(
                "data_rmeta_0 {{ {} }}",
                segment(0, "stripes = [\"pv1\", 1]")
            ),
            format!("thin {{ {} }}", segment(0, "thin_pool = \"pool\"")),
        ];
        let found = in_group(&group(&volumes.join(" ")), UUID).unwrap();
        let volume = |name: &str, extent: u64, size| Volume {
            name: name.to_owned(),
            start: (1 << 20) + extent * (4 << 20),
            size,
        };
        let expected = [volume("data", 2, 12 << 20), volume("wide", 9, 64 << 10)];
        assert_eq!(found, expected);
        assert_eq!(in_group(&group(""), "another disk"), None);
        assert_eq!(in_group(&group(""), UUID), Some(Vec::new()));
    }
}
