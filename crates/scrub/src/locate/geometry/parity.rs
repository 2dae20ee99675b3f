//! RAID 4, 5 and 6 (linux, drivers/md/raid5.c, raid5_compute_sector and raid6_d0).

use super::{MemberOffset, PartRelation};

/// Rotation of parity over the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// Parity from the last member down to the first; data in the order of the members.
    LeftAsymmetric,
    /// Parity from the first member up; data in the order of the members.
    RightAsymmetric,
    /// Parity from the last member down; data begins after the parity.
    LeftSymmetric,
    /// Parity from the first member up; data begins after the parity.
    RightSymmetric,
    /// Parity always on the first member.
    First,
    /// Parity always after the data: RAID 4.
    Last,
}

impl Rotation {
    /// Rotation by the number in `md/layout` of sysfs (drivers/md/raid5.h, ALGORITHM_*). `None` for the layouts of
    /// DDF, and for those with the second parity always on the last member, which result from reshaping a RAID 5 to a
    /// RAID 6.
    pub(crate) fn of(layout: u64) -> Option<Rotation> {
        Some(match layout {
            0 => Rotation::LeftAsymmetric,
            1 => Rotation::RightAsymmetric,
            2 => Rotation::LeftSymmetric,
            3 => Rotation::RightSymmetric,
            4 => Rotation::First,
            5 => Rotation::Last,
            _ => return None,
        })
    }
}

/// An array with parity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parity {
    /// Number of slots.
    disks: u64,
    /// Parity blocks of a stripe: 1 or 2.
    parities: u64,
    /// Size of a chunk, in bytes.
    chunk: u64,
    rotation: Rotation,
    /// Used size of each member, in whole chunks.
    component: u64,
}

impl Parity {
    /// Layout of `disks` members, of each of which the array uses `component` bytes, in chunks of `chunk` bytes. `None`
    /// where there are no data blocks, or no chunks.
    pub(crate) fn new(
        disks: u64,
        parities: u64,
        chunk: u64,
        rotation: Rotation,
        component: u64,
    ) -> Option<Parity> {
        let component = component.checked_div(chunk)? * chunk;
        let data = disks.checked_sub(parities).filter(|data| *data > 0)?;
        component.checked_mul(data)?;
        Some(Parity {
            disks,
            parities,
            chunk,
            rotation,
            component,
        })
    }

    /// Number of slots.
    pub(crate) fn disks(&self) -> u64 {
        self.disks
    }

    /// Parity blocks of a stripe: 1 or 2.
    pub(crate) fn parities(&self) -> u64 {
        self.parities
    }

    /// Data blocks of a stripe.
    pub(crate) fn width(&self) -> u64 {
        self.disks - self.parities
    }

    /// Size of a chunk, in bytes.
    pub(crate) fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Used size of each member, in bytes.
    pub(crate) fn span(&self) -> u64 {
        self.component
    }

    /// Bytes from a position to the end of its chunk.
    pub(crate) fn room(&self, position: u64) -> u64 {
        self.chunk - position % self.chunk
    }

    /// The slots of a stripe's first parity, and of its second one, which follows it, if there is one.
    fn parity_slots(&self, stripe: u64) -> (u64, Option<u64>) {
        let turn = stripe % self.disks;
        let p = match self.rotation {
            Rotation::LeftAsymmetric | Rotation::LeftSymmetric => self.disks - 1 - turn,
            Rotation::RightAsymmetric | Rotation::RightSymmetric => turn,
            Rotation::First => 0,
            Rotation::Last => self.disks - self.parities,
        };
        let q = (p + 1) % self.disks;
        (p, (self.parities == 2).then_some(q))
    }

