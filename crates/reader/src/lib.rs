//! Reads devices from end to end, for `warm`, `zero` and `scrub --read`.
//!
//! - `work`: ranges still to be read, ranges that were read, and ranges that cannot be; based on `queue`, the order of
//!   requests, and `narrowing`, the pieces of failed requests;
//! - `foreground`: the report on the foreground, for the answer;
//! - `idle_gap`: waits for moments without foreground requests; `buffer`: memory for direct reads;
//! - `disk_counter`: the kernel's I/O counts; `ledger`: the disks below the ledger;
//! - `pacer`: decides the background's rate while there is a foreground; `rate_limiter`: spaces requests at that rate;
//! - `own_latency`: the latency of the background's own requests;
//! - `probe`: reads that measure the foreground's latency;
//! - `queue_bound`: the limit of requests in flight when no foreground is detected;
//! - `meter`: counts of completions;
//! - `volume`: the device, and its key in the ledger.

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
