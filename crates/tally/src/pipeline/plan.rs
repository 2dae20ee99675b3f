//! The stores and the routes to them, which may change while pipelines run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use super::timing::TICK;
use crate::config::Routes;
use crate::store::{Result, Store, StoreAddress, StoreLimits};

/// Maximum number of identities copied at once.
const IDENTITIES_PER_COPY: usize = 10_000;

/// Stores of the sums, and the routes to them.
#[derive(Debug)]
pub struct SumTargets {
    /// Addresses of the stores.
    pub stores: Vec<StoreAddress>,
    /// Routes that choose the store of each event; without them each store gets all events.
    pub routes: Option<Routes>,
    /// Retention of the stores.
    pub limits: StoreLimits,
}

/// The plan in force. To change it, the pipelines are held: each first writes all that it summed under the old plan.
#[derive(Debug)]
pub struct Plans {
    current: Mutex<Arc<SumTargets>>,
    hold: AtomicBool,
    held: AtomicUsize,
}

impl Plans {
    /// The first plan.
    pub fn new(plan: SumTargets) -> Plans {
        Plans {
            current: Mutex::new(Arc::new(plan)),
            hold: AtomicBool::new(false),
            held: AtomicUsize::new(0),
        }
    }

    /// The plan in force.
    pub fn current(&self) -> Arc<SumTargets> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes all pipelines wait, or continue.
    pub(crate) fn hold(&self, hold: bool) {
        self.hold.store(hold, SeqCst);
    }

    /// Number of pipelines that wait.
    pub(crate) fn held(&self) -> usize {
        self.held.load(SeqCst)
    }

    /// Changes the plan, while the pipelines wait.
    pub(crate) fn change(&self, plan: SumTargets) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
    }

    pub(super) fn is_held(&self) -> bool {
        self.hold.load(SeqCst)
    }

    /// Waits until the pipelines may continue, or a stop is requested.
    pub(super) fn wait(&self, is_stopped: impl Fn() -> bool) {
        self.held.fetch_add(1, SeqCst);
        while self.is_held() && !is_stopped() {
            std::thread::sleep(TICK / 4);
        }
        self.held.fetch_sub(1, SeqCst);
    }
}

/// Copies identities and positions from existing stores to new ones: those events were counted before the new stores
/// existed.
///
/// # Errors
/// Where a store does not answer.
pub(crate) fn join(stores: &mut [Box<dyn Store>]) -> Result<()> {
    let fresh: Result<Vec<bool>> = stores.iter_mut().map(|store| store.is_fresh()).collect();
    let fresh = fresh?;
    for from in (0..stores.len()).filter(|from| !fresh[*from]) {
        let positions = stores[from].positions()?;
        let mut after = Vec::new();
        loop {
            let keys = stores[from].identities(&after, IDENTITIES_PER_COPY)?;
            for to in (0..stores.len()).filter(|to| fresh[*to]) {
                stores[to].adopt(&keys, &positions, true)?;
            }
            match keys.last() {
                Some(last) => after = last.bytes().to_vec(),
                None => break,
            }
        }
    }
    for to in (0..stores.len()).filter(|to| fresh[*to]) {
        stores[to].adopt(&[], &[], false)?;
    }
    Ok(())
}
