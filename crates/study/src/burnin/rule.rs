//! Rule of a race.

/// Rule of a race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Number of hosts of each group that are kept.
    pub keep: usize,
    /// Hosts within this share of each other are as good: 0.02 is 2 %.
    pub tie: f64,
    /// The most rounds.
    pub rounds: usize,
    /// Number of rounds in which every host is measured before any drops out; at least two.
    pub least: usize,
    /// Probability that any group is decided wrongly.
    pub risk: f64,
    /// The worst share of the rounds, which a host's figure is the mean of.
    pub tail: f64,
    /// Share of the rounds in which a slowness must have had its chance to show before a host is kept.
    pub unseen: f64,
}

impl Rule {
    /// The best `keep` of each group: a tie of 2 %, at most 240 rounds, a risk of 5 %, and the worst
    /// tenth of the rounds, where a slowness of one round in ten must have shown.
    pub fn keeping(keep: usize) -> Rule {
        Rule {
            keep,
            tie: 0.02,
            rounds: 240,
            least: 2,
            risk: 0.05,
            tail: 0.1,
            unseen: 0.1,
        }
    }
}
