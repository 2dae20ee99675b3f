//! How often hosts were missing, as far as that counts against them.

use std::collections::BTreeMap;

/// So often a host may be missing. One that is away more often could be away whenever it is slow.
const MOST: usize = 3;

/// How often each host was missing, by its place.
#[derive(Debug, Default)]
pub(super) struct Absences(BTreeMap<usize, Absence>);

#[derive(Debug, Default)]
struct Absence {
    /// How often, without a silence that is not over yet: each counts once.
    count: usize,
    /// In how many rounds, with those of such a silence.
    rounds: usize,
    /// The rounds of such a silence.
    silent: Vec<usize>,
}

impl Absence {
    /// In how many rounds it was missing, where that was too often, or in too many rounds on end.
    fn too_often(&self) -> Option<usize> {
        let count = self.count + usize::from(!self.silent.is_empty());
        (count > MOST || self.silent.len() > MOST).then_some(self.rounds)
    }
}

impl Absences {
    /// A host was away in a round. In how many it was missing, where that was too often.
    pub(super) fn was_away(&mut self, host: usize, round: usize) -> Option<usize> {
        let absence = self.0.entry(host).or_default();
        absence.rounds += 1;
        absence.silent.push(round);
        absence.too_often()
    }

    /// What a host measured in a round was none of its disks'. In how many rounds it was missing, where that was
    /// too often.
    pub(super) fn counts(&mut self, host: usize) -> Option<usize> {
        let absence = self.0.entry(host).or_default();
        absence.rounds += 1;
        absence.count += 1;
        absence.too_often()
    }

    /// A host is there again. To be away counts once, however many rounds that took: a connection that was lost
    /// takes several to be made again.
    pub(super) fn is_back(&mut self, host: usize) {
        if let Some(absence) = self.0.get_mut(&host) {
            absence.count += usize::from(!absence.silent.is_empty());
            absence.silent.clear();
        }
    }

    /// A host has answered a round too late. It is judged by that answer, and so it was not missing since.
    pub(super) fn has_answered(&mut self, host: usize, round: usize) {
        if let Some(absence) = self.0.get_mut(&host) {
            let before = absence.silent.len();
            absence.silent.retain(|silent| *silent < round);
            absence.rounds -= before - absence.silent.len();
        }
        self.is_back(host);
    }

    /// In how many rounds a host was missing.
    pub(super) fn of(&self, host: usize) -> usize {
        self.0.get(&host).map_or(0, |absence| absence.rounds)
    }
}
