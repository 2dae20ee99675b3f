//! Progress lines, one for each job. They are written to standard error, and only to a terminal.
//!
//! Each is drawn by a separate thread: a terminal that does not accept output (Ctrl-S, a connection that hangs) blocks
//! the thread that writes to it, which must not be the thread that does the work.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use indicatif::ProgressBar;
use ui::context::notice;
use ui::progress::Bars;

/// Progress lines of all jobs.
pub struct ProgressLines {
    bars: Bars,
    is_watched: bool,
}

impl ProgressLines {
    /// Progress lines; shown only if `is_watched` (standard error is a terminal).
    pub fn new(is_watched: bool) -> ProgressLines {
        ProgressLines {
            bars: Bars::new(is_watched),
            is_watched,
        }
    }

    /// Adds the line of a job.
    pub fn line(&self, name: &str) -> ProgressLine {
        let bar = self.bars.add(name, 1);
        ProgressLine::start(self.is_watched, move |event| match (event, &bar) {
            (Event::Reported(text), Some(bar)) => bar.suspend(|| notice(&text)),
            (Event::Reported(text), None) => notice(&text),
            (Event::Moved(state), Some(bar)) => state().show(bar),
            (Event::Ended, Some(bar)) => bar.finish_and_clear(),
            (Event::Moved(_) | Event::Ended, None) => {}
        })
    }
}

/// State of a job for its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Amount of work that is done.
    pub position: u64,
    /// Total amount of work.
    pub length: u64,
    /// Text after the bar.
    pub message: String,
}

impl Progress {
    fn show(self, bar: &ProgressBar) {
        bar.set_length(self.length.max(1));
        bar.set_position(self.position);
        bar.set_message(self.message);
    }
}

enum Event {
    Moved(Box<dyn FnOnce() -> Progress + Send>),
    Reported(String),
    Ended,
}

/// The line of one job. Only [`ProgressLine::end`] waits for the terminal.
pub struct ProgressLine {
    is_watched: bool,
    /// `None` if no thread could be started.
    thread: Option<(SyncSender<Event>, JoinHandle<()>)>,
}

impl ProgressLine {
    fn start(is_watched: bool, mut draw: impl FnMut(Event) + Send + 'static) -> ProgressLine {
        // At most one event is pending, since the next one has the newer state.
        let (events, arriving) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("line".to_owned())
            .spawn(move || arriving.into_iter().for_each(&mut draw));
        if let Err(error) = &thread {
            notice(&format!("disksmith: progress cannot be shown: {error}."));
        }
        ProgressLine {
            is_watched,
            thread: thread.ok().map(|thread| (events, thread)),
        }
    }

    /// Shows a state, unless an earlier one is still pending.
    pub fn show(&self, state: impl FnOnce() -> Progress + Send + 'static) {
        if let (true, Some((events, _))) = (self.is_watched, &self.thread) {
            let _ = events.try_send(Event::Moved(Box::new(state)));
        }
    }

    /// Shows the user a sentence. False if it is dropped because an earlier event is still pending.
    pub fn report(&self, text: String) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|(events, _)| events.try_send(Event::Reported(text)).is_ok())
    }

    /// Removes the line after all events are shown.
    pub fn end(self) {
        if let Some((events, thread)) = self.thread {
            let _ = events.send(Event::Ended);
            drop(events);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_does_not_wait_for_a_terminal_that_takes_nothing() {
        let (go, stuck) = std::sync::mpsc::channel::<()>();
        let (begins, begun) = std::sync::mpsc::channel();
        let (sender, receiver) = std::sync::mpsc::channel();
        let line = ProgressLine::start(true, move |event| {
            let _ = begins.send(());
            let _ = stuck.recv();
            if let Event::Reported(text) = event {
                sender.send(text).unwrap();
            }
        });
        let state = || Progress {
            position: 0,
            length: 1,
            message: String::new(),
        };
        // The thread hangs at the first event, while the second one is pending.
        line.show(state);
        begun.recv().unwrap();
        let began = std::time::Instant::now();
        (0..1000).for_each(|_| line.show(state));
        assert!(!line.report("lost".to_owned()), "it is to be said again");
        assert!(began.elapsed().as_secs() < 600);
        drop(go);
        let mut tries = 0;
        while !line.report("heard".to_owned()) && tries < 60_000 {
            tries += 1;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        line.end();
        assert_eq!(receiver.iter().collect::<Vec<_>>(), ["heard"]);
    }
}
