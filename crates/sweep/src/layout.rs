//! Factors that a sweep varies, and layouts.

use std::fmt;

use record::Bytes;
use serde::{Deserialize, Serialize};

use array::geometry::Geometry;
use domain::filesystem::Fs;
use domain::raid::{Level, Placement, Raid10Layout};

/// A layout that is built, formatted and measured: a setting of each factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// The RAID level; `None` for a disk alone.
    pub level: Option<Level>,
    /// Number of members; the first devices are used.
    pub members: usize,
    /// Layout of the copies of RAID 10; `None` for n2 and at other levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<Raid10Layout>,
    /// The chunk size; `None` for layouts without chunks.
    pub chunk: Option<Bytes>,
    /// The file system.
    pub fs: Fs,
    /// The I/O scheduler of the members; `None` leaves it unchanged.
    pub scheduler: Option<String>,
}

/// Property in which two layouts may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Factor {
    /// The RAID level, with the layout of its copies.
    Level,
    /// The number of members.
    Members,
    /// The chunk.
    Chunk,
    /// The file system.
    Fs,
    /// The I/O scheduler.
    Scheduler,
}

impl Factor {
    /// All factors, in the order in which they are shown.
    pub(crate) const ALL: [Factor; 5] = [
        Factor::Level,
        Factor::Members,
        Factor::Chunk,
        Factor::Fs,
        Factor::Scheduler,
    ];

    /// Name in tables and JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Factor::Level => "level",
            Factor::Members => "members",
            Factor::Chunk => "chunk",
            Factor::Fs => "fs",
            Factor::Scheduler => "scheduler",
        }
    }
}

impl Layout {
    /// The layout's setting of a factor, as text; `–` if it has none.
    pub(crate) fn setting(&self, factor: Factor) -> String {
        let none = || "–".to_owned();
        match factor {
            Factor::Level => match (self.level, self.copies) {
                (None, _) => "alone".to_owned(),
                (Some(level), None) => level.mdadm_name().to_owned(),
                (Some(level), Some(copies)) => format!("{} {}", level.mdadm_name(), copies.name()),
            },
            Factor::Members => self.members.to_string(),
            Factor::Chunk => self.chunk.map_or_else(none, |chunk| chunk.to_string()),
            Factor::Fs => self.fs.name().to_owned(),
            Factor::Scheduler => self.scheduler.clone().unwrap_or_else(none),
        }
    }

    /// Geometry of the array; `None` for a single disk.
    pub(crate) fn geometry(&self) -> Option<Geometry> {
        Some(Geometry {
            level: self.level?,
            members: self.members as u64,
            chunk: self.chunk,
            layout: self.copies.unwrap_or_default(),
        })
    }

    /// Layout of the copies of RAID 10; `None` at other levels.
    pub(crate) fn copies_label(&self) -> Option<&'static str> {
        let Geometry { level, layout, .. } = self.geometry()?;
        (level.placement() == Placement::StripedCopies).then(|| layout.name())
    }

    /// Name of the level: `RAID 10`, `RAID 10 f2`, `one disk`.
    pub(crate) fn level_name(&self) -> String {
        level_name(&self.setting(Factor::Level), Level::name)
    }

    /// Number of members that may fail, whichever they are, before data is lost.
    pub(crate) fn survives(&self) -> usize {
        self.level.map_or(0, |level| level.survives(self.members))
    }

    /// Usable capacity of a layout on the first of devices with these sizes.
    pub(crate) fn capacity(&self, sizes: &[Bytes]) -> Bytes {
        let sizes = sizes.get(..self.members).unwrap_or(sizes);
        match self.geometry() {
            Some(geometry) => geometry.capacity(sizes),
            None => sizes.first().copied().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Layout {
    /// Formats the layout as in tables: `RAID 10 of 8, 256 KiB, xfs, mq-deadline`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.level_name())?;
        if self.level.is_some() {
            write!(f, " of {}", self.members)?;
        }
        if let Some(chunk) = self.chunk {
            write!(f, ", {chunk}")?;
        }
        write!(f, ", {}", self.fs.name())?;
        if let Some(scheduler) = &self.scheduler {
            write!(f, ", {scheduler}")?;
        }
        Ok(())
    }
}

/// A setting of [`Factor::Level`] in prose; `named` returns the name of a level.
pub(crate) fn level_name(setting: &str, named: fn(Level) -> String) -> String {
    let (word, copies) = setting.split_once(' ').unwrap_or((setting, ""));
    match Level::from_mdadm_name(word) {
        Some(level) if copies.is_empty() => named(level),
        Some(level) => format!("{} {copies}", named(level)),
        None => "one disk".to_owned(),
    }
}

/// The settings of the factors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Factors {
    /// Numbers of members.
    pub members: Vec<usize>,
    /// RAID levels to compare.
    pub levels: Vec<Level>,
    /// The layouts of the copies, for RAID 10.
    #[serde(default = "near")]
    pub copies: Vec<Raid10Layout>,
    /// The chunk sizes, for levels that have chunks.
    pub chunks: Vec<Bytes>,
    /// File systems to compare.
    pub file_systems: Vec<Fs>,
    /// The schedulers; empty to leave them unchanged.
    pub schedulers: Vec<String>,
    /// Number of members that may fail.
    pub survives: usize,
}

/// The default layout of the copies, for sweeps of versions that did not vary it.
fn near() -> Vec<Raid10Layout> {
    vec![Raid10Layout::N2]
}

#[cfg(test)]
impl Factors {
    /// Factors of simulated sweeps.
    pub(crate) fn for_tests() -> Factors {
        Factors {
            members: vec![1],
            levels: Vec::new(),
            copies: near(),
            chunks: Vec::new(),
            file_systems: Vec::new(),
            schedulers: Vec::new(),
            survives: 0,
        }
    }
}
