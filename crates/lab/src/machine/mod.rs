//! The machine around the volumes: QEMU with Debian's cloud kernel, an initramfs with busybox, mdadm
//! and the tools that make file systems, and this program's binary. It has the volumes as virtio
//! disks, no network, and runs one command.
//!
//! It works without KVM, emulated. Nothing is installed on the host beside QEMU, and nothing is left
//! behind: streams and the initramfs have no names on the host, and QEMU ends with its parent.

mod accel;
mod arch;
mod cpio;
mod elf;
mod error;
mod initramfs;
mod library;
mod modules;
mod options;
mod packages;
mod power;
mod qemu;
mod stream;
mod wires;

use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use accel::{Accel, Accelerator};
pub use error::{Error, Result};
pub use options::{Disk, MachineOptions, Source};
pub use packages::{Packages, default_cache};
pub use power::Power;

use arch::Arch;
use qemu::{Hardware, Streams};
use stream::{Console, Event};
use wires::{Wires, nameless, path_of};

/// How long the machine may take until the command is started. Emulated on a busy host with many
/// disks it needs most of a minute.
const BOOT: Duration = Duration::from_secs(300);

/// How often it is looked whether somebody wants the end.
const LOOK: Duration = Duration::from_millis(50);

/// How long the last output may be on its way, without a byte of it moving.
const LAST_OUTPUT: Duration = Duration::from_secs(60);

/// How long QEMU may take to end in order.
const ORDERLY: Duration = Duration::from_secs(20);

/// How a machine ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The command's exit status, as a shell gives it; `None` when the power was cut before.
    pub status: Option<u8>,
    /// How long it took until the command was started.
    pub booted_in: Option<Duration>,
}

/// A machine that runs. Dropped, it is cut off.
#[derive(Debug)]
pub struct Machine {
    power: Power,
    events: Receiver<Event>,
    /// Words to the machine; open as long as it runs, since it takes an end for a closed port.
    words: Option<ChildStdin>,
    /// What must stay open here until the machine is gone, so that QEMU finds it.
    open: Vec<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    passed: [Arc<AtomicU64>; 2],
    console: Console,
    accelerator: Accelerator,
    began: Instant,
    timeout: Option<Duration>,
    booted_in: Option<Duration>,
}

/// The architecture of this host.
fn host_arch() -> Result<&'static Arch> {
    Arch::host().ok_or_else(|| {
        Error::Unavailable(format!(
            "the lab has a machine for x86_64 and aarch64, not for {}",
            std::env::consts::ARCH
        ))
    })
}

/// Whether the emulator is installed.
///
/// # Errors
/// A sentence that says what to install.
pub fn check_emulator() -> Result<()> {
    let arch = host_arch()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(arch.qemu).is_file()) {
        return Ok(());
    }
    Err(Error::Unavailable(format!(
        "the lab's machine needs {}, which is not installed: apt-get install {}",
        arch.qemu, arch.qemu_package
    )))
}

impl Machine {
    /// Runs a machine to its end. While `interrupt` is false it goes on; when it turns true, the
    /// command in the machine is interrupted, as by Ctrl-C.
    ///
    /// # Errors
    /// When it cannot be started or does not end as it should.
    pub fn run(
        options: &MachineOptions,
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
        interrupt: &AtomicBool,
    ) -> Result<Ended> {
        Machine::start(options, out, err)?.wait(interrupt)
    }

    /// Starts a machine. What its command writes goes to `out` and `err` as it comes.
    ///
    /// # Errors
    /// When something that it is made of is missing, or QEMU cannot be started.
    pub fn start(
        options: &MachineOptions,
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
    ) -> Result<Machine> {
        let arch = host_arch()?;
        check_emulator()?;
        let disks = options.all_disks()?;
        let accelerator = options
            .accel
            .choose(&options.cache, arch, &options.packages);
        let initramfs = initramfs::write(
            nameless("lab-initramfs")?,
            arch,
            &options.packages,
            &options.binary,
            disks.len(),
            &options.command,
        )?;

        let (events, received) = mpsc::channel();
        let mut wires = Wires::default();
        let (console_out, console_at) = wires.pipe()?;
        let (stdout, stdout_at) = wires.pipe()?;
        let (stderr, stderr_at) = wires.pipe()?;
        let streams = Streams {
            console: console_at,
            stdout: stdout_at,
            stderr: stderr_at,
        };

        let hardware = Hardware {
            arch,
            accelerator,
            memory_mib: options.memory.0 >> 20,
            cpus: options.cpus,
            kernel: &options.packages.kernel,
            initramfs: &path_of(&initramfs),
            streams: &streams,
            disks: &disks,
        };
        let console = Console::default();
        let (power, control) =
            power::switch_on(arch.qemu, hardware.arguments(), &console, &events)?;
        wires.open.push(initramfs.into());

        let mut machine = Machine {
            power,
            events: received,
            words: control.to_machine,
            open: wires.open,
            threads: Vec::new(),
            passed: Default::default(),
            console: console.clone(),
            accelerator,
            began: Instant::now(),
            timeout: options.timeout,
            booted_in: None,
        };
        let [passed_out, passed_err] = machine.passed.clone();
        let ledger = options.ledger_out.clone();
        machine.on_a_thread(&events, move |events| console.listen(console_out, events));
        machine.on_a_thread(&events, move |events| {
            stream::relay(stdout, out, &passed_out, events);
        });
        machine.on_a_thread(&events, move |events| {
            stream::relay(stderr, err, &passed_err, events);
        });
        machine.on_a_thread(&events, move |events| {
            if let Some(control) = control.from_machine {
                stream::control(control, ledger.as_deref(), events);
            }
        });
        Ok(machine)
    }

