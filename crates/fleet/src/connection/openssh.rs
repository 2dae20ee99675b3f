//! Hosts over the system's own OpenSSH: its configuration, agent, jump hosts and known host keys.
//!
//! One ssh a host, and in it one channel. A small script ([`bootstrap.sh`](SCRIPT)) takes the
//! program in and starts it, and from then on the channel is the agent's:
//!
//! | the host writes | and is sent |
//! | --- | --- |
//! | `disksmith-fleet host Linux x86_64` | `go SIZE SHA256 yes\|no`, the last for sudo |
//! | `disksmith-fleet ready` | the program, SIZE bytes |
//! | `disksmith-fleet received` | nothing: the agent speaks first |
//! | `disksmith-fleet refused WHY …` | nothing: it is over |
//! | `disksmith-fleet ended STATUS` | nothing: the agent has ended |
//!
//! Nothing is sent while the host reads the program, since its reader may read on. Lines
//! before these, such as those of a chatty shell, are passed over.

use std::io::{BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use linux::exec::spawn_bound_apart;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::connection::errors::{refusal, unreached};
use crate::connection::program::Program;
use crate::connection::transport::{ConnectionError, Transport, Wire, WireEnd};
use crate::hosts::Host;
use crate::kept_pipe::{KeptPart, KeptPipe};
use crate::protocol::{self, SMALL_STACK};

const SCRIPT: &str = include_str!("bootstrap.sh");
/// Prefix of each line of the script that is for us.
const PREFIX: &str = "disksmith-fleet ";
/// Time limit for each step of the host but the first, whose limit the user has set, and the program's way,
/// beyond what ssh itself bounds.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for sending the program. The script gives up after as long.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(900);
/// A host that takes nothing of the program for so long is given up. What is on its way in buffers, some
/// 2 MiB, may be all that a slow line carries in that time.
const STALL_TIMEOUT: Duration = Duration::from_secs(120);
/// The program is sent in pieces of so many bytes.
const PIECE: usize = 1 << 16;
/// Interval at which the signal is polled.
const POLL: Duration = Duration::from_millis(100);
/// Bytes kept from the end of the output of ssh.
const KEPT: usize = 2000;
/// Time limit for an ssh whose channel has closed to report why.
const ERROR_TIMEOUT: Duration = Duration::from_secs(2);

/// Hosts over ssh.
#[derive(Clone, Debug)]
pub(crate) struct OpenSsh {
    /// The configuration; `None` for the user's own.
    pub config: Option<PathBuf>,
    /// User to log in as, where the host names none.
    pub user: Option<String>,
    /// Time limit for a connection to be made.
    pub connect_timeout: Duration,
    /// True where the agent is to be root by sudo.
    pub sudo: bool,
    /// The programs that can be sent. The first that fits a host's processor is.
    pub programs: Vec<Program>,
}

impl OpenSsh {
    /// The command that runs the script on a host.
    ///
    /// A connection on which nothing comes for 15 s is given up, as is one that is not made in time.
    /// No question is asked. Settings of the user's configuration that would interfere with a
    /// channel that carries lines are switched off: forwarding, a command of its own, becoming the
    /// master of other connections. An existing master is used.
    fn command(&self, host: &Host) -> Command {
        let mut command = Command::new("ssh");
        if let Some(config) = &self.config {
            command.arg("-F").arg(config);
        }
        let connect_timeout = self.connect_timeout.as_secs().max(1);
        command.arg("-T");
        for option in [
            "BatchMode=yes",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            "ControlMaster=no",
            "ClearAllForwardings=yes",
            "ForwardAgent=no",
            "ForwardX11=no",
            "PermitLocalCommand=no",
            "RemoteCommand=none",
            "LogLevel=ERROR",
            &format!("ConnectTimeout={connect_timeout}"),
        ] {
            command.arg("-o").arg(option);
        }
        if let Some(port) = host.port {
            command.arg("-p").arg(port.to_string());
        }
        let fallback = self.user.as_ref().filter(|_| !host.address.contains('@'));
        if let Some(user) = host.user.as_ref().or(fallback) {
            command.arg("-l").arg(user);
        }
        // Brackets are for addresses with a port behind them, and ssh knows none.
        let address = host.address.replace(['[', ']'], "");
        command.arg("--").arg(address).arg(one_line());
        command
    }

    /// The program for a host with this processor.
    fn program(&self, host: &Host, system: &str, arch: &str) -> Result<&Program, ConnectionError> {
        if system != "Linux" {
            return Err(ConnectionError::Unfit(format!(
                "{} runs {system}, and disksmith runs on Linux; leave it out with --exclude.",
                host.name
            )));
        }
        let fits = |program: &&Program| {
            // An ARM of version 6 runs what was built for it, which calls itself the same in ELF.
            program.arch == arch || (program.arch == "armv7l" && arch.starts_with("armv"))
        };
        self.programs.iter().find(fits).ok_or_else(|| {
            let have: Vec<&str> = self.programs.iter().map(|program| program.arch).collect();
            ConnectionError::Unfit(format!(
                "{} is {arch}, and the disksmith at hand is for {}; name one that was built for {arch} \
                 with --binary FILE ('make static' builds it on such a host), or leave the host out \
                 with --exclude.",
                host.name,
                have.join(" and ")
            ))
        })
    }
}

impl Transport for OpenSsh {
    fn open(&self, host: &Host, interrupt: &AtomicBool) -> Result<Wire, ConnectionError> {
        let mut ssh = Ssh::start(&mut self.command(host))?;
        let mut talk = Bootstrap {
            host,
            ssh: &mut ssh,
            interrupt,
        };
        let words = talk.step("host", self.connect_timeout + STEP_TIMEOUT)?;
        let (system, arch) = words.split_once(' ').unwrap_or((&words, "unknown"));
        let program = self.program(host, system, arch.trim())?;
        let go = format!(
            "go {} {} {}\n",
            program.bytes.len(),
            program.hash,
            if self.sudo { "yes" } else { "no" }
        );
        talk.write(go.as_bytes())?;
        talk.step("ready", STEP_TIMEOUT)?;
        let input = talk.send(program)?;
        let Ssh { lines, end, .. } = ssh;
        Ok(Wire {
            input: Box::new(input),
            lines,
            end: Box::new(SshEnd {
                end,
                name: host.name.clone(),
                is_static: program.is_static,
            }),
        })
    }
}

/// The script as one word of a login shell's command line.
fn one_line() -> String {
    let mut script = String::new();
    for line in SCRIPT.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        script.push_str(line);
        let goes_on = ["then", "do", "else"]
            .iter()
            .any(|word| line == *word || line.ends_with(&format!(" {word}")));
        script.push_str(if goes_on { " " } else { "; " });
    }
    format!("exec sh -c '{}'", script.trim_end())
}

