//! Reading devices from end to end, for `warm`, `zero` and `scrub --read`.
//!
//! - `work`: what is still to be requested, what was read, and what cannot be; over `queue`, the
//!   requests in their order, and `narrowing`, the pieces of those that failed;
//! - `foreground`: what the foreground had, for the answer;
//! - `idle_gap`: moments of a device without foreground requests; `buffer`, memory for direct reads;
//! - `disk_counter`: the kernel's counts; `ledger`: the disks of the ledger;
//! - `pacer`: the rate beside a foreground; `rate_limiter`: requests that keep to it;
//! - `own_latency`: what one of them takes of the device;
//! - `probe`: reads as the foreground makes them;
//! - `queue_bound`: the bound on requests in flight where no foreground is known;
//! - `meter`: what comes back, counted;
//! - `volume`: the device, and the key by which the ledger knows it again.

mod buffer;
mod disk_counter;
mod foreground;
mod idle_gap;
mod ledger;
mod lock;
mod meter;
mod narrowing;
mod own_latency;
mod pacer;
mod probe;
mod queue;
mod queue_bound;
mod rate_limiter;
mod volume;
mod work;

pub use buffer::Buffer;
pub use disk_counter::DiskCounter;
pub use foreground::{ForegroundReport, KeepArgs, ReportArgs, pacing_text, write_page};
pub use idle_gap::IdleGap;
pub use ledger::below_ledger;
pub use lock::{is_locked, lock_disks};
pub use meter::Meter;
pub use narrowing::{MAX_NARROWING_TIME, PIECES_IN_FLIGHT};
pub use own_latency::{LeastLatency, REQUEST_SIZE_BESIDE_FOREGROUND};
pub use pacer::{MeasuredInterval, Pacer};
pub use probe::{PROBE_BYTES, Prober, Probes};
pub use queue_bound::QueueBound;
pub use rate_limiter::RateLimiter;
pub use volume::{DiskAttachment, OpenError, Volume, VolumeKey, is_ebs};
pub use work::{ReadRequest, Work};
