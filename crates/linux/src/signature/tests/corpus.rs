//! The images of util-linux's own tests of libblkid.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tools::blkid;
use super::{Content, SignatureKind};

/// The images below a folder: `tests/ts/blkid/images-fs/ext4.img.xz`, and those of partition tables beside it.
fn images(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            images(&path, found);
        } else if path.to_str().unwrap().ends_with(".img.xz") {
            found.push(path);
        }
    }
}

/// No image is blank, whether its format is known or not, and each known one has blkid's name. Prints a line for each.
#[test]
#[ignore = "reads the folder tests/ts/blkid of util-linux's source, named by DISKSMITH_BLKID_IMAGES"]
fn images_of_blkids_tests_are_known_by_its_words_or_unknown_and_never_blank() {
    let Some(folder) = env::var_os("DISKSMITH_BLKID_IMAGES") else {
        println!("DISKSMITH_BLKID_IMAGES names no folder of images");
        return;
    };
    let mut all = Vec::new();
    images(Path::new(&folder), &mut all);
    assert!(!all.is_empty(), "no image in {}", folder.display());
    all.sort();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("image");
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::new());
    for image in &all {
        // xz leaves holes in place of zeros.
        let unpacked = Command::new("xz")
            .args(["--decompress", "--stdout"])
            .arg(image)
            .stdout(File::create(&path).unwrap())
            .status();
        assert!(unpacked.unwrap().success(), "{}", image.display());
        let content = Content::of(&File::open(&path).unwrap(), &[]).unwrap();
        let (kinds, word) = (content.kinds(), blkid(&path));
        let known = word.as_deref().and_then(SignatureKind::from_name);
        let name = image.file_name().unwrap().display();
        let words: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        println!("{name}: blkid {word:?}, here {words:?}");
        let is_right = !kinds.is_empty() && known.is_none_or(|kind| kinds.contains(&kind));
        if !is_right {
            wrong.push(format!("{name}: blkid {word:?}, here {words:?}"));
        }
        let is_named = kinds.iter().any(|kind| *kind != SignatureKind::Unknown);
        *counts.entry(is_named).or_insert(0) += 1;
    }
    println!("{} images; with a known format: {counts:?}", all.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
