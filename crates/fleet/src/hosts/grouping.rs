//! Properties by which hosts are grouped, and rules that break ties.

use serde::{Deserialize, Serialize};

/// Property that hosts of one group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupBy {
    /// The zone.
    Zone,
    /// The instance type.
    Type,
}

impl GroupBy {
    /// The name of the property.
    pub(crate) fn name(self) -> &'static str {
        match self {
            GroupBy::Zone => "zone",
            GroupBy::Type => "type",
        }
    }
}

/// Rule that breaks ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieBreak {
    /// By name, in the order of the alphabet
    Name,
    /// By price, the cheapest first, which each host of the list has as 'price=0.172'
    Price,
}
