//! Reads members so that they have rest: others wait for one read at most, and have the disks for half
//! of the time.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::search::Members;

/// No rest is longer: a disk that hangs is hung for others too.
const LONGEST: Duration = Duration::from_millis(200);

/// Members that have a rest after each read, for as long as that took: where others slow it down, it
/// takes more of a rest.
pub(super) struct Gentle<'a>(pub &'a mut dyn Members);

impl Members for Gentle<'_> {
    fn has(&self, slot: u32) -> bool {
        self.0.has(slot)
    }

    fn read(&mut self, slot: u32, at: u64, into: &mut [u8]) -> io::Result<()> {
        let began = Instant::now();
        let read = self.0.read(slot, at, into);
        thread::sleep(began.elapsed().min(LONGEST));
        read
    }
}
