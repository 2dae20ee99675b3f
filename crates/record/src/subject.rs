//! The device or host that an event is about.

use serde::{Deserialize, Serialize};

use crate::sample::DeviceId;

/// Subject of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The host as a whole.
    Host,
    /// A device.
    Device(DeviceId),
}
