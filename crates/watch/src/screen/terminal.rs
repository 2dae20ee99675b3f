//! The terminal: taken over, written to without ever waiting, and put back.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Signal, getpgrp, kill_current_process_group};
use rustix::termios::{
    LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGCONT, SIGQUIT, SIGWINCH};
use signal_hook::flag;
use signal_hook::low_level::pipe;

use super::keys::{Key, Keys};
use crate::views::screen::{Line, Size, Style};
use ui::signals;

/// Where nothing says how large a terminal is, such as on a serial line.
const USUAL: Size = Size {
    columns: 80,
    lines: 24,
};
/// A lone escape is known by what does not follow it.
const ESCAPE: Duration = Duration::from_millis(50);
/// How long a terminal may take to be left.
const LEAVING: Duration = Duration::from_millis(200);
/// How long a stop that was asked for may take to come.
const STOPPING: Duration = Duration::from_millis(300);

/// The other screen, no breaking at the edge, no cursor (xterm's ctlseqs, private modes).
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?7l\u{1b}[?25l\u{1b}[0m\u{1b}[2J";
/// All of that back. CAN ends a sequence that was cut.
const LEAVE: &str = "\u{18}\u{1b}[0m\u{1b}[2J\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// What puts the terminal back: here, since a panic of any thread must find it.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

/// A terminal as it was, and where that is said.
struct Taken {
    keys: File,
    out: File,
    before: Termios,
}

impl Taken {
    /// Puts it back, if it can be: a terminal that is gone or takes nothing is left as it is.
    fn put_back(mut self) {
        let began = Instant::now();
        let mut rest = LEAVE.as_bytes();
        while !rest.is_empty() {
            match self.out.write(rest) {
                Ok(count) if count > 0 => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = LEAVING.saturating_sub(began.elapsed());
                    if left.is_zero() {
                        break;
                    }
                    let mut out = [PollFd::new(&self.out, PollFlags::OUT)];
                    let _ = poll(&mut out, Some(&timespec(left)));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        // In the background the shell has its own ways by now, and asking would stop the process.
        if is_foreground(&self.keys) {
            let _ = tcsetattr(&self.keys, OptionalActions::Now, &self.before);
        }
    }
}

/// Puts the terminal back, if it is taken.
pub(super) fn put_back() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(taken) = taken {
        taken.put_back();
    }
}

/// Before a panic is told, the terminal is put back: on the other screen nobody would read it.
fn put_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A panic while it is taken or put back finds the lock held, and must not wait for itself.
            let taken = match TAKEN.try_lock() {
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

/// Whether standard output is a terminal that knows more than lines.
pub(super) fn is_possible() -> bool {
    let kind = std::env::var("TERM").unwrap_or_default();
    io::stdout().is_terminal() && !kind.is_empty() && kind != "dumb"
}

/// Whether this process may use the terminal now, or the shell or another job has it.
fn is_foreground(terminal: impl AsFd) -> bool {
    // Where there is no job control, nobody else has it.
    tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().min(1 << 30) as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

/// What came while waiting.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The keys that were pressed.
    pub(super) keys: Vec<Key>,
    /// Whether the terminal is gone.
    pub(super) is_gone: bool,
}

/// The terminal of this process.
pub(super) struct Terminal {
    keys: File,
    out: File,
    signals: UnixStream,
    /// Raised when the process was stopped and goes on.
    continued: Arc<AtomicBool>,
    /// How it was when it was first taken over.
    before: Option<Termios>,
    parser: Keys,
    style: Style,
    size: Size,
    /// What the terminal has not taken yet.
    pending: Vec<u8>,
    /// What each line shows, as it was written.
    shown: Vec<String>,
    is_taken: bool,
}

impl Terminal {
    /// The terminal of standard output, with the keys of standard input, or of the controlling terminal
    /// where that is something else. It is not taken over yet.
    ///
    /// # Errors
    /// When there are no keys to be had.
    pub(super) fn open() -> io::Result<Terminal> {
        let keys = match io::stdin().is_terminal() {
            true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            false => File::options().read(true).open("/dev/tty")?,
        };
        // Opened anew, since the flag would hold for all who share what is open, such as the shell.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let own = File::options()
            .write(true)
            .custom_flags(flags)
            .open("/proc/self/fd/1");
        let out = match own {
            Ok(own) => own,
            // In a container the terminal may have no name. A write may wait then; only this thread does.
            Err(_) => File::from(io::stdout().as_fd().try_clone_to_owned()?),
        };
        let (bell, heard) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        for signal in signals::ending().chain([SIGWINCH, SIGCONT, SIGQUIT]) {
            pipe::register(signal, bell.try_clone()?)?;
        }
        let continued = Arc::new(AtomicBool::new(false));
        flag::register(SIGCONT, Arc::clone(&continued))?;
        put_back_on_panic();
        Ok(Terminal {
            size: size_of(&out),
            continued,
            before: None,
            keys,
            out,
            signals: heard,
            parser: Keys::default(),
            style: Style::of(|name| std::env::var(name).ok()),
            pending: Vec::new(),
            shown: Vec::new(),
            is_taken: false,
        })
    }

    /// Whether it shows this program's screen. After a stop the shell has had it, and it does not.
    pub(super) fn is_taken(&mut self) -> bool {
        if self.continued.swap(false, Relaxed) && self.is_taken {
            *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = None;
            self.is_taken = false;
        }
        self.is_taken
    }

    /// Whether this process may use it now.
    pub(super) fn is_foreground(&self) -> bool {
        is_foreground(&self.keys)
    }

    /// Changes to the other screen, and lets each key come as it is pressed.
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
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Taken {
            keys: self.keys.try_clone()?,
            out: self.out.try_clone()?,
            before,
        });
        tcsetattr(&self.keys, OptionalActions::Now, &raw)?;
        self.is_taken = true;
        self.shown.clear();
        self.pending = ENTER.into();
        Ok(())
    }

    /// Stops the process as Ctrl-Z does, with the terminal put back.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.leave();
        kill_current_process_group(Signal::TSTP)?;
        // The stop may come a moment later; where the kernel sees nobody who could continue the process,
        // it does not come at all.
        self.listen(None, Some(STOPPING), false)?;
        Ok(())
    }

    fn leave(&mut self) {
        self.is_taken = false;
        self.pending.clear();
        put_back();
    }

    /// Whether the size has changed since the last picture.
    pub(super) fn has_new_size(&mut self) -> bool {
        let size = size_of(&self.out);
        let is_new = size != self.size;
        if is_new {
            self.size = size;
            self.shown.clear();
        }
        is_new
    }

    /// Its size.
    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// What it can show.
    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Whether it has taken all that was written.
    pub(super) fn is_ready(&self) -> bool {
        self.is_taken && self.pending.len() <= ENTER.len()
    }

    /// Writes the lines that are not what they were.
    pub(super) fn show(&mut self, lines: Vec<Line>) {
        let mut text = String::new();
        if self.shown.is_empty() {
            text.push_str("\u{1b}[2J");
        }
        let columns = self.size.columns;
        let mut shown = Vec::with_capacity(lines.len());
        for (index, line) in lines.iter().enumerate() {
            let codes = line.codes(self.style);
            if self.shown.get(index) != Some(&codes) {
                text.push_str(&format!("\u{1b}[{};1H{codes}", index + 1));
                // At the edge the cursor stands on the last sign, which would be cleared too.
                if line.width() < columns {
                    text.push_str("\u{1b}[K");
                }
            }
            shown.push(codes);
        }
        self.shown = shown;
        self.pending.extend_from_slice(text.as_bytes());
        self.flush();
    }

    /// Writes as much as the terminal takes.
    fn flush(&mut self) {
        while !self.pending.is_empty() {
            match self.out.write(&self.pending) {
                Ok(count) if count > 0 => {
                    self.pending.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // It is gone; the keys tell that too.
                _ => self.pending.clear(),
            }
        }
    }

    /// Waits for keys, signals, the bell, or the time.
    pub(super) fn wait(
        &mut self,
        bell: Option<BorrowedFd<'_>>,
        time: Option<Duration>,
    ) -> io::Result<Heard> {
        let is_cut = self.parser.is_pending();
        let escape = is_cut.then_some(ESCAPE);
        let time = [time, escape].into_iter().flatten().min();
        let mut heard = self.listen(bell, time, self.is_taken)?;
        if is_cut && heard.keys.is_empty() {
            heard.keys.extend(self.parser.give_up());
        }
        self.flush();
        Ok(heard)
    }

    fn listen(
        &mut self,
        bell: Option<BorrowedFd<'_>>,
        time: Option<Duration>,
        with_keys: bool,
    ) -> io::Result<Heard> {
        let out = match self.pending.is_empty() {
            true => PollFlags::empty(),
            false => PollFlags::OUT,
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
        let mut heard = Heard::default();
        if of_signals.contains(PollFlags::IN) {
            let mut rest = [0; 64];
            while matches!(self.signals.read(&mut rest), Ok(count) if count > 0) {}
            // After a stop, the terminal may show anything.
            self.shown.clear();
        }
        if of_keys.contains(PollFlags::IN) && with_keys {
            let mut bytes = [0; 256];
            match self.keys.read(&mut bytes) {
                Ok(0) => heard.is_gone = true,
                Ok(count) => heard.keys = self.parser.take(&bytes[..count]),
                Err(error) => heard.is_gone = error.kind() != io::ErrorKind::Interrupted,
            }
        }
        heard.is_gone |= of_keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        Ok(heard)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

fn size_of(terminal: &File) -> Size {
    match tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            columns: size.ws_col.into(),
            lines: size.ws_row.into(),
        },
        _ => USUAL,
    }
}
