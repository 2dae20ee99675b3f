//! Standard input: counted once if it is read to its end.

use std::io::Read as _;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::{Delivery, Identity, Intake, PollResult, Source};
use crate::lines::Lines;

/// Standard input.
#[derive(Debug, Default)]
pub struct Stdin {
    lines: Lines,
}

impl Stdin {
    /// Standard input from its current position on.
    pub fn new() -> Stdin {
        Stdin::default()
    }
}

impl Source for Stdin {
    fn address(&self) -> &str {
        "-"
    }

    fn poll(&mut self, wait: Duration, intake: &mut dyn Intake) -> PollResult {
        let input = std::io::stdin();
        let limit = wait.try_into().unwrap_or_default();
        match poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return PollResult::Idle,
            Ok(_) | Err(_) => {}
        }
        let read = self.lines.fill(|room| input.lock().read(room));
        let (lines, polled) = match read {
            Ok(0) => (self.lines.rest(), PollResult::End),
            Ok(_) => (self.lines.whole_lines(), PollResult::More),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                return PollResult::Idle;
            }
            Err(error) => return PollResult::Down(error.to_string()),
        };
        let delivery = Delivery {
            identity: Identity::None,
            lines,
        };
        match intake.take(&[delivery]) {
            Ok(()) => {
                self.lines.consume();
                polled
            }
            Err(_) => PollResult::Idle,
        }
    }

    fn rewind(&mut self) {}
}
