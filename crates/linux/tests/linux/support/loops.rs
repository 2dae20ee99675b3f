//! Real loop devices, file systems and swap areas, for tests that run as root. Each is removed when it is dropped,
//! also if the test panics; and each belongs to one test, so that tests can run in parallel.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::FlockOperation;

/// Runs a program; if it fails, the panic has its output.
pub fn run(program: &str, arguments: &[&str]) -> String {
    try_run(program, arguments).unwrap_or_else(|error| panic!("{error}"))
}

pub fn try_run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let message = |text: &[u8]| String::from_utf8_lossy(text).trim().to_owned();
    // Administrators' programs are often not on the PATH of a user or a test.
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", path);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = {
        let _alone = alone();
        command.spawn()
    };
    let output = child
        .and_then(Child::wait_with_output)
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(message(&output.stdout))
    } else {
        Err(format!(
            "{program} {arguments:?}: {}",
            message(&output.stderr)
        ))
    }
}

/// Held while a program is started and while a device is briefly claimed. A child has its parent's files until it
/// executes the program, so a claim released by another thread would last a little longer, and the device would look
/// busy for no visible reason.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A loop device on a sparse file, or on another device.
pub struct Loop {
    pub node: PathBuf,
    /// Folder of the file; removed with the device.
    folder: Option<tempfile::TempDir>,
}

impl Loop {
    /// A new loop device of `mib` mebibytes. `None`, with a note, if that is impossible: without root, or in a
    /// container without loop devices.
    pub fn new(mib: u64) -> Option<Loop> {
        Loop::of_new_file(tempfile::tempdir().unwrap(), mib, &[])
    }

    /// A loop device with direct I/O, on a file of a disk, so that figures are not from memory.
    #[allow(dead_code, reason = "tests of the whole program use it")]
    pub fn direct(mib: u64) -> Option<Loop> {
        // Where temporary files are in memory, the build folder is still on a disk.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Loop::of_new_file(folder, mib, &["--direct-io=on"])
    }

    fn of_new_file(folder: tempfile::TempDir, mib: u64, options: &[&str]) -> Option<Loop> {
        let file = folder.path().join("disk.img");
        File::create(&file).unwrap().set_len(mib << 20).unwrap();
        match Loop::part_of(&file, options) {
            Ok(mut device) => {
                device.folder = Some(folder);
                Some(device)
            }
            Err(why) => {
                skip::skipped(&format!("no loop device can be attached here ({why})"));
                None
            }
        }
    }

    /// A loop device on a file or a device.
    pub fn on(shown: &Path) -> Result<Loop, String> {
        Loop::part_of(shown, &[])
    }

    /// A loop device on a part of a file or device, by options of losetup(8) such as `--offset`.
    pub fn part_of(shown: &Path, options: &[&str]) -> Result<Loop, String> {
        if !is_root() {
            return Err("this needs root".to_owned());
        }
        // Two processes may get the same free device, and the second one briefly claims it before it fails: that would
        // break the test that has it. The lock serializes these tests; it ends when the file is closed.
        let control = File::open("/dev/loop-control").map_err(|error| error.to_string())?;
        rustix::fs::flock(&control, FlockOperation::LockExclusive)
            .map_err(|error| error.to_string())?;
        let arguments = [options, &["--find", "--show", shown.to_str().unwrap()]].concat();
        let node = try_run("losetup", &arguments)?;
        // A node keeps the mode that its last user gave it, even if the device is another one.
        std::fs::set_permissions(&node, std::fs::Permissions::from_mode(0o600))
            .map_err(|error| format!("{node}: {error}"))?;
        let device = Loop {
            node: node.into(),
            folder: None,
        };
        // A partition that a killed test had added stays, too.
        device.forget_partition()?;
        Ok(device)
    }

    /// Removes the partition of [`Loop::add_partition`] from the kernel, if there is one.
    fn forget_partition(&self) -> Result<(), String> {
        let known = format!("/sys/class/block/{}p1", self.name());
        if Path::new(&known).exists() {
            try_run("delpart", &[self.path(), "1"])?;
        }
        Ok(())
    }

    pub fn path(&self) -> &str {
        self.node.to_str().unwrap()
    }

    pub fn name(&self) -> String {
        self.node.file_name().unwrap().to_str().unwrap().to_owned()
    }

    pub fn mkfs(&self) {
        mkfs_ext4(self.path());
    }

    pub fn mkfs_xfs(&self) {
        run("mkfs.xfs", &["-q", "-f", self.path()]);
    }

    /// Adds a partition in the kernel; its table is not on the device.
    pub fn add_partition(&self) -> Partition<'_> {
        run("addpart", &[self.path(), "1", "2048", "8192"]);
        Partition {
            node: format!("{}p1", self.path()),
            device: self,
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        take_down("losetup", &["--detach", self.path()]);
    }
}

/// Removes something, with retries while a program briefly has it open. A failure is written directly to stderr, which
/// a passing test does not capture, and does not hide an earlier failure.
fn take_down(program: &str, arguments: &[&str]) {
    let mut last = Ok(String::new());
    for _ in 0..1200 {
        last = try_run(program, arguments);
        if last.is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = writeln!(std::io::stderr(), "left behind: {last:?}");
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Makes an ext4 to which the kernel does not write by itself while it is mounted.
fn mkfs_ext4(node: &str) {
    let at_once = "lazy_itable_init=0,lazy_journal_init=0";
    run("mkfs.ext4", &["-q", "-F", "-E", at_once, node]);
}

/// A partition of a loop device.
pub struct Partition<'a> {
    pub node: String,
    device: &'a Loop,
}

impl Partition<'_> {
    pub fn mkfs(&self) {
        mkfs_ext4(&self.node);
    }
}

impl Drop for Partition<'_> {
    fn drop(&mut self) {
        take_down("delpart", &[self.device.path(), "1"]);
    }
}

/// A mounted file system.
pub struct Mounted {
    pub point: PathBuf,
    _folder: tempfile::TempDir,
}

impl Mounted {
    pub fn new(node: &str) -> Mounted {
        Mounted::by(&[node])
    }

    /// A mount by these arguments of mount(8), the last of which is the source.
    pub fn by(arguments: &[&str]) -> Mounted {
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().canonicalize().unwrap();
        run("mount", &[arguments, &[point.to_str().unwrap()]].concat());
        Mounted {
            point,
            _folder: folder,
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        take_down("umount", &[self.point.to_str().unwrap()]);
    }
}

/// Swap that is enabled.
pub struct SwapOn {
    path: String,
}

impl SwapOn {
    pub fn new(path: &str) -> SwapOn {
        run("mkswap", &[path]);
        run("swapon", &[path]);
        SwapOn {
            path: path.to_owned(),
        }
    }
}

impl Drop for SwapOn {
    fn drop(&mut self) {
        take_down("swapoff", &[&self.path]);
    }
}
