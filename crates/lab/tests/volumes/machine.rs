//! The machine on its own: power cuts, interrupts and failures. It needs QEMU and Debian's packages; if they are not
//! available, each test is skipped.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lab::machine::{
    Accel, Disk, DiskContent, Error, Machine, MachineOptions, Packages, check_emulator,
    default_cache,
};
use lab::server::{Server, Volume};
use skip::skipped;

use crate::specs::specs;

/// Collects the output of a command, to read it while the command runs.
#[derive(Clone, Default)]
struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl CapturedOutput {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    #[track_caller]
    fn wait_for(&self, words: &str) {
        let began = Instant::now();
        while !self.text().contains(words) {
            let waited = began.elapsed();
            assert!(
                waited < Duration::from_secs(600),
                "no '{words}': {}",
                self.text()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A machine with one disk that is a file; `None` if a machine is not available.
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
        source: DiskContent::File(disk),
        serial: "volume".to_owned(),
    }];
    options.accel = Accel::Emulation;
    // A boot and its command, on a host of any speed.
    options.timeout = Some(Duration::from_secs(600));
    Some(options)
}

fn run(options: &MachineOptions) -> (Result<Option<u8>, Error>, String, String) {
    let (out, err) = (CapturedOutput::default(), CapturedOutput::default());
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
    let out = CapturedOutput::default();
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

/// After a cut each synced file must be complete: the script reports which are. Then it writes blocks that nothing
/// flushes, and files that it syncs, until the power is cut again.
const SYNCED: &str = "set -e
    [ $DISKSMITH_LAB_BOOT -gt 1 ] || mkfs.ext4 -q /dev/vda
    mount /dev/vda /mnt
    content() { yes $1 | head -c 20000; }
    number=0
    for file in /mnt/*.synced; do
        [ -e $file ] || continue
        name=${file##*/}
        name=${name%.synced}
        content $name | cmp -s - $file && echo whole $name
    done
    ls /mnt | sed -n 's/^/there /p'
    echo listed
    yes $DISKSMITH_LAB_BOOT | dd of=/dev/vdb bs=256k count=1 iflag=fullblock oflag=direct 2>/dev/null
    while :; do
        number=$((number + 1))
        name=$DISKSMITH_LAB_BOOT-$number
        content $name >/mnt/$name.loose
        content $name | dd of=/mnt/$name.synced bs=20000 iflag=fullblock conv=fsync 2>/dev/null
        echo synced $name
    done";

/// The words after this one in all complete lines.
fn all_after(text: &str, word: &str) -> BTreeSet<String> {
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let lines = whole.lines().filter_map(|line| line.strip_prefix(word));
    lines.map(|rest| rest.trim().to_owned()).collect()
}

fn synced_files_survive(cuts: u32) {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut options) = options(folder.path(), SYNCED) else {
        return;
    };
    let specs = specs(&["2xvolatile=1,latency=1ms:64MiB"]);
    let server = Server::start(&specs, &lab::server::Options::default()).unwrap();
    let disk = |volume: &Volume| Disk {
        source: DiskContent::Socket {
            path: volume.socket().to_owned(),
            export: String::new(),
        },
        serial: volume.serial().to_owned(),
    };
    options.disks = server.volumes().iter().map(disk).collect();
    let mut promised = BTreeSet::new();
    let mut loose = 0;
    for boot in 1..=cuts + 1 {
        options.boot = boot;
        let out = CapturedOutput::default();
        let machine = Machine::start(&options, out.clone(), std::io::sink()).unwrap();
        let last = boot > cuts;
        match last {
            true => out.wait_for("listed\n"),
            false => out.wait_for(&format!("synced {boot}-5\n")),
        }
        // At a different step of the script each time.
        std::thread::sleep(Duration::from_millis(u64::from(boot * 37 % 100)));
        machine.cut().unwrap();
        server.cut_power().unwrap();
        let whole = all_after(&out.text(), "whole ");
        let missing: Vec<&String> = promised.difference(&whole).collect();
        assert!(
            missing.is_empty(),
            "boot {boot} misses {missing:?}: {}",
            out.text()
        );
        if !last {
            promised.extend(all_after(&out.text(), "synced "));
        }
        loose = all_after(&out.text(), "there ")
            .iter()
            .filter(|name| name.ends_with(".loose"))
            .count();
    }
    let [files, raw] = [0, 1].map(|volume| server.volumes()[volume].truth());
    assert!(raw.lost_blocks > 0 && raw.unflushed_blocks == 0, "{raw:?}");
    println!(
        "{cuts} cuts: {} synced files were whole, {loose} others were there; {} and {} blocks were lost",
        promised.len(),
        files.lost_blocks,
        raw.lost_blocks
    );
}

#[test]
fn with_qemu_synced_files_survive_power_cuts_on_volatile_volumes() {
    synced_files_survive(2);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_synced_files_survive_ten_power_cuts_on_volatile_volumes() {
    synced_files_survive(10);
}

#[test]
fn with_qemu_an_interruption_reaches_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo caught; exit 42' INT; echo up; while :; do sleep 0.1; done";
    let Some(mut options) = options(folder.path(), script) else {
        return;
    };
    // As long as it takes on a host of any speed.
    options.grace = Duration::from_secs(600);
    let out = CapturedOutput::default();
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
    let out = CapturedOutput::default();
    let err = CapturedOutput::default();
    let ended = Machine::run(&options, out.clone(), err.clone(), &AtomicBool::new(false));
    assert_eq!(ended.unwrap().status, Some(3));
    let bytes = out.0.lock().unwrap();
    assert_eq!(bytes.len(), 3_000_002);
    assert_eq!(bytes[2_999_999..], *b"x\0\xff");
    assert_eq!(err.text(), "bad\n");
}

