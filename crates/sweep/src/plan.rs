//! Layouts to measure: every valid combination of the factors.

use record::Bytes;

use super::layout::{Factors, Layout};
use super::record::ExcludedSetting;
use array::geometry::bad_chunk;
use domain::filesystem::Fs;
use domain::raid::{Level, Placement, Raid10Layout};

/// The layouts, and the combinations that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayoutPlan {
    /// The layouts: level, members, copies, chunk, file system, scheduler, the last varying fastest.
    pub layouts: Vec<Layout>,
    /// Layouts that are not measured, and the reasons.
    pub left_out: Vec<ExcludedSetting>,
}

/// Default numbers of members: one, two, four and so on up to all devices, and all of them.
pub(crate) fn default_members(devices: usize) -> Vec<usize> {
    let mut members: Vec<usize> = std::iter::successors(Some(1usize), |n| n.checked_mul(2))
        .take_while(|&n| n < devices)
        .collect();
    members.push(devices);
    members
}

/// Combines the factors. Repeated settings are used once.
///
/// # Errors
/// When a setting is possible in no layout: more members than devices, or a chunk that md does not support.
pub(crate) fn plan(factors: &Factors, devices: usize) -> Result<LayoutPlan, Vec<String>> {
    let problems = problems(factors, devices);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut planned = LayoutPlan::default();
    let shapes = shapes(factors, &mut planned.left_out);
    for (level, members, copies, chunk) in shapes {
        for &fs in &factors.file_systems {
            for scheduler in schedulers(factors) {
                let layout = Layout {
                    level,
                    members,
                    copies,
                    chunk,
                    fs,
                    scheduler,
                };
                if !planned.layouts.contains(&layout) {
                    planned.layouts.push(layout);
                }
            }
        }
    }
    Ok(planned)
}

fn problems(factors: &Factors, devices: usize) -> Vec<String> {
    let mut problems = Vec::new();
    for &members in &factors.members {
        if members == 0 {
            problems.push("--members 0 would be an array of nothing".to_owned());
        } else if members > devices {
            problems.push(format!(
                "--members {members} needs {members} devices, and {devices} {} named",
                if devices == 1 { "is" } else { "are" }
            ));
        }
    }
    let has_copies = factors.levels.iter().copied().any(lays_out_copies);
    if factors.copies != [Raid10Layout::N2] && !has_copies {
        problems.push("--layout is for RAID 10, which --level does not name".to_owned());
    }
    for &chunk in &factors.chunks {
        problems.extend(bad_chunk(Level::Zero, Some(chunk)));
    }
    problems
}

fn schedulers(factors: &Factors) -> Vec<Option<String>> {
    if factors.schedulers.is_empty() {
        return vec![None];
    }
    factors.schedulers.iter().cloned().map(Some).collect()
}

/// Level, members, layout of the copies and chunk.
type Shape = (Option<Level>, usize, Option<Raid10Layout>, Option<Bytes>);

/// True if the level has several layouts of its copies.
fn lays_out_copies(level: Level) -> bool {
    level.placement() == Placement::StripedCopies
}

/// The shapes without duplicates: a single disk is the same at every level and chunk.
fn shapes(factors: &Factors, left_out: &mut Vec<ExcludedSetting>) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = Vec::new();
    let mut add = |shape| {
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    };
    let mut leave_out = |what: String, why: String| {
        let entry = ExcludedSetting { what, why };
        if !left_out.contains(&entry) {
            left_out.push(entry);
        }
    };
    for &members in factors.members.iter().filter(|&&members| members == 1) {
        if factors.survives == 0 {
            add((None, members, None, None));
        } else {
            leave_out("one disk".to_owned(), survives_too_little(0, factors));
        }
    }
    for &level in &factors.levels {
        for &members in factors.members.iter().filter(|&&members| members > 1) {
            let what = format!("{} of {members}", level.title());
            if members < level.least_members() {
                let least = level.least_members();
                leave_out(what, format!("it needs at least {least} members"));
                continue;
            }
            let chunks: Vec<Option<Bytes>> = if level.has_chunks() {
                factors.chunks.iter().copied().map(Some).collect()
            } else {
                vec![None]
            };
            let survives = Layout {
                level: Some(level),
                members,
                copies: None,
                chunk: None,
                fs: Fs::Xfs,
                scheduler: None,
            }
            .survives();
            if survives < factors.survives {
                leave_out(what, survives_too_little(survives, factors));
                continue;
            }
            let copies: Vec<Option<Raid10Layout>> = match lays_out_copies(level) {
                true => factors
                    .copies
                    .iter()
                    .map(|copies| not_near(*copies))
                    .collect(),
                false => vec![None],
            };
            for copies in copies {
                for &chunk in &chunks {
                    add((Some(level), members, copies, chunk));
                }
            }
        }
    }
    shapes
}

/// The layout of the copies, unless it is the default.
fn not_near(copies: Raid10Layout) -> Option<Raid10Layout> {
    (copies != Raid10Layout::N2).then_some(copies)
}

