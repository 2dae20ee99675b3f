//! Which data comes first: the files that `--first` names, on real file systems.

use std::fs::{self, File};
use std::io::Write as _;

use crate::loops::{FileSystem, Loop, Mounted, fill, run, wait_for};
use crate::support::{Place, ProgramOutput, Running, number};
use crate::{MIB, codes, set};

/// A mounted file system with a file of 6 MiB in it.
fn mounted(kind: &str, mib: u64) -> Option<FileSystem> {
    let system = FileSystem::new(kind, mib)?;
    fs::create_dir(system.path().join("app")).unwrap();
    File::create(system.path().join("app/t1.ibd"))
        .and_then(|mut file| file.write_all(b"x"))
        .unwrap();
    fill(&system.join("app/t1.ibd"), 6);
    run("sync", &["-f", system.path().to_str().unwrap()]);
    Some(system)
}

#[test]
fn as_root_named_files_come_first_then_what_is_used_then_the_rest() {
    for (kind, mib) in [("ext4", 64), ("xfs", 320)] {
        let place = Place::new();
        let Some(system) = mounted(kind, mib) else {
            continue;
        };
        let device = &system.device;
        let first = ["--first", &system.join("app/*.ibd")];
        let warm = |more: &[&str]| -> ProgramOutput {
            place.run(&[&["warm", device.path(), "--json"], &first[..], more].concat())
        };
        let hot = warm(&["--until-hot"]).ends_with(0).json();
        let volume = &hot["volumes"][0];
        let named = set(volume, "first");
        assert!((6 * MIB..9 * MIB).contains(&named), "{kind}: {volume}");
        assert_eq!(number(&volume["read_bytes"]), named);
        assert_eq!(codes(volume), ["left-cold"]);
        // What is hot already is not read again.
        let again = warm(&["--until-hot"]).ends_with(0).json();
        let volume = &again["volumes"][0];
        assert_eq!(number(&volume["before_bytes"]), named, "{kind}: {volume}");
        assert_eq!(number(&volume["read_bytes"]), 0, "{kind}: {volume}");
        assert_eq!(codes(volume), ["resumed", "left-cold"], "{kind}: {volume}");

        let used = warm(&["--only-used", "--no-ledger"]).ends_with(0).json();
        let volume = &used["volumes"][0];
        assert!(set(volume, "used") > 0, "{kind}: {volume}");
        assert!(
            number(&volume["left_out_bytes"]) > mib * MIB / 4,
            "{kind}: {volume}"
        );

        let all = warm(&["--no-ledger"]).ends_with(0).json();
        let volume = &all["volumes"][0];
        let sets = ["first", "used", "rest"].map(|name| set(volume, name));
        assert_eq!(sets[0], named);
        assert_eq!(sets.iter().sum::<u64>(), mib * MIB, "{kind}: {volume}");
        assert_eq!(number(&volume["read_bytes"]), mib * MIB);
    }
}

#[test]
fn as_root_a_named_file_that_is_not_there_is_refused_and_one_elsewhere_is_reported() {
    let (place, Some(system)) = (Place::new(), mounted("ext4", 64)) else {
        return;
    };
    let device = &system.device;
    let missing = system.join("app/none.ibd");
    place
        .run(&["warm", device.path(), "--first", &missing])
        .refuses(&["there is no such file", &missing]);
    let Some(other) = mounted("ext4", 64) else {
        return;
    };
    let first = ["--first", &other.join("app/t1.ibd")];
    let said = place
        .run(&[&["warm", device.path()], &first[..]].concat())
        .ends_with(0);
    assert!(said.out.contains("warning: not-mapped"), "{said:#?}");
    assert!(said.prose().contains("on other volumes"), "{said:#?}");
}

#[test]
fn as_root_a_file_on_another_volume_is_never_called_hot() {
    let (place, Some(system), Some(other)) =
        (Place::new(), mounted("ext4", 64), mounted("ext4", 64))
    else {
        return;
    };
    let (own, elsewhere) = (system.join("app/t1.ibd"), other.join("app/t1.ibd"));
    let arguments = [
        "warm",
        system.device.path(),
        "--first",
        &own,
        "--first",
        &elsewhere,
        "--until-hot",
    ];
    let said = place.run(&arguments).ends_with(1);
    assert!(said.prose().contains("on other volumes"), "{said:#?}");
    assert!(said.prose().contains(&elsewhere), "{said:#?}");
}

