//! The page of licences and the SBOM are those of what is compiled in.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::repository;
use crate::support::{self, Place};

/// Output of `packaging/dependencies` in a form; `None` without Python.
fn written(form: &str) -> Option<String> {
    if !support::has_program("python3") {
        skip::skipped("python3");
        return None;
    }
    let place = Place::new();
    let made = place.path("made");
    let mut command = Command::new(repository().join("packaging/dependencies"));
    command
        .args(["x86_64-unknown-linux-gnu", form])
        .arg(&made)
        .env("SOURCE_DATE_EPOCH", "0");
    support::output_of(&mut command).ends_with(0);
    Some(fs::read_to_string(made).unwrap())
}

fn page() -> String {
    fs::read_to_string(repository().join("docs/licences.md")).unwrap()
}

/// `packaging/dependencies x86_64-unknown-linux-gnu table docs/licences.md` writes the page.
#[test]
fn the_page_of_licences_is_that_of_what_is_compiled_in() {
    if let Some(made) = written("table") {
        assert_eq!(made, page());
    }
}

/// A licence as the page has it: a choice with its parts in order.
fn in_order(licence: &str) -> String {
    if licence.contains('(') {
        return licence.to_owned();
    }
    let mut parts: Vec<&str> = licence.split(" OR ").collect();
    parts.sort_unstable();
    parts.join(" OR ")
}

/// Name and licence of all on the page.
fn listed() -> BTreeSet<(String, String)> {
    let page = page();
    let rows = page.lines().filter_map(|line| {
        let (licence, names) = line.strip_prefix("| ")?.split_once(" | ")?;
        Some((licence.to_owned(), names.strip_suffix(" |")?.to_owned()))
    });
    let rows = rows.filter(|(licence, _)| !matches!(licence.as_str(), "licence" | "---"));
    let of_row = |(licence, names): (String, String)| {
        let names = names.split(", ").map(|name| name.replace("**", ""));
        let all: Vec<_> = names.map(|name| (name, licence.clone())).collect();
        all
    };
    rows.flat_map(of_row).collect()
}

#[test]
fn the_sbom_has_what_the_page_of_licences_lists() {
    let Some(made) = written("sbom") else {
        return;
    };
    let sbom: Value = serde_json::from_str(&made).unwrap();
    let components = sbom["components"].as_array().unwrap();
    let text = |component: &Value, key: &str| component[key].as_str().unwrap().to_owned();
    let is_cargos = |component: &&Value| text(component, "purl").starts_with("pkg:cargo/");
    let compiled_in = components.iter().filter(|one| one["scope"] == "required");
    // The crates of this program have no checksum.
    let foreign = compiled_in.filter(|one| !is_cargos(one) || one["hashes"].is_array());
    let found = foreign.map(|one| {
        let licence = one["licenses"][0]["expression"].as_str();
        let licence = licence.unwrap_or("see its text").replace('/', " OR ");
        (text(one, "name"), in_order(&licence))
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), listed());

    // The program itself tells the versions of what is no package, where it has them.
    let program = assert_cmd::cargo::cargo_bin!("disksmith");
    for (name, before, behind) in [
        ("Rust standard library", "rustc version ", " ("),
        ("SQLite", "", ""),
        ("uPlot", "uPlot (v", ")"),
    ] {
        let component = components.iter().find(|one| one["name"] == name).unwrap();
        let version = text(component, "version");
        let mut grep = Command::new("grep");
        grep.args(["-c", "-a", "-F", "-e"])
            .arg(format!("{before}{version}{behind}"))
            .arg(program);
        support::output_of(&mut grep).ends_with(0);
    }
    for name in ["GNU C Library", "libgcc"] {
        let component = components.iter().find(|one| one["name"] == name).unwrap();
        let version = text(component, "version");
        let parts: Vec<Result<u32, _>> = version.split('.').map(str::parse).collect();
        assert!(
            parts.len() >= 2 && parts.iter().all(Result::is_ok),
            "{version}"
        );
    }
    // Each has a line among the dependencies, and something that needs it.
    let depends = sbom["dependencies"].as_array().unwrap();
    for component in components.iter().filter(|one| !is_cargos(one)) {
        let id = &component["bom-ref"];
        assert!(depends.iter().any(|one| one["ref"] == *id), "{id}");
        let is_needed = |one: &Value| one["dependsOn"].as_array().unwrap().contains(id);
        assert!(depends.iter().any(is_needed), "{id}");
    }
}
