//! A table of states in which storage is in use, on real loop devices: each way to use it, under each name that
//! the storage has, against each verb that overwrites. Each state is printed with what was expected and what
//! came. They need root.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the table is printed")]

#[path = "support/loops.rs"]
mod loops;
#[path = "overwrite_uses/partitions.rs"]
mod partitions;
mod support;
#[path = "overwrite_uses/views.rs"]
mod views;
#[path = "overwrite_uses/ways.rs"]
mod ways;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use loops::{Loop, Mounted, SwapOn, digest, run};
use support::{Place, ProgramOutput};
use ways::{HARMLESS, Holder, MOUNTS, MountGuard, OF_DEVICES, StorageUse, USES, statements_of};

const MIB: u64 = 1 << 20;

/// One storage under several names: a file of 32 MiB, and loop devices over it.
struct Storage {
    place: Place,
    /// The loop device that is used. Dropped before the others: it may be stacked on one of them.
    used: Loop,
    others: Vec<Loop>,
    /// The name under which it is to be overwritten.
    target: PathBuf,
    file: PathBuf,
}

/// The names under which a target may share storage with the device that is used.
const NAMES: [&str; 9] = [
    "the device itself",
    "a symbolic link to the device",
    "another loop device over the file",
    "one over a hard link of the file",
    "one over the file from 1 MiB on",
    "one over the first 16 MiB",
    "the device below a stacked loop device",
    "a loop device beside a stacked one",
    "the file itself",
];

impl Storage {
    fn new(name: &str) -> Option<Storage> {
        let place = Place::new();
        let file = place.path("disk.img");
        File::create(&file).unwrap().set_len(32 * MIB).unwrap();
        let first = match Loop::on(&file) {
            Ok(device) => device,
            Err(why) => {
                support::skipped(&why);
                return None;
            }
        };
        let another = |path: &Path, options: &[&str]| Loop::part_of(path, options).unwrap();
        let mut storage = Storage {
            target: first.node.clone(),
            used: first,
            others: Vec::new(),
            file: file.clone(),
            place,
        };
        let other = match name {
            "the device itself" => None,
            "a symbolic link to the device" => {
                let link = storage.place.path("link");
                symlink(&storage.target, &link).unwrap();
                storage.target = link;
                None
            }
            "another loop device over the file" => Some(another(&file, &[])),
            "one over a hard link of the file" => {
                let link = storage.place.path("hard.img");
                fs::hard_link(&file, &link).unwrap();
                Some(another(&link, &[]))
            }
            "one over the file from 1 MiB on" => Some(another(&file, &["--offset", "1048576"])),
            "one over the first 16 MiB" => Some(another(&file, &["--sizelimit", "16777216"])),
            "the device below a stacked loop device" => {
                let above = another(&storage.target, &[]);
                let below = std::mem::replace(&mut storage.used, above);
                storage.others.push(below);
                None
            }
            "a loop device beside a stacked one" => {
                let above = another(&storage.target, &[]);
                let below = std::mem::replace(&mut storage.used, above);
                let beside = another(&below.node, &[]);
                storage.others.push(below);
                Some(beside)
            }
            "the file itself" => {
                storage.target = file.clone();
                None
            }
            name => panic!("{name}?"),
        };
        if let Some(other) = other {
            storage.target = other.node.clone();
            storage.others.insert(0, other);
        }
        Some(storage)
    }

    fn overwrite(&self, verb: &str) -> ProgramOutput {
        let target = self.target.to_str().unwrap();
        // All that may be on it is named, so that only its use can be a reason.
        let consent = match self.signature() {
            Some(signature) => format!("{target}={signature}"),
            None => target.to_owned(),
        };
        let mut words = vec![verb, target, "--destroy", &consent];
        if verb == "bench" {
            words.extend(["--phase", "page-write", "--seconds", "200ms"]);
        }
        self.place.run(&words)
    }

