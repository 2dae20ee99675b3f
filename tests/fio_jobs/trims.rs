//! Jobs that trim, on loop devices, which punch holes into their file for it.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::process::Command;

use serde_json::Value;

use crate::loops::{Loop, skipped, try_run};
use crate::{Place, run};

const MIB: usize = 1 << 20;

/// Eight of sixteen mebibytes, each block once.
const JOB: &str = "[t]\nrw=randtrim\nbs=64k\nsize=8m\n";

/// The same blocks, each trimmed and then written.
const TRIM_AND_WRITE: &str =
    "[t]\nrw=randtrimwrite\nbs=64k\nsize=8m\nioengine=libaio\niodepth=4\ndirect=1\n";

/// A device full of data, and its file, which shows what was given back.
fn full(place: &Place, name: &str) -> Option<(Loop, File)> {
    let path = place.path(name);
    let file = File::create_new(&path).unwrap();
    file.set_len(16 * MIB as u64).unwrap();
    drop(file);
    let device = Loop::on(&path).map_err(|why| skipped(&why)).ok()?;
    let node = OpenOptions::new().write(true).open(device.path()).unwrap();
    node.write_all_at(&vec![7; 16 * MIB], 0).unwrap();
    node.sync_all().unwrap();
    Some((device, File::open(path).unwrap()))
}

fn kept(file: &File) -> u64 {
    (file.metadata().unwrap().blocks() * 512) >> 20
}

/// The answer of the real fio to a job on a device; `None` where it is not installed.
fn by_fio(place: &Place, device: &Loop, job: &str) -> Option<Value> {
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return None;
    }
    let file = place.path("job.fio");
    fs::write(&file, job).unwrap();
    let named = format!("--filename={}", device.path());
    let words = ["--output-format=json", &named, file.to_str().unwrap()];
    let said = try_run("fio", &words).unwrap();
    Some(serde_json::from_str(&said).unwrap())
}

#[test]
fn trims_are_refused_without_a_device_and_without_consent() {
    let place = Place::new();
    let said = run(&place, "data", JOB, &[]).ends_with(2);
    assert!(said.err.contains("only block devices take"), "{said:#?}");
    fs::write(place.path("table.ibd"), vec![7; 8 * MIB]).unwrap();
    let consent = ["--destroy", "table.ibd=unknown"];
    let said = run(&place, "table.ibd", JOB, &consent).ends_with(2);
    assert!(said.err.contains("only block devices take"), "{said:#?}");
    assert!(fs::read(place.path("table.ibd")).unwrap() == vec![7; 8 * MIB]);
    let Some((device, file)) = full(&place, "disk.img") else {
        return;
    };
    for job in [JOB, TRIM_AND_WRITE] {
        let said = run(&place, device.path(), job, &[]).ends_with(2);
        assert!(said.err.contains("only read unless --destroy"), "{said:#?}");
    }
    let consent = format!("{}=unknown", device.path());
    let consent = ["--destroy", consent.as_str()];
    for (job, expected) in [
        (
            "[w]\nrw=write\nsize=1m\n[t]\nstonewall\nrw=trim\nbs=1000\nsize=1m\n",
            "multiples of",
        ),
        (
            "[global]\ngroup_reporting\nsize=1m\n[w]\nrw=write\n[t]\nrw=trim\n",
            "and do not trim alike",
        ),
        (
            "[global]\ngroup_reporting\nsize=1m\n[w]\nrw=trimwrite\n[t]\nrw=trim\n",
            "and do not trim alike",
        ),
    ] {
        let said = run(&place, device.path(), job, &consent).ends_with(2);
        assert!(said.err.contains(expected), "{said:#?}");
    }
    assert_eq!(kept(&file), 16);
}

#[test]
fn with_root_what_is_trimmed_is_given_back_and_counted_apart_as_by_fio() {
    let place = Place::new();
    let Some((device, file)) = full(&place, "disk.img") else {
        return;
    };
    let consent = format!("{}=unknown", device.path());
    let arguments = ["--destroy", consent.as_str(), "--json"];
    let job = "[t]\nrw=randtrim\nbs=64k\nsize=8m\nioengine=libaio\niodepth=8\nfsync=1\ndirect=1\n";
    let answer = run(&place, device.path(), job, &arguments)
        .ends_with(0)
        .json();
    let phase = &answer["phases"][0];
    assert_eq!(phase["trim"]["ops"], 128, "{phase:#}");
    assert_eq!(phase["trim"]["bytes"], 8 * MIB);
    assert!(
        phase["write"].is_null() && phase["read"].is_null(),
        "{phase:#}"
    );
    assert!(phase["sync"].is_null(), "{phase:#}");
    assert_eq!(kept(&file), 8);
    // Of the device, not of what the kernel counts as written.
    let findings = answer["findings"].as_array().unwrap();
    let wrong = findings
        .iter()
        .find(|finding| finding["phase"] == "t" && finding["code"] == "cached");
    assert_eq!(wrong, None, "{answer:#}");
    let notes = answer["notes"].to_string();
    assert!(
        notes.contains("trims are issued one after another"),
        "{notes}"
    );

    let shown = place.run(&["show", "last"]).ends_with(0);
    assert!(shown.prose().contains("trim"), "{shown:#?}");
    let shown = place
        .run(&["show", "last", "--format", "fio-json"])
        .ends_with(0);
    let ours: Value = serde_json::from_str(&shown.out).unwrap();
    let Some((device, file)) = full(&place, "other.img") else {
        return;
    };
    let Some(theirs) = by_fio(
        &place,
        &device,
        &JOB.replace("[t]\n", "[t]\nrandrepeat=0\n"),
    ) else {
        return;
    };
    for side in [&ours, &theirs] {
        let (trim, write) = (&side["jobs"][0]["trim"], &side["jobs"][0]["write"]);
        assert_eq!(trim["total_ios"], 128, "{side:#}");
        assert_eq!(trim["io_bytes"], 8 * MIB, "{side:#}");
        assert_eq!(write["total_ios"], 0);
    }
    assert_eq!(kept(&file), 8);
}

