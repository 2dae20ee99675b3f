//! Guard that ends a volume's turn among those that are read at once.

use super::turns::Turns;

/// Guard of a volume among those that are read at once. When it is dropped, also by a panic, the volume's turn passes
/// to the others, which would otherwise wait for ever.
pub(crate) struct TurnGuard<'a> {
    turns: &'a Turns,
    number: usize,
}

impl<'a> TurnGuard<'a> {
    /// Guard of the volume with this number, which `turns` already includes.
    pub(crate) fn new(turns: &'a Turns, number: usize) -> TurnGuard<'a> {
        TurnGuard { turns, number }
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.turns.note_finished(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::turns::Turn;
    use super::*;

    #[test]
    fn a_panic_leaves_the_turn_to_the_others() {
        let turns = Turns::new(2, true);
        turns.note_first_set_warm(0);
        turns.note_first_set_warm(1);
        assert_eq!(turns.of(1), Turn::Wait);
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let _present = TurnGuard::new(&turns, 0);
                // As a panic unwinds, and without its message.
                std::panic::resume_unwind(Box::new("of the test"));
            });
            assert!(reading.join().is_err());
        });
        assert_eq!(turns.of(1), Turn::Alone);
    }
}
