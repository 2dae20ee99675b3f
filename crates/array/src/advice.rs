//! Advice on a choice before it is made.

use linux::block::Devices;
use linux::{Root, cloud};
use record::Bytes;

use super::check::CheckedPlan;
use domain::raid::{Level, Placement};

/// Disks that belong to the instance, and not to the network: no I/O on them is sold.
const LOCAL: [&str; 2] = ["Instance Storage", "nvme_card"];

/// Advice on the array that is to be built, as sentences.
pub(crate) fn advice(checked: &CheckedPlan, root: &Root) -> Vec<String> {
    let mut advice = Vec::new();
    advice.extend(clouds_advice(
        checked.plan.geometry.level,
        on_volumes(checked, root),
    ));
    advice.extend(unequal(checked));
    advice.extend(clean(checked));
    advice
}

/// True if a member is a volume that the cloud sells.
fn on_volumes(checked: &CheckedPlan, root: &Root) -> bool {
    let Ok(devices) = Devices::read(root) else {
        return false;
    };
    let is_sold = |model: Option<&str>| {
        let model = model.unwrap_or_default();
        !LOCAL.iter().any(|word| model.contains(word))
    };
    cloud::provider(root).is_some()
        && checked.members.iter().any(|member| {
            devices
                .get(member.number)
                .is_some_and(|device| is_sold(device.model.as_deref()))
        })
}

/// Advice of the cloud (EBS User Guide, "RAID configuration"): RAID 5 and 6 "are not recommended for Amazon EBS
/// because the parity write operations of these RAID modes consume some of the IOPS available to your volumes"; RAID
/// 1 needs more bandwidth, since data goes to several volumes at once.
fn clouds_advice(level: Level, on_volumes: bool) -> Option<String> {
    let word = if on_volumes { "Warning" } else { "Note" };
    let title = level.title();
    if level.has_parity() {
        // Of so many members that reading the others would cost more.
        let ios = level.small_write_io(usize::MAX);
        Some(format!(
            "{word}: a small write to {title} costs {ios} I/Os, since parity is read and written \
             too. On cloud volumes these eat the IOPS that you pay for, and AWS advises against it \
             on EBS; RAID 10 costs 2, RAID 0 1."
        ))
    } else if on_volumes && level.is_redundant() {
        Some(format!(
            "Note: each write to {title} goes to two volumes or more, and all of it counts against \
             the instance's bandwidth to its volumes. The volumes are replicated by the cloud \
             already."
        ))
    } else {
        None
    }
}

/// The smallest member, and the cost of that.
fn unequal(checked: &CheckedPlan) -> Option<String> {
    let sizes = &checked.sizes;
    let name = |at: usize| -> String {
        let path = checked.members.get(at).map(|member| member.path.as_path());
        path.map_or_else(String::new, |path| path.display().to_string())
    };
    let least = *sizes.iter().min()?;
    let smallest: Vec<String> = (0..sizes.len())
        .filter(|at| sizes.get(*at) == Some(&least))
        .map(name)
        .collect();
    if smallest.len() == sizes.len() {
        return None;
    }
    let (is, verb) = (
        smallest.join(", "),
        if smallest.len() == 1 { "is" } else { "are" },
    );
    let level = checked.plan.geometry.level;
    if level.placement() == Placement::Striped {
        return Some(format!(
            "Note: {is} {verb} the smallest, with {least}: space beyond that is spread over the \
             larger members only, and is slower."
        ));
    }
    let lost = checked.plan.geometry.unused_bytes(sizes);
    let total: u64 = lost.iter().map(|lost| lost.0).sum();
    if total == 0 {
        return None;
    }
    let losers: Vec<(usize, Bytes)> = lost
        .iter()
        .enumerate()
        .filter(|(_, lost)| lost.0 > 0)
        .map(|(at, lost)| (at, *lost))
        .collect();
    let (_, first) = *losers.first()?;
    let what = if let [(at, lost)] = losers[..] {
        format!("{lost} of {} are not used", name(at))
    } else if losers.iter().all(|(_, lost)| *lost == first) {
        format!("{first} of each of the others are not used")
    } else {
        let each: Vec<String> = losers
            .iter()
            .map(|(at, lost)| format!("{lost} of {}", name(*at)))
            .collect();
        format!("{} are not used, {} in all", each.join(", "), Bytes(total))
    };
    Some(format!(
        "Warning: the members are not of equal size. {is} {verb} the smallest, with {least}: {what}."
    ))
}

