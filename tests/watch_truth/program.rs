//! Programs, and the array that they use, in simulated time.

use crate::dice::Random;

/// Request pattern of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// So many requests are always in flight.
    Depth(u64),
    /// So many a second at Poisson times.
    Rate(f64),
}

/// Where it asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// A volume.
    Volume(usize),
    /// The array over all volumes.
    Array,
}

/// A program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) target: Target,
    pub(crate) pace: Pace,
    /// The share of reads.
    pub(crate) reads: f64,
    /// The size of a request, and the span of random places, in bytes.
    pub(crate) block: u64,
    pub(crate) span: u64,
    /// When it runs, in seconds.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// An array of all volumes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array {
    /// 0, 1 or 10.
    pub(crate) level: u64,
    pub(crate) chunk: u64,
    /// When md begins to check it: by reads of all members one after the other.
    pub(crate) check_from: Option<u64>,
}

impl Array {
    /// Where a request goes, and at which offset, while so many are in flight on each volume: of copies, one
    /// is read, the one with less to do, and all are written.
    pub(crate) fn members(
        self,
        place: u64,
        write: bool,
        in_flight: &[u64],
        dice: &mut Random,
    ) -> Vec<(usize, u64)> {
        let count = in_flight.len();
        let copies = match self.level {
            0 => 1,
            1 => count,
            _ => 2,
        };
        let columns = (count / copies) as u64;
        let (stripe, within) = (place / self.chunk, place % self.chunk);
        let first = (stripe % columns) as usize * copies;
        let offset = stripe / columns * self.chunk + within;
        let all = first..first + copies;
        if write {
            return all.map(|volume| (volume, offset)).collect();
        }
        let turn = dice.between(0, copies as u64 - 1) as usize;
        let least = all
            .map(|volume| (volume + turn) % copies + first)
            .min_by_key(|volume| in_flight[*volume])
            .unwrap();
        vec![(least, offset)]
    }

    /// md checks as programs would that read all members from their beginning with a window of requests.
    pub(crate) fn checkers(self, volumes: usize) -> impl Iterator<Item = Program> {
        let each = move |from: u64| {
            (0..volumes).map(move |volume| Program {
                target: Target::Volume(volume),
                pace: Pace::Depth(16),
                reads: 1.0,
                block: 65_536,
                span: 64 << 20,
                from,
                to: u64::MAX / 2_000_000_000,
            })
        };
        self.check_from.into_iter().flat_map(each)
    }
}
