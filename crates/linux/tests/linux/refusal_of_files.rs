//! Reasons why a file may not be overwritten, and consent to it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{Tree, ext4_image};
use linux::consent::{
    BackingUnknown, Consent, DestroyTarget, OpenError, PinnedTarget, Reason, Refusal, Relation,
    open_for_destroying, open_for_reading,
};
use linux::signature::{LocatedContent, SignatureKind};
use tempfile::TempDir;

/// An empty machine, for tests with files.
struct Bench {
    tree: Tree,
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            tree: Tree::unpack("swap-partition"),
            folder: TempDir::new().unwrap(),
        }
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn destroy(&self, path: &Path, consents: &[&str]) -> Result<DestroyTarget, Refusal> {
        let consents = parsed(path, consents);
        open_for_destroying(&self.tree.root, path, &consents)
    }
}

/// Consents in which `@` stands for the path.
fn parsed(path: &Path, consents: &[&str]) -> Vec<Consent> {
    consents
        .iter()
        .map(|text| text.replace('@', path.to_str().unwrap()))
        .map(|text| Consent::parse(OsStr::new(&text)).unwrap())
        .collect()
}

fn refused(result: Result<DestroyTarget, Refusal>) -> Vec<Reason> {
    result.unwrap_err().reasons
}

#[test]
fn a_file_is_overwritten_only_when_it_is_named() {
    let bench = Bench::new();
    let file = bench.file("data", [0; 8192]);
    assert_eq!(
        refused(bench.destroy(&file, &[])),
        [Reason::NotNamed {
            path: file.clone(),
            misunderstood: None
        }]
    );
    let other = bench.file("other", "");
    assert_eq!(
        refused(bench.destroy(&other, &[file.to_str().unwrap()])).len(),
        1
    );
    let consent = parsed(&file, &["@"]);
    let target = open_for_destroying(&bench.tree.root, &file, &consent).unwrap();
    assert_eq!((target.size.0, target.device), (8192, None));
    assert!(target.reopen(rustix::fs::OFlags::empty()).is_ok());
}

#[test]
fn a_link_to_the_file_names_it_too() {
    let bench = Bench::new();
    let file = bench.file("data", "\0");
    let link = bench.folder.path().join("link");
    symlink(&file, &link).unwrap();
    assert!(bench.destroy(&file, &[link.to_str().unwrap()]).is_ok());
    assert!(bench.destroy(&link, &[file.to_str().unwrap()]).is_ok());
}