fn survives_too_little(survives: usize, factors: &Factors) -> String {
    let wanted = factors.survives;
    match survives {
        0 => format!("it survives no failure, and --survives requires {wanted}"),
        _ => format!("it survives {survives} of any failures, and --survives requires {wanted}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn factors() -> Factors {
        Factors {
            members: vec![1, 2, 4, 8],
            levels: vec![Level::Zero, Level::Ten],
            copies: vec![Raid10Layout::N2],
            chunks: vec![Bytes::kib(64), Bytes::kib(256)],
            file_systems: vec![Fs::Xfs, Fs::Ext4],
            schedulers: vec!["none".to_owned(), "mq-deadline".to_owned()],
            survives: 0,
        }
    }

    #[test]
    fn a_single_disk_is_one_shape_for_all_levels_and_chunks() {
        let planned = plan(&factors(), 8).unwrap();
        // (1 alone + 2 levels x 3 counts x 2 chunks) x 2 file systems x 2 schedulers.
        assert_eq!(planned.layouts.len(), 13 * 4);
        assert_eq!(planned.left_out, []);
    }

    #[test]
    fn layouts_that_survive_too_few_failures_are_left_out_by_name() {
        let redundant = Factors {
            survives: 1,
            ..factors()
        };
        let planned = plan(&redundant, 8).unwrap();
        assert!(planned.layouts.iter().all(|layout| layout.survives() >= 1));
        assert_eq!(planned.layouts.len(), 3 * 2 * 4);
        let what: Vec<&str> = planned.left_out.iter().map(|left| &*left.what).collect();
        assert_eq!(
            what,
            ["one disk", "RAID 0 of 2", "RAID 0 of 4", "RAID 0 of 8"]
        );
    }

    #[test]
    fn too_few_members_for_a_level_leave_that_shape_out() {
        let parity = Factors {
            members: vec![2, 4],
            levels: vec![Level::Five, Level::One],
            ..factors()
        };
        let planned = plan(&parity, 4).unwrap();
        assert_eq!(planned.left_out.len(), 1);
        assert_eq!(planned.left_out[0].what, "RAID 5 of 2");
        // RAID 5 of 4 has two chunks, RAID 1 of 2 and of 4 none.
        assert_eq!(planned.layouts.len(), (2 + 2) * 4);
    }

    #[test]
    fn copies_are_laid_out_in_each_way_at_raid_10_alone() {
        let copies = vec![
            Raid10Layout::N2,
            Raid10Layout::F2,
            Raid10Layout::O2,
            Raid10Layout::F2,
        ];
        let varied = Factors {
            members: vec![4],
            chunks: vec![Bytes::kib(64)],
            file_systems: vec![Fs::Xfs],
            schedulers: Vec::new(),
            copies,
            ..factors()
        };
        let names = |factors: &Factors| -> Vec<String> {
            let layouts = plan(factors, 4).unwrap().layouts;
            layouts.iter().map(Layout::to_string).collect()
        };
        assert_eq!(
            names(&varied),
            [
                "RAID 0 of 4, 64 KiB, xfs",
                "RAID 10 of 4, 64 KiB, xfs",
                "RAID 10 f2 of 4, 64 KiB, xfs",
                "RAID 10 o2 of 4, 64 KiB, xfs",
            ]
        );
        let none = Factors {
            levels: vec![Level::Zero, Level::One],
            ..varied
        };
        assert_eq!(
            plan(&none, 4).unwrap_err(),
            ["--layout is for RAID 10, which --level does not name"]
        );
    }

    #[test]
    fn invalid_members_and_chunks_are_refused() {
        let bad = Factors {
            members: vec![0, 9],
            chunks: vec![Bytes::kib(96)],
            ..factors()
        };
        let problems = plan(&bad, 8).unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[1].contains("needs 9 devices, and 8 are named"));
    }

    #[test]
    fn counts_by_default_double_and_end_with_all() {
        assert_eq!(default_members(1), [1]);
        assert_eq!(default_members(8), [1, 2, 4, 8]);
        assert_eq!(default_members(6), [1, 2, 4, 6]);
    }

    proptest! {
        #[test]
        fn each_layout_is_unique_and_can_be_built(
            members in prop::collection::vec(1usize..9, 1..5),
            levels in prop::sample::subsequence(
                vec![Level::Zero, Level::One, Level::Five, Level::Six, Level::Ten, Level::Linear], 1..6),
            survives in 0usize..3,
        ) {
            let planned = plan(&Factors { members, levels, survives, ..factors() }, 8).unwrap();
            for (at, layout) in planned.layouts.iter().enumerate() {
                prop_assert!(!planned.layouts[..at].contains(layout));
                prop_assert!(layout.survives() >= survives);
                match layout.level {
                    None => prop_assert_eq!((layout.members, layout.chunk), (1, None)),
                    Some(level) => {
                        prop_assert!(layout.members >= level.least_members());
                        prop_assert_eq!(layout.chunk.is_some(), level.has_chunks());
                    }
                }
            }
        }
    }
}
