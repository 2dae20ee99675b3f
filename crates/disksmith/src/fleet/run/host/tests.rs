use record::Cloud;

use super::super::outcome::{FleetRun, Kind};
use super::*;
use crate::fleet::link::Simulated;

fn know_of(id: Option<&str>, zone: Option<&str>) -> (HostRun, Result<(), Trouble>) {
    let mut came = HostRun::waiting(&Host {
        name: "db1".to_owned(),
        id: id.map(str::to_owned),
        zone: zone.map(str::to_owned),
        ..Host::default()
    });
    let facts = Facts {
        cloud: Some(Cloud {
            provider: "aws".to_owned(),
            instance_type: Some("i4i.large".to_owned()),
            zone: Some("us-east-1b".to_owned()),
            instance_id: Some("i-new".to_owned()),
        }),
        ..Facts::default()
    };
    let known = know(&mut came, &facts);
    (came, known)
}

#[test]
fn what_the_host_s_cloud_says_counts_more_than_what_the_list_says() {
    let (came, known) = know_of(None, None);
    assert_eq!(known, Ok(()));
    assert_eq!(came.id.as_deref(), Some("i-new"));
    assert_eq!(came.notes, [""; 0]);
    let (came, known) = know_of(Some("i-new"), Some("us-east-1a"));
    assert_eq!(known, Ok(()));
    assert_eq!(came.zone.as_deref(), Some("us-east-1b"));
    assert_eq!(
        came.notes,
        ["its zone is us-east-1b, and was given as us-east-1a, which does not count."]
    );
}

#[test]
fn a_host_that_took_long_to_answer_has_no_wrong_clock() {
    assert_eq!(ahead_s(14_900, 10_000, 15_000), 0.0);
    assert_eq!(ahead_s(18_000, 10_000, 15_000), 3.0);
    assert_eq!(ahead_s(7_500, 10_000, 15_000), -2.5);
    // Our own clock was set back meanwhile.
    assert_eq!(ahead_s(10_000, 10_000, 9_000), 0.0);
}

#[test]
fn one_machine_under_two_names_is_one_host() {
    let book = Book::new(FleetRun {
        id: "f".to_owned(),
        began: jiff::Timestamp::UNIX_EPOCH,
        kind: Kind::Run,
        args: Vec::new(),
        hosts: Vec::new(),
    });
    let ordered = Ordered {
        transport: &Simulated::default(),
        fleet: "f",
        args: &[],
        own: &[],
        interrupt: &AtomicBool::new(false),
        limits: Limits::NONE,
        lost: Mutex::default(),
        met: Mutex::default(),
        book: &book,
    };
    let host = |name: &str| Host {
        name: name.to_owned(),
        ..Host::default()
    };
    let facts = |boot: &str, hostname: &str| Facts {
        boot: boot.to_owned(),
        hostname: hostname.to_owned(),
        ..Facts::default()
    };
    let meet = |boot, hostname, name| ordered.meet(&facts(boot, hostname), &host(name));
    assert_eq!(meet("b1", "db1", "db1"), Ok(()));
    assert_eq!(
        meet("b1", "db1", "db1"),
        Ok(()),
        "it is met again after a loss"
    );
    assert_eq!(meet("b1", "other", "container"), Ok(()));
    assert_eq!(meet("b2", "db1", "clone"), Ok(()));
    let told = meet("b1", "db1", "root@db1").unwrap_err().to_string();
    assert!(
        told.contains("root@db1 is the same machine as db1"),
        "{told}"
    );
    // Of hosts that do not say their boot nothing is known.
    assert_eq!(meet("", "x", "x1"), Ok(()));
    assert_eq!(meet("", "x", "x2"), Ok(()));
}

#[test]
fn a_host_s_own_options_stand_right_behind_the_verb() {
    let (args, own) = (
        ["zero", "--", "/dev/a"].map(str::to_owned),
        [Vec::new(), vec!["--planned".to_owned(), "{}".to_owned()]],
    );
    assert_eq!(words_of(&args, &own, 0), ["zero", "--", "/dev/a"]);
    assert_eq!(
        words_of(&args, &own, 1),
        ["zero", "--planned", "{}", "--", "/dev/a"]
    );
    assert_eq!(words_of(&args, &[], 7), ["zero", "--", "/dev/a"]);
    assert_eq!(words_of(&[], &own, 0), [""; 0]);
}

#[test]
fn a_host_that_is_another_instance_than_the_list_s_is_left_alone() {
    let (_, known) = know_of(Some("i-old"), None);
    let Err(Trouble::Unfit(why)) = known else {
        panic!("{known:?}")
    };
    assert!(
        why.contains("calls itself i-new, and it was given as i-old"),
        "{why}"
    );
}