/// An ssh at work.
struct Ssh {
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    end: ChildEnd,
}

/// The process, and its output.
struct ChildEnd {
    child: Child,
    /// Its exit status, since when its number may be another's.
    status: Option<ExitStatus>,
    errors: Option<KeptPipe>,
}

impl Ssh {
    fn start(command: &mut Command) -> Result<Ssh, ConnectionError> {
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
            // BatchMode is not handed on to the ssh of a jump host: what has no terminal, and no
            // window to ask in, cannot wait for an answer.
            .env("SSH_ASKPASS_REQUIRE", "never");
        // Ctrl-C in a terminal is for this program, which ends the agents first.
        let mut child = spawn_bound_apart(command).map_err(failed)?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut end = ChildEnd {
            child,
            status: None,
            errors: None,
        };
        if let Some(errors) = errors {
            end.errors = Some(KeptPipe::follow(errors, KeptPart::Last(KEPT)).map_err(failed)?);
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
    /// Its exit status; `None` while it runs.
    fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Its last output, and its exit status where it has ended.
    fn last_output(&mut self) -> (String, Option<ExitStatus>) {
        let began = Instant::now();
        while self.ended().is_none() && began.elapsed() < ERROR_TIMEOUT {
            thread::sleep(Duration::from_millis(10));
        }
        let status = self.ended();
        let text = self.errors.as_ref().map(KeptPipe::text);
        (text.unwrap_or_default().trim().to_owned(), status)
    }
}

impl Drop for ChildEnd {
    fn drop(&mut self) {
        if self.status.is_some() {
            return;
        }
        // With it goes what it has started: the ssh to a jump host, a proxy's command.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The end of a wire that an ssh is.
struct SshEnd {
    end: ChildEnd,
    name: String,
    is_static: bool,
}

impl WireEnd for SshEnd {
    fn why(&mut self) -> String {
        let (ssh_output, status) = self.end.last_output();
        let is_missing = ssh_output.contains("not found") || ssh_output.contains("No such file");
        if !self.is_static && (is_missing || ssh_output.contains("GLIBC")) {
            return format!(
                "{} lacks libraries of this disksmith ({ssh_output}); build a static one with 'make \
                 static', and use that.",
                self.name
            );
        }
        match (ssh_output.as_str(), status.and_then(|status| status.code())) {
            ("", Some(code)) => format!("ssh ended with status {code}"),
            ("", None) => String::new(),
            (ssh_output, _) => ssh_output.to_owned(),
        }
    }
}

/// The dialogue with the script.
struct Bootstrap<'a> {
    host: &'a Host,
    ssh: &'a mut Ssh,
    interrupt: &'a AtomicBool,
}

impl Bootstrap<'_> {
    /// Waits for the script to come to a step, and gives its other output.
    fn step(&mut self, step: &str, limit: Duration) -> Result<String, ConnectionError> {
        self.step_while(step, limit, &mut || true)
    }

    /// The same, as long as something continues.
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
                        "{} was silent for {} s while the agent was to be started.",
                        self.host.name,
                        limit.as_secs()
                    )));
                }
            };
            let Some(words) = line.strip_prefix(PREFIX) else {
                continue;
            };
            let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
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
        // ssh itself ends with 255 where something of its own went wrong (ssh(1), EXIT STATUS).
        if code == Some(255) || code.is_none() || step == "host" {
            return ConnectionError::Unreached(unreached(name, &ssh_output));
        }
        ConnectionError::Lost(format!(
            "{name} ended while the agent was started: {ssh_output}."
        ))
    }

    /// Sends a short message.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        let sent = match &mut self.ssh.input {
            Some(input) => input.write_all(bytes).and_then(|()| input.flush()),
            None => Ok(()),
        };
        sent.map_err(|_| self.ended("ready"))
    }

    /// Sends the program, on a thread of its own: a host that stops reading would hold this one.
    /// Gives the input back when the host has all of it.
    fn send(&mut self, program: &Program) -> Result<ChildStdin, ConnectionError> {
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
        // Where this fails, ssh is killed, the pipe breaks, and the thread ends.
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

#[cfg(test)]
mod tests;
