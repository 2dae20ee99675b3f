//! Images made by the real tools. A tool that is not installed, or fails on this host, is skipped with a note.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{MIB, SignatureKind, SignatureKind::*, probe};

/// Commands that make images, and the contents of each image. `FILE` stands for the image, `DIR` for an empty folder.
const TOOLS: &[(&[SignatureKind], u64, &str)] = &[
    (&[Ext2], 8, "mkfs.ext2 -q -F FILE"),
    (&[Ext3], 8, "mkfs.ext3 -q -F FILE"),
    (&[Ext4], 8, "mkfs.ext4 -q -F FILE"),
    (&[Ext4], 8, "mkfs.ext4 -q -F -b 1024 -O ^has_journal FILE"),
    (&[Jbd], 8, "mke2fs -q -F -O journal_dev FILE"),
    (&[Swap], 8, "mkswap FILE"),
    (&[Swap], 8, "mkswap -p 65536 FILE"),
    (&[Gpt], 8, "sfdisk -q --label gpt FILE"),
    (&[Dos], 8, "sfdisk -q --label dos FILE"),
    (&[Xfs], 320, "mkfs.xfs -q -f FILE"),
    (&[Btrfs], 128, "mkfs.btrfs -q -f FILE"),
    (&[F2fs], 64, "mkfs.f2fs -q -f FILE"),
    (&[Nilfs2], 160, "mkfs.nilfs2 -q -f FILE"),
    (&[Reiserfs], 64, "mkfs.reiserfs -q -f -f FILE"),
    (&[Jfs], 32, "mkfs.jfs -q FILE"),
    (&[Gfs2], 64, "mkfs.gfs2 -q -O -p lock_nolock FILE"),
    (&[Vfat], 8, "mkfs.vfat FILE"),
    (&[Vfat], 64, "mkfs.vfat -F 32 FILE"),
    (&[Exfat], 8, "mkfs.exfat FILE"),
    (&[Ntfs], 8, "mkntfs -q -Q -F FILE"),
    (&[Iso9660], 0, "genisoimage -quiet -o FILE DIR"),
    (&[Iso9660, Udf], 0, "genisoimage -quiet -udf -o FILE DIR"),
    (&[Squashfs], 0, "mksquashfs DIR FILE -noappend -quiet"),
    (&[Erofs], 0, "mkfs.erofs FILE DIR"),
    (
        &[CryptoLuks],
        32,
        "cryptsetup -q luksFormat --type luks1 --pbkdf-force-iterations 1000 FILE",
    ),
    (
        &[CryptoLuks],
        32,
        "cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 FILE",
    ),
    (&[DmVerity], 8, "veritysetup format /proc/self/exe FILE"),
    (&[Drbd], 8, "drbdmeta --force 0 v08 FILE internal create-md"),
    (&[Bcache], 8, "make-bcache -B FILE"),
];

fn find_tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|tool| tool.exists())
}

/// blkid(8)'s name for the image, to compare with.
pub(super) fn blkid(path: &Path) -> Option<String> {
    let output = Command::new(find_tool("blkid")?)
        .args(["-p", "-o", "export"])
        .arg(path)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("TYPE=").or(line.strip_prefix("PTTYPE=")))
        .map(str::to_owned)
}

#[test]
fn images_of_the_real_tools_are_recognized() {
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    for (kinds, mib, line) in TOOLS {
        let path = dir.path().join("image");
        let file = File::create(&path).unwrap();
        file.set_len(mib * MIB).unwrap();
        let mut words = line.split(' ');
        let Some(tool) = words.next().and_then(find_tool) else {
            skip::skipped(&format!("not installed: {line}"));
            continue;
        };
        let mut child = Command::new(tool)
            .args(words.map(|word| match word {
                "FILE" => path.as_os_str(),
                "DIR" => empty.as_os_str(),
                word => word.as_ref(),
            }))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // An empty table for sfdisk, a passphrase for cryptsetup; the others do not read it.
        let input = if line.starts_with("sfdisk") {
            "2048,1024,L\n"
        } else {
            "passphrase"
        };
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        if !child.wait().unwrap().success() {
            skip::skipped(&format!("the tool fails here: {line}"));
            continue;
        }
        let signatures = probe(&File::open(&path).unwrap()).unwrap();
        let mut got: Vec<_> = signatures.iter().map(|s| s.kind).collect();
        got.dedup();
        assert_eq!(got, *kinds, "{line}");
        if let Some(word) = blkid(&path)
            && let Some(kind) = SignatureKind::from_name(&word)
        {
            assert!(kinds.contains(&kind), "blkid says {word} after {line}");
            assert_eq!(kind.name(), word, "the word for {kind:?}");
        }
        println!("agreed: {line}");
    }
}
