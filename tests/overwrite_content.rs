//! A table of what storage may carry, on real loop devices: what is on it, what `--destroy` names, which verb.
//! Each state is printed with what was expected and what came. They need root.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the table is printed")]

#[path = "overwrite_content/group.rs"]
mod group;
#[path = "support/loops.rs"]
mod loops;
mod support;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use group::Inside;
use loops::{Loop, digest, run};
use support::{Place, ProgramOutput};

const MIB: u64 = 1 << 20;

/// Method by which content gets onto a device.
enum Maker {
    /// By a program, with the device's path behind its arguments.
    By(&'static str),
    /// By the test, in the file below.
    Written(fn(&File)),
    /// By sfdisk, then with what a program makes in a file that is copied to 1 MiB.
    Partitioned(&'static str, Option<&'static str>),
    /// By LVM, with these volumes.
    Grouped(&'static [group::Volume]),
}

/// Something that a device carries.
struct Case {
    name: &'static str,
    mib: u64,
    made: Maker,
    /// All that must be named.
    kinds: &'static [&'static str],
}

type Kinds = &'static [&'static str];

const fn case(name: &'static str, mib: u64, made: Maker, kinds: Kinds) -> Case {
    Case {
        name,
        mib,
        made,
        kinds,
    }
}

const fn by(name: &'static str, mib: u64, line: &'static str, kinds: Kinds) -> Case {
    case(name, mib, Maker::By(line), kinds)
}

const fn written(name: &'static str, mib: u64, write: fn(&File), kinds: Kinds) -> Case {
    case(name, mib, Maker::Written(write), kinds)
}

/// Bytes that no format explains, the same at every run.
fn noise(file: &File, at: u64, bytes: usize) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let data: Vec<u8> = (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8 | 1
        })
        .collect();
    file.write_all_at(&data, at).unwrap();
}

/// Formats as their own programs make them.
const FORMATS: &[Case] = &[
    by("ext2", 32, "mkfs.ext2 -q -F", &["ext2"]),
    by("ext3", 32, "mkfs.ext3 -q -F", &["ext3"]),
    by("ext4", 32, "mkfs.ext4 -q -F", &["ext4"]),
    by(
        "a journal of ext4",
        32,
        "mke2fs -q -F -O journal_dev",
        &["jbd"],
    ),
    by("XFS", 320, "mkfs.xfs -q -f", &["xfs"]),
    by("Btrfs", 128, "mkfs.btrfs -q -f", &["btrfs"]),
    by("F2FS", 64, "mkfs.f2fs -q -f", &["f2fs"]),
    by("NILFS2", 160, "mkfs.nilfs2 -q -f", &["nilfs2"]),
    by("ReiserFS", 64, "mkfs.reiserfs -q -ff", &["reiserfs"]),
    by("JFS", 32, "mkfs.jfs -q", &["jfs"]),
    by("FAT", 32, "mkfs.vfat", &["vfat"]),
    by("exFAT", 32, "mkfs.exfat", &["exfat"]),
    by("NTFS", 32, "mkfs.ntfs -q -F -f", &["ntfs"]),
    by("swap", 32, "mkswap -q", &["swap"]),
    by(
        "LUKS 1",
        32,
        "cryptsetup -q luksFormat --type luks1 --key-file /etc/hostname --pbkdf-force-iterations 1000",
        &["crypto_LUKS"],
    ),
    by(
        "LUKS 2",
        32,
        "cryptsetup -q luksFormat --type luks2 --key-file /etc/hostname --pbkdf pbkdf2 --pbkdf-force-iterations 1000",
        &["crypto_LUKS"],
    ),
    by("bcache", 32, "make-bcache -B", &["bcache"]),
];

const fn table(
    name: &'static str,
    label: &'static str,
    inside: Option<&'static str>,
    kinds: Kinds,
) -> Case {
    case(name, 64, Maker::Partitioned(label, inside), kinds)
}

