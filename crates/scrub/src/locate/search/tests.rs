//! Searches of arrays in memory, which a model of each level writes and the tests damage.

use parity::Syndromes;
use proptest::prelude::*;

use super::super::geometry::{Copies, MemberOffset, Parity, Raid10, Rotation};
use super::*;

const SIZE: u64 = 64 << 10;
/// Start of the array's data on every member's device.
const OFFSET: u64 = 1 << 20;
const AT_ONCE: RereadSchedule = RereadSchedule {
    rounds: 2,
    pause: Duration::ZERO,
};
static NOT_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Members in memory.
struct Memory {
    disks: Vec<Option<Vec<u8>>>,
    /// A location that a concurrent write changes at each read.
    moving: Option<MemberOffset>,
    /// A location that cannot be read.
    bad: Option<MemberOffset>,
}

impl Members for Memory {
    fn has(&self, slot: u32) -> bool {
        self.disks[slot as usize].is_some()
    }

    fn offset(&self, _: u32) -> u64 {
        OFFSET
    }

    fn read(&mut self, slot: u32, at: u64, into: &mut [u8]) -> io::Result<()> {
        assert_eq!(into.as_ptr().align_offset(4096), 0);
        let touches = |place: Option<MemberOffset>| {
            place.filter(|place| {
                place.slot == slot && (at..at + into.len() as u64).contains(&place.at)
            })
        };
        if touches(self.bad).is_some() {
            return Err(io::Error::from_raw_os_error(5));
        }
        let place = touches(self.moving);
        let disk = self.disks[slot as usize].as_mut().unwrap();
        if let Some(place) = place {
            disk[place.at as usize] = disk[place.at as usize].wrapping_add(1);
        }
        into.copy_from_slice(&disk[at as usize..at as usize + into.len()]);
        Ok(())
    }
}

/// Members of a geometry that all agree.
fn agreeing(geometry: &Geometry, disks: u32, seed: u8) -> Memory {
    let mut memory = Memory {
        disks: vec![Some(vec![0; SIZE as usize]); disks as usize],
        moving: None,
        bad: None,
    };
    for group in geometry.groups(&(0..u64::MAX)) {
        for at in 0..group.length {
            let mut put = |place: MemberOffset, byte: u8| {
                let disk = memory.disks[place.slot as usize].as_mut().unwrap();
                disk[(place.at + at) as usize] = byte;
            };
            let byte = |offset: u64| (offset % 251) as u8 ^ (offset >> 12) as u8 ^ seed;
            match &group.relation {
                PartRelation::Copies(places) => {
                    places
                        .iter()
                        .for_each(|place| put(*place, byte(group.position + at)));
                }
                PartRelation::Stripe { data, p, q } => {
                    let own: Vec<[u8; 1]> =
                        data.iter().map(|(_, offset)| [byte(offset + at)]).collect();
                    let parts: Vec<&[u8]> = own.iter().map(|one| &one[..]).collect();
                    let sums = Syndromes::of(&parts, &[0], &[0]);
                    data.iter()
                        .zip(&own)
                        .for_each(|((place, _), one)| put(*place, one[0]));
                    put(*p, sums.p[0]);
                    q.iter().for_each(|q| put(*q, sums.q[0]));
                }
            }
        }
    }
    memory
}

fn found(geometry: &Geometry, memory: &mut Memory) -> (Vec<Mismatch>, Summary) {
    let mut found = Vec::new();
    let all = 0..u64::MAX;
    let summary = search(
        geometry,
        memory,
        &all,
        AT_ONCE,
        &NOT_INTERRUPTED,
        &mut |one| found.push(one),
    );
    (found, summary)
}

fn mirror(disks: u32) -> Geometry {
    Geometry::Mirror { disks, size: SIZE }
}

fn parity(disks: u64, parities: u64) -> Geometry {
    let parity = Parity::new(disks, parities, 8192, Rotation::LeftSymmetric, SIZE);
    Geometry::Parity(parity.unwrap())
}

fn raid10(layout: u64) -> Geometry {
    let copies = Copies::of(layout, 4).unwrap();
    Geometry::Ten(Raid10::new(4, 8192, copies, SIZE).unwrap())
}

/// The geometries, with their number of members.
fn geometries() -> Vec<(Geometry, u32)> {
    vec![
        (mirror(2), 2),
        (mirror(3), 3),
        (parity(4, 1), 4),
        (parity(5, 2), 5),
        (raid10(0x102), 4),
        (raid10(0x201), 4),
        (raid10(0x1_0201), 4),
        (raid10(0x103), 4),
    ]
}

