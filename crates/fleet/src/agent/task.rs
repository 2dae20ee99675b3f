//! A verb that runs on the host: another process of this program in a separate process group, or another program.

use std::fs::{self, DirBuilder};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ledger::{Filter, Ledger};
use linux::exec::spawn_bound;
use linux::{Root, process};
use record::Run;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::agent::pipe::{LineHandler, VerbOutput};
use crate::buffered_pipe::{BufferedPart, BufferedPipe};
use crate::protocol;
use crate::protocol::rounds::Round;
use crate::protocol::{EndedBy, EndedVerb, MAX_STREAM_BYTES, VerbRequest};
use crate::rounds;

/// Time for a verb to end after a loss of the connection, before it is killed: its I/O then ends within 10 s, and its
/// next start undoes the rest.
pub(super) const END_TIMEOUT: Duration = Duration::from_millis(2500);
/// Interval at which the verb's end, and requests to end it, are polled.
const POLL: Duration = Duration::from_millis(20);
/// Time limit for the last output of a verb that has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);
/// Prefix of the name of the folder with a verb's ledger, which exists until the verb has ended.
const LEDGER_FOLDER_PREFIX: &str = "disksmith-agent-ledger.";

/// A running verb.
pub(super) struct VerbTask {
    stop: Arc<StopRequest>,
    /// Standard input of the verb; `None` unless it is interactive.
    input: Option<ChildStdin>,
}

/// True for a verb that reports all results while it runs.
pub(super) fn is_interactive(order: &VerbRequest) -> bool {
    !order.program && order.args.first().is_some_and(|verb| verb == rounds::VERB)
}

/// The request to end a verb: its cause, and the time until the verb is killed.
#[derive(Default)]
struct StopRequest(Mutex<Option<(EndedBy, Duration)>>);

impl StopRequest {
    fn get(&self) -> Option<(EndedBy, Duration)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests the end of the verb. If the connection is lost while a verb is ending, the time is shortened.
    fn ask(&self, by: EndedBy, grace: Duration) {
        let mut request = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = match *request {
            None => true,
            Some((before, _)) => before == EndedBy::Order && by == EndedBy::Loss,
        };
        if counts {
            *request = Some((by, grace));
        }
    }
}

impl VerbTask {
    /// Starts a verb; `done` is called when it has ended. With a handler for its lines it is interactive: its lines
    /// are then not part of the answer.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(
        order: VerbRequest,
        root: &Root,
        on_line: Option<LineHandler>,
        done: impl FnOnce(EndedVerb) + Send + 'static,
    ) -> std::io::Result<VerbTask> {
        let stop = Arc::<StopRequest>::default();
        let request = Arc::clone(&stop);
        let private = PrivateLedger::new(root, &order);
        // A bound process dies with the thread that started it, so the thread waits for it.
        let (sender, started) = std::sync::mpsc::channel();
        let run = move || match RunningProcess::start(&order, private.as_ref(), on_line) {
            Ok((running, input)) => {
                let _ = sender.send(Ok(input));
                done(running.end(order, &request, private));
            }
            Err(why) => {
                let _ = sender.send(Err(why));
            }
        };
        thread::Builder::new().name("task".to_owned()).spawn(run)?;
        match started.recv() {
            Ok(Ok(input)) => Ok(VerbTask { stop, input }),
            Ok(Err(why)) => Err(why),
            Err(_) => Err(std::io::Error::other("its thread ended")),
        }
    }

    /// Sends a round to the verb.
    pub(super) fn send(&mut self, round: &Round) {
        if let Some(input) = &mut self.input {
            // If it has ended, that is reported.
            let _ = protocol::send(input, round);
        }
    }

    /// Requests the end of the verb, and kills it if it takes longer than `grace`.
    pub(super) fn stop(&self, by: EndedBy, grace: Duration) {
        self.stop.ask(by, grace);
    }
}

/// A process that the agent runs, with its output.
struct RunningProcess {
    child: Child,
    out: VerbOutput,
    err: Option<BufferedPipe>,
    began: Instant,
}

