//! The dialogue with the script that runs first on a host.

use std::io::Write as _;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use super::process::Ssh;
use crate::connection::errors::{refusal, unreached};
use crate::connection::program::Program;
use crate::connection::transport::ConnectionError;
use crate::hosts::Host;
use crate::protocol::SMALL_STACK;

/// Prefix of the script's lines that belong to the dialogue.
const PREFIX: &str = "disksmith-fleet ";
/// Time limit for each step of the host except the connection, which has a limit set by the user, and the upload;
/// longer than ssh's own limits.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for sending the program; the script has the same limit.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(900);
/// Time without progress of the upload after which a host is given up. A slow connection may need that long for the
/// buffers in between, some 2 MiB.
const STALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Size of the segments in which the program is sent, in bytes.
const PIECE: usize = 1 << 16;
/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(100);

/// The dialogue with the script.
pub(super) struct Bootstrap<'a> {
    pub(super) host: &'a Host,
    pub(super) ssh: &'a mut Ssh,
    /// Command that shows why the host cannot be reached.
    pub(super) verbose: String,
    pub(super) interrupt: &'a AtomicBool,
}

impl Bootstrap<'_> {
    /// Waits for the script's first line. Returns the processor, as reported by `uname -m`.
    pub(super) fn arch(&mut self, connect_timeout: Duration) -> Result<String, ConnectionError> {
        let system = self.step("host", connect_timeout + STEP_TIMEOUT)?;
        arch_of(self.host, &system).map(str::to_owned)
    }

    /// Waits until the script reaches a step. Returns its other output.
    pub(super) fn step(&mut self, step: &str, limit: Duration) -> Result<String, ConnectionError> {
        self.step_while(step, limit, &mut || true)
    }

    /// Waits like [`Bootstrap::step`], and stops when `goes_on` returns false.
    fn step_while(
        &mut self,
        step: &str,
        limit: Duration,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<String, ConnectionError> {
        let until = Instant::now() + limit;
        loop {
            if self.interrupt.load(Relaxed) {
                return Err(ConnectionError::Interrupted);
            }
            let line = match self.ssh.lines.recv_timeout(POLL) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(step)),
                Err(RecvTimeoutError::Timeout) if !goes_on() => {
                    return Err(ConnectionError::Unreached(format!(
                        "{} took nothing of the program for {} s.",
                        self.host.name,
                        STALL_TIMEOUT.as_secs()
                    )));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => continue,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(ConnectionError::Unreached(format!(
                        "{} was silent for {} s at the start of the connection.",
                        self.host.name,
                        limit.as_secs()
                    )));
                }
            };
            let Some(reply) = line.strip_prefix(PREFIX) else {
                continue;
            };
            let (word, rest) = reply.split_once(' ').unwrap_or((reply, ""));
            if word == step {
                return Ok(rest.to_owned());
            }
            if word == "refused" {
                return Err(ConnectionError::Unfit(refusal(&self.host.name, rest)));
            }
        }
    }

    /// Reason why the connection ended before a step.
    fn ended(&mut self, step: &str) -> ConnectionError {
        let (ssh_output, status) = self.ssh.end.last_output();
        let name = &self.host.name;
        let code = status.and_then(|status| status.code());
        // ssh exits with 255 for errors of its own (ssh(1), EXIT STATUS).
        if code == Some(255) || code.is_none() || step == "host" {
            return ConnectionError::Unreached(unreached(name, &self.verbose, &ssh_output));
        }
        ConnectionError::Lost(format!(
            "{name} ended while the agent was started: {ssh_output}."
        ))
    }

    /// Sends a short message.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let sent = match &mut self.ssh.input {
            Some(input) => input.write_all(bytes).and_then(|()| input.flush()),
            None => Ok(()),
        };
        sent.map_err(|_| self.ended("ready"))
    }

    /// Sends the program on a separate thread, since a host that stops reading would block this one. Returns the input
    /// when the host has received everything.
    pub(super) fn send(&mut self, program: &Program) -> Result<ChildStdin, ConnectionError> {
        let lost = |name: &str| {
            ConnectionError::Lost(format!("{name} was lost before the program was sent."))
        };
        let Some(mut input) = self.ssh.input.take() else {
            return Err(lost(&self.host.name));
        };
        let bytes = Arc::clone(&program.bytes);
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let send = move || {
            for piece in bytes.chunks(PIECE) {
                input.write_all(piece)?;
                counted.fetch_add(piece.len(), Relaxed);
            }
            input.flush().map(|()| input)
        };
        let sender = thread::Builder::new()
            .stack_size(SMALL_STACK)
            .spawn(send)
            .map_err(|why| ConnectionError::Lost(format!("no thread could be started: {why}.")))?;
        // On a failure ssh is killed, the pipe breaks, and the thread ends.
        let mut moved = (0, Instant::now());
        let mut goes_on = || {
            let now = taken.load(Relaxed);
            if now != moved.0 {
                moved = (now, Instant::now());
            }
            moved.1.elapsed() < STALL_TIMEOUT
        };
        self.step_while("received", UPLOAD_TIMEOUT, &mut goes_on)?;
        match sender.join() {
            Ok(Ok(input)) => Ok(input),
            _ => Err(lost(&self.host.name)),
        }
    }
}

/// The processor of a host, from its report of system and processor.
pub(super) fn arch_of<'a>(host: &Host, reply: &'a str) -> Result<&'a str, ConnectionError> {
    let (system, arch) = reply.split_once(' ').unwrap_or((reply, "unknown"));
    if system != "Linux" {
        return Err(ConnectionError::Unfit(format!(
            "{} runs {system}, and disksmith runs on Linux; leave it out with --exclude.",
            host.name
        )));
    }
    Ok(arch.trim())
}
