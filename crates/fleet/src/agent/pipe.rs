//! Output of a verb, read on separate threads so that a pipe never fills up.

use std::io::{BufRead as _, BufReader};
use std::process::ChildStdout;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::buffered_pipe::BufferedPipe;

/// Handler of each line of a verb's output.
pub(super) type LineHandler = Box<dyn FnMut(String) + Send>;

/// A verb's standard output.
pub(super) enum VerbOutput {
    /// Kept for the answer.
    Kept(Option<BufferedPipe>),
    /// Forwarded line by line, on a thread.
    HandedOn(Option<JoinHandle<()>>),
}

impl VerbOutput {
    /// Forwards each line without keeping it.
    pub(super) fn forward_lines(pipe: Option<ChildStdout>, mut on_line: LineHandler) -> VerbOutput {
        let hand_on = move || {
            let Some(pipe) = pipe else { return };
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                on_line(line);
            }
        };
        VerbOutput::HandedOn(thread::Builder::new().spawn(hand_on).ok())
    }

    /// The kept output; forwarding of lines is waited for until `until`. Processes that the verb has left behind may
    /// keep the pipe open.
    pub(super) fn text(&self, until: Instant) -> String {
        match self {
            VerbOutput::Kept(kept) => kept.as_ref().map(BufferedPipe::text).unwrap_or_default(),
            VerbOutput::HandedOn(thread) => {
                let is_over = || thread.as_ref().is_none_or(JoinHandle::is_finished);
                while !is_over() && Instant::now() < until {
                    thread::sleep(Duration::from_millis(2));
                }
                String::new()
            }
        }
    }
}
