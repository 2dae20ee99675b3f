//! Builds that are killed at every moment, and the repair of what they left.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ledger::{Ledger, OwnerLiveness};
use record::Bytes;

use super::super::building::{BuildStage, Building};
use super::super::check::CheckedPlan;
use super::super::repair::repair;
use super::super::{construct, follow, persist};
use super::*;
use domain::plan_binding::{DiskIdentity, PlannedDisk};
use job::{JobStore, ProcessIdentity};

const FS: &str = "fedcba98-7654-3210-fedc-ba9876543210";

/// A host on which processes follow one another.
struct World {
    host: FakeHost,
    /// The process that works now.
    pid: u32,
}

impl World {
    fn new() -> World {
        let mut world = World {
            host: FakeHost::new(""),
            pid: 100,
        };
        let random = world.host.folder.path().join("proc/sys/kernel/random");
        fs::create_dir_all(random).unwrap();
        world.boot("b1");
        world.next_process();
        world
    }

    /// Starts another process, and ends the one before.
    fn next_process(&mut self) {
        self.pid += 1;
        let fields = "S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        let stat = format!("{} (disksmith) {fields}\n", self.pid);
        fs::write(self.proc("self/stat"), stat).unwrap();
    }

    fn boot(&mut self, id: &str) {
        fs::write(self.proc("sys/kernel/random/boot_id"), id).unwrap();
    }

    fn proc(&self, name: &str) -> PathBuf {
        self.host.folder.path().join("proc").join(name)
    }

    fn ledger(&self) -> Ledger {
        Ledger::open(self.host.folder.path().join("ledger.db")).unwrap()
    }

    fn here(&self) -> ProcessIdentity {
        ProcessIdentity::of_process(&self.host.root(), &self.host.folder.path().join("etc"))
            .unwrap()
    }

    fn store(&self) -> JobStore {
        JobStore::new(self.ledger(), self.here())
    }

    fn checked(&self, with_fs: bool) -> CheckedPlan {
        let mut plan = self.host.plan();
        plan.fs = plan.fs.filter(|_| with_fs);
        if let Some(fs) = &mut plan.fs {
            fs.uuid = FS.to_owned();
        }
        let member = |(name, minor)| CheckedMember {
            path: Path::new("/dev").join::<&str>(name),
            number: DeviceNumber::new(254, minor),
            signed: false,
        };
        CheckedPlan {
            plan,
            members: [("vdb", 16), ("vdc", 32)].map(member).to_vec(),
            sizes: vec![Bytes::gib(2); 2],
            notes: Vec::new(),
        }
    }

    /// Builds an array, and is killed after so many moments. True if it came to its end.
    fn build(&mut self, with_fs: bool, life: Option<u32>) -> bool {
        let checked = self.checked(with_fs);
        let store = self.store();
        self.host.life.set(life);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            self.host.with(|host| {
                host.journal = follow(store, &checked, true, host);
                assert!(host.journal.is_some());
                construct(&checked, true, host, &AtomicBool::new(false)).unwrap();
            })
        }));
        self.ends(ended.map(|_| ())).is_some()
    }

    /// Repairs in the next process, which is killed after so many moments. Returns its output, if it came to its end.
    fn repair(&mut self, life: Option<u32>) -> Option<String> {
        self.repair_within(&[], life)
    }

    /// Repairs like [`World::repair`], on the disks of a plan.
    fn repair_within(&mut self, planned: &[PlannedDisk], life: Option<u32>) -> Option<String> {
        self.next_process();
        let mut store = self.store();
        self.host.life.set(life);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            self.host.with(|host| repair(host, &mut store, planned)).1
        }));
        self.ends(ended)
    }

    /// The result of a process, unless it was killed.
    fn ends<T>(&mut self, ended: std::thread::Result<T>) -> Option<T> {
        self.host.life.set(None);
        match ended {
            Ok(result) => Some(result),
            Err(why) if why.is::<Killed>() => None,
            Err(why) => std::panic::resume_unwind(why),
        }
    }

    /// Checks that nothing is left of it.
    fn assert_clean(&self, case: &str) {
        assert!(!self.host.array().exists(), "{case}");
        assert!(self.host.superblocks.is_empty(), "{case}");
        assert!(!self.host.folder.path().join("a").exists(), "{case}");
        let mut names: Vec<String> = ["", "mdadm"]
            .iter()
            .flat_map(|folder| fs::read_dir(self.host.etc(folder)).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["fstab", "mdadm", "udev"], "{case}");
        let rules: Vec<_> = fs::read_dir(self.host.etc("udev/rules.d"))
            .unwrap()
            .collect();
        assert_eq!(rules.len(), 0, "{case}: {rules:?}");
        let fstab = fs::read_to_string(self.host.etc("fstab")).unwrap();
        assert_eq!(fstab, "# mine", "{case}");
    }

    fn is_forgotten(&self) -> bool {
        self.ledger().list_work(None).unwrap().is_empty()
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string(self.proc("self/mountinfo")).unwrap();
        mounts.contains("9:127")
    }

    /// A world in which a builder was killed while it made the file system.
    fn killed_while_formatting() -> World {
        let mut world = World::new();
        for life in 0.. {
            let mut next = World::new();
            assert!(!next.build(true, Some(life)));
            if next.stage() == Some(BuildStage::Mounting) {
                return world;
            }
            world = next;
        }
        unreachable!("it is killed before it mounts, some day");
    }

    fn stage(&self) -> Option<BuildStage> {
        let works = self.ledger().unfinished::<Building>().unwrap();
        let work = self.ledger().work::<Building>(&works.first()?.key);
        Some(work.unwrap()?.document.stage)
    }
}