    fn on_a_thread(
        &mut self,
        events: &Sender<Event>,
        work: impl FnOnce(&Sender<Event>) + Send + 'static,
    ) {
        let events = events.clone();
        self.threads.push(std::thread::spawn(move || work(&events)));
    }

    /// What it runs on.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// The switch that cuts its power at any moment, from any thread. What was written to the
    /// volumes and not flushed may be lost, or not, as with a real power cut.
    pub fn power(&self) -> Power {
        self.power.clone()
    }

    /// Cuts the power now and waits until the machine is gone: its disks can be used again then.
    ///
    /// # Errors
    /// When QEMU cannot be ended.
    pub fn cut(mut self) -> Result<()> {
        self.power.cut();
        self.close();
        Ok(())
    }

    /// Waits until the command is being started.
    ///
    /// # Errors
    /// As [`Machine::wait`].
    pub fn wait_until_started(&mut self, interrupt: &AtomicBool) -> Result<()> {
        while self.booted_in.is_none() {
            match self.next()? {
                Some(Event::Started) => self.booted_in = Some(self.began.elapsed()),
                Some(event) => return Err(self.unexpected(event)),
                None if interrupt.load(Ordering::Relaxed) => {
                    let what = "the machine was interrupted before its command began";
                    return Err(self.failed(what));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Waits for the end of the command, and ends the machine.
    ///
    /// # Errors
    /// When the machine ends before the command does, is late, or its output cannot be passed on.
    pub fn wait(mut self, interrupt: &AtomicBool) -> Result<Ended> {
        let ended = self.until_the_end(interrupt);
        if matches!(
            ended,
            Ok(Ended {
                status: Some(_),
                ..
            })
        ) {
            self.power.end_in_order(ORDERLY);
        }
        self.power.off();
        self.close();
        ended
    }

    fn until_the_end(&mut self, interrupt: &AtomicBool) -> Result<Ended> {
        match self.wait_until_started(interrupt) {
            Err(_) if self.power.is_cut() => return Ok(self.ended(None)),
            started => started?,
        }
        let mut told = false;
        let (status, written) = loop {
            if interrupt.load(Ordering::Relaxed) && !told {
                told = true;
                // A machine that is gone already says so by an event.
                if let Some(words) = &mut self.words {
                    let _ = words.write_all(b"interrupt\n");
                }
            }
            match self.next()? {
                Some(Event::Ended { status, written }) => break (status, written),
                Some(Event::Gone(_)) if self.power.is_cut() => {
                    return Ok(self.ended(None));
                }
                Some(event) => return Err(self.unexpected(event)),
                None => {}
            }
        };
        self.wait_for_output(written)?;
        Ok(self.ended(Some(status)))
    }

    fn ended(&self, status: Option<u8>) -> Ended {
        Ended {
            status,
            booted_in: self.booted_in,
        }
    }

    /// The next thing that happens; `None` when nothing did for a moment.
    fn next(&self) -> Result<Option<Event>> {
        match self.events.recv_timeout(LOOK) {
            Ok(event) => return Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(Event::Gone(false))),
        }
        let ran = self.began.elapsed();
        if self.booted_in.is_none() && ran > BOOT {
            let seconds = BOOT.as_secs();
            let what = format!("the machine did not come up within {seconds} s, and was cut off");
            return Err(self.failed(&what));
        }
        match self.timeout {
            Some(timeout) if ran > timeout => Err(self.failed(&format!(
                "the command was not done {} s after the machine was started, and was cut off",
                timeout.as_secs_f64()
            ))),
            _ => Ok(None),
        }
    }

    /// All that the command wrote is here when as many bytes were passed on as it says.
    fn wait_for_output(&self, written: [u64; 2]) -> Result<()> {
        let passed =
            || [0, 1].map(|n: usize| self.passed.get(n).map_or(0, |p| p.load(Ordering::Acquire)));
        let mut before = passed();
        let mut moved = Instant::now();
        loop {
            let now = passed();
            if now == written {
                return Ok(());
            }
            if now != before {
                (before, moved) = (now, Instant::now());
            }
            match self.next()? {
                None if moved.elapsed() < LAST_OUTPUT => {}
                Some(Event::Gone(_)) | None => {
                    return Err(self.failed("the machine ended before all of the output was here"));
                }
                Some(event) => return Err(self.unexpected(event)),
            }
        }
    }

    fn unexpected(&self, event: Event) -> Error {
        match event {
            Event::Stopped(why) => self.failed(&format!("the machine stopped: {why}")),
            Event::Refused(source) => Error::Output(source),
            Event::LedgerRefused(path, source) => Error::file("written", &path, source),
            Event::Gone(well) => {
                // Its last words may be on their way.
                std::thread::sleep(LOOK);
                self.failed(&match (self.console.panic(), well) {
                    (Some(panic), _) => format!("the machine's kernel gave up: {panic}"),
                    (None, true) => "the machine was switched off before its command ended".into(),
                    (None, false) => "QEMU failed".into(),
                })
            }
            Event::Started | Event::Ended { .. } => self.failed("the machine repeats itself"),
        }
    }

    fn failed(&self, what: &str) -> Error {
        Error::Guest {
            what: what.to_owned(),
            last_lines: self.console.last_lines(),
        }
    }

    /// With QEMU gone and these closed, the readers come to an end.
    fn close(&mut self) {
        self.open.clear();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.power.off();
        self.close();
    }
}
