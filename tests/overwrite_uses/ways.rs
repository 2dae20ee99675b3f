//! Ways in which programs and the kernel use storage.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::loops::{self, Loop, Mounted, SwapOn, run};

/// A process of another program that holds a file as a line of Python says, until it is dropped.
pub(crate) struct Holder(Child);

impl Holder {
    pub(crate) fn new(path: &Path, statements: &str) -> Holder {
        Holder::of(&mut Command::new("python3"), path, statements)
    }

    /// The same by a command that runs Python.
    pub(crate) fn of(python: &mut Command, path: &Path, statements: &str) -> Holder {
        let script = format!(
            "import fcntl, mmap, os, struct, sys\npath = sys.argv[1]\n{statements}\nprint('ready', flush=True)\n\
             sys.stdin.read()"
        );
        Holder::ready(python.args(["-c", &script]).arg(path))
    }

    /// A process in whose mount namespace alone a device is mounted, over a folder that everybody has.
    pub(crate) fn mounted(device: &Path) -> Holder {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        command.arg("mount \"$0\" /mnt && echo ready && read -r _");
        Holder::ready(command.arg(device))
    }

    /// Starts a program that says when it is ready, and ends with its standard input.
    pub(crate) fn ready(command: &mut Command) -> Holder {
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

/// A use of storage, until this is dropped.
#[expect(dead_code, reason = "each is held for what its end undoes")]
pub(crate) enum StorageUse {
    Mount(Mounted),
    Swap(SwapOn),
    Program(Holder),
    Journal(Mounted, Loop),
    Nothing,
}

/// Ways to use storage that must keep everyone out, with a word that the refusal holds.
pub(crate) const USES: [(&str, &str); 17] = [
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
    (
        "unmounted, with a file of it open",
        "is claimed by something",
    ),
    (
        "the journal of a mounted file system",
        "is claimed by something",
    ),
];

/// Uses of a device that a file has not.
pub(crate) const OF_DEVICES: [&str; 6] = [
    "mounted",
    "swap",
    "mounted in another namespace",
    "claimed with O_EXCL",
    "unmounted, with a file of it open",
    "the journal of a mounted file system",
];

/// Ways in which a program has a file system mounted, to which the kernel writes.
pub(crate) const MOUNTS: [&str; 2] = [
    "mounted in another namespace",
    "unmounted, with a file of it open",
];

/// Ways to use storage that harm nobody when it is overwritten.
pub(crate) const HARMLESS: [&str; 2] = ["not used", "open for reading"];

impl StorageUse {
    pub(crate) fn of(way: &str, device: &Loop) -> StorageUse {
        match way {
            "mounted" => {
                loops::make("ext4", device);
                StorageUse::Mount(Mounted::new(device.path()))
            }
            "swap" => StorageUse::Swap(SwapOn::new(device.path())),
            "not used" => StorageUse::Nothing,
            "mounted in another namespace" => {
                loops::make("ext4", device);
                StorageUse::Program(Holder::mounted(&device.node))
            }
            "unmounted, with a file of it open" => {
                loops::make("ext4", device);
                StorageUse::Program(Holder::new(&device.node, &statements_of(way)))
            }
            "the journal of a mounted file system" => {
                let journal = ["-q", "-F", "-b", "4096", "-O", "journal_dev", device.path()];
                run("mke2fs", &journal);
                let other = Loop::new(32).unwrap();
                let place = format!("device={}", device.path());
                let lazy = "lazy_itable_init=0,lazy_journal_init=0";
                let fs = [
                    "-q",
                    "-F",
                    "-b",
                    "4096",
                    "-E",
                    lazy,
                    "-J",
                    &place,
                    other.path(),
                ];
                run("mkfs.ext4", &fs);
                StorageUse::Journal(Mounted::new(other.path()), other)
            }
            way => StorageUse::Program(Holder::new(&device.node, &statements_of(way))),
        }
    }
}

/// A mount that is taken down when it is dropped.
pub(crate) struct MountGuard(pub(crate) PathBuf);

impl Drop for MountGuard {
    fn drop(&mut self) {
        loops::unmount(&self.0);
    }
}

/// The statements by which a program uses a file in a way of [`USES`].
pub(crate) fn statements_of(way: &str) -> String {
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
        // umount2(2), MNT_DETACH.
        "unmounted, with a file of it open" => "import subprocess, tempfile
point = tempfile.mkdtemp()
subprocess.check_call(['mount', path, point])
kept = open(point + '/kept', 'w')
subprocess.check_call(['umount', '--lazy', point])
os.rmdir(point)"
            .to_owned(),
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
