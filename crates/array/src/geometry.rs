//! Arithmetic of the level, the number of members, their sizes and the chunk.

use record::Bytes;

use domain::raid::{Level, Raid10Layout, Redundancy};

/// Default chunk size: what EBS counts as one I/O at most (EBS User Guide, "I/O characteristics": SSD volumes take up
/// to 256 KiB as one), so that a full chunk costs one.
pub(crate) const DEFAULT_CHUNK: Bytes = Bytes::kib(256);

/// Least chunk size: md takes none below a page (mdadm(8), `--chunk`), and file systems here have blocks of 4 KiB.
pub(crate) const MIN_CHUNK: Bytes = Bytes::kib(4);

/// Largest chunk size: with a larger one an array hardly has more than one stripe in flight.
pub(crate) const MAX_CHUNK: Bytes = Bytes::mib(64);

/// Read-ahead of the kernel where none is set (linux, VM_READAHEAD_PAGES).
const DEFAULT_READ_AHEAD: Bytes = Bytes::kib(128);

/// Largest read-ahead: more in flight for one reader only fills memory.
const MAX_READ_AHEAD: Bytes = Bytes::mib(8);

/// An array's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// RAID level of the array.
    pub level: Level,
    /// Number of members.
    pub members: u64,
    /// Chunk size; `None` at levels without chunks.
    pub chunk: Option<Bytes>,
    /// Layout of the copies of RAID 10; without meaning at other levels.
    pub layout: Raid10Layout,
}

impl Geometry {
    /// Number of chunks of data in a stripe, to which a file system aligns. At RAID 10 it is what the kernel reports
    /// as the best size (linux, drivers/md/raid10.c, raid10_set_io_opt): half the members with n2, or all where these
    /// are odd, since the pattern repeats only then; and all with f2 and o2, where the first copies lie over all
    /// members as at RAID 0.
    pub(crate) fn data_members(self) -> u64 {
        if !self.level.has_chunks() {
            return 1;
        }
        match self.level.redundancy() {
            Redundancy::Parity(parities) => self.members.saturating_sub(parities as u64),
            Redundancy::Copies
                if self.layout == Raid10Layout::N2 && self.members.is_multiple_of(2) =>
            {
                self.members / 2
            }
            Redundancy::None | Redundancy::Copies => self.members,
        }
    }

    /// Size of the data of a stripe; `None` at levels without chunks.
    pub(crate) fn stripe(self) -> Option<Bytes> {
        Some(Bytes(self.chunk?.0.saturating_mul(self.data_members())))
    }

    /// Options of `mkfs.xfs` that align a file system: a stripe unit and the number in a stripe.
    pub(crate) fn xfs(self) -> Option<String> {
        let chunk = self.chunk?;
        Some(format!("su={}k,sw={}", chunk.0 >> 10, self.data_members()))
    }

    /// Options of `mkfs.ext4` that align a file system with blocks of 4 KiB.
    pub(crate) fn ext4(self) -> Option<String> {
        let blocks = self.chunk?.0 / MIN_CHUNK.0;
        let stripe = blocks * self.data_members();
        Some(format!("stride={blocks},stripe_width={stripe}"))
    }

    /// Read-ahead of two stripes: while the application processes one, all members read the next. Only scans are read
    /// ahead, so random reads lose nothing. `None` if the kernel's default is right.
    pub fn read_ahead(self) -> Option<Bytes> {
        let two = Bytes(self.stripe()?.0.saturating_mul(2));
        Some(two.clamp(DEFAULT_READ_AHEAD, MAX_READ_AHEAD))
    }

    /// Bytes left for data, before md's and the file system's own.
    pub fn capacity(self, sizes: &[Bytes]) -> Bytes {
        let least = sizes.iter().min().copied().unwrap_or_default();
        Bytes(match self.level.redundancy() {
            Redundancy::None => sizes.iter().map(|size| size.0).sum(),
            Redundancy::Copies if self.level.has_chunks() => {
                least.0.saturating_mul(self.members) / 2
            }
            Redundancy::Copies | Redundancy::Parity(_) => {
                least.0.saturating_mul(self.data_members())
            }
        })
    }

    /// Least bytes left for a file system, where md has taken its own.
    pub fn usable_bytes(self, sizes: &[Bytes]) -> Bytes {
        let left: Vec<Bytes> = sizes.iter().map(|size| self.after_md(*size)).collect();
        self.capacity(&left)
    }

    /// Bytes of a member behind the superblock, the bitmap and the space that mdadm keeps free for a reshape
    /// (mdadm, super1.c, validate_geometry1: 128 MiB, halved while it is more than a thousandth, and 1 MiB at
    /// least), in whole chunks.
    fn after_md(self, member: Bytes) -> Bytes {
        let mut headroom = Bytes::mib(128).0;
        while headroom << 10 > member.0 && headroom > Bytes::mib(1).0 {
            headroom /= 2;
        }
        let left = member.0.saturating_sub(headroom + Bytes::mib(1).0);
        let chunk = self.chunk.map_or(1, |chunk| chunk.0.max(1));
        Bytes(left - left % chunk)
    }

    /// Bytes that the members lose when they are not equal: at levels with copies or parity those beyond the
    /// smallest.
    pub(crate) fn unused_bytes(self, sizes: &[Bytes]) -> Vec<Bytes> {
        let least = sizes.iter().min().copied().unwrap_or_default();
        let lost = |size: &Bytes| {
            if self.level.is_redundant() {
                *size - least
            } else {
                Bytes(0)
            }
        };
        sizes.iter().map(lost).collect()
    }
}

