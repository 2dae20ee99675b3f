//! The agent, which `fleet` runs on a host. It reads orders from standard input and writes answers to standard output,
//! one message a line (see [`talk`](crate::protocol)).
//!
//! It removes its own file as soon as it runs, so that nothing remains even after `kill -9`. When the input ends, or
//! no message arrives for [`SILENCE`], the connection counts as lost: it ends the running verb, keeps the answer for
//! the next connection, and exits. All of that takes less than 10 s.

mod claim;
mod facts;
mod pipe;
mod spool;
mod task;

use std::io::{self, BufReader, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use linux::Root;

use crate::protocol;
use crate::protocol::{
    AgentHello, EndedBy, FromAgent, HEARTBEAT_INTERVAL, PROTOCOL, SILENCE, SMALL_STACK, ToAgent,
    parse,
};
use claim::MeasuringClaim;
use pipe::LineHandler;
use spool::Spool;
use task::{END_TIMEOUT, VerbTask, is_interactive};
use ui::context::Context;
use ui::exit::{CommandEnd, ExitClass as _, Outcome};
use ui::signals;

/// Prefix of the name of the folder that the program is uploaded to.
const FOLDER_PREFIX: &str = "disksmith-agent.";
/// Interval at which timers are checked.
const POLL: Duration = Duration::from_millis(100);
/// Maximum number of messages that wait for a slow connection before keep-alive messages are dropped.
const MAX_PENDING_MESSAGES: usize = 16;

/// Runs the agent until it is told to end, or the connection is lost.
pub(crate) fn agent(context: &Context) -> Outcome {
    remove_own_file();
    let interrupt = signals::interrupt_flag().refused()?;
    let (events, arriving) = channel();
    let lines = protocol::lines(BufReader::new(io::stdin())).refused()?;
    let hands_on = events.clone();
    let hand_on = move || {
        for line in lines {
            let event = parse(&line).map_or_else(Event::Invalid, Event::Message);
            if hands_on.send(event).is_err() {
                return;
            }
        }
        let _ = hands_on.send(Event::Disconnected);
    };
    small_thread("input", hand_on).refused()?;
    let writer = MessageWriter::open(events.clone()).refused()?;
    let spool = Spool::of_user();
    writer.send(FromAgent::Hello(AgentHello {
        protocol: PROTOCOL,
        disksmith: env!("CARGO_PKG_VERSION").to_owned(),
        left: spool.names(),
    }));
    let mut agent = Agent {
        root: context.root.clone(),
        events,
        writer,
        spool,
        task: None,
        last_received: Instant::now(),
        last_sent: Instant::now(),
    };
    agent.serve(&arriving, &interrupt);
    agent.end(&arriving);
    Ok(CommandEnd::Done)
}

/// Removes the program's file and its folder, if the folder was created for it. A running program keeps its file until
/// it ends.
fn remove_own_file() {
    let Ok(own) = std::env::current_exe() else {
        return;
    };
    let folder = own.parent().filter(|folder| is_own_folder(folder));
    if let Some(folder) = folder {
        let _ = std::fs::remove_file(&own);
        let _ = std::fs::remove_dir(folder);
    }
}

fn is_own_folder(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(FOLDER_PREFIX))
}

/// Starts a thread with a small stack.
fn small_thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.stack_size(SMALL_STACK).spawn(work).map(drop)
}

/// Events for the agent.
enum Event {
    /// A message of `fleet`.
    Message(ToAgent),
    /// A line of `fleet` that is not a message.
    Invalid(String),
    /// `fleet` closed the connection.
    Disconnected,
    /// A line from the verb that measures round by round.
    Round(String),
    /// A verb has ended.
    Ended(Box<protocol::EndedVerb>),
}

/// Writer of messages on a separate thread, since a blocked connection must not delay the end.
struct MessageWriter {
    messages: Sender<FromAgent>,
    waiting: Arc<AtomicUsize>,
}

impl MessageWriter {
    fn open(events: Sender<Event>) -> io::Result<MessageWriter> {
        let (messages, arriving) = channel::<FromAgent>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        let write = move || {
            let mut out = io::stdout();
            for message in arriving {
                let sent = protocol::send(&mut out, &message);
                counted.fetch_sub(1, Relaxed);
                if sent.is_err() {
                    let _ = events.send(Event::Disconnected);
                    return;
                }
            }
        };
        small_thread("output", write)?;
        Ok(MessageWriter { messages, waiting })
    }

    fn send(&self, message: FromAgent) {
        self.waiting.fetch_add(1, Relaxed);
        // If the connection is lost, an event reports it.
        let _ = self.messages.send(message);
    }

    /// Sends a message unless many are already waiting.
    fn send_unless_busy(&self, message: FromAgent) {
        if self.waiting.load(Relaxed) < MAX_PENDING_MESSAGES {
            self.send(message);
        }
    }

