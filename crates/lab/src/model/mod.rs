//! Time and result of each request: without side effects, in simulated time.
//!
//! A [`Volume`] accepts requests in the order of their arrival, and computes for each when it leaves the volume's own
//! queue and when it completes ([`Admission`]). A [`FairQueue`] follows several volumes, and limits their total to the
//! caps of an instance. Nothing here reads a clock or does I/O: the caller passes the time, and the random numbers
//! come from a seed, so that the same requests at the same times get the same answers.
//!
//! Modelled effects:
//!
//! - **Caps** are token buckets that hold 5 ms of their rate, so that an idle volume gives no
//!   burst to speak of. Requests wait for tokens in the order of their arrival.
//! - **Burst** (gp2): a second bucket of credits that fills at the baseline; the volume runs at its
//!   burst rate while there are credits.
//! - **Merging**: a request that continues another one which is still in flight, in the same
//!   direction, joins it up to the `merge` size and counts nothing; a larger one counts once for
//!   each `merge` size begun. Requests that never are in flight together do not merge. What waits at
//!   a [`FairQueue`] counts as answered when it would have been without one.
//! - **Cold blocks**: the first read of a block starts its fetch and waits for it; others that need
//!   it meanwhile wait for the same fetch; fetches of different blocks know nothing of each other, unless
//!   their sum is limited (EBS User Guide, "Initialize Amazon EBS volumes", provisioned rate).
//!   A write that covers a whole block has nothing to fetch and makes it warm. A write of a part
//!   must first have the rest, and waits as a read does. Discarding a whole block makes it warm, a
//!   part of one changes nothing.
//! - **Fail-slow** multiplies the latency and divides the caps; **stalls** hold every answer, and
//!   every start, to their end. Credits still flow.
//! - **Errors** cost what success costs.
//! - A flush waits for its latency only, also on a volume with a volatile cache: what that costs a
//!   drive differs too much from drive to drive. Which writes are durable is for the store to know.
//!   A discard counts as one operation of no bytes; writing zeros counts as a write.

mod bucket;
mod cold;
mod fair_queue;
mod merge;
mod noise;
mod request;
mod volume;

#[cfg(test)]
mod tests;

use record::Bytes;
use serde::{Deserialize, Serialize};

pub use fair_queue::{AdmittedRequest, Caps, FairQueue};
pub use noise::NoiseModel;
pub use record::random::SplitMix64 as Random;
pub use request::{Request, RequestKind};
pub use volume::{Admission, Counters, Volume};

/// Operations and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// Number of operations.
    pub ops: u64,
    /// Bytes that they moved.
    pub bytes: Bytes,
}

impl Flow {
    fn add(&mut self, ops: u64, bytes: u64) {
        self.ops += ops;
        self.bytes += Bytes(bytes);
    }
}
