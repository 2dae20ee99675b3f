//! The operation, process and file of what `trace record` records, on loop devices.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::loops::{self, FileSystem};
use super::support::{Place, number};
use super::{end, recording, row, shown, traced_disk};

#[test]
fn with_root_zeroes_without_data_are_recorded_as_discards() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let recorder = recording(&place, &disk, "t.dst", &[]);
    for options in [&["-z", "-o", "1MiB"][..], &["-o", "4MiB"]] {
        let words = [options, &["-l", "1MiB", disk.path()]].concat();
        loops::run("blkdiscard", &words);
    }
    end(recorder);
    let found = shown(&place, &place.path("t.dst"));
    assert_eq!(found["discard_bytes"], 2 << 20, "{found:#}");
    assert_eq!(found["writes"], 0, "{found:#}");
    assert_eq!(found["verdict"], "trusted", "{found:#}");
}

#[test]
fn with_root_files_behind_links_are_named_and_links_in_circles_end() {
    let place = Place::new();
    let Some(disk) = traced_disk(&place) else {
        return;
    };
    let Some(files) = FileSystem::on(disk, "ext4") else {
        return;
    };
    let [data, wal, segment] = ["data", "wal", "wal/segment"].map(|name| files.join(name));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&wal).unwrap();
    let mut file = File::create(&segment).unwrap();
    file.write_all(&vec![7; 4 << 20]).unwrap();
    file.sync_all().unwrap();
    symlink("../wal", Path::new(&data).join("pg_wal")).unwrap();
    symlink(".", Path::new(&data).join("itself")).unwrap();
    let recorder = recording(&place, &files.device, "t.dst", &["--dataset", &data]);
    let from = format!("if={segment}");
    loops::run("dd", &["of=/dev/null", "iflag=direct", "bs=64k", &from]);
    end(recorder);
    let found = shown(&place, &place.path("t.dst"));
    let named = row(&found["files"], "pg_wal/segment");
    assert_eq!(number(&named["bytes"]), 4 << 20, "{found:#}");
}
