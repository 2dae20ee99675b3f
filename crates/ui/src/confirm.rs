//! Asks the user to confirm a plan.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::termios::{QueueSelector, tcflush};

use crate::exit::{ExitClass as _, Failure};

/// The word that confirms a plan.
const CONFIRMATION_WORD: &str = "yes";
/// Interval at which the signal is polled while an answer is waited for.
const POLL: Duration = Duration::from_millis(100);

/// Checks that the user can be asked. `done` is the participle for messages, as in `nothing is written`.
///
/// # Errors
/// Refused, where the user cannot be asked.
pub fn require_terminal(done: &str) -> Result<(), Failure> {
    check_can_ask(io::stdin().is_terminal(), io::stderr().is_terminal(), done)
}

/// The same check: `is_heard` if an answer can be read, `is_seen` if the question is visible.
fn check_can_ask(is_heard: bool, is_seen: bool, done: &str) -> Result<(), Failure> {
    let why = match (is_heard, is_seen) {
        (true, true) => return Ok(()),
        (false, _) => String::new(),
        (true, false) => ", and standard error, on which it is shown, is not a terminal".to_owned(),
    };
    Err(Failure::refused(format!(
        "nothing is {done} before the plan is confirmed{why}; give --yes to confirm it"
    )))
}

/// Discards typed input that was not read yet, so that it does not answer a later question.
fn forget_typed(from: impl AsFd) {
    // Only a terminal has such a buffer.
    let _ = tcflush(from, QueueSelector::IFlush);
}

/// Asks for confirmation after this notice; true if the user confirms.
///
/// # Errors
/// Refused, if the user cannot be asked, or a signal arrived instead of an answer.
pub fn confirm(notice: &str, done: &str, interrupt: &AtomicBool) -> Result<bool, Failure> {
    require_terminal(done)?;
    forget_typed(io::stdin());
    let notice = crate::charset::printable(notice);
    let _ = write!(
        io::stderr(),
        "{notice} Write {CONFIRMATION_WORD} to continue: "
    );
    // On a thread of its own, since a read continues after a signal. It ends with the process.
    let (sender, heard) = channel();
    let listen = move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // Where the receiver is gone, it is not needed.
        let _ = sender.send(read.is_ok() && line.trim() == CONFIRMATION_WORD);
    };
    thread::Builder::new()
        .name("question".to_owned())
        .spawn(listen)
        .refused()?;
    loop {
        match heard.recv_timeout(POLL) {
            Ok(agreed) => return Ok(agreed),
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
            Err(RecvTimeoutError::Timeout) if interrupt.load(Relaxed) => {
                return Err(Failure::refused(format!("interrupted; nothing was {done}")));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    #[test]
    fn a_question_that_cannot_be_seen_or_answered_is_not_put() {
        assert!(check_can_ask(true, true, "terminated").is_ok());
        for (is_heard, is_seen, reason) in [
            (
                false,
                true,
                "nothing is terminated before the plan is confirmed",
            ),
            (
                true,
                false,
                "standard error, on which it is shown, is not a terminal",
            ),
        ] {
            let why = check_can_ask(is_heard, is_seen, "terminated").unwrap_err();
            let why = why.error().to_string();
            assert!(why.contains(reason) && why.contains("--yes"), "{why}");
        }
    }

    #[test]
    fn input_from_before_the_question_does_not_answer_it() {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let mut terminal = File::from(open(name, flags, Mode::empty()).unwrap());
        let mut keys = File::from(keys);
        let is_typed = |terminal: &File, seconds: i64| {
            let limit = Timespec {
                tv_sec: seconds,
                tv_nsec: 0,
            };
            let mut ready = [PollFd::new(terminal, PollFlags::IN)];
            poll(&mut ready, Some(&limit)).unwrap() == 1
        };
        keys.write_all(b"yes\n").unwrap();
        assert!(is_typed(&terminal, 60));
        forget_typed(&terminal);
        assert!(!is_typed(&terminal, 0));
        keys.write_all(b"no\n").unwrap();
        let mut answer = [0; 3];
        terminal.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"no\n");
        // Where there is no terminal, nothing is lost either.
        forget_typed(File::open("/dev/null").unwrap());
    }
}
