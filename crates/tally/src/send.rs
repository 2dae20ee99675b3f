//! `tally send`: a producer for shells and tests.

use std::fs::File;
use std::io::{self, BufRead, Write as _};
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use crate::args::SendArgs;
use crate::identity::unique_name;
use crate::source::gearman::protocol::{Stream, kind, request};
use crate::source::{SourceAddress, gearman, http};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Failure, Outcome};
use ui::format::count;

/// Maximum bytes of a datagram, small enough for every network.
const MAX_DATAGRAM_BYTES: usize = 1400;
/// Maximum number of jobs that gearmand has not confirmed.
const MAX_UNCONFIRMED_JOBS: usize = 1000;
/// Attempts at a request, one second apart.
const ATTEMPTS: u32 = 30;

/// Sends events, and returns when they are taken.
pub(crate) fn send(args: &SendArgs, context: &mut Context) -> Outcome {
    let mut destination = Destination::open(args)?;
    let mut batch = Batch::default();
    let mut add = |line: &[u8]| -> anyhow::Result<()> {
        batch.add(line);
        match batch.lines >= args.batch.get() {
            true => destination.send(&mut batch),
            false => Ok(()),
        }
    };
    match &args.events[..] {
        [] => {
            for line in io::stdin().lock().split(b'\n') {
                add(&line.midway()?).midway()?;
            }
        }
        events => events
            .iter()
            .try_for_each(|event| add(event.as_bytes()))
            .midway()?,
    }
    destination.send(&mut batch).midway()?;
    destination.finish().midway()?;
    context.print(&format!(
        "Sent {} in {}.\n",
        count(batch.sent as usize, "event"),
        count(batch.number as usize, "payload")
    ))?;
    Ok(CommandEnd::Done)
}

/// Lines that are sent together.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    lines: usize,
    sent: u64,
    /// Number of payloads that were sent.
    number: u64,
}

impl Batch {
    fn add(&mut self, line: &[u8]) {
        if !line.is_empty() {
            self.text.extend_from_slice(line);
            self.text.push(b'\n');
            self.lines += 1;
        }
    }
}

/// Destination of events.
enum Destination {
    File(File),
    Statsd(UdpSocket),
    Http {
        url: String,
        name: String,
        token: Option<String>,
    },
    Gearman {
        stream: Box<Stream<std::net::TcpStream>>,
        function: String,
        name: String,
        unconfirmed: usize,
    },
}

impl Destination {
    fn open(args: &SendArgs) -> Result<Destination, Failure> {
        let name = args.key.clone().unwrap_or_else(unique_name);
        match &args.to {
            SourceAddress::Stdin => Err(Failure::refused(
                "events are sent to a file or a server; to print them, use echo",
            )),
            #[cfg(feature = "kafka")]
            SourceAddress::Kafka(_) => Err(Failure::refused(
                "events are produced to Kafka by its own clients, such as kafka-console-producer.sh",
            )),
            SourceAddress::File(path) => append(path).refused().map(Destination::File),
            SourceAddress::Statsd(place) => statsd(place).refused().map(Destination::Statsd),
            SourceAddress::Http(place) => {
                to_http(place, name, args.token_file.as_deref()).refused()
            }
            SourceAddress::Gearman(place) => to_gearman(place, name).refused(),
        }
    }

