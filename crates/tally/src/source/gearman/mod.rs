//! A worker of gearmand: many jobs are grabbed on one connection, and completed when their events are in every store.
//!
//! When the connection ends, gearmand gives jobs that are not completed to another worker. So no job is reported as
//! failed: gearmand does not retry failed jobs. A job's identity is its unique id, handle and gearmand's process id:
//! producers reuse unique ids, and each gearmand process numbers its handles from the beginning.

pub(crate) mod protocol;

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use self::protocol::{Stream, kind, parts, request};
use super::{Delivery, Identity, Intake, PollResult, Source};
use crate::store::Key;

/// Maximum number of jobs that are requested at once.
const MAX_GRABS: usize = 256;
/// Bytes of jobs beyond which fewer are requested at once: a job has up to 64 MiB.
const MAX_GRABBED_BYTES: usize = 4 << 20;
/// Maximum number of uncompleted jobs on the connection.
const MAX_JOBS: usize = 100_000;
/// Timeout for an answer of gearmand.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A function of a gearmand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GearmanFunction {
    /// `host:port`.
    pub server: String,
    /// Name of the function.
    pub function: String,
}

impl GearmanFunction {
    /// Parses `host:port/function`, the part of an address after `gearman://`.
    ///
    /// # Errors
    /// If the text names no function.
    pub fn parse(text: &str) -> Result<GearmanFunction, String> {
        let wrong = || {
            format!(
                "'gearman://{text}' names no function; write it as gearman://host:4730/function"
            )
        };
        let (server, function) = text.split_once('/').ok_or_else(wrong)?;
        if server.is_empty() || function.is_empty() || function.contains(char::is_whitespace) {
            return Err(wrong());
        }
        let has_port = server
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        Ok(GearmanFunction {
            server: if has_port {
                server.to_owned()
            } else {
                format!("{server}:4730")
            },
            function: function.to_owned(),
        })
    }

    /// Connects to gearmand.
    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in self.server.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(TIMEOUT))?;
                    stream.set_write_timeout(Some(TIMEOUT))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// A worker.
#[derive(Debug)]
pub struct Gearman {
    place: GearmanFunction,
    address: String,
    worker: Option<Worker>,
    unidentified: u64,
}

/// A connection with its jobs.
#[derive(Debug)]
struct Worker {
    stream: Stream<TcpStream>,
    /// Process id of gearmand.
    instance: Vec<u8>,
    asleep: bool,
    /// Number of jobs to request at once.
    grab: usize,
    /// Handles of the jobs since the last batch.
    taken: Vec<Box<[u8]>>,
    /// Handles of the jobs of batches that are not committed.
    sealed: VecDeque<(u64, Vec<Box<[u8]>>)>,
}

struct Job {
    handle: Box<[u8]>,
    /// Identity; `None` without a unique id: a handle and a process id alone can recur, as in a restarted container.
    key: Option<Key>,
    lines: Vec<u8>,
}

impl Gearman {
    /// A worker of a function.
    pub fn new(place: GearmanFunction) -> Gearman {
        Gearman {
            address: format!("gearman://{}/{}", place.server, place.function),
            place,
            worker: None,
            unidentified: 0,
        }
    }

    fn step(&mut self, wait: Duration, intake: &mut dyn Intake) -> io::Result<PollResult> {
        let worker = match &mut self.worker {
            Some(worker) => worker,
            None => self.worker.insert(Worker::connect(&self.place)?),
        };
        if worker.under_way() >= MAX_JOBS {
            std::thread::sleep(wait.min(Duration::from_millis(20)));
            return Ok(PollResult::Idle);
        }
        if worker.asleep && !worker.woken(wait)? {
            return Ok(PollResult::Idle);
        }
        let jobs = worker.grab()?;
        let deliveries: Vec<Delivery<'_>> = jobs
            .iter()
            .map(|job| Delivery {
                identity: job.key.clone().map_or(Identity::None, Identity::Key),
                lines: &job.lines,
            })
            .collect();
        if deliveries.is_empty() {
            return Ok(PollResult::Idle);
        }
        if intake.take(&deliveries).is_err() {
            // gearmand gives its jobs to another worker.
            self.worker = None;
            return Ok(PollResult::Idle);
        }
        self.unidentified += jobs.iter().filter(|job| job.key.is_none()).count() as u64;
        worker.taken.extend(jobs.into_iter().map(|job| job.handle));
        Ok(PollResult::More)
    }
}

impl Worker {
    fn connect(place: &GearmanFunction) -> io::Result<Worker> {
        // The administrative protocol is text, on a connection of its own.
        let mut admin = place.connect()?;
        admin.write_all(b"getpid\n")?;
        let mut instance = Vec::new();
        BufReader::new(admin.take(256)).read_until(b'\n', &mut instance)?;
        if !instance.starts_with(b"OK ") {
            // Without it, jobs of a restarted gearmand could be taken for earlier ones.
            return Err(io::Error::other(
                "it does not report its process (getpid); it is no gearmand",
            ));
        }
        let mut stream = Stream::new(place.connect()?);
        let mut hello = Vec::new();
        request(&mut hello, kind::CAN_DO, &[place.function.as_bytes()]);
        stream.send(&hello)?;
        Ok(Worker {
            stream,
            instance: instance.trim_ascii().to_vec(),
            asleep: false,
            grab: 1,
            taken: Vec::new(),
            sealed: VecDeque::new(),
        })
    }

