//! The live screen of `watch`, and of recordings.
//!
//! The data flows one way: samples become [`frame`]s, which the [`model`] keeps with the user's choices; [`draw`]
//! makes widgets of them, and [`ui::screen`] writes the cells that changed. All of it runs on a separate thread: a
//! terminal that accepts no output (a connection that hangs, a stopped window) does not delay the sampling.

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

/// Maximum wait at the end for the screen's thread to restore the terminal.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A screen that shows live samples.
pub(crate) struct Screen {
    inbox: Arc<Inbox>,
    thread: JoinHandle<()>,
    interrupt: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
    /// Error of the terminal that ended the screen.
    error: Arc<OnceLock<io::Error>>,
    last: Option<Arc<Frame>>,
    /// Last state of the recording that was shown.
    recording: Option<bool>,
    marks: Vec<Mark>,
}

/// Guard that sets the interrupt flag when the screen ends, for any reason: a watch without its screen must end.
struct ScreenEndGuard {
    interrupt: Arc<AtomicBool>,
    /// Set if a panic ended the screen.
    failed: Arc<AtomicBool>,
}

impl Drop for ScreenEndGuard {
    fn drop(&mut self) {
        self.failed.fetch_or(std::thread::panicking(), Relaxed);
        self.interrupt.store(true, Relaxed);
        // From now on a second signal may end the process at once. If this fails, the first one still ends it.
        let _ = signals::second_ends_at_once(&self.interrupt);
    }
}

impl Screen {
    /// Takes over the terminal. With `all`, unused devices are shown too. The flag is set when the user quits, and ends
    /// the screen when it is set elsewhere.
    ///
    /// # Errors
    /// When the terminal cannot be opened, or no thread can be started.
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
                // Stored before the flag is set, after which it is read.
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

    /// True if a panic ended the screen.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    /// Error of the terminal that ended the screen; `None` if there was none.
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

    /// Shows a note on data that are missing, with the reason.
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
        // Where the thread hangs in a write, the terminal is restored here, as far as possible.
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
