//! Rewrites of arrays in memory with damaged members, and kills during a rewrite.

use proptest::prelude::*;

use super::super::super::locate::{Copies, Parity, PartRelation, Raid10, Rotation};
use super::*;

const CHUNK: u64 = 8192;
const COMPONENT: u64 = 4 * CHUNK;

/// An array in memory, with md's stripe cache.
struct Model {
    geometry: Geometry,
    disks: Vec<Vec<u8>>,
    /// Positions to which writes are suspended.
    held: Option<Range<u64>>,
    /// True if md's cache holds outdated stripes.
    is_stale: bool,
    /// Number of evictions after which md drops its stripes.
    forgets: u32,
    /// Number of bytes of the next write that reach the disk before it fails.
    torn: Option<usize>,
    /// Change by another write just before writes are suspended.
    changes: Option<(MemberOffset, u8)>,
    writes: u32,
}

impl RewriteAccess for Model {
    fn suspend(&mut self, positions: &Range<u64>) -> Result<(), String> {
        if let Some((place, byte)) = self.changes.take() {
            self.disks[place.slot as usize][place.at as usize] ^= byte;
        }
        self.held = Some(positions.clone());
        Ok(())
    }

    fn release(&mut self) -> Result<(), String> {
        self.held = None;
        Ok(())
    }

    fn forget(&mut self, _: &Range<u64>) -> Result<(), String> {
        assert!(self.held.is_some());
        self.forgets = self.forgets.saturating_sub(1);
        self.is_stale = self.forgets > 0;
        Ok(())
    }

    fn counted(&mut self, positions: &Range<u64>) -> Result<Option<u64>, String> {
        if !self.geometry.has_parity() {
            return Ok(None);
        }
        let geometry = self.geometry.clone();
        let mut buffer = Buffer::new(1, 1);
        let differing = differing(self, &geometry, positions, &mut buffer)?;
        Ok(Some(differing + u64::from(self.is_stale)))
    }

    fn read(&mut self, place: MemberOffset, into: &mut [u8]) -> io::Result<()> {
        assert_eq!(into.as_ptr().align_offset(4096), 0);
        let at = place.at as usize;
        into.copy_from_slice(&self.disks[place.slot as usize][at..at + into.len()]);
        Ok(())
    }

    fn write(&mut self, place: MemberOffset, bytes: &[u8]) -> io::Result<()> {
        assert_eq!(bytes.as_ptr().align_offset(4096), 0);
        assert!(
            self.held.is_some(),
            "nothing is written while others may write"
        );
        assert!(!self.is_stale || self.forgets > 0);
        self.writes += 1;
        let at = place.at as usize;
        let length = self.torn.unwrap_or(bytes.len()).min(bytes.len());
        self.disks[place.slot as usize][at..at + length].copy_from_slice(&bytes[..length]);
        match self.torn.take() {
            None => Ok(()),
            Some(_) => Err(io::Error::from_raw_os_error(5)),
        }
    }
}

/// All layouts in which a single wrong member can be identified.
fn geometries() -> Vec<Geometry> {
    let mut all: Vec<Geometry> = [3, 4, 5]
        .map(|disks| Geometry::Mirror {
            disks,
            size: COMPONENT * 4,
        })
        .into();
    for (layout, disks) in [
        (0x103, 3),
        (0x103, 5),
        (0x301, 4),
        (0x1_0301, 4),
        (0x202, 5),
    ] {
        let copies = Copies::of(layout, disks).unwrap();
        all.push(Geometry::Ten(
            Raid10::new(disks, CHUNK, copies, COMPONENT * 3).unwrap(),
        ));
    }
    for layout in 0..6 {
        for disks in [4, 5, 7] {
            let rotation = Rotation::of(layout).unwrap();
            let parity = Parity::new(disks, 2, CHUNK, rotation, COMPONENT * 2);
            all.push(Geometry::Parity(parity.unwrap()));
        }
    }
    assert!(all.iter().all(Geometry::names_odd));
    all
}

/// An array whose members agree, filled by md's own rules.
fn agreeing(geometry: &Geometry, seed: u64) -> Model {
    let mut disks = vec![vec![0; COMPONENT as usize * 4]; geometry.disks() as usize];
    let mut random = record::random::SplitMix64::new(seed);
    let mut byte = || random.below(256) as u8;
    for group in geometry.groups(&(0..u64::MAX)) {
        for at in 0..group.length {
            match &group.relation {
                PartRelation::Copies(places) => {
                    let value = byte();
                    for place in places {
                        disks[place.slot as usize][(place.at + at) as usize] = value;
                    }
                }
                PartRelation::Stripe { data, p, q } => {
                    let (mut sum, mut second, mut power) = (0, 0, 1);
                    for (place, _) in data {
                        let value = byte();
                        disks[place.slot as usize][(place.at + at) as usize] = value;
                        sum ^= value;
                        second ^= product(power, value);
                        power = product(power, 2);
                    }
                    disks[p.slot as usize][(p.at + at) as usize] = sum;
                    let q = q.unwrap();
                    disks[q.slot as usize][(q.at + at) as usize] = second;
                }
            }
        }
    }
    Model {
        geometry: geometry.clone(),
        disks,
        held: None,
        is_stale: false,
        forgets: 0,
        torn: None,
        changes: None,
        writes: 0,
    }
}

