//! A finding of a watch: an event with a start and an end.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Severity;
use crate::sample::{DeviceId, Moment};

/// Defines the kinds of events, of one row each: its meaning, its name, and its word in tables and JSON.
macro_rules! event_codes {
    ($($(#[$doc:meta])+ $name:ident = $word:literal,)+) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum EventCode {
            $($(#[$doc])+ #[serde(rename = $word)] $name,)+
        }

        impl EventCode {
            /// All of them.
            pub const ALL: &[EventCode] = &[$(EventCode::$name),+];

            /// The word for it in tables and JSON.
            pub fn word(self) -> &'static str {
                match self {
                    $(EventCode::$name => $word,)+
                }
            }
        }
    };
}

event_codes! {
    /// Requests are in flight and none completes.
    Stalled = "stalled",
    /// A member of an array is slower than its siblings at the same load.
    SlowMember = "slow-member",
    /// The volume gives no more than was bought.
    VolumeCap = "volume-cap",
    /// The instance gives its volumes no more.
    InstanceCap = "instance-cap",
    /// A level that was held for long is followed by a lower one: burst credit was spent.
    BurstSpent = "burst-spent",
    /// The members of an array are not asked for the same.
    Imbalance = "imbalance",
    /// A check or rebuild of an array makes its users wait.
    ScrubHurts = "scrub-hurts",
    /// Blocks of the volume are read for the first time.
    Cold = "cold",
    /// Many small requests where few large ones would do.
    SmallIo = "small-io",
    /// The device's queue is full, so that requests wait before it.
    QueueFull = "queue-full",
    /// Dirty memory is near the limit at which programs are made to wait.
    Writeback = "writeback",
    /// The kernel's log or md speaks of errors.
    Errors = "errors",
    /// A device is busy nearly all the time, and its requests take very long.
    Saturated = "saturated",
    /// A control group holds its programs' requests back.
    CgroupLimit = "cgroup-limit",
    /// A device that was there is no longer.
    Removed = "removed",
}

impl fmt::Display for EventCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The host as a whole.
    Host,
    /// A device.
    Device(DeviceId),
}

/// A figure that an event rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the figure, with its unit at the end, such as `await_ns`, `iops`, `share`.
    pub key: String,
    /// Its value.
    pub value: f64,
}

/// Something that was found while watching. It appears once: it begins, its figures may change
/// while it lasts, and it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number in this watch, from 1.
    pub id: u64,
    /// Kind of the event.
    pub code: EventCode,
    /// Severity: a note or a warning.
    pub severity: Severity,
    /// Subject of the event.
    pub subject: Subject,
    /// The subject's name: the device's, or `host`.
    pub name: String,
    /// Start of its cause, which is before it was found.
    pub began: Moment,
    /// Last time at which its cause was seen; `None` while it lasts.
    pub ended: Option<Moment>,
    /// A sentence: what was seen, with its figures.
    pub text: String,
    /// Advice, in a sentence.
    pub advice: String,
    /// The figures that it rests on.
    pub figures: Vec<Figure>,
}
