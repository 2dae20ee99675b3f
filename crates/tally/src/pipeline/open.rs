//! Opening a store that may not answer yet.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use super::{SLOWEST_RETRY, TICK};
use crate::store::{Result, Store, StoreError};
use ui::service_manager::notify;

/// Opens a store as soon as it answers.
///
/// # Errors
/// Where it is refused, or the end was asked for meanwhile.
pub(crate) fn patiently(
    stop: &AtomicBool,
    mut open: impl FnMut() -> Result<Box<dyn Store>>,
) -> Result<Box<dyn Store>> {
    let (mut wait, mut told) = (TICK, false);
    loop {
        let error = match open() {
            Err(StoreError::Unavailable(error)) => error,
            opened => return opened,
        };
        if stop.load(Relaxed) {
            return Err(StoreError::Unavailable(error));
        }
        if !told {
            told = true;
            let reason = ui::exit::sentence(&error);
            crate::news::tell(&format!(
                "{reason}; waiting for it, and nothing is taken meanwhile"
            ));
            // As ready as with a store that goes down later.
            notify("READY=1\nSTATUS=Waiting for a store");
        }
        let until = Instant::now() + wait;
        wait = (wait * 2).min(SLOWEST_RETRY);
        while Instant::now() < until && !stop.load(Relaxed) {
            std::thread::sleep(TICK / 4);
        }
    }
}
