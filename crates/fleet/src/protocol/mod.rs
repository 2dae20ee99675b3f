//! Messages between `fleet` and the agent on a host: JSON, one message a line.
//!
//! Both sides are the same program in the same version, since one sends the other; an unknown message is an error.

pub(crate) mod rounds;

use std::io::{self, BufRead, Read as _, Write};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use record::{Cloud, Run};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use rounds::{Round, RoundMessage};

/// The version of these messages.
pub(crate) const PROTOCOL: u32 = 1;
/// Interval at which each side sends a keep-alive message.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Time without a message after which the agent considers the connection lost. Together with the time that its verb
/// has to end, this is less than 10 s after the last message.
pub(crate) const SILENCE: Duration = Duration::from_secs(6);
/// Maximum length of a line, in bytes. The longest message is an answer, of [`MAX_STREAM_BYTES`] for each stream, with
/// its runs.
const MAX_LINE_BYTES: u64 = 128 << 20;
/// Maximum number of lines that are read ahead: a host that sends a lot must not fill the memory.
const MAX_PENDING_MESSAGES: usize = 16;
/// Maximum number of bytes of a command's output that are kept.
pub(crate) const MAX_STREAM_BYTES: usize = 8 << 20;
/// Stack size of a thread that only forwards lines, in bytes: there are several for each host.
pub(crate) const SMALL_STACK: usize = 128 << 10;

/// Messages of `fleet`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToAgent {
    /// Keep-alive message.
    Alive,
    /// Request for facts about the host.
    Facts,
    /// Order to run a verb.
    Run(VerbRequest),
    /// Order to run the verb that measures round by round, and to pass on its messages.
    Begin(VerbRequest),
    /// Order to measure a round.
    Round(Round),
    /// Order to end the running verb.
    Stop {
        /// Time to undo its changes, in milliseconds, before it is killed.
        grace_ms: u64,
    },
    /// Request for the kept answer of this name.
    Collect(String),
    /// The answer with this name is in a ledger: the agent need not keep it any longer.
    Forget(String),
    /// End of the session.
    End,
}

/// Order to run a verb.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct VerbRequest {
    /// The run of the fleet that it belongs to.
    pub fleet: String,
    /// Name of the host in `fleet`.
    pub host: String,
    /// The verb and its arguments, or a program's.
    pub args: Vec<String>,
    /// True if `args` are a program of the host and not a verb.
    #[serde(default)]
    pub program: bool,
}

/// Messages of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromAgent {
    /// First message of the agent.
    Hello(AgentHello),
    /// Keep-alive message.
    Alive,
    /// Facts about the host.
    Facts(Box<HostFacts>),
    /// Message of the verb that measures round by round.
    Round(RoundMessage),
    /// The verb has ended.
    Ended(Box<EndedVerb>),
    /// A kept answer.
    Kept(Box<EndedVerb>),
    /// Failure of a request, as a sentence.
    Failed(String),
    /// Another run or race of a fleet measures on the host.
    Busy(String),
}

/// First message of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentHello {
    /// The version of its messages.
    pub protocol: u32,
    /// The version of the program.
    pub disksmith: String,
    /// Names of the answers that are not yet collected.
    pub left: Vec<String>,
}

/// Facts about a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostFacts {
    /// The host's own name.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// The processor's architecture.
    pub arch: String,
    /// Number of processors that a process may use.
    pub cores: u32,
    /// Size of memory, in bytes.
    pub memory_bytes: u64,
    /// Id of its boot.
    pub boot: String,
    /// The host's clock, in milliseconds since 1970 (UTC).
    pub clock_ms: i64,
    /// Facts from its cloud's metadata service.
    pub cloud: Option<Cloud>,
    /// Disks of the host.
    pub disks: Vec<DiskFacts>,
}

/// A disk of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiskFacts {
    /// The kernel's name for it.
    pub name: String,
    /// Size of the disk in bytes.
    pub size_bytes: u64,
    /// Model of the disk.
    pub model: Option<String>,
    /// Serial number of the disk, on EBS the volume's id.
    pub serial: Option<String>,
}

/// Cause of a verb's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndedBy {
    /// The verb ended by itself, done or failed.
    Itself,
    /// `fleet` ordered the end.
    Order,
    /// The connection was lost.
    Loss,
}

/// A verb that has ended, and its output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EndedVerb {
    /// Name of the answer until it is collected.
    pub name: String,
    /// The order that started the verb.
    pub order: VerbRequest,
    /// Cause of its end.
    pub by: EndedBy,
    /// Exit status of the verb; `None` if a signal killed it or it never started.
    pub status: Option<i32>,
    /// Run time, in seconds.
    pub seconds: f64,
    /// Answer of the verb: its JSON document, or its text if it printed no document.
    pub answer: Value,
    /// Standard error of the verb.
    pub stderr: String,
    /// The runs that it measured.
    pub runs: Vec<Run>,
}

/// Sends a message.
///
/// # Errors
/// When the connection is lost.
pub(crate) fn send<M: Serialize>(to: &mut (impl Write + ?Sized), message: &M) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Parses a message.
///
/// # Errors
/// A sentence, if the line is not a message.
pub(crate) fn parse<M: DeserializeOwned>(line: &str) -> Result<M, String> {
    serde_json::from_str(line).map_err(|why| {
        let begins: String = line.chars().take(80).collect();
        format!("'{begins}' is not a message of the agent's protocol ({why})")
    })
}

/// The lines from the other side, read on a separate thread. The channel ends with the lines.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn lines(mut from: impl BufRead + Send + 'static) -> io::Result<Receiver<String>> {
    let (sender, lines) = sync_channel(MAX_PENDING_MESSAGES);
    let read = move || {
        while let Some(line) = next_line(&mut from) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("lines".to_owned())
        .stack_size(SMALL_STACK)
        .spawn(read)?;
    Ok(lines)
}

/// The next line without its end; `None` after the last complete one, or if a line is too long.
fn next_line(from: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    from.by_ref()
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut line)
        .ok()?;
    // An incomplete line does not count: the connection was lost in the middle of it.
    (line.pop() == Some(b'\n')).then(|| String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back() {
        let order = VerbRequest {
            fleet: "f".to_owned(),
            host: "db1".to_owned(),
            args: vec!["bench".to_owned(), "a 'b' \"c\"\n$(d)".to_owned()],
            program: false,
        };
        let cases = [
            ToAgent::Alive,
            ToAgent::Run(order),
            ToAgent::Stop { grace_ms: 500 },
            ToAgent::Forget("x".to_owned()),
            ToAgent::End,
        ];
        let mut wire = Vec::new();
        for message in &cases {
            send(&mut wire, message).unwrap();
        }
        let lines = lines(io::Cursor::new(wire)).unwrap();
        let heard: Vec<ToAgent> = lines.iter().map(|line| parse(&line).unwrap()).collect();
        assert_eq!(heard, cases);
    }

    #[test]
    fn half_a_line_is_no_message() {
        let lines = lines(io::Cursor::new(b"one\n\ntwo\nthr".to_vec())).unwrap();
        let heard: Vec<String> = lines.iter().collect();
        assert_eq!(heard, ["one", "", "two"]);
    }

    #[test]
    fn an_invalid_message_is_reported() {
        let why = parse::<FromAgent>("Welcome to db1!").unwrap_err();
        assert!(why.contains("'Welcome to db1!' is not a message"), "{why}");
        assert!(parse::<FromAgent>(r#"{"dance":1}"#).is_err());
    }
}
