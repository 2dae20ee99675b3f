//! Shared parts of the tests of the whole program: a place of their own, the program in it, and what
//! it said.

#![allow(dead_code, reason = "each test program uses its own part of this")]

pub(crate) mod documents;
pub(crate) mod lab;
pub(crate) mod moto;
pub(crate) mod ports;
pub(crate) mod requests;
pub(crate) mod schema;

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
pub(crate) use skip::skipped;
use tempfile::TempDir;

/// A run of one phase that is over as soon as it may be.
pub(crate) const SHORT: [&str; 6] = ["--size", "8M", "--seconds", "200ms", "--phase", "page-read"];

/// Timeout of a wait for something that happens at once. Tests check that it happens, not when: the host may be busy.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(600);

/// Words of a command line: a text with spaces between them, or a list where a word has spaces itself.
pub(crate) trait Words {
    fn words(&self) -> Vec<&str>;
}

impl Words for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Words for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl Words for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Words for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Words for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<T: Words + ?Sized> Words for &T {
    fn words(&self) -> Vec<&str> {
        (**self).words()
    }
}

/// A place of a test's own on a real disk, with a folder to measure and a ledger next to it. All of
/// it goes when the test ends.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        Place { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that is measured.
    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path("ledger.db")
    }

    /// The program, in this place and with its ledger.
    pub(crate) fn command(&self, line: &(impl Words + ?Sized)) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("disksmith"));
        command
            .args(line.words())
            .current_dir(self.folder.path())
            .env("DISKSMITH_LEDGER", self.ledger())
            .env("TERM", "xterm")
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, line: &(impl Words + ?Sized)) -> ProgramOutput {
        output_of(&mut self.command(line))
    }

    /// Runs `bench` on the folder `data`.
    pub(crate) fn bench(&self, options: &(impl Words + ?Sized)) -> ProgramOutput {
        self.run(&[vec!["bench", "data"], options.words()].concat())
    }

    /// The document of a run that must be well.
    pub(crate) fn document(&self, options: &(impl Words + ?Sized)) -> Value {
        let options = [options.words(), vec!["--json"]].concat();
        self.bench(&options).ends_with(0).json()
    }

    /// The ids of the runs in the ledger, newest first.
    pub(crate) fn runs(&self) -> Vec<String> {
        let listed = self.run("runs --json").ends_with(0).json();
        let runs = listed["runs"].as_array().unwrap();
        runs.iter()
            .map(|run| run["run"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Values that a shell is offered for the last of these words.
    pub(crate) fn completions(&self, line: &(impl Words + ?Sized)) -> Vec<String> {
        let line = [vec!["--", "disksmith"], line.words()].concat();
        let mut command = self.command(&line);
        let said = output_of(command.env("DISKSMITH_COMPLETE", "fish")).ends_with(0);
        assert_eq!(said.err, "");
        let value = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
        said.out.lines().map(value).collect()
    }

    /// Panics if anything lies in the folder that is measured.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(names_in(&self.data()), [""; 0]);
    }
}

/// The names in a folder, in order.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A whole number of a document.
#[track_caller]
pub(crate) fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// The program's output and exit status.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> ProgramOutput {
        ProgramOutput {
            status: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Copies a program, by another process: what is open for writing cannot be executed (execve(2), ETXTBSY), and what this
/// process writes is held open by each process that another test forks meanwhile, until that executes its own program.
pub(crate) fn copy_program(from: &Path, to: &Path) {
    let mut install = Command::new("install");
    assert!(
        install
            .args(["-m", "755"])
            .args([from, to])
            .status()
            .unwrap()
            .success()
    );
}

/// Writes a script that can be executed at once, as [`copy_program`] copies a program.
pub(crate) fn write_script(to: &Path, text: &str) {
    let mut written = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut written, text.as_bytes()).unwrap();
    copy_program(written.path(), to);
}

/// Runs a command to its end.
pub(crate) fn output_of(command: &mut Command) -> ProgramOutput {
    command.output().unwrap().into()
}

impl ProgramOutput {
    #[track_caller]
    pub(crate) fn ends_with(self, status: i32) -> ProgramOutput {
        assert_eq!(self.status, Some(status), "{self:#?}");
        self
    }

    /// Refused: status 2, nothing on stdout, and one sentence that holds `words`.
    #[track_caller]
    pub(crate) fn refuses(self, words: &[&str]) -> ProgramOutput {
        let said = self.ends_with(2);
        assert_eq!(said.out, "", "{said:#?}");
        said.warns(words);
        assert!(!said.err.contains("panicked"), "{said:#?}");
        said
    }

    /// Panics unless these words are on standard output, wherever its lines are broken.
    #[track_caller]
    pub(crate) fn prints(&self, words: &[&str]) {
        let prose = self.prose();
        for word in words {
            let has_word = self.out.contains(word) || prose.contains(word);
            assert!(has_word, "no '{word}' in {self:#?}");
        }
    }

    /// Panics unless these words are on standard error.
    #[track_caller]
    pub(crate) fn warns(&self, words: &[&str]) {
        for word in words {
            assert!(self.err.contains(word), "no '{word}' in {self:#?}");
        }
    }

    /// The answer in one line: where its sentences are broken depends on what is in them.
    pub(crate) fn prose(&self) -> String {
        let words: Vec<&str> = self.out.split_whitespace().collect();
        words.join(" ")
    }

    /// The one document on stdout, with the keys that are pinned for its command. Anything else there is an
    /// error.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let document =
            serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:#?}"));
        documents::check(&document);
        document
    }

    /// Panics if a line of the answer carries an escape code or is wider than `columns`, unless it
    /// is one word, such as a long path, that cannot be broken.
    #[track_caller]
    pub(crate) fn fits(&self, columns: usize) -> &ProgramOutput {
        for line in self.out.lines() {
            let one_word = !line.trim().contains(' ');
            assert!(
                line.chars().count() <= columns || one_word,
                "too wide: {line}"
            );
            assert!(!line.contains('\u{1b}'), "an escape code: {line:?}");
        }
        self
    }
}

