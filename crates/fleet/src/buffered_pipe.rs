//! Output of a process that is kept while it arrives, and is complete once the process has ended.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio, read, retry_on_intr};

use crate::protocol::SMALL_STACK;

/// The part of the output that is kept, in bytes. The rest is read and dropped, since the process would otherwise
/// block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BufferedPart {
    First(usize),
    Last(usize),
}

/// A pipe whose output is kept. Processes that inherited it may keep it open for long: nothing waits for its end.
pub(crate) struct BufferedPipe(Arc<Inner>);

struct Inner {
    pipe: OwnedFd,
    keep: BufferedPart,
    bytes: Mutex<Vec<u8>>,
}

/// State of a pipe after all available data has been read.
#[derive(PartialEq)]
enum Pipe {
    Empty,
    Closed,
}

impl BufferedPipe {
    /// Keeps the output on a separate thread, so that the pipe never fills up.
    ///
    /// # Errors
    /// If no thread can be started, or it is not a pipe.
    pub(crate) fn follow(pipe: impl Into<OwnedFd>, keep: BufferedPart) -> io::Result<BufferedPipe> {
        let pipe = pipe.into();
        ioctl_fionbio(&pipe, true)?;
        let inner = Arc::new(Inner {
            pipe,
            keep,
            bytes: Mutex::default(),
        });
        let followed = Arc::clone(&inner);
        thread::Builder::new()
            .name("output".to_owned())
            .stack_size(SMALL_STACK)
            .spawn(move || while followed.wait() && followed.drain() == Pipe::Empty {})?;
        Ok(BufferedPipe(inner))
    }

    /// The kept part of all output so far. The output of an ended process is in its pipe, so it is included even if
    /// the thread had no processor time since.
    pub(crate) fn text(&self) -> String {
        self.0.drain();
        String::from_utf8_lossy(&self.0.bytes()).into_owned()
    }
}

impl Inner {
    /// Waits for output or the end of the pipe; false if waiting is not possible.
    fn wait(&self) -> bool {
        let mut fds = [PollFd::new(&self.pipe, PollFlags::IN)];
        retry_on_intr(|| poll(&mut fds, None)).is_ok()
    }

    fn drain(&self) -> Pipe {
        let mut bytes = self.bytes();
        let mut buffer = [0; 16 << 10];
        loop {
            match retry_on_intr(|| read(&self.pipe, &mut buffer)) {
                Ok(0) => return Pipe::Closed,
                Ok(count) => self.keep(&mut bytes, buffer.get(..count).unwrap_or_default()),
                Err(Errno::AGAIN) => return Pipe::Empty,
                Err(_) => return Pipe::Closed,
            }
        }
    }

    fn keep(&self, bytes: &mut Vec<u8>, more: &[u8]) {
        match self.keep {
            BufferedPart::First(most) => {
                let room = most.saturating_sub(bytes.len()).min(more.len());
                bytes.extend_from_slice(more.get(..room).unwrap_or_default());
            }
            BufferedPart::Last(most) => {
                bytes.extend_from_slice(more);
                let excess = bytes.len().saturating_sub(most);
                bytes.drain(..excess);
            }
        }
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    fn buffered(keep: BufferedPart, written: &[u8]) -> String {
        let (reader, mut writer) = io::pipe().unwrap();
        let kept = BufferedPipe::follow(reader, keep).unwrap();
        writer.write_all(written).unwrap();
        // The pipe stays open: its end is not waited for.
        kept.text()
    }

    #[test]
    fn the_first_or_the_last_bytes_are_kept() {
        assert_eq!(buffered(BufferedPart::First(3), b"abcdef"), "abc");
        assert_eq!(buffered(BufferedPart::Last(3), b"abcdef"), "def");
        assert_eq!(buffered(BufferedPart::Last(9), b"abcdef"), "abcdef");
    }

    #[test]
    fn all_that_an_ended_process_wrote_is_there_also_where_its_child_lives() {
        for _ in 0..20 {
            // The cat inherits standard error, and ends with its standard input.
            let mut child = Command::new("sh")
                .args(["-c", "cat >/dev/null & echo refused >&2; exit 3"])
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let input = child.stdin.take();
            let kept =
                BufferedPipe::follow(child.stderr.take().unwrap(), BufferedPart::Last(99)).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(3));
            assert_eq!(kept.text(), "refused\n");
            drop(input);
        }
    }

    #[test]
    fn a_process_that_writes_much_is_never_held_up() {
        let mut child = Command::new("sh")
            .args(["-c", "head -c 1000000 /dev/zero"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let kept =
            BufferedPipe::follow(child.stdout.take().unwrap(), BufferedPart::First(10)).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(kept.text().len(), 10);
    }
}
