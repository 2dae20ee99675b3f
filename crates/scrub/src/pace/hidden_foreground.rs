//! Who is few requests only because a check at full speed lets him be no more.
//!
//! Alone at full speed, requests of others wait behind so many of the check that who asks for one thing
//! after the other makes few a second. So the check is held for a moment, to hear how many he makes.

use record::Nanos;

/// Where others wait for so long of [`LATELY`](super::LATELY), in seconds, it is listened.
const WAITED_S: f64 = 0.3;
/// For so long at most, and no longer where nothing is asked for in so long.
const LISTENS: Nanos = Nanos(1_500_000_000);
const STILL: Nanos = Nanos(300_000_000);
/// After so long it is listened again, which becomes twice as long each time that it was nobody. A journal
/// waits too, and is not to hold the check each time.
const AGAIN: Nanos = Nanos(5_000_000_000);
const LONGEST_DEAF: Nanos = Nanos(60_000_000_000);
/// But who waits almost all of the time, in seconds of the same, is listened to so often.
const ALWAYS_S: f64 = 2.7;
const LONGEST_DEAF_TO_THEM: Nanos = Nanos(10_000_000_000);

/// When to listen, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct HiddenForegroundDetector {
    /// When others last asked for anything, or waited for it.
    stirred: Nanos,
    /// When it was last listened in vain, and how long it is not again.
    listened: Option<Nanos>,
    deaf: Nanos,
}

impl HiddenForegroundDetector {
    /// That have heard nothing.
    pub(super) fn new(now: Nanos) -> HiddenForegroundDetector {
        HiddenForegroundDetector {
            stirred: now,
            listened: None,
            deaf: AGAIN,
        }
    }

    /// Somebody asks for something, or waits.
    pub(super) fn stir(&mut self, now: Nanos) {
        self.stirred = now;
    }

    /// Whether to listen, where others waited for so many seconds lately.
    pub(super) fn are_wanted(&self, now: Nanos, waited: f64) -> bool {
        let deaf = match waited >= ALWAYS_S {
            true => self.deaf.min(LONGEST_DEAF_TO_THEM),
            false => self.deaf,
        };
        let is_due = |listened: Nanos| now.0.saturating_sub(listened.0) >= deaf.0;
        waited >= WAITED_S && self.listened.is_none_or(is_due)
    }

    /// Whether it was listened for long enough since then, in vain so far.
    pub(super) fn have_heard(&mut self, now: Nanos, since: Nanos) -> bool {
        let is_still = now.0.saturating_sub(self.stirred.max(since).0) >= STILL.0;
        let is_over = is_still || now.0.saturating_sub(since.0) >= LISTENS.0;
        if is_over {
            if self.listened.is_some() {
                self.deaf = Nanos((2 * self.deaf.0).min(LONGEST_DEAF.0));
            }
            self.listened = Some(now);
        }
        is_over
    }
}