/// Tables of partitions, and what is in the first.
const TABLES: &[Case] = &[
    table(
        "an MBR with nothing in its partition",
        "dos",
        None,
        &["dos"],
    ),
    table("a GPT with nothing in its partition", "gpt", None, &["gpt"]),
    table(
        "an MBR with ext4 in partition 1",
        "dos",
        Some("mkfs.ext4 -q -F"),
        &["dos", "ext4"],
    ),
    table(
        "a GPT with ext4 in partition 1",
        "gpt",
        Some("mkfs.ext4 -q -F"),
        &["gpt", "ext4"],
    ),
    table(
        "a GPT with FAT in partition 1",
        "gpt",
        Some("mkfs.vfat"),
        &["gpt", "vfat"],
    ),
];

const fn grouped(name: &'static str, volumes: &'static [group::Volume], kinds: Kinds) -> Case {
    case(name, 64, Maker::Grouped(volumes), kinds)
}

/// Groups of LVM that are not active.
const GROUPS: &[Case] = &[
    grouped("a group without volumes", &[], &["LVM2_member"]),
    grouped(
        "a group with a blank volume",
        &[("data", &[2], Inside::Nothing)],
        &["LVM2_member"],
    ),
    grouped(
        "a group with ext4",
        &[("data", &[2], Inside::Ext4)],
        &["LVM2_member", "ext4"],
    ),
    grouped(
        "a group with ext4 and data",
        &[("data", &[2], Inside::Ext4), ("log", &[7], Inside::Noise)],
        &["LVM2_member", "ext4", "unknown"],
    ),
    grouped(
        "a group with a striped volume",
        &[("data", &[2, 5], Inside::Noise)],
        &["LVM2_member", "unknown"],
    ),
    grouped(
        "a group without its metadata",
        &[("data", &[2], Inside::Ext4)],
        &["LVM2_member", "unknown"],
    ),
];

/// Data of which no format tells.
const DATA: &[Case] = &[
    written(
        "random data",
        32,
        |file| noise(file, 0, 4 << 20),
        &["unknown"],
    ),
    written(
        "one byte at its end",
        64,
        |file| noise(file, 64 * MIB - 1, 1),
        &["unknown"],
    ),
    written(
        "data from 10 MiB on",
        64,
        |file| noise(file, 10 * MIB, 4096),
        &["unknown"],
    ),
    written(
        "data in the middle half",
        96,
        |file| noise(file, 24 * MIB, 48 << 20),
        &["unknown"],
    ),
    written(
        "a database of SQLite",
        32,
        |file| file.write_all_at(b"SQLite format 3\0", 0).unwrap(),
        &["unknown"],
    ),
    written(
        "an image of qcow2",
        32,
        |file| file.write_all_at(b"QFI\xfb\0\0\0\x03", 0).unwrap(),
        &["unknown"],
    ),
    written(
        "a tablespace of InnoDB",
        32,
        |file| {
            for page in 0..64_u32 {
                // FIL_PAGE_OFFSET, and the page's type (storage/innobase/include/fil0fil.h).
                file.write_all_at(&page.to_be_bytes(), u64::from(page) * 16384 + 4)
                    .unwrap();
                file.write_all_at(&[0x45, 0xBF], u64::from(page) * 16384 + 24)
                    .unwrap();
            }
        },
        &["unknown"],
    ),
    written(
        "an archive of tar",
        32,
        |file| file.write_all_at(b"ustar\x0000", 257).unwrap(),
        &["unknown"],
    ),
];

/// File systems of which the first 4 KiB are gone.
const DAMAGED: &[Case] = &[
    by(
        "ext4 without its beginning",
        32,
        "mkfs.ext4 -q -F",
        &["unknown"],
    ),
    by(
        "XFS without its beginning",
        320,
        "mkfs.xfs -q -f",
        &["unknown"],
    ),
];

