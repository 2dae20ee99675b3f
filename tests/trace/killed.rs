//! `trace record` ended by `kill -9`.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::support::{Place, Running, has_program, number, output_of};
use super::{length, load, record, recording, shown, traced_disk};

#[test]
fn with_root_a_killed_recording_is_readable_and_its_instance_goes_with_the_next_start() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place).filter(|_| has_program("fio")) else {
        return;
    };
    let file = place.path("t.dst");
    let mut recorder = recording(&place, &disk, "t.dst", &[]);
    let own = format!("disksmith-{}-", recorder.id());
    let head = length(&file);
    let load = load(&disk);
    recorder.wait_until("writes no block", || length(&file) > head);
    assert!(instances().iter().any(|name| name.starts_with(&own)));
    recorder.signal(Signal::KILL);
    assert_eq!(recorder.end().status, None);

    let found = shown(&place, &file);
    assert!(number(&found["ios"]) > 0);
    assert!(number(&found["writes"]) <= load.writes);
    assert_eq!(found["lost_events"], 0);
    assert_eq!(found["cut_off"], true);
    assert_eq!(found["verdict"], "doubtful");
    // A block that was being written when the machine stopped is passed over.
    let whole = fs::read(&file).unwrap();
    fs::write(place.path("cut.dst"), &whole[..whole.len() - 1]).unwrap();
    let cut = shown(&place, &place.path("cut.dst"));
    assert!(number(&cut["ios"]) < number(&found["ios"]));
    assert_eq!(cut["cut_off"], true);

    record(&place, &disk, "again.dst", &["--for", "100ms"]).ends_with(0);
    assert!(!instances().iter().any(|name| name.starts_with(&own)));
}

/// Instances of tracefs, by a mount that only this looks through.
fn instances() -> Vec<String> {
    let script = "mount -t tracefs none /mnt && ls /mnt/instances";
    let mut command = Command::new("unshare");
    let listed = output_of(command.args(["-m", "sh", "-c", script])).ends_with(0);
    listed.out.lines().map(str::to_owned).collect()
}

/// Kills recordings of a disk under load, in turn on the way to the file's head and where the file has grown by some
/// bytes. What each leaves is readable, and the next start removes its instance.
fn kill_recordings(kills: u64) {
    let place = Place::new();
    let Some(disk) = traced_disk(&place).filter(|_| has_program("fio")) else {
        return;
    };
    let mut fio = Command::new("fio");
    fio.args(["--name=load", "--direct=1", "--rw=randwrite", "--bs=4k"])
        .args([
            "--ioengine=psync",
            "--thread",
            "--time_based",
            "--runtime=3600",
        ])
        .arg(format!("--filename={}", disk.path()))
        .stdout(Stdio::null());
    let load = Running::start(&mut fio);
    let (mut killed, mut with_blocks) = (Vec::new(), 0);
    for kill in 0..kills {
        // Steps that visit the whole range, the same in each run.
        let point = kill * 617 % 1009;
        let name = format!("{kill}.dst");
        let file = place.path(&name);
        let recorder = if kill % 2 == 0 {
            let mut recorder = recording(&place, &disk, &name, &[]);
            assert_none_is_left(&killed);
            let wanted = length(&file) + 1 + point * 64;
            recorder.wait_until("writes no block", || length(&file) >= wanted);
            recorder
        } else {
            // With a size of the buffers that needs no measured rate, the instance comes at once.
            let words = ["trace", "record", disk.path(), "-o", &name];
            let words = [&words[..], &["--buffer", "8MiB"]].concat();
            let recorder = Running::start(&mut place.command(&words));
            std::thread::sleep(Duration::from_micros(point * 30));
            recorder
        };
        killed.push(format!("disksmith-{}-", recorder.id()));
        recorder.signal(Signal::KILL);
        assert_eq!(recorder.end().status, None);
        if length(&file) > 0 {
            let found = shown(&place, &file);
            assert_eq!(found["cut_off"], true, "{kill}");
            with_blocks += u64::from(number(&found["ios"]) > 0);
        }
    }
    assert!(with_blocks >= kills / 2, "{with_blocks}");
    drop(load);
    record(&place, &disk, "last.dst", &["--for", "100ms"]).ends_with(0);
    assert_none_is_left(&killed);
    eprintln!("{kills} kills, {with_blocks} of them with blocks in the file");
}

fn assert_none_is_left(killed: &[String]) {
    let there = instances();
    let left = killed
        .iter()
        .find(|own| there.iter().any(|name| name.starts_with(*own)));
    assert_eq!(left, None);
}

#[test]
fn with_root_recordings_killed_at_any_point_leave_readable_files_and_no_instance() {
    kill_recordings(3);
}

#[test]
#[ignore = "long proof: make prove"]
fn with_root_sixty_recordings_killed_at_any_point_leave_readable_files_and_no_instance() {
    kill_recordings(60);
}
