//! Rounds in which no host answers. The likely cause is the connection between this machine and the hosts, which may
//! also explain that some of them reconnect later than others.

use std::collections::BTreeMap;
use std::mem;
use std::time::{Duration, Instant};

use crate::store::race::{Measurement, RoundRecord};

/// Hosts that have been silent since a round in which all hosts were silent.
pub(super) struct Outage {
    /// Time for which their silence does not count against them.
    timeout: Duration,
    /// The round in which each became silent, by the host's index. A host that never reconnects is excused for the
    /// timeout once, however often all the others are silent later.
    hosts: BTreeMap<usize, SilentRound>,
}

/// A round without an answer from any host.
#[derive(Clone, Copy)]
struct SilentRound {
    number: usize,
    ended: Instant,
}

impl Outage {
    /// No outage.
    pub(super) fn new(timeout: Duration) -> Outage {
        Outage {
            timeout,
            hosts: BTreeMap::new(),
        }
    }

    /// Moves hosts of a round from `missed` to `excused` that are only missing because all hosts were, and drops late
    /// answers to the round in which all were silent: hosts reconnect in different rounds, and each would be slow in a
    /// round in which the others are not. Answers with broken disks are kept. Returns true if the round has a result
    /// that counts. The round has this number, and ended at `now`.
    pub(super) fn sort(&mut self, round: &mut RoundRecord, number: usize, now: Instant) -> bool {
        let is_dark = round.measured.is_empty() && round.late.is_empty();
        if is_dark {
            for one in &round.missed {
                let dark = SilentRound { number, ended: now };
                self.hosts.entry(one.host).or_insert(dark);
            }
        }
        let excuse = |host: usize| {
            let dark = self.hosts.get(&host);
            dark.filter(|dark| now.duration_since(dark.ended) < self.timeout)
        };
        let (excused, missed) = mem::take(&mut round.missed)
            .into_iter()
            .partition(|one| excuse(one.host).is_some());
        (round.excused, round.missed) = (excused, missed);
        let is_of_dark = |late: &Measurement| {
            let dark = excuse(late.host);
            dark.is_some_and(|dark| late.round == Some(dark.number))
                && late.targets.iter().all(|target| target.broken.is_none())
        };
        let (dark, late): (Vec<_>, Vec<_>) =
            mem::take(&mut round.late).into_iter().partition(is_of_dark);
        round.late = late;
        for measurement in round.measured.iter().chain(&round.late).chain(&dark) {
            self.hosts.remove(&measurement.host);
        }
        !(is_dark && round.missed.is_empty() && round.gone.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::rounds::TargetRound;
    use crate::store::race::MissedHost;

    /// Number of the rounds; one without any answer is not counted.
    const DARK: usize = 5;

    fn round(measured: &[usize], late: &[usize], missed: &[usize]) -> RoundRecord {
        let measurements = |hosts: &[usize]| {
            let measurement = |host: &usize| Measurement {
                host: *host,
                targets: Vec::new(),
                round: Some(DARK),
            };
            hosts.iter().map(measurement).collect()
        };
        let absent = |host: &usize| MissedHost {
            host: *host,
            why: "it is silent".to_owned(),
        };
        RoundRecord {
            measured: measurements(measured),
            late: measurements(late),
            missed: missed.iter().map(absent).collect(),
            ..RoundRecord::default()
        }
    }

    /// Sorts a round: true if it counts, and the hosts that are missing in it.
    fn sorted(dark: &mut Outage, now: Instant, mut round: RoundRecord) -> (bool, Vec<usize>) {
        let counts = dark.sort(&mut round, DARK, now);
        (counts, round.missed.iter().map(|one| one.host).collect())
    }

    #[test]
    fn where_all_were_silent_at_once_none_is_missing_until_it_is_back() {
        let (mut dark, now) = (Outage::new(Duration::from_secs(300)), Instant::now());
        let mut step = |round| sorted(&mut dark, now, round);
        // A host that is missing alone is counted as missing.
        assert_eq!(step(round(&[0, 1], &[], &[2])), (true, vec![2]));
        assert_eq!(step(round(&[], &[], &[0, 1, 2])), (false, vec![]));
        // They answer late, or reconnect one after the other.
        assert_eq!(step(round(&[], &[0], &[0, 1, 2])), (true, vec![]));
        assert_eq!(step(round(&[0], &[1], &[1, 2])), (true, vec![]));
        assert_eq!(step(round(&[0, 1], &[], &[2])), (true, vec![]));
        assert_eq!(step(round(&[0, 1, 2], &[], &[])), (true, vec![]));
        // From now on it is counted again.
        assert_eq!(step(round(&[0, 1], &[], &[2])), (true, vec![2]));
    }

    #[test]
    fn late_results_of_a_round_without_any_answer_are_not_judged() {
        let (mut dark, now) = (Outage::new(Duration::from_secs(300)), Instant::now());
        let mut late = |mut round: RoundRecord| -> Vec<usize> {
            dark.sort(&mut round, DARK, now);
            round.late.iter().map(|one| one.host).collect()
        };
        let none: [usize; 0] = [];
        // A host that is late alone keeps its late answer.
        assert_eq!(late(round(&[1, 2], &[], &[0])), none);
        assert_eq!(late(round(&[1, 2], &[0], &[0])), [0]);
        assert_eq!(late(round(&[], &[], &[0, 1, 2])), none);
        assert_eq!(late(round(&[], &[0], &[0, 1, 2])), none);
        assert_eq!(late(round(&[0], &[1], &[1, 2])), none);
        // The first has reconnected since.
        assert_eq!(late(round(&[], &[0], &[0, 2])), [0]);
        // Answers to an earlier round, or with broken disks, are not explained by the connection.
        assert_eq!(late(round(&[], &[], &[0, 1, 2])), none);
        let mut earlier = round(&[], &[0], &[0, 1, 2]);
        earlier.late[0].round = Some(DARK - 2);
        assert_eq!(late(earlier), [0]);
        let mut broken = round(&[0], &[1], &[1, 2]);
        broken.late[0].targets.push(TargetRound {
            broken: Some("a read failed".to_owned()),
            ..TargetRound::default()
        });
        assert_eq!(late(broken), [1]);
    }

    #[test]
    fn no_one_is_waited_for_without_end() {
        let (mut dark, now) = (Outage::new(Duration::from_secs(300)), Instant::now());
        let all = || round(&[], &[], &[0, 1]);
        let at = |s: u64| now + Duration::from_secs(s);
        assert_eq!(sorted(&mut dark, now, all()), (false, vec![]));
        assert_eq!(sorted(&mut dark, at(299), all()), (false, vec![]));
        assert_eq!(sorted(&mut dark, at(300), all()), (true, vec![0, 1]));
        assert_eq!(
            sorted(&mut dark, at(310), round(&[0], &[], &[1])),
            (true, vec![1])
        );
    }

    #[test]
    fn another_silence_of_all_excuses_none_that_is_dead_since_an_earlier_one() {
        let (mut dark, now) = (Outage::new(Duration::from_secs(300)), Instant::now());
        let at = |s: u64| now + Duration::from_secs(s);
        let all = || round(&[], &[], &[0, 1]);
        let one = || round(&[0], &[], &[1]);
        assert_eq!(sorted(&mut dark, now, all()), (false, vec![]));
        assert_eq!(sorted(&mut dark, at(10), one()), (true, vec![]));
        // The first reconnects each time.
        assert_eq!(sorted(&mut dark, at(240), all()), (false, vec![]));
        assert_eq!(sorted(&mut dark, at(250), one()), (true, vec![]));
        assert_eq!(sorted(&mut dark, at(310), one()), (true, vec![1]));
        assert_eq!(sorted(&mut dark, at(480), all()), (true, vec![1]));
        assert_eq!(sorted(&mut dark, at(490), one()), (true, vec![1]));
        // It answers again, like the others.
        let both = || round(&[0, 1], &[], &[]);
        assert_eq!(sorted(&mut dark, at(500), both()), (true, vec![]));
        assert_eq!(sorted(&mut dark, at(510), all()), (false, vec![]));
    }

    #[test]
    fn a_host_that_is_gone_for_good_counts_in_the_dark_too() {
        let (mut dark, now) = (Outage::new(Duration::from_secs(300)), Instant::now());
        let mut one = round(&[], &[], &[0]);
        one.gone = round(&[], &[], &[1]).missed;
        assert_eq!(sorted(&mut dark, now, one), (true, vec![]));
    }
}
