//! The machine on its own: power cuts, interruptions and the ways in which it can fail. It needs
//! QEMU and Debian's packages; where they cannot be had, each test says so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lab::machine::{
    Accel, Disk, Error, Machine, MachineOptions, Packages, Source, check_emulator, default_cache,
};

/// Takes what a command writes, for a look at it while it runs.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Heard {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    #[track_caller]
    fn wait_for(&self, words: &str) {
        let began = Instant::now();
        while !self.text().contains(words) {
            let waited = began.elapsed();
            assert!(
                waited < Duration::from_secs(120),
                "no '{words}': {}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A machine with one disk that is a file, or `None` where there is none to be had.
fn options(folder: &Path, script: &str) -> Option<MachineOptions> {
    let cache = default_cache(|name| std::env::var_os(name));
    let packages = check_emulator().and_then(|()| Packages::ensure(&cache, &mut |_| {}));
    let packages = match packages {
        Ok(packages) => packages,
        Err(Error::Unavailable(why)) => {
            skipped(&why);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let disk = folder.join("disk");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&disk);
    file.unwrap().set_len(64 << 20).unwrap();
    let binary = std::env::current_exe().unwrap();
    let command = ["sh", "-c", script].map(OsString::from).to_vec();
    let mut options = MachineOptions::new(packages, &cache, &binary, command);
    options.disks = vec![Disk {
        source: Source::File(disk),
        serial: "volume".to_owned(),
    }];
    options.accel = Accel::Emulation;
    options.timeout = Some(Duration::from_secs(120));
    Some(options)
}

#[allow(clippy::print_stdout, reason = "a test that is skipped says so")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

fn run(options: &MachineOptions) -> (Result<Option<u8>, Error>, String, String) {
    let (out, err) = (Heard::default(), Heard::default());
    let ended = Machine::run(options, out.clone(), err.clone(), &AtomicBool::new(false));
    (ended.map(|ended| ended.status), out.text(), err.text())
}

#[test]
fn with_qemu_disks_and_ledger_outlive_a_power_cut() {
    let folder = tempfile::tempdir().unwrap();
    let script = "set -e
        if [ -e $DISKSMITH_LEDGER ]; then
            cat $DISKSMITH_LEDGER
            head -c 8 /dev/vda
            exit 0
        fi
        printf written >$DISKSMITH_LEDGER
        printf 'on disk\\n' | dd of=/dev/vda conv=fsync 2>/dev/null
        sync
        echo ready
        sleep 1000";
    let Some(mut options) = options(folder.path(), script) else {
        return;
    };
    options.state = Some(folder.path().join("state"));
    options.ledger_out = Some(folder.path().join("ledger.db"));
    let out = Heard::default();
    let machine = Machine::start(&options, out.clone(), std::io::sink()).unwrap();
    out.wait_for("ready");
    machine.cut().unwrap();
    assert!(!folder.path().join("ledger.db").exists());

    let (status, out, err) = run(&options);
    assert_eq!(status.unwrap(), Some(0), "{err}");
    assert_eq!(out, "writtenon disk\n");
    let ledger = std::fs::read_to_string(folder.path().join("ledger.db"));
    assert_eq!(ledger.unwrap(), "written");
}

#[test]
fn with_qemu_an_interruption_reaches_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo caught; exit 42' INT; echo up; while :; do sleep 0.1; done";
    let Some(options) = options(folder.path(), script) else {
        return;
    };
    let out = Heard::default();
    let machine = Machine::start(&options, out.clone(), std::io::sink()).unwrap();
    out.wait_for("up");
    let ended = machine.wait(&AtomicBool::new(true)).unwrap();
    assert_eq!(ended.status, Some(42));
    assert_eq!(out.text(), "up\ncaught\n");
}

#[test]
fn with_qemu_every_byte_of_the_output_arrives_and_the_streams_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\000\\377' ; echo bad >/dev/stderr
        sleep 1000 & exit 3";
    let Some(options) = options(folder.path(), script) else {
        return;
    };
    let out = Heard::default();
    let err = Heard::default();
    let ended = Machine::run(&options, out.clone(), err.clone(), &AtomicBool::new(false));
    assert_eq!(ended.unwrap().status, Some(3));
    let bytes = out.0.lock().unwrap();
    assert_eq!(bytes.len(), 3_000_002);
    assert_eq!(bytes[2_999_999..], *b"x\0\xff");
    assert_eq!(err.text(), "bad\n");
}

#[test]
fn with_qemu_a_machine_that_ends_early_says_why() {
    let folder = tempfile::tempdir().unwrap();
    for (script, timeout, words) in [
        (
            "echo c >/proc/sysrq-trigger",
            120,
            "kernel gave up: sysrq triggered crash",
        ),
        ("poweroff -f", 120, "switched off before its command ended"),
        ("sleep 1000", 1, "was not done 1 s after"),
    ] {
        let Some(mut options) = options(folder.path(), script) else {
            return;
        };
        options.timeout = Some(Duration::from_secs(timeout));
        let (ended, _, _) = run(&options);
        let error = ended.unwrap_err();
        assert!(!error.is_refusal());
        assert!(error.to_string().contains(words), "{error}");
    }
}