    fn send(&mut self, batch: &mut Batch) -> anyhow::Result<()> {
        if batch.text.is_empty() {
            return Ok(());
        }
        let number = batch.number;
        match self {
            // One write, so that lines of several processes do not mix.
            Destination::File(file) => file.write_all(&batch.text)?,
            Destination::Statsd(socket) => {
                let lines: Vec<&[u8]> = batch.text.split_inclusive(|byte| *byte == b'\n').collect();
                let mut datagram = Vec::new();
                for line in lines {
                    if !datagram.is_empty() && datagram.len() + line.len() > MAX_DATAGRAM_BYTES {
                        socket.send(&datagram)?;
                        datagram.clear();
                    }
                    datagram.extend_from_slice(line);
                }
                socket.send(&datagram)?;
            }
            Destination::Http { url, name, token } => post(
                url,
                &format!("{name}-{number}"),
                token.as_deref(),
                &batch.text,
            )?,
            Destination::Gearman {
                stream,
                function,
                name,
                unconfirmed,
            } => {
                let unique = format!("{name}-{number}");
                let mut packet = Vec::new();
                request(
                    &mut packet,
                    kind::SUBMIT_JOB_BG,
                    &[function.as_bytes(), unique.as_bytes(), &batch.text],
                );
                stream.send(&packet)?;
                *unconfirmed += 1;
                confirm(stream, unconfirmed, MAX_UNCONFIRMED_JOBS)?;
            }
        }
        batch.sent += batch.lines as u64;
        batch.number += 1;
        batch.lines = 0;
        batch.text.clear();
        Ok(())
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        match self {
            Destination::Gearman {
                stream,
                unconfirmed,
                ..
            } => confirm(stream, unconfirmed, 0),
            Destination::File(_) | Destination::Statsd(_) | Destination::Http { .. } => Ok(()),
        }
    }
}

fn append(path: &Path) -> anyhow::Result<File> {
    let file = File::options().append(true).create(true).open(path);
    file.with_context(|| format!("{} cannot be written", path.display()))
}

fn statsd(place: &str) -> anyhow::Result<UdpSocket> {
    let place = if place.starts_with(':') {
        format!("127.0.0.1{place}")
    } else {
        place.to_owned()
    };
    let socket = UdpSocket::bind("0.0.0.0:0").or_else(|_| UdpSocket::bind("[::]:0"))?;
    socket
        .connect(&place)
        .with_context(|| format!("statsd://{place} cannot be reached"))?;
    Ok(socket)
}

fn to_http(
    place: &http::HttpAddress,
    name: String,
    token: Option<&Path>,
) -> anyhow::Result<Destination> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|error| anyhow::anyhow!(linux::remedy::unread(path, &error)))
    };
    let token = token.map(read).transpose()?;
    Ok(Destination::Http {
        url: format!("http://{}/events", place.address()?),
        name,
        token: token.map(|token| token.trim().to_owned()),
    })
}

fn to_gearman(place: &gearman::GearmanFunction, name: String) -> anyhow::Result<Destination> {
    let stream = place
        .connect()
        .with_context(|| format!("gearmand at {} cannot be reached", place.server))?;
    Ok(Destination::Gearman {
        stream: Box::new(Stream::new(stream)),
        function: place.function.clone(),
        name,
        unconfirmed: 0,
    })
}

/// Waits until at most `most` jobs are unconfirmed.
fn confirm(
    stream: &mut Stream<std::net::TcpStream>,
    unconfirmed: &mut usize,
    most: usize,
) -> anyhow::Result<()> {
    while *unconfirmed > most {
        let response = stream.next()?;
        match response.kind {
            kind::JOB_CREATED => *unconfirmed -= 1,
            kind::ERROR => anyhow::bail!(
                "gearmand answered: {}",
                String::from_utf8_lossy(response.data).replace('\0', ": ")
            ),
            _ => {}
        }
    }
    Ok(())
}

/// Posts until it is committed: under one key it counts once, however often it is sent.
fn post(url: &str, key: &str, token: Option<&str>, text: &[u8]) -> anyhow::Result<()> {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let mut request = ureq::post(url)
            .config()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .build()
            .header("Idempotency-Key", key);
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        match request.send(text) {
            Ok(answer) if answer.status() == 200 => return Ok(()),
            Ok(mut answer) => {
                let status = answer.status().as_u16();
                last = format!(
                    "{status}: {}",
                    answer
                        .body_mut()
                        .read_to_string()
                        .unwrap_or_default()
                        .trim()
                );
                anyhow::ensure!(matches!(status, 408 | 429 | 500..), "{url} answers {last}");
            }
            Err(error) => last = error.to_string(),
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    anyhow::bail!("{url} does not take the events after {ATTEMPTS} tries: {last}")
}
