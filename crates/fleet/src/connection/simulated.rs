//! Simulated hosts: threads with agents that answer like real ones, without ssh.

mod racing;

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::connection::transport::{COUNTERS_END_LINE, ConnectionError, Transport, Wire, WireEnd};
use crate::hosts::Host;
use crate::protocol;
use crate::protocol::{
    AgentHello, EndedBy, EndedVerb, FromAgent, HEARTBEAT_INTERVAL, PROTOCOL, SILENCE, SMALL_STACK,
    ToAgent, VerbRequest,
};

pub(crate) use racing::LATE_HOST_TIMEOUT;

/// The earlier run whose answers hosts have kept.
pub(crate) const EARLIER_RUN: &str = "20200101-000000-aaaa";

/// Transport to simulated hosts. The name of a host decides how it behaves: `dead…` is not reached, `mute…` is lost on
/// the first order, `busy…` is being measured by another run, and `left…` has kept an answer. [`racing`] describes
/// their races.
#[derive(Default)]
pub(crate) struct SimulatedTransport {
    /// Number of connections to each host, by its name.
    met: Mutex<BTreeMap<String, usize>>,
}

impl SimulatedTransport {
    /// Number of attempted connections to a host.
    pub(crate) fn tried(&self, name: &str) -> usize {
        self.met.lock().unwrap().get(name).copied().unwrap_or(0)
    }
}

/// Makes this number of hosts.
pub(crate) fn hosts(count: usize) -> Vec<Host> {
    let host = |at: usize| Host {
        name: format!("h{at}"),
        address: format!("h{at}"),
        ..Host::default()
    };
    (0..count).map(host).collect()
}

impl Transport for SimulatedTransport {
    fn open(&self, host: &Host, _: &AtomicBool) -> Result<Wire, ConnectionError> {
        self.connect(host, serve)
    }

    fn counters(&self, host: &Host, _: &AtomicBool) -> Result<Wire, ConnectionError> {
        self.connect(host, |wire, name, _| count(wire, name))
    }
}

impl SimulatedTransport {
    /// Connects to a host. The closure runs on the host's side, with the connection, the host's name, and the number
    /// of the connection.
    fn connect(
        &self,
        host: &Host,
        work: impl FnOnce(UnixStream, &str, usize) + Send + 'static,
    ) -> Result<Wire, ConnectionError> {
        let nth = {
            let mut met = self.met.lock().unwrap();
            let count = met.entry(host.name.clone()).or_default();
            *count += 1;
            *count
        };
        if host.name.starts_with("dead") {
            return Err(ConnectionError::Unreached(format!(
                "{} was not reached.",
                host.name
            )));
        }
        if nth > 1 && host.name.starts_with("gone") {
            return Err(ConnectionError::Unreached(format!(
                "{} is gone.",
                host.name
            )));
        }
        let (near, far) = UnixStream::pair().unwrap();
        let name = host.name.clone();
        let agent = thread::Builder::new().stack_size(SMALL_STACK);
        agent.spawn(move || work(far, &name, nth)).unwrap();
        let lines = protocol::lines(BufReader::new(near.try_clone().unwrap())).unwrap();
        Ok(Wire {
            input: Box::new(Input(near)),
            lines,
            end: Box::new(SilentEnd),
        })
    }
}

/// The input of a host, which ends when it is dropped, although the reader of the host's lines has the same socket.
struct Input(UnixStream);

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.0.shutdown(Shutdown::Write).unwrap_or_default();
    }
}

/// End of a connection without a reason.
struct SilentEnd;

impl WireEnd for SilentEnd {
    fn end_reason(&mut self) -> String {
        String::new()
    }
}

/// Message that a verb has ended.
fn ended(name: String, order: VerbRequest, answer: Value) -> FromAgent {
    FromAgent::Ended(Box::new(EndedVerb {
        name,
        order,
        by: EndedBy::Itself,
        status: Some(0),
        seconds: 1.0,
        answer,
        stderr: String::new(),
        runs: Vec::new(),
    }))
}

