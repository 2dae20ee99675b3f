//! Burn-in races of hosts with known levels. The tables are those of `bench/race-sim`.

use super::error;
use crate::burnin::Rule;
use crate::burnin::simulate::{Population, Rng, SimulatedRace, simulate};

/// Share of races that are right, and their cost as a share of measuring all hosts for as long as the slowest decision
/// took.
fn races(population: &Population, hosts: usize, trials: usize) -> (f64, f64) {
    let mut rng = Rng::new(21);
    let races: Vec<SimulatedRace> = (0..trials)
        .map(|_| {
            let drawn = population.draw(hosts, &mut rng);
            simulate(&population.conditions, &drawn, Rule::keeping(3), &mut rng)
        })
        .collect();
    let mean =
        |of: &dyn Fn(&SimulatedRace) -> f64| races.iter().map(of).sum::<f64>() / trials as f64;
    let right = mean(&|race| f64::from(u8::from(race.right)));
    (right, mean(&|race| race.share(hosts)))
}

#[test]
fn a_race_keeps_the_true_best_for_a_third_of_the_host_seconds() {
    for (disks, hosts, trials) in [(1, 46, 40), (4, 46, 20), (1, 1_000, 5)] {
        let population = Population {
            disks,
            ..Population::plain()
        };
        let (right, cost) = races(&population, hosts, trials);
        let least = 0.95 - error(0.95, trials);
        assert!(right >= least && cost <= 0.35, "{hosts}: {right} {cost}");
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn a_race_keeps_the_true_best_of_46_to_10_000() {
    for (hosts, trials) in [(46, 400), (100, 300), (1_000, 100), (10_000, 60)] {
        for disks in [1, 4] {
            let population = Population {
                disks,
                ..Population::plain()
            };
            let (right, cost) = races(&population, hosts, trials);
            println!("{hosts} hosts of {disks} disks, {trials} races: right {right}, cost {cost}");
            assert!(right >= 0.95 && cost <= 0.35, "{hosts}: {right} {cost}");
        }
    }
}
