//! Read errors of members that md encountered during a check. md does not count them as mismatches: it rewrites an
//! unreadable sector from the other members, so that it agrees, and skips the sectors that it has listed as bad blocks.

use std::collections::BTreeMap;

use linux::md::health::Health;
use serde::{Deserialize, Serialize};

/// Read errors since a scrub began, by the members' slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Errors {
    /// Read errors that md counted on each member up to the last poll, in sectors.
    seen: BTreeMap<u32, u64>,
    /// Increase of this count since the scrub began, in sectors.
    found: BTreeMap<u32, u64>,
}

impl Errors {
    /// Takes the members' current counts. Errors between a kill and the next start are included.
    pub(crate) fn take(&mut self, members: &[Health]) {
        for member in members {
            let before = self.seen.insert(member.slot, member.errors);
            // The count of a member that has replaced another starts anew.
            let grown = before.and_then(|before| member.errors.checked_sub(before));
            if let Some(grown) = grown.filter(|grown| *grown > 0) {
                let found = self.found.entry(member.slot).or_default();
                *found = found.saturating_add(grown);
            }
        }
    }

    /// Number of sectors that a member could not read since the scrub began.
    pub(crate) fn of(&self, member: &Health) -> u64 {
        self.found.get(&member.slot).copied().unwrap_or(0)
    }

    /// True if no member has had a read error since the scrub began.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// True if no member is known to have read errors or bad blocks.
pub(crate) fn are_sound(errors: &Errors, members: &[Health]) -> bool {
    errors.is_empty() && members.iter().all(|member| member.bad.0 == 0)
}

/// Sentences on members with read errors.
pub(crate) fn sentences(errors: &Errors, members: &[Health]) -> Vec<String> {
    let unread = members.iter().filter(|member| errors.of(member) > 0);
    let unread = unread.map(|member| {
        format!(
            "{} sectors of /dev/{} could not be read since the scrub was begun, and md wrote them anew \
             from the other members. That is no mismatch, and nothing is lost; but look at the \
             health that the disk reports, it may be about to fail.",
            errors.of(member),
            member.name
        )
    });
    let bad = members.iter().filter(|member| member.bad.0 > 0);
    let bad = bad.map(|member| {
        format!(
            "md lists {} of /dev/{} as unreadable (its bad_blocks) and skips them in every check: \
             what lies there has one copy less. Replace the member.",
            member.bad, member.name
        )
    });
    unread.chain(bad).collect()
}

/// A member that md could not read everywhere.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct UnreadableDocument {
    /// Path of the member's device.
    member: String,
    /// Sectors of 512 bytes that were written anew since the scrub was begun.
    unreadable_sectors: u64,
    /// Bytes that md leaves out of every check.
    bad_blocks_bytes: u64,
}

/// Members that could not be read everywhere.
pub(crate) fn documents(errors: &Errors, members: &[Health]) -> Vec<UnreadableDocument> {
    let concerned = members
        .iter()
        .filter(|member| errors.of(member) > 0 || member.bad.0 > 0);
    let document = |member: &Health| UnreadableDocument {
        member: format!("/dev/{}", member.name),
        unreadable_sectors: errors.of(member),
        bad_blocks_bytes: member.bad.0,
    };
    concerned.map(document).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Bytes;

    fn members(errors: [u64; 2], bad: u64) -> Vec<Health> {
        let member = |slot, errors| Health {
            name: format!("vd{slot}"),
            slot,
            errors,
            bad: Bytes(bad),
        };
        vec![member(0, errors[0]), member(1, errors[1])]
    }

    #[test]
    fn errors_from_before_do_not_count_and_those_over_a_kill_do() {
        let mut errors = Errors::default();
        errors.take(&members([7, 100], 0));
        assert!(are_sound(&errors, &members([7, 100], 0)));
        errors.take(&members([15, 100], 0));
        // The next start, from what the ledger holds; the second member is a new one.
        let mut errors = errors.clone();
        errors.take(&members([23, 0], 0));
        errors.take(&members([23, 8], 0));
        let now = members([23, 8], 0);
        assert_eq!((errors.of(&now[0]), errors.of(&now[1])), (16, 8));
        assert!(!are_sound(&errors, &now));
        assert_eq!(sentences(&errors, &now).len(), 2);
    }

    #[test]
    fn sectors_that_md_leaves_out_are_reported_at_each_scrub() {
        let now = members([0, 0], 4096);
        let errors = Errors::default();
        assert!(!are_sound(&errors, &now));
        let found = sentences(&errors, &now);
        assert!(found[0].contains("4 KiB of /dev/vd0"), "{found:?}");
        assert_eq!(documents(&errors, &now)[1].bad_blocks_bytes, 4096);
    }
}
