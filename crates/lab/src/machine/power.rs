//! QEMU as a process: started so that it ends with its parent, and ended in order or at once.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use linux::exec;
use rustix::process::{Pid, Signal, kill_process};

use super::stream::{Console, Event};
use super::{Error, Result};

/// Interval at which QEMU is polled for its end.
const POLL: Duration = Duration::from_millis(10);

/// Control over the power of a machine.
#[derive(Clone, Debug)]
pub struct Power(Arc<PowerSwitch>);

/// The two ends of the control port.
#[derive(Debug)]
pub(super) struct Control {
    pub from_machine: Option<ChildStdout>,
    pub to_machine: Option<ChildStdin>,
}

#[derive(Debug)]
struct PowerSwitch {
    child: Mutex<Child>,
    cut: AtomicBool,
    gone: AtomicBool,
}

impl Power {
    /// Cuts the power at once: QEMU is killed, and requests that it had not forwarded to the volumes are lost. The
    /// contents of the volumes do not change until [`Server::cut_power`](crate::server::Server::cut_power).
    pub fn cut(&self) {
        self.0.cut.store(true, Ordering::Release);
        self.kill();
    }

    /// True if the power was cut on purpose.
    pub(super) fn is_cut(&self) -> bool {
        self.0.cut.load(Ordering::Acquire)
    }

    /// Lets QEMU forward its requests and end; kills it after a time limit.
    pub(super) fn end_in_order(&self, limit: Duration) {
        let began = Instant::now();
        {
            let child = self.0.child.lock().unwrap_or_else(PoisonError::into_inner);
            // Its process id cannot be reused until it was waited for, which needs the lock.
            if !self.is_gone() {
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            }
        }
        while !self.is_gone() && began.elapsed() < limit {
            std::thread::sleep(POLL);
        }
    }

    /// Kills QEMU if it runs, and waits until it is gone.
    pub(super) fn kill(&self) {
        {
            let mut child = self.0.child.lock().unwrap_or_else(PoisonError::into_inner);
            // It may have ended already.
            let _ = child.kill();
        }
        while !self.is_gone() {
            std::thread::sleep(POLL);
        }
    }

    fn is_gone(&self) -> bool {
        self.0.gone.load(Ordering::Acquire)
    }

    /// `None` while QEMU runs; true if it ended without an error.
    fn poll(&self) -> Option<bool> {
        let mut child = self.0.child.lock().unwrap_or_else(PoisonError::into_inner);
        let well = match child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.success(),
            Err(_) => false,
        };
        self.0.gone.store(true, Ordering::Release);
        Some(well)
    }
}

/// Starts QEMU. Its own messages are added to the console's lines.
///
/// # Errors
/// When it cannot be started.
pub(super) fn switch_on(
    qemu: &str,
    arguments: Vec<OsString>,
    console: &Console,
    events: &Sender<Event>,
) -> Result<(Power, Control)> {
    let mut command = Command::new(qemu);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C in a terminal is meant for the command in the machine, to which this process forwards it.
        .process_group(0);
    let (console, events) = (console.clone(), events.clone());
    let (started, whether) = mpsc::channel();
    // QEMU ends with this thread, which therefore runs until QEMU has ended.
    std::thread::spawn(move || {
        let mut child = match exec::spawn_bound(&mut command) {
            Ok(child) => child,
            Err(source) => {
                let _ = started.send(Err(source));
                return;
            }
        };
        let stderr = child.stderr.take();
        let control = Control {
            from_machine: child.stdout.take(),
            to_machine: child.stdin.take(),
        };
        let power = Power(Arc::new(PowerSwitch {
            child: Mutex::new(child),
            cut: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        }));
        let _ = started.send(Ok((power.clone(), control)));
        let heard = stderr.map(|stderr| {
            let (console, events) = (console.clone(), events.clone());
            std::thread::spawn(move || console.listen(stderr, &events))
        });
        let well = loop {
            match power.poll() {
                Some(well) => break well,
                None => std::thread::sleep(POLL),
            }
        };
        if let Some(heard) = heard {
            let _ = heard.join();
        }
        let _ = events.send(Event::Gone(well));
    });
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => Error::Program(exec::Error::Missing(qemu.to_owned())),
        _ => Error::Program(exec::Error::Start {
            command: qemu.to_owned(),
            source,
        }),
    };
    match whether.recv() {
        Ok(started) => started.map_err(failed),
        Err(_) => Err(failed(ErrorKind::BrokenPipe.into())),
    }
}
