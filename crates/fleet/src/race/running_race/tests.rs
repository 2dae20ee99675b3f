use study::burnin::simulate::Rng;

use study::burnin::Rule;

use super::*;

/// A race of four hosts with two disks each, of which two are kept.
struct Small {
    groups: Vec<Option<String>>,
    targets: Vec<Vec<String>>,
    figures: Vec<Figure>,
    floors: Vec<HostFloor>,
    round_s: f64,
}

impl Small {
    fn new(floors: &[&str]) -> Small {
        let disks = vec!["/a".to_owned(), "/b".to_owned()];
        Small {
            groups: vec![Some("g".to_owned()); 4],
            targets: vec![disks; 4],
            figures: ["page-read.iops", "page-read.p99"]
                .map(|one| one.parse().unwrap())
                .into(),
            floors: floors.iter().map(|text| text.parse().unwrap()).collect(),
            round_s: 10.0,
        }
    }

    fn setup(&self) -> RaceSetup<'_> {
        RaceSetup {
            figures: &self.figures,
            floors: &self.floors,
            round_s: self.round_s,
            silent_s: SILENT_S,
            rule: Rule {
                least: 3,
                ..Rule::keeping(2)
            },
            groups: &self.groups,
            targets: &self.targets,
        }
    }
}

fn target(iops: f64) -> TargetRound {
    TargetRound {
        figures: vec![Some(iops), Some(1e6)],
        disk_latency_ns: Some(1e6),
        ..TargetRound::default()
    }
}

/// A round in which each measured host has these rates on its disks.
fn round(
    course: &RunningRace<'_>,
    rng: &mut Rng,
    rates: &dyn Fn(usize) -> [f64; 2],
) -> RoundRecord {
    let measurement = |host: usize, rng: &mut Rng| Measurement {
        host,
        targets: rates(host)
            .iter()
            .map(|rate| target(rate * (0.02 * rng.normal()).exp()))
            .collect(),
        round: None,
    };
    RoundRecord {
        measured: course
            .next()
            .into_iter()
            .map(|host| measurement(host, rng))
            .collect(),
        ..RoundRecord::default()
    }
}

fn plain(host: usize) -> [f64; 2] {
    [1000.0 - 100.0 * host as f64; 2]
}

#[test]
fn a_floor_holds_for_each_disk_over_its_time() {
    let small = Small::new(&["page-read.iops>=500 for 30s"]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(1);
    let bad = |host: usize| {
        if host == 1 {
            [2000.0, 400.0]
        } else {
            plain(host)
        }
    };
    for _ in 0..2 {
        let one = round(&course, &mut rng, &bad);
        assert_eq!(course.take(&one), [0; 0]);
    }
    let third = round(&course, &mut rng, &bad);
    assert_eq!(course.take(&third), [1]);
    let why = course.out_reason(1).unwrap();
    assert!(matches!(why, EliminationReason::HostFloor(_)), "{why:?}");
    assert!(
        why.reason()
            .starts_with("/b missed page-read.iops>=500 for 30s: it had "),
        "{why:?}"
    );
    assert!(!course.next().contains(&1));
    assert!(matches!(course.status(1), Some(HostStatus::Removed { .. })));
}

#[test]
fn a_zone_that_is_away_as_a_whole_is_waited_for() {
    let mut small = Small::new(&[]);
    let zone = |host: usize| Some(["a", "b"][host % 2].to_owned());
    small.groups = (0..8).map(zone).collect();
    small.targets = vec![small.targets[0].clone(); 8];
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(4);
    let mut step = |course: &mut RunningRace<'_>, zone_is_away: bool| {
        let mut one = round(course, &mut rng, &plain);
        let (away, there): (Vec<Measurement>, Vec<Measurement>) = one
            .measured
            .drain(..)
            .partition(|measurement| zone_is_away && measurement.host % 2 == 1);
        one.measured = there;
        let absent = |measurement: &Measurement| MissedHost {
            host: measurement.host,
            why: "it is away".to_owned(),
        };
        one.missed = away.iter().map(absent).collect();
        course.take(&one)
    };
    for _ in 0..20 {
        assert_eq!(step(&mut course, true), [0; 0]);
    }
    assert_eq!(step(&mut course, false), [0; 0]);
    assert!(course.known(1).is_some());
    // Not forever: after five minutes each absence counts.
    let out: Vec<usize> = (0..14).flat_map(|_| step(&mut course, true)).collect();
    assert_eq!(out.len(), 4, "{out:?}");
    assert!(out.iter().all(|host| host % 2 == 1), "{out:?}");
}

