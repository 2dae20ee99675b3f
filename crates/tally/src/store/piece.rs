//! Rows on their way from one store to another (`tally move`).
//!
//! The store that has them takes a piece of them out of its tables and keeps it apart, in one transaction. The other
//! store adds it in one transaction with the piece's number, and not again. Then the piece is removed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::{Result, Settings, Store, StoredBucket, StoredRow};
use crate::classes::{ClassBounds, MAX_CLASSES};
use crate::level::{RollUpLevel, Seconds};
use crate::sums::{Sums, Values};

/// Times up to which a store's levels are rolled up, by [`RollUpLevel`].
pub type Watermarks = [Seconds; RollUpLevel::ALL.len()];

/// Rows of one level of a store, with the store's watermarks.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Level of the rows.
    pub level: RollUpLevel,
    /// Watermarks of the store: the coarser levels include the rows before their watermark, and keep them.
    pub marks: Watermarks,
    /// Rows of the piece, with tags and histograms.
    pub rows: Vec<PieceRow>,
}

/// A row with its tag and its histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct PieceRow {
    /// Tag with labels.
    pub tag: String,
    /// Row; its tag number has no meaning.
    pub row: StoredRow,
    /// Counts by bucket.
    pub buckets: Vec<(i16, f64)>,
}

/// Rows that are to be moved.
#[derive(Clone, Debug)]
pub struct MovedRows {
    /// Level of the rows.
    pub level: RollUpLevel,
    /// Numbers of tags; `None` for all.
    pub tags: Option<Vec<i64>>,
    /// Time range; only periods that lie within it are moved.
    pub range: Range<Seconds>,
}

/// A piece that was taken out.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Number, which increases with each piece.
    pub number: u64,
    /// Address of the store that it is for.
    pub target: String,
    /// The piece that was taken out.
    pub piece: Piece,
}

/// A store whose rows can be moved.
pub trait Movable: Store {
    /// Name under which other stores record the numbers of its pieces.
    fn name(&mut self) -> Result<String>;

    /// Rolls up all finished periods, so that they can be moved.
    fn roll_over(&mut self, now: Seconds) -> Result<()>;

    /// The piece that was taken out and not removed.
    fn pending(&mut self) -> Result<Option<Pending>>;

    /// Takes a piece of a slice out for a store, unless a piece is pending; false if nothing is left of the slice.
    fn take_out(&mut self, slice: &MovedRows, target: &str) -> Result<bool>;

    /// Adds a piece from the store of this name, once.
    fn put(&mut self, name: &str, pending: &Pending, now: Seconds) -> Result<()>;

    /// Removes a piece, which another store has.
    fn remove(&mut self, number: u64) -> Result<()>;
}

impl Piece {
    /// Joins rows with the buckets of the same periods and tags.
    pub(super) fn new(
        level: RollUpLevel,
        marks: Watermarks,
        rows: Vec<StoredRow>,
        buckets: &[StoredBucket],
        name: impl Fn(i64) -> String,
    ) -> Piece {
        let mut histograms: HashMap<(i64, Seconds), Vec<(i16, f64)>> = HashMap::new();
        for one in buckets {
            let histogram = histograms.entry((one.tag, one.start)).or_default();
            histogram.push((one.bucket, one.count));
        }
        let rows = rows.into_iter().map(|row| PieceRow {
            tag: name(row.tag),
            buckets: histograms.remove(&(row.tag, row.start)).unwrap_or_default(),
            row,
        });
        Piece {
            level,
            marks,
            rows: rows.collect(),
        }
    }

    /// The sums to add to each level of a store with these watermarks: the rows, and to each coarser level those that
    /// this store has rolled up and the other store had not.
    pub(super) fn levels(
        &self,
        settings: &Settings,
        marks: &Watermarks,
    ) -> Vec<(RollUpLevel, Sums)> {
        let sums = self.sums(&settings.bounds);
        let coarser = RollUpLevel::ALL
            .into_iter()
            .filter(|level| *level > self.level);
        let late = coarser.filter_map(|level| {
            let range = self.marks[level as usize]..marks[level as usize];
            let late = sums.coarser(level, &settings.zone, range);
            (!late.is_empty()).then_some((level, late))
        });
        let late: Vec<_> = late.collect();
        std::iter::once((self.level, sums)).chain(late).collect()
    }