impl Case {
    /// Makes it on a new device.
    fn make(&self, place: &Place) -> Option<(Loop, std::path::PathBuf)> {
        let path = place.path("disk.img");
        let file = File::create_new(&path).unwrap();
        file.set_len(self.mib * MIB).unwrap();
        match &self.made {
            Maker::By(line) => make_in(line, &path),
            Maker::Written(write) => write(&file),
            Maker::Grouped(volumes) => group::make(place, &path, volumes)
                .map_err(|why| support::skipped(&why))
                .ok()?,
            Maker::Partitioned(label, inside) => {
                sfdisk(&path, &format!("label: {label}\n2048,40M\n"));
                if let Some(line) = inside {
                    let part = place.path("part.img");
                    File::create(&part).unwrap().set_len(40 * MIB).unwrap();
                    make_in(line, &part);
                    let (of, from) = (
                        format!("of={}", path.display()),
                        format!("if={}", part.display()),
                    );
                    let options = ["bs=1M", "seek=1", "conv=notrunc,sparse", "status=none"];
                    run("dd", &[&[&*from, &*of], &options[..]].concat());
                }
            }
        }
        if self.name.ends_with("without its beginning") {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all_at(&[0; 4096], 0).unwrap();
        }
        if self.name.ends_with("without its metadata") {
            group::damage(&path);
        }
        let device = Loop::on(&path).map_err(|why| support::skipped(&why)).ok()?;
        Some((device, path))
    }
}

/// Runs a program with a path behind its arguments.
fn make_in(line: &str, path: &Path) {
    let mut words = line.split(' ').collect::<Vec<_>>();
    words.push(path.to_str().unwrap());
    run(words[0], &words[1..]);
}

fn sfdisk(path: &Path, table: &str) {
    use std::io::Write as _;
    let mut child = std::process::Command::new("sfdisk")
        .args(["-q", path.to_str().unwrap()])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(table.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success(), "{table}");
}

fn overwrite(place: &Place, verb: &str, target: &str, named: &[&str]) -> ProgramOutput {
    let consent = match named {
        [] => target.to_owned(),
        named => format!("{target}={}", named.join(",")),
    };
    let mut words = vec![verb, target, "--destroy", &consent];
    if verb == "bench" {
        words.extend(["--phase", "page-write", "--seconds", "100ms"]);
    }
    place.run(&words)
}

/// A line of the table.
fn row(state: &str, expected: &str, said: &ProgramOutput, wrong: bool) {
    let mark = if wrong { "WRONG" } else { "ok" };
    println!(
        "{state:<70} expected {expected:<8} got status {:?} {mark}",
        said.status
    );
}