/// The kernel's counter of a process: `read_bytes`, `write_bytes`, `rchar` and others in proc_pid_io(5).
/// None once it is gone.
pub(crate) fn process_io(process: u32, counter: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/io")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(counter));
    line?.strip_prefix(": ")?.parse().ok()
}

/// The program at work, which is killed if the test ends before it does.
pub(crate) struct Running {
    child: Child,
    said: [Option<Listener>; 2],
}

/// A thread that reads all that comes, so that the program never waits for a reader.
struct Listener {
    heard: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Listener {
    fn on(pipe: Option<impl Read + Send + 'static>) -> Option<Listener> {
        let mut pipe = pipe?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&heard);
        let thread = std::thread::spawn(move || {
            let mut piece = [0; 65536];
            loop {
                match pipe.read(&mut piece).unwrap() {
                    0 => return,
                    length => into.lock().unwrap().extend_from_slice(&piece[..length]),
                }
            }
        });
        Some(Listener { heard, thread })
    }

    fn all(self) -> String {
        self.thread.join().unwrap();
        String::from_utf8(std::mem::take(&mut self.heard.lock().unwrap())).unwrap()
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        let mut child = command.spawn().unwrap();
        let said = [
            Listener::on(child.stdout.take()),
            Listener::on(child.stderr.take()),
        ];
        Running { child, said }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has printed some words, on standard output or error.
    pub(crate) fn wait_for_text(&mut self, words: &str) {
        self.wait_for_output(|text| text.contains(words));
    }

    /// Waits until what it has printed, on standard output or error, is as wanted.
    pub(crate) fn wait_for_output(&mut self, is_wanted: impl Fn(&str) -> bool) {
        let heard = self.said.each_ref().map(|said| {
            let said = said.as_ref().map(|said| Arc::clone(&said.heard));
            said.unwrap_or_default()
        });
        let has = |heard: &Arc<Mutex<Vec<u8>>>| {
            let text = heard.lock().unwrap().clone();
            is_wanted(&String::from_utf8_lossy(&text))
        };
        self.wait_until("does not print it", || heard.iter().any(has));
    }

    /// Waits until a signal does not end it any more, since it asks for an end of its own.
    pub(crate) fn wait_for_handler(&mut self, signal: Signal) {
        let status = format!("/proc/{}/status", self.child.id());
        self.wait_until("handles no signal", || {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            caught.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Signals it and all that it has started, of a group that it leads.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it holds a test file open.
    pub(crate) fn wait_for_test_file(&mut self) {
        let files = format!("/proc/{}/fd", self.child.id());
        self.wait_until("holds no test file", || {
            let entries = fs::read_dir(&files).into_iter().flatten().flatten();
            entries
                .filter_map(|entry| fs::read_link(entry.path()).ok())
                // The file has no name: this is how the kernel shows that.
                .any(|target| target.to_string_lossy().ends_with("(deleted)"))
        });
    }

    /// Waits until it measures: until it has read more than a look at a file system needs.
    pub(crate) fn wait_for_reads(&mut self) {
        self.wait_for_test_file();
        let began = Instant::now();
        let process = self.child.id();
        // A file system without a device of its own (tmpfs, overlay) may count none; a small file is laid out by then.
        let folder = fs::metadata(format!("/proc/{}/cwd", self.child.id())).unwrap();
        let counts = rustix::fs::major(folder.dev()) != 0;
        // What was read before is the program itself, where its pages are not in memory.
        let before = process_io(process, "read_bytes").unwrap_or_default();
        self.wait_until("reads nothing", || {
            let read = process_io(process, "read_bytes");
            let reads = read.is_some_and(|bytes| bytes > before + (4 << 20));
            reads || (!counts && began.elapsed() > Duration::from_secs(5))
        });
    }

    /// Waits until it has read or written more than so many bytes of storage: `read_bytes` or `write_bytes` in
    /// proc_pid_io(5).
    pub(crate) fn wait_for_io(&mut self, counter: &str, bytes: u64) {
        let process = self.child.id();
        self.wait_until("moves nothing", || {
            process_io(process, counter).is_some_and(|moved| moved > bytes)
        });
    }

    /// Waits until something is so, or else ends the test with these words.
    pub(crate) fn wait_until(&mut self, or_else: &str, ready: impl FnMut() -> bool) {
        let is_so = self.wait_until_or_end(or_else, ready);
        assert!(is_so, "ended too early: {:?}", self.child.try_wait());
    }

    /// Waits until something is so; false if the program has ended before that was seen.
    pub(crate) fn wait_until_or_end(
        &mut self,
        or_else: &str,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        let began = Instant::now();
        while !ready() {
            if self.has_ended() {
                return false;
            }
            assert!(began.elapsed() < TIMEOUT, "it {or_else}");
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// True once it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> ProgramOutput {
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < TIMEOUT, "it does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
        let all = |said: &mut Option<Listener>| said.take().map_or(String::new(), Listener::all);
        let [out, err] = self.said.each_mut().map(all);
        let status = self.child.wait().unwrap().code();
        ProgramOutput { status, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// True if this is root; reports the test as skipped if not.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped("only root can do this");
    }
    root
}

/// True if a program is on the PATH; reports the test as skipped if not.
pub(crate) fn has_program(name: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    if !found {
        skipped(&format!("{name} is not installed"));
    }
    found
}

/// Runs a command in this place under limits that a shell sets.
pub(crate) fn under(limits: &str, command: &Command) -> ProgramOutput {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]);
    output_of(&mut behind(shell, command))
}

/// A command that runs another one, whose words stand behind its own, in the folder and environment of that.
pub(crate) fn behind(mut outer: Command, command: &Command) -> Command {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    outer
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    outer
}