/// Reads nothing for a moment, and then 100 kB a second.
#[derive(Clone)]
struct Slow {
    heard: CapturedOutput,
    until: Instant,
}

impl Slow {
    fn new(span: Duration) -> Slow {
        Slow {
            heard: CapturedOutput::default(),
            until: Instant::now() + span,
        }
    }
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        std::thread::sleep(left + Duration::from_micros(10) * bytes.len() as u32);
        self.heard.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_slow_reader_gets_every_byte_and_the_status() {
    let folder = tempfile::tempdir().unwrap();
    // The first process leaves the command's group, and keeps its output open.
    let script = "setsid sleep 1000 & head -c 600000 /dev/zero; exit 7";
    let Some(mut options) = options(folder.path(), script) else {
        return;
    };
    let never = AtomicBool::new(false);
    let out = Slow::new(Duration::ZERO);
    let ended = Machine::run(&options, out.clone(), std::io::sink(), &never).unwrap();
    assert_eq!(ended.status, Some(7));
    assert_eq!(out.heard.0.lock().unwrap().len(), 600_000);

    // A command that ended in time counts as such, whenever its output is read.
    let script = "head -c 200000 /dev/zero; exit 7";
    options.command = ["sh", "-c", script].map(OsString::from).to_vec();
    let timeout = ended.booted_in.unwrap() * 3 + Duration::from_secs(5);
    options.timeout = Some(timeout);
    let out = Slow::new(timeout + Duration::from_secs(1));
    let ended = Machine::run(&options, out.clone(), std::io::sink(), &never);
    assert_eq!(ended.unwrap().status, Some(7));
    assert_eq!(out.heard.0.lock().unwrap().len(), 200_000);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_file_of_the_user_is_no_state_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut options) = options(folder.path(), "true") else {
        return;
    };
    let photos = folder.path().join("photos.tar");
    let content = vec![7; 3_000_000];
    std::fs::write(&photos, &content).unwrap();
    options.state = Some(photos.clone());
    let error = run(&options).0.unwrap_err();
    assert!(error.to_string().contains("was left as it is"), "{error}");
    assert_eq!(std::fs::read(&photos).unwrap(), content);
}

#[test]
fn with_qemu_a_state_is_for_one_machine_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo up; sleep 1000";
    let Some(mut options) = options(folder.path(), script) else {
        return;
    };
    options.state = Some(folder.path().join("state"));
    let machine = Machine::start(&options, CapturedOutput::default(), std::io::sink()).unwrap();
    let error = run(&options).0.unwrap_err();
    assert!(error.to_string().contains("in use by another"), "{error}");
    machine.cut().unwrap();
}

#[test]
fn with_qemu_a_command_that_ignores_its_interruption_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' INT; echo up; sleep 1000";
    let Some(mut options) = options(folder.path(), script) else {
        return;
    };
    options.grace = Duration::from_secs(1);
    let out = CapturedOutput::default();
    let machine = Machine::start(&options, out.clone(), std::io::sink()).unwrap();
    out.wait_for("up");
    let error = machine.wait(&AtomicBool::new(true)).unwrap_err();
    let words = "was not done 1 s after it was interrupted";
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_an_interruption_right_at_the_start_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let Some(options) = options(folder.path(), "sleep 1000") else {
        return;
    };
    let sink = std::io::sink;
    let mut machine = Machine::start(&options, sink(), sink()).unwrap();
    machine.wait_until_started(&AtomicBool::new(false)).unwrap();
    let ended = machine.wait(&AtomicBool::new(true)).unwrap();
    assert_eq!(ended.status, Some(130));
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_a_mount_point_with_blanks_is_left_clean() {
    let folder = tempfile::tempdir().unwrap();
    let script = "set -e
        mkfs.ext4 -q -F /dev/vda
        mkdir '/mnt/two words'
        mount /dev/vda '/mnt/two words'
        echo kept >'/mnt/two words/file'";
    let Some(mut options) = options(folder.path(), script) else {
        return;
    };
    let (status, _, err) = run(&options);
    assert_eq!(status.unwrap(), Some(0), "{err}");
    let script = "dumpe2fs -h /dev/vda 2>&1 | grep -e state: -e needs_recovery";
    options.command = ["sh", "-c", script].map(OsString::from).to_vec();
    let (status, out, _) = run(&options);
    assert_eq!(status.unwrap(), Some(0));
    let words: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(words, ["Filesystem", "state:", "clean"]);
}

#[test]
fn with_qemu_a_machine_that_ends_early_says_why() {
    let folder = tempfile::tempdir().unwrap();
    for (script, timeout, words) in [
        (
            "echo c >/proc/sysrq-trigger",
            600,
            "kernel gave up: sysrq triggered crash",
        ),
        ("poweroff -f", 600, "switched off before its command ended"),
        ("sleep 1000", 1, "was not done 1 s after"),
    ] {
        let Some(mut options) = options(folder.path(), script) else {
            return;
        };
        options.timeout = Some(Duration::from_secs(timeout));
        let (ended, _, _) = run(&options);
        let error = ended.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}
