//! Rows of figures, packed column by column.
//!
//! A row belongs to an owner, such as a device, and has a mask of the figures that are known. The levels
//! ([`super::level`]) of all rows of a column are stored together, each as its difference from a prediction: the last
//! level of the same owner, or the mean of its last few rows, whichever makes the column smaller. A row may have a
//! twin, as a partition has its disk: then the prediction adds the change of the twin.

use record::varint::{folded, put, take, unfolded};

use super::bytes::{PackingGoal, put_figures, take_stream};
use super::level;

/// Maximum number of rows of a table; a block with more is damaged.
const MAX_ROWS: usize = 1 << 22;
/// The mean of the last rows moves by 1/2^n of the difference from it.
const MEMORY: u32 = 2;
/// Bits after the binary point of that mean.
const MEAN_FRACTION_BITS: u32 = 4;

/// Owner of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowOwner {
    /// Number of the owner, counted from 0.
    pub(super) own: usize,
    /// Number of another owner whose figures change like this one's.
    pub(super) twin: Option<usize>,
}

impl RowOwner {
    /// An owner without a twin.
    pub(super) fn alone(own: usize) -> RowOwner {
        RowOwner { own, twin: None }
    }
}

/// A row of figures; the mask has a bit for each figure that is known. Bits from `N` on are flags of the row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row<const N: usize> {
    pub(super) mask: u64,
    pub(super) figures: [f64; N],
}

impl<const N: usize> Default for Row<N> {
    fn default() -> Row<N> {
        Row {
            mask: 0,
            figures: [0.0; N],
        }
    }
}

impl<const N: usize> Row<N> {
    /// Sets a figure, if it is known.
    pub(super) fn set(&mut self, at: usize, figure: Option<f64>) {
        if let Some(figure) = figure.filter(|figure| !figure.is_nan()) {
            self.mask |= 1 << at;
            self.figures[at] = figure.max(0.0);
        }
    }

    /// A figure; `None` if it is not known.
    pub(super) fn get(&self, at: usize) -> Option<f64> {
        self.has(at).then(|| self.figures[at])
    }

    /// Sets a bit of the mask.
    pub(super) fn mark(&mut self, at: usize, is_set: bool) {
        if is_set {
            self.mask |= 1 << at;
        }
    }

    /// True if a bit of the mask is set.
    pub(super) fn has(&self, at: usize) -> bool {
        self.mask >> at & 1 == 1
    }
}

/// Units of a column: the coarse one if all of its figures are whole multiples of it, as the kernel's counters are, and
/// else the fine one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnUnit {
    pub(super) coarse: f64,
    pub(super) fine: f64,
}

impl ColumnUnit {
    /// The same unit as coarse and fine one.
    pub(super) const fn only(unit: f64) -> ColumnUnit {
        ColumnUnit {
            coarse: unit,
            fine: unit,
        }
    }
}

/// Prediction of a column's next value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prediction {
    Last,
    Mean,
}

/// Past values of an owner in a column.
#[derive(Clone, Copy, Default)]
struct KeyHistory {
    last: i64,
    mean: i64,
    /// Value of its twin at the same time.
    twin: i64,
}

/// Prediction of each owner's next value in a column.
struct ColumnPrediction {
    how: Prediction,
    keys: Vec<Option<KeyHistory>>,
}

impl ColumnPrediction {
    fn new(how: Prediction, keys: usize) -> ColumnPrediction {
        ColumnPrediction {
            how,
            keys: vec![None; keys],
        }
    }

    fn twin_value(&self, key: RowOwner) -> Option<i64> {
        let seen = self.keys.get(key.twin?)?;
        seen.map(|seen| seen.last)
    }

    fn of(&self, key: RowOwner) -> i64 {
        let Some(seen) = self.keys.get(key.own).copied().flatten() else {
            return self.twin_value(key).unwrap_or(0);
        };
        match (self.twin_value(key), self.how) {
            (Some(now), _) => seen.last + now - seen.twin,
            (None, Prediction::Last) => seen.last,
            (None, Prediction::Mean) => {
                (seen.mean + (1 << (MEAN_FRACTION_BITS - 1))) >> MEAN_FRACTION_BITS
            }
        }
    }

    fn learn(&mut self, key: RowOwner, level: i64) {
        let twin = self.twin_value(key).unwrap_or(0);
        let before = self.keys.get(key.own).copied().flatten();
        let fine = level << MEAN_FRACTION_BITS;
        let mean = before.map_or(fine, |seen| seen.mean + ((fine - seen.mean) >> MEMORY));
        if let Some(place) = self.keys.get_mut(key.own) {
            *place = Some(KeyHistory {
                last: level,
                mean,
                twin,
            });
        }
    }
}

/// Number of owners: the largest number plus one.
fn count(keys: &[RowOwner]) -> usize {
    keys.iter().map(|key| key.own + 1).max().unwrap_or(0)
}

/// Appends a table. `keys` are the owners of the rows, which the reader knows by other means.
pub(super) fn put_table<const N: usize>(
    out: &mut Vec<u8>,
    rows: &[Row<N>],
    keys: &[RowOwner],
    units: &[ColumnUnit; N],
    aim: PackingGoal,
) {
    put_masks(out, rows, aim);
    for (at, unit) in units.iter().enumerate() {
        let known: Vec<(RowOwner, f64)> = rows
            .iter()
            .zip(keys)
            .filter_map(|(row, key)| Some((*key, row.get(at)?)))
            .collect();
        if !known.is_empty() {
            put_column(out, &known, *unit, count(keys), aim);
        }
    }
}