#[test]
fn a_word_that_was_not_understood_is_named_in_the_refusal() {
    let bench = Bench::new();
    let file = bench.file("data", ext4_image());
    let found = refused(bench.destroy(&file, &["@=ext5"]));
    assert!(
        found[0].to_string().contains("'ext5' is not a signature"),
        "{found:?}"
    );
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_signature_must_be_named() {
    let bench = Bench::new();
    let file = bench.file("data", ext4_image());
    let carries = Reason::Carries {
        path: file.clone(),
        unnamed: vec![LocatedContent {
            partition: None,
            volume: None,
            offset: 1080,
            kind: SignatureKind::Ext4,
        }],
        all: vec![SignatureKind::Ext4],
    };
    assert_eq!(
        refused(bench.destroy(&file, &["@"])),
        std::slice::from_ref(&carries)
    );
    let not_there = |named: &[SignatureKind]| Reason::NotThere {
        path: file.clone(),
        named: named.to_vec(),
        found: vec![SignatureKind::Ext4],
    };
    let found = refused(bench.destroy(&file, &["@=xfs"]));
    assert_eq!(found, [not_there(&[SignatureKind::Xfs]), carries]);
    let found = refused(bench.destroy(&file, &["@=xfs,ext4,gpt"]));
    let absent = [SignatureKind::Xfs, SignatureKind::Gpt];
    assert_eq!(found, [not_there(&absent)]);
    for consents in [&["@=ext4"][..], &["@=ext4,unknown"], &["@", "@=EXT4"]] {
        assert!(bench.destroy(&file, consents).is_ok(), "{consents:?}");
    }
}

#[test]
fn data_of_an_unknown_kind_must_be_named() {
    let bench = Bench::new();
    let file = bench.file("data", "a table of numbers");
    let found = refused(bench.destroy(&file, &["@"]));
    let message = found[0].to_string();
    assert!(
        message.ends_with(&format!("--destroy {}=unknown", file.display())),
        "{message}"
    );
    assert!(bench.destroy(&file, &["@=unknown"]).is_ok());
    // It names no signature, so that it may be used for a blank file.
    let blank = bench.file("blank", [0; 8192]);
    assert!(bench.destroy(&blank, &["@=unknown"]).is_ok());
    assert_eq!(refused(bench.destroy(&blank, &["@=ext4"])).len(), 1);
}

#[test]
fn a_signature_named_for_another_file_does_not_count() {
    let bench = Bench::new();
    let file = bench.file("data", ext4_image());
    let other = format!("{}=ext4", bench.file("other", "").display());
    assert_eq!(refused(bench.destroy(&file, &["@", &other])).len(), 1);
}

#[test]
fn a_file_with_two_names_is_refused() {
    let bench = Bench::new();
    let file = bench.file("data", "\0");
    fs::hard_link(&file, bench.folder.path().join("again")).unwrap();
    assert_eq!(
        refused(bench.destroy(&file, &["@"])),
        [Reason::HardLinked {
            path: file,
            names: 2
        }]
    );
}

#[test]
fn a_swap_file_is_refused() {
    let bench = Bench::new();
    let file = bench.file("data", "\0");
    bench.tree.write(
        "proc/swaps",
        format!(
            "Filename Type Size Used Priority\n{} file 8 0 -2\n",
            file.display()
        ),
    );
    assert_eq!(
        refused(bench.destroy(&file, &["@"])),
        [Reason::Swap {
            device: file.display().to_string(),
            relation: Relation::Itself
        }]
    );
}

#[test]
fn a_file_that_a_loop_device_shows_is_refused() {
    let bench = Bench {
        tree: Tree::unpack("loops"),
        ..Bench::new()
    };
    let file = bench.file("my data", [0; 4096]);
    let backing = format!("{}\n", file.display());
    bench
        .tree
        .write("sys/class/block/loop0/loop/backing_file", backing);
    for (name, value) in [("loop/offset", "0"), ("loop/sizelimit", "0"), ("size", "8")] {
        let path = format!("sys/class/block/loop0/{name}");
        bench.tree.write(&path, format!("{value}\n"));
    }
    assert_eq!(
        refused(bench.destroy(&file, &["@"])),
        [Reason::Loop {
            device: file.display().to_string(),
            relation: Relation::Itself,
            holder: "/dev/loop0".to_owned()
        }]
    );
    // A file of another size at that path is another file: the loop device was set up in another mount namespace.
    let other = bench.file("my data", [0; 8192]);
    let found = refused(bench.destroy(&other, &["@"]));
    let [Reason::UnclearLoop { why, .. }] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(*why, BackingUnknown::Unknown);
}

#[test]
fn pipes_and_folders_are_refused() {
    let bench = Bench::new();
    let folder = bench.folder.path().to_path_buf();
    for (path, what) in [
        (folder, "is a directory"),
        ("/dev/null".into(), "is a character device"),
        ("/no/such".into(), "cannot be opened: No such file"),
    ] {
        let refusal = bench.destroy(&path, &["@"]).unwrap_err().to_string();
        assert!(refusal.contains(what), "{refusal}");
        let error = open_for_reading(&path).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_pipe_is_refused_without_waiting_for_it() {
    let bench = Bench::new();
    let pipe = bench.folder.path().join("pipe");
    crate::support::loops::run("mkfifo", &[pipe.to_str().unwrap()]);
    let error = open_for_reading(&pipe).unwrap_err();
    assert_eq!(
        error,
        OpenError::Unsuited {
            path: pipe,
            what: "a pipe"
        }
    );
}

#[test]
fn every_reason_is_in_the_refusal() {
    let bench = Bench::new();
    let file = bench.file("data", ext4_image());
    fs::hard_link(&file, bench.folder.path().join("again")).unwrap();
    let refusal = bench.destroy(&file, &[]).unwrap_err();
    assert_eq!(refusal.reasons.len(), 3);
    let text = refusal.to_string();
    for part in [
        "is not overwritten:\n  - ",
        "add --destroy",
        "2 names",
        "'ext4'",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_path_swapped_after_it_was_opened_is_refused_and_neither_file_is_touched() {
    let bench = Bench::new();
    let (file, other) = (bench.file("data", "mine"), bench.file("other", "yours"));
    let opened = PinnedTarget::at(&file).unwrap();
    fs::rename(&file, bench.folder.path().join("moved")).unwrap();
    symlink(&other, &file).unwrap();
    let refusal = opened
        .claim(&bench.tree.root, &parsed(&file, &["@=unknown"]))
        .unwrap_err();
    assert_eq!(refusal.reasons[0], Reason::Moved { path: file.clone() });
    assert_eq!(fs::read(&other).unwrap(), b"yours");
}

#[test]
fn an_opened_file_is_read_whatever_the_path_leads_to_later() {
    let bench = Bench::new();
    let file = bench.file("data", "mine");
    let opened = PinnedTarget::at(&file).unwrap();
    fs::remove_file(&file).unwrap();
    bench.file("data", "another");
    let target = opened.read().unwrap();
    assert_eq!(target.size.0, 4);
    assert_eq!(std::io::read_to_string(&target.file).unwrap(), "mine");
}

#[test]
fn a_file_is_read_without_consent() {
    let bench = Bench::new();
    let file = bench.file("data", "\0");
    fs::hard_link(&file, bench.folder.path().join("again")).unwrap();
    let target = open_for_reading(&file).unwrap();
    assert_eq!(target.path, file);
    assert!(target.file.try_clone().is_ok());
    assert!((&target.file).write_all(b"y").is_err());
}
