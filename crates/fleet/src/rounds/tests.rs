use engine::DiskEngine;

use super::*;
use crate::host_line::{AgentVerb, LineVerb, parse};

fn parse_args(words: &[&str]) -> RoundsArgs {
    let line = [&["rounds", "--figure", "page-read.iops"], words].concat();
    match parse(line).unwrap() {
        LineVerb::Agent(AgentVerb::Rounds(args)) => *args,
        other => panic!("{other:?}"),
    }
}

fn context() -> Context {
    Context {
        root: Root::host(),
        ledger: None,
        out: Box::new(Vec::new()),
        watched: false,
        answers_a_person: false,
        columns: 100,
    }
}

#[test]
fn a_folder_is_prepared_once_and_measured_as_often_as_is_asked() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().to_str().unwrap();
    let args = parse_args(&[folder, "--size", "4m", "--figure", "page-write.p99"]);
    let interrupt = AtomicBool::new(false);
    let mut tracks = prepare(&args, &context(), &DiskEngine, &interrupt).unwrap();
    assert_eq!(facts(&tracks, &Root::host()).unwrap()[0].path, folder);
    for number in 0..2 {
        let round = Round {
            number,
            seconds: 0.2,
        };
        let said = measure(&mut tracks, &args.figure, round, &DiskEngine, &interrupt);
        assert_eq!((said.number, said.targets.len()), (number, 1));
        assert!(said.seconds >= 0.2, "{said:?}");
        let figures = &said.targets[0].figures;
        assert!(figures[0].unwrap() > 0.0, "{said:?}");
        assert!(figures[1].unwrap() > 0.0, "{said:?}");
        assert_eq!(said.targets[0].failed, None);
    }
    drop(tracks);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_target_that_is_only_read_is_not_raced_by_a_figure_that_writes() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    std::fs::write(&file, vec![b'x'; 1 << 20]).unwrap();
    let args = parse_args(&[file.to_str().unwrap(), "--figure", "page-write.iops"]);
    let interrupt = AtomicBool::new(false);
    let refused = prepare(&args, &context(), &DiskEngine, &interrupt);
    let why = refused.err().unwrap().error().to_string();
    assert!(why.contains("unless --destroy names it"), "{why}");
    assert_eq!(std::fs::read(&file).unwrap(), vec![b'x'; 1 << 20]);
}

#[test]
fn a_disk_is_blamed_for_what_disks_answer_alone() {
    let of = |errno: Errno| is_of_disk(&io::Error::from_raw_os_error(errno.raw_os_error()));
    assert!(
        [Errno::IO, Errno::TIMEDOUT, Errno::NODEV]
            .map(of)
            .iter()
            .all(|is| *is)
    );
    for errno in [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::NOMEM,
        Errno::ROFS,
        Errno::STALE,
    ] {
        assert!(!of(errno), "{errno}");
    }
    assert!(!is_of_disk(&io::Error::other("no number")));
}

#[test]
fn two_targets_on_one_device_are_refused() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let targets = [a.path().to_path_buf(), b.path().to_path_buf()];
    let root = Root::host();
    let devices = Devices::read(&root).unwrap_or_default();
    // If they are on no known device, nothing can be concluded.
    let place = block::place_of(&root, &devices, a.path()).unwrap();
    if place
        .devices
        .first()
        .and_then(|number| devices.get(*number))
        .is_some()
    {
        let why = check_apart(&targets, &root).unwrap_err();
        assert!(why.contains("would measure each other"), "{why}");
    }
}