/// Takes a table off the front, with one row for each of `keys`.
pub(super) fn take_table<const N: usize>(
    rest: &mut &[u8],
    keys: &[RowOwner],
    units: &[ColumnUnit; N],
) -> Option<Vec<Row<N>>> {
    let masks = take_masks(rest, keys.len())?;
    let mut rows: Vec<Row<N>> = masks
        .into_iter()
        .map(|mask| Row {
            mask,
            figures: [0.0; N],
        })
        .collect();
    for (at, unit) in units.iter().enumerate() {
        if rows.iter().any(|row| row.has(at)) {
            take_column(rest, &mut rows, at, keys, *unit)?;
        }
    }
    Some(rows)
}

/// Appends the masks: each distinct mask once, and for each row the index of its mask.
fn put_masks<const N: usize>(out: &mut Vec<u8>, rows: &[Row<N>], aim: PackingGoal) {
    let mut different: Vec<u64> = Vec::new();
    let mut which = Vec::with_capacity(rows.len());
    for row in rows {
        let at = different.iter().position(|mask| *mask == row.mask);
        let at = at.unwrap_or_else(|| {
            different.push(row.mask);
            different.len() - 1
        });
        put(&mut which, at as u64);
    }
    put(out, different.len() as u64);
    for mask in different {
        out.extend_from_slice(&mask.to_le_bytes());
    }
    put_figures(out, &which, aim);
}

fn take_masks(rest: &mut &[u8], rows: usize) -> Option<Vec<u64>> {
    let different = usize::try_from(take(rest)?).ok()?;
    let bytes = different.checked_mul(8)?;
    if rows > MAX_ROWS || bytes > rest.len() {
        return None;
    }
    let (masks, tail) = rest.split_at(bytes);
    *rest = tail;
    let masks: Vec<u64> = masks
        .chunks_exact(8)
        .filter_map(|mask| Some(u64::from_le_bytes(mask.try_into().ok()?)))
        .collect();
    let which = take_stream(rest, rows.checked_mul(10)?)?;
    let mut which = &which[..];
    (0..rows)
        .map(|_| masks.get(usize::try_from(take(&mut which)?).ok()?).copied())
        .collect()
}

fn is_whole(figure: f64, unit: f64) -> bool {
    let share = figure / unit;
    (share - share.round()).abs() <= 1e-6 * share.abs().max(1e-3)
}

/// Appends a column: its unit, its prediction, and the differences in two streams, of their low and of their high
/// bytes: the high bytes are mostly zero, and compress well without the noise of the low ones.
fn put_column(
    out: &mut Vec<u8>,
    known: &[(RowOwner, f64)],
    unit: ColumnUnit,
    keys: usize,
    aim: PackingGoal,
) {
    let whole = known
        .iter()
        .all(|(_, figure)| is_whole(*figure, unit.coarse));
    let unit = if whole { unit.coarse } else { unit.fine };
    let levels: Vec<(RowOwner, i64)> = known
        .iter()
        .map(|(key, figure)| {
            (
                *key,
                i64::from(level::of((figure / unit).round().max(0.0) as u64)),
            )
        })
        .collect();
    let packed = |how| differences(&levels, how, keys, aim);
    let mut shorter = (Prediction::Last, packed(Prediction::Last));
    if aim == PackingGoal::Room {
        let other = packed(Prediction::Mean);
        if other.len() < shorter.1.len() {
            shorter = (Prediction::Mean, other);
        }
    }
    let (how, packed) = shorter;
    out.push(u8::from(whole) | u8::from(how == Prediction::Mean) << 1);
    out.extend_from_slice(&packed);
}

fn differences(
    levels: &[(RowOwner, i64)],
    how: Prediction,
    keys: usize,
    aim: PackingGoal,
) -> Vec<u8> {
    let mut expected = ColumnPrediction::new(how, keys);
    let (mut low, mut high) = (Vec::with_capacity(levels.len()), Vec::new());
    for (key, level) in levels {
        let difference = folded(level - expected.of(*key));
        low.push(difference as u8);
        put(&mut high, difference >> 8);
        expected.learn(*key, *level);
    }
    let mut out = Vec::new();
    put_figures(&mut out, &low, aim);
    put_figures(&mut out, &high, aim);
    out
}

fn take_column<const N: usize>(
    rest: &mut &[u8],
    rows: &mut [Row<N>],
    at: usize,
    keys: &[RowOwner],
    unit: ColumnUnit,
) -> Option<()> {
    let (&head, tail) = rest.split_first()?;
    *rest = tail;
    let unit = if head & 1 == 1 {
        unit.coarse
    } else {
        unit.fine
    };
    let how = if head >> 1 & 1 == 1 {
        Prediction::Mean
    } else {
        Prediction::Last
    };
    let low = take_stream(rest, rows.len())?;
    let high = take_stream(rest, rows.len().checked_mul(10)?)?;
    let (mut low, mut high) = (low.into_iter(), &high[..]);
    let mut expected = ColumnPrediction::new(how, count(keys));
    for (row, key) in rows.iter_mut().zip(keys).filter(|(row, _)| row.has(at)) {
        let difference = take(&mut high)?.checked_shl(8)? | u64::from(low.next()?);
        let level = expected.of(*key).checked_add(unfolded(difference))?;
        let number = level::number(u32::try_from(level).ok()?)?;
        row.figures[at] = number as f64 * unit;
        expected.learn(*key, level);
    }
    Some(())
}
