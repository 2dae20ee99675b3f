//! Signals. Every signal that would end the process, except those for faults of the program, requests an orderly end:
//! the first sets a flag, the second ends the process at once. Test files have no name, so that nothing remains even
//! then.
//!
//! - Ctrl-\\ (QUIT) ends at once with a core, as everywhere, except where the terminal is taken.
//! - KILL cannot be caught, and faults of the program itself (SEGV, BUS, ILL, FPE, ABRT, TRAP, SYS) are not.
//! - PIPE is ignored, by Rust's runtime: a closed pipe is an error of the write.
//! - XFSZ, from a limit on the size of files (`ulimit -f`), is caught: that too is an error of the write.

use std::io::Write as _;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};
use signal_hook::flag;

use crate::progress;

/// Signals that would end the process (signal(7)), next to those for real time.
const ENDING_SIGNALS: [i32; 12] = [
    SIGINT,
    SIGTERM,
    SIGHUP,
    SIGUSR1,
    SIGUSR2,
    SIGALRM,
    SIGVTALRM,
    SIGPROF,
    SIGIO,
    SIGXCPU,
    Signal::STKFLT.as_raw(),
    Signal::POWER.as_raw(),
];
/// The kernel's signals for real time, without those that the C library keeps for its threads: glibc keeps 32 and
/// 33 (nptl(7)), musl also 34.
const REAL_TIME: RangeInclusive<i32> = if cfg!(target_env = "musl") {
    35..=64
} else {
    34..=64
};
/// The exit status after a second signal: failed midway.
const ENDED_AT_ONCE: i32 = 3;
/// An orderly end that takes longer than this wants an explanation.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Interval at which signals are polled.
const POLL: Duration = Duration::from_millis(200);

/// Signals that ask for an orderly end.
pub fn ending() -> impl Iterator<Item = i32> {
    ENDING_SIGNALS.into_iter().chain(REAL_TIME)
}

/// Makes a write beyond the limit on file sizes fail, instead of ending the process without a message.
///
/// # Errors
/// When the handler cannot be set.
pub fn survive_the_limit_of_files() -> std::io::Result<()> {
    // A handler and not SIG_IGN, which the programs that are started here would inherit.
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// A flag that the first signal sets.
///
/// # Errors
/// When the handlers cannot be set.
pub fn interrupt_flag() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    raised_then_ended(ending, &interrupted)?;
    Ok(interrupted)
}

/// The flag of [`interrupt_flag`], and one that SIGHUP raises in its place, to have configuration read again.
///
/// # Errors
/// When the handlers cannot be set.
pub fn interrupt_and_reload_flags() -> std::io::Result<(Arc<AtomicBool>, Arc<AtomicBool>)> {
    let (interrupted, reload) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let others = || ending().filter(|signal| *signal != SIGHUP);
    raised_then_ended(others, &interrupted)?;
    flag::register(SIGHUP, Arc::clone(&reload))?;
    Ok((interrupted, reload))
}

/// A flag that SIGHUP sets, beside whatever else it does.
///
/// # Errors
/// When the handler cannot be set.
pub fn reload_flag() -> std::io::Result<Arc<AtomicBool>> {
    let reload = Arc::default();
    flag::register(SIGHUP, Arc::clone(&reload))?;
    Ok(reload)
}

/// A flag that the first signal sets, for a program that has taken over the terminal: it is restored before a second
/// signal may end the program, which is enabled by [`second_ends_at_once`].
///
/// # Errors
/// When the handlers cannot be set.
pub fn gentle_flag() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    raise_by_signals(&interrupted)?;
    // Its own way of ending, with a core, would leave the terminal as it is.
    flag::register(SIGQUIT, Arc::clone(&interrupted))?;
    Ok(interrupted)
}

/// Makes a signal that finds the flag raised end the program at once, from now on.
///
/// # Errors
/// When the handlers cannot be set.
pub fn second_ends_at_once(interrupted: &Arc<AtomicBool>) -> std::io::Result<()> {
    ends_at_once(ending(), interrupted)
}

/// The first signal raises the flag, and one after it ends the program at once. Whenever a signal comes while
/// handlers are being set, it raises the flag: that handler is the first of each signal.
fn raised_then_ended<I: Iterator<Item = i32>>(
    signals: impl Fn() -> I,
    interrupted: &Arc<AtomicBool>,
) -> std::io::Result<()> {
    raise(signals(), interrupted)?;
    // The order matters: the first signal finds this flag down, passes, and raises it.
    let seen = Arc::new(AtomicBool::new(false));
    ends_at_once(signals(), &seen)?;
    for signal in signals() {
        flag::register(signal, Arc::clone(&seen))?;
    }
    Ok(())
}

fn ends_at_once(
    signals: impl Iterator<Item = i32>,
    interrupted: &Arc<AtomicBool>,
) -> std::io::Result<()> {
    for signal in signals {
        flag::register_conditional_shutdown(signal, ENDED_AT_ONCE, Arc::clone(interrupted))?;
    }
    Ok(())
}

fn raise_by_signals(interrupted: &Arc<AtomicBool>) -> std::io::Result<()> {
    raise(ending(), interrupted)
}

fn raise(signals: impl Iterator<Item = i32>, interrupted: &Arc<AtomicBool>) -> std::io::Result<()> {
    for signal in signals {
        flag::register(signal, Arc::clone(interrupted))?;
    }
    explain_long_ends(Arc::clone(interrupted));
    Ok(())
}

/// Explains a long wait for the end: a disk that hangs keeps its requests. The thread ends with the process.
fn explain_long_ends(interrupted: Arc<AtomicBool>) {
    let watch = move || {
        while !interrupted.load(Relaxed) {
            thread::sleep(POLL);
        }
        thread::sleep(TIMEOUT);
        let _ = writeln!(
            std::io::stderr(),
            "{}disksmith: ending; waiting for requests in progress. Press Ctrl-C again to end at once.",
            progress::cleared()
        );
    };
    // Without the thread, it ends just as well.
    let _ = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch);
}