impl RunningProcess {
    /// Starts the process. Returns it, and its standard input where the verb is interactive.
    fn start(
        order: &VerbRequest,
        private: Option<&PrivateLedger>,
        on_line: Option<LineHandler>,
    ) -> std::io::Result<(RunningProcess, Option<ChildStdin>)> {
        // The program's file may be deleted; this link still leads to it.
        let mut command = match (order.program, order.args.split_first()) {
            (true, Some((program, args))) => {
                let mut command = Command::new(program);
                command.args(args);
                command
            }
            _ => {
                let mut command = Command::new("/proc/self/exe");
                command.arg0("disksmith").args(&order.args);
                command
            }
        };
        command
            .stdin(match &on_line {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(private) = private {
            command.env("DISKSMITH_LEDGER", private.ledger());
        }
        let mut child = spawn_bound(&mut command)?;
        let out = match on_line {
            Some(on_line) => VerbOutput::forward_lines(child.stdout.take(), on_line),
            None => VerbOutput::Kept(child.stdout.take().and_then(keep)),
        };
        let err = child.stderr.take().and_then(keep);
        let input = child.stdin.take();
        let running = RunningProcess {
            child,
            out,
            err,
            began: Instant::now(),
        };
        Ok((running, input))
    }

    /// Waits for the end of the process, or ends it on request.
    fn end(
        mut self,
        order: VerbRequest,
        request: &StopRequest,
        private: Option<PrivateLedger>,
    ) -> EndedVerb {
        let mut requested_at: Option<Instant> = None;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) => {}
                Err(_) => break None,
            }
            match (requested_at, request.get()) {
                (None, Some(_)) => {
                    requested_at = Some(Instant::now());
                    self.signal(Signal::TERM);
                }
                (Some(since), Some((_, grace))) if since.elapsed() > grace => {
                    self.signal(Signal::KILL);
                    // A process that waits for a disk without an answer does not end before the disk answers.
                    break self.child.try_wait().ok().flatten();
                }
                _ => {}
            }
            thread::sleep(POLL);
        };
        let by = request.get().map_or(EndedBy::Itself, |(by, _)| by);
        // A blocked process writes nothing more, and the receiver of the answer has little time.
        let timeout = match requested_at {
            Some(_) => OUTPUT_TIMEOUT / 4,
            None => OUTPUT_TIMEOUT,
        };
        let until = Instant::now() + timeout;
        let out = self.out.text(until);
        // The output of a program is text, not a document of disksmith.
        let answer = match (order.program, serde_json::from_str(&out)) {
            (false, Ok(document)) => document,
            _ => Value::String(out),
        };
        EndedVerb {
            name: name(&order),
            order,
            by,
            status: status.and_then(|status: ExitStatus| status.code()),
            seconds: self.began.elapsed().as_secs_f64(),
            answer,
            stderr: self
                .err
                .as_ref()
                .map(BufferedPipe::text)
                .unwrap_or_default(),
            runs: private.map(|private| private.runs()).unwrap_or_default(),
        }
    }

    fn signal(&self, signal: Signal) {
        // Its process id is not reused before it is waited for.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

/// Reads and keeps the beginning of a verb's output; `None` if no thread can be started.
fn keep(pipe: impl Into<OwnedFd>) -> Option<BufferedPipe> {
    BufferedPipe::follow(pipe, BufferedPart::First(MAX_STREAM_BYTES)).ok()
}

/// Name of an answer: its fleet run and the host's name, without characters that are unsuitable for a file name.
fn name(order: &VerbRequest) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_".contains(c) {
            c
        } else {
            '_'
        }
    };
    let word = |text: &str| -> String { text.chars().take(60).map(plain).collect() };
    // An earlier answer must not be replaced, as when a run is repeated after a loss.
    let own = std::process::id();
    format!("{}.{}.{own}", word(&order.fleet), word(&order.host))
}

/// A ledger for a single verb, in memory if possible. The runs of `bench` are sent with its answer to the ledger of
/// the controlling host, and nothing remains on this host.
///
/// Verbs that resume use the host's own ledger, where their checkpoints must be found again.
struct PrivateLedger {
    folder: PathBuf,
}