/// Reason why a chunk size is invalid; `None` if it is valid.
pub fn bad_chunk(level: Level, chunk: Option<Bytes>) -> Option<String> {
    let chunk = chunk?;
    if !level.has_chunks() {
        Some(format!(
            "{} has no chunks; leave --chunk out",
            level.title()
        ))
    } else if !chunk.0.is_power_of_two() {
        Some(format!(
            "a chunk is a power of two, such as 64k or 256k, and {} bytes are not",
            chunk.0
        ))
    } else if chunk < MIN_CHUNK {
        Some(format!(
            "a chunk of {chunk} is too small; the least is {MIN_CHUNK}"
        ))
    } else if chunk > MAX_CHUNK {
        Some(format!(
            "a chunk of {chunk} is too large; the most is {MAX_CHUNK}"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(level: Level, members: u64, layout: Raid10Layout) -> Geometry {
        Geometry {
            level,
            members,
            chunk: level.has_chunks().then_some(DEFAULT_CHUNK),
            layout,
        }
    }

    #[test]
    fn a_file_system_is_aligned_to_chunk_and_stripe() {
        use Level::{Five, Six, Ten, Zero};
        use Raid10Layout::{F2, N2, O2};
        for (level, members, layout, data) in [
            (Zero, 8, N2, 8),
            (Ten, 8, N2, 4),
            (Ten, 2, N2, 1),
            (Ten, 3, N2, 3),
            (Ten, 8, F2, 8),
            (Ten, 8, O2, 8),
            (Five, 5, N2, 4),
            (Six, 6, N2, 4),
        ] {
            let geometry = of(level, members, layout);
            assert_eq!(geometry.data_members(), data, "{geometry:?}");
            assert_eq!(geometry.xfs(), Some(format!("su=256k,sw={data}")));
            let ext4 = format!("stride=64,stripe_width={}", 64 * data);
            assert_eq!(geometry.ext4(), Some(ext4));
        }
        for level in [Level::One, Level::Linear] {
            let geometry = of(level, 2, N2);
            assert_eq!((geometry.xfs(), geometry.ext4()), (None, None));
            assert_eq!(geometry.read_ahead(), None);
        }
    }

    #[test]
    fn read_ahead_is_two_stripes_within_bounds() {
        assert_eq!(
            of(Level::Ten, 8, Raid10Layout::N2).read_ahead(),
            Some(Bytes::mib(2))
        );
        assert_eq!(
            of(Level::Zero, 64, Raid10Layout::N2).read_ahead(),
            Some(Bytes::mib(8))
        );
        let small = Geometry {
            chunk: Some(Bytes::kib(4)),
            ..of(Level::Zero, 2, Raid10Layout::N2)
        };
        assert_eq!(small.read_ahead(), Some(Bytes::kib(128)));
    }

    #[test]
    fn md_takes_its_own_of_each_member() {
        let of = |level| Geometry {
            level,
            members: 2,
            chunk: Some(DEFAULT_CHUNK),
            layout: Raid10Layout::N2,
        };
        for (mib, left) in [(150, 148), (160, 158), (1 << 20, (1 << 20) - 129)] {
            let sizes = [Bytes::mib(mib); 2];
            assert_eq!(
                of(Level::Zero).usable_bytes(&sizes),
                Bytes::mib(2 * left),
                "{mib}"
            );
            assert_eq!(
                of(Level::One).usable_bytes(&sizes),
                Bytes::mib(left),
                "{mib}"
            );
        }
        assert_eq!(of(Level::Zero).usable_bytes(&[Bytes::kib(4); 2]), Bytes(0));
    }

    #[test]
    fn the_smallest_member_decides_where_there_are_copies() {
        let sizes = [3, 1, 2, 2].map(Bytes::gib);
        for (level, gib, lost) in [
            (Level::Zero, 8, [0, 0, 0, 0]),
            (Level::Linear, 8, [0, 0, 0, 0]),
            (Level::One, 1, [2, 0, 1, 1]),
            (Level::Five, 3, [2, 0, 1, 1]),
            (Level::Six, 2, [2, 0, 1, 1]),
            (Level::Ten, 2, [2, 0, 1, 1]),
        ] {
            let geometry = of(level, 4, Raid10Layout::N2);
            assert_eq!(geometry.capacity(&sizes), Bytes::gib(gib), "{level:?}");
            assert_eq!(
                geometry.unused_bytes(&sizes),
                lost.map(Bytes::gib),
                "{level:?}"
            );
        }
        let equal = [Bytes::gib(2); 3];
        for layout in [Raid10Layout::N2, Raid10Layout::F2, Raid10Layout::O2] {
            let ten = of(Level::Ten, 3, layout);
            assert_eq!(ten.capacity(&equal), Bytes::gib(3), "{layout:?}");
        }
    }

    #[test]
    fn a_chunk_that_cannot_be_is_refused_with_its_reason() {
        let bad = |level, bytes| bad_chunk(level, Some(Bytes(bytes)));
        for (level, bytes, expected) in [
            (Level::Zero, 3 << 10, "power of two"),
            (Level::Zero, 2 << 10, "too small"),
            (Level::Zero, 128 << 20, "too large"),
            (Level::One, 64 << 10, "no chunks"),
            (Level::Linear, 64 << 10, "no chunks"),
        ] {
            assert!(bad(level, bytes).unwrap().contains(expected), "{bytes}");
        }
        assert_eq!(bad(Level::Ten, 256 << 10), None);
        assert_eq!(bad_chunk(Level::One, None), None);
    }
}
