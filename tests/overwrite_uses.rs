//! A table of states in which storage is in use, on real loop devices: each way to use it, under each name that
//! the storage has, against each verb that overwrites. Each state is printed with what was expected and what
//! came. They need root.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the table is printed")]

#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use loops::{Loop, Mounted, SwapOn, digest, run};
use support::{Place, Said};

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

    fn overwrite(&self, verb: &str) -> Said {
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

    /// A copy of the first page.
    fn header(&self) -> PathBuf {
        let copy = self.place.path("header");
        let content = fs::read(&self.file).unwrap();
        fs::write(&copy, &content[..4096]).unwrap();
        copy
    }

    /// What blkid(8) sees under the target's name.
    fn signature(&self) -> Option<String> {
        let target = self.target.to_str().unwrap();
        let seen = loops::try_run("blkid", &["-p", "-o", "value", "-s", "TYPE", target]).ok()?;
        seen.lines().next().map(str::to_owned)
    }
}

/// A process of another program that holds a file as a line of Python says, until it is dropped.
struct Holder(Child);

impl Holder {
    fn new(path: &Path, statements: &str) -> Holder {
        let script = format!(
            "import fcntl, mmap, os, struct, sys\npath = sys.argv[1]\n{statements}\nprint('ready', flush=True)\n\
             sys.stdin.read()"
        );
        let mut command = Command::new("python3");
        command.args(["-c", &script]).arg(path);
        Holder::ready(&mut command)
    }

    /// A process in whose mount namespace alone a device is mounted, over a folder that everybody has.
    fn mounted(device: &Path) -> Holder {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command.arg("mount \"$0\" /mnt && echo ready && read -r _");
        Holder::ready(command.arg(device))
    }

