//! A recording on the screen: its intervals, played at the original speed or faster.

use std::iter::Peekable;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ledger::Mark;
use record::sample::{Sample, SampleSource};
use study::watch::EventChange;

use super::Update;
use super::drive::{IntervalSource, ShownModel};
use super::frame::Frame;
use super::model::{KeyEffect, Model, Playback};
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::screen::{Terminal, put_back, run};

/// Speeds, as multiples of the original.
const SPEEDS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0];
/// Maximum wait between two intervals, so that gaps are skipped.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Plays a recording from the time `from` until the user quits. Earlier intervals are loaded to go back to, and for
/// the sparklines, which need two minutes. Intervals are in order of time, each with the changes of findings in it;
/// they are read when they are due, one ahead. With `all`, unused devices are shown too. Marks are in order of time.
///
/// # Errors
/// When the terminal cannot be opened, or the recording cannot be read further.
pub(crate) fn replay(
    source: SampleSource,
    all: bool,
    marks: Vec<Mark>,
    recording: impl Iterator<Item = Result<(Sample, Vec<EventChange>), Failure>>,
    from: Option<Timestamp>,
    interrupt: &AtomicBool,
) -> Outcome {
    let terminal = Terminal::open().refused()?;
    let mut model = Model::new(source, all);
    model.marks = marks;
    let mut replay = Replay::new(recording);
    replay.begin(&mut model, from);
    let mut shown = ShownModel {
        model: &mut model,
        source: &mut replay,
    };
    let ended = run(terminal, &mut shown, interrupt);
    put_back();
    match replay.failure {
        Some(failure) => Err(failure),
        None => ended.midway().map(|()| CommandEnd::Done),
    }
}

/// A recording that is played.
struct Replay<I: Iterator<Item = Result<(Sample, Vec<EventChange>), Failure>>> {
    recording: Peekable<I>,
    last: Option<Arc<Frame>>,
    speed: usize,
    /// Time at which the last frame was shown; `None` while the replay is paused.
    shown: Option<Instant>,
    failure: Option<Failure>,
}

impl<I: Iterator<Item = Result<(Sample, Vec<EventChange>), Failure>>> Replay<I> {
    fn new(recording: I) -> Replay<I> {
        Replay {
            recording: recording.peekable(),
            last: None,
            speed: 0,
            shown: None,
            failure: None,
        }
    }

    /// Passes all intervals before a time, and the first that ends then or later, to the model.
    fn begin(&mut self, model: &mut Model, from: Option<Timestamp>) {
        self.next(model);
        let is_before = |frame: &Arc<Frame>| match (from, frame.at.wall) {
            (Some(from), Some(wall)) => wall < from,
            _ => false,
        };
        while self.last.as_ref().is_some_and(is_before) && self.next(model) {}
        self.show_state(model);
    }

    /// Shows one more interval; true if there was one.
    fn next(&mut self, model: &mut Model) -> bool {
        match self.recording.next() {
            Some(Ok((sample, changes))) => {
                let frame = Arc::new(Frame::of(&sample, self.last.as_deref()));
                self.last = Some(Arc::clone(&frame));
                model.take(Update::Frame(frame, changes));
                true
            }
            Some(Err(failure)) => {
                let text = "The recording cannot be read further; quit to see why.";
                model.take(Update::Note(text.to_owned()));
                self.failure = Some(failure);
                false
            }
            None => false,
        }
    }

    fn is_over(&mut self) -> bool {
        self.failure.is_some() || self.recording.peek().is_none()
    }

    /// Time until the next interval is due, after the last was shown.
    fn pause(&mut self) -> Option<Duration> {
        let last = self.last.as_ref()?.at.elapsed;
        let Some(Ok((next, _))) = self.recording.peek() else {
            return Some(Duration::ZERO);
        };
        let between = Duration::from(next.at.elapsed - last);
        Some(between.div_f64(SPEEDS[self.speed]).min(MAX_WAIT))
    }

    /// Shows the state of the replay.
    fn show_state(&mut self, model: &mut Model) {
        model.playing = Some(Playback {
            speed: SPEEDS[self.speed],
            at_end: self.is_over(),
        });
    }
}

