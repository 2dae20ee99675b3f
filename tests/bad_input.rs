//! Targets and arguments that make no sense: each is refused with a clear sentence and status 2,
//! and nothing is left behind. Some need root, to be somebody else for a moment or to mount
//! something; without it they say so and pass.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "bad_input/first_hour.rs"]
mod first_hour;
#[path = "support/loops.rs"]
mod loops;
#[path = "support/no_uring.rs"]
mod no_uring;
#[path = "support/pty.rs"]
mod pty;
mod support;
#[path = "bad_input/terminals.rs"]
mod terminals;

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loops::{FileSystem, Loop, Mounted, fill, run, skipped, try_run, unmount};
use support::{Place, ProgramOutput, Words, names_in, output_of};

const BRIEFLY: &str = "--phase page-read --seconds 200ms";

/// A short run on a path.
fn bench(place: &Place, path: &str, arguments: &(impl Words + ?Sized)) -> ProgramOutput {
    place.run(&[vec!["bench", path], BRIEFLY.words(), arguments.words()].concat())
}

#[test]
fn what_does_not_exist_is_named() {
    let place = Place::new();
    bench(&place, "nowhere/at/all", "").refuses(&["there is no nowhere/at/all"]);
    symlink("nowhere", place.path("dangling")).unwrap();
    bench(&place, "dangling", "").refuses(&["dangling"]);
    symlink("circle", place.path("circle")).unwrap();
    bench(&place, "circle", "").refuses(&["circle cannot be examined"]);
    bench(&place, "", "").ends_with(2);
    assert!(fs::symlink_metadata(place.path("dangling")).is_ok());
}

#[test]
fn what_holds_no_data_is_refused_at_once() {
    let place = Place::new();
    run("mkfifo", &[place.path("pipe").to_str().unwrap()]);
    let _socket = UnixListener::bind(place.path("socket")).unwrap();
    // The pipe's other end is never opened, for which this would wait forever.
    for path in ["pipe", "socket", "/dev/null", "/dev/zero"] {
        let neither = format!("{path} is neither a directory, a file nor a block device");
        bench(&place, path, "").refuses(&[&neither]);
        bench(&place, path, &["--destroy", path]).refuses(&[&neither]);
    }
}

#[test]
fn an_empty_file_and_one_smaller_than_a_request_are_refused() {
    let place = Place::new();
    File::create(place.path("empty")).unwrap();
    bench(&place, "empty", "").refuses(&["empty is empty: there is nothing to read"]);
    fs::write(place.path("small"), [1; 1000]).unwrap();
    bench(&place, "small", "").refuses(&["no room for blocks of 16 KiB"]);
}

