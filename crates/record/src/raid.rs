//! The RAID levels of md(4), and their properties. Other modules use the placement of a level's data, so that a new
//! level is added only here.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! levels {
    ($($(#[$doc:meta])* $level:ident,)+) => {
        /// A RAID level.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "lowercase")]
        pub enum Level {
            $($(#[$doc])* $level,)+
        }

        impl Level {
            /// All levels of md.
            pub const ALL: [Level; [$(Level::$level),+].len()] = [$(Level::$level),+];
        }
    };
}

levels! {
    /// Stripes over all members, no copy.
    Zero,
    /// The same data on all members.
    One,
    /// Stripes with one parity, all of it on one member.
    Four,
    /// Stripes with one parity.
    Five,
    /// Stripes with two parities.
    Six,
    /// Stripes with copies.
    Ten,
    /// Members concatenated.
    Linear,
}

/// Level of an array as md(4) names it: a RAID level, or another name, such as `container`. It is serialized as md's
/// name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String", into = "String")]
pub enum MdLevel {
    /// A RAID level.
    Raid(Level),
    /// Another level, by md's name.
    Other(String),
}

impl MdLevel {
    /// The RAID level, if it is one.
    pub fn raid(&self) -> Option<Level> {
        match self {
            MdLevel::Raid(level) => Some(*level),
            MdLevel::Other(_) => None,
        }
    }

    /// md's name of the level.
    pub fn name(&self) -> &str {
        match self {
            MdLevel::Raid(level) => level.md_name(),
            MdLevel::Other(word) => word,
        }
    }
}

impl From<String> for MdLevel {
    fn from(word: String) -> MdLevel {
        Level::from_md_name(&word).map_or(MdLevel::Other(word), MdLevel::Raid)
    }
}

impl From<Level> for MdLevel {
    fn from(level: Level) -> MdLevel {
        MdLevel::Raid(level)
    }
}

impl From<MdLevel> for String {
    fn from(level: MdLevel) -> String {
        level.name().to_owned()
    }
}

impl fmt::Display for MdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Placement of a level's data on its members. Each corresponds to a personality of md, as in /proc/mdstat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Members concatenated (drivers/md/md-linear.c).
    Concatenated,
    /// Stripes over all members (drivers/md/raid0.c).
    Striped,
    /// The same data on all members (drivers/md/raid1.c).
    Mirrored,
    /// Stripes in which each chunk has copies (drivers/md/raid10.c).
    StripedCopies,
    /// Stripes with parity (drivers/md/raid5.c).
    Parity {
        /// Number of parity chunks in each stripe.
        count: usize,
        /// True if parity rotates over the members from stripe to stripe; false if it is always on the last ones.
        rotates: bool,
    },
}

/// Redundancy by which a level survives the loss of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// No redundancy.
    None,
    /// Copies of the data.
    Copies,
    /// Parity, with this number of parity chunks in each stripe.
    Parity(usize),
}

impl Level {
    /// The levels that can be built. RAID 4 is left out: it is RAID 5 with all parity writes on one member.
    pub const BUILT: [Level; 6] = [
        Level::Zero,
        Level::One,
        Level::Five,
        Level::Six,
        Level::Ten,
        Level::Linear,
    ];

    /// Name of the level as mdadm accepts it.
    pub fn mdadm_name(self) -> &'static str {
        match self {
            Level::Zero => "0",
            Level::One => "1",
            Level::Four => "4",
            Level::Five => "5",
            Level::Six => "6",
            Level::Ten => "10",
            Level::Linear => "linear",
        }
    }

    /// md's name of the level, as in /proc/mdstat and sysfs.
    pub fn md_name(self) -> &'static str {
        match self {
            Level::Zero => "raid0",
            Level::One => "raid1",
            Level::Four => "raid4",
            Level::Five => "raid5",
            Level::Six => "raid6",
            Level::Ten => "raid10",
            Level::Linear => "linear",
        }
    }

    /// The level with this name in md; `None` for other names, such as `container`.
    pub fn from_md_name(word: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.md_name() == word)
    }

    /// The level with this name in mdadm.
    pub fn from_mdadm_name(word: &str) -> Option<Level> {
        Level::ALL
            .into_iter()
            .find(|level| level.mdadm_name() == word)
    }

    /// Name of the level for people: `RAID 5`, `linear`.
    pub fn name(self) -> String {
        match self {
            Level::Linear => self.mdadm_name().to_owned(),
            _ => format!("RAID {}", self.mdadm_name()),
        }
    }

    /// The level in prose.
    pub fn title(self) -> String {
        match self {
            Level::Linear => "a linear array".to_owned(),
            _ => self.name(),
        }
    }

    /// The level in a line of help.
    pub fn help(self) -> &'static str {
        match self {
            Level::Zero => "Stripes over all members, no copy",
            Level::One => "The same on all members",
            Level::Four => "Stripes with one parity on one member",
            Level::Five => "Stripes with one parity",
            Level::Six => "Stripes with two parities",
            Level::Ten => "Stripes with two copies",
            Level::Linear => "One member behind the other",
        }
    }

    /// Placement of its data on the members.
    pub fn placement(self) -> Placement {
        let parity = |count, rotates| Placement::Parity { count, rotates };
        match self {
            Level::Zero => Placement::Striped,
            Level::One => Placement::Mirrored,
            Level::Four => parity(1, false),
            Level::Five => parity(1, true),
            Level::Six => parity(2, true),
            Level::Ten => Placement::StripedCopies,
            Level::Linear => Placement::Concatenated,
        }
    }

    /// Redundancy of the level.
    pub fn redundancy(self) -> Redundancy {
        match self.placement() {
            Placement::Concatenated | Placement::Striped => Redundancy::None,
            Placement::Mirrored | Placement::StripedCopies => Redundancy::Copies,
            Placement::Parity { count, .. } => Redundancy::Parity(count),
        }
    }

    /// List of the levels that survive the loss of a member, as in `RAID 1, 5 and 10`.
    pub fn redundant_list() -> String {
        let levels = Level::ALL.into_iter().filter(|level| level.is_redundant());
        let names: Vec<&str> = levels.map(Level::mdadm_name).collect();
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        format!("{} and {last}", others.join(", "))
    }

    /// True if the level survives the loss of a member.
    pub fn is_redundant(self) -> bool {
        self.redundancy() != Redundancy::None
    }

    /// True if the level writes parity.
    pub fn has_parity(self) -> bool {
        matches!(self.redundancy(), Redundancy::Parity(_))
    }

    /// True if the level keeps copies.
    pub fn has_copies(self) -> bool {
        self.redundancy() == Redundancy::Copies
    }

    /// True if data is divided into chunks.
    pub fn has_chunks(self) -> bool {
        !matches!(
            self.placement(),
            Placement::Mirrored | Placement::Concatenated
        )
    }

    /// Minimum number of members; with fewer it would be equivalent to another level, or to none. md permits RAID 10
    /// on two members, as a RAID 1 that can have the far layout.
    pub fn least_members(self) -> usize {
        match self.redundancy() {
            Redundancy::None | Redundancy::Copies => 2,
            Redundancy::Parity(parities) => 2 + parities,
        }
    }

    /// True if mdadm builds it degraded and recovers its last member, which is fastest (mdadm, Create.c: for levels 4
    /// and 5 the last member is `missing` at first, unless `--force` is given).
    pub fn is_built_degraded(self) -> bool {
        self.redundancy() == Redundancy::Parity(1)
    }

    /// Number of members, whichever they are, that may fail without loss of data.
    pub fn survives(self, members: usize) -> usize {
        match self.placement() {
            Placement::Concatenated | Placement::Striped => 0,
            Placement::Mirrored => members.saturating_sub(1),
            Placement::StripedCopies => 1,
            Placement::Parity { count, .. } => count,
        }
    }

    /// Number of I/Os on the members that a small write becomes.
    ///
    /// Each copy is written. With parity, the old data and its parity are read and written: four I/Os with one parity
    /// (Patterson, Gibson and Katz, A Case for Redundant Arrays of Inexpensive Disks, 1988) and six with two. If fewer
    /// members need to be read to compute the parity from all data, md reads those (linux, drivers/md/raid5.c,
    /// handle_stripe_dirtying). Writes of whole stripes, as in a bulk load, need fewer I/Os.
    pub fn small_write_io(self, members: usize) -> usize {
        match self.placement() {
            Placement::Concatenated | Placement::Striped => 1,
            Placement::Mirrored => members,
            Placement::StripedCopies => 2,
            Placement::Parity { count, .. } => {
                let others = members.saturating_sub(count + 1);
                1 + count + others.min(1 + count)
            }
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.md_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_one_level_each() {
        for level in Level::ALL {
            assert_eq!(Level::from_md_name(level.md_name()), Some(level));
            assert_eq!(Level::from_mdadm_name(level.mdadm_name()), Some(level));
            assert_eq!(level.to_string(), level.md_name());
        }
        assert_eq!(Level::from_md_name("container"), None);
        assert_eq!(Level::from_md_name("10"), None);
    }

    #[test]
    fn a_level_of_md_is_written_as_its_word() {
        for word in ["raid10", "linear", "container", ""] {
            let level = MdLevel::from(word.to_owned());
            let json = serde_json::to_string(&level).unwrap();
            assert_eq!(json, format!("\"{word}\""));
            assert_eq!(serde_json::from_str::<MdLevel>(&json).unwrap(), level);
            assert_eq!(level.raid(), Level::from_md_name(word));
        }
    }

    #[test]
    fn words_of_levels_with_redundancy_are_a_list() {
        assert_eq!(Level::redundant_list(), "1, 4, 5, 6 and 10");
    }

    #[test]
    fn a_level_survives_fewer_losses_than_it_has_members() {
        for level in Level::ALL {
            let least = level.least_members();
            assert!(level.survives(least) < least, "{level}");
            assert_eq!(level.survives(least) > 0, level.is_redundant(), "{level}");
        }
    }
}
