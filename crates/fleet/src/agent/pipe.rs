//! Output of a verb, read on threads of their own so that no pipe is ever full.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::protocol::MOST_SAID;

/// Handler of each line of a verb's output.
pub(super) type LineHandler = Box<dyn FnMut(String) + Send>;

/// Output from a pipe, read on a thread of its own.
pub(super) struct PipeOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl PipeOutput {
    /// Keeps what comes.
    pub(super) fn listen(pipe: Option<impl Read + Send + 'static>) -> PipeOutput {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&bytes);
        let listen = move || {
            let Some(mut pipe) = pipe else { return };
            let mut buffer = vec![0; 1 << 16];
            // What is too much is read all the same, or the verb would wait forever.
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST_SAID.saturating_sub(kept.len()).min(count);
                kept.extend_from_slice(buffer.get(..room).unwrap_or_default());
            }
        };
        let listener = thread::Builder::new().spawn(listen).ok();
        PipeOutput { bytes, listener }
    }

    /// Hands on each line, and keeps none.
    pub(super) fn hand_on(
        pipe: Option<impl Read + Send + 'static>,
        mut on_line: LineHandler,
    ) -> PipeOutput {
        let hand_on = move || {
            let Some(pipe) = pipe else { return };
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                on_line(line);
            }
        };
        PipeOutput {
            bytes: Arc::default(),
            listener: thread::Builder::new().spawn(hand_on).ok(),
        }
    }

    /// All output until then at the latest. Processes that the verb has left behind may hold the pipe open,
    /// and is not waited for.
    pub(super) fn text(&self, until: Instant) -> String {
        let is_over = || self.listener.as_ref().is_none_or(JoinHandle::is_finished);
        while !is_over() && Instant::now() < until {
            thread::sleep(Duration::from_millis(2));
        }
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
