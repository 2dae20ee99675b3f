//! Rule of a race.

/// Rule of a race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Number of hosts of each group that are kept.
    pub keep: usize,
    /// Hosts that differ by at most this share are equally good: 0.02 is 2 %.
    pub tie: f64,
    /// Maximum number of rounds.
    pub rounds: usize,
    /// Minimum number of rounds in which every host is measured before any drops out; at least two.
    pub least: usize,
    /// Maximum probability that the decision of any group is wrong.
    pub risk: f64,
    /// Share of the rounds, the worst ones, over which the figure of a host is the mean.
    pub tail: f64,
    /// Smallest share of slow rounds that must have had time to show before a host is kept.
    pub unseen: f64,
}

impl Rule {
    /// The rule that keeps the best `keep` of each group: a tie of 2 %, at most 240 rounds, a risk of 5 %, the worst
    /// tenth of the rounds, and time for slowness in one round of ten to show.
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