/// Each content with names that are too few, others, or one too many is refused and left as it is, and with the
/// right names it is overwritten.
fn only_the_right_names_will_do(cases: &[Case]) {
    let mut wrong = Vec::new();
    for case in cases {
        let place = Place::new();
        let Some((device, file)) = case.make(&place) else {
            return;
        };
        let before = digest(&file);
        // One that nothing here carries.
        let more = [case.kinds, &["oracleasm"]].concat();
        let mut refused: Vec<Vec<&str>> = vec![vec![], vec!["oracleasm"], more];
        if let [first, _, ..] = case.kinds {
            refused.push(vec![first]);
        }
        for named in &refused {
            for verb in ["bench", "zero"] {
                let said = overwrite(&place, verb, device.path(), named);
                let state = format!("{verb}, {}: {}", case.name, named.join(","));
                let advice = format!("--destroy {}={}", device.path(), case.kinds.join(","));
                let fails = said.status != Some(2) || !said.err.contains(&advice);
                row(&state, "refusal", &said, fails);
                if fails {
                    wrong.push(format!("{state}: no '{advice}' in {said:#?}"));
                }
            }
        }
        // A plan says what it would overwrite.
        let plan = place.run(&format!(
            "zero {} --destroy {} --dry-run",
            device.path(),
            device.path()
        ));
        if !case
            .kinds
            .iter()
            .all(|kind| plan.err.contains(kind) || plan.out.contains(kind))
        {
            wrong.push(format!(
                "{}: a dry run does not name all: {plan:#?}",
                case.name
            ));
        }
        run("sync", &[]);
        if digest(&file) != before {
            wrong.push(format!("{}: something was written", case.name));
        }
        let said = overwrite(&place, "bench", device.path(), case.kinds);
        let state = format!("bench, {}: {}", case.name, case.kinds.join(","));
        row(&state, "success", &said, said.status != Some(0));
        if said.status != Some(0) {
            wrong.push(format!("{state}: {said:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn with_root_formats_are_overwritten_only_by_their_names() {
    only_the_right_names_will_do(FORMATS);
}

#[test]
fn with_root_tables_are_overwritten_only_with_what_their_partitions_carry() {
    only_the_right_names_will_do(TABLES);
}

#[test]
fn with_root_groups_are_overwritten_only_with_what_their_volumes_carry() {
    only_the_right_names_will_do(GROUPS);
}

#[test]
fn with_root_data_of_an_unknown_kind_is_overwritten_only_as_such() {
    only_the_right_names_will_do(DATA);
    only_the_right_names_will_do(DAMAGED);
}

#[test]
fn with_root_what_is_blank_is_overwritten_without_a_name_and_not_with_one_that_does_not_exist() {
    let mut wrong = Vec::new();
    for (verb, named, expected) in [
        ("bench", &[][..], 0),
        ("zero", &[], 0),
        ("bench", &["unknown"], 0),
        ("bench", &["ext4"], 2),
        ("zero", &["xfs", "gpt"], 2),
    ] {
        let place = Place::new();
        let blank = written("nothing", 64, |_| (), &[]);
        let Some((device, _)) = blank.make(&place) else {
            return;
        };
        let said = overwrite(&place, verb, device.path(), named);
        let state = format!("{verb}, nothing: {}", named.join(","));
        let fails = said.status != Some(expected);
        row(
            &state,
            if expected == 0 { "success" } else { "refusal" },
            &said,
            fails,
        );
        if fails {
            wrong.push(format!("{state}: {said:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Data that came through the file is not in the page cache of the device.
#[test]
fn with_root_data_that_another_name_brought_is_seen() {
    let place = Place::new();
    let blank = written("nothing", 32, |_| (), &[]);
    let Some((device, path)) = blank.make(&place) else {
        return;
    };
    // The device's page cache holds zeros now.
    std::fs::read(device.path()).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    noise(&file, 0, 1 << 20);
    file.sync_all().unwrap();
    let before = digest(&path);
    for verb in ["bench", "zero"] {
        let said = overwrite(&place, verb, device.path(), &[]);
        let fails = said.status != Some(2) || digest(&path) != before;
        row(
            &format!("{verb}, data by another name"),
            "refusal",
            &said,
            fails,
        );
        assert!(!fails, "{said:#?}");
        said.refuses(&["data of an unknown kind"]);
    }
}

/// Only the zeroing that a stamp names may take the rest of a disk as its own.
#[test]
fn with_root_the_stamp_of_a_zeroing_that_the_ledger_does_not_know_excuses_nothing() {
    let place = Place::new();
    let stamped = |file: &File| {
        let line = b"disksmith zero is not done with this disk: 20260102-030405-abcdef/1\n";
        let block: Vec<u8> = line.iter().copied().cycle().take(4096).collect();
        file.write_all_at(&block, 0).unwrap();
        noise(file, 20 * MIB, 1 << 20);
    };
    let half = written("half zeroed", 32, stamped, &["unknown"]);
    let Some((device, path)) = half.make(&place) else {
        return;
    };
    let before = digest(&path);
    for verb in ["bench", "zero"] {
        let said = overwrite(&place, verb, device.path(), &[]);
        let fails = said.status != Some(2) || digest(&path) != before;
        row(
            &format!("{verb}, half zeroed by somebody"),
            "refusal",
            &said,
            fails,
        );
        assert!(!fails, "{said:#?}");
        said.refuses(&["data of an unknown kind"]);
    }
}
