//! Runs external programs: argument lists, time limits, and the program's standard error in the error.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Time limit of a program without one of its own. It only ends programs that hang: mount(8) replays a journal and
/// umount(8) writes back dirty memory, which may take minutes on a slow disk or a busy host.
const LIMIT: Duration = Duration::from_secs(600);

/// Maximum number of bytes of a program's standard error that an error repeats, from its end.
const MAX_STDERR_BYTES: usize = 2000;

/// Maximum wait for the last output of a program that has ended. A program can leave a child that keeps its output
/// open; that child is not waited for.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// An error of running a program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is not on the PATH.
    #[error("the program {0} is not installed, or not on the PATH")]
    Missing(String),
    /// The program could not be started.
    #[error("{command} could not be started: {source}")]
    Start {
        /// The command line.
        command: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The program ended with a status other than 0.
    #[error("{command} failed ({status}){}", message(stderr))]
    Failed {
        /// The command line.
        command: String,
        /// End of the program.
        status: ProgramEnd,
        /// The end of its standard error.
        stderr: String,
    },
    /// The caller requested the end, and the program was killed.
    #[error("{command} was interrupted")]
    Interrupted {
        /// The command line.
        command: String,
    },
    /// The program exceeded its time limit and was killed.
    #[error("{command} was not done after {} s and was killed{}", limit.as_secs_f64(), message(stderr))]
    Late {
        /// The command line.
        command: String,
        /// Time limit.
        limit: Duration,
        /// The end of its standard error.
        stderr: String,
    },
}

/// End of a program, displayed in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramEnd(pub ExitStatus);

impl std::fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => write!(f, "status {code}"),
            (None, Some(signal)) => write!(f, "killed by signal {signal}"),
            (None, None) => write!(f, "{}", self.0),
        }
    }
}

fn message(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

/// Exit status and output of a program that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl ProgramOutput {
    /// Standard output as text; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A program to run to its end, with English output (`LC_ALL=C`) and empty standard input.
#[derive(Clone, Debug)]
pub struct Exec {
    program: OsString,
    args: Vec<OsString>,
    folder: Option<PathBuf>,
    limit: Duration,
    tie: ChildLifetime,
    locale: &'static str,
    zone: Option<&'static str>,
}

/// Coupling of a program's lifetime to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildLifetime {
    /// The program may outlive this process.
    None,
    /// The program is killed when this process ends.
    Life,
    /// The same, and it leads a separate process group.
    LifeAndGroup,
}