#[test]
fn a_path_with_spaces_and_bytes_that_are_no_text_is_a_path_like_any_other() {
    let place = Place::new();
    for name in [
        &b"with spaces and \xc3\xa9"[..],
        b"bytes \xff\xfe 'quoted'\n",
    ] {
        let folder = place.path("data").join(OsStr::from_bytes(name));
        fs::create_dir(&folder).unwrap();
        let mut command = place.command("bench --size 4M --json --phase seek");
        command.args(["--seconds", "200ms"]).arg("--").arg(&folder);
        let document = output_of(&mut command).ends_with(0).json();
        let shown = document["target"]["path"].as_str().unwrap();
        assert_eq!(shown, folder.to_string_lossy());
        assert!(names_in(&folder).is_empty());
        // Named by --destroy, in full.
        let file = folder.join("file");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        let mut command = place.command("bench --phase page-write --seconds 200ms");
        let mut consent = file.clone().into_os_string();
        consent.push("=unknown");
        command.arg("--destroy").arg(consent).arg(&file);
        output_of(&mut command).ends_with(0);
        assert_ne!(fs::read(&file).unwrap(), vec![1; 1 << 20]);
        // And told when something is the matter with it.
        fs::write(&file, "").unwrap();
        let mut command = place.command("bench");
        command.arg(&file);
        output_of(&mut command).refuses(&["is empty"]);
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused_before_anything_is_written() {
    let place = Place::new();
    let data = |arguments: &[&str]| bench(&place, "data", arguments);
    data(&["--size", "100000T"])
        .refuses(&["does not fit", "give a --size that fits: disksmith bench "]);
    data(&["--size", "8M", "--span", "16M"])
        .refuses(&["a span of 16 MiB is more than the 8 MiB of"]);
    data(&["--size", "1000"]).refuses(&["too small"]);
    data(&["--size", "8M", "--block", "1000"]).refuses(&["multiples of 512", "1000 B is not"]);
    data(&["--size", "8M", "--block", "0"]).ends_with(2);
    data(&["--size", "8M", "--block", "1T"]).ends_with(2);
    data(&["--size", "8M", "--threads", "1000"]).refuses(&["no room for blocks"]);
    data(&["--size", "-8M"]).ends_with(2);
    data(&["--size", "much"]).refuses(&["much"]);
    data(&["--destroy", "data"]).refuses(&["is a directory, and nothing in it is ever destroyed"]);
    fs::write(place.path("file"), vec![1; 1 << 20]).unwrap();
    let file = |arguments: &[&str]| bench(&place, "file", arguments);
    file(&["--span", "2M"]).refuses(&["a span of 2 MiB is more than the 1 MiB of"]);
    file(&["--size", "1M"]).refuses(&["--size is for the test file in a directory"]);
    file(&["--destroy", "data"]).refuses(&["--destroy names data, which is not the target"]);
    file(&["--destroy", "file=ext44"]).refuses(&["'ext44' is not a signature"]);
    file(&["--destroy", "file=ext4"]).refuses(&["names ext4, which is not on file", "=unknown"]);
    file(&["--destroy", "file=unknown"]).ends_with(0);
    place.assert_nothing_left();
}

/// Another user, without rights, and the program where that user may run it.
struct OtherUser {
    folder: tempfile::TempDir,
}

impl OtherUser {
    const ID: u32 = 65534;

    fn new() -> Option<OtherUser> {
        if !support::is_root() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let everybody = Permissions::from_mode(0o777);
        fs::set_permissions(folder.path(), everybody).unwrap();
        // Where it was built, others may not go.
        let program = assert_cmd::cargo::cargo_bin!("disksmith");
        support::copy_program(program, &folder.path().join("disksmith"));
        Some(OtherUser { folder })
    }

    /// The program, as this user, with a ledger of its own.
    fn command(&self) -> Command {
        let mut command = Command::new(self.folder.path().join("disksmith"));
        command.env("DISKSMITH_LEDGER", self.folder.path().join("ledger.db"));
        command.uid(Self::ID).gid(Self::ID).current_dir("/");
        command.stdin(Stdio::null());
        command
    }

    fn bench(&self, path: &Path) -> ProgramOutput {
        output_of(self.command().arg("bench").args(BRIEFLY.words()).arg(path))
    }
}

#[test]
fn with_root_what_a_user_may_not_touch_is_refused_and_says_so() {
    let Some(nobody) = OtherUser::new() else {
        return;
    };
    let folder = nobody.folder.path();
    let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();

    let file = folder.join("secret");
    fs::write(&file, vec![1; 1 << 20]).unwrap();
    mode(&file, 0o600);
    nobody
        .bench(&file)
        .refuses(&["secret", "Permission denied"]);

    let readable = folder.join("readable");
    fs::create_dir(&readable).unwrap();
    mode(&readable, 0o555);
    nobody
        .bench(&readable)
        .refuses(&["readable may not be written by this user"]);

    let closed = folder.join("closed");
    fs::create_dir_all(closed.join("inside")).unwrap();
    mode(&closed, 0o700);
    nobody
        .bench(&closed.join("inside"))
        .refuses(&["may not be examined by this user"]);
    assert!(names_in(&closed.join("inside")).is_empty() && names_in(&readable).is_empty());

    if let Some(device) = Loop::new(16) {
        nobody
            .bench(&device.node)
            .refuses(&[device.path(), "Permission denied"]);
    }
    // Where that user may write, all is well.
    let open = folder.join("open");
    fs::create_dir(&open).unwrap();
    mode(&open, 0o777);
    nobody.bench(&open).ends_with(0);
    assert!(names_in(&open).is_empty());
}

#[test]
fn with_root_a_file_system_mounted_read_only_is_refused_and_its_files_are_read() {
    let Some(files) = FileSystem::new("ext4", 64) else {
        return;
    };
    fill(&files.join("file"), 16);
    let path = files.path().to_str().unwrap();
    run("mount", &["-o", "remount,ro", path]);
    let place = Place::new();
    bench(&place, path, "--size 8M").refuses(&["is mounted read-only"]);
    let file = files.join("file");
    bench(&place, &file, "").ends_with(0);
    bench(&place, &file, &["--destroy", &file]).refuses(&["Read-only file system"]);
    let device = files.device.path();
    // The device itself may still be read.
    bench(&place, device, "").ends_with(0);
}

#[test]
fn with_root_a_device_set_read_only_is_refused_for_writing() {
    let Some(device) = Loop::new(16) else {
        return;
    };
    /// The flag outlives the device's file, and would meet whoever is given the device next.
    struct ReadOnly<'a>(&'a Loop);
    impl Drop for ReadOnly<'_> {
        fn drop(&mut self) {
            let _ = try_run("blockdev", &["--setrw", self.0.path()]);
        }
    }
    let _read_only = ReadOnly(&device);
    run("blockdev", &["--setro", device.path()]);
    let place = Place::new();
    bench(&place, device.path(), &["--destroy", device.path()]).refuses(&["is set read-only"]);
    bench(&place, device.path(), "").ends_with(0);
}

