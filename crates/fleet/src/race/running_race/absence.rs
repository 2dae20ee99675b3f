//! Absences of hosts that count against them.

use std::collections::BTreeMap;

/// Maximum number of absences of a host. A host that is missing more often could be missing whenever it is slow.
pub(super) const MAX_ABSENCES: usize = 3;

/// Absences of each host.
#[derive(Debug)]
pub(super) struct Absences {
    /// Absences by the host's index.
    of: BTreeMap<usize, Absence>,
    /// Maximum number of consecutive rounds in which a host may be missing.
    on_end: usize,
}

#[derive(Debug, Default)]
struct Absence {
    /// Number of absences that are over. An absence of several rounds counts once.
    count: usize,
    /// Number of rounds in which the host was missing, including the present absence.
    rounds: usize,
    /// Rounds of the present absence; empty while the host is present.
    silent: Vec<usize>,
    /// Rounds in which the host was missing and excused.
    excused: Vec<usize>,
}

impl Absence {
    /// Number of rounds in which it was missing, if that was too often, or in too many consecutive rounds; otherwise
    /// `None`.
    fn excess_absences(&self, on_end: usize) -> Option<usize> {
        let count = self.count + usize::from(!self.silent.is_empty());
        (count > MAX_ABSENCES || self.silent.len() > on_end).then_some(self.rounds)
    }
}

impl Absences {
    /// Absences before the first round. Rounds take `round_s` seconds, and a host may be missing for `silent_s`
    /// continuously, the time to reconnect after a loss.
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

    /// Adds an absence in a round. Returns the number of rounds in which the host was missing, if that was too often.
    pub(super) fn note_absence(&mut self, host: usize, round: usize) -> Option<usize> {
        let absence = self.of.entry(host).or_default();
        absence.rounds += 1;
        absence.silent.push(round);
        absence.excess_absences(self.on_end)
    }

    /// Adds an excused absence in a round.
    pub(super) fn was_excused(&mut self, host: usize, round: usize) {
        self.of.entry(host).or_default().excused.push(round);
    }

    /// Counts a round in which no figure of a host was its disks' own. Returns the number of rounds in which it was
    /// missing, if that was too often.
    pub(super) fn counts(&mut self, host: usize) -> Option<usize> {
        let absence = self.of.entry(host).or_default();
        absence.rounds += 1;
        absence.count += 1;
        absence.excess_absences(self.on_end)
    }

    /// Notes that a host is present again. An absence counts once, however many rounds it took: to reconnect takes
    /// several.
    pub(super) fn is_back(&mut self, host: usize) {
        if let Some(absence) = self.of.get_mut(&host) {
            absence.count += usize::from(!absence.silent.is_empty());
            absence.silent.clear();
        }
    }

    /// Notes a late answer of a host to a round. It is judged by that answer, and therefore was not missing since.
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

    /// Number of rounds without a measurement in which a host should have been measured, including excused ones.
    pub(super) fn unmeasured_rounds(&self, host: usize) -> usize {
        let absence = self.of.get(&host);
        absence.map_or(0, |absence| absence.rounds + absence.excused.len())
    }
}