    fn sums(&self, bounds: &ClassBounds) -> Sums {
        let mut sums = Sums::new(bounds.clone());
        for one in &self.rows {
            let row = &one.row;
            sums.put(
                &one.tag,
                row.start,
                (row.count, row.values.as_ref()),
                &one.buckets,
            );
        }
        sums
    }

    /// The piece as text. Rust prints a double exactly.
    pub(super) fn text(&self) -> String {
        let mut text = self.level.name().to_owned();
        // Writing to a string does not fail.
        for mark in self.marks {
            let _ = write!(text, "\t{mark}");
        }
        for one in &self.rows {
            let row = &one.row;
            let _ = write!(text, "\n{}\t{}\t{}", one.tag, row.start, row.count);
            let buckets = one.buckets.iter();
            let buckets: Vec<String> = buckets.map(|(at, count)| format!("{at}:{count}")).collect();
            let _ = write!(text, "\t{}", buckets.join(" "));
            if let Some(values) = &row.values {
                let _ = write!(text, "\t{}\t{}\t{}\t", values.sum, values.min, values.max);
                if let Some(last) = values.last {
                    let _ = write!(text, "{last}");
                }
                for class in values.classes {
                    let _ = write!(text, "\t{class}");
                }
            }
        }
        text
    }

    /// Parses a piece; `None` if the text is not one.
    pub(super) fn of(text: &str) -> Option<Piece> {
        let (head, rows) = text.split_once('\n')?;
        let mut head = head.split('\t');
        let level = RollUpLevel::named(head.next()?)?;
        let mut marks = Watermarks::default();
        for mark in &mut marks {
            *mark = head.next()?.parse().ok()?;
        }
        let rows: Option<Vec<PieceRow>> = rows.lines().map(row).collect();
        Some(Piece {
            level,
            marks,
            rows: rows?,
        })
    }
}

fn row(line: &str) -> Option<PieceRow> {
    let mut fields = line.split('\t');
    let tag = fields.next()?.to_owned();
    let (start, count) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let buckets = fields.next()?.split(' ').filter(|field| !field.is_empty());
    let buckets: Option<Vec<(i16, f64)>> = buckets
        .map(|field| {
            let (bucket, count) = field.split_once(':')?;
            Some((bucket.parse().ok()?, count.parse().ok()?))
        })
        .collect();
    let values = match fields.next() {
        None => None,
        Some(sum) => {
            let mut values = Values {
                sum: sum.parse().ok()?,
                min: fields.next()?.parse().ok()?,
                max: fields.next()?.parse().ok()?,
                last: match fields.next()? {
                    "" => None,
                    last => Some(last.parse().ok()?),
                },
                classes: [0.0; MAX_CLASSES],
            };
            for class in &mut values.classes {
                *class = fields.next()?.parse().ok()?;
            }
            Some(values)
        }
    };
    Some(PieceRow {
        tag,
        row: StoredRow {
            tag: 0,
            start,
            count,
            values,
        },
        buckets: buckets?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Values> {
        let number = || -1e100..1e100_f64;
        let figures = (number(), number(), number(), prop::option::of(number()));
        (figures, any::<[u8; MAX_CLASSES]>()).prop_map(|((sum, min, max, last), classes)| Values {
            sum,
            min,
            max,
            last,
            classes: classes.map(|count| f64::from(count) / 3.0),
        })
    }

    fn rows() -> impl Strategy<Value = PieceRow> {
        let buckets = prop::collection::vec((any::<i16>(), -1e9..1e9_f64), 0..3);
        let parts = (
            "[a-zé;=. ]{1,5}",
            any::<i64>(),
            -1e9..1e9_f64,
            prop::option::of(values()),
        );
        (parts, buckets).prop_map(|((tag, start, count, values), buckets)| PieceRow {
            tag,
            row: StoredRow {
                tag: 0,
                start,
                count,
                values,
            },
            buckets,
        })
    }

    proptest! {
        #[test]
        fn a_piece_is_read_as_it_was_written(
            rows in prop::collection::vec(rows(), 0..4),
            marks in any::<Watermarks>(),
            level in prop::sample::select(RollUpLevel::ALL.to_vec()),
        ) {
            let piece = Piece { level, marks, rows };
            prop_assert_eq!(Piece::of(&piece.text()), (!piece.rows.is_empty()).then_some(piece));
        }
    }
}
