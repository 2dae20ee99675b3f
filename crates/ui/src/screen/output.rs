//! Output to a terminal that never waits: bytes that it does not take stay in memory.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use ratatui_core::layout::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::termios::tcgetwinsize;

/// The size of a terminal that does not tell it, such as a serial line.
const DEFAULT_SIZE: Size = Size {
    width: 80,
    height: 24,
};

/// A terminal that is written to.
pub(super) struct TerminalOutput {
    file: File,
    /// Bytes that the terminal has not taken yet.
    pending: Vec<u8>,
}

impl TerminalOutput {
    /// Opens a terminal that this process has as `standard` (1 or 2) again: the flag would hold for all who share
    /// what is open, such as the shell.
    pub(super) fn open(standard: u8, shared: BorrowedFd<'_>) -> io::Result<TerminalOutput> {
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let own = File::options()
            .write(true)
            .custom_flags(flags)
            .open(format!("/proc/self/fd/{standard}"));
        let file = match own {
            Ok(own) => own,
            // In a container the terminal may have no name. A write may wait then.
            Err(_) => File::from(shared.try_clone_to_owned()?),
        };
        Ok(TerminalOutput::of(file))
    }

    pub(super) fn of(file: File) -> TerminalOutput {
        TerminalOutput {
            file,
            pending: Vec::new(),
        }
    }

    /// The same terminal, for someone who writes after it.
    pub(super) fn try_clone(&self) -> io::Result<TerminalOutput> {
        Ok(TerminalOutput::of(self.file.try_clone()?))
    }

    /// Size of the terminal.
    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(&self.file) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
                width: size.ws_col,
                height: size.ws_row,
            },
            _ => DEFAULT_SIZE,
        }
    }

    /// True if the terminal has not taken all that was written.
    pub(super) fn is_behind(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Discards the bytes that the terminal has not accepted yet.
    pub(super) fn drop_pending(&mut self) {
        self.pending.clear();
    }

    /// Writes as much as the terminal takes.
    pub(super) fn flush(&mut self) {
        while !self.pending.is_empty() {
            match self.file.write(&self.pending) {
                Ok(count) if count > 0 => {
                    self.pending.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // It is gone.
                _ => self.pending.clear(),
            }
        }
    }

    /// Writes all of it, or what the terminal takes within a time.
    pub(super) fn drain(&mut self, within: Duration) {
        let began = Instant::now();
        self.flush();
        while self.is_behind() {
            let left = within.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            let mut ready = [PollFd::new(&self.file, PollFlags::OUT)];
            let _ = poll(&mut ready, Some(&timespec(left)));
            self.flush();
        }
    }
}

impl io::Write for TerminalOutput {
    /// Takes all bytes; [`TerminalOutput::flush`] writes them.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for TerminalOutput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A time for poll(2).
pub(super) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().min(1 << 30) as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}
