//! Order in which the blocks of a volume are read.

use record::{Bytes, Ranges};
use serde::{Deserialize, Serialize};

/// A set of blocks; the sets are warmed one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// The data of the files that `--first` names.
    First,
    /// Other space that the file systems use.
    Used,
    /// All other space, including free space: it comes from the snapshot too, and a database will use it later.
    Rest,
}

impl Stage {
    /// Name of the set, in tables and JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::First => "first",
            Stage::Used => "used",
            Stage::Rest => "rest",
        }
    }
}

/// Ranges of a volume whose use is known, in bytes of the volume. The sets may overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownSpace {
    /// The data of the files that `--first` names.
    pub first: Ranges,
    /// Space that file systems use; `None` where that is not known.
    pub used: Option<Ranges>,
    /// Space that the snapshot holds; `None` where no list was given.
    pub held: Option<Ranges>,
}

/// Extent of the reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Only the data that `--first` names.
    First,
    /// The data that `--first` names, and all other space in use.
    Used,
    /// The whole volume.
    All,
}

/// The blocks to read, as disjoint sets in the order of reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Space to read, by set.
    pub stages: Vec<(Stage, Ranges)>,
    /// Space that is left out, by choice or because the snapshot does not hold it.
    pub left_out: Ranges,
}

impl Plan {
    /// Plan for a volume of `size` bytes, in whole blocks of `block` bytes: a block of which any byte is to be read is
    /// read as a whole, since it is fetched as a whole. Where the space in use is not known, all space counts as used.
    pub(crate) fn new(known: &KnownSpace, size: Bytes, block: Bytes, extent: Extent) -> Plan {
        let whole = Ranges::all(size);
        let held = match &known.held {
            Some(held) => held.aligned(block, size),
            None => whole.clone(),
        };
        let first = known.first.aligned(block, size).intersect(&held);
        let used = match &known.used {
            Some(used) => used.aligned(block, size).intersect(&held),
            None if extent == Extent::Used => held.clone(),
            None => Ranges::new(),
        };
        let used = used.subtract(&first);
        let rest = held.subtract(&first).subtract(&used);
        let wanted = match extent {
            Extent::First => 1,
            Extent::Used => 2,
            Extent::All => 3,
        };
        let stages = [
            (Stage::First, first),
            (Stage::Used, used),
            (Stage::Rest, rest),
        ];
        let stages: Vec<(Stage, Ranges)> = stages
            .into_iter()
            .take(wanted)
            .filter(|(_, ranges)| !ranges.is_empty())
            .collect();
        let mut plan = Plan {
            left_out: Ranges::new(),
            stages,
        };
        plan.left_out = whole.subtract(&plan.all());
        plan
    }

    /// Ranges of all sets together.
    pub(crate) fn all(&self) -> Ranges {
        let stages = self.stages.iter();
        stages.fold(Ranges::new(), |all, (_, ranges)| all.union(ranges))
    }

    /// Bytes to be read.
    pub(crate) fn total(&self) -> Bytes {
        let totals = self.stages.iter().map(|(_, ranges)| ranges.total().0);
        Bytes(totals.sum())
    }

    /// The plan without the ranges that are already read.
    pub(crate) fn without(&self, done: &Ranges) -> Plan {
        let stages = self.stages.iter();
        Plan {
            stages: stages
                .map(|(stage, ranges)| (*stage, ranges.subtract(done)))
                .filter(|(_, ranges)| !ranges.is_empty())
                .collect(),
            left_out: self.left_out.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: Bytes = Bytes(100);

    fn ranges(list: &[(u64, u64)]) -> Ranges {
        list.iter().map(|(start, end)| *start..*end).collect()
    }

    fn known() -> KnownSpace {
        KnownSpace {
            first: ranges(&[(150, 160), (420, 430)]),
            used: Some(ranges(&[(0, 250)])),
            held: None,
        }
    }

    #[test]
    fn named_files_come_first_then_used_space_then_the_rest() {
        let plan = Plan::new(&known(), Bytes(550), BLOCK, Extent::All);
        assert_eq!(
            plan.stages,
            [
                (Stage::First, ranges(&[(100, 200), (400, 500)])),
                (Stage::Used, ranges(&[(0, 100), (200, 300)])),
                (Stage::Rest, ranges(&[(300, 400), (500, 550)])),
            ]
        );
        assert_eq!(
            (plan.total(), plan.left_out.total()),
            (Bytes(550), Bytes(0))
        );
    }

    #[test]
    fn it_can_end_early_and_says_what_it_leaves_out() {
        let used = Plan::new(&known(), Bytes(550), BLOCK, Extent::Used);
        assert_eq!(used.left_out, ranges(&[(300, 400), (500, 550)]));
        let first = Plan::new(&known(), Bytes(550), BLOCK, Extent::First);
        assert_eq!(first.total(), Bytes(200));
    }

    #[test]
    fn blocks_that_the_snapshot_does_not_hold_are_left_out() {
        let held = KnownSpace {
            held: Some(ranges(&[(0, 200)])),
            ..known()
        };
        let plan = Plan::new(&held, Bytes(550), BLOCK, Extent::All);
        assert_eq!(
            plan.stages,
            [
                (Stage::First, ranges(&[(100, 200)])),
                (Stage::Used, ranges(&[(0, 100)]))
            ]
        );
    }

    #[test]
    fn where_nobody_knows_what_is_used_all_may_be() {
        let unknown = KnownSpace::default();
        let plan = Plan::new(&unknown, Bytes(550), BLOCK, Extent::Used);
        assert_eq!(plan.stages, [(Stage::Used, ranges(&[(0, 550)]))]);
        let plan = Plan::new(&unknown, Bytes(550), BLOCK, Extent::All);
        assert_eq!(plan.stages, [(Stage::Rest, ranges(&[(0, 550)]))]);
    }

    fn some_ranges() -> impl Strategy<Value = Ranges> {
        proptest::collection::vec((0_u64..5_000, 0_u64..700), 0..12)
            .prop_map(|list| list.into_iter().map(|(at, len)| at..at + len).collect())
    }

    proptest! {
        #[test]
        fn every_block_is_in_one_set_or_left_out(
            first in some_ranges(),
            used in proptest::option::of(some_ranges()),
            held in proptest::option::of(some_ranges()),
            done in some_ranges(),
            size in 1_u64..5_000,
        ) {
            let known = KnownSpace { first, used, held };
            for extent in [Extent::First, Extent::Used, Extent::All] {
                let plan = Plan::new(&known, Bytes(size), BLOCK, extent);
                prop_assert_eq!(plan.total().0 + plan.left_out.total().0, size);
                let parts = plan.stages.iter().map(|(_, ranges)| ranges);
                let all = parts.fold(plan.left_out.clone(), |all, part| all.union(part));
                prop_assert_eq!(all, Ranges::all(Bytes(size)));
                let left = plan.without(&done.aligned(BLOCK, Bytes(size)));
                prop_assert!(left.total() <= plan.total());
            }
        }
    }
}