/// The product in GF(2^8), by the textbook method, bit by bit.
fn product(mut a: u8, b: u8) -> u8 {
    let mut sum = 0;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            sum ^= a;
        }
        let carry = a & 0x80 != 0;
        a <<= 1;
        if carry {
            a ^= 0x1d;
        }
    }
    sum
}

/// The block at a position, with its location on all members.
fn block_at(geometry: &Geometry, position: u64) -> RelatedParts {
    group(geometry, position % geometry.span() / BLOCK * BLOCK).unwrap()
}

fn window(geometry: &Geometry, position: u64, slot: u32) -> Window {
    let start = position / geometry.unit() * geometry.unit();
    Window {
        positions: start..(start + geometry.unit()).min(geometry.span()),
        blocks: vec![Block { position, slot }],
    }
}

/// The wrong member of a block; `None` where all agree.
fn named(model: &mut Model, group: &RelatedParts) -> Option<WrongMember> {
    let mut buffer = Buffer::new(1, 1);
    read(model, group, &mut buffer).unwrap();
    let places = group.places().len();
    let parts: Vec<&[u8]> = (0..places).map(|index| buffer.part(index)).collect();
    judge(&group.relation, &parts)
}

/// Damages bytes of a block: each with a change that is not 0.
fn damage(model: &mut Model, place: MemberOffset, bytes: &[(usize, u8)]) {
    for (at, change) in bytes {
        model.disks[place.slot as usize][place.at as usize + at] ^= change;
    }
}

