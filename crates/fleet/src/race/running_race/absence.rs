//! Absences of hosts, as far as they count against them.

use std::collections::BTreeMap;

/// Number of times that a host may be missing. A host that is away more often could be away whenever it is slow.
pub(super) const MAX_ABSENCES: usize = 3;

/// Absences of each host.
#[derive(Debug)]
pub(super) struct Absences {
    /// Absences by the host's place.
    of: BTreeMap<usize, Absence>,
    /// Number of consecutive rounds in which a host may be missing.
    on_end: usize,
}

#[derive(Debug, Default)]
struct Absence {
    /// Number of absences that are over. An absence of several rounds counts once.
    count: usize,
    /// Number of rounds in which the host was missing, with those of the present absence.
    rounds: usize,
    /// Rounds of the present absence; empty while the host is there.
    silent: Vec<usize>,
    /// Rounds in which the host was missing and that are not held against it.
    excused: Vec<usize>,
}

impl Absence {
    /// Number of rounds in which it was missing, where that was too often, or in too many rounds on end.
    fn excess_absences(&self, on_end: usize) -> Option<usize> {
        let count = self.count + usize::from(!self.silent.is_empty());
        (count > MAX_ABSENCES || self.silent.len() > on_end).then_some(self.rounds)
    }
}

impl Absences {
    /// Absences before the first round. Rounds take `round_s` seconds, and a host may be missing for `silent_s` on
    /// end, which is what it takes to be reached again after a loss.
    pub(super) fn new(round_s: f64, silent_s: f64) -> Absences {
        let rounds = (silent_s / round_s).floor();
        let rounds = if rounds.is_finite() {
            rounds as usize
        } else {
            0
        };
        Absences {
            of: BTreeMap::new(),
            on_end: rounds.max(MAX_ABSENCES),
        }
    }

    /// Takes in that a host was away in a round. Returns the number of rounds in which it was missing, where that was
    /// too often.
    pub(super) fn note_absence(&mut self, host: usize, round: usize) -> Option<usize> {
        let absence = self.of.entry(host).or_default();
        absence.rounds += 1;
        absence.silent.push(round);
        absence.excess_absences(self.on_end)
    }

    /// Takes in that a host was away in a round and that it is not held against it.
    pub(super) fn was_excused(&mut self, host: usize, round: usize) {
        self.of.entry(host).or_default().excused.push(round);
    }

    /// Counts a round in which no figure of a host was its disks'. Returns the number of rounds in which it was
    /// missing, where that was too often.
    pub(super) fn counts(&mut self, host: usize) -> Option<usize> {
        let absence = self.of.entry(host).or_default();
        absence.rounds += 1;
        absence.count += 1;
        absence.excess_absences(self.on_end)
    }

    /// Takes in that a host is there again. An absence counts once, however many rounds it took: a lost connection
    /// takes several to be made again.
    pub(super) fn is_back(&mut self, host: usize) {
        if let Some(absence) = self.of.get_mut(&host) {
            absence.count += usize::from(!absence.silent.is_empty());
            absence.silent.clear();
        }
    }

    /// Takes in that a host has answered a round too late. It is judged by that answer, and so it was not missing
    /// since.
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

    /// Number of rounds in which a host should have been measured and nothing is known of it, also those that are not
    /// held against it.
    pub(super) fn unmeasured_rounds(&self, host: usize) -> usize {
        let absence = self.of.get(&host);
        absence.map_or(0, |absence| absence.rounds + absence.excused.len())
    }
}
