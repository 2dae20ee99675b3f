//! Ctrl-C and its kin: the first asks for an orderly end, the second ends at once. Test files have
//! no name, so even the second leaves nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// The exit status after a second signal: failed midway.
const ENDED_AT_ONCE: i32 = 3;

/// A flag that the first signal sets.
///
/// # Errors
/// When the handlers cannot be set.
pub(crate) fn interrupt_flag() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: the first signal finds the flag down, passes here, and raises it.
        flag::register_conditional_shutdown(signal, ENDED_AT_ONCE, Arc::clone(&interrupted))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}
