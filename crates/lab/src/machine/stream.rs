//! Output of the machine: the command's two streams, byte by byte; the control port; and the console, whose end is
//! kept for error messages.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of the console's lines that an error shows.
const MAX_CONSOLE_LINES: usize = 20;

/// Message of the machine.
#[derive(Debug)]
pub(super) enum Event {
    /// The command is being started.
    Started,
    /// The command ended: its status, and how many bytes it wrote to its two streams.
    Ended { status: u8, written: [u64; 2] },
    /// The preparation of the machine failed with this status, and its command is not started.
    Unprepared { status: u8, written: [u64; 2] },
    /// The machine's first process could not continue.
    Stopped(String),
    /// The command's output could not be forwarded.
    Refused(io::Error),
    /// The ledger could not be written on this host.
    LedgerRefused(PathBuf, io::Error),
    /// QEMU ended, well or not.
    Gone(bool),
}

/// Number of bytes of a stream that came out of the machine, and of those that were forwarded.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub arrived: AtomicU64,
    pub passed: AtomicU64,
}

/// Reads everything as soon as it arrives: while a pipe is full, QEMU blocks, and the machine with it. Data that a
/// slow reader has not taken yet is therefore kept in memory.
pub(super) fn take(mut from: impl Read, flow: &Flow, chunks: &Sender<Vec<u8>>) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        if chunks.send(bytes.to_vec()).is_err() {
            return;
        }
        flow.arrived.fetch_add(count as u64, Ordering::Release);
    }
}

/// Forwards the data, and counts it. If it cannot be forwarded, the rest is dropped, so that it does not accumulate
/// for a reader that is gone.
pub(super) fn pass_on(
    chunks: &Receiver<Vec<u8>>,
    mut to: impl Write,
    flow: &Flow,
    events: &Sender<Event>,
) {
    let mut refused = false;
    for bytes in chunks {
        if !refused && let Err(error) = to.write_all(&bytes).and_then(|()| to.flush()) {
            refused = true;
            // The receiver may have stopped listening: then the data is not needed.
            let _ = events.send(Event::Refused(error));
        }
        flow.passed.fetch_add(bytes.len() as u64, Ordering::Release);
    }
}

/// The end of the console.
#[derive(Clone, Debug, Default)]
pub(super) struct Console(Arc<Mutex<LastLines>>);

#[derive(Debug, Default)]
struct LastLines {
    lines: VecDeque<String>,
    /// Many lines come after it.
    panic: Option<String>,
}

impl Console {
    /// Reads lines until there are no more.
    pub(super) fn listen(&self, from: impl Read, events: &Sender<Event>) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while matches!(from.read_until(b'\n', &mut line), Ok(count) if count > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if let Some(why) = text.strip_prefix("lab: stopped: ") {
                let _ = events.send(Event::Stopped(why.to_owned()));
            }
            self.keep(text);
        }
    }

    fn keep(&self, line: String) {
        if line.is_empty() {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, why)) = line.split_once("Kernel panic - not syncing: ") {
            kept.panic = Some(why.to_owned());
        }
        if kept.lines.len() == MAX_CONSOLE_LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
    }

    /// Last lines of the console that are kept, the oldest first.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.lines.iter().cloned().collect()
    }

    /// The kernel's panic message, if it gave up.
    pub(super) fn panic(&self) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.panic.clone()
    }
}

/// Reads the control port until it ends, and puts the ledger where it is wanted.
pub(super) fn control(from: impl Read, ledger: Option<&Path>, events: &Sender<Event>) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut arrived = Vec::new();
    while matches!(from.read_until(b'\n', &mut line), Ok(count) if count > 0) {
        let text = String::from_utf8_lossy(&line).into_owned();
        line.clear();
        let words: Vec<&str> = text.split_whitespace().collect();
        let event = match words.as_slice() {
            ["started"] => Event::Started,
            ["file", name, size] => {
                let Ok(size) = size.parse() else { continue };
                match receive(&mut from, name, size, ledger) {
                    Ok(Some(paths)) => arrived.push(paths),
                    Ok(None) => {}
                    Err((path, error)) => {
                        let _ = events.send(Event::LedgerRefused(path, error));
                    }
                }
                continue;
            }
            ["unprepared", numbers @ ..] => {
                let (status, written) = ending(numbers);
                Event::Unprepared { status, written }
            }
            ["end", numbers @ ..] => {
                if let Some(ledger) = ledger
                    && !arrived.is_empty()
                    && let Err(error) = move_into_place(ledger, &std::mem::take(&mut arrived))
                {
                    let _ = events.send(Event::LedgerRefused(ledger.to_path_buf(), error));
                }
                let (status, written) = ending(numbers);
                Event::Ended { status, written }
            }
            _ => continue,
        };
        if events.send(event).is_err() {
            return;
        }
    }
    for (new, _) in arrived {
        // The machine was cut off before it was done: what came is not to be relied on.
        let _ = fs::remove_file(new);
    }
}

