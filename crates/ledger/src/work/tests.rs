use std::collections::BTreeMap;
use std::thread;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;
use crate::Error;
use crate::owner::tests::owner;
use crate::testing::Scratch;

/// Work of some verb.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TestWork {
    depth: f64,
    layers: Vec<(String, u64)>,
    finds: BTreeMap<String, Option<i64>>,
}

impl LongWork for TestWork {
    const KIND: &'static str = "digging";
    const FORM: u32 = 2;
}

/// The same kind of work, as an older program knows it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct OlderDigging {
    depth: f64,
}

impl LongWork for OlderDigging {
    const KIND: &'static str = "digging";
    const FORM: u32 = 1;
}

fn digging(depth: f64) -> TestWork {
    TestWork {
        depth,
        layers: vec![("clay".to_owned(), u64::MAX)],
        finds: BTreeMap::from([("coin".to_owned(), Some(-3)), ("bone".to_owned(), None)]),
    }
}

fn alive(_: &Owner) -> OwnerLiveness {
    OwnerLiveness::Alive
}

fn dead(_: &Owner) -> OwnerLiveness {
    OwnerLiveness::Dead
}

fn elsewhere(_: &Owner) -> OwnerLiveness {
    OwnerLiveness::Elsewhere
}

fn fresh() -> (Scratch, Ledger) {
    let scratch = Scratch::new();
    let ledger = Ledger::open(scratch.ledger()).unwrap();
    (scratch, ledger)
}