    /// Brings what was written to a device to the file: a stacked loop device writes to the one below.
    fn settle(&self) {
        let nodes = [&self.used].into_iter().chain(&self.others);
        for node in nodes.map(|device| &device.node).chain([&self.file]) {
            File::open(node).unwrap().sync_all().unwrap();
        }
    }

    /// A copy of the first page.
    fn header(&self) -> PathBuf {
        let copy = self.place.path("header");
        let content = fs::read(&self.file).unwrap();
        fs::write(&copy, &content[..4096]).unwrap();
        copy
    }

    /// Output of blkid(8) for the target's name.
    fn signature(&self) -> Option<String> {
        let target = self.target.to_str().unwrap();
        let seen = loops::try_run("blkid", &["-p", "-o", "value", "-s", "TYPE", target]).ok()?;
        seen.lines().next().map(str::to_owned)
    }
}

/// A line of the table.
fn row(state: &str, expected: &str, said: &ProgramOutput, wrong: bool) {
    let mark = if wrong { "WRONG" } else { "ok" };
    println!(
        "{state:<90} expected {expected:<8} got status {:?} {mark}",
        said.status
    );
}

/// The same for what must be refused with this word.
fn refused(state: &str, said: ProgramOutput, word: &str) {
    row(state, "refusal", &said, said.status != Some(2));
    said.refuses(&[word]);
}

/// States that are judged at once. For most of its time each waits: for a device to come and go, and for a claim or
/// a lock to last.
const AT_ONCE: usize = 6;

