//! The lab's machine, through the real program. It needs QEMU and Debian's packages; where they
//! cannot be had, each test says so and passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use rustix::process::Signal;
use support::lab::{in_lab, lab_run};
use support::{Place, ProgramOutput, Running, has_program, output_of, skipped};

#[test]
fn with_qemu_a_command_runs_on_the_volumes_and_its_runs_are_kept() {
    let place = Place::new();
    let script = "disksmith --version; cat /proc/partitions; mdadm --version; echo 'to stderr' >&2
        mkdir -p /tmp/data
        disksmith bench /dev/vda --phase seek --seconds 1s >&2 || exit 9
        exit 7";
    let arguments = ["--volumes", "2xiops=400:1GiB", "--ledger-out", "whole.db"];
    let Some(said) = in_lab(&place, &arguments, script) else {
        return;
    };
    let said = said.ends_with(7);
    let version = concat!("disksmith ", env!("CARGO_PKG_VERSION"));
    assert!(said.out.starts_with(version), "{said:#?}");
    for disk in ["vda", "vdb"] {
        let listed = said.out.lines().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            matches!(words[..], [_, _, "1048576", name] if name == disk)
        });
        assert!(listed, "no {disk} in {said:#?}");
    }
    said.warns(&["mdadm - v", "to stderr", "2 volumes", "Caps are not scaled"]);
    assert!(place.path("whole.db").is_file());
    assert_eq!(place.runs().len(), 1);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_programs_and_files_of_this_host_are_there_too() {
    let place = Place::new();
    std::fs::write(
        place.path("job.fio"),
        "[j]\nrw=read\nsize=4m\nbs=64k\ndirect=1\n",
    )
    .unwrap();
    support::write_script(&place.path("greet"), "#!/bin/sh\necho greetings\n");
    let copies = [
        "--copy",
        "/usr/bin/fio",
        "--copy",
        "job.fio",
        "--copy",
        "greet",
    ];
    let script =
        "set -e; greet; mkfs.xfs -q /dev/vda; mkdir /srv; mount /dev/vda /srv; xfs_info /srv
        xfs_spaceman -c 'freesp -s' /srv; umount /srv
        fio --filename=/dev/vda --output-format=terse job.fio";
    let arguments = [&["--volumes", "iops=4000:1GiB"][..], &copies].concat();
    let Some(said) = in_lab(&place, &arguments, script) else {
        return;
    };
    let said = said.ends_with(0);
    said.prints(&[
        "greetings",
        "meta-data=/dev/vda",
        "total free blocks",
        ";j;0;0;4096;",
    ]);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_troubles_begin_with_the_command_and_boot_warms_nothing() {
    let place = Place::new();
    let script =
        "again() { echo 3 >/proc/sys/vm/drop_caches; head -c 8192 /dev/vda | cmp -s - /tmp/a; }
        yes | head -c 8192 >/tmp/a
        dd if=/tmp/a of=/dev/vda bs=4k conv=fsync 2>/dev/null || exit 7
        again || exit 8
        while again; do sleep 1; done";
    let volume = "cold=1,corrupt=0+512,corrupt-after=30s,stall=0s+1s:1GiB";
    let arguments = ["--volumes", volume, "--truth", "truth.json"];
    let Some(said) = in_lab(&place, &arguments, script) else {
        return;
    };
    said.ends_with(0);
    let truth = truth(&place);
    assert_eq!(truth["cold_blocks_left"], 2047, "{truth:#}");
    assert_eq!(truth["stalls"], 1, "{truth:#}");
    assert_eq!(truth["corrupt_places"][0]["length"], 512, "{truth:#}");
}

#[test]
fn with_qemu_a_preparation_leaves_a_volume_cold_and_its_failure_is_reported() {
    let place = Place::new();
    let write = "echo $DISKSMITH_LAB_BOOT; yes | dd of=/dev/vda bs=1M count=64 iflag=fullblock \
        oflag=direct 2>/dev/null; echo 3 >/proc/sys/vm/drop_caches";
    let script = "head -c 2 /dev/vda; dd if=/dev/vda of=/dev/null bs=512k count=1 skip=4 \
        iflag=direct 2>/dev/null";
    let volume = ["--volumes", "cold,error=60MiB+4KiB:64MiB"];
    let outputs = ["--truth", "truth.json"];
    let run = |prepare: &str| {
        let prepared = ["--prepare", prepare];
        in_lab(&place, &[&volume[..], &outputs, &prepared].concat(), script)
    };
    let Some(said) = run(write) else {
        return;
    };
    assert_eq!(said.ends_with(0).out, "\ny\n");
    let truth = truth(&place);
    // Reading ahead, the kernel warms a block or two around the first page.
    let left = truth["cold_blocks_left"].as_u64().unwrap();
    assert!((124..=126).contains(&left), "{truth:#}");
    assert_eq!(truth["counters"]["errors"], 0, "{truth:#}");
    let failed = run("echo it fails; exit 4").unwrap().ends_with(3);
    assert_eq!(failed.out, "it fails\n");
    let words = "its preparation ended with status 4";
    failed.warns(&[words]);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_qemu_volumes_and_state_live_through_power_cuts() {
    let place = Place::new();
    // In the first boot it warms 32 MiB and writes 1 MiB that nothing flushes, and in the third it
    // ends before its cut.
    let script = "set -e
        noted=${DISKSMITH_LEDGER%/*}/noted
        echo boot $DISKSMITH_LAB_BOOT | tee -a $noted
        sync -f $noted
        dd if=/dev/vda of=/dev/null bs=512k skip=64 count=$((64 / DISKSMITH_LAB_BOOT)) 2>/dev/null
        [ $DISKSMITH_LAB_BOOT -gt 1 ] ||
            yes | dd of=/dev/vdb bs=1M count=1 iflag=fullblock oflag=direct 2>/dev/null
        [ $DISKSMITH_LAB_BOOT -lt 3 ] || { cat $noted; exit 7; }
        sleep 1000";
    let is_far = |said: &ProgramOutput| {
        let raw = truth_of(&place, 1);
        raw["counters"]["write"]["bytes"].as_u64() >= Some(1 << 20) && said.out.contains("boot 2")
    };
    let mut seconds = 12;
    // On a busy host it takes longer to come so far.
    let said = loop {
        let cuts = format!("{seconds}s,{}s..{}s,1000s", seconds - 4, seconds - 3);
        let arguments = [
            "--volumes",
            "cold=1,cold-latency=1ms,volatile=1:1GiB",
            "--volumes",
            "volatile=1:64MiB",
            "--cut-after",
            &cuts,
            "--truth",
            "truth.json",
        ];
        let Some(said) = in_lab(&place, &arguments, script) else {
            return;
        };
        if is_far(&said) || seconds > 200 {
            break said.ends_with(7);
        }
        std::fs::remove_file(place.path("truth.json")).unwrap();
        seconds *= 3;
    };
    let boots = ["boot 1\n", "boot 2\n", "boot 3\n"].concat();
    assert_eq!(said.out, boots.repeat(2), "{said:#?}");
    said.warns(&[
        &format!("Power cut 1 of 3, {seconds}.0 s after the command began: "),
        "blocks of 4 KiB that were not flushed are lost. The machine starts again.",
        &format!("Power cut 2 of 3, {}.", seconds - 4),
        "The command ended before power cut 3 of 3",
    ]);
    let [cold, raw] = [0, 1].map(|volume| truth_of(&place, volume));
    let left = cold["cold_blocks_left"].as_u64().unwrap();
    assert!((2048 - 64 - 20..=2048 - 64).contains(&left), "{cold:#}");
    let lost = raw["lost_blocks"].as_u64().unwrap();
    assert!((64..192).contains(&lost), "{raw:#}");
    assert!(
        raw["counters"]["write"]["bytes"].as_u64() >= Some(1 << 20),
        "{raw:#}"
    );
    // What the machine had of its own is gone with it.
    assert_eq!(support::names_in(&place.path(".")), ["data", "truth.json"]);
}

#[test]
fn with_qemu_the_truth_is_written_when_it_ends_badly() {
    let place = Place::new();
    let arguments = [
        "--volumes",
        "gp3:1GiB",
        "--truth",
        "truth.json",
        "--timeout",
        "1s",
    ];
    let Some(said) = lab_run(&place, &[&arguments[..], &["--", "sleep", "1000"]].concat()) else {
        return;
    };
    let said = said.ends_with(3);
    said.warns(&["was not done 1 s after"]);
    assert_eq!(truth(&place)["serial"], "lab1");
}

/// The first volume's record in the truth file.
fn truth(place: &Place) -> serde_json::Value {
    truth_of(place, 0)
}

/// A volume's record in the truth file.
fn truth_of(place: &Place, volume: usize) -> serde_json::Value {
    let text = std::fs::read_to_string(place.path("truth.json")).unwrap();
    support::documents::all(&text)[0]["volumes"][volume].take()
}

#[test]
fn files_that_cannot_be_written_are_refused_first_and_no_ledger_is_replaced() {
    let place = Place::new();
    std::fs::write(place.path("mine.db"), "mine").unwrap();
    std::fs::write(place.path("lost.db-wal"), "log").unwrap();
    for (option, path, words) in [
        ("--ledger-out", "mine.db", "mine.db exists; name a new file"),
        ("--ledger-out", "lost.db", "lost.db-wal exists"),
        ("--ledger-out", "none/a.db", "none/a.db cannot be written"),
        ("--truth", "none/a.json", "none/a.json cannot be written"),
        ("--truth", "data", "data cannot be written"),
    ] {
        let arguments = format!("lab run --volumes gp3:1GiB {option} {path} -- true");
        let said = place.run(&arguments).refuses(&[words]);
        assert!(said.err.matches("os error").count() <= 1, "{said:#?}");
    }
    let serve = ["lab", "serve", "--volumes", "gp3:1GiB", "--socket-dir", "."];
    place
        .run(&[&serve[..], &["--truth", "none/a.json"]].concat())
        .refuses(&["none/a.json cannot be written"]);
    // One of two ways in has to be named, and each suffices.
    place
        .run("lab serve --volumes gp3:1GiB")
        .refuses(&["--socket-dir <DIR>", "--listen <ADDRESS:PORT>"]);
    // Refused for another reason, it leaves nothing at the places that it tried.
    place
        .run(
            &[
                &serve[..],
                &["--truth", "truth.json", "--instance-iops", "0"],
            ]
            .concat(),
        )
        .refuses(&[
            "the instance's cap is 0 operations a second",
            "at least 0.001",
        ]);
    let left = support::names_in(&place.path("."));
    assert_eq!(left, ["data", "lost.db-wal", "mine.db"]);
    let mine = std::fs::read_to_string(place.path("mine.db"));
    assert_eq!(mine.unwrap(), "mine");
}

#[test]
fn what_no_machine_can_be_made_of_is_refused() {
    let place = Place::new();
    let run = |arguments: &[&str]| lab_run(&place, &[arguments, &["--", "true"]].concat());
    for (arguments, words) in [
        (&["--volumes", "gp3"][..], "no size"),
        (&["--volumes", "gp3:1GiB", "--scale", "0"], "scale"),
        (
            &["--volumes", "gp3:1GiB", "--scale", "1e-9"],
            "the cap of volume 1",
        ),
        (
            &["--volumes", "serial=lab-state:1GiB"],
            "that of the machine's own disk",
        ),
        (&["--volumes", "gp3:1GiB", "--memory", "64M"], "too little"),
        (
            &["--volumes", "gp3:1GiB", "--binary", "none"],
            "none could not be read",
        ),
    ] {
        let Some(said) = run(arguments) else { return };
        said.refuses(&[words]);
    }
}

#[test]
fn volumes_are_served_until_a_signal_and_tell_what_they_did() {
    if !has_program("qemu-io") {
        return;
    }
    let place = Place::new();
    let folder = place.path("sockets");
    std::fs::create_dir(&folder).unwrap();
    let mut command = place.command(&format!(
        "lab serve --volumes cold,serial=snap:64MiB --instance-throughput 100MiB --socket-dir {} \
         --truth truth.json",
        folder.display()
    ));
    let mut server = Running::start(&mut command);
    server.wait_for_handler(Signal::INT);
    let socket = wait_for_socket(&folder);
    let url = format!("nbd+unix:///?socket={}", socket.display());
    let read = std::process::Command::new("qemu-io")
        .args(["-f", "raw", "-c", "read 0 1M", &url])
        .output()
        .unwrap();
    assert!(read.status.success(), "{read:?}");
    server.signal(Signal::INT);
    let said = server.end().ends_with(0);
    said.prints(&["snap"]);
    let text = std::fs::read_to_string(place.path("truth.json")).unwrap();
    let truth = &support::documents::all(&text)[0];
    assert_eq!(truth["volumes"][0]["serial"], "snap");
    assert_eq!(truth["volumes"][0]["cold_blocks_left"], 126);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn figures_that_no_cloud_sells_are_noted_once() {
    let place = Place::new();
    let folder = place.path("sockets");
    std::fs::create_dir(&folder).unwrap();
    let volumes = ["2xgp3,iops=400:1GiB", "st1:64MiB", "gp3:1GiB"];
    let volumes = volumes.iter().flat_map(|group| ["--volumes", group]);
    let words = ["lab", "serve", "--socket-dir", folder.to_str().unwrap()];
    let words: Vec<&str> = words.into_iter().chain(volumes).collect();
    let mut server = Running::start(&mut place.command(&words));
    server.wait_for_text("st1 has");
    server.wait_for_handler(Signal::INT);
    server.signal(Signal::INT);
    let said = server.end().ends_with(0);
    for note in [
        "note: a volume of type gp3 has at least 3000 IOPS, not 400;",
        "note: a volume of type st1 has 125 GiB to 16 TiB, not 64 MiB;",
    ] {
        assert_eq!(said.err.matches(note).count(), 1, "{said:#?}");
    }
    assert_eq!(said.err.matches("note: ").count(), 2, "{said:#?}");
}

/// The socket of the only volume, once the server has made it.
fn wait_for_socket(folder: &std::path::Path) -> std::path::PathBuf {
    let began = std::time::Instant::now();
    while began.elapsed() < support::TIMEOUT {
        let inner = std::fs::read_dir(folder).unwrap().flatten().next();
        let sockets = inner.and_then(|inner| std::fs::read_dir(inner.path()).ok());
        let socket = sockets.into_iter().flatten().flatten().find(|entry| {
            use std::os::unix::fs::FileTypeExt as _;
            entry.file_type().is_ok_and(|kind| kind.is_socket())
        });
        if let Some(socket) = socket {
            return socket.path();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("no socket in {}", folder.display());
}

/// The parts of the tour, and its commands, in their order.
fn steps(text: &str) -> Vec<&str> {
    let is_step = |line: &&str| line.starts_with("== ") || line.starts_with("$ disksmith ");
    text.lines().filter(is_step).collect()
}

/// The scrub of the tour says that over its whole run the service's p99 is within its target, and that the target is
/// exceeded for less than half of the time.
fn keeps_its_target(tour: &str) {
    let words: Vec<&str> = tour.split_whitespace().collect();
    let text = words.join(" ");
    let report = after(&text, "There was foreground I/O for ");
    let beside = seconds(after(after(report, "Beside this: "), "p99 "));
    let target = seconds(after(after(report, "The target was "), "a p99 of "));
    assert!(beside <= target, "{report}");
    let above = seconds(after(report, "exceeded for "));
    assert!(above < seconds(report) / 2.0, "{report}");
}

fn after<'a>(text: &'a str, marker: &str) -> &'a str {
    let found = text.split_once(marker);
    found.unwrap_or_else(|| panic!("no '{marker}' in {text}")).1
}

/// The time that a text begins with, in seconds. Its unit may end a sentence.
fn seconds(text: &str) -> f64 {
    let mut words = text.split([' ', ',']);
    let number: f64 = words.next().unwrap().parse().unwrap();
    let unit = match words.next().unwrap().trim_end_matches('.') {
        "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        unit => panic!("{unit}: {text}"),
    };
    number * unit
}

#[test]
fn where_there_is_no_qemu_the_tour_names_its_package_and_is_played() {
    let place = Place::new();
    let played = place.run("lab tour --recorded").ends_with(0);
    keeps_its_target(&played.out);
    assert_eq!(played.err, "");
    assert!(!played.out.contains('\u{1b}'), "{played:#?}");
    let folder = place.path("empty");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("apt-get"), "").unwrap();
    let mut command = place.command("lab tour");
    let instead = output_of(command.env("PATH", &folder)).ends_with(0);
    assert_eq!(instead.out, played.out);
    instead.warns(&["apt-get install qemu-system-", "a recording"]);
    for speed in ["0", "-1", "fast"] {
        place
            .run(&["lab", "tour", "--recorded", &format!("--speed={speed}")])
            .refuses(&["such as 2"]);
    }
    let mut command = place.command("lab tour --recorded");
    let ascii = output_of(command.env("LC_ALL", "C")).ends_with(0);
    assert!(ascii.out.is_ascii());
}

#[test]
#[ignore = "minutes of one machine, with figures that a busy host hides: make prove"]
fn with_qemu_the_tour_finds_what_is_true_and_goes_as_it_was_recorded() {
    let place = Place::new();
    let live = place.run("lab tour");
    if live.err.contains("a recording") {
        skipped(&live.err);
        return;
    }
    let live = live.ends_with(0);
    let recorded = place.run("lab tour --recorded").ends_with(0);
    assert_eq!(steps(&live.out), steps(&recorded.out));
    live.prints(&["0 cold blocks are left"]);
    keeps_its_target(&live.out);
    assert!(!place.ledger().exists(), "nothing is kept");
}