    /// Related parts at a position.
    pub(crate) fn relation(&self, position: u64) -> PartRelation {
        let stripe = position / self.chunk;
        let (p, q) = self.parity_slots(stripe);
        let last = q.unwrap_or(p);
        let place = |slot: u64| MemberOffset {
            slot: slot as u32,
            at: position,
        };
        let is_symmetric = matches!(
            self.rotation,
            Rotation::LeftSymmetric | Rotation::RightSymmetric
        );
        let width = self.width();
        // The order of the data in Q starts at the member after Q and wraps around, whatever its order in the array is
        // (raid6_d0).
        let around = (1..=width).map(|step| (last + step) % self.disks);
        let data = around.enumerate().map(|(index, slot)| {
            let before = (slot > p) as u64 + q.is_some_and(|q| slot > q) as u64;
            let index = if is_symmetric {
                index as u64
            } else {
                slot - before
            };
            let offset = (stripe * width + index) * self.chunk + position % self.chunk;
            (place(slot), offset)
        });
        PartRelation::Stripe {
            data: data.collect(),
            p: place(p),
            q: q.map(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHUNK: u64 = 4096;

    /// The rows of an array as text: the block of each member, by stripe.
    fn drawn(disks: u64, parities: u64, rotation: Rotation, stripes: u64) -> Vec<String> {
        let parity = Parity::new(disks, parities, CHUNK, rotation, stripes * CHUNK).unwrap();
        (0..stripes)
            .map(|stripe| {
                let mut row = vec![String::new(); disks as usize];
                let PartRelation::Stripe { data, p, q } = parity.relation(stripe * CHUNK) else {
                    panic!();
                };
                row[p.slot as usize] = "P".to_owned();
                if let Some(q) = q {
                    row[q.slot as usize] = "Q".to_owned();
                }
                for (place, offset) in data {
                    row[place.slot as usize] = (offset / CHUNK).to_string();
                }
                row.join(" ")
            })
            .collect()
    }

    /// Asserts the first five rows of four disks, for each rotation.
    fn assert_rows(parities: u64, wanted: [[&str; 5]; 6]) {
        let rotations = [
            Rotation::LeftAsymmetric,
            Rotation::RightAsymmetric,
            Rotation::LeftSymmetric,
            Rotation::RightSymmetric,
            Rotation::First,
            Rotation::Last,
        ];
        for (rotation, wanted) in rotations.into_iter().zip(wanted) {
            assert_eq!(drawn(4, parities, rotation, 5), wanted, "{rotation:?}");
        }
    }

    #[test]
    fn raid_5_is_laid_out_as_it_is_drawn() {
        let wanted = [
            ["0 1 2 P", "3 4 P 5", "6 P 7 8", "P 9 10 11", "12 13 14 P"],
            ["P 0 1 2", "3 P 4 5", "6 7 P 8", "9 10 11 P", "P 12 13 14"],
            ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11", "12 13 14 P"],
            ["P 0 1 2", "5 P 3 4", "7 8 P 6", "9 10 11 P", "P 12 13 14"],
            ["P 0 1 2", "P 3 4 5", "P 6 7 8", "P 9 10 11", "P 12 13 14"],
            ["0 1 2 P", "3 4 5 P", "6 7 8 P", "9 10 11 P", "12 13 14 P"],
        ];
        assert_rows(1, wanted);
    }

    #[test]
    fn raid_6_is_laid_out_as_it_is_drawn() {
        let wanted = [
            ["Q 0 1 P", "2 3 P Q", "4 P Q 5", "P Q 6 7", "Q 8 9 P"],
            ["P Q 0 1", "2 P Q 3", "4 5 P Q", "Q 6 7 P", "P Q 8 9"],
            ["Q 0 1 P", "2 3 P Q", "5 P Q 4", "P Q 6 7", "Q 8 9 P"],
            ["P Q 0 1", "3 P Q 2", "4 5 P Q", "Q 6 7 P", "P Q 8 9"],
            ["P Q 0 1", "P Q 2 3", "P Q 4 5", "P Q 6 7", "P Q 8 9"],
            ["0 1 P Q", "2 3 P Q", "4 5 P Q", "6 7 P Q", "8 9 P Q"],
        ];
        assert_rows(2, wanted);
    }

    fn rotations() -> impl Strategy<Value = Rotation> {
        (0_u64..6).prop_map(|layout| Rotation::of(layout).unwrap())
    }

    proptest! {
        #[test]
        fn every_byte_of_the_array_has_one_place_and_every_place_one_use(
            parities in 1_u64..3,
            data in 1_u64..6,
            rotation in rotations(),
            stripes in 1_u64..20,
        ) {
            let disks = data + parities;
            let parity = Parity::new(disks, parities, CHUNK, rotation, stripes * CHUNK).unwrap();
            let mut chunks = Vec::new();
            for stripe in 0..stripes {
                let PartRelation::Stripe { data, p, q } = parity.relation(stripe * CHUNK + 1024) else {
                    panic!();
                };
                let mut slots: Vec<u32> = data.iter().map(|(place, _)| place.slot).collect();
                slots.push(p.slot);
                slots.extend(q.map(|q| q.slot));
                slots.sort_unstable();
                prop_assert_eq!(slots, (0..disks as u32).collect::<Vec<_>>());
                for (place, offset) in data {
                    prop_assert_eq!((place.at, offset % CHUNK), (stripe * CHUNK + 1024, 1024));
                    chunks.push(offset / CHUNK);
                }
            }
            chunks.sort_unstable();
            prop_assert_eq!(chunks, (0..stripes * data).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_second_parity_counts_the_data_from_behind_itself() {
        // Stripe 1 of the second table above: `2 P Q 3`: Q counts chunk 3 first.
        let parity = Parity::new(4, 2, CHUNK, Rotation::RightAsymmetric, 8 * CHUNK).unwrap();
        let PartRelation::Stripe { data, .. } = parity.relation(CHUNK) else {
            panic!();
        };
        let order: Vec<u64> = data.iter().map(|(_, offset)| offset / CHUNK).collect();
        assert_eq!(order, [3, 2]);
    }

    #[test]
    fn arrays_that_cannot_be_are_refused() {
        assert!(Parity::new(2, 2, CHUNK, Rotation::Last, CHUNK).is_none());
        assert!(Parity::new(3, 1, 0, Rotation::Last, CHUNK).is_none());
        assert!(Rotation::of(8).is_none() && Rotation::of(16).is_none());
    }
}