/// Judges each state, several at once, and panics with what was wrong.
fn assert_all<S: Sync>(states: &[S], judge: impl Fn(&S) -> Option<String> + Sync) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(state) = states.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(what) = judge(state) {
                        wrong.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A way to use storage with the word of its refusal, and a name by which it is overwritten.
type State = ((&'static str, &'static str), &'static str);

/// Every use under every name, with every verb, must be refused, and leave the storage as it is.
fn all_names_are_refused(ways: &[(&'static str, &'static str)]) {
    let states = ways.iter().flat_map(|&way| NAMES.map(|name| (way, name)));
    let states: Vec<State> = states.collect();
    assert_all(&states, |&((way, word), name)| {
        let storage = Storage::new(name)?;
        let used = StorageUse::of(way, &storage.used);
        let by_kernel = !matches!(used, StorageUse::Program(..)) || MOUNTS.contains(&way);
        if by_kernel {
            // What one writes to a stacked loop device becomes data to be written on the next.
            (0..storage.others.len() + 2).for_each(|_| rustix::fs::sync());
        }
        // The kernel itself writes to swap and to a journal, but never to the header.
        let content = || match way {
            "swap" | "the journal of a mounted file system" => digest(&storage.header()),
            _ => digest(&storage.file),
        };
        let before = content();
        // zero takes disks only, and refuses a file for that alone.
        let verbs = ["bench", "zero"];
        let verbs = &verbs[..verbs.len() - usize::from(name == "the file itself")];
        let refused = |verb: &&str| {
            let said = storage.overwrite(verb);
            match by_kernel {
                true => rustix::fs::sync(),
                false => storage.settle(),
            }
            let kept = content() == before;
            // What is shown by a loop device is refused for that, and not claimed.
            let is_shown = said.err.contains("is shown by the loop device");
            let is_reported = said.err.contains(word) || is_shown;
            let state = format!("{verb}, {way}: {name}");
            let fails = said.status != Some(2) || !kept || !is_reported;
            row(&state, "refusal", &said, fails);
            fails.then(|| format!("{state}: unchanged: {kept}, {said:#?}"))
        };
        let wrong: Vec<String> = verbs.iter().filter_map(refused).collect();
        drop(used);
        (!wrong.is_empty()).then(|| wrong.join("\n"))
    });
}

#[test]
fn with_root_what_is_mounted_is_refused_under_all_its_names() {
    all_names_are_refused(&USES[0..=0]);
}

#[test]
fn with_root_swap_is_refused_under_all_its_names() {
    all_names_are_refused(&USES[1..=1]);
}

#[test]
fn with_root_what_a_program_writes_is_refused_under_all_its_names() {
    all_names_are_refused(&USES[2..4]);
}

#[test]
fn with_root_what_a_program_has_mapped_is_refused_under_all_its_names() {
    all_names_are_refused(&USES[4..6]);
}

#[test]
fn with_root_what_a_program_has_locked_is_refused_under_all_its_names() {
    all_names_are_refused(&USES[6..10]);
}

#[test]
fn with_root_what_threads_and_rings_alone_have_open_is_refused_under_all_its_names() {
    all_names_are_refused(&USES[10..13]);
}

#[test]
fn with_root_what_is_mounted_elsewhere_or_claimed_is_refused_under_all_its_names() {
    all_names_are_refused(&USES[13..]);
}

#[test]
fn with_root_what_no_one_uses_is_overwritten_under_all_its_names() {
    let mut wrong = Vec::new();
    for way in HARMLESS {
        for name in NAMES {
            // A stacked loop device, and one over a file, use what is below them; the claim of O_EXCL is between
            // devices.
            if name.contains("stacked") || name == "the file itself" {
                continue;
            }
            for verb in ["bench", "zero"] {
                let Some(storage) = Storage::new(name) else {
                    return;
                };
                let used = StorageUse::of(way, &storage.used);
                let said = storage.overwrite(verb);
                let state = format!("{verb}, {way}: {name}");
                let fails = said.status != Some(0);
                row(&state, "success", &said, fails);
                if fails {
                    wrong.push(format!("{state}: {said:#?}"));
                }
                drop(used);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A plain file, used as databases use theirs.
#[test]
fn with_root_a_file_that_a_program_uses_is_refused() {
    let file_uses = USES.iter().filter(|(way, _)| !OF_DEVICES.contains(way));
    let mut wrong = Vec::new();
    for (way, word) in file_uses {
        for by in ["its name", "a symbolic link"] {
            let place = Place::new();
            let file = place.path("data.ibd");
            File::create(&file).unwrap().set_len(16 * MIB).unwrap();
            let target = if by == "its name" {
                file.clone()
            } else {
                let link = place.path("link.ibd");
                symlink(&file, &link).unwrap();
                link
            };
            let statements = statements_of(way);
            let holder = Holder::new(&file, &statements);
            let before = digest(&file);
            let path = target.to_str().unwrap();
            let bench = format!("bench {path} --destroy {path} --phase page-write --seconds 200ms");
            let said = place.run(&bench);
            let fails =
                said.status != Some(2) || digest(&file) != before || !said.err.contains(word);
            row(
                &format!("bench, file {way}: by {by}"),
                "refusal",
                &said,
                fails,
            );
            if fails {
                wrong.push(format!("{way}: {said:#?}"));
            }
            drop(holder);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// erofs may be mounted from a file without a loop device, which claims nothing.
#[test]
fn with_root_a_file_that_is_mounted_without_a_loop_device_is_refused() {
    if !support::is_root() {
        return;
    }
    let place = Place::new();
    let (file, source, point) = (
        place.path("disk.img"),
        place.path("source"),
        place.path("point"),
    );
    fs::create_dir(&source).unwrap();
    fs::create_dir(&point).unwrap();
    fs::write(source.join("data"), vec![7; 1 << 20]).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    run("mkfs.erofs", &[&path(&file), &path(&source)]);
    // mount(8) would attach a loop device.
    let mount = format!(
        "import ctypes\nassert ctypes.CDLL(None).mount(path.encode(), b'{}', b'erofs', 1, None) == 0",
        point.display()
    );
    for namespace in ["this namespace", "another namespace"] {
        let (_here, _there);
        if namespace == "this namespace" {
            drop(Holder::new(&file, &mount));
            _here = MountGuard(point.clone());
        } else {
            let private = "import ctypes\nassert ctypes.CDLL(None).unshare(0x20000) == 0\n\
                           assert ctypes.CDLL(None).mount(None, b'/', None, 0x44000, None) == 0\n";
            _there = Holder::new(&file, &format!("{private}{mount}"));
        }
        let before = digest(&file);
        let shown = Loop::on(&file).unwrap();
        for target in [path(&file), shown.path().to_owned()] {
            let consent = format!("{target}=erofs");
            let bench = format!("bench {target} --destroy {consent} --phase page-write");
            let said = place.run(&bench);
            let kept = digest(&file) == before;
            let state = format!("bench, mounted from the file in {namespace}: {target}");
            row(&state, "refusal", &said, said.status != Some(2) || !kept);
            said.refuses(&["is mounted at"]);
            assert!(kept, "{state}");
        }
    }
}

/// The kernel refuses to write to a swap file, and a loop device over it fails midway.
#[test]
fn with_root_a_loop_device_over_a_swap_file_is_refused() {
    if !support::is_root() {
        return;
    }
    let place = Place::new();
    let file = place.path("swap.img");
    fs::write(&file, vec![0; 16 << 20]).unwrap();
    let path = file.to_str().unwrap();
    run("mkswap", &["-q", path]);
    let Ok(device) = Loop::on(&file) else {
        return support::skipped("no loop device");
    };
    let _swap = SwapOn::new(path);
    for verb in ["bench", "zero"] {
        let consent = format!("{}=swap", device.path());
        let said = place.run(&[verb, device.path(), "--destroy", &consent]);
        refused(&format!("{verb}, over a swap file"), said, "in use as swap");
    }
}

/// The kernel's own files hold no data, whatever size they claim.
#[test]
fn with_root_files_of_the_kernel_are_refused() {
    let place = Place::new();
    for path in [
        "/proc/sys/vm/swappiness",
        "/sys/block/loop0/queue/nr_requests",
    ] {
        let Ok(before) = fs::read(path) else { continue };
        let said = place.run(&format!("bench {path} --destroy {path} --phase page-write"));
        refused(path, said, "a file of the kernel's own");
        assert_eq!(fs::read(path).unwrap(), before);
    }
}

/// Through FUSE and an overlay a file has another inode, so that who uses it cannot be found.
#[test]
fn with_root_paths_through_fuse_and_an_overlay_are_refused() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["lower", "upper", "work", "merged", "fuse"] {
        fs::create_dir(path(name)).unwrap();
    }
    let file = path("lower/disk.img");
    File::create(&file).unwrap().set_len(32 * MIB).unwrap();
    let Ok(device) = Loop::on(&file) else {
        return support::skipped("no loop device");
    };
    loops::make("ext4", &device);
    let _mounted = Mounted::new(device.path());
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        path("lower").display(),
        path("upper").display(),
        path("work").display()
    );
    let merged = path("merged");
    run(
        "mount",
        &[
            "-t",
            "overlay",
            "overlay",
            "-o",
            &options,
            merged.to_str().unwrap(),
        ],
    );
    let _overlay = MountGuard(merged.clone());
    let fuse = path("fuse");
    run(
        "bindfs",
        &[path("lower").to_str().unwrap(), fuse.to_str().unwrap()],
    );
    let _fuse = MountGuard(fuse.clone());
    run("sync", &[]);
    let before = digest(&file);
    let place = Place::new();
    for (folder, word) in [(merged, "through an overlay"), (fuse, "through FUSE")] {
        let name = folder.join("disk.img");
        let name = name.to_str().unwrap();
        let consent = format!("{name}=ext4");
        let bench = format!("bench {name} --destroy {consent} --phase page-write --seconds 200ms");
        let said = place.run(&bench);
        refused(&format!("bench, mounted {word}"), said, word);
    }
    run("sync", &[]);
    assert_eq!(digest(&file), before);
}

/// A device that this test itself opens for writing is in use by the test, whose name and id are told.
#[test]
fn with_root_the_process_is_named() {
    let Some(device) = Loop::new(16) else { return };
    let _open = OpenOptions::new().write(true).open(&device.node).unwrap();
    let place = Place::new();
    place
        .run(&["zero", device.path(), "--destroy", device.path()])
        .refuses(&[
            &format!("(pid {})", std::process::id()),
            "stop that program first",
        ]);
}
