//! The kinds of events and their rules, one file a rule. A new one is a row of the table and its file.

mod burst_spent;
mod cgroup_limit;
mod cold;
mod errors;
mod imbalance;
mod instance_cap;
mod queue_full;
mod removed;
mod scrub_hurts;
mod slow_member;
mod small_io;
pub(super) mod stalled;
mod volume_cap;
mod writeback;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rule::{Rule, Settings};

/// Implication of a finding for the question whether the disk changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingMeaning {
    /// The disk, or the work on it, changed.
    Changed,
    /// The disk reached a limit: a lower limit or more I/O.
    AtALimit,
    /// The disk is used differently.
    HowItIsUsed,
}

/// Defines the kinds of events, of one row each: its meaning, its name, and its word in tables and JSON; what it
/// says of a disk whose users wait longer; and its rule, where one looks for it from sample to sample.
macro_rules! events {
    ($settings:ident: $($(#[doc = $doc:literal])+ $name:ident = $word:literal, $finding:ident $(, $rule:expr)?;)+) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum EventCode {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $name,)+
        }

        impl EventCode {
            /// All codes.
            pub const ALL: &[EventCode] = &[$(EventCode::$name),+];

            /// The word for it in tables and JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $(EventCode::$name => $word,)+
                }
            }

            /// Meaning of the event, as a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(EventCode::$name => concat!($($doc),+).trim_start(),)+
                }
            }

            /// Meaning of the event for the question whether the disk changed.
            pub(crate) fn finding_meaning(self) -> FindingMeaning {
                match self {
                    $(EventCode::$name => FindingMeaning::$finding,)+
                }
            }
        }

        /// The rules, in the order in which they look at a sample.
        pub(super) fn all($settings: &Settings) -> Vec<(EventCode, Box<dyn Rule + Send>)> {
            vec![$($((EventCode::$name, Box::new($rule) as Box<dyn Rule + Send>),)?)+]
        }
    };
}

events! {
    settings:
    /// Requests are in flight and none completes.
    Stalled = "stalled", Changed, stalled::Stalled::new(settings.stall);
    /// A device that was there is no longer.
    Removed = "removed", Changed, removed::Removed::new(settings.names.clone());
    /// The kernel's log or md speaks of errors.
    Errors = "errors", Changed, errors::Errors::default();
    /// Dirty memory is near the limit at which programs are made to wait.
    Writeback = "writeback", Changed, writeback::Writeback::default();
    /// A control group holds its programs' requests back.
    CgroupLimit = "cgroup-limit", AtALimit, cgroup_limit::CgroupLimit::default();
    /// A member of an array is slower than its siblings at the same load.
    SlowMember = "slow-member", Changed, slow_member::SlowMember;
    /// The members of an array do not get the same load.
    Imbalance = "imbalance", HowItIsUsed, imbalance::Imbalance;
    /// The volume gives no more than was bought.
    VolumeCap = "volume-cap", AtALimit, volume_cap::VolumeCap::default();
    /// The instance gives its volumes no more.
    InstanceCap = "instance-cap", AtALimit, instance_cap::InstanceCap::default();
    /// A level that was held for long is followed by a lower one: burst credit was spent.
    BurstSpent = "burst-spent", Changed, burst_spent::BurstSpent::default();
    /// A check or rebuild of an array makes its users wait.
    ScrubHurts = "scrub-hurts", Changed, scrub_hurts::ScrubHurts::default();
    /// Blocks of the volume are read for the first time.
    Cold = "cold", Changed, cold::Cold::default();
    /// Many small requests where few large ones would do.
    SmallIo = "small-io", HowItIsUsed, small_io::SmallIo;
    /// The device's queue is full, so that requests wait before it.
    QueueFull = "queue-full", AtALimit, queue_full::QueueFull;
    /// A device is busy nearly all the time, and its requests take very long.
    Saturated = "saturated", AtALimit;
}

impl fmt::Display for EventCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
