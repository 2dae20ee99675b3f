//! The ssh process and its output.

use std::io::BufReader;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use linux::exec::spawn_bound_apart;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::buffered_pipe::{BufferedPart, BufferedPipe};
use crate::connection::transport::ConnectionError;
use crate::protocol;

/// Maximum number of bytes kept from the end of ssh's output.
const MAX_OUTPUT_BYTES: usize = 2000;
/// Time limit for an ssh process with a closed channel to report the reason.
const ERROR_TIMEOUT: Duration = Duration::from_secs(2);

/// A running ssh process.
pub(super) struct Ssh {
    pub(super) input: Option<ChildStdin>,
    pub(super) lines: Receiver<String>,
    pub(super) end: ChildEnd,
}

/// The process, and its output.
pub(super) struct ChildEnd {
    child: Child,
    /// Exit status of the process once it has ended; its process id may be reused then.
    status: Option<ExitStatus>,
    errors: Option<BufferedPipe>,
}

impl Ssh {
    pub(super) fn start(command: &mut Command) -> Result<Ssh, ConnectionError> {
        let failed = |why: std::io::Error| {
            ConnectionError::Unreached(match why.kind() {
                std::io::ErrorKind::NotFound => {
                    "the program ssh is not installed, or not on the PATH.".to_owned()
                }
                _ => format!("ssh could not be started: {why}."),
            })
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // BatchMode is not passed to the ssh of a jump host: without a terminal and a display it cannot wait for
            // an answer.
            .env("SSH_ASKPASS_REQUIRE", "never");
        // Ctrl-C in a terminal is handled by this program, which ends the agents first.
        let mut child = spawn_bound_apart(command).map_err(failed)?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut end = ChildEnd {
            child,
            status: None,
            errors: None,
        };
        if let Some(errors) = errors {
            end.errors = Some(
                BufferedPipe::follow(errors, BufferedPart::Last(MAX_OUTPUT_BYTES))
                    .map_err(failed)?,
            );
        }
        let output: Box<dyn std::io::Read + Send> = match output {
            Some(output) => Box::new(output),
            None => Box::new(std::io::empty()),
        };
        let lines = protocol::lines(BufReader::new(output)).map_err(failed)?;
        Ok(Ssh { input, lines, end })
    }
}

impl ChildEnd {
    /// Exit status of the process; `None` while it runs.
    fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Last output of the process, and its exit status where it has ended.
    pub(super) fn last_output(&mut self) -> (String, Option<ExitStatus>) {
        let began = Instant::now();
        while self.ended().is_none() && began.elapsed() < ERROR_TIMEOUT {
            thread::sleep(Duration::from_millis(10));
        }
        let status = self.ended();
        let text = self.errors.as_ref().map(BufferedPipe::text);
        (text.unwrap_or_default().trim().to_owned(), status)
    }
}

impl Drop for ChildEnd {
    fn drop(&mut self) {
        if self.status.is_some() {
            return;
        }
        // This also ends its children: the ssh to a jump host, a proxy command.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
