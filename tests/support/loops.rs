//! Real devices for the tests of the whole program: loop devices, limits on what a process may do
//! with them, and somebody else who uses them. All of it is taken down when it is dropped, also
//! when the test panics.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "each test program uses its own part of this, and is a crate to which pub means nothing"
)]

#[path = "../../crates/linux/tests/linux/support/loops.rs"]
mod attached;

use std::fs;
use std::hash::Hasher as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use attached::{Loop, Mounted, SwapOn, run, try_run};
pub use skip::skipped;

/// A group of processes that are held to a limit on one device, by the blkio controller of cgroup
/// v1 or the io controller of v2. Direct I/O counts for whoever issues it.
pub struct Throttle {
    group: PathBuf,
    device: String,
    version: Version,
}

#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

impl Throttle {
    /// A group of its own. `None`, with a note, where the kernel or the container has no such thing.
    pub fn on(device: &Loop) -> Option<Throttle> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("disksmith-test-{}-{number}", std::process::id());
        let made = Self::hierarchy().and_then(|(root, version)| {
            let throttle = Throttle {
                group: root.join(name),
                device: fs::read_to_string(format!("/sys/class/block/{}/dev", device.name()))
                    .map_err(|error| error.to_string())?
                    .trim()
                    .to_owned(),
                version,
            };
            fs::create_dir(&throttle.group).map_err(|error| error.to_string())?;
            throttle.try_limit(0, 0)?;
            Ok(throttle)
        });
        made.map_err(|why| skipped(&format!("I/O cannot be limited here ({why})")))
            .ok()
    }

    fn hierarchy() -> Result<(PathBuf, Version), String> {
        let one = Path::new("/sys/fs/cgroup/blkio");
        if one.join("blkio.throttle.read_iops_device").exists() {
            return Ok((one.to_owned(), Version::One));
        }
        let two = Path::new("/sys/fs/cgroup");
        let has_io = |file: &str| {
            let words = fs::read_to_string(two.join(file)).unwrap_or_default();
            words.split_whitespace().any(|word| word == "io")
        };
        if has_io("cgroup.controllers") && has_io("cgroup.subtree_control") {
            return Ok((two.to_owned(), Version::Two));
        }
        Err("no blkio of cgroup v1, and no io of v2 for child groups".to_owned())
    }

    /// Holds the group to so many requests a second, reads and writes each.
    pub fn limit_iops(&self, per_second: u64) {
        self.try_limit(per_second, 0).unwrap();
    }

    /// Holds it to so many requests a second on another device too, until the group goes.
    pub fn also_limit_iops(&self, device: &Loop, per_second: u64) {
        let number = fs::read_to_string(format!("/sys/class/block/{}/dev", device.name()));
        self.limit_on(number.unwrap().trim(), per_second, 0)
            .unwrap();
    }

    /// Holds the group to so many bytes a second, reads and writes each.
    pub fn limit_bytes(&self, per_second: u64) {
        self.try_limit(0, per_second).unwrap();
    }

    /// Lets nothing through: a page would take hours.
    pub fn freeze(&self) {
        self.try_limit(0, 1).unwrap();
    }

    /// Zero is no limit.
    fn try_limit(&self, iops: u64, bytes_per_s: u64) -> Result<(), String> {
        self.limit_on(&self.device, iops, bytes_per_s)
    }

    fn limit_on(&self, device: &str, iops: u64, bytes_per_s: u64) -> Result<(), String> {
        let lines = match self.version {
            Version::One => [
                ("read_iops", iops),
                ("write_iops", iops),
                ("read_bps", bytes_per_s),
                ("write_bps", bytes_per_s),
            ]
            .map(|(what, limit)| {
                let file = format!("blkio.throttle.{what}_device");
                (file, format!("{device} {limit}"))
            })
            .to_vec(),
            Version::Two => {
                let word = |limit: u64| match limit {
                    0 => "max".to_owned(),
                    limit => limit.to_string(),
                };
                let (iops, bytes) = (word(iops), word(bytes_per_s));
                let limits =
                    format!("{device} riops={iops} wiops={iops} rbps={bytes} wbps={bytes}");
                vec![("io.max".to_owned(), limits)]
            }
        };
        lines.into_iter().try_for_each(|(file, line)| {
            fs::write(self.group.join(&file), line).map_err(|error| format!("{file}: {error}"))
        })
    }

    /// The same command, in the group from its start.
    pub fn hold(&self, command: &Command) -> Command {
        let mut held = Command::new("sh");
        held.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]);
        held.arg(&self.group);
        crate::support::behind(held, command)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // Whoever waits in the group must come out before it can go.
        let _ = self.try_limit(0, 0);
        for _ in 0..3000 {
            if fs::remove_dir(&self.group).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("left behind: {}", self.group.display());
    }
}

