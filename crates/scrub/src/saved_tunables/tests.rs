#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use linux::Root;
use linux::block::Devices;

use super::*;

/// The tunables of an array as plain files, which accept any text.
pub(crate) struct Tunables {
    place: tempfile::TempDir,
    pub(crate) sync: Sync,
}

impl Tunables {
    pub(crate) fn new(changes: &[(&str, &str)]) -> Tunables {
        let place = tempfile::tempdir().unwrap();
        let root = Root::under(place.path());
        let folder = root.sys.join("class/block/md0");
        fs::create_dir_all(folder.join("md")).unwrap();
        fs::write(folder.join("dev"), "9:0\n").unwrap();
        fs::write(folder.join("size"), "2048\n").unwrap();
        let devices = Devices::read(&root).unwrap();
        let sync = Sync::of(&root, devices.named("md0").unwrap());
        let tunables = Tunables { place, sync };
        let files = [
            ("array_state", "clean"),
            ("sync_action", "idle"),
            ("sync_min", "0"),
            ("sync_max", "max"),
            ("sync_speed_min", "1000 (system)"),
            ("sync_speed_max", "200000 (system)"),
            ("sync_io_depth", "32 (system)"),
            ("stripe_cache_size", "256"),
        ];
        tunables.write(&files);
        tunables.write(changes);
        tunables
    }

    pub(crate) fn write(&self, files: &[(&str, &str)]) {
        for (file, text) in files {
            fs::write(self.path(file), format!("{text}\n")).unwrap();
        }
    }

    /// Adds a member with these files.
    pub(crate) fn member(&self, name: &str, files: &[(&str, &str)]) {
        let own = self.path(&format!("dev-{name}"));
        fs::create_dir_all(&own).unwrap();
        for (file, text) in files {
            fs::write(own.join(file), format!("{text}\n")).unwrap();
        }
    }

    /// Adds another array with these files, which has a member on the same disk.
    pub(crate) fn beside(&self, files: &[(&str, &str)]) {
        let block = self.place.path().join("sys/class/block");
        for folder in ["vda", "md0/md/dev-vda", "md1/md/dev-vda"] {
            fs::create_dir_all(block.join(folder)).unwrap();
        }
        for (file, text) in files {
            fs::write(block.join("md1/md").join(file), format!("{text}\n")).unwrap();
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.place.path().join("sys/class/block/md0/md").join(file)
    }

    /// Current content of a file. A write does not truncate it, so that the rest of a longer text remains.
    pub(crate) fn shown(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    pub(crate) fn is_untouched(&self, file: &str, text: &str) {
        assert_eq!(self.shown(file), format!("{text}\n"), "{file}");
    }

    pub(crate) fn begins_with(&self, file: &str, text: &str) {
        let shown = self.shown(file);
        assert!(shown.starts_with(text), "{file}: {shown}");
    }
}

/// Tunables as a killed scrub leaves them.
pub(crate) const TURNED: [(&str, &str); 7] = [
    ("sync_action", "check"),
    ("sync_min", "4096"),
    ("sync_max", "128"),
    ("sync_speed_min", "1 (local)"),
    ("sync_speed_max", "10000000 (local)"),
    ("sync_io_depth", "1 (local)"),
    ("stripe_cache_size", "1024"),
];

fn old() -> SavedTunables {
    SavedTunables::read(&Tunables::new(&[]).sync, false).unwrap()
}

#[test]
fn tunables_of_a_killed_scrub_are_put_back() {
    let tunables = Tunables::new(&TURNED);
    // A plain file keeps what is written to it, whereas md is idle a moment later.
    let sync = tunables.sync.clone();
    let path = tunables.path("sync_action");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while !fs::read_to_string(&path).unwrap().starts_with("idle") {
                sleep(POLL);
            }
            fs::write(&path, "idle\n").unwrap();
        });
        assert_eq!(
            old().put_back(&sync, RestoredBy::Another),
            RestoreResult::default()
        );
    });
    for (file, text) in [
        ("sync_min", "0"),
        ("sync_max", "max"),
        ("sync_speed_min", "system"),
        ("sync_speed_max", "system"),
        ("sync_io_depth", "system"),
        ("stripe_cache_size", "256"),
    ] {
        tunables.begins_with(file, text);
    }
}

