//! The live screen of `watch`, and of recordings.
//!
//! The data goes one way: samples become [`frame`]s, which the [`model`] keeps with what a person chose;
//! [`draw`] makes widgets of that, and [`ui::screen`] writes the cells that changed.
//! All of it runs on a thread of its own: a terminal that takes nothing (a connection that hangs, a
//! stopped window) does not hold up the sampling.

pub(crate) mod columns;
mod draw;
mod drive;
pub(crate) mod figures;
pub(crate) mod finding_list;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod frame;
pub(crate) mod history;
mod inbox;
pub(crate) mod model;
pub(crate) mod order;
pub(crate) mod pages;
mod replay;
pub(crate) mod siblings;
pub(crate) mod tree;
mod update;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ledger::Mark;
use record::sample::{Sample, SampleSource};
use study::watch::EventChange;

use frame::Frame;
use inbox::Inbox;
use model::Model;
use ui::screen::{Terminal, put_back, run};
use ui::signals;

pub(crate) use replay::replay;
pub(crate) use update::Update;

/// Longest wait at the end for the thread that has the terminal to restore it.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A screen that shows present samples.
pub(crate) struct Screen {
    inbox: Arc<Inbox>,
    thread: JoinHandle<()>,
    interrupt: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    /// Error for which the terminal could no longer be used.
    error: Arc<OnceLock<io::Error>>,
    last: Option<Arc<Frame>>,
    /// Last state of the recording that was shown.
    recording: Option<bool>,
    marks: Vec<Mark>,
}

/// Sets the flag when the screen is over, whatever ended it: without it nobody is watching.
struct ScreenEndGuard {
    interrupt: Arc<AtomicBool>,
    /// True if a panic ended it.
    failed: Arc<AtomicBool>,
}

impl Drop for ScreenEndGuard {
    fn drop(&mut self) {
        self.failed.fetch_or(std::thread::panicking(), Relaxed);
        self.interrupt.store(true, Relaxed);
        // From now on, a second signal need not mind the terminal. Without that, it ends just as well.
        let _ = signals::second_ends_at_once(&self.interrupt);
    }
}

impl Screen {
    /// Takes the terminal. `all` shows devices that never did anything too. The flag is set when the user quits, and
    /// is polled for the end.
    ///
    /// # Errors
    /// When there is no terminal to be had, or no thread.
    pub(crate) fn start(
        source: SampleSource,
        all: bool,
        interrupt: &Arc<AtomicBool>,
    ) -> io::Result<Screen> {
        let terminal = Terminal::open()?;
        let inbox = Arc::new(Inbox::new()?);
        let mut model = Model::new(source, all);
        let failed = Arc::new(AtomicBool::new(false));
        let over = ScreenEndGuard {
            interrupt: Arc::clone(interrupt),
            failed: Arc::clone(&failed),
        };
        let updates = Arc::clone(&inbox);
        let error = Arc::new(OnceLock::new());
        let why = Arc::clone(&error);
        let work = move || {
            let mut source = inbox::Live::new(updates);
            let mut shown = drive::ShownModel {
                model: &mut model,
                source: &mut source,
            };
            if let Err(error) = run(terminal, &mut shown, &over.interrupt) {
                // Before the flag is raised, after which it is searched for.
                let _ = why.set(error);
            }
        };
        let thread = std::thread::Builder::new()
            .name("screen".to_owned())
            .spawn(work)?;
        Ok(Screen {
            inbox,
            thread,
            interrupt: Arc::clone(interrupt),
            failed,
            error,
            last: None,
            recording: None,
            marks: Vec::new(),
        })
    }

    /// Shows a sample and its changes of findings, without waiting for the terminal.
    pub(crate) fn show(&mut self, sample: &Sample, changes: &[EventChange]) {
        let frame = Arc::new(Frame::of(sample, self.last.as_deref()));
        self.last = Some(Arc::clone(&frame));
        self.inbox.put(Update::Frame(frame, changes.to_vec()));
    }

    /// True if the screen ended by a fault of its own.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Error for which the terminal could no longer be used; `None` where that did not end the screen.
    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.error.get()
    }

    /// Shows in the first line whether the samples are also recorded.
    pub(crate) fn show_recording(&mut self, is_kept: bool) {
        if self.recording.replace(is_kept) != Some(is_kept) {
            self.inbox.put(Update::Recording(is_kept));
        }
    }

    /// Shows recent marks.
    pub(crate) fn mark(&mut self, marks: Vec<Mark>) {
        if self.marks != marks {
            self.marks.clone_from(&marks);
            self.inbox.put(Update::Marks(marks));
        }
    }

    /// Shows a note: something that cannot be seen, and why.
    pub(crate) fn note(&self, note: &str) {
        self.inbox.put(Update::Note(note.to_owned()));
    }
}

impl Drop for Screen {
    /// Restores the terminal, however the watch ends.
    fn drop(&mut self) {
        self.interrupt.store(true, Relaxed);
        self.inbox.wake();
        let began = Instant::now();
        while !self.thread.is_finished() && began.elapsed() < TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Where the thread hangs in a write, this is all that can be done.
        put_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_screen_ends_the_watch_and_is_reported() {
        let [interrupt, failed] = [false; 2].map(|flag| Arc::new(AtomicBool::new(flag)));
        let over = ScreenEndGuard {
            interrupt: Arc::clone(&interrupt),
            failed: Arc::clone(&failed),
        };
        let thread = std::thread::spawn(move || {
            let _over = over;
            panic!("as a fault would");
        });
        assert!(thread.join().is_err());
        assert!(interrupt.load(Relaxed) && failed.load(Relaxed));
    }
}
