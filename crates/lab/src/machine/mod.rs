//! The machine around the volumes: QEMU with Debian's cloud kernel, an initramfs with busybox, mdadm
//! and the tools that make file systems, and this program's binary. It has the volumes as virtio
//! disks, no network, and runs one command.
//!
//! It also works without KVM, by emulation. Nothing except QEMU is installed on the host, and nothing remains: streams
//! and the initramfs have no names on the host, and QEMU ends with its parent.

mod accel;
mod arch;
mod cpio;
mod disk;
mod elf;
mod error;
mod initramfs;
mod library;
mod modules;
mod options;
mod packages;
mod pipes;
mod power;
mod qemu;
mod state;
mod stream;

use std::io::{PipeReader, Write};
use std::os::fd::OwnedFd;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use accel::Accel;
pub use disk::{Disk, DiskContent};
pub use error::{Error, Result};
pub use options::MachineOptions;
pub use packages::{Packages, default_cache};
pub use power::Power;

use arch::Arch;
use initramfs::{Disks, GuestCommand};
use pipes::{MachinePipes, path_of, unnamed_file};
pub use qemu::Accelerator;
use qemu::{Hardware, Streams};
use state::State;
use stream::{Console, Event, Flow};

/// Longest time until the command is started. Emulated with many disks it needs most of a minute, and beside forty
/// programs that want the same processors more than five; what a machine that hangs waits for shows its console.
const BOOT: Duration = Duration::from_secs(1200);

/// Interval at which an interrupt is polled.
const POLL: Duration = Duration::from_millis(50);

/// Longest time for which the last output may be on its way, without a byte of it moving.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(60);

/// The same, when QEMU has ended and the pipe holds all that there is.
const REMAINING_OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest time for which a reader may take nothing, when the machine has failed and its last output is
/// passed on.
const READER: Duration = Duration::from_secs(10);

/// Longest time for QEMU to end in order.
const ORDERLY: Duration = Duration::from_secs(20);

/// End of a machine: status of the command, and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineEnd {
    /// The command's exit status, as in a shell; `None` if the power was cut before.
    pub status: Option<u8>,
    /// Time until the command was started.
    pub booted_in: Option<Duration>,
}

/// A running machine. When it is dropped, it is killed.
#[derive(Debug)]
pub struct Machine {
    power: Power,
    events: Receiver<Event>,
    /// Input of the machine; open as long as it runs, since it takes an end for a closed port.
    input: Option<ChildStdin>,
    /// Files that must stay open here until the machine is gone, so that QEMU finds them.
    open: Vec<OwnedFd>,
    threads: Vec<JoinHandle<()>>,
    /// Threads that may have to wait for the reader of the output.
    writers: Vec<JoinHandle<()>>,
    flows: [Arc<Flow>; 2],
    console: Console,
    accelerator: Accelerator,
    began: Instant,
    timeout: Option<Duration>,
    grace: Duration,
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

/// Checks that the emulator is installed.
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
        "the lab's machine needs {}, which is not installed; {}",
        arch.qemu,
        linux::remedy::install(arch.qemu_package)
    )))
}

impl Machine {
    /// Runs a machine to its end. While `interrupt` is false it continues; when it turns true, the
    /// command in the machine is interrupted, as by Ctrl-C.
    ///
    /// # Errors
    /// When it cannot be started or does not end as it should.
    pub fn run(
        options: &MachineOptions,
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
        interrupt: &AtomicBool,
    ) -> Result<MachineEnd> {
        Machine::start(options, out, err)?.wait(interrupt)
    }

