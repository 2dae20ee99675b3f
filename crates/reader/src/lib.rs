//! Reading devices from end to end, for `warm` and `scrub --read`.
//!
//! - `work`: what is still to be asked for, what was read, and what cannot be; over `queue`, the
//!   requests in their order, and `narrowing`, the pieces of those that failed;
//! - `meter`: what comes back, counted;
//! - `volume`: the device, and by what it is known again.

mod lock;
mod meter;
mod narrowing;
mod queue;
mod volume;
mod work;

pub use lock::{is_locked, lock_disks};
pub use meter::Meter;
pub use narrowing::{LONGEST, PIECES_IN_FLIGHT};
pub use volume::{Attached, Key, NotOpened, Volume};
pub use work::{ReadRequest, Work};
