//! Jobs that go on with I/O errors: a loop device whose file was cut off answers reads behind its end with EIO.

use std::fs::File;
use std::process::Command;

use serde_json::Value;

use crate::loops::{Loop, skipped};
use crate::run;
use crate::support::Place;

const MIB: u64 = 1 << 20;

const JOB: &str = "[r]\nrw=read\nbs=64k\ndirect=1\nioengine=libaio\niodepth=4\n";

/// A device of 16 MiB, of which the second half cannot be read.
fn half(place: &Place) -> Option<Loop> {
    let path = place.path("disk.img");
    let file = File::create_new(&path).unwrap();
    file.set_len(16 * MIB).unwrap();
    let device = Loop::on(&path).map_err(|why| skipped(&why)).ok()?;
    file.set_len(8 * MIB).unwrap();
    Some(device)
}

#[test]
fn with_root_a_job_goes_on_with_the_errors_that_it_names_and_counts_them_as_fio_does() {
    let place = Place::new();
    let Some(device) = half(&place) else { return };
    // By itself the first error ends it.
    let said = run(&place, device.path(), JOB, &[]).ends_with(3);
    assert!(
        said.err.contains(" failed: Input/output error"),
        "{said:#?}"
    );
    let other = format!("{JOB}continue_on_error=write\n");
    run(&place, device.path(), &other, &[]).ends_with(3);
    for (lines, engine) in [
        ("continue_on_error=read", "libaio"),
        ("continue_on_error=all", "psync"),
        ("ignore_error=EIO", "libaio"),
    ] {
        let job = format!("{JOB}{lines}\nioengine={engine}\n");
        let said = run(&place, device.path(), &job, &["--json"]).ends_with(1);
        let answer = said.json();
        let phase = &answer["phases"][0];
        assert_eq!(phase["read"]["ops"], 128, "{phase:#}");
        assert_eq!(phase["read"]["bytes"], 8 * MIB);
        let failed = &phase["outcome"]["failed"];
        assert_eq!(
            (&failed["reads"], &failed["writes"]),
            (&Value::from(128), &Value::from(0))
        );
        // Of several in flight any may come back first.
        let first = failed["first"].as_str().unwrap();
        let place = if engine == "psync" { "8388608 " } else { "" };
        assert!(
            first.starts_with(&format!("a read at byte {place}"))
                && first.contains(" failed: Input/output error"),
            "{first}"
        );
        let findings = answer["findings"].as_array().unwrap();
        let finding = findings
            .iter()
            .find(|finding| finding["code"] == "io-errors")
            .unwrap();
        assert_eq!(
            (&finding["severity"], &finding["phase"]),
            (&Value::from("warn"), &Value::from("r"))
        );
        assert!(
            finding["text"]
                .as_str()
                .unwrap()
                .starts_with("128 reads failed"),
            "{finding:#}"
        );
        assert!(
            !findings.iter().any(|finding| finding["code"] == "stall"),
            "{findings:#?}"
        );
    }
    if Command::new("fio").arg("--version").output().is_err() {
        skipped("fio is not installed");
        return;
    }
    let fio = Command::new("fio")
        .arg("--output-format=json")
        .arg(format!("--filename={}", device.path()))
        .args([
            "--continue_on_error=read",
            place.path("job.fio").to_str().unwrap(),
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&fio.stdout);
    let theirs: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let theirs = &theirs["jobs"][0];
    assert_eq!(theirs["read"]["io_bytes"], 8 * MIB, "{theirs:#}");
    assert_eq!(theirs["total_err"], 128, "{theirs:#}");
}