#[test]
fn one_that_is_away_too_often_is_out_and_not_called_bad() {
    let small = Small::new(&[]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(2);
    let mut out = Vec::new();
    for number in 0..5 {
        let mut one = round(&course, &mut rng, &plain);
        if number < 4 {
            one.measured.retain(|measurement| measurement.host != 0);
            one.missed.push(MissedHost {
                host: 0,
                why: "it was lost".to_owned(),
            });
        }
        out.push(course.take(&one));
    }
    assert_eq!(out, [vec![], vec![], vec![], vec![0], vec![]]);
    let out_reason = course.out_reason(0).unwrap();
    assert!(matches!(out_reason, EliminationReason::Absent(_)));
    assert!(
        out_reason
            .reason()
            .contains("missing in 4 rounds, the last time because it was lost")
    );
}

/// Adds a round in which a host is missing, or answers an earlier round too late.
fn without(
    course: &mut RunningRace<'_>,
    rng: &mut Rng,
    host: usize,
    late_of: Option<usize>,
) -> Vec<usize> {
    let mut one = round(course, rng, &plain);
    let own = one
        .measured
        .iter()
        .position(|measurement| measurement.host == host);
    let own = one.measured.remove(own.unwrap());
    one.missed.push(MissedHost {
        host,
        why: "it is away".to_owned(),
    });
    one.late.extend(late_of.map(|number| Measurement {
        round: Some(number),
        ..own
    }));
    course.take(&one)
}

#[test]
fn a_host_that_answers_too_late_was_not_missing_since() {
    let small = Small::new(&[]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(2);
    // Four times it is silent for two rounds.
    for start in [0, 2, 4, 6] {
        assert_eq!(without(&mut course, &mut rng, 0, None), [0; 0]);
        assert_eq!(without(&mut course, &mut rng, 0, Some(start)), [0; 0]);
        assert_eq!(course.missed(0), 0);
    }
    assert_eq!(course.known(0).unwrap().rounds, 4);
    // Its earlier losses still count.
    assert_eq!(without(&mut course, &mut rng, 0, None), [0; 0]);
    assert_eq!(without(&mut course, &mut rng, 0, None), [0; 0]);
    assert_eq!(without(&mut course, &mut rng, 0, Some(9)), [0; 0]);
    assert_eq!(course.missed(0), 1);
}

#[test]
fn a_loss_counts_once_however_many_rounds_it_takes() {
    let small = Small::new(&[]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(2);
    for count in 1..=3 {
        for _ in 0..2 {
            assert_eq!(without(&mut course, &mut rng, 0, None), [0; 0]);
        }
        let there = round(&course, &mut rng, &plain);
        assert_eq!(course.take(&there), [0; 0]);
        assert_eq!(course.missed(0), 2 * count);
    }
    assert_eq!(without(&mut course, &mut rng, 0, None), [0]);
}

#[test]
fn a_loss_has_the_time_to_be_made_good_in_short_rounds_too() {
    let mut small = Small::new(&[]);
    small.round_s = 2.0;
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(2);
    for _ in 0..15 {
        assert_eq!(without(&mut course, &mut rng, 0, None), [0; 0]);
    }
    let there = round(&course, &mut rng, &plain);
    assert_eq!(course.take(&there), [0; 0]);
    for _ in 0..15 {
        assert_eq!(without(&mut course, &mut rng, 0, None), [0; 0]);
    }
    assert_eq!(without(&mut course, &mut rng, 0, None), [0]);
    // Slowness may have been missed in all of them.
    assert_eq!(course.unmeasured_rounds(0), 31);
}

#[test]
fn rounds_that_are_excused_are_unseen_until_they_are_answered() {
    let small = Small::new(&[]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(2);
    for _ in 0..5 {
        let mut one = round(&course, &mut rng, &plain);
        one.measured.retain(|measurement| measurement.host != 0);
        one.excused.push(MissedHost {
            host: 0,
            why: "it is away".to_owned(),
        });
        assert_eq!(course.take(&one), [0; 0]);
    }
    assert_eq!((course.missed(0), course.unmeasured_rounds(0)), (0, 5));
    assert_eq!(without(&mut course, &mut rng, 0, Some(2)), [0; 0]);
    assert_eq!((course.missed(0), course.unmeasured_rounds(0)), (0, 2));
}

#[test]
fn a_zone_is_waited_for_that_is_still_away_since_all_were() {
    let mut small = Small::new(&[]);
    small.groups = (0..8)
        .map(|host| Some(["a", "b"][host % 2].to_owned()))
        .collect();
    small.targets = vec![small.targets[0].clone(); 8];
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(4);
    for _ in 0..10 {
        let mut one = round(&course, &mut rng, &plain);
        one.measured.retain(|measurement| measurement.host % 2 == 0);
        let absent = |host: usize| MissedHost {
            host,
            why: "it is away".to_owned(),
        };
        // One had reconnected in between.
        one.missed = vec![absent(1)];
        one.excused = [3, 5, 7].map(absent).into();
        assert_eq!(course.take(&one), [0; 0]);
    }
}

#[test]
fn a_floor_that_was_missed_in_one_round_alone_is_reported() {
    for (floor, is_once) in [
        ("page-read.iops>=500", true),
        ("page-read.iops>=500 for 30s", false),
    ] {
        let small = Small::new(&[floor]);
        let setup = small.setup();
        let mut course = RunningRace::new(&setup);
        let mut rng = Rng::new(1);
        let bad = |host: usize| if host == 1 { [400.0; 2] } else { plain(host) };
        for _ in 0..3 {
            let one = round(&course, &mut rng, &bad);
            course.take(&one);
        }
        assert!(matches!(
            course.out_reason(1),
            Some(EliminationReason::HostFloor(_))
        ));
        assert_eq!(course.missed_once(1), is_once, "{floor}");
    }
}

#[test]
fn a_round_that_was_answered_too_late_is_named_as_what_it_was() {
    let small = Small::new(&[]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(2);
    for _ in 0..2 {
        assert_eq!(without(&mut course, &mut rng, 0, None), [0; 0]);
    }
    let mut one = round(&course, &mut rng, &plain);
    let mut own = one.measured.remove(0);
    own.targets[0].figures[0] = None;
    own.round = Some(0);
    one.late.push(own);
    assert_eq!(course.take(&one), [0]);
    let why = course.out_reason(0).unwrap().reason();
    assert_eq!(why, "/a: nothing came back in round 1");
}

#[test]
fn a_disk_that_fails_and_misses_a_floor_is_broken() {
    let small = Small::new(&["page-read.iops>=500"]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let slow = |host: usize| if host == 1 { [400.0; 2] } else { plain(host) };
    let mut one = round(&course, &mut Rng::new(3), &slow);
    one.measured[1].targets[0].broken = Some("a read failed".to_owned());
    assert_eq!(course.take(&one), [1]);
    assert!(matches!(
        course.out_reason(1),
        Some(EliminationReason::Broken(_))
    ));
    assert!(!course.missed_once(1));
}

#[test]
fn a_disk_that_fails_is_broken_and_one_that_gives_nothing_is_out() {
    let small = Small::new(&[]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut one = round(&course, &mut Rng::new(3), &plain);
    one.measured[0].targets[1].figures[0] = Some(0.0);
    one.measured[1].targets[0].broken = Some("a read failed".to_owned());
    one.measured[3].targets[0].failed = Some("there is no memory".to_owned());
    one.measured[2].targets[0].figures[0] = None;
    assert_eq!(course.take(&one), [0, 1, 2, 3]);
    let why = |place: usize| course.out_reason(place).unwrap().reason().to_owned();
    assert_eq!(why(0), "/b: nothing came back in round 1");
    assert_eq!(why(1), "/a: a read failed");
    assert!(matches!(
        course.out_reason(1),
        Some(EliminationReason::Broken(_))
    ));
    // The machine may have been paused.
    assert!(matches!(
        course.out_reason(2),
        Some(EliminationReason::Absent(_))
    ));
    // An error of the host does not count against the disk.
    assert!(matches!(
        course.out_reason(3),
        Some(EliminationReason::Absent(_))
    ));
}

#[test]
fn time_that_was_not_the_disk_s_does_not_count() {
    let small = Small::new(&["page-read.iops>=500"]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(4);
    for _ in 0..3 {
        let mut one = round(&course, &mut rng, &plain);
        for target in &mut one.measured[3].targets {
            // However slow it is, that is no reason either.
            target.figures[0] = Some(1.0);
            target.invalid = Some("it was answered from memory.".to_owned());
        }
        assert_eq!(course.take(&one), [0; 0]);
    }
    assert_eq!(course.missed(3), 3);
    assert_eq!(course.known(3), None);
}

#[test]
fn nothing_changes_a_race_that_is_over() {
    let small = Small::new(&[]);
    let setup = small.setup();
    let mut course = RunningRace::new(&setup);
    let mut rng = Rng::new(5);
    while !course.next().is_empty() {
        let one = round(&course, &mut rng, &plain);
        course.take(&one);
    }
    let before = course.groups();
    assert_eq!(before[0].decision.keep, [0, 1]);
    let gone = RoundRecord {
        gone: vec![MissedHost {
            host: 0,
            why: "it is gone".to_owned(),
        }],
        ..RoundRecord::default()
    };
    assert_eq!(course.take(&gone), [0; 0]);
    assert_eq!(course.groups(), before);
}

#[test]
fn a_host_without_a_group_takes_no_part() {
    let mut small = Small::new(&[]);
    small.groups[1] = None;
    let setup = small.setup();
    let course = RunningRace::new(&setup);
    assert_eq!(course.next(), [0, 2, 3]);
    assert_eq!(course.status(1), None);
    assert_eq!(course.known(1), None);
}