impl<I: Iterator<Item = Result<(Sample, Vec<EventChange>), Failure>>> IntervalSource for Replay<I> {
    fn update(&mut self, model: &mut Model) -> (bool, Option<Duration>) {
        if model.behind().is_some() || self.is_over() {
            self.shown = None;
            return (false, None);
        }
        let shown = *self.shown.get_or_insert_with(Instant::now);
        let mut due = shown + self.pause().unwrap_or_default();
        let mut is_new = false;
        // At a high speed, several intervals are due at once.
        while due <= Instant::now() && self.next(model) {
            is_new = true;
            self.shown = Some(due);
            due += self
                .pause()
                .unwrap_or_default()
                .max(Duration::from_micros(100));
            if due.elapsed() > MAX_WAIT {
                due = Instant::now();
            }
        }
        if is_new {
            self.show_state(model);
        }
        let wait = due.saturating_duration_since(Instant::now());
        (is_new, (!self.is_over()).then_some(wait))
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn apply(&mut self, effect: KeyEffect, model: &mut Model) {
        match effect {
            KeyEffect::Next => {
                self.next(model);
                model.hold(model.history.newest());
            }
            KeyEffect::Faster => self.speed = (self.speed + 1).min(SPEEDS.len() - 1),
            KeyEffect::Slower => self.speed = self.speed.saturating_sub(1),
            KeyEffect::None | KeyEffect::Quit | KeyEffect::Suspend => {}
        }
        self.show_state(model);
    }
}

#[cfg(test)]
mod tests {
    use record::Nanos;
    use record::sample::SampleTime;

    use super::*;

    fn recording(
        seconds: u64,
    ) -> impl Iterator<Item = Result<(Sample, Vec<EventChange>), Failure>> {
        (0..seconds).map(|second| {
            let at = SampleTime {
                wall: Some(Timestamp::from_second(1_000_000 + second as i64).unwrap()),
                elapsed: Nanos::from_secs(second),
            };
            let sample = Sample {
                at,
                length: Nanos::from_secs(1),
                ..Sample::default()
            };
            Ok((sample, Vec::new()))
        })
    }

    fn shown(model: &Model) -> u64 {
        model.frame().unwrap().at.elapsed.0 / 1_000_000_000
    }

    #[test]
    fn it_begins_at_the_given_time_and_can_go_back_before() {
        let mut model = Model::default();
        let mut replay = Replay::new(recording(300));
        replay.begin(&mut model, Timestamp::from_second(1_000_120).ok());
        assert_eq!(shown(&model), 120);
        assert_eq!(model.history.oldest(), Some(0));
        let playing = model.playing.unwrap();
        assert_eq!((playing.speed, playing.at_end), (1.0, false));
    }

    #[test]
    fn a_paused_replay_goes_on_one_by_one_only() {
        let mut model = Model::default();
        let mut replay = Replay::new(recording(3));
        replay.begin(&mut model, None);
        model.hold(None);
        assert_eq!(replay.update(&mut model), (false, None));
        assert_eq!(model.press(ui::screen::Key::Right), KeyEffect::Next);
        replay.apply(KeyEffect::Next, &mut model);
        assert_eq!(shown(&model), 1);
        replay.apply(KeyEffect::Next, &mut model);
        replay.apply(KeyEffect::Next, &mut model);
        assert_eq!(shown(&model), 2);
        assert!(model.playing.unwrap().at_end);
    }

    #[test]
    fn an_hour_a_second_is_played_in_time_and_ends() {
        let mut model = Model::default();
        let mut replay = Replay::new(recording(1000));
        replay.begin(&mut model, None);
        (0..SPEEDS.len()).for_each(|_| replay.apply(KeyEffect::Faster, &mut model));
        let began = Instant::now();
        while !model.playing.unwrap().at_end && began.elapsed() < Duration::from_secs(30) {
            if let (_, Some(wait)) = replay.update(&mut model) {
                std::thread::sleep(wait);
            }
        }
        assert_eq!(shown(&model), 999);
    }

    #[test]
    fn a_recording_that_breaks_off_is_an_error_and_shows_what_came_before() {
        let mut model = Model::default();
        let broken = recording(2).chain([Err(Failure::refused("torn"))]);
        let mut replay = Replay::new(broken);
        replay.begin(&mut model, Timestamp::from_second(2_000_000).ok());
        assert_eq!(shown(&model), 1);
        assert!(replay.failure.is_some() && model.notes.len() == 1);
    }
}