/// A status, and how many bytes were written to the two streams.
fn ending(numbers: &[&str]) -> (u8, [u64; 2]) {
    let number = |at: usize| numbers.get(at)?.parse::<u64>().ok();
    let status = number(0).and_then(|status| u8::try_from(status).ok());
    let written = [number(1).unwrap_or(0), number(2).unwrap_or(0)];
    (status.unwrap_or(u8::MAX), written)
}

/// A path with a suffix after its name.
fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Receives a file next to the place where it belongs: where it is, and where it belongs.
fn receive(
    from: &mut impl Read,
    name: &str,
    size: u64,
    ledger: Option<&Path>,
) -> Result<Option<(PathBuf, PathBuf)>, (PathBuf, io::Error)> {
    let mut content = from.take(size);
    let (Some(ledger), Some(end)) = (ledger, name.strip_prefix("ledger.db")) else {
        let _ = io::copy(&mut content, &mut io::sink());
        return Ok(None);
    };
    let place = with_suffix(ledger, end);
    let new = with_suffix(&place, &format!(".{}.new", std::process::id()));
    let written = File::create(&new).and_then(|mut file| {
        io::copy(&mut content, &mut file)?;
        file.sync_all()
    });
    let rest = io::copy(&mut content, &mut io::sink());
    match written.and(rest) {
        Ok(_) => Ok(Some((new, place))),
        Err(error) => {
            let _ = fs::remove_file(&new);
            Err((new, error))
        }
    }
}

/// Puts the files that have arrived in place. A log next to an older ledger is of that ledger: SQLite
/// would mix it into the new one, so it goes first.
fn move_into_place(ledger: &Path, arrived: &[(PathBuf, PathBuf)]) -> io::Result<()> {
    for end in ["-wal", "-shm", "-journal"] {
        match fs::remove_file(with_suffix(ledger, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    arrived
        .iter()
        .try_for_each(|(new, place)| fs::rename(new, place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_end_of_the_console_is_kept() {
        let (events, received) = mpsc::channel();
        let console = Console::default();
        let mut text = String::from("[ 1.2] Kernel panic - not syncing: no init\n");
        text.extend((0..30).map(|n| format!("line {n}\r\n\r\n")));
        text.push_str("lab: stopped: there is no port\n");
        console.listen(text.as_bytes(), &events);
        let lines = console.last_lines();
        assert_eq!(lines.len(), MAX_CONSOLE_LINES);
        assert_eq!(console.panic().as_deref(), Some("no init"));
        assert_eq!(lines[0], "line 11");
        assert!(matches!(received.recv(), Ok(Event::Stopped(why)) if why == "there is no port"));
    }

    #[test]
    fn the_ledger_arrives_between_the_words() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("out.db");
        fs::write(&ledger, "older").unwrap();
        fs::write(folder.path().join("out.db-wal"), "of the older").unwrap();
        let (events, received) = mpsc::channel();
        let sent = b"started\nfile ledger.db 6\nend\n\0\x01file other 3\nxyzend 7 12 3\n";
        control(&sent[..], Some(&ledger), &events);
        assert_eq!(fs::read(&ledger).unwrap(), b"end\n\0\x01");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(matches!(received.recv(), Ok(Event::Started)));
        let ended = received.recv().unwrap();
        assert!(
            matches!(
                ended,
                Event::Ended {
                    status: 7,
                    written: [12, 3]
                }
            ),
            "{ended:?}"
        );
    }

    #[test]
    fn a_failed_preparation_is_reported_with_its_output() {
        let (events, received) = mpsc::channel();
        control(&b"unprepared 4 9 0\n"[..], None, &events);
        let received_event = received.recv().unwrap();
        let Event::Unprepared { status, written } = received_event else {
            panic!("{received_event:?}");
        };
        assert_eq!((status, written), (4, [9, 0]));
    }

    #[test]
    fn a_ledger_that_was_cut_off_leaves_the_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("out.db");
        fs::write(&ledger, "older").unwrap();
        let (events, _received) = mpsc::channel();
        control(
            &b"started\nfile ledger.db 600\nhalf"[..],
            Some(&ledger),
            &events,
        );
        assert_eq!(fs::read(&ledger).unwrap(), b"older");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_reader_that_is_gone_is_reported_once_and_the_rest_is_counted() {
        let (events, received) = mpsc::channel();
        let flow = Flow::default();
        let (chunks, taken) = mpsc::channel();
        take(&[1; 200_000][..], &flow, &chunks);
        assert_eq!(flow.arrived.load(Ordering::Acquire), 200_000);
        drop(chunks);
        let mut room = [0; 4];
        pass_on(&taken, &mut room[..], &flow, &events);
        drop(events);
        assert_eq!(flow.passed.into_inner(), 200_000);
        assert_eq!(received.iter().count(), 1);
    }
}
