use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use engine::calls::{self, CallPhase, Task};
use engine::{Control, Observer};
use record::{Bytes, Direction, Nanos, Pattern, Window};

use super::data::{InOrder, Seeker, Transfer};
use super::plan::{FileOp, Files, Test, Tests};
use super::small::SmallFileSet;
use crate::args::BenchArgs;
use crate::args::tests::parsed;
use crate::test_folder::names::Round;
use crate::test_folder::{self, Folder};

fn args(arguments: &str) -> BenchArgs {
    let words = ["disksmith", "bench", ".", "--suite", "bonnie"];
    let more = arguments.split(' ').filter(|word| !word.is_empty());
    parsed(words.into_iter().chain(more)).unwrap()
}

fn tests(arguments: &str) -> Result<Tests, String> {
    let args = args(arguments);
    let (_, names) = args.target_and_phases().unwrap();
    Tests::of(&args, &names, Bytes::gib(8))
}

fn folder_in(parent: &Path) -> Folder {
    Folder::create(&test_folder::open_parent(parent).unwrap()).unwrap()
}

fn names(tests: &Tests) -> Vec<&str> {
    tests.list.iter().map(|test| test.name()).collect()
}

struct NoWatch;

impl Observer for NoWatch {
    fn window(&mut self, _window: &mut Window) -> Control {
        Control::Continue
    }
}

fn run<'t>(tests: &Tests, test: Test, tasks: Vec<Box<dyn Task + 't>>) -> record::Phase {
    let calls = CallPhase {
        name: test.name(),
        workload: &tests.workload(test),
        window: Nanos::from_secs(1),
        interrupt: &AtomicBool::new(false),
    };
    calls::run(&calls, tasks, &mut NoWatch).unwrap()
}

#[test]
fn a_run_is_what_bonnie_does() {
    let tests = tests("").unwrap();
    assert_eq!(
        names(&tests),
        [
            "char-write",
            "block-write",
            "rewrite",
            "char-read",
            "block-read",
            "seeks",
            "seq-create",
            "seq-stat",
            "seq-delete",
            "random-create",
            "random-stat",
            "random-delete"
        ]
    );
    assert_eq!(tests.size, Bytes::gib(16), "twice the memory");
    assert_eq!(
        (tests.block, tests.seeks, tests.seekers),
        (Bytes::kib(8), 8192, 5)
    );
    assert_eq!(tests.files.count, 16384);
    assert_eq!(tests.files.largest, Bytes(0));
    assert!(tests.notes.is_empty());
    let seeks = tests.workload(Test::Seeks);
    assert_eq!((seeks.pattern, seeks.threads), (Pattern::Random, 5));
    assert!(seeks.sync_at_end && seeks.sync_every == 0);
    assert_eq!(tests.workload(Test::BlockRead).read_fraction, 1.0);
}

#[test]
fn the_default_is_enough_for_a_memory_of_any_size() {
    for kib in [24_684_084, 24_684_085, 1 << 20, (1 << 20) + 1] {
        let memory = Bytes::kib(kib);
        let tests = Tests::of(&args(""), &[], memory).unwrap();
        assert!(tests.size.0 >= 2 * memory.0 && tests.size.0 < 2 * memory.0 + (1 << 20));
        assert_eq!(tests.notes, [] as [String; 0], "{kib} KiB");
    }
}

#[test]
fn what_a_test_works_on_is_made_first() {
    let tests_of = |phases: &str| tests(&format!("--phase {phases}")).unwrap();
    let seeks = tests_of("seeks,random-stat");
    assert_eq!(
        names(&seeks),
        ["block-write", "seeks", "random-create", "random-stat"]
    );
    assert!(
        seeks
            .notes
            .iter()
            .any(|note| note.starts_with("block-write was run too"))
    );
    assert_eq!(names(&tests_of("char-write")), ["char-write"]);
    assert!(
        tests("--phase char-writ")
            .unwrap_err()
            .contains("the suite has char-write,")
    );
}