/// Another program at work, until this is dropped.
pub struct Other {
    child: Child,
}

impl Other {
    pub fn start(command: &mut Command) -> Other {
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Other {
            child: command.spawn().unwrap(),
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file system in a loop device of its own. The device goes last.
pub struct FileSystem {
    pub mounted: Mounted,
    pub device: Loop,
}

impl FileSystem {
    /// A new one of `mib` mebibytes. `None`, with a note, where that cannot be.
    pub fn new(kind: &str, mib: u64) -> Option<FileSystem> {
        Self::on(Loop::new(mib)?, kind)
    }

    /// One on a device.
    pub fn on(device: Loop, kind: &str) -> Option<FileSystem> {
        make(kind, &device).then(|| FileSystem {
            mounted: Mounted::new(device.path()),
            device,
        })
    }

    pub fn path(&self) -> &Path {
        &self.mounted.point
    }

    /// The path of something in it.
    pub fn join(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    /// Panics if anything lies in it but what mkfs put there, or if it is still in use.
    pub fn assert_nothing_left(&self) {
        let names = crate::support::names_in(self.path());
        assert!(names.iter().all(|name| name == "lost+found"), "{names:?}");
        assert!(unmount(self.path()), "still in use");
        let point = self.path().to_str().unwrap();
        // So that what takes the mount down finds it.
        run("mount", &[self.device.path(), point]);
    }
}

/// Makes a file system that writes nothing later on its own. `false`, with a note, where its
/// program is not installed.
pub fn make(kind: &str, device: &Loop) -> bool {
    let (program, options): (_, &[&str]) = match kind {
        "ext4" => (
            "mkfs.ext4",
            &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        ),
        "xfs" => ("mkfs.xfs", &["-q", "-f"]),
        "btrfs" => ("mkfs.btrfs", &["-q", "-f"]),
        other => panic!("how is {other} made?"),
    };
    match try_run(program, &[options, &[device.path()]].concat()) {
        Ok(_) => true,
        Err(why) if why.contains("No such file") => {
            skipped(&why);
            false
        }
        Err(why) => panic!("{why}"),
    }
}

/// Unmounts, again and again while something has it open for a moment, such as a program that looks
/// at all mounts, or the kernel that takes down a ring of a process that has ended. `false` if it stays in use.
pub fn unmount(point: &Path) -> bool {
    for _ in 0..6000 {
        if try_run("umount", &[point.to_str().unwrap()]).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    eprintln!("left behind: {}", point.display());
    false
}

/// Fills a file or device with data that is not zero, past the caches.
pub fn fill(path: &str, mib: u64) {
    let (of, count) = (format!("of={path}"), format!("count={mib}"));
    let dd = [
        "if=/dev/urandom",
        &of,
        "bs=1M",
        &count,
        "conv=fsync,notrunc",
    ];
    run("dd", &dd);
}

/// Bytes that were read from a device since the host was started.
pub fn bytes_read(device: &Loop) -> u64 {
    let text = fs::read_to_string(format!("/sys/block/{}/stat", device.name())).unwrap();
    let sectors: u64 = text.split_whitespace().nth(2).unwrap().parse().unwrap();
    512 * sectors
}

/// Waits until a process has read so much of a device. Tests of other devices may read this one too: `disksmith devices`
/// looks at all. So the device must be open in the process, and the process and the device must both have read so much
/// since then; that of the process counts what it reads elsewhere, such as its own program.
pub fn wait_for(process: u32, device: &Loop, bytes: u64) {
    let node = Path::new(device.path());
    let is_open = || {
        let files = fs::read_dir(format!("/proc/{process}/fd"))
            .into_iter()
            .flatten();
        files
            .flatten()
            .any(|file| fs::read_link(file.path()).is_ok_and(|target| target == node))
    };
    let read = || crate::support::process_io(process, "read_bytes");
    let mut begun = None;
    for _ in 0..60_000 {
        if begun.is_none() && is_open() {
            begun = read().map(|by_process| (by_process, bytes_read(device)));
        }
        if let Some((by_process, of_device)) = begun
            && read().is_some_and(|now| now >= by_process + bytes)
            && bytes_read(device) >= of_device + bytes
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nothing is read");
}

/// A number that tells one content from another. Zeros, which are most of a sparse file, are passed over.
pub fn digest(path: &Path) -> u64 {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut hasher = std::hash::DefaultHasher::new();
    let content = fs::read(path).unwrap();
    for (at, block) in content.chunks(ZEROS.len()).enumerate() {
        if block != &ZEROS[..block.len()] {
            hasher.write_usize(at);
            hasher.write(block);
        }
    }
    hasher.write_usize(content.len());
    hasher.finish()
}