fn some_bytes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let byte = || (0..BLOCK as usize, 1_u8..);
    prop_oneof![
        prop::collection::vec(byte(), 1..2),
        prop::collection::vec(byte(), 1..600),
        // A sector that was overwritten.
        (0_usize..8, prop::collection::vec(1_u8.., 512)).prop_map(|(sector, changes)| {
            let bytes = changes.into_iter().enumerate();
            bytes
                .map(|(at, change)| (sector * 512 + at, change))
                .collect()
        }),
    ]
    .prop_map(|bytes: Vec<(usize, u8)>| {
        // One change a byte, or two could undo each other.
        let unique: std::collections::BTreeMap<usize, u8> = bytes.into_iter().collect();
        unique.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn errors_of_one_member_are_restored_bit_for_bit(
        which: prop::sample::Index, position: u64, member: prop::sample::Index, seed: u64,
        bytes in some_bytes(),
    ) {
        let all = geometries();
        let geometry = which.get(&all);
        let mut model = agreeing(geometry, seed);
        let before = model.disks.clone();
        let group = block_at(geometry, position);
        let place = *member.get(&group.places());
        damage(&mut model, place, &bytes);
        prop_assert_eq!(named(&mut model, &group), Some(WrongMember::Member(place.slot)));
        let outcome = rewrite(&mut model, geometry, &window(geometry, group.position, place.slot));
        prop_assert_eq!(outcome.results, [BlockResult::Restored]);
        prop_assert_eq!((outcome.trouble, model.held.clone(), model.writes), (None, None, 1));
        prop_assert!(model.disks == before, "{:?}", geometry);
    }

    /// A byte that is wrong on two members points to a given third one with a probability of 1/255; a byte that is
    /// wrong on one member points to that one. So 16 bytes that are wrong on both are attributed to a third member
    /// with a probability of at most 5/255^16, about 10^-38, where 5 members hold data.
    #[test]
    fn errors_of_two_members_are_never_written(
        which: prop::sample::Index, position: u64, members: [prop::sample::Index; 2], seed: u64,
        changes: [[u8; 16]; 2], apart: bool,
    ) {
        let all = geometries();
        let geometry = which.get(&all);
        // Of three copies, two with the same damage outvote the third: no rule could detect that.
        let mut model = agreeing(geometry, seed);
        let group = block_at(geometry, position);
        let places = group.places();
        let first = members[0].index(places.len());
        let second = (first + 1 + members[1].index(places.len() - 1)) % places.len();
        let changes = changes.map(|bytes| bytes.map(|byte| byte.max(1)));
        prop_assume!(changes[0] != changes[1]);
        let bytes = |which: usize| -> Vec<(usize, u8)> {
            let from = if apart { which * 2048 } else { 0 };
            changes[which].iter().enumerate().map(|(at, change)| (from + at, *change)).collect()
        };
        damage(&mut model, places[first], &bytes(0));
        damage(&mut model, places[second], &bytes(1));
        let before = model.disks.clone();
        let odd = named(&mut model, &group);
        prop_assert!(matches!(odd, Some(WrongMember::Several | WrongMember::Untold)), "{:?} of {:?}", odd, geometry);
        // Whichever member was identified before.
        for place in &places {
            let window = window(geometry, group.position, place.slot);
            let outcome = rewrite(&mut model, geometry, &window);
            prop_assert_eq!(outcome.results, [BlockResult::Ambiguous]);
        }
        prop_assert!(model.disks == before && model.writes == 0 && model.held.is_none());
    }

    #[test]
    fn a_write_that_is_cut_off_leaves_what_can_be_gone_on_with(
        which: prop::sample::Index, position: u64, member: prop::sample::Index, seed: u64,
        bytes in some_bytes(), sectors in 0_usize..8,
    ) {
        let all = geometries();
        let geometry = which.get(&all);
        let mut model = agreeing(geometry, seed);
        let before = model.disks.clone();
        let group = block_at(geometry, position);
        let place = *member.get(&group.places());
        damage(&mut model, place, &bytes);
        model.torn = Some(sectors * 512);
        let window = window(geometry, group.position, place.slot);
        let outcome = rewrite(&mut model, geometry, &window);
        let has_failed = matches!(outcome.results[..], [BlockResult::Failed(_)]);
        prop_assert!(has_failed && outcome.trouble.is_some() && model.held.is_none());
        let outcome = rewrite(&mut model, geometry, &window);
        let is_well = matches!(outcome.results[..], [BlockResult::Restored | BlockResult::Agrees]);
        prop_assert!(is_well && outcome.trouble.is_none());
        prop_assert!(model.disks == before);
    }
}

fn six() -> Geometry {
    let rotation = Rotation::of(2).unwrap();
    Geometry::Parity(Parity::new(6, 2, CHUNK, rotation, COMPONENT).unwrap())
}

/// The probability that docs/scrub.md states: if two members are wrong at the same byte, n of 255 cases point to
/// another member, where n members hold data.
#[test]
fn two_members_wrong_at_one_byte_look_like_another_in_as_many_of_255_cases_as_there_are_data_members()
 {
    let geometry = six();
    let mut model = agreeing(&geometry, 5);
    let group = block_at(&geometry, CHUNK);
    let places = group.places();
    for first in 0..places.len() {
        for second in 0..places.len() {
            if first == second {
                continue;
            }
            let mut others = 0;
            for change in 1..=255 {
                damage(&mut model, places[first], &[(100, 1)]);
                damage(&mut model, places[second], &[(100, change)]);
                match named(&mut model, &group) {
                    Some(WrongMember::Several) => {}
                    Some(WrongMember::Member(slot)) => {
                        let own = [places[first].slot, places[second].slot];
                        assert!(!own.contains(&slot));
                        others += 1;
                    }
                    other => panic!("{other:?}"),
                }
                damage(&mut model, places[first], &[(100, 1)]);
                damage(&mut model, places[second], &[(100, change)]);
            }
            assert_eq!(others, 4, "of {first} and {second}");
        }
    }
}

#[test]
fn blocks_that_changed_since_they_were_located_are_not_written() {
    let geometry = six();
    let group = block_at(&geometry, 0);
    let places = group.places();
    let cases = [
        // The block was rewritten meanwhile.
        (places[1], (7, 3), BlockResult::Agrees),
        // Another member is wrong too by now.
        (places[2], (9, 3), BlockResult::Ambiguous),
    ];
    for (place, (at, change), result) in cases {
        let mut model = agreeing(&geometry, 9);
        damage(&mut model, places[1], &[(7, 3)]);
        model.changes = Some((
            MemberOffset {
                at: place.at + at,
                ..place
            },
            change,
        ));
        let outcome = rewrite(&mut model, &geometry, &window(&geometry, 0, places[1].slot));
        assert_eq!(outcome.results, [result]);
        assert_eq!((model.writes, model.held), (0, None));
    }
}

#[test]
fn md_is_made_to_forget_its_cache_and_what_it_does_not_forget_is_reported() {
    let geometry = six();
    let places = block_at(&geometry, 0).places();
    let window = window(&geometry, 0, places[1].slot);
    for (forgets, is_well) in [(1, true), (3, true), (100, false)] {
        let mut model = agreeing(&geometry, 9);
        damage(&mut model, places[1], &[(7, 3)]);
        (model.is_stale, model.forgets) = (true, forgets);
        let outcome = rewrite(&mut model, &geometry, &window);
        assert_eq!(outcome.results, [BlockResult::Restored]);
        assert_eq!(outcome.trouble.is_none(), is_well, "{:?}", outcome.trouble);
        assert_eq!(model.held, None);
    }
}

#[test]
fn after_a_failure_nothing_else_is_written() {
    let geometry = six();
    let slots = [0, BLOCK].map(|position| block_at(&geometry, position).places()[1]);
    let mut model = agreeing(&geometry, 9);
    slots
        .iter()
        .for_each(|place| damage(&mut model, *place, &[(0, 1)]));
    model.torn = Some(0);
    let window = Window {
        positions: 0..CHUNK,
        blocks: [0, BLOCK]
            .into_iter()
            .zip(slots)
            .map(|(position, place)| Block {
                position,
                slot: place.slot,
            })
            .collect(),
    };
    let outcome = rewrite(&mut model, &geometry, &window);
    assert!(matches!(
        outcome.results[..],
        [BlockResult::Failed(_), BlockResult::Refused(_)]
    ));
    assert_eq!((model.writes, model.held), (1, None));
}