#[test]
fn what_small_files_are_is_kept() {
    let tests = tests("--files 1024 --file-size 1k-64k --directories 16").unwrap();
    let create = tests.list.iter().find(|test| test.name() == "seq-create");
    let workload = tests.workload(*create.unwrap());
    // The size of each file, since readers multiply it by the number of files.
    assert_eq!(workload.span, Some(Bytes::kib(64)));
    let details = workload.details.unwrap();
    assert_eq!(details.files, 1024);
    let small = details.small_files.unwrap();
    assert_eq!((small.smallest, small.directories), (Bytes::kib(1), 16));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for option in [
        "--rate 5",
        "--depth 2",
        "--seconds 5s",
        "--engine sync",
        "--quick",
    ] {
        let error = tests(option).unwrap_err();
        assert!(error.contains("does not go with --suite bonnie"), "{error}");
    }
    assert!(tests("--block 2m").is_err());
    assert!(tests("--file-size 2g").is_err());
    assert!(parsed("d bench . --suite bonnie --file-size 4k-1k".split(' ')).is_err());
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let error = tests("--size 8192t")
        .unwrap()
        .check_room(folder.path())
        .unwrap_err();
    assert!(error.contains("a smaller --size"), "{error}");
    assert!(
        tests("--size 1m --files 10")
            .unwrap()
            .check_room(folder.path())
            .is_ok()
    );
}

#[test]
fn seekers_and_directories_take_a_descriptor_and_more() {
    let most = |options: &str| tests(options).unwrap().open_at_once();
    assert_eq!(most("--threads 1024"), 2048);
    assert_eq!(most("--threads 8 --directories 400"), 400);
    assert_eq!(most("--threads 1024 --phase block-read"), 0);
}

#[test]
fn a_file_system_is_filled_only_when_the_size_is_given() {
    let fits = |options: &str, free: u64| {
        let space = linux::space::Space {
            total: Bytes::gib(100),
            free: Bytes::gib(free),
            available: Bytes::gib(free),
            read_only: false,
            magic: 0xEF53,
        };
        let tests = tests(options).unwrap();
        tests.check_bytes(Path::new("/data"), &space)
    };
    // 16 GiB, and 5 of 100 are left free.
    let error = fits("--phase block-write", 20).unwrap_err();
    assert!(error.contains("of which 5 GiB stay free"), "{error}");
    fits("--phase block-write", 21).unwrap();
    fits("--phase block-write --size 16g", 16).unwrap();
    fits("--phase seq-create", 1).unwrap();
}

#[test]
fn single_bytes_need_no_more_room_than_they_take() {
    let folder = tempfile::tempdir().unwrap();
    // Twice this amount of memory fits nowhere.
    let large = args("--phase char-write");
    let bytes = Tests::of(&large, &["char-write".to_owned()], Bytes::gib(1 << 20)).unwrap();
    assert_eq!(bytes.data(), Bytes::mib(3));
    assert_eq!(bytes.notes, [] as [String; 0]);
    bytes.check_room(folder.path()).unwrap();
    assert_eq!(tests("--phase char-read").unwrap().data(), Bytes::gib(16));
    assert_eq!(tests("--phase seq-stat").unwrap().data(), Bytes(0));
}

#[test]
fn each_block_is_read_changed_and_written_back() {
    let tests = tests("--size 1m --phase rewrite").unwrap();
    let file = tempfile::tempfile().unwrap();
    let on = |transfer, size| -> Vec<Box<dyn Task>> {
        let file = file.try_clone().unwrap();
        let task = InOrder::new(
            file,
            transfer,
            Bytes::kib(8),
            Bytes(size),
            transfer as u64,
            false,
        );
        vec![Box::new(task)]
    };
    // The last block is half a block.
    let size = 20 * 1024;
    let written = run(&tests, Test::BlockWrite, on(Transfer::Write, size));
    assert_eq!(written.write.as_ref().unwrap().bytes, size);
    assert_eq!(written.sync.unwrap().ops, 1);
    let before = fs::read(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&file)
    ));
    let again = run(&tests, Test::Rewrite, on(Transfer::Rewrite, size));
    let after = fs::read(format!(
        "/proc/self/fd/{}",
        std::os::fd::AsRawFd::as_raw_fd(&file)
    ));
    let (before, after) = (before.unwrap(), after.unwrap());
    assert_eq!(before.len(), size as usize);
    assert_eq!(after.len(), size as usize);
    for block in 0..3 {
        let at = block * 8192;
        assert_ne!(before[at..at + 8], after[at..at + 8], "block {block}");
        assert_eq!(before[at + 8..at + 16], after[at + 8..at + 16]);
    }
    assert_eq!(again.read.unwrap().ops, 3);
    assert_eq!(again.write.unwrap().bytes, size);
    let read = run(&tests, Test::BlockRead, on(Transfer::Read, size));
    assert_eq!(read.read.unwrap().bytes, size);
    assert!(read.sync.is_none());
}