    fn under_way(&self) -> usize {
        self.taken.len()
            + self
                .sealed
                .iter()
                .map(|(_, handles)| handles.len())
                .sum::<usize>()
    }

    /// Waits until gearmand says that there are jobs.
    fn woken(&mut self, wait: Duration) -> io::Result<bool> {
        if self.stream.buffered()?.is_none() {
            let limit = wait.try_into().unwrap_or_default();
            match poll(
                &mut [PollFd::new(self.stream.get(), PollFlags::IN)],
                Some(&limit),
            ) {
                Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
                Ok(_) | Err(_) => self.stream.fill()?,
            }
        }
        while self.stream.buffered()?.is_some() {
            if self.stream.next()?.kind == kind::NOOP {
                self.asleep = false;
            }
        }
        Ok(!self.asleep)
    }

    /// Requests many jobs at once, and takes all answers.
    fn grab(&mut self) -> io::Result<Vec<Job>> {
        let mut grabs = Vec::new();
        for _ in 0..self.grab {
            request(&mut grabs, kind::GRAB_JOB_UNIQ, &[]);
        }
        self.stream.send(&grabs)?;
        let (mut jobs, mut answers): (Vec<Job>, usize) = (Vec::new(), 0);
        while answers < self.grab {
            let Worker {
                stream,
                instance,
                asleep,
                ..
            } = self;
            let response = stream.next()?;
            match response.kind {
                kind::NO_JOB => *asleep = true,
                kind::JOB_ASSIGN_UNIQ => jobs.push(job(response.data, instance)?),
                kind::NOOP => continue,
                kind::ERROR => {
                    let text = String::from_utf8_lossy(response.data).replace('\0', ": ");
                    return Err(io::Error::other(format!("gearmand answered: {text}")));
                }
                _ => continue,
            }
            answers += 1;
        }
        let bytes: usize = jobs.iter().map(|job| job.lines.len()).sum();
        self.grab = match bytes > MAX_GRABBED_BYTES {
            true => (self.grab / 2).max(1),
            false => (self.grab * 2).min(MAX_GRABS),
        };
        if self.asleep {
            let mut sleep = Vec::new();
            request(&mut sleep, kind::PRE_SLEEP, &[]);
            self.stream.send(&sleep)?;
        }
        Ok(jobs)
    }

    /// Completes the jobs of all batches up to this one.
    fn complete(&mut self, batch: u64) -> io::Result<()> {
        let mut packets = Vec::new();
        while self
            .sealed
            .front()
            .is_some_and(|(number, _)| *number <= batch)
        {
            let (_, handles) = self.sealed.pop_front().unwrap_or_default();
            for handle in &handles {
                request(&mut packets, kind::WORK_COMPLETE, &[handle, b""]);
            }
        }
        self.stream.send(&packets)
    }
}

fn job(data: &[u8], instance: &[u8]) -> io::Result<Job> {
    let [handle, _function, unique, lines] = parts(data)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "gearmand sent a broken job"))?;
    Ok(Job {
        key: (!unique.is_empty()).then(|| Key::new("gearman", &[unique, handle, instance])),
        handle: handle.into(),
        lines: lines.to_vec(),
    })
}

impl Source for Gearman {
    fn address(&self) -> &str {
        &self.address
    }

    fn poll(&mut self, wait: Duration, intake: &mut dyn Intake) -> PollResult {
        self.step(wait, intake).unwrap_or_else(|error| {
            // Jobs that were not completed are delivered again, and are then completed without being counted again.
            self.worker = None;
            PollResult::Down(error.to_string())
        })
    }

    fn sealed(&mut self, batch: u64) {
        if let Some(worker) = &mut self.worker {
            let handles = std::mem::take(&mut worker.taken);
            worker.sealed.push_back((batch, handles));
        }
    }

    fn committed(&mut self, batch: u64) {
        if let Some(worker) = &mut self.worker
            && worker.complete(batch).is_err()
        {
            self.worker = None;
        }
    }

    fn rewind(&mut self) {
        self.worker = None;
    }

    fn unidentified(&self) -> u64 {
        self.unidentified
    }
}

impl Drop for Worker {
    /// Waits until gearmand has read the completions: closing a connection with unread data resets it, and could
    /// discard them.
    fn drop(&mut self) {
        let _ = self.stream.get().shutdown(Shutdown::Write);
        let _ = self
            .stream
            .get()
            .set_read_timeout(Some(Duration::from_secs(2)));
        while self.stream.fill().is_ok() && self.stream.next().is_ok() {}
    }
}