fn why<T: std::fmt::Debug>(result: Result<T>) -> WorkError {
    match result.unwrap_err() {
        Error::Work(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn work_is_begun_kept_finished_and_begun_again() {
    let (_scratch, mut ledger) = fresh();
    assert_eq!(ledger.work::<TestWork>("garden").unwrap(), None);
    let claim = ledger
        .begin_work("garden", &owner(7), &digging(0.0), alive)
        .unwrap();
    ledger.keep_work(&claim, &digging(0.1)).unwrap();
    let work = ledger.work::<TestWork>("garden").unwrap().unwrap();
    assert_eq!(work.document, digging(0.1));
    assert_eq!(work.summary.owner, owner(7));
    assert_eq!(work.summary.finished, None);
    assert!(work.summary.began <= work.summary.changed);
    assert_eq!(
        ledger.unfinished::<TestWork>().unwrap(),
        std::slice::from_ref(&work.summary)
    );

    ledger.finish_work(claim, &digging(2.0)).unwrap();
    assert_eq!(ledger.unfinished::<TestWork>().unwrap(), []);
    let done = ledger.work::<TestWork>("garden").unwrap().unwrap();
    assert_eq!(done.document, digging(2.0));
    assert_eq!(done.summary.finished, Some(done.summary.changed));
    assert_eq!(done.summary.began, work.summary.began);

    let claim = ledger
        .begin_work("garden", &owner(8), &digging(0.0), alive)
        .unwrap();
    let anew = ledger.work::<TestWork>("garden").unwrap().unwrap();
    assert_eq!((anew.summary.finished, anew.document), (None, digging(0.0)));
    ledger.drop_work(claim).unwrap();
    assert_eq!(ledger.list_work(None).unwrap(), []);
}

#[test]
fn finished_work_is_amended_and_is_no_newer_for_it() {
    let (_scratch, mut ledger) = fresh();
    let owner = owner(1);
    let absent = why(ledger.amend_work("a", &digging(1.0)));
    assert!(matches!(absent, WorkError::Unknown { .. }), "{absent:?}");
    let claim = ledger
        .begin_work("a", &owner, &digging(1.0), alive)
        .unwrap();
    // Unfinished work belongs to its owner, and cannot be amended.
    assert!(ledger.amend_work("a", &digging(2.0)).is_err());
    ledger.finish_work(claim, &digging(3.0)).unwrap();
    let before = ledger.work::<TestWork>("a").unwrap().unwrap();
    ledger.amend_work("a", &digging(4.0)).unwrap();
    let after = ledger.work::<TestWork>("a").unwrap().unwrap();
    assert_eq!(after.document, digging(4.0));
    assert_eq!(after.summary.began, before.summary.began);
    assert_eq!(after.summary.finished, before.summary.finished);
    let unfaithful = why(ledger.amend_work("a", &digging(f64::NAN)));
    assert!(
        matches!(unfaithful, WorkError::Unfaithful { .. }),
        "{unfaithful:?}"
    );
}

#[test]
fn kinds_and_keys_are_kept_apart_and_listed_newest_first() {
    /// A second kind of work.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Filling;
    impl LongWork for Filling {
        const KIND: &'static str = "filling";
        const FORM: u32 = 1;
    }
    let (_scratch, mut ledger) = fresh();
    for key in ["a", "b"] {
        ledger
            .begin_work(key, &owner(7), &digging(1.0), alive)
            .unwrap();
    }
    ledger.begin_work("a", &owner(7), &Filling, alive).unwrap();
    let names = |works: Vec<WorkSummary>| -> Vec<String> {
        let name = |work: &WorkSummary| format!("{} {}", work.kind, work.key);
        works.iter().map(name).collect()
    };
    assert_eq!(
        names(ledger.list_work(None).unwrap()),
        ["filling a", "digging b", "digging a"]
    );
    assert_eq!(
        names(ledger.list_work(Some("digging")).unwrap()),
        ["digging b", "digging a"]
    );
    assert_eq!(
        names(ledger.unfinished::<Filling>().unwrap()),
        ["filling a"]
    );
}

#[test]
fn work_that_is_there_is_not_begun_and_the_error_names_its_process() {
    let (_scratch, mut ledger) = fresh();
    ledger
        .begin_work("garden", &owner(7), &digging(0.5), alive)
        .unwrap();
    let mut begin = |liveness: fn(&Owner) -> OwnerLiveness| {
        why(ledger.begin_work("garden", &owner(8), &digging(0.0), liveness))
    };
    let error = begin(alive);
    assert!(matches!(error, WorkError::UnderWay { .. }), "{error}");
    assert!(error.to_string().contains("process 7"), "{error}");
    let error = begin(elsewhere);
    assert!(matches!(error, WorkError::Elsewhere { .. }), "{error}");
    assert!(error.to_string().contains("the host db-1"), "{error}");
    let error = begin(dead);
    assert!(matches!(error, WorkError::LeftUnfinished { .. }), "{error}");
    let there = ledger.work::<TestWork>("garden").unwrap().unwrap();
    assert_eq!(
        (there.document, there.summary.owner),
        (digging(0.5), owner(7))
    );
}

#[test]
fn only_work_of_the_dead_is_claimed_and_who_had_it_keeps_it_no_more() {
    let (_scratch, mut ledger) = fresh();
    let error = why(ledger.claim_work::<TestWork>("garden", &owner(8), dead));
    assert!(matches!(error, WorkError::Unknown { .. }), "{error}");
    let old = ledger
        .begin_work("garden", &owner(7), &digging(0.5), alive)
        .unwrap();
    for liveness in [alive, elsewhere] {
        why(ledger.claim_work::<TestWork>("garden", &owner(8), liveness));
    }
    let (claim, work) = ledger
        .claim_work::<TestWork>("garden", &owner(8), dead)
        .unwrap();
    assert_eq!(
        (work.document, work.summary.owner),
        (digging(0.5), owner(8))
    );
    assert_eq!(claim.key(), "garden");
    let lost = |error: WorkError| assert!(matches!(error, WorkError::Lost { .. }), "{error}");
    lost(why(ledger.keep_work(&old, &digging(9.0))));
    lost(why(ledger.drop_work(old)));
    ledger.keep_work(&claim, &digging(0.6)).unwrap();
    ledger.finish_work(claim, &digging(0.7)).unwrap();
    let error = why(ledger.claim_work::<TestWork>("garden", &owner(9), dead));
    assert!(matches!(error, WorkError::Finished { .. }), "{error}");
    let kept = ledger.work::<TestWork>("garden").unwrap().unwrap();
    assert_eq!(kept.document, digging(0.7));
}

#[test]
fn of_many_who_claim_at_once_one_gets_it() {
    let (scratch, mut ledger) = fresh();
    let path = scratch.ledger();
    for round in 0..8 {
        let key = round.to_string();
        ledger
            .begin_work(&key, &owner(7), &digging(0.0), alive)
            .unwrap();
        let claims = thread::scope(|scope| {
            let (path, key) = (&path, &key);
            let claim = move |pid| {
                let mut ledger = Ledger::open(path).unwrap();
                // Only the first owner is dead.
                let liveness = |who: &Owner| if who.pid == 7 { dead(who) } else { alive(who) };
                let claimed = ledger.claim_work::<TestWork>(key, &owner(pid), liveness);
                claimed.is_ok()
            };
            let threads: Vec<_> = (10..14)
                .map(|pid| scope.spawn(move || claim(pid)))
                .collect();
            let claims = threads.into_iter().map(|thread| thread.join().unwrap());
            claims.filter(|claimed| *claimed).count()
        });
        assert_eq!(claims, 1, "{round}");
    }
}

#[test]
fn work_is_removed_unless_a_process_may_be_at_it() {
    let (_scratch, mut ledger) = fresh();
    let begin = |ledger: &mut Ledger| {
        ledger
            .begin_work("garden", &owner(7), &digging(0.5), alive)
            .unwrap()
    };
    begin(&mut ledger);
    for liveness in [alive, elsewhere] {
        why(ledger.remove_work("digging", "garden", liveness));
    }
    ledger.remove_work("digging", "garden", dead).unwrap();
    // Finished work has no owner.
    let claim = begin(&mut ledger);
    ledger.finish_work(claim, &digging(1.0)).unwrap();
    ledger.remove_work("digging", "garden", alive).unwrap();
    let error = why(ledger.remove_work("digging", "garden", dead));
    assert!(matches!(error, WorkError::Unknown { .. }), "{error}");
}

#[test]
fn a_document_of_a_newer_form_is_refused_and_stays() {
    let (_scratch, mut ledger) = fresh();
    ledger
        .begin_work("garden", &owner(7), &digging(0.5), alive)
        .unwrap();
    let error = why(ledger.work::<OlderDigging>("garden"));
    assert!(
        matches!(
            error,
            WorkError::Newer {
                found: 2,
                known: 1,
                ..
            }
        ),
        "{error}"
    );
    why(ledger.claim_work::<OlderDigging>("garden", &owner(8), dead));
    let there = ledger.work::<TestWork>("garden").unwrap().unwrap();
    assert_eq!(there.summary.owner, owner(7));
    // It can be listed, and removed.
    assert_eq!(ledger.unfinished::<OlderDigging>().unwrap().len(), 1);
    ledger.remove_work("digging", "garden", dead).unwrap();
}

#[test]
fn a_damaged_document_is_refused_by_name() {
    let (_scratch, mut ledger) = fresh();
    ledger
        .begin_work("garden", &owner(7), &digging(0.5), alive)
        .unwrap();
    ledger
        .connection
        .execute("UPDATE work SET body = x'789c00'", [])
        .unwrap();
    let error = why(ledger.work::<TestWork>("garden"));
    assert!(error.to_string().contains("digging garden"), "{error}");
}

#[test]
fn state_that_would_not_come_back_is_not_kept() {
    let (_scratch, mut ledger) = fresh();
    let claim = ledger
        .begin_work("garden", &owner(7), &digging(0.5), alive)
        .unwrap();
    let error = why(ledger.keep_work(&claim, &digging(f64::NAN)));
    assert!(matches!(error, WorkError::Unfaithful { .. }), "{error}");
    let there = ledger.work::<TestWork>("garden").unwrap().unwrap();
    assert_eq!(there.document, digging(0.5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_document_comes_back_as_it_was(
        key in ".*",
        depths in prop::collection::vec(-1e300..1e300_f64, 1..4),
        layers: Vec<(String, u64)>,
        finds: BTreeMap<String, Option<i64>>,
    ) {
        let (_scratch, mut ledger) = fresh();
        let mut document = TestWork { depth: 0.0, layers, finds };
        let claim = ledger.begin_work(&key, &owner(7), &document, alive).unwrap();
        for depth in depths {
            document.depth = depth;
            ledger.keep_work(&claim, &document).unwrap();
            let back = ledger.work::<TestWork>(&key).unwrap().unwrap();
            prop_assert_eq!(&back.document, &document);
        }
    }
}

#[test]
fn only_finished_work_is_adopted_and_nothing_is_written_over() {
    let (_one, mut theirs) = fresh();
    let (_other, mut ours) = fresh();
    for (key, depth) in [("a", 1.0), ("b", 2.0)] {
        let claim = theirs
            .begin_work(key, &owner(7), &digging(depth), dead)
            .unwrap();
        theirs.finish_work(claim, &digging(depth)).unwrap();
    }
    theirs
        .begin_work("c", &owner(7), &digging(3.0), dead)
        .unwrap();
    let claim = ours
        .begin_work("b", &owner(8), &digging(9.0), dead)
        .unwrap();
    assert_eq!(ours.adopt_finished_work(&theirs).unwrap(), 1);
    assert_eq!(ours.adopt_finished_work(&theirs).unwrap(), 0);
    let depth = |key| Some(ours.work::<TestWork>(key).unwrap()?.document.depth);
    assert_eq!(
        [depth("a"), depth("b"), depth("c")],
        [Some(1.0), Some(9.0), None]
    );
    ours.finish_work(claim, &digging(9.5)).unwrap();
}