    /// Starts a program that says when it is ready, and ends with its standard input.
    fn ready(command: &mut Command) -> Holder {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line.trim(), "ready");
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How storage is used, until this is dropped.
#[expect(dead_code, reason = "each is held for what its end undoes")]
enum Use {
    Mount(Mounted),
    Swap(SwapOn),
    Program(Holder),
    Nothing,
}

/// Ways to use storage that must keep everyone out, with a word that the refusal holds.
const USES: [(&str, &str); 15] = [
    ("mounted", "is mounted at"),
    ("swap", "in use as swap"),
    (
        "open for reading and writing",
        "open for writing by python3",
    ),
    ("open for writing", "open for writing by python3"),
    ("mapped, shared", "mapped into memory by python3"),
    ("mapped, private", "mapped into memory by python3"),
    ("locked by flock", "locked by python3"),
    ("locked by flock, shared", "locked by python3"),
    ("locked by fcntl", "locked by python3"),
    ("locked by an open file description", "locked by python3"),
    (
        "open in a program whose first thread has ended",
        "open for writing by python3",
    ),
    (
        "open in a thread with descriptors of its own",
        "open for writing by python3",
    ),
    (
        "registered with io_uring",
        "registered with io_uring by python3",
    ),
    (
        "mounted in another namespace",
        "in the mount namespace of process",
    ),
    ("claimed with O_EXCL", "is claimed by something"),
];

/// Uses of a device that a file has not.
const OF_DEVICES: [&str; 4] = [
    "mounted",
    "swap",
    "mounted in another namespace",
    "claimed with O_EXCL",
];

/// Ways to use storage that harm nobody when it is overwritten.
const HARMLESS: [&str; 2] = ["not used", "open for reading"];

impl Use {
    fn of(way: &str, device: &Loop) -> Use {
        match way {
            "mounted" => {
                loops::make("ext4", device);
                Use::Mount(Mounted::new(device.path()))
            }
            "swap" => Use::Swap(SwapOn::new(device.path())),
            "not used" => Use::Nothing,
            "mounted in another namespace" => {
                loops::make("ext4", device);
                Use::Program(Holder::mounted(&device.node))
            }
            way => Use::Program(Holder::new(&device.node, &statements_of(way))),
        }
    }
}

/// A line of the table.
fn row(state: &str, expected: &str, said: &Said, wrong: bool) {
    let mark = if wrong { "WRONG" } else { "ok" };
    println!(
        "{state:<90} expected {expected:<8} got status {:?} {mark}",
        said.status
    );
}

/// Every name and verb of one use must be refused, and leave the storage as it is.
fn all_names_are_refused(way: &str, word: &str) {
    let mut wrong = Vec::new();
    for name in NAMES {
        for verb in ["bench", "zero"] {
            // zero takes disks only, and refuses a file for that alone.
            if verb == "zero" && name == "the file itself" {
                continue;
            }
            let Some(storage) = Storage::new(name) else {
                return;
            };
            let used = Use::of(way, &storage.used);
            run("sync", &[]);
            // The kernel itself writes to swap, but never to its header.
            let content = || match way {
                "swap" => digest(&storage.header()),
                _ => digest(&storage.file),
            };
            let before = content();
            let said = storage.overwrite(verb);
            run("sync", &[]);
            let kept = content() == before;
            // What is shown by a loop device is refused for that, and not claimed.
            let is_shown = said.err.contains("is shown by the loop device");
            let told = said.err.contains(word) || is_shown;
            let state = format!("{verb}, {way}: {name}");
            let fails = said.status != Some(2) || !kept || !told;
            row(&state, "refusal", &said, fails);
            if fails {
                wrong.push(format!("{state}: unchanged: {kept}, {said:#?}"));
            }
            drop(used);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn with_root_what_is_mounted_is_refused_under_all_its_names() {
    let (way, word) = USES[0];
    all_names_are_refused(way, word);
}

#[test]
fn with_root_swap_is_refused_under_all_its_names() {
    let (way, word) = USES[1];
    all_names_are_refused(way, word);
}

#[test]
fn with_root_what_a_program_writes_is_refused_under_all_its_names() {
    for (way, word) in &USES[2..4] {
        all_names_are_refused(way, word);
    }
}

#[test]
fn with_root_what_a_program_has_mapped_is_refused_under_all_its_names() {
    for (way, word) in &USES[4..6] {
        all_names_are_refused(way, word);
    }
}

#[test]
fn with_root_what_a_program_has_locked_is_refused_under_all_its_names() {
    for (way, word) in &USES[6..10] {
        all_names_are_refused(way, word);
    }
}

#[test]
fn with_root_what_threads_and_rings_alone_have_open_is_refused_under_all_its_names() {
    for (way, word) in &USES[10..13] {
        all_names_are_refused(way, word);
    }
}

#[test]
fn with_root_what_is_mounted_elsewhere_or_claimed_is_refused_under_all_its_names() {
    for (way, word) in &USES[13..] {
        all_names_are_refused(way, word);
    }
}

#[test]
fn with_root_what_nobody_uses_is_overwritten_under_all_its_names() {
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
                let used = Use::of(way, &storage.used);
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
            let bench = [
                "bench",
                path,
                "--destroy",
                path,
                "--phase",
                "page-write",
                "--seconds",
                "200ms",
            ];
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

/// The statements by which a program uses a file in a way of [`USES`].
fn statements_of(way: &str) -> String {
    let open = |flags: &str| format!("fd = os.open(path, os.{flags})\n");
    let mapped = |flags: &str| {
        format!(
            "{}kept = mmap.mmap(fd, 4096, {flags}, mmap.PROT_READ)\nos.close(fd)",
            open("O_RDONLY")
        )
    };
    match way {
        "open for reading and writing" => open("O_RDWR"),
        "open for writing" => open("O_WRONLY"),
        "open for reading" => open("O_RDONLY"),
        "mapped, shared" => mapped("mmap.MAP_SHARED"),
        "mapped, private" => mapped("mmap.MAP_PRIVATE"),
        "locked by flock" => format!("{}fcntl.flock(fd, fcntl.LOCK_EX)", open("O_RDONLY")),
        "locked by flock, shared" => format!("{}fcntl.flock(fd, fcntl.LOCK_SH)", open("O_RDONLY")),
        "locked by fcntl" => format!("{}fcntl.lockf(fd, fcntl.LOCK_EX)", open("O_RDWR")),
        // F_OFD_SETLK is 37 (include/uapi/asm-generic/fcntl.h).
        "locked by an open file description" => format!(
            "{}fcntl.fcntl(fd, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))",
            open("O_RDWR")
        ),
        "claimed with O_EXCL" => open("O_RDONLY | os.O_EXCL"),
        "open in a program whose first thread has ended" => format!(
            "{}{}",
            open("O_RDWR"),
            "import ctypes, threading, time
def state():
    return open(f'/proc/{os.getpid()}/stat').read().rsplit(')', 1)[1].split()[0]
def rest():
    while state() != 'Z':
        time.sleep(0.01)
    print('ready', flush=True)
    sys.stdin.read()
threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)"
        ),
        // CLONE_FILES is 0x400 (include/uapi/linux/sched.h).
        "open in a thread with descriptors of its own" => "import ctypes, threading, time
opened = threading.Event()
def own():
    ctypes.CDLL(None).unshare(0x400)
    fd = os.open(path, os.O_RDWR)
    opened.set()
    time.sleep(1000)
threading.Thread(target=own, daemon=True).start()
opened.wait()"
            .to_owned(),
        // io_uring_setup, and io_uring_register with IORING_REGISTER_FILES (include/uapi/linux/io_uring.h).
        "registered with io_uring" => format!(
            "{}{}",
            open("O_RDWR"),
            "import ctypes
call = ctypes.CDLL(None, use_errno=True).syscall
ring = call(425, 4, (ctypes.c_char * 120)())
assert ring >= 0 and call(427, ring, 2, (ctypes.c_int * 1)(fd), 1) == 0
os.close(fd)"
        ),
        way => panic!("{way}?"),
    }
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
            _here = Over(point.clone());
        } else {
            let private = "import ctypes\nassert ctypes.CDLL(None).unshare(0x20000) == 0\n\
                           assert ctypes.CDLL(None).mount(None, b'/', None, 0x44000, None) == 0\n";
            _there = Holder::new(&file, &format!("{private}{mount}"));
        }
        let before = digest(&file);
        let shown = Loop::on(&file).unwrap();
        for target in [path(&file), shown.path().to_owned()] {
            let consent = format!("{target}=erofs");
            let bench = [
                "bench",
                &target,
                "--destroy",
                &consent,
                "--phase",
                "page-write",
            ];
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
        row(
            &format!("{verb}, over a swap file"),
            "refusal",
            &said,
            said.status != Some(2),
        );
        said.refuses(&["in use as swap"]);
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
        let said = place.run(&["bench", path, "--destroy", path, "--phase", "page-write"]);
        row(path, "refusal", &said, said.status != Some(2));
        said.refuses(&["a file of the kernel's own"]);
        assert_eq!(fs::read(path).unwrap(), before);
    }
}

/// A mount that is taken down when it is dropped.
struct Over(PathBuf);

impl Drop for Over {
    fn drop(&mut self) {
        loops::unmount(&self.0);
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
    let _overlay = Over(merged.clone());
    let fuse = path("fuse");
    run(
        "bindfs",
        &[path("lower").to_str().unwrap(), fuse.to_str().unwrap()],
    );
    let _fuse = Over(fuse.clone());
    run("sync", &[]);
    let before = digest(&file);
    let place = Place::new();
    for (folder, word) in [(merged, "through an overlay"), (fuse, "through FUSE")] {
        let name = folder.join("disk.img");
        let name = name.to_str().unwrap();
        let consent = format!("{name}=ext4");
        let bench = [
            "bench",
            name,
            "--destroy",
            &consent,
            "--phase",
            "page-write",
            "--seconds",
            "200ms",
        ];
        let said = place.run(&bench);
        row(
            &format!("bench, mounted {word}"),
            "refusal",
            &said,
            said.status != Some(2),
        );
        said.refuses(&[word]);
    }
    run("sync", &[]);
    assert_eq!(digest(&file), before);
}

/// With the kernel's lists hidden, nothing is known to be unused.
#[test]
fn with_root_with_sys_hidden_everything_is_refused() {
    if !support::is_root() {
        return;
    }
    for hidden in ["/sys", "/sys/class/block", "/sys/devices/virtual/block"] {
        let place = Place::new();
        let file = place.path("plain");
        File::create(&file).unwrap().set_len(16 * MIB).unwrap();
        let file = file.to_str().unwrap();
        let command = place.command(&["bench", file, "--destroy", file, "--phase", "page-write"]);
        let mut inside = Command::new("unshare");
        inside.args(["--mount", "--propagation", "private", "sh", "-c"]);
        inside.arg(format!(
            "mount -t tmpfs none {hidden} && exec \"$0\" \"$@\""
        ));
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                inside.env(name, value);
            }
        }
        let said = support::said(inside.current_dir(place.data()));
        row(
            &format!("bench, tmpfs over {hidden}"),
            "refusal",
            &said,
            said.status != Some(2),
        );
        said.refuses(&["what uses it is not known"]);
    }
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
