//! Hosts over the system's OpenSSH, with its configuration, agent, jump hosts and known host keys.
//!
//! There is one ssh process for each host, with one channel. A small script ([`bootstrap.sh`](SCRIPT)) receives the
//! program and starts it; from then on the channel is the agent's:
//!
//! | the host writes | reply |
//! | --- | --- |
//! | `disksmith-fleet host Linux x86_64` | `go SIZE SHA256 yes\|no`, the last for sudo |
//! | `disksmith-fleet ready` | the program, SIZE bytes |
//! | `disksmith-fleet received` | nothing: the agent speaks first |
//! | `disksmith-fleet refused WHY …` | nothing: it is over |
//! | `disksmith-fleet ended STATUS` | nothing: the agent has ended |
//!
//! Nothing is sent while the host reads the program, since its reader may read ahead. Lines before these, such as
//! those printed by a login shell, are skipped.
//!
//! To read counters alone, another script ([`counters.sh`](COUNTERS)) prints them, and no program is sent:
//!
//! | the host writes | reply |
//! | --- | --- |
//! | `disksmith-fleet host Linux x86_64` | a line with any content |
//! | the counters, and `disksmith-fleet counted` | the next line, to request them again |

mod bootstrap;
mod process;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bootstrap::{Bootstrap, STEP_TIMEOUT};
use linux::exec;
use process::{ChildEnd, Ssh};

use crate::connection::program::Program;
use crate::connection::transport::{ConnectionError, Transport, Wire, WireEnd};
use crate::hosts::Host;

const SCRIPT: &str = include_str!("bootstrap.sh");
const COUNTERS: &str = include_str!("counters.sh");

/// Hosts over ssh.
#[derive(Clone, Debug)]
pub(crate) struct OpenSsh {
    /// The configuration; `None` for the user's own.
    pub config: Option<PathBuf>,
    /// User to log in as, if the host names none.
    pub user: Option<String>,
    /// Time limit for a connection.
    pub connect_timeout: Duration,
    /// True if the agent runs as root by sudo.
    pub sudo: bool,
    /// The programs that can be sent. The first one for the host's processor is used.
    pub programs: Vec<Program>,
}

impl OpenSsh {
    /// The command that runs a script on a host.
    ///
    /// A connection without data for 15 s is closed, as is one that is not established in time. ssh does not prompt.
    /// Settings of the user's configuration that would interfere with a channel of lines are disabled: forwarding, a
    /// remote command, becoming the master of other connections. An existing master is used.
    fn command(&self, host: &Host, script: &str) -> Command {
        let mut command = Command::new("ssh");
        command.args(self.options(host));
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
        command.arg("--").arg(address(host)).arg(one_line(script));
        command
    }

    /// The options of ssh for this host.
    fn options(&self, host: &Host) -> Vec<OsString> {
        let mut options: Vec<OsString> = Vec::new();
        if let Some(config) = &self.config {
            options.extend(["-F".into(), config.into()]);
        }
        if let Some(port) = host.port {
            options.extend(["-p".into(), port.to_string().into()]);
        }
        let fallback = self.user.as_ref().filter(|_| !host.address.contains('@'));
        if let Some(user) = host.user.as_ref().or(fallback) {
            options.extend(["-l".into(), user.into()]);
        }
        options
    }

    /// The command that shows why a host cannot be reached.
    fn verbose(&self, host: &Host) -> String {
        let mut words = self.options(host);
        words.insert(0, "-v".into());
        words.push(address(host).into());
        exec::line("ssh".as_ref(), &words)
    }

    /// The program for a host with this processor.
    fn program(&self, host: &Host, arch: &str) -> Result<&Program, ConnectionError> {
        let fits = |program: &&Program| {
            // An ARM of version 6 runs a program built for it, which has the same machine type in ELF.
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
        let mut ssh = Ssh::start(&mut self.command(host, SCRIPT))?;
        let mut talk = Bootstrap {
            host,
            ssh: &mut ssh,
            verbose: self.verbose(host),
            interrupt,
        };
        let arch = talk.arch(self.connect_timeout)?;
        let program = self.program(host, &arch)?;
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
        let end: Box<dyn WireEnd> = match program.is_static {
            true => Box::new(end),
            false => Box::new(DynamicProgramEnd {
                end,
                name: host.name.clone(),
            }),
        };
        Ok(Wire {
            input: Box::new(input),
            lines,
            end,
        })
    }

    fn counters(&self, host: &Host, interrupt: &AtomicBool) -> Result<Wire, ConnectionError> {
        let mut ssh = Ssh::start(&mut self.command(host, COUNTERS))?;
        let mut talk = Bootstrap {
            host,
            ssh: &mut ssh,
            verbose: self.verbose(host),
            interrupt,
        };
        talk.arch(self.connect_timeout)?;
        let Ssh { input, lines, end } = ssh;
        let input: Box<dyn Write + Send> = match input {
            Some(input) => Box::new(input),
            None => Box::new(std::io::sink()),
        };
        Ok(Wire {
            input,
            lines,
            end: Box::new(end),
        })
    }
}

/// Address of a host for ssh. Brackets are for addresses followed by a port, which ssh does not accept.
fn address(host: &Host) -> String {
    host.address.replace(['[', ']'], "")
}

/// A script, quoted as one word of a login shell's command line.
fn one_line(text: &str) -> String {
    let mut script = String::new();
    for line in text.lines().map(str::trim) {
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

/// The end of a connection to an uploaded program that needs libraries of the host.
struct DynamicProgramEnd {
    end: ChildEnd,
    /// Name of the host.
    name: String,
}

impl WireEnd for DynamicProgramEnd {
    fn end_reason(&mut self) -> String {
        let why = self.end.end_reason();
        let signs = ["not found", "No such file", "GLIBC"];
        if !signs.iter().any(|sign| why.contains(sign)) {
            return why;
        }
        format!(
            "{} lacks libraries of this disksmith ({why}); build a static one with 'make static', \
             and use that.",
            self.name
        )
    }
}

impl WireEnd for ChildEnd {
    fn end_reason(&mut self) -> String {
        let (ssh_output, status) = self.last_output();
        match (ssh_output.as_str(), status.and_then(|status| status.code())) {
            ("", Some(code)) => format!("ssh ended with status {code}"),
            ("", None) => String::new(),
            (ssh_output, _) => ssh_output.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