impl Exec {
    /// A program by its name on the PATH, or by its path.
    pub fn new(program: impl Into<OsString>) -> Exec {
        Exec {
            program: program.into(),
            args: Vec::new(),
            folder: None,
            limit: LIMIT,
            tie: ChildLifetime::None,
            locale: "C",
            zone: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Exec {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Exec {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets its working directory; by default that of this process.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Exec {
        self.folder = Some(folder.into());
        self
    }

    /// Sets its time limit; by default ten minutes.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Exec {
        self.limit = limit;
        self
    }

    /// Kills the program when this process ends for any reason, and kills its children too when the time limit is
    /// exceeded. Ctrl-C in a terminal does not reach it.
    #[must_use]
    pub fn bound(mut self) -> Exec {
        self.tie = ChildLifetime::LifeAndGroup;
        self
    }

    /// Kills the program when this process ends for any reason, so that it changes nothing after a `kill -9` while the
    /// next start repairs. Ctrl-C in a terminal reaches it.
    #[must_use]
    pub fn die_with_parent(mut self) -> Exec {
        // `bound` is stronger, and is kept.
        if self.tie == ChildLifetime::None {
            self.tie = ChildLifetime::Life;
        }
        self
    }

    /// Sets the locale to English in UTF-8 (`LC_ALL=C.UTF-8`): some programs refuse to run otherwise, such as Ansible.
    #[must_use]
    pub fn utf8(mut self) -> Exec {
        self.locale = "C.UTF-8";
        self
    }

    /// Sets the program's time zone (`TZ`); by default that of the host.
    #[must_use]
    pub fn zone(mut self, zone: &'static str) -> Exec {
        self.zone = Some(zone);
        self
    }

    /// The command line, as a user would type it.
    pub fn line(&self) -> String {
        line(&self.program, &self.args)
    }

    /// Runs it to its end, with any exit status.
    ///
    /// # Errors
    /// When it does not exist, cannot be started, or exceeds its time limit.
    pub fn output(&self) -> Result<ProgramOutput, Error> {
        self.output_unless(&AtomicBool::new(false))
    }

    /// Runs it to its end, with any exit status, or until `interrupt` is set.
    ///
    /// # Errors
    /// As [`Exec::output`], and when it was interrupted.
    pub fn output_unless(&self, interrupt: &AtomicBool) -> Result<ProgramOutput, Error> {
        let mut child = self.spawn()?;
        let stdout = Collected::from(child.stdout.take());
        let stderr = Collected::from(child.stderr.take());
        match self.wait(&mut child, interrupt)? {
            End::Itself(status) => Ok(ProgramOutput {
                status,
                stdout: stdout.bytes(),
                stderr: stderr.bytes(),
            }),
            End::Late => Err(Error::Late {
                command: self.line(),
                limit: self.limit,
                stderr: end_of(&stderr.bytes()),
            }),
            End::Interrupted => Err(Error::Interrupted {
                command: self.line(),
            }),
        }
    }

    /// Runs it to its end and requires the exit status 0.
    ///
    /// # Errors
    /// As [`Exec::output`], and when its status is not 0.
    pub fn run(&self) -> Result<ProgramOutput, Error> {
        self.run_unless(&AtomicBool::new(false))
    }

    /// Runs it to its end or until `interrupt` is set, and requires the exit status 0.
    ///
    /// # Errors
    /// As [`Exec::run`], and when it was interrupted.
    pub fn run_unless(&self, interrupt: &AtomicBool) -> Result<ProgramOutput, Error> {
        let output = self.output_unless(interrupt)?;
        if output.status.success() {
            return Ok(output);
        }
        Err(Error::Failed {
            command: self.line(),
            status: ProgramEnd(output.status),
            stderr: end_of(&output.stderr),
        })
    }

    /// Starts it and returns its output as a stream. It has no time limit, and is killed when the stream is dropped.
    ///
    /// # Errors
    /// When it does not exist, or cannot be started.
    pub fn stream(&self) -> Result<Streaming, Error> {
        let mut child = self.spawn()?;
        let stderr = Collected::from(child.stderr.take());
        match child.stdout.take() {
            Some(stdout) => Ok(Streaming {
                command: self.line(),
                child,
                stdout,
                stderr,
            }),
            None => Err(Error::Start {
                command: self.line(),
                source: io::ErrorKind::BrokenPipe.into(),
            }),
        }
    }

    fn spawn(&self) -> Result<Child, Error> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env("LC_ALL", self.locale)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if let Some(zone) = self.zone {
            command.env("TZ", zone);
        }
        let spawned = match self.tie {
            ChildLifetime::None => command.spawn(),
            ChildLifetime::Life => spawn_bound(&mut command),
            ChildLifetime::LifeAndGroup => spawn_bound(command.process_group(0)),
        };
        spawned.map_err(|source| {
            let in_place = self.folder.as_ref().is_none_or(|folder| folder.is_dir());
            if source.kind() == io::ErrorKind::NotFound && in_place {
                Error::Missing(self.program.display().to_string())
            } else {
                let command = self.line();
                Error::Start { command, source }
            }
        })
    }

    /// Waits for its end, and kills it when the time limit is exceeded or `interrupt` is set.
    fn wait(&self, child: &mut Child, interrupt: &AtomicBool) -> Result<End, Error> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(200);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(End::Itself(status)),
                Ok(None) => {}
                Err(source) => {
                    let command = self.line();
                    return Err(Error::Start { command, source });
                }
            }
            let end = if interrupt.load(Ordering::Relaxed) {
                Some(End::Interrupted)
            } else {
                (began.elapsed() > self.limit).then_some(End::Late)
            };
            if let Some(end) = end {
                self.kill(child);
                return Ok(end);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Kills it, with its process group if it leads one. It may have ended already: then there is nothing to kill, and
    /// its process id is not reused before it is waited for.
    fn kill(&self, child: &mut Child) {
        if self.tie == ChildLifetime::LifeAndGroup {
            use rustix::process::{Pid, Signal, kill_process_group};
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Output of a running program. A nonzero exit status is an error at its end.
pub struct Streaming {
    command: String,
    child: Child,
    stdout: ChildStdout,
    stderr: Collected,
}

impl Read for Streaming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.stdout.read(buffer)?;
        if length > 0 || buffer.is_empty() {
            return Ok(length);
        }
        let status = self.child.wait()?;
        if status.success() {
            return Ok(0);
        }
        Err(io::Error::other(Error::Failed {
            command: self.command.clone(),
            status: ProgramEnd(status),
            stderr: end_of(&self.stderr.bytes()),
        }))
    }
}

impl AsFd for Streaming {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stdout.as_fd()
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reason for the end of the wait for a program.
enum End {
    Itself(ExitStatus),
    Late,
    Interrupted,
}

/// A command line as a user would type it, quoted where needed.
pub fn line(program: &OsStr, args: &[OsString]) -> String {
    let mut line = quoted(program);
    for arg in args {
        let _ = write!(line, " {}", quoted(arg));
    }
    line
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn end_of(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(MAX_STDERR_BYTES);
    String::from_utf8_lossy(bytes.get(from..).unwrap_or_default())
        .trim()
        .to_owned()
}

/// Output from a pipe, read on a separate thread, so that the program never blocks on it.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    whole: mpsc::Receiver<()>,
}

impl Collected {
    fn from(pipe: Option<impl Read + Send + 'static>) -> Collected {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let (sender, whole) = mpsc::channel();
        std::thread::spawn(move || {
            if let Some(mut pipe) = pipe {
                read_all(&mut pipe, &kept);
            }
            // The caller may have stopped waiting.
            let _ = sender.send(());
        });
        Collected { bytes, whole }
    }

    /// All output so far, after a short wait for the end.
    fn bytes(&self) -> Vec<u8> {
        let _ = self.whole.recv_timeout(LAST_OUTPUT_TIMEOUT);
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut bytes)
    }
}

/// Reads to the end or to an error; what was read before the error is kept.
fn read_all(pipe: &mut impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Starts a program that the kernel kills when the thread that started it ends, for any reason including `kill -9`.
/// The thread must therefore live as long as the program is needed.
///
/// # Errors
/// When it cannot be started.
pub fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    spawn(command, false)
}

/// The same, in a separate session (setsid(2)) and thus a separate process group: it then has no terminal to prompt on
/// or to get signals from.
///
/// # Errors
/// When it cannot be started.
pub fn spawn_bound_apart(command: &mut Command) -> io::Result<Child> {
    spawn(command, true)
}

fn spawn(command: &mut Command, apart: bool) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    let bind = move || {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal, setsid};
        if apart {
            setsid()?;
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before the request took effect.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(
                rustix::io::Errno::SRCH.raw_os_error(),
            ))
        }
    };
    // SAFETY: between fork and exec only async-signal-safe work is allowed. `bind` makes three system
    // calls at most (setsid, prctl and getppid) and allocates nothing, neither on success nor on failure.
    #[allow(
        unsafe_code,
        reason = "pre_exec has no safe form; see above why this is sound"
    )]
    unsafe {
        command.pre_exec(bind);
    }
    command.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Exec {
        Exec::new("sh").args(["-c", script])
    }

    #[test]
    fn a_program_that_is_started_apart_leads_its_own_session() {
        let mut command = Command::new("sh");
        // The sixth field of proc_pid_stat(5) is the session, behind a name that has no space.
        let own = "read -r pid name state parent group session rest < /proc/self/stat; \
                   [ \"$session\" = $$ ] && [ \"$group\" = $$ ]";
        command.args(["-c", own]);
        let status = spawn_bound_apart(&mut command).unwrap().wait().unwrap();
        assert!(status.success());
        let status = spawn_bound(&mut command).unwrap().wait().unwrap();
        assert!(status.success(), "what was prepared for one start stays so");
        let mut plain = Command::new("sh");
        plain.args(["-c", own]);
        assert!(!spawn_bound(&mut plain).unwrap().wait().unwrap().success());
    }

    #[test]
    fn the_output_of_a_program_is_returned() {
        let output = shell("echo out; echo err >&2").run().unwrap();
        assert_eq!(output.text(), "out\n");
        assert_eq!(output.stderr, b"err\n");
    }

    #[test]
    fn a_program_speaks_english_and_utf8_where_it_needs_it() {
        let message = |exec: Exec| exec.run().unwrap().text();
        assert_eq!(message(shell("echo $LC_ALL")), "C\n");
        assert_eq!(message(shell("echo $LC_ALL").utf8()), "C.UTF-8\n");
    }

    #[test]
    fn more_than_a_pipe_holds_is_given_whole() {
        let output = shell("head -c 3000000 /dev/zero").run().unwrap();
        assert_eq!(output.stdout.len(), 3_000_000);
    }

    #[test]
    fn a_failure_repeats_the_command_and_its_output() {
        let error = shell("echo 'no such array' >&2; exit 4").run().unwrap_err();
        let text = error.to_string();
        assert_eq!(
            text,
            r"sh -c 'echo '\''no such array'\'' >&2; exit 4' failed (status 4): no such array"
        );
        assert_eq!(shell("exit 4").output().unwrap().status.code(), Some(4));
    }

    #[test]
    fn a_program_that_is_missing_is_named() {
        let error = Exec::new("no-such-program").run().unwrap_err();
        assert!(matches!(&error, Error::Missing(name) if name == "no-such-program"));
    }

    #[test]
    fn a_folder_that_is_missing_is_not_a_missing_program() {
        let error = shell("true").folder("/no/such/folder").run().unwrap_err();
        assert!(matches!(error, Error::Start { .. }), "{error}");
    }

    /// Time limits in seconds for a program that hangs. On a busy host it may not have started within the shorter
    /// ones.
    const LIMITS: [f64; 4] = [0.2, 2.0, 20.0, 200.0];

    #[test]
    fn a_program_that_hangs_is_killed() {
        let began = Instant::now();
        let killed_after = |seconds: f64| {
            let hangs = shell("echo waiting >&2; exec sleep 1000");
            let hangs = hangs.limit(Duration::from_secs_f64(seconds));
            let text = hangs.run().unwrap_err().to_string();
            let limit = format!("not done after {seconds} s");
            assert!(text.contains(&limit), "{text}");
            text
        };
        let says_it = LIMITS
            .into_iter()
            .any(|seconds| killed_after(seconds).contains("waiting"));
        assert!(says_it, "what it said is in none of the messages");
        assert!(began.elapsed() < Duration::from_secs(900));
    }

    #[test]
    fn a_child_that_is_left_behind_is_not_waited_for_and_what_was_written_is_given() {
        let began = Instant::now();
        let output = shell("sleep 1000 & echo done; echo badly >&2")
            .run()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(output.text(), "done\n");
        assert_eq!(output.stderr, b"badly\n");
        assert!(began.elapsed() < Duration::from_secs(900));
    }

    #[test]
    fn an_interruption_ends_a_program() {
        let began = Instant::now();
        let error = shell("sleep 1000").run_unless(&AtomicBool::new(true));
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "sh -c 'sleep 1000' was interrupted");
        assert!(began.elapsed() < Duration::from_secs(900));
    }

    #[test]
    fn children_of_a_bound_program_are_killed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let pid_after = |seconds: f64| {
            let late = shell("sleep 1000 & echo $! >pid; sleep 1000").folder(folder.path());
            let late = late.bound().limit(Duration::from_secs_f64(seconds));
            let error = late.run().unwrap_err();
            assert!(matches!(error, Error::Late { .. }), "{error}");
            let pid = std::fs::read_to_string(folder.path().join("pid")).ok()?;
            pid.ends_with('\n').then_some(pid)
        };
        // It has ended, or is a zombie that its new parent has not reaped yet.
        let pid = LIMITS[1..].iter().find_map(|seconds| pid_after(*seconds));
        let pid = pid.expect("it began within one of the limits");
        let stat = format!("/proc/{}/stat", pid.trim());
        let lives = || {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            stat.contains("(sleep)") && !stat.contains("(sleep) Z")
        };
        let began = Instant::now();
        while lives() {
            assert!(began.elapsed() < Duration::from_secs(600), "{stat}");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(shell("echo out").bound().run().unwrap().text(), "out\n");
    }

    #[test]
    fn a_mortal_program_ends_with_its_thread_and_stays_in_the_group() {
        let group = |shell: &Exec| {
            let script = "cut -d' ' -f5 /proc/self/stat";
            let command = Exec {
                args: vec!["-c".into(), script.into()],
                ..shell.clone()
            };
            command.run().unwrap().text()
        };
        assert_eq!(group(&shell("").die_with_parent()), group(&shell("")));
        assert_ne!(group(&shell("").bound()), group(&shell("")));
        let spawned =
            std::thread::spawn(|| shell("exec sleep 60").die_with_parent().spawn().unwrap());
        let mut child = spawned.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_bound_program_ends_with_its_thread() {
        let spawned = std::thread::spawn(|| spawn_bound(Command::new("sleep").arg("60")).unwrap());
        let mut child = spawned.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
