//! Options of a replay.

use record::{OffsetMap, Pace};
use serde::{Deserialize, Serialize};

/// Options of a replay. `None` selects the default of an option.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayOptions {
    /// Rule by which I/Os are timed; `Recorded` by default.
    pub pace: Option<Pace>,
    /// Factor by which recorded times are shortened; 1 by default.
    pub speed: Option<f64>,
    /// Rule by which offsets are mapped; `Exact` by default.
    pub map: Option<OffsetMap>,
    /// The only device of the trace that is replayed; all of them by default.
    pub device: Option<String>,
    /// True if writes, flushes and discards are left out.
    pub reads_only: bool,
    /// True if discards are issued.
    pub discards: bool,
    /// Share of the written data that is compressible, 0 to 1; 0 by default.
    pub compressible: Option<f64>,
}
