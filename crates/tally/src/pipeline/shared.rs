//! State and rules that all pipelines share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::dead_letters::DeadLetters;
use super::plan::Plans;

/// Rules by which sums are flushed: whichever is first.
#[derive(Clone, Copy, Debug)]
pub struct FlushRule {
    /// Number of different sums and identities.
    pub sums: usize,
    /// Time since the first delivery.
    pub every: Duration,
    /// Bytes of all sums in memory.
    pub memory: usize,
}

impl Default for FlushRule {
    fn default() -> FlushRule {
        FlushRule {
            sums: 30_000,
            every: Duration::from_secs(20),
            memory: 64 << 20,
        }
    }
}

/// State that all pipelines share.
#[derive(Clone)]
pub struct SharedState {
    /// A stop was requested.
    pub stop: Arc<AtomicBool>,
    /// Rejected events.
    pub dead_letters: Arc<DeadLetters>,
    /// Rule by which sums are flushed.
    pub flush: FlushRule,
    /// Plan in force: the stores and the routes to them.
    pub plans: Arc<Plans>,
}