    /// Waits for a short time until all messages are sent.
    fn finish(&self) {
        let until = Instant::now() + Duration::from_secs(1);
        while self.waiting.load(Relaxed) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = io::stdout().flush();
    }
}

/// A running agent.
struct Agent {
    root: Root,
    events: Sender<Event>,
    writer: MessageWriter,
    spool: Spool,
    task: Option<VerbTask>,
    last_received: Instant,
    last_sent: Instant,
}

impl Agent {
    /// Serves until the connection ends.
    fn serve(&mut self, arriving: &Receiver<Event>, interrupt: &AtomicBool) {
        loop {
            match arriving.recv_timeout(POLL) {
                Ok(Event::Message(ToAgent::End) | Event::Disconnected)
                | Err(RecvTimeoutError::Disconnected) => {
                    return;
                }
                Ok(Event::Message(message)) => {
                    self.last_received = Instant::now();
                    self.handle(message);
                }
                Ok(Event::Invalid(why)) => {
                    self.last_received = Instant::now();
                    self.writer.send(FromAgent::Failed(why));
                }
                Ok(Event::Round(line)) => {
                    let sent = parse(&line).map_or_else(FromAgent::Failed, FromAgent::Round);
                    self.writer.send(sent);
                }
                Ok(Event::Ended(ended)) => {
                    self.task = None;
                    self.keep(&ended);
                    self.writer.send(FromAgent::Ended(ended));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if interrupt.load(Relaxed) || self.last_received.elapsed() > SILENCE {
                return;
            }
            if self.last_sent.elapsed() >= HEARTBEAT_INTERVAL {
                self.writer.send_unless_busy(FromAgent::Alive);
                self.last_sent = Instant::now();
            }
        }
    }

    fn handle(&mut self, message: ToAgent) {
        match message {
            // The caller handles the end.
            ToAgent::Alive | ToAgent::End => {}
            ToAgent::Facts => {
                let facts = facts::facts(&self.root);
                self.writer.send(FromAgent::Facts(Box::new(facts)));
            }
            ToAgent::Run(order) => self.run(order, None),
            ToAgent::Begin(order) => {
                let events = self.events.clone();
                let on_line = move |line| {
                    let _ = events.send(Event::Round(line));
                };
                self.run(order, Some(Box::new(on_line)));
            }
            ToAgent::Round(round) => {
                // If it has ended meanwhile, that is reported.
                if let Some(task) = &mut self.task {
                    task.send(&round);
                }
            }
            ToAgent::Stop { grace_ms } => {
                if let Some(task) = &self.task {
                    task.stop(EndedBy::Order, Duration::from_millis(grace_ms));
                }
            }
            ToAgent::Collect(name) => self.writer.send(match self.spool.get(&name) {
                Ok(ended) => FromAgent::Kept(Box::new(ended)),
                Err(why) => FromAgent::Failed(why),
            }),
            ToAgent::Forget(name) => self.spool.forget(&name),
        }
    }

    /// Runs a verb. With `on_line`, which handles its lines, the verb is interactive.
    fn run(&mut self, order: protocol::VerbRequest, on_line: Option<LineHandler>) {
        if self.task.is_some() {
            let why = "something is running on this host already; it must end first";
            self.writer.send(FromAgent::Failed(why.to_owned()));
            return;
        }
        let claim = match MeasuringClaim::of(&order) {
            Ok(claim) => claim,
            Err(why) => {
                self.writer.send(FromAgent::Busy(why));
                return;
            }
        };
        let events = self.events.clone();
        let done = move |ended| {
            drop(claim);
            let _ = events.send(Event::Ended(Box::new(ended)));
        };
        let what = match order.program {
            true => order.args.first().cloned().unwrap_or_default(),
            false => "the verb".to_owned(),
        };
        match VerbTask::start(order, &self.root, on_line, done) {
            Ok(task) => self.task = Some(task),
            Err(why) => self.writer.send(FromAgent::Failed(format!(
                "{what} could not be started: {why}"
            ))),
        }
    }

    /// Keeps an answer until it is collected. An interactive verb has already reported all its results.
    fn keep(&self, ended: &protocol::EndedVerb) {
        if !is_interactive(&ended.order) {
            self.spool.keep(ended);
        }
    }

    /// Ends the running verb, and keeps its answer for the next connection.
    fn end(&mut self, arriving: &Receiver<Event>) {
        if let Some(task) = self.task.take() {
            task.stop(EndedBy::Loss, END_TIMEOUT);
            let until = Instant::now() + END_TIMEOUT + Duration::from_secs(1);
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                match arriving.recv_timeout(left) {
                    Ok(Event::Ended(ended)) => {
                        self.keep(&ended);
                        break;
                    }
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
        self.writer.finish();
    }
}
