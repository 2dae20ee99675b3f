//! Facts about the machine, saved with every run.

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The instance, as the cloud's metadata service describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cloud {
    /// `aws`, `gcp` or `azure`.
    pub provider: String,
    /// The instance type, such as `i4i.large`.
    pub instance_type: Option<String>,
    /// The zone, such as `us-east-1a`.
    pub zone: Option<String>,
    /// The instance's id.
    pub instance_id: Option<String>,
}

/// The file system that the target lies on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemFacts {
    /// Type of the file system, such as `ext4`.
    pub kind: String,
    /// Path at which the file system is mounted.
    pub mount_point: String,
    /// Mount options and super-block options.
    pub options: String,
}

/// Facts about the machine and the device below the target. An optional fact is `None` where it is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// The host's name.
    pub hostname: String,
    /// The kernel's release, such as `6.1.0-13-cloud-amd64`.
    pub kernel: String,
    /// The processor's architecture, such as `x86_64`.
    pub arch: String,
    /// The processor's model.
    pub cpu: String,
    /// Number of logical CPUs in the affinity mask of the process; all of the machine's where that cannot be read.
    pub cores: u32,
    /// Memory of the machine.
    pub memory: Bytes,
    /// The tightest memory limit of this process's cgroups, where it is below the machine's memory.
    pub memory_limit: Option<Bytes>,
    /// The file system below the target; `None` for a block device.
    pub filesystem: Option<FilesystemFacts>,
    /// I/O scheduler of the block device below the target, such as `none`.
    pub scheduler: Option<String>,
    /// Read-ahead of that device.
    pub read_ahead: Option<Bytes>,
    /// True if that device reports that it is rotational.
    pub rotational: Option<bool>,
    /// Write cache of that device, as the kernel sees it: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The cloud's metadata.
    pub cloud: Option<Cloud>,
}