#[test]
fn seekers_share_the_seeks_and_write_a_tenth_back() {
    let tests = tests("--size 1m --sync --threads 3").unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    let left = Arc::new(AtomicU64::new(600));
    let seeker = |seed| -> Box<dyn Task> {
        let file = file.try_clone().unwrap();
        let (block, size) = (Bytes::kib(8), Bytes::MIB);
        Box::new(Seeker::new(
            file,
            block,
            size,
            Arc::clone(&left),
            seed,
            true,
        ))
    };
    let phase = run(&tests, Test::Seeks, (0..3).map(seeker).collect());
    assert_eq!(phase.read.unwrap().ops, 600);
    let written = phase.write.unwrap().ops;
    assert!((60..=63).contains(&written), "{written}");
    // Each write is flushed, and each seeker flushes when it is done.
    assert_eq!(phase.sync.unwrap().ops, written + 3);
    assert_eq!(phase.commit.unwrap().ops, written);
    assert_eq!(left.load(Relaxed), 0);
    assert_eq!(phase.thread_ops.iter().sum::<u64>(), 600 + written);
}

#[test]
fn small_files_come_and_go() {
    for round in [Round::Sequential, Round::Random] {
        for (directories, sync) in [(0, false), (3, true)] {
            let mut tests = tests("--files 50").unwrap();
            tests.sync = sync;
            tests.files = Files {
                smallest: Bytes(0),
                largest: Bytes(5000),
                count: 50,
                directories,
            };
            let parent = tempfile::tempdir().unwrap();
            let folder = folder_in(parent.path());
            let mut small = SmallFileSet::new(folder, &tests.files, round, 1, sync).unwrap();
            let count = || -> usize {
                let all = std::process::Command::new("find")
                    .arg(parent.path())
                    .args(["-type", "f"])
                    .output()
                    .unwrap();
                all.stdout.iter().filter(|byte| **byte == b'\n').count()
            };
            let mut made = |op| run(&tests, Test::Files(round, op), vec![small.task(op)]);
            let created = made(FileOp::Create);
            assert_eq!(created.write.as_ref().unwrap().ops, 50);
            assert_eq!(count(), 50);
            // Each file and its directory, and the file system at the end.
            let syncs = if sync { 101 } else { 1 };
            assert_eq!(created.sync.as_ref().unwrap().ops, syncs);
            let activity = created.workload.activity(Direction::Write);
            assert_eq!(activity, record::Activity::Create);
            assert_eq!(made(FileOp::Stat).read.unwrap().ops, 50);
            let deleted = made(FileOp::Delete);
            assert_eq!(deleted.write.unwrap().ops, 50);
            assert_eq!(count(), 0);
            drop(small);
            assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_file_that_somebody_else_put_there_is_passed_over() {
    for directories in [0, 2] {
        let mut tests = tests("--files 50").unwrap();
        tests.files.directories = directories;
        let parent = tempfile::tempdir().unwrap();
        let folder = folder_in(parent.path());
        let round = Round::Sequential;
        let mut small = SmallFileSet::new(folder, &tests.files, round, 1, false).unwrap();
        let mut made = |op| run(&tests, Test::Files(round, op), vec![small.task(op)]);
        made(FileOp::Create);
        let path = fs::read_dir(parent.path()).unwrap().next().unwrap();
        let path = match directories {
            0 => path.unwrap().path(),
            _ => path.unwrap().path().join("00000"),
        };
        // The last name has a number of this program, but not its letters.
        let foreign = ["thesis.txt", "00000000ff", "0000000000ffffffffff"];
        for name in foreign {
            fs::write(path.join(name), "mine").unwrap();
        }
        fs::create_dir(path.join("folder")).unwrap();
        assert_eq!(made(FileOp::Stat).read.unwrap().ops, 50);
        assert_eq!(made(FileOp::Delete).write.unwrap().ops, 50);
        drop(small);
        for name in foreign {
            assert!(path.join(name).exists(), "{name}");
        }
        assert_eq!(fs::read_dir(&path).unwrap().count(), 4);
    }
}

#[test]
fn files_that_were_not_deleted_go_in_the_end() {
    for round in [Round::Sequential, Round::Random] {
        let mut tests = tests("--files 50").unwrap();
        tests.files.directories = 2;
        let parent = tempfile::tempdir().unwrap();
        let folder = folder_in(parent.path());
        let mut small = SmallFileSet::new(folder, &tests.files, round, 1, false).unwrap();
        let create = Test::Files(round, FileOp::Create);
        run(&tests, create, vec![small.task(FileOp::Create)]);
        drop(small);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
