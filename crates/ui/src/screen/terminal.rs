//! The terminal: taken over, written to without blocking, and restored.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, PoisonError, TryLockError};
use std::time::Duration;

use ratatui_core::backend::Backend as _;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Rect, Size};
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::queue;
use ratatui_crossterm::crossterm::style::{Attribute, Print, SetAttribute};
use ratatui_crossterm::crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, getpgrp, kill_current_process_group};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGQUIT, SIGWINCH};
use signal_hook::flag;
use signal_hook::low_level::pipe;

use super::keys::{Key, Keys};
use super::output::{TerminalOutput, timespec};
use super::text::Capabilities;
use crate::signals;

/// The time after which an escape that nothing follows is a key of its own.
const ESCAPE: Duration = Duration::from_millis(50);
/// Timeout for restoring the terminal.
const RESTORE_TIMEOUT: Duration = Duration::from_millis(200);
/// Timeout for a stop that was requested.
const STOP_TIMEOUT: Duration = Duration::from_millis(300);
/// Ends a sequence that was cut (ECMA-48, CAN).
const CANCEL: char = '\u{18}';

/// Switches to the alternate screen, without line wrap and without a cursor.
fn enter(out: &mut TerminalOutput) -> io::Result<()> {
    queue!(
        out,
        EnterAlternateScreen,
        DisableLineWrap,
        Hide,
        SetAttribute(Attribute::Reset),
    )
}

/// Undoes the changes of `enter`.
fn leave(out: &mut TerminalOutput) -> io::Result<()> {
    queue!(
        out,
        Print(CANCEL),
        SetAttribute(Attribute::Reset),
        Clear(ClearType::All),
        EnableLineWrap,
        Show,
        LeaveAlternateScreen,
    )
}

/// State that restores the terminal. Static, because the panic hook of any thread needs it.
static SAVED_TERMINAL: Mutex<Option<SavedTerminal>> = Mutex::new(None);

/// Saved settings of a terminal, and its descriptor.
struct SavedTerminal {
    keys: File,
    out: TerminalOutput,
    before: Termios,
}

impl SavedTerminal {
    /// Restores the terminal, if possible: one that is gone or does not accept output is left as it is.
    fn put_back(mut self) {
        // A write to memory does not fail.
        let _ = leave(&mut self.out);
        self.out.drain(RESTORE_TIMEOUT);
        // In the background the shell has its own ways by now, and asking would stop the process.
        if is_foreground(&self.keys) {
            let _ = tcsetattr(&self.keys, OptionalActions::Now, &self.before);
        }
    }
}

/// Restores the terminal, if it is taken over.
pub fn put_back() {
    let taken = SAVED_TERMINAL
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(taken) = taken {
        taken.put_back();
    }
}

/// Restores the terminal before a panic is reported: on the alternate screen the message would be lost.
fn put_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A panic while it is taken or put back finds the lock held, and must not wait for itself.
            let taken = match SAVED_TERMINAL.try_lock() {
                Ok(mut taken) => taken.take(),
                Err(TryLockError::Poisoned(taken)) => taken.into_inner().take(),
                Err(TryLockError::WouldBlock) => None,
            };
            if let Some(taken) = taken {
                taken.put_back();
            }
            before(panic);
        }));
    });
}

/// True if standard output is a terminal that supports more than lines.
pub fn is_possible() -> bool {
    let kind = std::env::var("TERM").unwrap_or_default();
    io::stdout().is_terminal() && !kind.is_empty() && kind != "dumb"
}

/// True if this process is in the terminal's foreground process group.
fn is_foreground(terminal: impl AsFd) -> bool {
    // Without job control no other process group can have it.
    tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
}

/// Events of a terminal.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// The keys that were pressed.
    pub(super) keys: Vec<Key>,
    /// True if the terminal has hung up.
    pub(super) is_gone: bool,
}

/// The terminal of this process.
pub struct Terminal {
    keys: File,
    out: TerminalOutput,
    signals: UnixStream,
    /// Raised when the process was stopped and continues.
    continued: Arc<AtomicBool>,
    /// Settings before this program changed them.
    before: Option<Termios>,
    parser: Keys,
    capabilities: Capabilities,
    size: Size,
    /// The frame that is shown; `None` where the terminal may show anything.
    shown: Option<Buffer>,
    is_taken: bool,
    /// True if the terminal has not taken the last frame yet.
    is_behind: bool,
}

impl Terminal {
    /// The terminal of standard output, with the keys of standard input, or of the controlling terminal
    /// where that is something else. It is not taken over yet.
    ///
    /// # Errors
    /// When no keyboard is available.
    pub fn open() -> io::Result<Terminal> {
        let keys = match io::stdin().is_terminal() {
            true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            false => File::options().read(true).open("/dev/tty")?,
        };
        let out = TerminalOutput::open(1, io::stdout().as_fd())?;
        let (bell, heard) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        for signal in signals::ending().chain([SIGWINCH, SIGCONT, SIGQUIT]) {
            pipe::register(signal, bell.try_clone()?)?;
        }
        let continued = Arc::new(AtomicBool::new(false));
        flag::register(SIGCONT, Arc::clone(&continued))?;
        put_back_on_panic();
        Ok(Terminal {
            size: out.size(),
            continued,
            before: None,
            keys,
            out,
            signals: heard,
            parser: Keys::default(),
            capabilities: Capabilities::of(|name| std::env::var(name).ok()),
            shown: None,
            is_taken: false,
            is_behind: false,
        })
    }

