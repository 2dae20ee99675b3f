//! Data that compresses or repeats: the requested shares, and the test whether the target is faster with such data.
//!
//! A device or file system that compresses, or stores equal blocks once, writes such data faster than random data.
//! Therefore both are written in turn and their rates compared by ranks: one disturbed turn changes little.

use record::{Contents, Nanos, Pattern, Run, Workload};

use study::median::median;

use crate::phase_plan::{PhasePlan, base};

/// Prefixes of the names of phases that write the requested data, and of those that write random data; the number of
/// the turn follows.
const NAMES: [&str; 2] = ["given-data-", "random-data-"];
/// Number of turns.
const TURNS: usize = 6;
/// Length of each phase.
const LENGTH: Nanos = Nanos::from_secs(1);
/// Maximum number of pairs (a turn of requested data, a turn of random data) in which random data is faster (Mann and
/// Whitney's U). Without a difference the count is this low in 0.8 % of comparisons: 7 of the 924 orders of 6 and 6.
const MAX_PAIRS_AGAINST: usize = 3;
/// Minimum ratio of the speeds that is reported: a smaller one has no consequence.
const MIN_SPEED_RATIO: f64 = 1.1;

/// Sets the data of a phase.
pub(crate) fn set(workload: &mut Workload, contents: &Contents) {
    let details = workload.details.get_or_insert_default();
    details.contents = Some(contents.clone());
}

/// The phases that compare such data with random data.
pub(crate) fn comparison(contents: &Contents) -> Vec<PhasePlan> {
    let random = Workload {
        pattern: Pattern::Sequential,
        read_fraction: 0.0,
        block: record::Bytes::MIB,
        depth: 8,
        longest: LENGTH,
        shortest: LENGTH,
        precision: 0.0,
        ..base()
    };
    let mut given = random.clone();
    set(&mut given, contents);
    let turn = |turn: usize| {
        [&given, &random]
            .into_iter()
            .zip(NAMES)
            .map(move |(workload, name)| PhasePlan::new(format!("{name}{turn}"), workload.clone()))
    };
    (1..=TURNS).flat_map(turn).collect()
}

/// True if a phase belongs to the comparison.
pub(crate) fn is_compared(name: &str) -> bool {
    NAMES.iter().any(|start| name.starts_with(start))
}

/// Rates of both kinds of data, where the requested data is significantly faster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FasterContents {
    /// Bytes a second of the data that was requested, the median.
    pub given: f64,
    /// Bytes a second of random data, the median.
    pub random: f64,
    /// The data that was requested.
    pub contents: Contents,
}

/// The comparison; `None` unless all its turns ran and the requested data is written faster.
pub(crate) fn faster(run: &Run) -> Option<FasterContents> {
    let [given, random] = NAMES.map(|start| {
        let phases = run
            .phases
            .iter()
            .filter(|phase| phase.name.starts_with(start));
        let flows = phases.filter_map(|phase| Some((phase.write.as_ref()?, phase.seconds)));
        let rates = flows.map(|(flow, seconds)| flow.bytes as f64 / seconds);
        rates.collect::<Vec<f64>>()
    });
    let (given, random) = clearly_faster(&given, &random)?;
    let phase = run
        .phases
        .iter()
        .find(|phase| phase.name.starts_with(NAMES[0]))?;
    let contents = phase.workload.details.as_ref()?.contents.clone()?;
    Some(FasterContents {
        given,
        random,
        contents,
    })
}

/// Medians of the rates of both kinds of data, if all turns ran and the given data is significantly faster.
fn clearly_faster(given: &[f64], random: &[f64]) -> Option<(f64, f64)> {
    if given.len() < TURNS || random.len() < TURNS {
        return None;
    }
    let against = |rate: &f64| random.iter().filter(|other| *other >= rate).count();
    let is_clear = given.iter().map(against).sum::<usize>() <= MAX_PAIRS_AGAINST;
    let (given, random) = (median(given.to_vec())?, median(random.to_vec())?);
    (is_clear && given >= MIN_SPEED_RATIO * random).then_some((given, random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_data_take_turns() {
        let contents = Contents {
            compressible: 0.5,
            ..Contents::default()
        };
        let phases = comparison(&contents);
        assert_eq!(phases.len(), 2 * TURNS);
        for (index, phase) in phases.iter().enumerate() {
            assert!(is_compared(&phase.name));
            let details = phase.workload.details.as_ref();
            assert_eq!(details.is_some(), index % 2 == 0, "{}", phase.name);
        }
        assert!(!is_compared("page-write"));
    }

    #[test]
    fn only_what_nearly_all_turns_say_is_taken_for_faster() {
        let random = [100.0, 104.0, 96.0, 99.0, 101.0, 103.0];
        let twice = random.map(|rate| 2.0 * rate);
        assert_eq!(clearly_faster(&twice, &random), Some((201.0, 100.5)));
        // One turn of the given data at half its rate changes nothing; one that is slower than all turns of random
        // data does.
        let rest = &twice[2..];
        let one = [&[102.5, twice[1]], rest].concat();
        assert!(clearly_faster(&one, &random).is_some());
        let slower = [&[50.0, twice[1]], rest].concat();
        assert_eq!(clearly_faster(&slower, &random), None);
        // No result either where a turn is missing, where the rates do not differ or differ too little, or where the
        // given data is slower.
        assert_eq!(clearly_faster(&twice[1..], &random), None);
        assert_eq!(clearly_faster(&random, &random), None);
        assert_eq!(
            clearly_faster(&random.map(|rate| 1.09 * rate), &random),
            None
        );
        assert_eq!(clearly_faster(&random, &twice), None);
    }
}
