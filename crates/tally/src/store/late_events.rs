//! Events of periods that are rolled up already: their sums go to the coarser levels too.

use crate::level::{RollUpLevel, Seconds, Zone};
use crate::sums::Sums;

/// The sums to add to each level: all to minutes, and to each coarser level those before its watermark.
pub fn levels<'a>(
    sums: &'a Sums,
    zone: &'a Zone,
    watermark: impl Fn(RollUpLevel) -> Seconds + 'a,
) -> impl Iterator<Item = (RollUpLevel, std::borrow::Cow<'a, Sums>)> + 'a {
    let earliest = sums.rows().map(|row| row.start).min();
    RollUpLevel::ALL.into_iter().filter_map(move |level| {
        if level == RollUpLevel::Minute {
            return Some((level, std::borrow::Cow::Borrowed(sums)));
        }
        let before = watermark(level);
        let late = earliest.is_some_and(|earliest| earliest < before);
        late.then(|| {
            (
                level,
                std::borrow::Cow::Owned(sums.coarser(level, zone, Seconds::MIN..before)),
            )
        })
    })
}