#[test]
fn members_that_agree_have_no_mismatch() {
    for (geometry, disks) in geometries() {
        let mut memory = agreeing(&geometry, disks, 7);
        let (found, summary) = found(&geometry, &mut memory);
        assert_eq!(found, [], "{geometry:?}");
        assert_eq!(summary.compared, geometry.span());
        assert_eq!(
            Summary {
                compared: 0,
                ..summary
            },
            Summary::default()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_byte_that_rots_is_found_at_its_place_in_the_array(
        which in 0_usize..8, position in 0..SIZE, member: prop::sample::Index, change in 1_u8..,
    ) {
        let (geometry, disks) = geometries().swap_remove(which);
        let mut memory = agreeing(&geometry, disks, 3);
        let position = position % geometry.span();
        let group = geometry.group(position).unwrap();
        let places = group.places();
        let place = places[member.index(places.len())];
        let disk = memory.disks[place.slot as usize].as_mut().unwrap();
        disk[place.at as usize] ^= change;
        let (found, summary) = found(&geometry, &mut memory);
        let [one] = &found[..] else {
            panic!("{found:?}, {summary:?}");
        };
        let sector = position / 512 * 512;
        prop_assert_eq!(&one.position, &(sector..sector + 512));
        let is_known = match &group.relation {
            PartRelation::Copies(places) => places.len() > 2,
            PartRelation::Stripe { q, .. } => q.is_some(),
        };
        prop_assert_eq!(geometry.names_odd(), is_known);
        let wanted = if is_known { WrongMember::Member(place.slot) } else { WrongMember::Untold };
        prop_assert_eq!(one.odd, wanted);
        let group = geometry.group(sector).unwrap();
        let array: Ranges = match &group.relation {
            PartRelation::Stripe { data, .. } if is_known => data
                .iter()
                .filter(|(own, _)| own.slot == place.slot)
                .map(|(_, offset)| *offset..offset + 512)
                .collect(),
            _ => group.array(&(0..512)).into_iter().collect(),
        };
        prop_assert_eq!(&one.array, &array);
        let device = OFFSET + place.at / 512 * 512;
        let device = if is_known { Ranges::from(device..device + 512) } else { Ranges::new() };
        prop_assert_eq!(&one.device, &device);
    }
}

#[test]
fn of_a_block_the_sectors_that_differ_are_named_and_no_others() {
    for (geometry, disks) in geometries() {
        let mut memory = agreeing(&geometry, disks, 1);
        let place = geometry.group(8192).unwrap().places()[1];
        for byte in [5, 6, 511, 512, 4095] {
            memory.disks[place.slot as usize].as_mut().unwrap()[place.at as usize + byte] ^= 1;
        }
        let (found, _) = found(&geometry, &mut memory);
        let positions: Vec<_> = found.iter().map(|one| one.position.clone()).collect();
        assert_eq!(positions, [8192..9216, 11776..12288], "{geometry:?}");
    }
}

#[test]
fn neighbours_are_joined_and_others_are_not() {
    let mut memory = agreeing(&mirror(2), 2, 1);
    for at in [4096, 8192, 16384] {
        memory.disks[1].as_mut().unwrap()[at..at + 4096].fill(1);
    }
    let (found, _) = found(&mirror(2), &mut memory);
    let positions: Vec<_> = found.iter().map(|one| one.position.clone()).collect();
    assert_eq!(positions, [4096..12288, 16384..20480]);
}

#[test]
fn a_place_that_is_being_written_is_no_mismatch() {
    let mut memory = agreeing(&mirror(2), 2, 1);
    memory.moving = Some(MemberOffset { slot: 1, at: 5000 });
    let (found, summary) = found(&mirror(2), &mut memory);
    assert_eq!((found, summary.moving), (Vec::new(), 1));
}

#[test]
fn unreadable_places_are_reported_and_the_rest_is_compared() {
    let mut memory = agreeing(&parity(4, 1), 4, 1);
    memory.bad = Some(MemberOffset { slot: 2, at: 100 });
    memory.disks[0].as_mut().unwrap()[40_000] ^= 1;
    let (found, summary) = found(&parity(4, 1), &mut memory);
    assert_eq!(found.len(), 1);
    assert_eq!(summary.unreadable.len(), 1);
    let bad = &summary.unreadable[0];
    assert_eq!((bad.slot, bad.position.clone()), (2, 0..8192));
    assert_eq!(summary.compared, SIZE - 8192);
}

#[test]
fn a_member_that_is_missing_is_not_compared_with() {
    let mut memory = agreeing(&mirror(3), 3, 1);
    memory.disks[0] = None;
    memory.disks[1].as_mut().unwrap()[0] ^= 1;
    let (one, _) = found(&mirror(3), &mut memory);
    assert_eq!(one[0].odd, WrongMember::Untold);
    let mut memory = agreeing(&parity(4, 1), 4, 1);
    memory.disks[3] = None;
    let (none, summary) = found(&parity(4, 1), &mut memory);
    assert_eq!(
        (none, summary.compared, summary.alone),
        (Vec::new(), 0, SIZE)
    );
}

#[test]
fn an_interruption_ends_it() {
    let mut memory = agreeing(&mirror(2), 2, 1);
    memory.disks[1].as_mut().unwrap()[0] ^= 1;
    let stop = AtomicBool::new(true);
    let mut count = 0;
    let summary = search(
        &mirror(2),
        &mut memory,
        &(0..SIZE),
        AT_ONCE,
        &stop,
        &mut |_| count += 1,
    );
    assert!(summary.interrupted && summary.compared == 0 && count == 0);
}