fn clean(checked: &CheckedPlan) -> Option<String> {
    let level = checked.plan.geometry.level;
    if !checked.plan.assume_clean {
        return None;
    }
    Some(if level.has_parity() {
        format!(
            "Warning: with --assume-clean the parity of {} is not computed. Unless all members \
             hold only zeros it is wrong, and a member that fails comes back as garbage.",
            level.title()
        )
    } else if level.is_redundant() {
        "Note: with --assume-clean the copies differ where nothing has been written yet, unless \
         all members hold zeros; a check of the array will count these places."
            .to_owned()
    } else {
        format!(
            "Note: {} has no copies to resynchronize; --assume-clean changes nothing.",
            level.title()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::building::CheckedMember;
    use crate::plan::tests::plan;
    use linux::block::DeviceNumber;

    fn checked(level: Level, gib: &[u64]) -> CheckedPlan {
        let paths: Vec<String> = ('f'..)
            .take(gib.len())
            .map(|c| format!("/dev/sd{c}"))
            .collect();
        let words: Vec<&str> = paths.iter().map(String::as_str).collect();
        CheckedPlan {
            plan: plan(level, &words),
            members: paths
                .iter()
                .zip(0..)
                .map(|(path, minor)| CheckedMember {
                    path: path.into(),
                    number: DeviceNumber::new(8, minor),
                    signed: false,
                })
                .collect(),
            sizes: gib.iter().map(|gib| Bytes::gib(*gib)).collect(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_smallest_member_and_what_it_costs_are_named() {
        for (level, gib, expected) in [
            (
                Level::Ten,
                &[4, 2, 4][..],
                "/dev/sdg is the smallest, with 2 GiB: 2 GiB of each",
            ),
            (
                Level::Five,
                &[4, 2, 3],
                "2 GiB of /dev/sdf, 1 GiB of /dev/sdh are not used, 3 GiB",
            ),
            (
                Level::One,
                &[2, 2, 3],
                "/dev/sdf, /dev/sdg are the smallest",
            ),
            (Level::Zero, &[4, 2], "spread over the larger members only"),
        ] {
            let text = unequal(&checked(level, gib)).unwrap();
            assert!(text.contains(expected), "{text}");
        }
        assert_eq!(unequal(&checked(Level::Ten, &[2, 2])), None);
        assert_eq!(unequal(&checked(Level::Linear, &[2, 3])), None);
    }

    #[test]
    fn parity_is_advised_against_and_on_cloud_volumes_warned_of() {
        let message = |level, cloud| clouds_advice(level, cloud).unwrap_or_default();
        assert!(message(Level::Five, true).starts_with("Warning: a small write to RAID 5 costs 4"));
        assert!(message(Level::Six, false).starts_with("Note: a small write to RAID 6 costs 6"));
        assert!(message(Level::Ten, true).contains("counts against"));
        assert_eq!(message(Level::Ten, false), "");
        assert_eq!(message(Level::Zero, true), "");
    }

    #[test]
    fn being_clean_is_a_promise_that_is_spelled_out() {
        for (level, expected) in [
            (Level::Five, "comes back as garbage"),
            (Level::Ten, "the copies differ"),
            (Level::Zero, "changes nothing"),
        ] {
            let mut checked = checked(level, &[2, 2, 2]);
            assert_eq!(clean(&checked), None);
            checked.plan.assume_clean = true;
            assert!(clean(&checked).unwrap().contains(expected));
        }
    }
}
