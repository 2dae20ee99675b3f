//! Zones to which random writes are appended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use record::WriteZones;

/// The write pointers of a job's zones, which its clones share.
#[derive(Clone)]
pub(super) struct AppendPointers {
    zones: WriteZones,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Number of bytes written in each zone with any write.
    written: HashMap<u64, u64>,
    /// Partly written zones, in the order of their opening; only used if their number is limited.
    open: Vec<u64>,
}

impl AppendPointers {
    pub(super) fn new(zones: WriteZones) -> AppendPointers {
        AppendPointers {
            zones,
            state: Arc::default(),
        }
    }

    /// Position of a write of `bytes` bytes, for a drawn `position` in a span of `length` bytes: the end of the
    /// written part of its zone, or of an open zone if no other may be opened. A full zone is rewritten from its
    /// start.
    pub(super) fn position(&self, position: u64, bytes: u64, length: u64) -> u64 {
        let range = self.zones.range.0;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let zone = match self.zones.open {
            None => position / range,
            Some(most) => state.opened(position, range, length, most),
        };
        let written = state.written.entry(zone).or_default();
        if *written + bytes > self.zones.size.0 {
            *written = 0;
        }
        let at = zone * range + *written;
        *written += bytes;
        if *written + bytes > self.zones.size.0 {
            state.open.retain(|open| *open != zone);
        }
        at
    }
}

impl State {
    /// The zone of `position`, which is opened if at most `most` zones are then open. Otherwise the open zone whose
    /// index among the open ones corresponds to the relative position in the span, as in fio.
    fn opened(&mut self, position: u64, range: u64, length: u64, most: u32) -> u64 {
        let zone = position / range;
        if self.open.contains(&zone) {
            return zone;
        }
        if self.open.len() < most as usize {
            self.open.push(zone);
            return zone;
        }
        let of_open = u128::from(position) * self.open.len() as u128 / u128::from(length);
        self.open.get(of_open as usize).copied().unwrap_or(zone)
    }
}

#[cfg(test)]
mod tests {
    use record::Bytes;

    use super::*;

    /// Blocks that fio 3.33 draws from 16 with one seed.
    const DRAWN: [u64; 16] = [0, 11, 13, 7, 6, 14, 8, 5, 15, 1, 2, 10, 3, 4, 9, 12];

    fn written(size: u64, open: Option<u32>) -> Vec<u64> {
        let appended = AppendPointers::new(WriteZones {
            range: Bytes(4),
            size: Bytes(size),
            open,
        });
        let position = |drawn: &u64| appended.position(*drawn, 1, 16);
        DRAWN.iter().map(position).collect()
    }

    /// Compared with fio with `zonemode=zbd`, `rw=randwrite` and zones of four blocks: `--debug=io` prints the
    /// positions.
    #[test]
    fn each_write_is_at_the_end_of_its_zone() {
        assert_eq!(
            written(4, None),
            [0, 8, 12, 4, 5, 13, 9, 6, 14, 1, 2, 10, 3, 7, 11, 15]
        );
        // With a zonecapacity of two blocks.
        assert_eq!(
            written(2, None),
            [0, 8, 12, 4, 5, 13, 9, 4, 12, 1, 0, 8, 1, 5, 9, 13]
        );
    }

    /// Compared with fio with `max_open_zones=2`.
    #[test]
    fn no_more_zones_are_open_than_may_be() {
        assert_eq!(
            written(4, Some(2)),
            [0, 8, 9, 1, 2, 10, 11, 4, 5, 3, 0, 1, 2, 6, 3, 12]
        );
    }
}