#[test]
fn with_root_a_file_system_without_direct_io_makes_the_run_invalid() {
    let place = Place::new();
    let image = place.path("image");
    fs::write(place.path("data").join("file"), vec![7; 4 << 20]).unwrap();
    let (from, to) = (place.data(), image.to_str().unwrap());
    let words = [from.to_str().unwrap(), to, "-noappend", "-no-progress"];
    if let Err(why) = try_run("mksquashfs", &words) {
        return skipped(&why);
    }
    let Some(device) = Loop::on(&image).map_err(|why| skipped(&why)).ok() else {
        return;
    };
    let mounted = Mounted::new(device.path());
    let file = mounted.point.join("file");
    let said = bench(&place, file.to_str().unwrap(), "--json").ends_with(0);
    let document = said.json();
    assert_eq!(document["verdict"], "invalid");
    assert!(
        document["findings"]
            .to_string()
            .contains("refuses direct I/O")
    );
}

/// A FUSE file system; the server ends with it.
struct Fuse {
    point: tempfile::TempDir,
}

impl Fuse {
    fn new(of: &Path) -> Option<Fuse> {
        let point = tempfile::tempdir().unwrap();
        let words = [of.to_str().unwrap(), point.path().to_str().unwrap()];
        match try_run("bindfs", &words) {
            Ok(_) => Some(Fuse { point }),
            Err(why) => {
                skipped(&format!("no FUSE here ({why})"));
                None
            }
        }
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        unmount(self.point.path());
    }
}

#[test]
fn with_root_fuse_may_answer_from_memory_and_nothing_stays_there() {
    let place = Place::new();
    let Some(fuse) = Fuse::new(&place.data()) else {
        return;
    };
    let path = fuse.point.path().to_str().unwrap();
    let document = bench(&place, path, "--size 8M --json").ends_with(0).json();
    let findings = document["findings"].to_string();
    assert!(findings.contains("\"cached\""), "{findings}");
    assert_ne!(document["verdict"], "trusted");
    // A server hides a file that is removed while it is open, and is told later that it was closed.
    let began = Instant::now();
    while !names_in(&place.data()).is_empty() {
        assert!(began.elapsed() < support::TIMEOUT);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Failures of all kinds, of which each has causes: files, folders, devices, programs, other people's formats.
#[test]
fn no_failure_says_a_cause_twice() {
    let place = Place::new();
    fs::write(place.path("text"), "no format of anybody").unwrap();
    fs::write(place.path("job.fio"), "[a]\nrw=dance\n").unwrap();
    fs::create_dir(place.path("folder")).unwrap();
    bench(&place, "data", "").ends_with(0);
    for words in [
        "bench nowhere",
        "bench text/below",
        "bench data --fio nowhere.fio",
        "bench data --fio folder",
        "bench data --fio job.fio",
        "bench data --size 4E",
        "bench data --report nowhere/page.html",
        "bench data --ledger text/ledger.db",
        "bench data --ledger /proc/none/ledger.db",
        "runs --ledger text",
        "runs --ledger folder",
        "runs --ledger /dev/null/ledger.db",
        "show nobody",
        "import nowhere",
        "import folder",
        "import text",
        "report last -o nowhere/page.html",
        "report last -o /proc/page.html",
        "man nowhere",
        "man text",
        "watch --parse nowhere",
        "watch --parse folder",
        "watch --parse text",
        "watch --prometheus 192.0.2.1:9",
        "lab serve --volumes gp3:1GiB --socket-dir nowhere",
        "lab serve --volumes gp3:1GiB --socket-dir text",
        "lab serve --volumes gp3:1GiB --listen 192.0.2.1:9",
        "lab run --volumes gp3:1GiB --state folder -- true",
        "lab run --volumes gp3:1GiB --ledger-out nowhere/a.db -- true",
        "lab run --volumes gp3:1GiB --cache text -- true",
        "zero nowhere --destroy nowhere",
        "warm nowhere",
        "warm text",
        "scrub nowhere",
        "array stop nowhere",
        "sweep --devices nowhere --destroy nowhere --price nowhere",
        "fleet hosts --list ./nowhere",
        "fleet hosts --list ./folder",
        "fleet hosts --inventory text",
        "fleet run --list ./text --ssh-config nowhere -- devices",
        "fleet plan --from nowhere --want 1",
    ] {
        let said = place.run(&words.split(' ').collect::<Vec<_>>());
        assert!(matches!(said.status, Some(2 | 3)), "{words}: {said:#?}");
        assert!(
            said.err.matches("os error").count() <= 1,
            "{words}: {said:#?}"
        );
        let parts: Vec<&str> = said.err.split(": ").map(str::trim).collect();
        for (at, part) in parts.iter().enumerate() {
            let again = parts[at + 1..].contains(part);
            assert!(!again, "{words} says '{part}' twice: {said:#?}");
        }
    }
}
