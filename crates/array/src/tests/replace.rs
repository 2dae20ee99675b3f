//! Exchanging a member, on a simulated mirror.

use std::sync::atomic::Ordering;

use super::super::replace::replace;
use super::*;

impl FakeHost {
    /// Gives a member of the array its place and state.
    pub(super) fn put(&self, name: &str, slot: &str, state: &str) {
        let own = self.array().join(format!("md/dev-{name}"));
        fs::create_dir_all(&own).unwrap();
        for (file, text) in [
            ("slot", slot),
            ("state", state),
            ("size", "1024"),
            ("offset", "2048"),
        ] {
            fs::write(own.join(file), text).unwrap();
        }
    }

    fn state(&self, name: &str) -> String {
        fs::read_to_string(self.array().join(format!("md/dev-{name}/state"))).unwrap_or_default()
    }

    /// Carries out a line of `mdadm --manage` as md does.
    pub(super) fn manage(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').skip(3).collect();
        let name = |path: &&str| path.rsplit('/').next().unwrap().to_owned();
        match &words[..] {
            ["--add-spare", new] => self.put(&name(new), "none", "spare"),
            ["--replace", old, "--with", new] if self.copies => {
                self.put(&name(new), "1", "in_sync");
                self.put(&name(old), "none", "faulty");
            }
            ["--replace", old, "--with", new] => {
                self.signal.store(true, Ordering::Relaxed);
                self.put(&name(new), "1", "spare,replacement");
                self.put(&name(old), "1", "in_sync,want_replacement");
            }
            ["--fail", disk] => self.put(&name(disk), "none", "faulty"),
            ["--remove", disk] => {
                let own = self.array().join(format!("md/dev-{}", name(disk)));
                fs::remove_dir_all(own).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }

    fn replace(&mut self, arguments: &[&str]) -> (Result<String, Failure>, String) {
        let words = ["array", "replace", "md127"].iter().chain(arguments);
        let ArrayVerb::Replace(args) = parse(words) else {
            panic!("{arguments:?}");
        };
        let signal = Rc::clone(&self.signal);
        self.with(|host| replace(&args, host, &signal))
    }

    fn refusal(&mut self, arguments: &[&str]) -> String {
        self.lines.clear();
        let (outcome, _) = self.replace(arguments);
        let Err(Failure::Refused(error)) = outcome else {
            panic!("{outcome:?}");
        };
        let touches = |line: &String| !line.contains("--detail");
        assert!(!self.lines.iter().any(touches), "{:?}", self.lines);
        error.to_string()
    }
}

const EXCHANGE: [&str; 4] = ["--member", "/dev/vdc", "--with", "/dev/vdd"];

fn with_spare() -> FakeHost {
    let mut host = FakeHost::new("");
    mirror(&mut host);
    host.put("vdd", "none", "spare");
    host
}

#[test]
fn a_member_gives_its_place_to_a_hot_spare_and_leaves() {
    let mut host = with_spare();
    let (outcome, shown) = host.replace(&[&EXCHANGE[..], &["--dry-run"]].concat());
    let document: serde_json::Value = serde_json::from_str(&outcome.unwrap()).unwrap();
    let commands = [
        "mdadm --manage /dev/md127 --replace /dev/vdc --with /dev/vdd",
        "mdadm --manage /dev/md127 --remove /dev/vdc",
    ];
    assert_eq!(document["commands"], serde_json::json!(commands));
    assert!(
        shown.contains(&format!("+ {}\n+ {}\n", commands[0], commands[1])),
        "{shown}"
    );
    assert_eq!(host.state("vdd"), "spare");

    host.lines.clear();
    let (outcome, shown) = host.replace(&EXCHANGE);
    let document: serde_json::Value = serde_json::from_str(&outcome.unwrap()).unwrap();
    assert_eq!(host.lines[1..], commands);
    assert_eq!(
        (&document["slot"], &document["erased"]),
        (&1.into(), &false.into())
    );
    assert!(
        shown.contains("/dev/vdd has the place of /dev/vdc in /dev/md127, slot 1"),
        "{shown}"
    );
    assert_eq!(host.state("vdc"), "");
}

#[test]
fn a_signal_while_md_copies_gives_the_exchange_up_and_a_spare_is_one_again() {
    let mut host = with_spare();
    host.copies = false;
    let (outcome, shown) = host.replace(&EXCHANGE);
    let Err(Failure::Midway(error)) = outcome else {
        panic!("{outcome:?}");
    };
    let text = error.to_string();
    assert!(text.contains("stopped by a signal"), "{text}");
    assert!(
        text.contains("Undone: /dev/vdd is a hot spare again.\nNothing is left"),
        "{text}"
    );
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines,
        [
            "+ mdadm --manage /dev/md127 --replace /dev/vdc --with /dev/vdd",
            "+ echo frozen > /sys/class/block/md127/md/sync_action",
            "+ mdadm --manage /dev/md127 --fail /dev/vdd",
            "+ mdadm --manage /dev/md127 --remove /dev/vdd",
            "+ echo -want_replacement > /sys/class/block/md127/md/dev-vdc/state",
            "+ mdadm --manage /dev/md127 --add-spare /dev/vdd",
            "+ echo idle > /sys/class/block/md127/md/sync_action",
        ]
    );
    assert_eq!(host.state("vdd"), "spare");
}

#[test]
fn an_exchange_that_is_under_way_continues() {
    let mut host = with_spare();
    host.put("vdc", "1", "in_sync,want_replacement");
    host.put("vdd", "1", "spare,replacement");
    let (outcome, shown) = host.replace(&[&EXCHANGE[..], &["--dry-run"]].concat());
    outcome.unwrap();
    assert!(
        !shown.contains("--replace") && shown.contains("--remove /dev/vdc"),
        "{shown}"
    );
}

#[test]
fn when_md_refuses_to_copy_a_disk_that_was_in_the_array_stays_its_spare() {
    let mut host = with_spare();
    host.fails = "mdadm --manage /dev/md127 --replace";
    let (outcome, shown) = host.replace(&EXCHANGE);
    let Err(Failure::Midway(error)) = outcome else {
        panic!("{outcome:?}");
    };
    let text = error.to_string();
    assert!(text.contains("/dev/vdd is a hot spare again"), "{text}");
    let frozen = shown.find("echo frozen").unwrap();
    assert!(frozen < shown.find("echo idle").unwrap(), "{shown}");
    assert_eq!(host.state("vdd"), "spare");
    let action = fs::read_to_string(host.array().join("md/sync_action")).unwrap();
    assert_eq!(action, "idle");
}

#[test]
fn a_member_that_cannot_be_exchanged_is_refused_with_the_reason() {
    let mut host = with_spare();
    for (arguments, words) in [
        (
            ["--member", "/dev/vdx", "--with", "/dev/vdd"],
            "/dev/vdx is not a member of md127, which has vdb, vdc, vdd",
        ),
        (
            ["--member", "/dev/vdd", "--with", "/dev/vdc"],
            "/dev/vdd is a hot spare of md127, and holds nothing",
        ),
        (
            ["--member", "/dev/vdc", "--with", "/dev/vdc"],
            "/dev/vdc and /dev/vdc are the same device",
        ),
        (
            ["--member", "/dev/vdc", "--with", "/dev/vdb"],
            "/dev/vdb is a member of md127 already, in slot 0",
        ),
        (
            ["--member", "/dev/vdc", "--with", "/dev/no-such"],
            "/dev/no-such cannot be opened",
        ),
    ] {
        let text = host.refusal(&arguments);
        assert!(text.contains(words), "no '{words}' in {text}");
    }
    let text = host.refusal(&[&EXCHANGE[..], &["--erase"]].concat());
    assert!(
        text.contains("the superblock of /dev/vdc is erased only if"),
        "{text}"
    );
    let text = host.refusal(&[&EXCHANGE[..], &["--destroy", "/dev/vdb"]].concat());
    assert!(
        text.contains("--destroy names /dev/vdb, which is not"),
        "{text}"
    );

    for (file, text, words) in [
        ("sync_action", "check", "md does a check of md127 now"),
        ("degraded", "1", "1 of the other members is missing"),
        ("array_state", "read-auto", "md127 is read-auto"),
        ("metadata_version", "external:imsm", "which mdmon keeps"),
        ("level", "raid0", "RAID 0 has neither copies nor parity"),
    ] {
        let mut host = with_spare();
        fs::write(host.array().join("md").join(file), text).unwrap();
        let refusal = host.refusal(&EXCHANGE);
        assert!(refusal.contains(words), "no '{words}' in {refusal}");
    }
    let mut host = with_spare();
    host.put("vdd", "none", "faulty");
    let text = host.refusal(&EXCHANGE);
    assert!(
        text.contains("/dev/vdd has failed in md127 already"),
        "{text}"
    );
    let (outcome, _) = host.with(|host| {
        let words = ["array", "replace", "data"].iter().chain(&EXCHANGE);
        let ArrayVerb::Replace(args) = parse(words) else {
            panic!();
        };
        replace(&args, host, &AtomicBool::new(false))
    });
    assert!(outcome.is_err_and(|error| error.error().to_string().contains("no array data")));
}

#[test]
fn a_member_that_has_failed_leaves_when_a_spare_has_its_place() {
    let mut host = with_spare();
    host.put("vdc", "none", "faulty");
    let (outcome, shown) = host.replace(&EXCHANGE);
    outcome.unwrap();
    let managed: Vec<&String> = host
        .lines
        .iter()
        .filter(|line| line.contains("--manage"))
        .collect();
    assert_eq!(managed, ["mdadm --manage /dev/md127 --remove /dev/vdc"]);
    assert!(
        shown.contains("/dev/vdd is a hot spare of /dev/md127"),
        "{shown}"
    );
}
