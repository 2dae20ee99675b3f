//! Numbers of devices in a series of samples.

use serde::{Deserialize, Serialize};

/// Number of a device in a series of samples, from 0 in the order in which devices were first seen. Numbers are not
/// reused: another device that takes the name of a removed one has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct DeviceId(pub u32);
