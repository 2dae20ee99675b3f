//! Progress lines, one a job. They go to standard error, and only to a terminal.
//!
//! Each is drawn by a thread of its own: a terminal that does not take what is written (Ctrl-S, a connection that
//! hangs) blocks the thread that writes to it, and that must not be the thread that does the work.

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
    /// Lines, if standard error is a terminal.
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

/// The state of a job, as its line shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The part that is done.
    pub position: u64,
    /// The whole.
    pub length: u64,
    /// The text behind the bar.
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

/// The line of one job. Only [`ProgressLine::end`] waits until it is shown.
pub struct ProgressLine {
    is_watched: bool,
    /// `None` where there was no thread to be had.
    thread: Option<(SyncSender<Event>, JoinHandle<()>)>,
}

impl ProgressLine {
    fn start(is_watched: bool, mut draw: impl FnMut(Event) + Send + 'static) -> ProgressLine {
        // At most one event waits: the next one carries the newer state.
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

    /// Shows a state, unless an earlier one is still to be shown.
    pub fn show(&self, state: impl FnOnce() -> Progress + Send + 'static) {
        if let (true, Some((events, _))) = (self.is_watched, &self.thread) {
            let _ = events.try_send(Event::Moved(Box::new(state)));
        }
    }

    /// Shows the user a sentence. False if it is dropped because an earlier event is not shown yet.
    pub fn report(&self, text: String) -> bool {
        let thread = self.thread.as_ref();
        thread.is_some_and(|(events, _)| events.try_send(Event::Reported(text)).is_ok())
    }

    /// Removes the line after all events were shown.
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
        // The thread hangs at the first event, and the second one waits for it.
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
