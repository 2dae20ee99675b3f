//! What the papers for developers say of the source is so.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The place of each crate in the layers: its line from above, and its place in the line.
fn layers() -> HashMap<String, (usize, usize)> {
    let text = read("ARCHITECTURE.md");
    let block = text.split("```layers\n").nth(1).unwrap();
    let lines = block.split("```").next().unwrap().lines().enumerate();
    lines
        .flat_map(|(line, names)| {
            let names = names.split_whitespace().enumerate();
            names.map(move |(place, name)| (name.to_owned(), (line, place)))
        })
        .collect()
}

/// The crates of this workspace that a crate depends on, without those of its tests.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{name}/Cargo.toml"));
    let section = manifest
        .split("\n[dependencies]\n")
        .nth(1)
        .unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()));
    names
        .filter(|name| root().join("crates").join(name).is_dir())
        .collect()
}

#[test]
fn dependencies_go_down_only() {
    let layers = layers();
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let mut wrong = Vec::new();
    for entry in crates {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Tests only.
        if name == "skip" {
            continue;
        }
        let Some(place) = layers.get(&name) else {
            wrong.push(format!("{name} stands in no layer of ARCHITECTURE.md"));
            continue;
        };
        for below in dependencies(&name) {
            if below != "skip" && layers.get(&below).is_none_or(|of_below| of_below <= place) {
                wrong.push(format!(
                    "{name} depends on {below}, which does not stand below it"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A path in backquotes that begins with `crates/`, and names after it that stand in the same folder.
#[test]
fn what_contributing_points_to_is_there() {
    let text = read("CONTRIBUTING.md");
    let named: Vec<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.starts_with("crates/"))
        .collect();
    assert!(named.len() > 30, "{named:?}");
    let missing: Vec<&&str> = named
        .iter()
        .filter(|path| !root().join(path).exists())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