#[test]
fn as_root_a_file_of_which_the_volumes_are_others_or_not_known_is_never_called_hot() {
    let (place, Some(system), Some(other)) =
        (Place::new(), mounted("ext4", 64), mounted("btrfs", 128))
    else {
        return;
    };
    let on_btrfs = other.join("app/t1.ibd");
    let named = other.device.path().to_owned();
    for (first, words) in [
        (on_btrfs.as_str(), ["on other volumes", &named]),
        // A file system without a device.
        (
            "/proc/version",
            [
                "lies on unknown volumes, and is not counted as warm",
                "/proc/version",
            ],
        ),
    ] {
        let arguments = [
            "warm",
            system.device.path(),
            "--first",
            first,
            "--until-hot",
        ];
        let said = place.run(&[&arguments[..], &["--no-ledger"]].concat());
        let said = said.ends_with(1);
        for words in words {
            assert!(said.prose().contains(words), "no '{words}' in {said:#?}");
        }
        assert!(!said.prose().contains("has unknown offsets"), "{said:#?}");
    }
}

#[test]
fn as_root_until_a_file_that_cannot_be_mapped_is_hot_all_that_may_hold_it_is_read() {
    let (place, Some(system)) = (Place::new(), mounted("btrfs", 128)) else {
        return;
    };
    let device = &system.device;
    let file = system.join("app/t1.ibd");
    let arguments = ["warm", device.path(), "--first", &file, "--until-hot"];
    let said = place
        .run(&[&arguments[..], &["--json"]].concat())
        .ends_with(0);
    let volume = &said.json()["volumes"][0];
    // What is free there is not known either: all of it may hold the file.
    assert_eq!(set(volume, "first"), 0, "{volume}");
    assert_eq!(number(&volume["read_bytes"]), 128 * MIB, "{volume}");
    assert_eq!(number(&volume["left_out_bytes"]), 0, "{volume}");
    assert!(codes(volume).is_empty(), "{volume}");
    let of_files = codes(&said.json());
    assert_eq!(of_files, ["not-mapped", "not-mapped"], "{volume}");
    let text = place
        .run(&[&arguments[..], &["--anew"]].concat())
        .ends_with(0);
    let words = "--until-hot ends only when all space in use is warm";
    assert!(text.prose().contains(words), "{text:#?}");
}

#[test]
fn as_root_data_that_files_share_is_read_once_and_data_within_an_inode_is_not_forgotten() {
    let place = Place::new();
    if let Some(system) = mounted("xfs", 320) {
        let (own, copy) = (system.join("app/t1.ibd"), system.join("app/t2.ibd"));
        run("cp", &["--reflink=always", &own, &copy]);
        run("sync", &["-f", &own]);
        let first = ["--first", &own, "--first", &copy, "--until-hot", "--json"];
        let said = place.run(&[&["warm", system.device.path()], &first[..]].concat());
        let named = set(&said.ends_with(0).json()["volumes"][0], "first");
        assert!((6 * MIB..9 * MIB).contains(&named), "{named}");
    }
    let Some(device) = Loop::new(64) else {
        return;
    };
    let at_once = "lazy_itable_init=0,lazy_journal_init=0";
    let options = ["-q", "-F", "-O", "inline_data", "-E", at_once];
    run("mkfs.ext4", &[&options[..], &[device.path()]].concat());
    let mounted = Mounted::new(device.path());
    let small = mounted.point.join("small").to_str().unwrap().to_owned();
    fs::write(&small, "inline").unwrap();
    run("sync", &["-f", &small]);
    let first = ["--first", &small, "--until-hot", "--json"];
    let said = place.run(&[&["warm", device.path()], &first[..]].concat());
    let document = said.ends_with(0).json();
    assert!(set(&document["volumes"][0], "used") > 0, "{document:#}");
    let text = "lies in part within the file system's metadata";
    let said = document["findings"].to_string();
    assert!(said.contains(text), "{said}");
}

#[test]
fn as_root_named_files_may_be_empty_and_may_shrink_or_go_meanwhile() {
    let (place, Some(system)) = (Place::new(), mounted("ext4", 64)) else {
        return;
    };
    let device = &system.device;
    let (kept, gone) = (system.join("app/t1.ibd"), system.join("app/t2.ibd"));
    fill(&kept, 6);
    File::create(&gone).unwrap();
    fill(&gone, 6);
    run("sync", &["-f", &kept]);
    let first = ["--first", &system.join("app")];
    let slow = ["--limit", "8MiB/s", "--json", "--until-hot"];
    let mut command = place.command(&[&["warm", device.path()], &first[..], &slow].concat());
    let running = Running::start(&mut command);
    wait_for(running.id(), device, MIB);
    File::options()
        .write(true)
        .open(&kept)
        .unwrap()
        .set_len(4096)
        .unwrap();
    fs::remove_file(&gone).unwrap();
    let said = running.end().ends_with(0).json();
    let volume = &said["volumes"][0];
    // What was theirs at the start is read all the same.
    assert!(set(volume, "first") >= 12 * MIB, "{volume}");
    assert_eq!(number(&volume["read_bytes"]), set(volume, "first"));
    fs::write(&kept, "").unwrap();
    let empty = ["--first", &kept, "--until-hot", "--no-ledger"];
    let said = place.run(&[&["warm", device.path()], &empty[..]].concat());
    said.ends_with(0);
}
