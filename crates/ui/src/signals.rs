//! Ctrl-C and its kin: the first asks for an orderly end, the second ends at once. Test files have
//! no name, so even the second leaves nothing.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

use crate::progress;

/// The exit status after a second signal: failed midway.
const ENDED_AT_ONCE: i32 = 3;
/// An orderly end that takes longer than this wants an explanation.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether there was a signal.
const LOOK: Duration = Duration::from_millis(200);

/// A flag that the first signal sets.
///
/// # Errors
/// When the handlers cannot be set.
pub fn interrupt_flag() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // The order matters: the first signal finds the flag down, passes here, and raises it.
    second_ends_at_once(&interrupted)?;
    raise_by_signals(&interrupted)?;
    Ok(interrupted)
}

/// A flag that the first signal sets, for who has the terminal: it is put back before a second signal
/// may end the program, which [`second_ends_at_once`] says.
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

/// From now on, a signal that finds the flag raised ends the program at once.
///
/// # Errors
/// When the handlers cannot be set.
pub fn second_ends_at_once(interrupted: &Arc<AtomicBool>) -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register_conditional_shutdown(signal, ENDED_AT_ONCE, Arc::clone(interrupted))?;
    }
    Ok(())
}

fn raise_by_signals(interrupted: &Arc<AtomicBool>) -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(interrupted))?;
    }
    explain_long_ends(Arc::clone(interrupted));
    Ok(())
}

/// Says why nothing seems to happen when the end takes long: a disk that is stuck keeps its
/// requests. The thread ends with the process.
fn explain_long_ends(interrupted: Arc<AtomicBool>) {
    let watch = move || {
        while !interrupted.load(Relaxed) {
            thread::sleep(LOOK);
        }
        thread::sleep(PATIENCE);
        let _ = writeln!(
            std::io::stderr(),
            "{}disksmith: ending; waiting for what is under way. Press Ctrl-C again to end at once.",
            progress::cleared()
        );
    };
    // Without the thread, it ends just as well.
    let _ = thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch);
}