    /// Starts a machine. The output of its command is written to `out` and `err` as it arrives.
    ///
    /// # Errors
    /// When a part of it is missing, or QEMU cannot be started.
    pub fn start(
        options: &MachineOptions,
        out: impl Write + Send + 'static,
        err: impl Write + Send + 'static,
    ) -> Result<Machine> {
        let arch = host_arch()?;
        check_emulator()?;
        let disks = options.all_disks()?;
        let state = options.state.as_deref().map(State::open).transpose()?;
        let accelerator = options
            .accel
            .choose(&options.cache, arch, &options.packages);
        let initramfs = initramfs::write(
            unnamed_file("lab-initramfs")?,
            arch,
            &options.packages,
            &options.binary,
            &Disks {
                count: disks.len(),
                own: match &state {
                    None => "none",
                    Some(state) if state.is_new => "new",
                    Some(_) => "kept",
                },
            },
            &GuestCommand {
                command: &options.command,
                prepare: options.prepare.as_deref().filter(|_| options.boot == 1),
                copies: &options.copies,
                boot: options.boot,
            },
        )?;

        let (events, received) = mpsc::channel();
        let mut pipes = MachinePipes::default();
        let (console_out, console_at) = pipes.pipe()?;
        let (stdout, stdout_at) = pipes.pipe()?;
        let (stderr, stderr_at) = pipes.pipe()?;
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
            merge: options.merge,
        };
        let console = Console::default();
        let (power, control) =
            power::switch_on(arch.qemu, hardware.arguments(), &console, &events)?;
        pipes.open.push(initramfs.into());
        // Its lock is held as long as it is open.
        pipes.open.extend(state.map(|state| state.file.into()));

        let mut machine = Machine {
            power,
            events: received,
            input: control.to_machine,
            open: pipes.open,
            threads: Vec::new(),
            writers: Vec::new(),
            flows: Default::default(),
            console: console.clone(),
            accelerator,
            began: Instant::now(),
            timeout: options.timeout,
            grace: options.grace,
            booted_in: None,
        };
        let [flow_out, flow_err] = machine.flows.clone();
        let ledger = options.ledger_out.clone();
        machine.on_a_thread(&events, move |events| console.listen(console_out, events));
        machine.relay(&events, stdout, out, flow_out);
        machine.relay(&events, stderr, err, flow_err);
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

    /// Passes a stream of the command on.
    fn relay(
        &mut self,
        events: &Sender<Event>,
        from: PipeReader,
        to: impl Write + Send + 'static,
        flow: Arc<Flow>,
    ) {
        let (chunks, taken) = mpsc::channel();
        let (counted, events) = (Arc::clone(&flow), events.clone());
        self.threads.push(std::thread::spawn(move || {
            stream::take(from, &counted, &chunks);
        }));
        self.writers.push(std::thread::spawn(move || {
            stream::pass_on(&taken, to, &flow, &events);
        }));
    }

    /// The accelerator.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// The switch that cuts its power at any moment, from any thread. The machine loses its memory,
    /// with what its kernel had not yet written. What has reached a volume stays there until the
    /// volumes' power is cut too ([`Server::cut_power`](crate::server::Server::cut_power)): then
    /// those with a volatile write cache lose some of what was not flushed.
    pub fn power(&self) -> Power {
        self.power.clone()
    }

    /// Cuts the power now and waits until the machine is gone: its disks can be used again then,
    /// and the power of its volumes be cut.
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
                Some(Event::Unprepared { status, written }) => {
                    self.wait_for_output(written)?;
                    let what = "the machine stopped: its preparation ended with status";
                    return Err(self.failed(&format!("{what} {status}")));
                }
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
    /// When the machine ends before the command, exceeds its time limit, or its output cannot be forwarded.
    pub fn wait(mut self, interrupt: &AtomicBool) -> Result<MachineEnd> {
        let ended = self.until_the_end(interrupt);
        if matches!(
            ended,
            Ok(MachineEnd {
                status: Some(_),
                ..
            })
        ) {
            self.power.end_in_order(ORDERLY);
        }
        self.power.kill();
        self.close();
        ended
    }

