//! Absences of hosts, as far as they count against them.

use std::collections::BTreeMap;

/// So often a host may be missing. One that is away more often could be away whenever it is slow.
pub(super) const MOST: usize = 3;

/// Absences of each host.
#[derive(Debug)]
pub(super) struct Absences {
    /// By the host's place.
    of: BTreeMap<usize, Absence>,
    /// Number of consecutive rounds in which a host may be missing.
    on_end: usize,
}

#[derive(Debug, Default)]
struct Absence {
    /// Number of absences, without a silence that is not over yet: each counts once.
    count: usize,
    /// In how many rounds, with those of such a silence.
    rounds: usize,
    /// The rounds of such a silence.
    silent: Vec<usize>,
    /// The rounds in which it was missing, which is not held against it.
    excused: Vec<usize>,
}

impl Absence {
    /// Number of rounds in which it was missing, where that was too often, or in too many rounds on end.
    fn too_often(&self, on_end: usize) -> Option<usize> {
        let count = self.count + usize::from(!self.silent.is_empty());
        (count > MOST || self.silent.len() > on_end).then_some(self.rounds)
    }
}

impl Absences {
    /// None was missing yet. Rounds take `round_s` seconds, and a host may be missing for `silent_s` on end,
    /// which is what it takes to be reached again after a loss.
    pub(super) fn new(round_s: f64, silent_s: f64) -> Absences {
        let rounds = (silent_s / round_s).floor();
        let rounds = if rounds.is_finite() {
            rounds as usize
        } else {
            0
        };
        Absences {
            of: BTreeMap::new(),
            on_end: rounds.max(MOST),
        }
    }

    /// A host was away in a round. In how many it was missing, where that was too often.
    pub(super) fn was_away(&mut self, host: usize, round: usize) -> Option<usize> {
        let absence = self.of.entry(host).or_default();
        absence.rounds += 1;
        absence.silent.push(round);
        absence.too_often(self.on_end)
    }

    /// A host was away in a round, and it is not held against it.
    pub(super) fn was_excused(&mut self, host: usize, round: usize) {
        self.of.entry(host).or_default().excused.push(round);
    }

    /// Counts a round in which nothing of a host's figures was its disks'. In how many rounds it was missing,
    /// where that was too often.
    pub(super) fn counts(&mut self, host: usize) -> Option<usize> {
        let absence = self.of.entry(host).or_default();
        absence.rounds += 1;
        absence.count += 1;
        absence.too_often(self.on_end)
    }

    /// A host is there again. To be away counts once, however many rounds that took: a connection that was lost
    /// takes several to be made again.
    pub(super) fn is_back(&mut self, host: usize) {
        if let Some(absence) = self.of.get_mut(&host) {
            absence.count += usize::from(!absence.silent.is_empty());
            absence.silent.clear();
        }
    }

    /// A host has answered a round too late. It is judged by that answer, and so it was not missing since.
    pub(super) fn has_answered(&mut self, host: usize, round: usize) {
        if let Some(absence) = self.of.get_mut(&host) {
            absence.excused.retain(|silent| *silent < round);
            let before = absence.silent.len();
            absence.silent.retain(|silent| *silent < round);
            absence.rounds -= before - absence.silent.len();
        }
        self.is_back(host);
    }

    /// Number of rounds in which a host was missing.
    pub(super) fn of(&self, host: usize) -> usize {
        self.of.get(&host).map_or(0, |absence| absence.rounds)
    }

    /// Number of rounds in which nothing is known of a host in which it should have been measured, whosever fault that
    /// is.
    pub(super) fn unmeasured_rounds(&self, host: usize) -> usize {
        let absence = self.of.get(&host);
        absence.map_or(0, |absence| absence.rounds + absence.excused.len())
    }
}