#[test]
fn with_root_trims_have_the_third_of_three_sizes_as_by_fio() {
    let place = Place::new();
    let Some((device, _)) = full(&place, "disk.img") else {
        return;
    };
    let consent = format!("{}=unknown", device.path());
    let arguments = ["--destroy", consent.as_str(), "--json"];
    for (sizes, trims) in [
        ("bs=4k,8k,16k", 64),
        ("bs=4k,8k", 128),
        ("bs=8k\nbs=,,16k", 64),
        ("bssplit=4k/100,8k/100,32k/100", 32),
        // By the order of requests trims have the first, or at random the second.
        ("bs=4k,8k,16k\nbs_is_seq_rand=1", 256),
        (
            "rw=randtrim\nnorandommap\nbs=4k,8k,16k\nbs_is_seq_rand=1",
            128,
        ),
    ] {
        let job = format!("[t]\nrw=trim\nsize=1m\n{sizes}\n");
        let ours = run(&place, device.path(), &job, &arguments)
            .ends_with(0)
            .json();
        assert_eq!(ours["phases"][0]["trim"]["ops"], trims, "{sizes}");
        let Some(theirs) = by_fio(&place, &device, &job) else {
            return;
        };
        assert_eq!(theirs["jobs"][0]["trim"]["total_ios"], trims, "{sizes}");
    }
}

#[test]
fn with_root_each_block_is_trimmed_and_then_written_and_both_are_counted() {
    let place = Place::new();
    let Some((device, file)) = full(&place, "disk.img") else {
        return;
    };
    let consent = format!("{}=unknown", device.path());
    let arguments = ["--destroy", consent.as_str(), "--json"];
    let answer = run(&place, device.path(), TRIM_AND_WRITE, &arguments)
        .ends_with(0)
        .json();
    let phase = &answer["phases"][0];
    for way in ["trim", "write"] {
        assert_eq!(phase[way]["ops"], 128, "{phase:#}");
        assert_eq!(phase[way]["bytes"], 8 * MIB);
        assert!(
            phase[way]["latency_ns"]["p99"].as_f64() > Some(0.0),
            "{phase:#}"
        );
    }
    assert!(phase["read"].is_null(), "{phase:#}");
    // Had a write gone before its trim, zeros would be there.
    let content = fs::read(place.path("disk.img")).unwrap();
    let (written, rest) = content.split_at(8 * MIB);
    for block in written.chunks(4096) {
        assert!(block.iter().any(|byte| *byte != 0 && *byte != 7));
    }
    assert!(rest.iter().all(|byte| *byte == 7));
    assert_eq!(kept(&file), 16);
    let notes = answer["notes"].to_string();
    assert!(
        notes.contains("iodepth=4 keeps so many blocks in work"),
        "{notes}"
    );

    let shown = place
        .run(&["show", "last", "--format", "fio-json"])
        .ends_with(0);
    let ours: Value = serde_json::from_str(&shown.out).unwrap();
    let theirs = by_fio(&place, &device, TRIM_AND_WRITE);
    for side in [Some(&ours), theirs.as_ref()].into_iter().flatten() {
        for way in ["trim", "write"] {
            let flow = &side["jobs"][0][way];
            assert_eq!(flow["total_ios"], 128, "{side:#}");
            assert_eq!(flow["io_bytes"], 8 * MIB, "{side:#}");
        }
    }
    // What was written behind the trims is verified as any other.
    let job = format!("{TRIM_AND_WRITE}verify=crc32c\n");
    let answer = run(&place, device.path(), &job, &arguments)
        .ends_with(0)
        .json();
    let verified = &answer["phases"][0]["outcome"]["verified"];
    assert_eq!(
        (&verified["requests"], &verified["failed"]),
        (&Value::from(128), &Value::from(0))
    );
}
