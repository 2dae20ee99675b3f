//! Findings about space that a plan leaves cold by choice.

use super::finding::{Finding, FindingCode};
use super::plan::{Extent, KnownSpace, Plan};

/// Findings about space that stays cold by choice.
pub(crate) fn left_cold(plan: &Plan, known: &KnownSpace, extent: Extent) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut cold = plan.left_out.clone();
    if let Some(held) = &known.held {
        cold = cold.intersect(held);
        let not_held = plan.left_out.subtract(held).total();
        if not_held.0 > 0 {
            findings.push(Finding::warn(
                FindingCode::LeftCold,
                format!(
                    "{not_held} are left out, since the list of --blocks does not have them. They stay \
                     cold if it is of another snapshot than this volume's."
                ),
            ));
        }
    }
    let left = cold.total();
    let text = match extent {
        _ if cold.is_empty() => return findings,
        Extent::First => {
            format!("Only what --first names is warmed; {left} stay as they are.")
        }
        Extent::Used | Extent::All => format!(
            "{left} that no file uses stay cold. A file that grows into them is slow: what is written \
             there by less than a block at a time is fetched first, and so is what is read."
        ),
    };
    findings.push(Finding::warn(FindingCode::LeftCold, text));
    findings
}

#[cfg(test)]
mod tests {
    use record::{Bytes, Ranges};

    use super::*;

    #[test]
    fn cold_blocks_are_distinguished_from_those_that_the_snapshot_does_not_hold() {
        let known = KnownSpace {
            first: Ranges::from(0..100),
            used: Some(Ranges::from(0..400)),
            held: Some(Ranges::from(0..600)),
        };
        let sentences = |extent| {
            let plan = Plan::new(&known, Bytes(1000), Bytes(100), extent);
            let texts = left_cold(&plan, &known, extent);
            texts.into_iter().map(|one| one.text).collect::<Vec<_>>()
        };
        let all = sentences(Extent::All);
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].starts_with("400 B are left out, since"), "{all:?}");
        assert!(sentences(Extent::Used)[1].starts_with("200 B that no file uses"));
        assert!(sentences(Extent::First)[1].contains("500 B stay as they are"));
    }
}
