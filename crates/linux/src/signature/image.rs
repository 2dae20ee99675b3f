//! The parts of a device with signatures, read once, so that the detectors are pure functions.

use std::io;

use super::read::ALIGN;
use super::region::Region;

/// Bytes read at either end. The farthest from the start that needs it is the second ZFS label (256 to 512
/// KiB); the farthest from the end is the third (512 KiB before the end, rounded down to 256 KiB).
pub(super) const EDGE_BYTES: u64 = 1 << 20;

/// Offsets beyond the first edge that some formats use: VMFS at 1 and 2 MiB, the second LUKS2 header at 1, 2 or 4 MiB,
/// the first mirror of the Btrfs superblock at 64 MiB.
const FURTHER_OFFSETS: [u64; 4] = [1 << 20, 2 << 20, 4 << 20, 64 << 20];

/// The two edges and the further ranges of a device, file or partition.
pub(super) struct Image {
    size: u64,
    parts: Vec<(u64, Vec<u8>)>,
}

impl Image {
    /// Reads the ranges that the detectors need.
    pub(super) fn read(region: &Region) -> io::Result<Image> {
        let size = region.size;
        let mut image = Image {
            size,
            parts: vec![(0, region.read(0, EDGE_BYTES)?)],
        };
        let tail = size.saturating_sub(EDGE_BYTES);
        if tail > 0 {
            let start = tail - tail % ALIGN as u64;
            image.parts.push((start, region.read(start, size - start)?));
        }
        for spot in FURTHER_OFFSETS {
            if spot < size && image.bytes(spot, ALIGN).is_none() {
                image.parts.push((spot, region.read(spot, ALIGN as u64)?));
            }
        }
        Ok(image)
    }

    /// The size of the device or file.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// `len` bytes at `offset`; `None` unless all of them were read.
    pub(super) fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        self.parts.iter().find_map(|(start, data)| {
            let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
            data.get(from..from.checked_add(len)?)
        })
    }

    /// The offset `back` bytes before the end.
    pub(super) fn before_end(&self, back: u64) -> Option<u64> {
        self.size.checked_sub(back)
    }

    /// True if `magic` is at `offset`.
    pub(super) fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.bytes(offset, magic.len()) == Some(magic)
    }

    /// `N` bytes at `offset`.
    pub(super) fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        self.bytes(offset, N)?.try_into().ok()
    }

    /// A 16-bit little-endian number.
    pub(super) fn le16(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    /// A 32-bit little-endian number.
    pub(super) fn le32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    /// A 32-bit big-endian number.
    pub(super) fn be32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_be_bytes)
    }

    /// The byte at an offset.
    pub(super) fn byte(&self, offset: u64) -> Option<u8> {
        self.array::<1>(offset).map(|[byte]| byte)
    }
}
