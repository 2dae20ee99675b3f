//! RAID levels, and layouts of RAID 10 (md(4)).

pub use record::raid::{Level, MdLevel, Placement, Redundancy};
use serde::{Deserialize, Serialize};

/// Layout of the copies of RAID 10 (md(4), section RAID10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Raid10Layout {
    /// Two copies side by side.
    #[default]
    N2,
    /// The second copy in the second half of the next member.
    F2,
    /// The second copy in the next row of chunks, one member further.
    O2,
}

impl Raid10Layout {
    /// All layouts.
    pub const ALL: [Raid10Layout; 3] = [Raid10Layout::N2, Raid10Layout::F2, Raid10Layout::O2];

    /// The name for mdadm.
    pub fn name(self) -> &'static str {
        match self {
            Raid10Layout::N2 => "n2",
            Raid10Layout::F2 => "f2",
            Raid10Layout::O2 => "o2",
        }
    }

    /// Description of the layout in a line of help.
    pub fn help(self) -> &'static str {
        match self {
            Raid10Layout::N2 => "Two copies side by side",
            Raid10Layout::F2 => "The second copy in the second half of the next member",
            Raid10Layout::O2 => "The second copy in the next row of chunks, one member further",
        }
    }
}
