//! Numbers of devices in a series of samples.

use serde::{Deserialize, Serialize};

/// A device in a series of samples: numbered from 0 in the order in which they were first seen. The
/// number of one that is gone is not given again, so that another device that takes its name is
/// another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct DeviceId(pub u32);
