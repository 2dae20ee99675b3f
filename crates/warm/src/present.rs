//! Membership of a volume among those that are read at once.

use super::turns::Turns;

/// The presence of a volume among those that are read at once. The others get its turn when it ends, also
/// by a panic: they would wait for ever.
pub(crate) struct Present<'a> {
    turns: &'a Turns,
    number: usize,
}

impl<'a> Present<'a> {
    /// Of the volume of this number, which the turns count already.
    pub(crate) fn new(turns: &'a Turns, number: usize) -> Present<'a> {
        Present { turns, number }
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.turns.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::super::turns::Turn;
    use super::*;

    #[test]
    fn a_panic_leaves_the_turn_to_the_others() {
        let turns = Turns::new(2, true);
        turns.needs_no_hurry(0);
        turns.needs_no_hurry(1);
        assert_eq!(turns.of(1), Turn::Wait);
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let _present = Present::new(&turns, 0);
                // As a panic unwinds, and without its message.
                std::panic::resume_unwind(Box::new("of the test"));
            });
            assert!(reading.join().is_err());
        });
        assert_eq!(turns.of(1), Turn::Alone);
    }
}