/// An answer of an earlier run, as large as one of `bench`.
fn earlier_answer(name: String, host: &str) -> FromAgent {
    let order = VerbRequest {
        fleet: EARLIER_RUN.to_owned(),
        host: host.to_owned(),
        args: vec!["devices".to_owned()],
        program: false,
    };
    match ended(name, order, json!({ "text": "x".repeat(50_000) })) {
        FromAgent::Ended(ended) => FromAgent::Kept(ended),
        other => other,
    }
}

/// Serves as an agent. Like a real one, it considers the connection lost after a silence.
fn serve(mut wire: UnixStream, name: &str, nth: usize) {
    let is_mute = name.starts_with("mute");
    let left = name
        .starts_with("left")
        .then(|| format!("{EARLIER_RUN}.{name}.1"));
    let lines = protocol::lines(BufReader::new(wire.try_clone().unwrap())).unwrap();
    let hello = AgentHello {
        protocol: PROTOCOL,
        disksmith: env!("CARGO_PKG_VERSION").to_owned(),
        left: left.into_iter().collect(),
    };
    // The reader of the lines has the same socket, so that it must be shut down.
    let cut = wire.try_clone().unwrap();
    let cut = || cut.shutdown(Shutdown::Both).unwrap_or_default();
    let mut send =
        |message: FromAgent| protocol::send(&mut wire as &mut dyn Write, &message).is_ok();
    send(FromAgent::Hello(hello));
    let mut last = Instant::now();
    let mut received = Instant::now();
    loop {
        let pause = HEARTBEAT_INTERVAL.saturating_sub(last.elapsed());
        let is_open = match lines.recv_timeout(pause) {
            Ok(line) => match receive(&line, &mut received) {
                ToAgent::End => return cut(),
                _ if is_mute => return cut(),
                ToAgent::Facts => send(FromAgent::Facts(Box::new(racing::facts(name, nth)))),
                ToAgent::Begin(_) | ToAgent::Run(_) if name.starts_with("busy") => send(
                    FromAgent::Busy("another run or race is measuring".to_owned()),
                ),
                ToAgent::Begin(_) => send(racing::ready(name)),
                ToAgent::Round(round) => match racing::measured(name, nth, round) {
                    racing::ScriptedReply::Sends(message) => send(*message),
                    racing::ScriptedReply::Hangs => true,
                    racing::ScriptedReply::IsLost => return cut(),
                },
                ToAgent::Stop { .. } => send(racing::stopped(name)),
                ToAgent::Collect(answer) => send(earlier_answer(answer, name)),
                ToAgent::Run(order) => {
                    let devices = vec!["x".repeat(60); 50];
                    let answer = json!({ "command": "devices", "devices": devices });
                    send(ended(order.host.clone(), order, answer))
                }
                _ => true,
            },
            Err(RecvTimeoutError::Timeout) if received.elapsed() > SILENCE => return,
            Err(RecvTimeoutError::Timeout) => {
                last = Instant::now();
                send(FromAgent::Alive)
            }
            Err(RecvTimeoutError::Disconnected) => false,
        };
        if !is_open {
            return;
        }
    }
}

/// Parses a message, and notes the time.
fn receive(line: &str, received: &mut Instant) -> ToAgent {
    *received = Instant::now();
    protocol::parse(line).unwrap()
}

/// Answers each line with the counters of a host with four disks.
fn count(mut wire: UnixStream, name: &str) {
    let lines = protocol::lines(BufReader::new(wire.try_clone().unwrap())).unwrap();
    let began = Instant::now();
    for _ in lines {
        if name.starts_with("mute") {
            break;
        }
        let seconds = began.elapsed().as_secs_f64();
        let count = (seconds * 1234.5678) as u64;
        let disk = |at| {
            let counts = format!("{count} 0 {count} {count} {count} 0 {count} {count} 0 1 1");
            format!("/sys/class/block/nvme{at}n1/stat:{counts}\n")
        };
        let text = format!(
            "/proc/uptime:{seconds:.2} 1.00\n/proc/loadavg:1.00 2.00 3.00 1/2 3\n\
             /proc/net/dev:eth0: {count} 0 0 0 0 0 0 0 {count} 0 0 0 0 0 0 0\n{}{COUNTERS_END_LINE}\n",
            (0..4).map(disk).collect::<String>()
        );
        if wire.write_all(text.as_bytes()).is_err() {
            break;
        }
    }
    wire.shutdown(Shutdown::Both).unwrap_or_default();
}
