//! Opening a store that may not answer yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use super::meter::Meter;
use super::plan::SumTargets;
use super::shared::SharedState;
use super::store_sums::StoreSums;
use super::timing::{MAX_RETRY_DELAY, TICK};
use super::writer::Writer;
use crate::store::{Result, Store, StoreAddress, StoreError};
use ui::service_manager::notify;

/// Opens a store as soon as it answers.
///
/// # Errors
/// Where it is refused, or a stop was requested meanwhile.
pub(crate) fn open_when_it_answers(
    stop: &AtomicBool,
    mut open: impl FnMut() -> Result<Box<dyn Store>>,
) -> Result<Box<dyn Store>> {
    let (mut wait, mut is_reported) = (TICK, false);
    loop {
        let error = match open() {
            Err(StoreError::Unavailable(error)) => error,
            opened => return opened,
        };
        if stop.load(Relaxed) {
            return Err(StoreError::Unavailable(error));
        }
        if !is_reported {
            is_reported = true;
            let reason = ui::exit::sentence(&error);
            crate::notices::report(&format!(
                "{reason}; waiting for it, and nothing is taken meanwhile"
            ));
            // A store that goes down later does not make the service unready either.
            notify("READY=1\nSTATUS=Waiting for a store");
        }
        let until = Instant::now() + wait;
        wait = (wait * 2).min(MAX_RETRY_DELAY);
        while Instant::now() < until && !stop.load(Relaxed) {
            std::thread::sleep(TICK / 4);
        }
    }
}

/// Opens the stores of a plan: the sums for each store, and their writer. Each store is opened twice: to write, and to
/// look up identities.
pub(super) fn open_stores(
    plan: &SumTargets,
    shared: &SharedState,
    meter: Arc<Meter>,
) -> Result<(Vec<StoreSums>, Writer)> {
    let open = |address: &StoreAddress| {
        open_when_it_answers(&shared.stop, || address.open(None, None, &plan.limits))
    };
    let writing: Result<Vec<_>> = plan.stores.iter().map(open).collect();
    let looking_up: Result<Vec<_>> = plan.stores.iter().map(open).collect();
    let stores = looking_up?.into_iter().map(StoreSums::new).collect();
    let writer = Writer::start(writing?, shared.clone(), plan.limits.clone(), meter);
    Ok((stores, writer))
}
