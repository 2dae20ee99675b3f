//! Activities that figures count.

use serde::{Deserialize, Serialize};

use crate::Direction;

/// Activity that a figure of another tool counts. It is more than a [`Direction`]: tools also count files,
/// and requests of all kinds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// Requests that read.
    Read,
    /// Requests that write.
    Write,
    /// fsync and fdatasync calls.
    Sync,
    /// A group of writes and the fdatasync that ends it.
    Commit,
    /// Discards.
    Trim,
    /// Requests of all kinds, which the tool does not distinguish.
    All,
    /// Files created.
    Create,
    /// Files examined.
    Stat,
    /// Files removed.
    Delete,
}

impl Activity {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Read => "read",
            Activity::Write => "write",
            Activity::Sync => "sync",
            Activity::Commit => "commit",
            Activity::Trim => "trim",
            Activity::All => "all",
            Activity::Create => "create",
            Activity::Stat => "stat",
            Activity::Delete => "delete",
        }
    }
}

impl From<Direction> for Activity {
    fn from(direction: Direction) -> Activity {
        match direction {
            Direction::Read => Activity::Read,
            Direction::Write => Activity::Write,
            Direction::Sync => Activity::Sync,
            Direction::Commit => Activity::Commit,
            Direction::Trim => Activity::Trim,
        }
    }
}
