//! Turns of several volumes: each is read alone for a moment, then all together. A lower rate together than alone shows
//! a limit that they share. What `--first` names waits for no turn: turns begin when it is warm on all of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use record::Nanos;

/// Maximum duration of a turn alone; it ends earlier when the volume's rate is known.
const MAX_TURN: Nanos = Nanos(10_000_000_000);
/// Maximum duration of all turns together.
const MAX_ALL_TURNS: Nanos = Nanos(30_000_000_000);

/// Permission to read that a volume has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Read, while the others wait.
    Alone,
    /// Read, as the others do.
    Together,
    /// Wait: another one has its turn.
    Wait,
}

/// Turns of the volumes.
#[derive(Debug)]
pub(crate) struct Turns {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Number of the volume whose turn it is; the count of volumes once each has had its turn.
    now: usize,
    /// True for each volume that is done.
    gone: Vec<bool>,
    /// True for each volume that still reads what `--first` names.
    hurried: Vec<bool>,
}

impl Turns {
    /// Turns of so many volumes, one each if there are several and `alone_first` is set.
    pub(crate) fn new(volumes: usize, alone_first: bool) -> Turns {
        let takes_turns = alone_first && volumes > 1;
        Turns {
            state: Mutex::new(State {
                now: if takes_turns { 0 } else { volumes },
                gone: vec![false; volumes],
                hurried: vec![takes_turns; volumes],
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Permission to read that the volume with this number has now.
    pub(crate) fn of(&self, volume: usize) -> Turn {
        let state = self.state();
        if state.now >= state.gone.len() || state.hurried.contains(&true) {
            Turn::Together
        } else if state.now == volume {
            Turn::Alone
        } else {
            Turn::Wait
        }
    }

    /// Records that the first set is warm on the volume with this number, or that the volume has no first set.
    pub(crate) fn note_first_set_warm(&self, volume: usize) {
        if let Some(hurried) = self.state().hurried.get_mut(volume) {
            *hurried = false;
        }
    }

    /// Maximum duration of a turn.
    pub(crate) fn longest(&self) -> Nanos {
        let volumes = self.state().gone.len().max(1) as u64;
        MAX_TURN.min(Nanos(MAX_ALL_TURNS.0 / volumes))
    }

    /// Ends the turn of a volume.
    pub(crate) fn pass(&self, volume: usize) {
        let mut state = self.state();
        if state.now == volume {
            state.now += 1;
            state.skip_gone();
        }
    }

    /// Notes that a volume is done for good.
    pub(crate) fn note_finished(&self, volume: usize) {
        let mut state = self.state();
        if let Some(gone) = state.gone.get_mut(volume) {
            *gone = true;
        }
        if let Some(hurried) = state.hurried.get_mut(volume) {
            *hurried = false;
        }
        state.skip_gone();
    }

    /// True if all volumes are being read together now, after each has had its turn.
    pub(crate) fn all_together(&self) -> bool {
        let state = self.state();
        state.now >= state.gone.len() && !state.gone.contains(&true)
    }
}

impl State {
    fn skip_gone(&mut self) {
        while self.gone.get(self.now) == Some(&true) {
            self.now += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn_and_then_all_go_together() {
        let turns = Turns::new(3, true);
        (0..3).for_each(|volume| turns.note_first_set_warm(volume));
        let now = || [0, 1, 2].map(|volume| turns.of(volume));
        assert_eq!(now(), [Turn::Alone, Turn::Wait, Turn::Wait]);
        turns.pass(1);
        assert_eq!(now(), [Turn::Alone, Turn::Wait, Turn::Wait], "not its turn");
        // One that is done before its turn has none, and one that ends in its turn gives it up.
        turns.note_finished(1);
        turns.pass(0);
        assert_eq!(now(), [Turn::Wait, Turn::Wait, Turn::Alone]);
        assert!(!turns.all_together());
        turns.note_finished(2);
        assert_eq!(turns.of(0), Turn::Together);
        assert!(!turns.all_together(), "two are gone");
    }

    #[test]
    fn the_first_volume_waits_for_no_turn() {
        let turns = Turns::new(3, true);
        let now = || [0, 1, 2].map(|volume| turns.of(volume));
        turns.note_first_set_warm(0);
        turns.note_finished(2);
        assert_eq!(now(), [Turn::Together; 3]);
        assert!(!turns.all_together(), "what they give now is no measure");
        turns.note_first_set_warm(1);
        assert_eq!(now(), [Turn::Alone, Turn::Wait, Turn::Wait]);
    }

    #[test]
    fn many_volumes_take_short_turns() {
        assert_eq!(Turns::new(2, true).longest(), MAX_TURN);
        assert_eq!(Turns::new(30, true).longest(), Nanos::from_secs(1));
    }

    #[test]
    fn one_volume_and_volumes_with_a_limit_take_no_turns() {
        assert_eq!(Turns::new(1, true).of(0), Turn::Together);
        let turns = Turns::new(2, false);
        assert_eq!(turns.of(1), Turn::Together);
        assert!(turns.all_together());
    }
}