    /// True if it shows this program's screen. After a stop (Ctrl-Z) it shows the shell's.
    pub(super) fn is_taken(&mut self) -> bool {
        if self.continued.swap(false, Relaxed) && self.is_taken {
            *SAVED_TERMINAL
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = None;
            self.is_taken = false;
        }
        self.is_taken
    }

    /// True if this process may use it now.
    pub(super) fn is_foreground(&self) -> bool {
        is_foreground(&self.keys)
    }

    /// Switches to the alternate screen, and to input key by key.
    pub(super) fn take_over(&mut self) -> io::Result<()> {
        let now = tcgetattr(&self.keys)?;
        // A shell may give it back as this program had it when it was stopped.
        let is_ours = !now.local_modes.contains(LocalModes::ICANON);
        let before = match self.before.take().filter(|_| is_ours) {
            Some(first) => first,
            None => now,
        };
        self.before = Some(before.clone());
        let mut raw = before.clone();
        raw.make_raw();
        *SAVED_TERMINAL
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(SavedTerminal {
            keys: self.keys.try_clone()?,
            out: self.out.try_clone()?,
            before,
        });
        tcsetattr(&self.keys, OptionalActions::Now, &raw)?;
        self.is_taken = true;
        self.shown = None;
        self.out.drop_pending();
        enter(&mut self.out)?;
        self.is_behind = false;
        Ok(())
    }

    /// Stops the process like Ctrl-Z, after restoring the terminal.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.leave();
        kill_current_process_group(Signal::TSTP)?;
        // The stop may come a moment later; where the kernel finds no process that could continue this one,
        // it does not come at all.
        self.listen(None, Some(STOP_TIMEOUT), false)?;
        Ok(())
    }

    fn leave(&mut self) {
        self.is_taken = false;
        self.out.drop_pending();
        put_back();
    }

    /// True if the size has changed since the last frame.
    pub(super) fn has_new_size(&mut self) -> bool {
        let size = self.out.size();
        let is_new = size != self.size;
        if is_new {
            self.size = size;
            self.shown = None;
        }
        is_new
    }

    /// The symbols and colours that it can show.
    pub(super) fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// True if the terminal has taken all that was written.
    pub(super) fn is_ready(&self) -> bool {
        self.is_taken && !self.is_behind
    }

    /// Draws a frame, and writes the cells that are not what they were.
    pub(super) fn show(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        let area = Rect::from((ratatui_core::layout::Position::ORIGIN, self.size));
        let mut frame = Buffer::empty(area);
        draw(area, &mut frame);
        let before = match self.shown.take() {
            Some(before) => before,
            None => {
                queue!(self.out, Clear(ClearType::All))?;
                Buffer::empty(area)
            }
        };
        let changed = before.diff(&frame);
        if !changed.is_empty() {
            ratatui_crossterm::CrosstermBackend::new(&mut self.out).draw(changed.into_iter())?;
        }
        self.shown = Some(frame);
        self.flush();
        Ok(())
    }

    /// Writes as much as the terminal takes.
    fn flush(&mut self) {
        self.out.flush();
        self.is_behind = self.out.is_behind();
    }

    /// Waits for keys, signals, the bell, or the time.
    pub(super) fn wait(
        &mut self,
        bell: Option<BorrowedFd<'_>>,
        time: Option<Duration>,
    ) -> io::Result<Input> {
        let is_cut = self.parser.is_pending();
        let escape = is_cut.then_some(ESCAPE);
        let time = [time, escape].into_iter().flatten().min();
        let mut input = self.listen(bell, time, self.is_taken)?;
        if is_cut && input.keys.is_empty() {
            input.keys.extend(self.parser.give_up());
        }
        self.flush();
        Ok(input)
    }

    fn listen(
        &mut self,
        bell: Option<BorrowedFd<'_>>,
        time: Option<Duration>,
        with_keys: bool,
    ) -> io::Result<Input> {
        let out = match self.out.is_behind() {
            true => PollFlags::OUT,
            false => PollFlags::empty(),
        };
        let keys = if with_keys {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let mut fds = vec![
            PollFd::new(&self.keys, keys),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if !out.is_empty() {
            fds.push(PollFd::new(&self.out, out));
        }
        if let Some(bell) = &bell {
            fds.push(PollFd::new(bell, PollFlags::IN));
        }
        match poll(&mut fds, time.map(timespec).as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (of_keys, of_signals) = (fds[0].revents(), fds[1].revents());
        drop(fds);
        let mut input = Input::default();
        if of_signals.contains(PollFlags::IN) {
            let mut rest = [0; 64];
            while matches!(self.signals.read(&mut rest), Ok(count) if count > 0) {}
            // After a stop, the terminal may show anything.
            self.shown = None;
        }
        if of_keys.contains(PollFlags::IN) && with_keys {
            let mut bytes = [0; 256];
            match self.keys.read(&mut bytes) {
                Ok(0) => input.is_gone = true,
                Ok(count) => input.keys = self.parser.take(&bytes[..count]),
                Err(error) => input.is_gone = error.kind() != io::ErrorKind::Interrupted,
            }
        }
        input.is_gone |= of_keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        Ok(input)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}
