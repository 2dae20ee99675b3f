//! Reads members so that they have rest: others wait for one read at most, and have the disks for half
//! of the time; where they use them, for more than that.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::search::Members;

/// No rest is longer: a disk that hangs is hung for others too.
const LONGEST: Duration = Duration::from_millis(200);
/// A rest is at most so many times as long as the read before it.
const MOST: f64 = 4.0;

/// Members that have a rest after each read: for as long as that took, and for longer where it took
/// longer than the fastest one of its length, which shows that others use them.
pub(super) struct Gentle<'a> {
    members: &'a mut dyn Members,
    /// Time of the fastest read of each length.
    fastest: BTreeMap<usize, Duration>,
}

impl<'a> Gentle<'a> {
    pub(super) fn new(members: &'a mut dyn Members) -> Gentle<'a> {
        Gentle {
            members,
            fastest: BTreeMap::new(),
        }
    }

    /// The rest after a read of that length.
    fn rest(&mut self, length: usize, took: Duration) -> Duration {
        let fastest = self.fastest.entry(length).or_insert(took);
        *fastest = took.min(*fastest);
        let slower = took.as_secs_f64() / fastest.as_secs_f64().max(1e-6);
        took.mul_f64(slower.clamp(1.0, MOST)).min(LONGEST)
    }
}

impl Members for Gentle<'_> {
    fn has(&self, slot: u32) -> bool {
        self.members.has(slot)
    }

    fn offset(&self, slot: u32) -> u64 {
        self.members.offset(slot)
    }

    fn read(&mut self, slot: u32, at: u64, into: &mut [u8]) -> io::Result<()> {
        let began = Instant::now();
        let length = into.len();
        let read = self.members.read(slot, at, into);
        thread::sleep(self.rest(length, began.elapsed()));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct None;

    impl Members for None {
        fn has(&self, _: u32) -> bool {
            false
        }

        fn offset(&self, _: u32) -> u64 {
            0
        }

        fn read(&mut self, _: u32, _: u64, _: &mut [u8]) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn members_that_others_use_have_more_rest() {
        let mut none = None;
        let mut gentle = Gentle::new(&mut none);
        let ms = Duration::from_millis;
        assert_eq!(gentle.rest(4096, ms(10)), ms(10));
        assert_eq!(gentle.rest(4096, ms(20)), ms(40), "twice as slow");
        assert_eq!(gentle.rest(4096, ms(40)), ms(160));
        assert_eq!(gentle.rest(4096, ms(1000)), LONGEST);
        assert_eq!(gentle.rest(65536, ms(30)), ms(30), "another length");
    }
}
