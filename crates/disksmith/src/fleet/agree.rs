//! Asks the user whether a plan shall be done.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::failure::{Failure, Standing as _};

/// The word that agrees to a plan.
const AGREED: &str = "yes";
/// How often it is looked whether the user wants the end in place of an answer.
const LOOK: Duration = Duration::from_millis(100);

/// Makes sure that somebody can be asked. `done` is what would be done, as in `nothing is written`.
///
/// # Errors
/// Refused, where nobody can.
pub(super) fn must_be_askable(done: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "nothing is {done} before somebody has agreed to the plan; say --yes if you have"
    )))
}

/// Whether the user agrees, after these words.
///
/// # Errors
/// Refused, where a signal came in place of an answer.
pub(super) fn is_agreed(words: &str, done: &str, interrupt: &AtomicBool) -> Result<bool, Failure> {
    let words = crate::context::printable(words);
    let _ = write!(io::stderr(), "{words} Write {AGREED} to go on: ");
    // On a thread of its own, since a read goes on after a signal. It ends with the process.
    let (sender, heard) = channel();
    let listen = move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // Where nobody listens any more, nobody needs it.
        let _ = sender.send(read.is_ok() && line.trim() == AGREED);
    };
    thread::Builder::new()
        .name("question".to_owned())
        .spawn(listen)
        .refused()?;
    loop {
        match heard.recv_timeout(LOOK) {
            Ok(agreed) => return Ok(agreed),
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
            Err(RecvTimeoutError::Timeout) if interrupt.load(Relaxed) => {
                return Err(Failure::refused(format!("interrupted; nothing was {done}")));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