/// Checks the repair after a builder that was killed so late.
fn assert_repaired(world: &World, message: &str, had_mounted: bool, case: &str) {
    assert!(world.is_forgotten(), "{case}: {message}");
    if had_mounted {
        assert!(world.is_mounted() && world.host.array().exists(), "{case}");
        assert_eq!(world.host.superblocks.len(), 2, "{case}");
        assert!(
            message.is_empty() || message.contains("stays"),
            "{case}: {message}"
        );
    } else {
        world.assert_clean(case);
        assert!(!message.contains("Left: "), "{case}: {message}");
    }
}

#[test]
fn a_kill_at_any_moment_is_repaired_and_the_repair_may_be_killed_too() {
    let mut kept = 0;
    for life in 0.. {
        let mut world = World::new();
        let has_ended = world.build(true, Some(life));
        let had_mounted = world.is_mounted();
        kept += u32::from(had_mounted && !has_ended);
        let message = world.repair(None).unwrap();
        assert_repaired(&world, &message, had_mounted, &format!("killed at {life}"));
        assert_eq!(world.repair(None).unwrap(), "", "nothing is left to repair");
        if has_ended {
            assert!(life > 12, "{life} moments are not all");
            assert!(kept > 0, "no kill came after the mount");
            return;
        }
        // The repair is killed too, at some of its moments, and so is the one after it.
        for second in (life % 16..).step_by(16) {
            let mut world = World::new();
            world.build(true, Some(life));
            let case = format!("killed at {life} and {second}");
            let first = world.repair(Some(second));
            let is_over = first.is_some();
            let message = first.unwrap_or_else(|| {
                world.repair(Some(second / 2));
                world.repair(None).unwrap()
            });
            assert_repaired(&world, &message, had_mounted, &case);
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn after_a_repair_the_same_is_built_again() {
    let mut world = World::killed_while_formatting();
    let message = world.repair(None).unwrap();
    assert!(message.contains("Repairing /dev/md/data"), "{message}");
    assert!(
        message.contains("the superblock on /dev/vdc was erased"),
        "{message}"
    );
    assert!(world.build(true, None));
    assert!(world.is_mounted() && world.is_forgotten());
}

#[test]
fn consent_to_a_plan_lets_nothing_be_repaired_on_other_disks() {
    let disk = |number: &str, boot: &str| PlannedDisk {
        path: "/dev/x".into(),
        seen: DiskIdentity {
            boot: boot.to_owned(),
            diskseq: None,
            number: number.to_owned(),
            identity: None,
            size_bytes: 1,
        },
    };
    let mut world = World::killed_while_formatting();
    let stage = world.stage();
    for planned in [
        vec![disk("254:16", "b1"), disk("254:48", "b1")],
        vec![disk("254:16", "b0"), disk("254:32", "b0")],
    ] {
        let message = world.repair_within(&planned, None).unwrap();
        assert!(
            message.contains("not all that it left is on disks of the plan"),
            "{message}"
        );
        assert_eq!(world.stage(), stage, "{message}");
        assert!(world.host.array().exists(), "{message}");
    }
    let planned = [disk("254:16", "b1"), disk("254:32", "b1")];
    world.repair_within(&planned, None).unwrap();
    world.assert_clean("on the disks of the plan");
}

#[test]
fn an_array_without_a_file_system_stays_once_mdadm_is_done() {
    for life in 0.. {
        let mut world = World::new();
        if world.build(false, Some(life)) {
            return;
        }
        let was_usable = world.stage() > Some(BuildStage::Assembling);
        let message = world.repair(None).unwrap();
        assert!(world.is_forgotten(), "{message}");
        if was_usable {
            assert!(world.host.array().exists(), "killed at {life}: {message}");
            assert!(message.contains("stays"), "{message}");
        } else {
            world.assert_clean(&format!("killed at {life}"));
        }
    }
}

/// A word for a use of the array, and how it begins.
type Use<'a> = (&'a str, &'a dyn Fn(&World));

#[test]
fn an_array_that_is_in_use_by_now_stays_and_is_forgotten() {
    let elsewhere = "22 27 0:21 / /proc rw - proc proc rw\n\
                     40 27 9:127 / /mnt rw - xfs /dev/md127 rw\n";
    let uses: [Use; 5] = [
        ("is mounted at /mnt", &|world| {
            fs::write(world.proc("self/mountinfo"), elsewhere).unwrap();
        }),
        ("is in use as swap", &|world| {
            let line = "Filename Type Size Used Priority\n/dev/md127 partition 1024 0 -2\n";
            fs::write(world.proc("swaps"), line).unwrap();
        }),
        ("there are files in its file system", &|world| {
            write_xfs(&world.host.folder.path().join("dev/md127"), FS, 4);
        }),
        ("carries another xfs", &|world| {
            let other = "00000000-7654-3210-fedc-ba9876543210";
            write_xfs(&world.host.folder.path().join("dev/md127"), other, 3);
        }),
        ("carries LVM2_member", &|world| {
            let mut image = vec![0; 1 << 20];
            image[512..520].copy_from_slice(b"LABELONE");
            image[536..544].copy_from_slice(b"LVM2 001");
            fs::write(world.host.folder.path().join("dev/md127"), image).unwrap();
        }),
    ];
    for (words, begin_to_use) in uses {
        let mut world = World::killed_while_formatting();
        begin_to_use(&world);
        world.host.lines.clear();
        let message = world.repair(None).unwrap();
        assert!(message.contains(words), "no '{words}' in {message}");
        assert!(
            message.contains("mdadm --zero-superblock /dev/vdb /dev/vdc"),
            "{message}"
        );
        let asks = |line: &String| line.contains("--export");
        assert!(world.host.lines.iter().all(asks), "{:?}", world.host.lines);
        assert!(world.is_forgotten(), "{words}");
    }
}

#[test]
fn a_line_for_the_next_boot_is_suggested_where_what_it_names_was_made() {
    let other = "00000000-7654-3210-fedc-ba9876543210";
    let contents = [
        ("no file system", None, false),
        ("another one", Some(other), false),
        ("its own", Some(FS), true),
    ];
    let swap = "Filename Type Size Used Priority\n/dev/md127 partition 1024 0 -2\n";
    let mounted = "40 27 9:127 / /mnt rw - xfs /dev/md127 rw\n";
    for (content, uuid, has_fs) in contents {
        for (used, file, text) in [
            ("as swap", "swaps", swap),
            ("at /mnt", "self/mountinfo", mounted),
        ] {
            let mut world = World::killed_while_formatting();
            let node = world.host.folder.path().join("dev/md127");
            fs::write(&node, vec![0; 1 << 20]).unwrap();
            if let Some(uuid) = uuid {
                write_xfs(&node, uuid, 4);
            }
            fs::write(world.proc(file), text).unwrap();
            let message = world.repair(None).unwrap();
            let case = format!("{content}, in use {used}: {message}");
            assert!(message.contains("stays"), "{case}");
            assert!(message.contains("\n  ARRAY "), "{case}");
            assert_eq!(message.contains("etc/fstab"), has_fs, "{case}");
            assert_eq!(message.contains(&format!("UUID={FS} ")), has_fs, "{case}");
        }
    }
}

#[test]
fn after_a_boot_members_are_found_by_their_superblocks_whatever_their_names() {
    let mut world = World::killed_while_formatting();
    // Not assembled again, and what was vdb is vdd now.
    world.host.disassemble();
    world.boot("b2");
    let uuid = world.host.superblocks.remove("vdb").unwrap();
    world.host.superblocks.insert("vdd".to_owned(), uuid);
    world.host.takes = &["vdc", "vdd"];
    let message = world.repair(None).unwrap();
    assert!(
        message.contains("the superblock on /dev/vdd was erased"),
        "{message}"
    );
    assert!(!message.contains("/dev/vdb"), "{message}");
    world.assert_clean(&message);
    assert!(world.is_forgotten());
}

#[test]
fn an_array_that_cannot_be_examined_waits_for_its_members() {
    let mut world = World::killed_while_formatting();
    world.host.disassemble();
    world.boot("b2");
    let uuid = world.host.superblocks.remove("vdb").unwrap();
    let message = world.repair(None).unwrap();
    assert!(message.contains("1 of its 2 members"), "{message}");
    assert!(!world.is_forgotten() && world.host.superblocks.len() == 1);
    world.host.superblocks.insert("vdb".to_owned(), uuid);
    world.repair(None).unwrap();
    world.assert_clean("all members are back");
    assert!(world.is_forgotten());
}

/// A world in which a builder without a file system was killed while mdadm was at work, so late
/// that so many superblocks are written.
fn killed_while_assembling(superblocks: usize) -> World {
    for life in 0.. {
        let mut world = World::new();
        assert!(!world.build(false, Some(life)));
        let assembling = world.stage() == Some(BuildStage::Assembling);
        if assembling && world.host.superblocks.len() == superblocks {
            return world;
        }
    }
    unreachable!("it is killed while mdadm is at work, some day");
}

#[test]
fn a_superblock_is_not_erased_while_a_member_that_may_carry_one_is_detached() {
    // mdadm came to its end, which could not be noted any more, and the array was used.
    let mut world = killed_while_assembling(2);
    if world.host.array().exists() {
        world.host.disassemble();
    }
    let detached = world.host.folder.path().join("sys/class/block/vdb");
    let aside = world.host.folder.path().join("detached");
    fs::rename(&detached, &aside).unwrap();
    let uuid = world.host.superblocks.remove("vdb").unwrap();
    let message = world.repair(None).unwrap();
    assert!(
        message.contains("/dev/vdb is not here; attach"),
        "{message}"
    );
    assert!(!world.is_forgotten() && world.host.superblocks.len() == 1);
    fs::rename(&aside, &detached).unwrap();
    world.host.superblocks.insert("vdb".to_owned(), uuid);
    world.repair(None).unwrap();
    world.assert_clean("all members are back, and nothing is on it");
}

#[test]
fn superblocks_without_an_array_are_erased_where_the_other_members_are_known_to_have_none() {
    let serial = |world: &World, name: &str, serial: &str| {
        let disk = world.host.folder.path().join("sys/class/block").join(name);
        fs::write(disk.join("serial"), serial).unwrap();
    };
    // In the same boot by their numbers; after another these may be of other devices.
    let mut world = killed_while_assembling(1);
    world.boot("b2");
    let message = world.repair(None).unwrap();
    assert!(
        message.contains("before this boot is not known"),
        "{message}"
    );
    assert!(!world.is_forgotten() && world.host.superblocks.len() == 1);
    world.boot("b1");
    world.repair(None).unwrap();
    world.assert_clean("by numbers");
    // By serial numbers whatever the boot and the names.
    let begun = || {
        for life in 0.. {
            let mut world = World::new();
            serial(&world, "vdb", "vol-1");
            serial(&world, "vdc", "vol-2");
            assert!(!world.build(false, Some(life)));
            if world.host.superblocks.len() == 1 {
                world.boot("b2");
                return world;
            }
        }
        unreachable!("it is killed between two superblocks, some day");
    };
    let mut world = begun();
    serial(&world, "vdc", "vol-3");
    serial(&world, "vdd", "vol-2");
    world.repair(None).unwrap();
    world.assert_clean("by serial numbers");
    let mut world = begun();
    serial(&world, "vdc", "vol-3");
    let message = world.repair(None).unwrap();
    assert!(message.contains("/dev/vdc (serial number vol-2) is not here"));
    assert_eq!(world.host.superblocks.len(), 1, "{message}");
}

#[test]
fn a_member_that_cannot_be_read_or_is_of_another_array_may_have_been_one() {
    let node = |world: &World| world.host.folder.path().join("dev/vdc");
    let mut world = killed_while_assembling(1);
    fs::remove_file(node(&world)).unwrap();
    let message = world.repair(None).unwrap();
    assert!(message.contains("/dev/vdc cannot be read"), "{message}");
    let mut image = vec![0; 1 << 20];
    image[4096..4104].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]);
    fs::write(node(&world), image).unwrap();
    let message = world.repair(None).unwrap();
    assert!(
        message.contains("/dev/vdc carries the superblock"),
        "{message}"
    );
    assert_eq!(world.host.superblocks.len(), 1, "{message}");
    fs::write(node(&world), vec![0; 1 << 20]).unwrap();
    world.repair(None).unwrap();
    world.assert_clean("it can be read and carries nothing");
}

#[test]
fn an_array_that_cannot_be_stopped_is_tried_again() {
    let mut world = World::killed_while_formatting();
    world.host.fails = "mdadm --stop";
    let message = world.repair(None).unwrap();
    assert!(message.contains("could not be stopped"), "{message}");
    assert!(message.contains("tried again"), "{message}");
    assert!(!world.is_forgotten() && world.host.superblocks.len() == 2);
    world.host.fails = "";
    world.repair(None).unwrap();
    world.assert_clean("it can be stopped now");
    assert!(world.is_forgotten());
}

#[test]
fn foreign_arrays_are_not_repaired() {
    // The builder is at work.
    let mut world = World::killed_while_formatting();
    let alive = world.proc(&world.pid.to_string());
    fs::create_dir_all(&alive).unwrap();
    fs::copy(world.proc("self/stat"), alive.join("stat")).unwrap();
    assert_eq!(world.repair(None).unwrap(), "");
    assert!(world.store().abandoned::<Building>().unwrap().is_empty());
    fs::remove_dir_all(alive).unwrap();
    assert_eq!(world.store().abandoned::<Building>().unwrap().len(), 1);
    // Another host: another installation, and another boot.
    world.boot("b2");
    fs::write(world.host.etc("machine-id"), "another\n").unwrap();
    assert_eq!(world.repair(None).unwrap(), "");
    assert!(!world.is_forgotten() && world.host.array().exists());
    let here = world.here();
    let work = &world.ledger().unfinished::<Building>().unwrap()[0];
    assert_eq!(here.liveness(&work.owner), OwnerLiveness::Elsewhere);
}

#[test]
fn another_array_is_not_touched_whatever_sysfs_shows_of_it() {
    let mut world = World::killed_while_formatting();
    // In use, without members that can be seen, and with some that are not ours.
    for (name, number) in [("md5", "9:5"), ("md6", "9:6")] {
        disk(world.host.folder.path(), name, number);
        let array = world.host.folder.path().join("sys/class/block").join(name);
        fs::create_dir_all(array.join("md")).unwrap();
        fs::write(array.join("md/level"), "raid1\n").unwrap();
    }
    let blocks = world.host.folder.path().join("sys/class/block");
    symlink(blocks.join("vdd"), blocks.join("md6/slaves/vdd")).unwrap();
    world.host.lines.clear();
    let message = world.repair(None).unwrap();
    world.assert_clean(&message);
    let touches = |line: &&String| !line.contains("--export") && line.contains("md5");
    assert_eq!(world.host.lines.iter().find(touches), None);
    let touches = |line: &&String| !line.contains("--export") && line.contains("md6");
    assert_eq!(world.host.lines.iter().find(touches), None);
}

#[test]
fn a_failure_is_undone_and_nothing_is_left_in_the_ledger() {
    let mut world = World::new();
    world.host.fails = "mount ";
    let checked = world.checked(true);
    let store = world.store();
    let (outcome, _) = world.host.with(|host| {
        host.journal = follow(store, &checked, true, host);
        construct(&checked, true, host, &AtomicBool::new(false))
    });
    outcome.unwrap_err();
    world.assert_clean("undone");
    assert!(world.is_forgotten());
}

#[test]
fn a_step_that_cannot_be_noted_is_not_begun() {
    let mut world = World::new();
    let checked = world.checked(true);
    let store = world.store();
    let mut other = world.ledger();
    let (outcome, _) = world.host.with(|host| {
        host.journal = follow(store, &checked, true, host);
        // Another process removes the entry meanwhile.
        other
            .remove_work("array", &checked.plan.uuid, |_| OwnerLiveness::Dead)
            .unwrap();
        construct(&checked, true, host, &AtomicBool::new(false))
    });
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("no longer this process's"), "{text}");
    assert_eq!(world.host.lines, [""; 0]);
    world.assert_clean("never begun");
}

#[test]
fn the_record_of_a_building_names_members_folders_and_lines() {
    let world = World::new();
    let checked = world.checked(true);
    let devices = linux::block::Devices::read(&world.host.root()).unwrap();
    let etc = world.host.folder.path().join("etc");
    let (plan, members) = (&checked.plan, &checked.members);
    let boot = world.here().owner().boot.clone();
    let building = Building::of(plan, members, persist::lines(plan, &etc), &devices, boot);
    assert_eq!(building.members[1].number, "254:32");
    assert_eq!(building.boot, "b1");
    let above = world.host.folder.path().join("a");
    assert_eq!(building.folders, [above.clone(), above.join("data")]);
    let existed: Vec<bool> = building.lines.iter().map(|line| line.existed).collect();
    assert_eq!(existed, [false, true, false]);
    assert!(
        building.lines[2]
            .file
            .ends_with("etc/udev/rules.d/65-disksmith-read-ahead.rules")
    );
}