#[test]
fn the_check_of_somebody_else_and_what_he_has_set_is_left() {
    // The guard or a user has restored all tunables; later another check was begun, with its own speed limits.
    let theirs = [
        ("sync_action", "check"),
        ("sync_min", "4096"),
        ("sync_speed_max", "5000 (local)"),
        ("stripe_cache_size", "4096"),
    ];
    let tunables = Tunables::new(&theirs);
    assert_eq!(
        old().put_back(&tunables.sync, RestoredBy::Another),
        RestoreResult::default()
    );
    for (file, text) in theirs {
        tunables.is_untouched(file, text);
    }
    tunables.is_untouched("sync_max", "max");
    tunables.is_untouched("sync_speed_min", "1000 (system)");
}

#[test]
fn a_scrub_whose_check_did_not_begin_ends_none() {
    let tunables = Tunables::new(&TURNED);
    let by = RestoredBy::Scrub {
        but_for: Some(Tunable::SpeedMin),
        ends: false,
        window_set: true,
    };
    old().put_back(&tunables.sync, by);
    tunables.is_untouched("sync_action", "check");
    tunables.is_untouched("sync_speed_min", "1 (local)");
    tunables.begins_with("sync_max", "max");
}

#[test]
fn tunables_that_others_set_during_a_scrub_are_left_at_its_end() {
    let theirs = [
        ("sync_speed_min", "5000 (local)"),
        ("sync_speed_max", "9000 (local)"),
        ("sync_io_depth", "8 (local)"),
        ("stripe_cache_size", "8192"),
    ];
    let tunables = Tunables::new(&TURNED);
    tunables.write(&theirs);
    // Of two tunables that are changed at once, one is noticed.
    let by = RestoredBy::Scrub {
        but_for: Some(Tunable::SpeedMin),
        ends: false,
        window_set: true,
    };
    assert!(old().put_back(&tunables.sync, by).is_all());
    for (file, text) in theirs {
        tunables.is_untouched(file, text);
    }
    tunables.begins_with("sync_min", "0");
    tunables.begins_with("sync_max", "max");
}

#[test]
fn where_a_check_begins_is_put_back_when_md_has_recovered() {
    let tunables = Tunables::new(&TURNED);
    tunables.write(&[("sync_action", "recover")]);
    // As md refuses it while it works (EBUSY).
    fs::remove_file(tunables.path("sync_min")).unwrap();
    fs::create_dir(tunables.path("sync_min")).unwrap();
    let back = old().put_back(&tunables.sync, RestoredBy::Another);
    tunables.begins_with("sync_max", "max");
    tunables.is_untouched("sync_action", "recover");
    let mut later = back.later.clone().unwrap();
    assert!(back.failed.is_empty() && !back.is_all(), "{back:?}");
    assert_eq!(back.left().len(), 1);
    assert_eq!(later.settings.len(), 1, "{later:?}");
    later.settings[0].shows = Some("4096".to_owned());

    fs::remove_dir(tunables.path("sync_min")).unwrap();
    tunables.write(&[("sync_action", "idle"), ("sync_min", "8192")]);
    assert!(later.put_back(&tunables.sync, RestoredBy::Another).is_all());
    tunables.is_untouched("sync_min", "8192");
    tunables.write(&[("sync_min", "4096")]);
    assert!(later.put_back(&tunables.sync, RestoredBy::Another).is_all());
    tunables.begins_with("sync_min", "0");
}

#[test]
fn a_place_in_the_middle_is_reported() {
    let tunables = Tunables::new(&[("sync_min", "4096")]);
    let old = SavedTunables::read(&tunables.sync, false).unwrap();
    let message = old.interrupted_check_note(&tunables.sync).unwrap();
    assert!(message.contains("sync_min is 4096"), "{message}");
    tunables.write(&[("sync_min", "0")]);
    let old = SavedTunables::read(&tunables.sync, false).unwrap();
    assert_eq!(old.interrupted_check_note(&tunables.sync), None);
}