impl PrivateLedger {
    /// Creates a ledger for a verb that measures; `None` for other verbs, and if there is no suitable folder.
    fn new(root: &Root, order: &VerbRequest) -> Option<PrivateLedger> {
        if order.program || order.args.first().is_none_or(|verb| verb != "bench") {
            return None;
        }
        let own = process::own(root).ok()?;
        let name = format!("{LEDGER_FOLDER_PREFIX}{}.{}", own.pid, own.started);
        places().into_iter().find_map(|place| {
            remove_left(root, &place);
            let folder = place.join(&name);
            let made = DirBuilder::new().mode(0o700).create(&folder);
            made.is_ok().then_some(PrivateLedger { folder })
        })
    }

    fn ledger(&self) -> PathBuf {
        self.folder.join("ledger.db")
    }

    /// The runs in the ledger.
    fn runs(&self) -> Vec<Run> {
        if !self.ledger().exists() {
            return Vec::new();
        }
        let Ok(ledger) = Ledger::open(self.ledger()) else {
            return Vec::new();
        };
        let listed = ledger.list(&Filter::default()).unwrap_or_default();
        let load = |id: &str| ledger.load(id).ok();
        listed
            .iter()
            .filter_map(|run| load(run.id.as_str()))
            .collect()
    }
}

impl Drop for PrivateLedger {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Folders for such a ledger, those in memory first.
fn places() -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|place| place.is_absolute())
        .into_iter()
        .collect();
    places.extend(["/dev/shm", "/run"].map(PathBuf::from));
    places.push(std::env::temp_dir());
    places
}

/// Removes the ledgers of killed agents, as far as this user may.
fn remove_left(root: &Root, place: &Path) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| {
            let (pid, started) = name.strip_prefix(LEDGER_FOLDER_PREFIX)?.split_once('.')?;
            Some((pid.parse().ok()?, started.parse::<u64>().ok()?))
        });
        let Some((pid, started)) = owner else {
            continue;
        };
        let is_there = match process::of(root, pid) {
            Ok(found) => found.is_some_and(|process| process.started == started),
            Err(_) => true,
        };
        if !is_there {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_s_name_is_good_for_a_file() {
        let order = VerbRequest {
            fleet: "20260101-000000-abcd".to_owned(),
            host: "../etc/p@ss:wd".to_owned(),
            args: Vec::new(),
            program: false,
        };
        let name = name(&order);
        assert!(
            name.starts_with("20260101-000000-abcd.___etc_p_ss_wd."),
            "{name}"
        );
    }

    #[test]
    fn a_loss_leaves_less_time_than_an_order_and_an_order_no_more_than_a_loss() {
        let request = StopRequest::default();
        assert_eq!(request.get(), None);
        let (order, loss) = (Duration::from_secs(60), END_TIMEOUT);
        request.ask(EndedBy::Order, order);
        request.ask(EndedBy::Order, Duration::ZERO);
        assert_eq!(request.get(), Some((EndedBy::Order, order)));
        request.ask(EndedBy::Loss, loss);
        request.ask(EndedBy::Order, order);
        assert_eq!(request.get(), Some((EndedBy::Loss, loss)));
    }

    #[test]
    fn files_of_a_killed_agent_are_removed_and_those_of_a_running_one_stay() {
        let place = tempfile::tempdir().unwrap();
        let root = Root::host();
        let own = process::own(&root).unwrap();
        let mine = format!("{LEDGER_FOLDER_PREFIX}{}.{}", own.pid, own.started);
        let dead = format!(
            "{LEDGER_FOLDER_PREFIX}{}.{}",
            own.pid,
            own.started.wrapping_sub(1)
        );
        for name in [
            mine.as_str(),
            dead.as_str(),
            "disksmith-agent-ledger.x",
            "other",
        ] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        remove_left(&root, place.path());
        assert!(!place.path().join(dead).exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3);
    }
}