    fn until_the_end(&mut self, interrupt: &AtomicBool) -> Result<MachineEnd> {
        match self.wait_until_started(interrupt) {
            Err(_) if self.power.is_cut() => return Ok(self.ended(None)),
            started => started?,
        }
        let mut ending_since: Option<Instant> = None;
        let (status, written) = loop {
            if ending_since.is_some_and(|ending_since| ending_since.elapsed() > self.grace) {
                return Err(self.failed(&format!(
                    "the command was not done {} s after it was interrupted, and was cut off",
                    self.grace.as_secs_f64()
                )));
            }
            if interrupt.load(Ordering::Relaxed) && ending_since.is_none() {
                ending_since = Some(Instant::now());
                // A machine that is gone already says so by an event.
                if let Some(input) = &mut self.input {
                    let _ = input.write_all(b"interrupt\n");
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
        match self.wait_for_output(written) {
            Err(_) if self.power.is_cut() => Ok(self.ended(None)),
            whole => whole.map(|()| self.ended(Some(status))),
        }
    }

    fn ended(&self, status: Option<u8>) -> MachineEnd {
        MachineEnd {
            status,
            booted_in: self.booted_in,
        }
    }

    /// The next event; `None` if there was none for a moment.
    fn event(&self) -> Option<Event> {
        match self.events.recv_timeout(POLL) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::Gone(false)),
        }
    }

    /// The next event before the time limit.
    fn next(&self) -> Result<Option<Event>> {
        if let Some(event) = self.event() {
            return Ok(Some(event));
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

    /// Waits until as many bytes of the command's output are here as it has written, and have been passed on.
    /// There is no time limit while bytes come.
    fn wait_for_output(&self, written: [u64; 2]) -> Result<()> {
        let lost = "the machine ended before all of the output was here";
        let arrived = || {
            self.flows
                .each_ref()
                .map(|flow| flow.arrived.load(Ordering::Acquire))
        };
        let passed = || {
            self.flows
                .each_ref()
                .map(|flow| flow.passed.load(Ordering::Acquire))
        };
        let short = |count: [u64; 2]| count.iter().zip(written).any(|(count, all)| *count < all);
        let (mut before, mut moved, mut limit) = (arrived(), Instant::now(), LAST_OUTPUT_TIMEOUT);
        while short(before) {
            match self.event() {
                Some(Event::Gone(_)) => limit = REMAINING_OUTPUT_TIMEOUT,
                Some(event) => return Err(self.unexpected(event)),
                None if moved.elapsed() > limit => return Err(self.failed(lost)),
                None => {}
            }
            let now = arrived();
            if now != before {
                (before, moved) = (now, Instant::now());
            }
        }
        // A reader may be slow.
        while short(passed()) {
            match self.event() {
                Some(Event::Gone(_)) | None => {}
                Some(event) => return Err(self.unexpected(event)),
            }
            if self.writers.iter().all(JoinHandle::is_finished) && short(passed()) {
                return Err(self.failed(lost));
            }
        }
        Ok(())
    }

    fn unexpected(&self, event: Event) -> Error {
        match event {
            Event::Stopped(why) => self.failed(&format!("the machine stopped: {why}")),
            Event::Refused(source) => Error::Output(source),
            Event::LedgerRefused(path, source) => Error::file("written", &path, source),
            Event::Gone(well) => {
                // Its last words may be on their way.
                std::thread::sleep(POLL);
                self.failed(&match (self.console.panic(), well) {
                    (Some(panic), _) => format!("the machine's kernel gave up: {panic}"),
                    (None, true) => "the machine was switched off before its command ended".into(),
                    (None, false) => "QEMU failed".into(),
                })
            }
            Event::Started | Event::Unprepared { .. } | Event::Ended { .. } => {
                self.failed("the machine repeats itself")
            }
        }
    }

    fn failed(&self, what: &str) -> Error {
        Error::Guest {
            what: what.to_owned(),
            last_lines: self.console.last_lines(),
        }
    }

    /// Ends the readers, whose streams end with QEMU and when these are closed.
    fn close(&mut self) {
        self.open.clear();
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported it itself.
            let _ = thread.join();
        }
        // Their remaining output is passed on, unless the reader is gone.
        let passed = || {
            self.flows
                .each_ref()
                .map(|flow| flow.passed.load(Ordering::Acquire))
        };
        let (mut before, mut moved) = (passed(), Instant::now());
        while !self.writers.iter().all(JoinHandle::is_finished) && moved.elapsed() < READER {
            std::thread::sleep(POLL / 10);
            let now = passed();
            if now != before {
                (before, moved) = (now, Instant::now());
            }
        }
        self.writers.clear();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.power.kill();
        self.close();
    }
}
